"""Questions as they come in: checked once, one by one or as JSON Lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hyce.errors import UsageError

QUESTION_HELP = 'the question, in quotes; "-" reads JSON Lines from stdin, one {"question": ...} a line'
MAX_BYTES = 20_000
"""Longer questions are refused: they are pasted logs, and no model reads them whole."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One line of a question file. Either `error` is set, or the question may be answered."""

    question: str
    site: str | None = None
    """The scheduler named by the line: slurm or pbs."""
    error: str | None = None


def check(question: str) -> str:
    """The question without surrounding blanks. Raises UsageError when it can't be one."""
    question = question.strip()
    if not question:
        raise UsageError("the question is empty; write it after the command, in quotes")
    size = len(question.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        raise UsageError(f"the question has {size} bytes, the limit is {MAX_BYTES}; ask about its main point")
    if any(ord(c) < 32 and c not in "\t\n\r" for c in question) or any(
        0xD800 <= ord(c) <= 0xDFFF for c in question
    ):
        raise UsageError("the question holds binary data; write it as text in UTF-8")
    return question


def read_questions(lines: Iterable[bytes]) -> Iterator[Asked]:
    """Each line's question, in order; blank lines are left out, a broken one carries its error."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        yield _read_line(number, line)


def _read_line(number: int, line: bytes) -> Asked:
    try:
        row: Any = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, or nested without end
        return Asked("", error=f"line {number}: not JSON in UTF-8: {error}")
    if not isinstance(row, Mapping) or not isinstance(row.get("question"), str):
        return Asked("", error=f'line {number}: not an object with a "question"')
    site = row.get("site") if row.get("site") in ("slurm", "pbs") else None
    try:
        # Checked but kept as it stands, so that a scorer finds its own question again.
        check(row["question"])
    except UsageError as error:
        return Asked(row["question"], site, f"line {number}: {error}")
    return Asked(row["question"], site)
