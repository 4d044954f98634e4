"""`hyce evaluate` from end to end: questions are generated, answered, judged and reported.

All models are played by rules (evaluation_llm.py), so that each figure can be said beforehand.
"""

from __future__ import annotations

import json
import re
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from evaluation_llm import (
    BROKEN_ALWAYS,
    BROKEN_ONCE,
    BUSY_ONCE,
    DOWN_ALWAYS,
    DOWN_ONCE,
    Actor,
    Trouble,
)
from evaluation_site import (
    COMMANDS,
    COT,
    DESCRIBED,
    DOCS,
    GOOD,
    HYCE,
    ROWS,
    Site,
    build,
    lines,
    only,
    report,
    rows,
    run_arguments,
    share,
)
from hyce_home import Home, Result, fails, wait_for

from hyce.evaluate.sets import read_set
from hyce.prompts import evaluation as prompts

PASSES = 2


@pytest.fixture(scope="module")
def actor() -> Iterator[Actor]:
    with Actor() as actor:
        yield actor


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, model_folder: Path, actor: Actor) -> Site:
    return build(Site(Home(tmp_path_factory.mktemp("site"), model_folder), actor))


@pytest.fixture(autouse=True)
def _well_behaved(actor: Actor) -> Iterator[None]:
    yield
    actor.plan = {}


def generate(site: Site, folder: Path, *options: str) -> Result:
    numbers = ("--unanswerable", "8", "--two-passages", "8", "--mixed", "3")
    return site.hyce("evaluate", "generate", str(folder), *(options or numbers), "--json")


def ids(asked: Path, *kinds: str) -> set[str]:
    return {question.id for question in read_set(asked).questions if question.kind in kinds}


# -- questions -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """The generated questions, and what the command said of them."""

    folder: Path
    result: Result


@pytest.fixture(scope="module")
def asked(site: Site) -> Asked:
    folder = site.folder / "questions"
    return Asked(folder, generate(site, folder))


def test_questions_are_counted_by_criterion(asked: Asked) -> None:
    assert asked.result.code == 0, asked.result.err
    tallies = {tally["kind"]: tally for tally in asked.result.json["tallies"]}
    expected = {
        # asked, grounded, relevant, standalone, kept
        "document": (8, 7, 7, 7, 5),
        "command": (3, 3, 3, 3, 3),
        "unanswerable": (8, 8, 8, 7, 7),
    }
    for kind, numbers in expected.items():
        tally = tallies[kind]
        assert (tally["asked"], *tally["met"].values(), tally["kept"]) == numbers, kind
        assert list(tally["met"]) == ["groundedness", "relevance", "standalone"]
    assert tallies["passage_and_command"]["asked"] == 3


def test_two_passages_are_asked_about_where_both_are_fit_for_it(asked: Asked) -> None:
    found = read_set(asked.folder)
    assert found.origin
    pairs = [set(re.findall(r"(\w+)\.md#0", name)) for name in found.origin.sampled["two_passages"]]
    assert {"jobs", "interactive"} in pairs
    kept = [pair for pair in pairs if pair <= set(GOOD)]
    made = [q for q in found.questions if q.kind == "two_passages"]
    assert [{Path(each.path).stem for each in q.evidence} for q in made] == kept
    assert all(q.needs_all and len(q.evidence) == 2 and q.answer.count("; ") == 1 for q in made)


def test_the_rejected_stay_with_their_reason(asked: Asked) -> None:
    found = read_set(asked.folder)
    assert {question.answer for question in found.questions if question.kind == "document"} == {
        "48 hours",
        "2 hours",
        "50 GB",
        "2024.3",
        "14:00",
    }
    rejected = {q.answer: q.rejected for q in found.rejected if q.kind == "document"}
    assert rejected == {"K-4711": "relevance", "30 days": "standalone", "900 kW": "groundedness"}
    assert {question.answer for question in found.questions if question.kind == "command"} == {
        "17",
        "1234 core hours",
        "2027-03-31",
    }


def test_outputs_and_origin_are_stored_with_the_questions(asked: Asked) -> None:
    found = read_set(asked.folder)
    printed = {stored.output.id: stored.output.stdout.strip() for stored in found.outputs}
    assert printed == {name: text for name, (_, _, text) in COMMANDS.items()}
    assert found.origin
    assert (found.origin.seed, found.origin.model, found.origin.filter_model) == (0, "scripted", "scripted")
    assert found.origin.prompts == prompts.writing_digest()
    assert len(found.origin.sampled["document"]) == 8
    assert set(found.origin.sampled["command"]) == set(COMMANDS)


