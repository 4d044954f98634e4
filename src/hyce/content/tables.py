"""Tables: a grid with spans resolved, its column headings and its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hyce.content.text import cell as cell_text
from hyce.content.text import one_line
from hyce.content.tree import Element, classes, tag
from hyce.markup.words import words

MOST_COLUMNS = 1000
"""HTML's own limit for colspan."""
MOST_REPEATED = 100_000
"""Cells of a table that spans may fill; more is a mistake, or an attack on memory."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table as it reads: `head` is the line of column headings, `rows` one line a row."""

    caption: str
    head: str
    rows: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Cell:
    text: str
    heading: bool
    origin: int
    """Number of the cell that it stems from: a spanned cell is repeated."""


def is_layout(table: Element) -> bool:
    """Whether the table only arranges content: nested tables, headings, or a single cell."""
    if table.get("role") in ("presentation", "none") or "highlighttable" in classes(table):
        return True
    inner = any(tag(e) in ("table", "h1", "h2", "h3", "h4", "details") for e in table.iterdescendants())
    cells = [e for e in table.iterdescendants() if tag(e) in ("td", "th")]
    return inner or len(cells) == 1


def cells_in_order(table: Element) -> list[Element]:
    """The cells of this table (not of tables within it), line numbers left out."""
    return [c for row in _rows(table) for c in row if tag(c) in ("td", "th") and "linenos" not in classes(c)]


_PARTS = words("caption colgroup col thead tbody tfoot tr td th")


def strays(table: Element) -> Iterator[Element | str]:
    """What broken markup puts into the table but into no cell; a browser shows it above the table."""
    for frame in [
        table,
        *(e for e in table.iterdescendants() if tag(e) in ("thead", "tbody", "tfoot", "tr")),
    ]:
        for text in (frame.text, *(e.tail for e in frame)):
            if text and text.strip():
                yield text
        yield from (e for e in frame if tag(e) not in _PARTS)


def read(table: Element, text_of: Callable[[Element], str]) -> Grid:
    """The table's grid; spanned cells are repeated where they span."""
    rows = _rows(table)
    cells = _resolve(rows, text_of)
    heads = _heading_rows(table, rows, cells)
    width = max((len(row) for row in cells), default=0)
    head = ""
    if heads:
        columns = []
        for column in range(width):
            parts: list[str] = []
            for row in cells[:heads]:
                if column < len(row) and row[column].text and row[column].text not in parts:
                    parts.append(row[column].text)
            columns.append(" ".join(parts))
        head = " | ".join(columns) if any(columns) else ""
    lines = [_line(row) for row in cells[heads:]]
    captions = [one_line(text_of(e)) for e in table if tag(e) == "caption"]
    return Grid(" ".join(captions), head, tuple(line for line in lines if line))


def _rows(table: Element) -> list[list[Element]]:
    """Rows of cells: those of thead first, those of tfoot last, as a browser shows them."""
    order = {"thead": 0, "tfoot": 2}
    groups: list[tuple[int, list[Element]]] = []

    def visit(parent: Element, rank: int) -> None:
        for child in parent:
            name = tag(child)
            if name == "tr":
                groups.append((rank, [c for c in child if tag(c) in ("td", "th")]))
            elif name in ("thead", "tbody", "tfoot"):
                visit(child, order.get(name, 1))
            elif name in ("td", "th"):
                groups.append((rank, [child]))

    visit(table, 1)
    return [cells for _, cells in sorted(groups, key=lambda group: group[0]) if cells]


def _span(element: Element, name: str, most: int) -> int:
    value = (element.get(name) or "1").strip()
    if not value.isdecimal():
        return 1
    # rowspan="0" means: to the end of the table.
    return most if value == "0" and name == "rowspan" else max(1, min(int(value[:6]), most))


def _resolve(rows: list[list[Element]], text_of: Callable[[Element], str]) -> list[list[_Cell]]:
    grid: list[dict[int, _Cell]] = [{} for _ in rows]
    number = repeated = 0
    for y, row in enumerate(rows):
        x = 0
        for element in row:
            while x in grid[y]:
                x += 1
            number += 1
            made = _Cell(cell_text(text_of(element)), tag(element) == "th" or _all_bold(element), number)
            columns = _span(element, "colspan", MOST_COLUMNS)
            height = min(_span(element, "rowspan", len(rows)), len(rows) - y)
            repeated += columns * height - 1
            if repeated > MOST_REPEATED:
                columns = height = 1
            for down in range(height):
                for across in range(columns):
                    grid[y + down].setdefault(x + across, made)
            x += columns
    empty = _Cell("", False, 0)
    return [[row.get(x, empty) for x in range(max(row, default=-1) + 1)] for row in grid]


def _all_bold(element: Element) -> bool:
    inner = [e for e in element if (e.tail or "").strip() or tag(e) not in ("strong", "b")]
    return len(element) > 0 and not inner and not (element.text or "").strip()


def _heading_rows(table: Element, rows: list[list[Element]], cells: list[list[_Cell]]) -> int:
    """How many rows at the top are column headings."""
    thead = [e for e in table if tag(e) == "thead"]
    count = sum(
        1 for group in thead for e in group if tag(e) == "tr" and any(tag(c) in ("td", "th") for c in e)
    )
    if count:
        return min(count, len(rows))
    while (
        count < len(cells)
        and all(cell.heading for cell in cells[count])
        and len({c.origin for c in cells[count]}) > 1
    ):
        count += 1
    # All rows bold: a table of headings only is a table of rows.
    return count if count < len(cells) else min(count, 1) if len(cells) > 1 else 0


def _line(row: list[_Cell]) -> str:
    if len({cell.origin for cell in row}) == 1:
        return row[0].text
    texts = [cell.text for cell in row]
    return " | ".join(texts) if any(texts) else ""
