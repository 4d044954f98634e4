"""Sheets for people to fill in, and what they wrote on them."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from small_run import QUESTIONS, RUN

from hyce.errors import UsageError
from hyce.evaluate.records import Run
from hyce.evaluate.report.labels import Label, read_labels, sheet


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def filled(text: str, answer: Callable[[dict[str, str]], tuple[str, str]]) -> str:
    """The sheet as a person hands it back."""
    rows = rows_of(text)
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]))
    writer.writeheader()
    for row in rows:
        correctness, faithfulness = answer(row)
        writer.writerow({**row, "correctness": correctness, "faithfulness": faithfulness})
    return out.getvalue()


def read(tmp_path: Path, text: str, run: Run = RUN) -> tuple[tuple[Label, ...], tuple[str, ...]]:
    file = tmp_path / "labels.csv"
    file.write_text(text, encoding="utf-8")
    return read_labels(file, run)


# -- the sheet -------------------------------------------------------------------------------------------


def test_a_sheet_shows_answers_and_no_verdict() -> None:
    text = sheet(RUN)
    rows = rows_of(text)
    # 10 answers to answerable questions of the first (one failed: 9), and 9 of the second.
    assert len(rows) == 18
    assert {row["question"] for row in rows} == {"q1", "q2", "q3", "q4", "t1"}
    one = next(row for row in rows if row["question"] == "q1" and row["variant"] == "base")
    assert (one["asked"], one["reference"]) == ("How big is home?", "50 GB")
    assert one["answer"] == f"base on q1, pass {one['attempt']}"
    assert {(row["correctness"], row["faithfulness"]) for row in rows} == {("", "")}
    assert one["sources"].startswith("[1] Home has 50 GB.")
    assert "reasons for" not in text
    assert "judge" not in text


def test_a_sheet_shows_no_source_that_the_judge_did_not_see() -> None:
    assert {row["sources"] for row in rows_of(sheet(replace(RUN, mode="paper")))} == {""}


def test_a_sample_takes_turns_between_variants_and_is_the_same_again() -> None:
    small = rows_of(sheet(RUN, size=6))
    assert sorted(row["variant"] for row in small) == ["'+hyce"] * 3 + ["base"] * 3
    order = [row["variant"] for row in rows_of(sheet(RUN))]
    assert order not in (sorted(order), sorted(order, reverse=True))
    assert sheet(RUN, size=6) == sheet(replace(RUN, results=RUN.results[::-1]), size=6)
    assert sheet(RUN, size=6) != sheet(RUN, size=6, seed=1)


@pytest.mark.parametrize(
    "text", ["=cmd|' /C calc'!A1", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "  =1", "\n=1", "\u200b=1", "\uff1d1"]
)
def test_no_cell_is_a_formula(text: str) -> None:
    answers = tuple(replace(each, answer=text) for each in RUN.results)
    questions = tuple(replace(each, question=text, answer=text) for each in QUESTIONS)
    run = replace(RUN, set=replace(RUN.set, questions=questions), results=answers)
    for row in rows_of(sheet(run, size=4)):
        for cell in row.values():
            assert not cell.strip().startswith(("=", "+", "-", "@", "\uff1d"))


def test_control_characters_stay_out() -> None:
    answers = tuple(replace(each, answer="a\x1b[31mb\u202ec\0d") for each in RUN.results)
    assert rows_of(sheet(replace(RUN, results=answers)))[0]["answer"] == "ab\ufffdc\u2400d"


# -- what people wrote -----------------------------------------------------------------------------------


def test_a_filled_sheet_comes_back(tmp_path: Path) -> None:
    text = filled(sheet(RUN), lambda row: ("1", "0") if row["variant"] == "base" else ("", ""))
    labels, problems = read(tmp_path, text)
    assert problems == ()
    assert len(labels) == 9
    assert all(label.scores == {"correctness": 1, "faithfulness": 0, "right": 0} for label in labels)
    both, _ = read(tmp_path, filled(sheet(RUN), lambda _: ("1", "1")))
    assert {(each.question, each.variant, each.attempt) for each in both} == {
        (each.question, each.variant, each.attempt)
        for each in RUN.results
        if each.status == "answered" and each.question != "u1"
    }


def test_a_file_made_by_hand(tmp_path: Path) -> None:
    labels, problems = read(tmp_path, "Question,Variant,Correctness,Faithfulness\nq1,+hyce,1,\nq2,base,0,1\n")
    assert problems == ()
    assert labels == (
        Label("q1", "+hyce", 1, {"correctness": 1}),
        Label("q2", "base", 1, {"correctness": 0, "faithfulness": 1, "right": 0}),
    )


@pytest.mark.parametrize("separator", [";", "\t"])
def test_separators_and_marks_of_spreadsheets(tmp_path: Path, separator: str) -> None:
    text = "question,variant,attempt,correctness,faithfulness\r\nq1,base,2,1,1\r\n".replace(",", separator)
    labels, _ = read(tmp_path, "\ufeff" + text)
    assert [(each.question, each.attempt) for each in labels] == [("q1", 2)]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("q9,base,1,1,1", 'no question of this run has the id "q9"'),
        ("q1,other,1,1,1", 'this run has no variant "other"'),
        ("q1,base,3,1,1", "variant base has no answer to q1 in pass 3"),
        ("q4,base,1,1,1", "variant base has no answer to q4 in pass 1"),  # it failed
        ("q1,base,x,1,1", 'attempt is "x", and not the number of a pass'),
        ("q1,base,1,yes,1", 'correctness is "yes", and not 0 or 1'),
        ("q1,base,1,1,2", 'faithfulness is "2", and not 0 or 1'),
        ("u1,base,1,1,1", "u1 can't be answered"),
        ("q2,base,1,0,0", "has a label already"),
        ('"q\x1b[31m\n9",base,1,1,1', 'the id "q\x1b[31m 9"'),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, row: str, said: str) -> None:
    head = "question,variant,attempt,correctness,faithfulness\nq2,base,1,1,1\n,,,,\n"
    labels, problems = read(tmp_path, f"{head}{row}\nq3,base,1,1,1\n")
    assert len(problems) == 1
    assert said in problems[0]
    assert f"line {4 + row.count(chr(10))}: " in problems[0]
    assert "\n" not in problems[0]
    assert [each.question for each in labels] == ["q2", "q3"]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "has no column question, variant, correctness, faithfulness"),
        (b"question,variant,correctness\nq1,base,1\n", "has no column faithfulness"),
        (b"\xff\xfe\x00", "is not UTF-8"),
        (b'question,variant,correctness,faithfulness\n"q1', "line 2 is no CSV"),
        (b'"question', "line 1 is no CSV"),
    ],
)
def test_what_is_no_such_table_is_refused(tmp_path: Path, data: bytes, said: str) -> None:
    file = tmp_path / "labels.csv"
    file.write_bytes(data)
    with pytest.raises(UsageError, match=said):
        read_labels(file, RUN)
    with pytest.raises(UsageError, match="can't be read"):
        read_labels(tmp_path / "none.csv", RUN)


def test_a_sheet_that_nobody_has_filled_in_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "sheet.csv"
    file.write_text(sheet(RUN), encoding="utf-8")
    with pytest.raises(UsageError, match="holds no verdict; fill in"):
        read_labels(file, RUN)