def test_the_answer_is_not_shown_to_the_filter(asked: Asked, actor: Actor) -> None:
    rated = [reply.played for reply in actor.replies if reply.played.role == "filter"]
    assert rated
    for played in rated:
        outside = played.user
        for part in played.parts:
            outside = outside.replace(part.text, "")
        assert "50 GB" not in outside
        assert {part.kind for part in played.parts} <= {
            "question to rate",
            "documentation",
            "command output",
        }


def test_the_same_again_asks_nothing_and_changes_nothing(asked: Asked, site: Site, actor: Actor) -> None:
    before = (asked.folder / "questions.jsonl").read_bytes()
    requests = len(actor.requests)
    again = generate(site, asked.folder)
    assert (again.code, again.json["calls"]) == (0, 0)
    assert len(actor.requests) == requests
    assert (asked.folder / "questions.jsonl").read_bytes() == before


def test_models_that_misbehave_while_questions_are_made(site: Site, actor: Actor, tmp_path: Path) -> None:
    actor.plan = {
        ("generation", "queue heron"): BROKEN_ONCE,
        ("generation", "quota"): BROKEN_ALWAYS,
        ("generation", "default version"): Trouble(
            json.dumps({"question": "What does the passage say of modules?", "answer": "2024.3"})
        ),
        ("generation", "free nodes"): DOWN_ONCE,
        ("filter", "remaining budget"): BUSY_ONCE,
        ("filter", "starting time"): BROKEN_ONCE,
        ("filter", "opening time"): BROKEN_ALWAYS,
        ("filter", "serial number"): DOWN_ALWAYS,
    }
    folder = tmp_path / "questions"
    options = ("--unanswerable", "0", "--two-passages", "0", "--mixed", "0")
    done = generate(site, folder, *options)
    assert done.code == 1
    found = read_set(folder)
    assert {question.answer for question in found.questions} == {
        "48 hours",
        "2 hours",
        "17",
        "1234 core hours",
        "2027-03-31",
    }
    assert {question.answer for question in found.rejected} == {"30 days", "900 kW"}
    left_out = list(done.json["left_out"].values())
    assert len(left_out) == 2
    assert sum("the passage" in why for why in left_out) == 1
    assert len(done.json["failed"]) == 2
    assert sum("don't hold three ratings" in why for why in done.json["failed"].values()) == 1
    assert sum("out of memory" in why for why in done.json["failed"].values()) == 1
    actor.plan = {}
    requests = len(actor.requests)
    mended = generate(site, folder, *options)
    assert mended.json["calls"] == len(actor.requests) - requests == 1, "what was answered is kept"
    assert {question.answer for question in read_set(folder).rejected} == {"30 days", "900 kW", "K-4711"}


def test_a_question_for_two_passages_that_one_answers_is_rejected(
    site: Site, actor: Actor, tmp_path: Path
) -> None:
    alone = {"question": "What is the walltime limit of queue heron?", "answer": "48 hours"}
    actor.plan = {("generation", "queue heron"): Trouble(json.dumps(alone))}
    options = (
        "--passages",
        "0",
        "--commands",
        "0",
        "--unanswerable",
        "0",
        "--two-passages",
        "8",
        "--mixed",
        "0",
    )
    done = generate(site, tmp_path / "questions", *options)
    assert done.code in (0, 1), done.err
    text = (tmp_path / "questions" / "questions.jsonl").read_text("utf-8")
    made = [json.loads(line) for line in text.splitlines()[1:]]
    about = [row for row in made if row["question"] == alone["question"]]
    assert about
    assert {row["rejected"] for row in about} == {"groundedness (one source alone answers it)"}


def test_a_command_that_fails_makes_no_question(site: Site, tmp_path: Path) -> None:
    name, other, _ = COMMANDS
    (site.folder / "state" / f"{name}.txt").unlink()
    (site.folder / "state" / f"{other}.txt").write_text("\n", "utf-8")
    try:
        options = ("--passages", "0", "--unanswerable", "0", "--two-passages", "0", "--mixed", "0")
        done = generate(site, tmp_path / "questions", *options)
    finally:
        for each in (name, other):
            site.printed(each, COMMANDS[each][2])
    assert done.code == 0, done.err
    assert done.json["kept"] == 1
    assert done.json["left_out"][name].startswith("it failed with exit code 1: ")
    assert done.json["left_out"][other] == "it printed nothing"


