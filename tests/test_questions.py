"""Questions are checked once, and a broken line of many stops no other."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyce.errors import UsageError
from hyce.questions import MAX_BYTES, Asked, check, read_questions


def test_blanks_around_a_question_are_left_out_and_lines_within_it_kept() -> None:
    assert check("  why is my job\n\tpending? \n") == "why is my job\n\tpending?"
    assert check("¿Qué es 队列?") == "¿Qué es 队列?"


@pytest.mark.parametrize("question", ["", "   ", "\n\t\r\n"])
def test_an_empty_question_is_refused(question: str) -> None:
    with pytest.raises(UsageError, match="empty"):
        check(question)


def test_a_question_is_refused_from_its_size_in_bytes() -> None:
    assert check("q" * MAX_BYTES)
    assert check("ü" * (MAX_BYTES // 2))
    for question in ("q" * (MAX_BYTES + 1), "ü" * (MAX_BYTES // 2 + 1)):
        with pytest.raises(UsageError, match=f"limit is {MAX_BYTES}"):
            check(question)


@pytest.mark.parametrize("question", ["a\0b", "\x1b[31mred", "bell\a", "half \ud83d a character", "\x08\x08"])
def test_binary_data_is_refused(question: str) -> None:
    with pytest.raises(UsageError, match="binary"):
        check(question)


@given(st.text(max_size=60))
def test_a_checked_question_passes_again_unchanged(question: str) -> None:
    try:
        checked = check(question)
    except UsageError:
        return
    assert checked == check(checked) == question.strip() != ""


def lines(*rows: object) -> list[bytes]:
    return [json.dumps(row).encode() + b"\n" for row in rows]


def test_lines_come_in_order_with_the_scheduler_they_name_and_blank_ones_are_left_out() -> None:
    given_lines = [
        *lines({"question": "one", "id": 7, "other": [1]}, {"question": "two", "site": "slurm"}),
        b"\n",
        b"  \t\n",
        *lines({"question": "three", "site": "pbs"}, {"question": "four", "site": "lsf"}),
    ]
    assert list(read_questions(given_lines)) == [
        Asked("one"),
        Asked("two", "slurm"),
        Asked("three", "pbs"),
        Asked("four"),
    ]


def test_a_question_keeps_the_blanks_around_it() -> None:
    (asked,) = read_questions(lines({"question": " what? \n"}))
    assert asked == Asked(" what? \n")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{not json}", "not JSON"),
        (b"\xff\xfe{}", "not JSON in UTF-8"),
        (b"[1, 2]", "not an object"),
        (b'"a text"', "not an object"),
        (b"null", "not an object"),
        (b'{"text": "x"}', 'not an object with a "question"'),
        (b'{"question": 7}', 'not an object with a "question"'),
    ],
)
def test_a_broken_line_carries_its_error_and_its_number_and_stops_nothing(line: bytes, reason: str) -> None:
    before, broken, after = read_questions([b'{"question": "one"}', line, b'{"question": "two"}'])
    assert (before, after) == (Asked("one"), Asked("two"))
    assert broken.question == ""
    assert broken.error is not None
    assert broken.error.startswith("line 2: ")
    assert re.search(reason, broken.error)


def test_a_line_whose_question_is_refused_keeps_it_with_the_reason() -> None:
    long, empty = read_questions(
        lines({"question": "q" * (MAX_BYTES + 1), "site": "pbs"}, {"question": "  "})
    )
    assert (long.question, long.site) == ("q" * (MAX_BYTES + 1), "pbs")
    assert long.error is not None
    assert long.error.startswith("line 1: ") and str(MAX_BYTES) in long.error
    assert empty.error is not None
    assert "line 2: the question is empty" in empty.error


def test_deeply_nested_and_endless_lines_are_errors_too() -> None:
    nested, number = read_questions([b"[" * 100_000, b'{"question": ' + b"9" * 5000 + b"}"])
    assert nested.error and number.error
