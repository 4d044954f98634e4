"""What loads and doesn't work is found: in a site's entries as faults, in the built-in ones as remarks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hyce_home import Home

from hyce import catalogue
from hyce.catalogue import check
from hyce.config import Policy
from hyce.embed import OnnxEmbedder
from hyce.models import find
from hyce.records import Command, Parameter

BUILTIN = str(catalogue.BUILTIN / "system.yaml")
DATE = Command("system.date", "Shows the date.", ("what day is it",), (("date",),), origin=BUILTIN)
SITE = Command(
    "site.day", "Shows the weekday.", ("which weekday",), (("date", "+%A"),), origin="/etc/own.yaml"
)


def with_parameter(find: tuple[str, ...], pattern: str = r"\d+", **more: str) -> Command:
    parameter = Parameter("day", pattern, "the day", find, **more)
    return replace(SITE, questions=("what is on day 12",), parameters=(parameter,))


def test_references_to_nowhere_are_faults_and_to_what_is_disabled_are_not() -> None:
    entry = replace(with_parameter(("x",), instead="site.nowhere"), diagnosis=("system.date", "system.host"))
    found = list(check.references(entry, {"site.day": entry, "system.date": DATE}, {"system.host": DATE}))
    assert [(each.must_mend, each.kind) for each in found] == [(False, "reference"), (True, "reference")]
    assert "system.host, which is disabled" in found[0].text
    assert "`instead` names site.nowhere, which is no entry" in found[1].text


@pytest.mark.parametrize(
    ("patterns", "must_mend", "text"),
    [
        ((), False, "no `find`"),
        (("night (.*)",), True, "fills day"),
        ((r"(day)",), True, "takes 'day', which its `pattern` refuses"),
    ],
)
def test_parameters_that_no_question_fills(patterns: tuple[str, ...], must_mend: bool, text: str) -> None:
    (found,) = check.parameters(with_parameter(patterns))
    assert (found.kind, found.must_mend) == ("parameter", must_mend)
    assert text in found.text


def test_a_parameter_that_a_question_fills_is_fine() -> None:
    assert list(check.parameters(with_parameter((r"day (\d+)",)))) == []


@pytest.mark.parametrize(
    "pattern", [r"(a+)+$", r"(?:\w+\s?)*\?", r"job\s*\s*\s*\s*\d", r"(\d|\d\d)+$", r"job (?:\d+)+x"]
)
def test_patterns_that_hang_are_found_in_seconds(pattern: str) -> None:
    (found,) = check.slow_patterns([with_parameter((pattern,))])
    assert (found.kind, found.must_mend) == ("pattern", True)
    assert pattern.replace("\\", "\\\\") in found.text


@pytest.mark.parametrize("pattern", [r"(?i)\bjob\s{1,3}(\d{1,10})\b", r"\d+", r"[a-z][a-z0-9_]{0,30}"])
def test_patterns_that_are_bounded_are_fine(pattern: str) -> None:
    assert check.slow_for(pattern, whole=False) is None
    assert check.slow_for(pattern, whole=True) is None


def test_programs_that_are_not_here_are_told() -> None:
    (found,) = check.missing_programs([DATE, replace(SITE, argv=(("no-such-program",),))], Policy())
    assert (found.entry, found.kind, found.must_mend) == ("site.day", "program", False)


def test_the_same_command_line_twice_is_told_of_the_site_s_entry() -> None:
    (found,) = check.same_commands([replace(SITE, argv=DATE.argv), DATE])
    assert (found.entry, found.kind) == ("site.day", "command")
    assert "runs the same as system.date" in found.text


@pytest.fixture(scope="module")
def embedder(model_folder: Path) -> OnnxEmbedder:
    return OnnxEmbedder(find("all-MiniLM-L6-v2", "int8", model_folder), 1)


def test_descriptions_that_say_the_same_are_found(embedder: OnnxEmbedder) -> None:
    copy = replace(SITE, description="Shows the date")
    (found,) = check.alike([copy, DATE], embedder)
    assert (found.entry, found.kind, found.must_mend) == ("site.day", "alike", True)
    slurm, pbs = replace(copy, scheduler="slurm"), replace(DATE, scheduler="pbs")
    assert list(check.alike([slurm, pbs], embedder)) == []
    assert list(check.alike([], embedder)) == []


def test_no_two_builtin_descriptions_are_alike(embedder: OnnxEmbedder) -> None:
    commands = tuple(catalogue.load().values())
    assert list(check.alike(commands, embedder)) == []
    vectors = np.stack([each.vector for each in embedder.embed([c.description for c in commands])])
    assert len(vectors) > 40


def test_the_builtin_catalogue_holds_nothing_to_mend() -> None:
    entries = catalogue.load()
    commands = tuple(entries.values())
    found = [finding for each in commands for finding in check.references(each, entries, entries)]
    found += [finding for each in commands for finding in check.parameters(each)]
    found += [*check.slow_patterns(commands), *check.same_commands(commands)]
    assert found == []


def test_questions_that_lead_elsewhere() -> None:
    other = replace(DATE, id="system.host")
    entries = {each.id: each for each in (DATE, other, SITE)}
    wrong = [
        ("system.date", "what day is it", "system.host"),
        ("system.date", "what day is it now", "site.day"),
        ("system.date", "today?", "site.day"),
        ("site.day", "which weekday", "no command"),
    ]
    remark, own, takes = check.wrong_questions(entries, wrong)
    assert (remark.entry, remark.must_mend) == ("system.date", False)
    assert (own.entry, own.must_mend) == ("site.day", True)
    assert (takes.entry, takes.must_mend) == ("site.day", True)
    assert "takes 2 of the questions of system.date" in takes.text


def test_a_file_is_checked_before_it_is_put_in_place(home: Home, tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    entry = "{description: Tells what the canteen offers for lunch today., command: [date, +%A]"
    file.write_text(
        f"site.lunch: {entry}}}\nsite.dinner: {entry}, diagnosis: [site.tea]}}\n", encoding="utf-8"
    )
    file.chmod(0o644)
    done = home.hyce("commands", "check", str(file), "--json")
    assert done.code == 1
    assert done.json["entries"] == len(catalogue.load()) + 2
    found = {(row["entry"], row["kind"]): row["must_mend"] for row in done.json["findings"]}
    assert found["site.dinner", "reference"]
    assert found["site.dinner", "alike"]
    assert not found["site.dinner", "command"]
    assert not any(entry_id == "site.lunch" for entry_id, _ in found)
    assert sum(done.json["counts"].values()) == len(done.json["findings"])
    assert "hyce: site.dinner: `diagnosis` names site.tea, which is no entry; correct the id" in done.err
    assert "site.lunch" not in home.hyce("commands", "list").out