# -- a run -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ran(site: Site, asked: Asked, actor: Actor) -> Path:
    """The folder of a run, during which the cluster has moved on."""
    folder = site.folder / "run"
    for name in COMMANDS:
        site.printed(name, "The number of free nodes of partition osprey is 99.")
    done = site.hyce(*run_arguments(asked.folder, folder, "--passes", str(PASSES), *only(*ROWS)))
    assert done.code == 0, done.err
    return folder


def test_the_score_of_each_variant(site: Site, asked: Asked, ran: Path) -> None:
    found = lines(report(site, ran))
    assert list(found) == list(ROWS)
    for name, right in zip(ROWS, (5, 5, 8, 8), strict=True):
        line = found[name]
        assert share(line["scores"]["score"]) == round(right / 8, 4), name
        assert share(line["scores"]["correctness"]) == round(right / 8, 4)
        assert share(line["scores"]["faithfulness"]) == 1.0, "who doesn't know makes nothing up"
        assert [round(each, 4) for each in line["passes"]] == [round(right / 8, 4)] * PASSES
        assert share(line["by_source"]["documentation"]["score"]) == 1.0
        assert share(line["by_source"]["command"]["score"]) == (1.0 if right == 8 else 0.0)
        answers = PASSES * len(read_set(asked.folder).questions)
        counts = line["counts"]
        assert (counts["answers"], counts["judged"]) == (answers, answers)
    plus = found[HYCE]
    assert (plus["previous"]["versus"], plus["baseline"]["versus"]) == (DESCRIBED, DOCS)
    for other in (plus["previous"], plus["baseline"]):
        assert round(other["value"], 4) == round(3 / 8, 4)
        assert (other["only_this"], other["only_other"], other["p"]) == (3, 0, 0.25)
    assert (found[COT]["previous"]["value"], found[COT]["previous"]["p"]) == (0, 1)


def test_what_runs_wins_exactly_on_the_questions_about_commands(asked: Asked, ran: Path) -> None:
    right: dict[str, Counter[str]] = {name: Counter() for name in ROWS}
    for row in rows(ran):
        scores = row["verdicts"][0]["scores"]
        right[row["variant"]][row["question"]] += all(scores.values())
    assert right[DOCS] == right[DESCRIBED]
    assert right[HYCE] == right[COT]
    won = {name for name in right[HYCE] if right[HYCE][name] != right[DOCS][name]}
    assert won == ids(asked.folder, "command", "passage_and_command")
    assert {right[HYCE][name] for name in won} == {PASSES}
    assert {right[DOCS][name] for name in won} == {0}


def test_kinds_of_their_own_are_kept_apart(site: Site, asked: Asked, ran: Path) -> None:
    found = lines(report(site, ran))
    both = found[DOCS]["apart"]
    assert set(both) == {"two_passages", "passage_and_command"}
    assert share(both["two_passages"]["score"]) == 1.0
    assert share(both["passage_and_command"]["score"]) == 0.0
    assert share(found[HYCE]["apart"]["passage_and_command"]["score"]) == 1.0
    for name in ROWS:
        assert share(found[name]["abstained"]) == 1.0
        assert found[name]["abstained"]["questions"] == 7
        assert set(found[name]["by_kind"]) == {"document", "command"}
        assert found[name]["scores"]["score"]["questions"] == 8


def test_outputs_are_those_that_the_questions_were_made_of(ran: Path) -> None:
    given = [g["text"] for row in rows(ran) for g in row["given"] if g["kind"] == "command"]
    assert any("osprey is 17" in text for text in given)
    assert not any("osprey is 99" in text for text in given)
    assert (ran / "outputs.jsonl").read_text("utf-8") == "", "nothing had to run"


def test_the_judge_sees_what_the_answerer_saw_and_never_its_reasons(ran: Path, actor: Actor) -> None:
    results = [row for row in rows(ran) if row["variant"] == COT and row["given"]]
    assert results
    assert all("bear on it" in row["reasons"] for row in results)
    judges = [reply.played for reply in actor.replies if reply.played.role == "judge"]
    assert {played.kind for played in judges} == {"grounded"}
    assert all("bear on it" not in played.user for played in judges)
    seen = {(p.text("question"), tuple(part.text for part in p.sources)) for p in judges}
    asked = {question.id: question.question for question in read_set(ran).questions}
    for row in results:
        if row["question"].startswith(("document", "command")):
            assert (asked[row["question"]], tuple(given["text"] for given in row["given"])) in seen


