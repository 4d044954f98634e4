"""A run's folder: what is written comes back, and what belongs to another plan doesn't."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hyce.errors import StoreError, UsageError
from hyce.evaluate.journal import Journal
from hyce.evaluate.records import Given, Question, QuestionSet, Result, Row, Run, Verdict
from hyce.evaluate.running.runs import (
    RESULTS,
    RUN,
    asked,
    keep_questions,
    read_plan,
    read_run,
    result_key,
    result_row,
    write_run,
)
from hyce.evaluate.sets import read_set, write_set

QUESTIONS = (
    Question("q1", "How big is home?", "document", "30 GB"),
    Question("q2", "What is the date?", "command", "Monday", accept=("system.date",)),
    Question("q3", "Who painted it?", "unanswerable"),
    Question("q4", "Does this job wait?", "command", accept=("slurm.my_jobs",)),
)
ROWS = (
    Row("a", "first", "key-a", "m", {"retrieval.passages": 3, "site.clusters": ["x"]}),
    Row("b", "second", "key-b", "m", {}),
)


def result(variant: str, question: str, attempt: int = 1, answer: str = "30 GB") -> Result:
    key = result_key(f"key-{variant}", question)
    verdict = Verdict("judge", "j", 1, "judged", {"correctness": 1, "faithfulness": 0}, "so", "")
    given = Given(1, "command", "date", "Monday", private=True)
    return Result(
        variant,
        key,
        question,
        attempt,
        "answered",
        answer,
        model="m",
        given=(given,),
        commands=("system.date",),
        rank=2,
        notices=("cut",),
        timings_ms={"total": 1.5},
        prompt_tokens=7,
        verdicts=(verdict, replace(verdict, repeat=2)),
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    source = tmp_path / "questions.jsonl"
    write_set(source, QuestionSet(QUESTIONS, ""))
    out = tmp_path / "out"
    out.mkdir()
    keep_questions(out, source, read_set(source))
    return out


def run(folder: Path, *, passes: int = 2, rows: tuple[Row, ...] = ROWS, limit: int | None = None) -> Run:
    found = read_set(folder)
    found = replace(found, questions=asked(found.questions, limit))
    made = Run("T", "2026-01-05T10:00:00+00:00", "paper", passes, "j", "", "p", False, found, rows, ())
    write_run(folder, made)
    return made


def append(folder: Path, *results: Result) -> None:
    with Journal(folder / RESULTS) as journal:
        for each in results:
            journal.append(result_row(each))


def test_what_is_written_comes_back(folder: Path) -> None:
    made = run(folder)
    results = (result("a", "q1"), result("a", "q2", 2), result("b", "q3"))
    append(folder, *results)
    found = read_run(folder)
    assert replace(found, results=()) == made
    assert set(map(repr, found.results)) == set(map(repr, results))
    assert (folder / RUN).stat().st_mode & 0o777 == 0o600


def test_only_what_a_judge_can_judge_is_asked(folder: Path) -> None:
    run(folder)
    assert [question.id for question in read_run(folder).set.questions] == ["q1", "q2", "q3"]
    assert [question.id for question in asked(QUESTIONS, 1)] == ["q1"]


def test_the_last_result_counts(folder: Path) -> None:
    run(folder)
    append(folder, result("a", "q1", answer="old"), result("a", "q1", answer="new"))
    assert [each.answer for each in read_run(folder).results] == ["new"]


def test_results_of_another_plan_are_left_out(folder: Path) -> None:
    append(folder, result("a", "q1"), result("a", "q2"), result("a", "q1", 2), result("b", "q1"))
    run(folder, passes=1, limit=1, rows=(ROWS[0],))
    assert [(each.question, each.attempt) for each in read_run(folder).results] == [("q1", 1)]
    run(folder, rows=(replace(ROWS[0], key="other"), ROWS[1]))
    assert [each.variant for each in read_run(folder).results] == ["b"]
    run(folder, rows=(replace(ROWS[0], unavailable="no model"), ROWS[1]))
    assert [each.variant for each in read_run(folder).results] == ["b"]


def test_a_line_that_is_being_written_is_not_read_yet(folder: Path) -> None:
    run(folder)
    append(folder, result("a", "q1"))
    with (folder / RESULTS).open("ab") as file:
        file.write(b'{"variant": "a", "key"')
    assert len(read_run(folder).results) == 1


def test_other_questions_are_refused(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    write_set(other, QuestionSet(QUESTIONS[:1], ""))
    before = (folder / "questions.jsonl").read_bytes()
    with pytest.raises(UsageError, match="other questions; choose another folder"):
        keep_questions(folder, other, read_set(other))
    assert (folder / "questions.jsonl").read_bytes() == before


def test_the_folder_of_the_questions_is_no_place_for_a_run(tmp_path: Path) -> None:
    write_set(tmp_path / "questions.jsonl", QuestionSet(QUESTIONS, ""))
    with pytest.raises(UsageError, match="is the folder of the questions; choose another one"):
        keep_questions(tmp_path, tmp_path, read_set(tmp_path))


def test_questions_that_change_while_they_are_read_are_not_copied(tmp_path: Path) -> None:
    file = tmp_path / "q.jsonl"
    write_set(file, QuestionSet(QUESTIONS, ""))
    found = read_set(file)
    write_set(file, QuestionSet(QUESTIONS[:1], ""))
    (tmp_path / "out").mkdir()
    with pytest.raises(UsageError, match="not what it was a moment ago"):
        keep_questions(tmp_path / "out", file, found)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_folder_without_a_run(tmp_path: Path) -> None:
    assert read_plan(tmp_path) is None
    with pytest.raises(StoreError, match="no run here"):
        read_run(tmp_path)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": 1}', "\xff", '{"format": 99}', "[" * 100_000])
def test_a_damaged_plan_is_named(folder: Path, text: str) -> None:
    (folder / RUN).write_bytes(text.encode("latin-1"))
    with pytest.raises(StoreError, match=r"run\.json: (damaged|made by another version)"):
        read_run(folder)


@pytest.mark.parametrize("line", ['{"variant": "a"}', '{"given": 1}', "{}"])
def test_a_line_that_is_no_result_is_named(folder: Path, line: str) -> None:
    run(folder)
    append(folder, result("a", "q1"))
    with (folder / RESULTS).open("a") as file:
        file.write(line + "\n")
    with pytest.raises(StoreError, match="line 2 is no result"):
        read_run(folder)
