"""Tables without drawn lines: rows whose parts stand below each other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hyce.sources.pdf_layout import Line, Table

FEWEST_ROWS = 3

_MARKER = re.compile(r"\W{1,2}|\(?\w{1,2}[.)]|\d+(?:\.\d+)*")

Span = tuple[float, float]


def tables(items: Sequence[Line | Table]) -> Iterator[Line | Table]:
    """The items, with rows that make up a table as that."""
    i = 0
    while i < len(items):
        rows = _run(items, i)
        columns = _columns(rows)
        if len(rows) >= FEWEST_ROWS and len(columns) >= 2:
            yield _table(rows, columns)
            i += len(rows)
        else:
            yield items[i]
            i += 1


def _run(items: Sequence[Line | Table], start: int) -> list[Line]:
    """The rows from `start` that follow each other closely and are parted by wide gaps.

    A row with one part, below a cell that goes on, belongs to them unless it is the first or last.
    """
    rows: list[Line] = []
    for item in items[start:]:
        if not isinstance(item, Line) or (rows and not 0 < item.top - rows[-1].top < 3 * item.size):
            break
        marked = item.cells and _MARKER.fullmatch(item.cells[0][2]) and len(item.cells) == 2
        if (not item.cells and (not rows or item.x0 < rows[0].cells[1][0] - item.size)) or marked:
            break
        rows.append(item)
    while rows and not rows[-1].cells:
        rows.pop()
    return rows


def _columns(rows: Sequence[Line]) -> list[Span]:
    """Where the columns are: what the parts of all rows cover, from the left."""
    columns: list[Span] = []
    for x0, x1, _ in sorted(cell for row in rows for cell in row.cells):
        if columns and x0 <= columns[-1][1]:
            columns[-1] = (columns[-1][0], max(columns[-1][1], x1))
        else:
            columns.append((x0, x1))
    return columns


def _table(rows: Sequence[Line], columns: Sequence[Span]) -> Table:
    grid: list[list[str]] = []
    for row in rows:
        cells = row.cells or ((row.x0, row.x1, row.text),)
        if row.cells:
            grid.append([""] * len(columns))
        for x0, x1, text in cells:
            number = next((n for n, (_, end) in enumerate(columns) if (x0 + x1) / 2 <= end), len(columns) - 1)
            grid[-1][number] = f"{grid[-1][number]} {text}".strip()
    return Table(tuple(map(tuple, grid)), rows[0].x0, max(row.x1 for row in rows), rows[0].top)
