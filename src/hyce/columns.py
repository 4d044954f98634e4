"""Rows of the tables that schedulers print, with their cells by column.

Cells may hold blanks (a job's name is whatever its owner likes), so a line can't just be split at them. What
tells the columns is the ruler of dashes below the headings, vertical bars, or how a cell stands to its
heading: both begin or both end at the same place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_RULER = re.compile(r"\s*--[\s-]*")


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a table."""

    names: tuple[str, ...]
    """The headings in lower case."""
    cells: tuple[str, ...]

    def cell(self, *names: str) -> str | None:
        """The cell below the first of these headings that the table has."""
        for name in names:
            if name in self.names:
                return self.cells[self.names.index(name)]
        return None


def rows(text: str, first: re.Pattern[str]) -> Iterator[Row]:
    """The rows of each table whose line of headings matches `first`; a blank line ends a table."""
    lines = text.splitlines()
    heading: str | None = None
    ruler = ""
    for position, line in enumerate(lines):
        if first.match(line):
            heading = line
            below = lines[position + 1] if position + 1 < len(lines) else ""
            ruler = below if _RULER.fullmatch(below) else ""
        elif not line.strip():
            heading = None
        elif heading is not None and line != ruler:
            yield _row(heading, ruler, line)


def _row(heading: str, ruler: str, line: str) -> Row:
    if "|" in heading:
        names, cells = heading.split("|"), line.split("|")
        cells += [""] * (len(names) - len(cells))
    elif ruler:
        spans = [found.span() for found in re.finditer(r"-+", ruler)]
        names = [heading[start:end] for start, end in spans]
        # The last column is never cut off.
        cells = [line[start : end if end != spans[-1][1] else None] for start, end in spans]
    else:
        spans = [found.span() for found in re.finditer(r"\S+", heading)]
        names = [heading[start:end] for start, end in spans]
        cells = [_aligned(line, spans, position) for position in range(len(spans))]
    return Row(
        tuple(name.strip().lower() for name in names), tuple(cell.strip() for cell in cells[: len(names)])
    )


def _aligned(line: str, spans: Sequence[tuple[int, int]], position: int) -> str:
    """The cell that begins where its heading begins, or else what stands up to its heading's end."""
    start, end = spans[position]
    last = position == len(spans) - 1
    if line[start : start + 1].strip() and not line[max(0, start - 1) : start].strip():
        # The next cell may reach to the left of its own heading, at least one blank away.
        return (
            line[start:] if last else re.split(r"\s{2,}", line[start : spans[position + 1][0]], maxsplit=1)[0]
        )
    return line[spans[position - 1][1] if position else 0 : None if last else end]
