"""A report as Markdown: tables and words, fit to be pasted into an issue or a wiki."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hyce.evaluate.report.about import facts
from hyce.evaluate.report.compare import Change, Comparison
from hyce.evaluate.report.scores import Summary
from hyce.evaluate.report.tables import Table, comparison_table, tables
from hyce.evaluate.report.wording import words
from hyce.privacy import neutral

_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_SPECIAL = re.compile(r"[\\`*_{}\[\]#|~$!]")
_LONGEST = 3000
"""Characters of an answer."""


def markdown(summary: Summary, comparison: Comparison | None = None) -> str:
    """The report. Text of strangers in it is neither markup nor HTML."""
    return "\n".join(_lines(summary, comparison)) + "\n"


def inline(text: str) -> str:
    """The text on one line, every character of it shown as it is."""
    text = " ".join(neutral(text).split())
    text = _SPECIAL.sub(lambda found: f"\\{found[0]}", text)
    return "".join(_ENTITIES.get(char, char) for char in text)


def _lines(summary: Summary, comparison: Comparison | None) -> Iterator[str]:
    yield f"# {inline(summary.facts.title)}"
    yield ""
    for name, value in facts(summary.facts):
        yield f"- {name}: {inline(value)}"
    yield ""
    yield from _notes(summary.notes)
    if comparison:
        yield from _comparison(comparison)
    for table in tables(summary):
        yield from _table(table)


def _notes(notes: Sequence[str]) -> Iterator[str]:
    if notes:
        yield "To know when reading the figures:"
        yield ""
        yield from (f"- {inline(note)}" for note in notes)
        yield ""


def _table(table: Table) -> Iterator[str]:
    yield f"## {table.title}"
    yield ""
    yield inline(table.says)
    yield ""
    yield _row(table.columns)
    yield "|".join(["", " --- ", *[" ---: "] * (len(table.columns) - 1), ""])
    yield from map(_row, table.rows)
    yield ""


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(inline, cells))} |"


# -- two runs --------------------------------------------------------------------------------------------


def _comparison(comparison: Comparison) -> Iterator[str]:
    yield from _table(comparison_table(comparison))
    yield from _notes(comparison.notes)
    yield from _changes("Regressions: right before, wrong now", comparison.regressions)
    yield from _changes("Improvements: wrong before, right now", comparison.improvements)


def _changes(title: str, changes: Sequence[Change]) -> Iterator[str]:
    yield f"### {title} ({len(changes)})"
    yield ""
    for change in changes:
        about = f"{inline(change.question)} ({inline(words(change.kind))})"
        yield f"**{inline(change.variant)}**, {about}: {inline(change.asked)}"
        for name, text in (
            ("Reference", change.reference),
            ("Before", change.before),
            ("Now", change.after),
        ):
            yield ""
            yield f"{name}:"
            yield ""
            yield from _verbatim(text)
        yield ""


def _verbatim(text: str) -> Iterator[str]:
    """The text between fences that it can't close."""
    text = neutral(text)
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}\n[cut: {len(text) - _LONGEST} more characters]"
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"{fence}text"
    yield text
    yield fence