def test_the_same_run_again_costs_nothing(site: Site, asked: Asked, ran: Path, actor: Actor) -> None:
    requests = len(actor.requests)
    results = (ran / "results.jsonl").read_bytes()
    first = report(site, ran)
    again = site.hyce(*run_arguments(asked.folder, ran, "--passes", str(PASSES), *only(*ROWS)))
    assert again.code == 0, again.err
    assert len(actor.requests) == requests
    assert (ran / "results.jsonl").read_bytes() == results
    assert report(site, ran) == first


def test_commands_run_anew_where_that_is_asked_for(site: Site, asked: Asked, ran: Path) -> None:
    live = site.folder / "live"
    done = site.hyce(*run_arguments(asked.folder, live, "--live", "--passes", "1", *only(HYCE)))
    assert done.code == 0, done.err
    found = report(site, live)
    assert found["facts"]["live"] is True
    assert share(lines(found)[HYCE]["by_kind"]["command"]["score"]) == 0.0, "the cluster has moved on"
    assert share(lines(found)[HYCE]["by_kind"]["document"]["score"]) == 1.0


def test_a_dry_run_sends_and_writes_nothing(site: Site, asked: Asked, actor: Actor, tmp_path: Path) -> None:
    requests = len(actor.requests)
    done = site.hyce(*run_arguments(asked.folder, tmp_path / "none", "--dry-run"))
    assert done.code == 0, done.err
    assert len(actor.requests) == requests
    assert not (tmp_path / "none").exists()


# -- interrupted -----------------------------------------------------------------------------------------


def without_times(found: dict[str, Any]) -> dict[str, Any]:
    """A report without what the clock says."""
    times = ("created", "total_ms", "model_ms")
    facts = {name: value for name, value in found["facts"].items() if name not in times}
    variants = [{k: v for k, v in line.items() if k not in times} for line in found["variants"]]
    return found | {"facts": facts, "variants": variants}


def test_a_run_that_is_killed_goes_on_and_asks_nothing_twice(site: Site, asked: Asked, ran: Path) -> None:
    folder = site.folder / "killed"
    arguments = run_arguments(asked.folder, folder, "--passes", str(PASSES), *only(*ROWS))
    calls, results = folder / "calls.jsonl", folder / "results.jsonl"

    def made() -> int:
        return calls.read_bytes().count(b"\n") if calls.exists() else 0

    with Actor() as actor:
        own = Site(site.home, actor)
        before = b""
        for count in (1, 45, 80):
            actor.hold(count - made())
            process = own.home.start(*arguments, settings=own.all_settings)
            wait_for(lambda: process.poll() is not None or made() == count)  # noqa: B023  (waited for here)
            assert process.poll() is None, process.communicate()
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=60)
            assert results.read_bytes().startswith(before)
            before = results.read_bytes()
            # As a kill in the middle of a write leaves it.
            results.write_bytes(before + b'{"variant": "half a li')
        assert 0 < before.count(b"\n") < len(rows(ran))
        actor.hold(None)
        done = own.hyce(*arguments)
        assert done.code == 0, done.err
        assert actor.twice() == []
        assert made() == len(actor.replies) == (ran / "calls.jsonl").read_bytes().count(b"\n")
        assert results.read_bytes().startswith(before)
        assert without_times(report(own, folder)) == without_times(report(site, ran))


def test_an_interrupted_run_lets_what_is_under_way_end(site: Site, asked: Asked, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    arguments = run_arguments(asked.folder, folder, "--passes", "1", *only(HYCE))
    with Actor() as actor:
        own = Site(site.home, actor)
        actor.hold(5)
        process = own.home.start(*arguments, settings=own.all_settings)
        wait_for(lambda: len(actor.replies) == 5)
        process.send_signal(signal.SIGINT)
        actor.hold(None)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 130, said
        assert said.decode().splitlines()[-1] == "hyce: interrupted"
        assert len(rows(folder)) < len(read_set(asked.folder).questions)
        done = own.hyce(*arguments)
        assert done.code == 0, done.err
        assert actor.twice() == []
        assert len(rows(folder)) == len(read_set(asked.folder).questions)


def test_two_at_the_same_time_are_refused(site: Site, asked: Asked, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    arguments = run_arguments(asked.folder, folder, "--passes", "1", *only(DOCS))
    with Actor() as actor:
        own = Site(site.home, actor)
        actor.hold(2)
        process = own.home.start(*arguments, settings=own.all_settings)
        wait_for(lambda: len(actor.replies) == 2)
        fails(own.hyce(*arguments), "being written by process")
        process.kill()
        process.communicate(timeout=60)
        actor.hold(None)
