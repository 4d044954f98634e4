"""Whatever a parameter holds: what doesn't fit reaches no program, and what fits reaches it unchanged."""

from __future__ import annotations

import os
import pwd
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hyce import catalogue, values
from hyce.config import Policy
from hyce.errors import PolicyError
from hyce.parameters import fill
from hyce.records import Command, Parameter
from hyce.run import run

WITH_PARAMETERS = [entry for entry in catalogue.load().values() if entry.parameters]
NASTY = [
    *";&|<>$`'\"\\(){}!*?~ \n\r\t\0\x1b\x7f\x85\u2028",
    *("..", "/../", "--", "-", "{me}", "$(id)", "\n1", "\uff11", "\u00e9"),
]


def looks_plain(value: str) -> bool:
    """Written anew here, not taken from the code."""
    return (
        0 < len(value) <= 200
        and value.isprintable()
        and not set(value) & set(" ;&|<>$`\"'\\(){}!*?~")
        and not value.startswith("-")
        and ".." not in value.split("/")
    )


def values_for(parameter: Parameter) -> st.SearchStrategy[str]:
    """Good ones, good ones with something added at the end or in the middle, and anything at all."""
    good = st.from_regex(parameter.pattern, fullmatch=True)
    piece = st.sampled_from(NASTY) | st.text(max_size=3)
    longer = st.builds(lambda value, end: value + end, good, piece)
    broken = st.builds(
        lambda value, middle: value[: len(value) // 2] + middle + value[len(value) // 2 :], good, piece
    )
    return good | longer | broken | st.sampled_from(NASTY) | st.text(max_size=30)


@pytest.fixture(scope="module")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a program under every name in the catalogue, which writes down its arguments."""
    folder = tmp_path_factory.mktemp("recorder")
    folder.chmod(0o755)
    for entry in WITH_PARAMETERS:
        for stage in (stage for pipeline in (entry.argv, *entry.also) for stage in pipeline):
            program = folder / stage[0]
            program.write_text(f"#!/bin/sh\nprintf '%s\\0' {stage[0]} \"$@\" | cat >> {folder}/record\n")
            program.chmod(0o755)
    return folder


@pytest.mark.parametrize("entry", WITH_PARAMETERS, ids=lambda entry: entry.id)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_nothing_that_does_not_fit_reaches_a_program(
    entry: Command, recorder: Path, data: st.DataObject
) -> None:
    params = {parameter.name: data.draw(values_for(parameter)) for parameter in entry.parameters}
    record = recorder / "record"
    record.unlink(missing_ok=True)
    output = run(
        replace(entry, requires=()),
        params,
        # In a sandbox, what the program writes down would be lost.
        policy=Policy(root=True, sandbox="off"),
        directories=[recorder],
        trusted_uid=os.getuid(),
    )
    fits = all(
        looks_plain(params[parameter.name])
        and re.fullmatch(parameter.pattern, params[parameter.name], re.ASCII)
        for parameter in entry.parameters
    )
    assert (output.status != "refused") == fits, output.reason
    if fits:
        assert arguments(record) == expected(entry, params)
    else:
        assert not record.exists()


def arguments(record: Path) -> list[str]:
    """Of all stages, sorted: those of a pipe start at the same time."""
    return sorted(record.read_bytes().decode().split("\0")[:-1])


def expected(entry: Command, params: dict[str, str]) -> list[str]:
    own = pwd.getpwuid(os.getuid())
    # Slurm's programs take no range of tasks.
    taken = {name: value.partition("_[")[0] if name == "job_id" else value for name, value in params.items()}
    known = {**taken, "me": own.pw_name, "uid": str(own.pw_uid), "home": own.pw_dir, "cwd": str(Path.cwd())}
    wanted = []
    for stage in (stage for pipeline in (entry.argv, *entry.also) for stage in pipeline):
        for part in stage:
            for name, value in known.items():
                part = part.replace(f"{{{name}}}", value)  # noqa: PLW2901
            wanted.append(part)
    return sorted(wanted)


@pytest.mark.parametrize("value", ["\u0664\u0668\u0662\u0661\u0663", "48213_\uff17"])
def test_digits_of_other_scripts_are_none(value: str) -> None:
    entry = catalogue.load()["slurm.job"]
    with pytest.raises(PolicyError, match="doesn't fit"):
        fill(entry, {"job_id": value})
    assert values.find(entry, entry.parameters[0], f"why is job {value} waiting") is None
