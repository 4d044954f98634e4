"""People's verdicts on answers: a sheet for them to fill in, and what they wrote.

A CSV file with the columns question, variant, attempt (optional; the first pass where it is missing or
empty), correctness and faithfulness (1, 0, or empty where nobody has decided); others are ignored.
"""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hyce.errors import UsageError
from hyce.evaluate.records import UNANSWERABLE, Result, Run
from hyce.evaluate.report.outcomes import CORRECTNESS, FAITHFULNESS, RIGHT
from hyce.privacy import neutral

if TYPE_CHECKING:
    import _csv

SHEET = 50
"""Answers on a sheet."""

_NEEDED = ("question", "variant", CORRECTNESS, FAITHFULNESS)
# What a person needs comes first; what tells the variant, and so might sway them, stands at the end.
_COLUMNS = (
    *("asked", "reference", "answer", "sources"),
    *(CORRECTNESS, FAITHFULNESS, "question", "variant", "attempt"),
)
_FORMULA = tuple("=+-@\t\r|%\uff1d\uff0b\uff0d\uff20")
_LARGEST = 20_000_000
_LONGEST_CELL = 30_000
"""Spreadsheets hold at most 32,767 characters in a cell."""


@dataclass(frozen=True, slots=True)
class Label:
    """What a person says of one answer."""

    question: str
    variant: str
    attempt: int
    scores: Mapping[str, int]
    """1 or 0 by criterion; `right` as well where both criteria are known."""


# -- the sheet -------------------------------------------------------------------------------------------


def sheet(run: Run, size: int = SHEET, seed: int = 0) -> str:
    """A CSV file of up to `size` answers, to be labelled without knowing the judge's verdicts.

    It shows what the judge saw: in the mode grounded the sources, too. As many of each variant as there are,
    in an order that mixes them; the same run and seed give the same sheet. Cells that a spreadsheet would
    take for a formula begin with an apostrophe.
    """
    questions = {question.id: question for question in run.set.questions}
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for result in _sampled(run, size, seed):
        question = questions[result.question]
        known = (question.question, question.answer, result.answer, _sources(result, run))
        writer.writerow([*map(_cell, (*known, "", "", result.question, result.variant)), result.attempt])
    return out.getvalue()


def _sampled(run: Run, size: int, seed: int) -> list[Result]:
    """Answers by turns of each variant, shuffled; unanswerable questions have other criteria."""
    chance = random.Random(seed)  # noqa: S311 - a sample, not a secret
    asked = {question.id for question in run.set.questions if question.kind != UNANSWERABLE}
    piles = []
    for row in run.rows:
        pile = [r for r in run.results if r.variant == row.name and r.answer.strip() and r.question in asked]
        pile.sort(key=lambda result: (result.question, result.attempt))
        chance.shuffle(pile)
        piles.append(pile)
    turns = [
        pile[turn] for turn in range(max(map(len, piles), default=0)) for pile in piles if turn < len(pile)
    ]
    chosen = turns[:size]
    chance.shuffle(chosen)
    return chosen


def _sources(result: Result, run: Run) -> str:
    """What the judge saw of them: who marks faithfulness has to go by the same."""
    if run.mode == "paper":
        return ""
    return "\n\n".join(f"[{given.number}] {given.text}" for given in result.given)


def _cell(text: str) -> str:
    """The text as a cell that no spreadsheet calculates."""
    text = neutral(text)
    if len(text) > _LONGEST_CELL:
        text = f"{text[:_LONGEST_CELL]} [cut]"
    return f"'{text}" if text.lstrip(" \n").startswith(_FORMULA) else text


# -- what people wrote -----------------------------------------------------------------------------------


def read_labels(path: Path, run: Run) -> tuple[tuple[Label, ...], tuple[str, ...]]:
    """The labels of a file, and what is wrong with it: one line each, with the line's number.

    Rows that nobody has filled in are passed over. Raises UsageError for a file that is no such table.
    """
    reader, columns = _table(path)
    known = {(r.question, r.variant, r.attempt) for r in run.results if r.status == "answered"}
    labels: dict[tuple[str, str, int], Label] = {}
    problems = []
    try:
        for row in reader:
            cells = dict(zip(columns, (cell.strip() for cell in row), strict=False))
            try:
                label = _label(cells, run)
                if label is None:
                    continue
                key = (label.question, label.variant, label.attempt)
                if key not in known:
                    raise ValueError(f"variant {key[1]} has no answer to {key[0]} in pass {key[2]}")
                if key in labels:
                    raise ValueError(f"{key[1]}'s answer to {key[0]} in pass {key[2]} has a label already")
                labels[key] = label
            except ValueError as error:
                problems.append(f"{path}: line {reader.line_num}: {error}; mend that line")
    except csv.Error as error:
        raise UsageError(f"{path}: line {reader.line_num} is no CSV ({error}); mend that line") from error
    if not labels and not problems:
        raise UsageError(f"{path}: holds no verdict; fill in correctness and faithfulness with 1 or 0")
    return tuple(labels.values()), tuple(problems)


def _table(path: Path) -> tuple[_csv.Reader, list[str]]:
    """The rows below the heading, and the columns' names."""
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise UsageError(f"{path}: can't be read ({error.strerror}); name a CSV file of labels") from error
    if len(data) > _LARGEST:
        raise UsageError(f"{path}: is larger than {_LARGEST // 1_000_000} MB; name a CSV file of labels")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: is not UTF-8; save it as a CSV file in UTF-8") from error
    first = text.partition("\n")[0]
    # Spreadsheets write semicolons where the comma is the decimal mark.
    delimiter = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        columns = [name.strip().lower() for name in next(reader, [])]
    except csv.Error as error:
        raise UsageError(f"{path}: line 1 is no CSV ({error}); mend that line") from error
    missing = [name for name in _NEEDED if name not in columns]
    if missing:
        raise UsageError(
            f"{path}: has no column {', '.join(missing)}; `hyce evaluate report FOLDER --sheet FILE` "
            "writes a file to fill in"
        )
    return reader, columns


def _label(cells: Mapping[str, str], run: Run) -> Label | None:
    """The row's label; None where nobody has decided. Raises ValueError."""
    scores = {name: _score(name, cells[name]) for name in (CORRECTNESS, FAITHFULNESS) if cells.get(name)}
    if not scores:
        return None
    question, variant = (_text(cells.get(name, "")) for name in ("question", "variant"))
    kinds = {each.id: each.kind for each in run.set.questions}
    if question not in kinds:
        raise ValueError(f'no question of this run has the id "{_shown(question)}"')
    if kinds[question] == UNANSWERABLE:
        raise ValueError(f"{question} can't be answered: it is judged by abstaining, not by these criteria")
    if variant not in {row.name for row in run.rows}:
        raise ValueError(f'this run has no variant "{_shown(variant)}"')
    attempt = cells.get("attempt") or "1"
    if not attempt.isascii() or not attempt.isdecimal() or len(attempt) > 6:
        raise ValueError(f'attempt is "{_shown(attempt)}", and not the number of a pass')
    if len(scores) == 2:
        scores[RIGHT] = int(all(scores.values()))
    return Label(question, variant, int(attempt), scores)


def _score(name: str, text: str) -> int:
    if text not in ("0", "1"):
        raise ValueError(f'{name} is "{_shown(text)}", and not 0 or 1')
    return int(text)


def _text(cell: str) -> str:
    """What stood in the cell before it was made harmless for spreadsheets."""
    return cell[1:] if cell.startswith("'") and cell[1:].lstrip(" \n").startswith(_FORMULA) else cell


def _shown(text: str) -> str:
    return " ".join(text[:60].split())
