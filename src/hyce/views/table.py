"""Columns separated by bars, as schedulers print them on request -> an aligned table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hyce.views import View, Viewer

Row = Mapping[str, str]
"""A line's cells by their headings."""


def read(text: str, *columns: str) -> list[Row]:
    """The rows below the line of headings, or of these columns where the output has no such line.

    The last column takes what is left, bars included: job names and reasons are what people like. A line with
    too few cells is the rest of such a text.
    """
    lines = text.splitlines()
    names = list(columns) or (lines.pop(0).split("|") if lines else [])
    split = (line.split("|", len(names) - 1) for line in lines)
    return [dict(zip(names, cells, strict=True)) for cells in split if len(cells) == len(names)]


def aligned(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """The lines below their headings, each column as wide as it has to be."""
    # A cell that is empty would let the next column be taken for this one.
    cells = [
        list(headings),
        *([cell.strip().replace("(null)", "") or "-" for cell in line] for line in lines),
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() + "\n"
        for line in cells
    )


def listing(
    nothing: str, *, keep: Callable[[Row], bool] = lambda _: True, last: int = 0, legend: str = ""
) -> View:
    """A view that aligns the rows which it keeps, the last so many, or says that there is nothing."""

    def view(outputs: Sequence[str | None], _: Viewer) -> str:
        text = outputs[0] or ""
        rows = [row for row in read(text) if keep(row)]
        if not rows:
            return nothing + "\n"
        shown = rows[-last:]
        cut = f"The latest {len(shown)} of {len(rows)}:\n" if len(shown) < len(rows) else ""
        # Behind a blank line: it is no row.
        below = f"\n{legend}\n" if legend else ""
        return cut + aligned(list(rows[0]), [list(row.values()) for row in shown]) + below

    return view
