"""A command runs once for an evaluation, and everybody is given what it printed then."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import get_args

import pytest
import runner_script
from runner_script import entry

from hyce.errors import StoreError
from hyce.evaluate.journal import Journal
from hyce.evaluate.running.replay import Replay
from hyce.records import Command, CommandOutput, Status
from hyce.runner import Runner


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """Runs `tool`, which prints how often it was started, and its value."""
    programs = tmp_path / "bin"
    programs.mkdir(0o755)
    tool = programs / "tool"
    tool.write_text(
        f"#!/bin/sh\necho x >> {tmp_path}/starts\nsleep 0.1\n"
        f"echo $(wc -l < {tmp_path}/starts) $1\n[ $1 != bad ]\n",
        "utf-8",
    )
    tool.chmod(0o755)
    return runner_script.runner(tmp_path / "state", programs)


def starts(tmp_path: Path) -> int:
    return len((tmp_path / "starts").read_text("utf-8").splitlines())


def test_many_threads_are_given_one_run(tmp_path: Path, runner: Runner) -> None:
    together = threading.Barrier(16)
    with Journal(tmp_path / "outputs.jsonl") as journal:
        replay = Replay((), journal, runner)

        def run(_: int) -> CommandOutput:
            together.wait(60)
            return replay.run(entry(), {"value": "a"}, "a question")

        with ThreadPoolExecutor(16) as pool:
            outputs = list(pool.map(run, range(16)))
        assert len(journal.rows) == 1
    assert starts(tmp_path) == 1
    assert len(set(outputs)) == 1
    assert outputs[0].stdout == "1 a\n"


def test_it_is_kept_over_reopening(tmp_path: Path, runner: Runner) -> None:
    with Journal(tmp_path / "outputs.jsonl") as journal:
        first = Replay((), journal, runner).run(entry(), {})
    with Journal(tmp_path / "outputs.jsonl") as journal:
        assert Replay((), journal, runner).run(entry(), {}) == first
    assert starts(tmp_path) == 1


def test_another_value_another_line_or_another_entry_is_another_output(
    tmp_path: Path, runner: Runner
) -> None:
    with Journal(tmp_path / "outputs.jsonl") as journal:
        replay = Replay((), journal, runner)
        commands: list[tuple[Command, dict[str, str]]] = [
            (entry(), {"value": "a"}),
            (entry(), {"value": "b"}),
            (replace(entry(), id="test.other"), {"value": "a"}),
            (replace(entry(), argv=(("tool", "{value}", "more"),)), {"value": "a"}),
        ]
        for count, (command, params) in enumerate(commands, 1):
            replay.run(command, params)
            assert starts(tmp_path) == count
        assert replay.run(entry(), {"value": "b"}).stdout == "2 b\n"
        assert replay.run(entry(), {}).stdout == "5 x\n"
        assert replay.run(entry(), {"value": "x"}).stdout == "5 x\n"  # the default, named


def test_what_failed_is_an_output_too(tmp_path: Path, runner: Runner) -> None:
    with Journal(tmp_path / "outputs.jsonl") as journal:
        replay = Replay((), journal, runner)
        outputs = [replay.run(entry(), {"value": "bad"}) for _ in range(3)]
    assert [output.status for output in outputs] == ["failed"] * 3
    assert starts(tmp_path) == 1


def test_the_question_file_comes_first(tmp_path: Path, runner: Runner) -> None:
    with Journal(tmp_path / "outputs.jsonl") as journal:
        now = Replay((), journal, runner).run(entry(), {"value": "a"})
        stored = replace(
            now, stdout="as it was when the questions were made\n", started="2020-01-01T00:00:00"
        )
        replay = Replay([stored], journal, runner)
        assert replay.run(entry(), {"value": "a"}) == stored
        assert replay.run(entry(), {"value": "b"}).stdout == "2 b\n"


def test_what_does_not_fit_is_refused_and_not_kept(tmp_path: Path, runner: Runner) -> None:
    with Journal(tmp_path / "outputs.jsonl") as journal:
        replay = Replay((), journal, runner)
        for params in ({"value": "a; rm x"}, {"other": "a"}):
            output = replay.run(entry(), params)
            assert output.status == "refused"
            assert output.reason
        assert journal.rows == []
    assert not (tmp_path / "starts").exists()


class Ends:
    """Runs nothing; says that it ended so."""

    def __init__(self, status: Status) -> None:
        self.status = status
        self.runs = 0

    def run(self, command: Command, params: Mapping[str, str], question: str = "") -> CommandOutput:
        self.runs += 1
        return CommandOutput(command.id, (("tool", "x"),), self.status, None, "", "", False, 0.0, (), "now")

    def refused(self, question: str, reason: str) -> None:
        pytest.fail("a question of an evaluation is nobody's")


@pytest.mark.parametrize("status", get_args(Status))
def test_what_could_not_run_is_tried_again(tmp_path: Path, status: Status) -> None:
    ends = Ends(status)
    with Journal(tmp_path / "outputs.jsonl") as journal:
        replay = Replay((), journal, ends)
        for _ in range(2):
            assert replay.run(entry(), {}).status == status
        replay.refused("a question", "a reason")
        ran = status in ("ok", "failed", "timeout")
        assert ends.runs == (1 if ran else 2)
        assert len(journal.rows) == (1 if ran else 0)


def test_every_field_of_an_output_survives(tmp_path: Path) -> None:
    output = CommandOutput(
        "test.entry",
        (("tool", "x"),),
        "timeout",
        None,
        "Grüße\r\n\x1b[31m\u2028",
        "warning",
        True,
        1.25,
        ("allow-list", "argv"),
        "2026-01-02T03:04:05+00:00",
        "it took too long",
        ((("tool", "-v"), ("sort",)),),
        True,
    )
    (tmp_path / "outputs.jsonl").write_text(json.dumps({"output": asdict(output)}) + "\n", "utf-8")
    with Journal(tmp_path / "outputs.jsonl") as journal:
        assert Replay((), journal, Ends("ok")).run(entry(), {}) == output


def test_a_line_that_is_no_output_is_named(tmp_path: Path) -> None:
    (tmp_path / "outputs.jsonl").write_text('{"output": {"id": "x"}}\n', "utf-8")
    with (
        Journal(tmp_path / "outputs.jsonl") as journal,
        pytest.raises(StoreError, match=r"line 1 is no output .*remove that line"),
    ):
        Replay((), journal, Ends("ok"))
