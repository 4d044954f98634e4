"""Lines and tables of a PDF file's pages -> HTML: headings, paragraphs, lists, code, and the page of each."""

from __future__ import annotations

import html as markup
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from statistics import median
from typing import Literal

from hyce.sources.pdf_grid import tables
from hyce.sources.pdf_layout import File, Line, Sheet, Table

MARGIN = 0.13
"""Part of a page's height at its top and bottom in which running headers and footers stand."""
LONGEST_HEADING = 160

_NUMBER = re.compile(
    r"(?:page|seite)?\W*(?:\d{1,4}|[ivxlc]{1,7})\W*(?:(?:of|/|von)\W*\d{1,4})?\W*", re.IGNORECASE
)
_NUMBERED_LINE = re.compile(r"^(?:\d{1,4}|[ivxlc]{1,7})\s|\s(?:\d{1,4}|[ivxlc]{1,7})$", re.IGNORECASE)
"""A line with a page's number at its beginning or end."""
_LEADERS = re.compile(r"(?:\.\s?){4,}\s*(?:\d{1,4}|[ivxlc]{1,7})?\s*$")
_BULLET = re.compile(
    r"(?:[\u2022\u2023\u25e6\u25aa\u25cf\u25cb\u25a0\u2013\u2014\u00b7\uf0b7\uf0a7\x7f*-])\s+(?=\S)"
)
_NUMBERED = re.compile(r"\(?(\d{1,2})[.)]\s+(?=\S)")
_SECTION_NUMBER = re.compile(r"(?:\d+(?:\.\d+)*\.?|[A-Z]\.\d+(?:\.\d+)*|Chapter \d+)\s+\S")
_BROKEN_WORD = re.compile(r"[^\W\d_]{2,}-$")
_UNUSABLE_TITLE = re.compile(
    r"untitled|title|\(?anonymous\)?|document\d*|.*\.(?:docx?|odt|tex|dvi|pdf|pptx?|indd|qxd)\b.*|.*[\\/].*|\W*",
    re.IGNORECASE,
)

Kind = Literal["heading", "paragraph", "item", "code", "table"]


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece of a page: lines that belong together, or a table."""

    kind: Kind
    page: int
    lines: tuple[Line, ...] = ()
    table: Table | None = None
    level: int = 0


def html(file: File) -> str:
    """The file as a page: its title, date and language, and below each heading the numbers of its pages."""
    sheets = [replace(sheet, items=tuple(tables(sheet.items))) for sheet in _without_running(file.sheets)]
    look = _look(sheets)
    known = _vocabulary(sheets)
    parts = _joined([part for sheet in sheets for part in _parts(sheet, look)])
    title, parts = _title(file.title, parts, known)
    out = [
        f'<html lang="{markup.escape(file.language)}">' if file.language else "<html>",
        f'<head><meta name="date" content="{file.date}"></head>' if file.date else "",
        f"<body>\n<h1>{_escape(title)}</h1>" if title else "<body>",
        *_body(parts, known),
        "</body></html>",
    ]
    return "\n".join(line for line in out if line)


def _escape(text: str) -> str:
    return markup.escape(re.sub(r"\(cid:\d+\)", "", text), quote=False)


# -- what is repeated on each page -----------------------------------------------------------------------


def _without_running(sheets: Sequence[Sheet]) -> list[Sheet]:
    """The pages without running headers and footers, page numbers and tables of contents."""
    seen = Counter(key for sheet in sheets for key in {_running_key(line) for line in _marginal(sheet)})
    often = 3 if len(sheets) > 2 else 2
    # A header that names the chapter changes, but stands at the same height with a number.
    heights = Counter(height for sheet in sheets for height in {_height(line) for line in _marginal(sheet)})
    kept = []
    for sheet in sheets:
        running = {
            id(line)
            for line in _marginal(sheet)
            if _NUMBER.fullmatch(line.text)
            or seen[_running_key(line)] >= often
            or (2 * heights[_height(line)] > len(sheets) > 3 and _NUMBERED_LINE.search(line.text))
        }
        items = [i for i in sheet.items if id(i) not in running]
        items = [i for i in items if isinstance(i, Table) or i.mono or not _LEADERS.search(i.text)]
        kept.append(replace(sheet, items=tuple(items)))
    return kept


def _marginal(sheet: Sheet) -> list[Line]:
    """The lines in the margins, three at most in each."""
    lines = sorted((i for i in sheet.items if isinstance(i, Line)), key=lambda line: line.top)
    top = [line for line in lines[:3] if line.bottom < MARGIN * sheet.height]
    return top + [line for line in lines[-3:] if line.top > (1 - MARGIN) * sheet.height and line not in top]


def _running_key(line: Line) -> tuple[str, int]:
    return re.sub(r"\d+|\b[ivxlc]+\b", "#", line.text.casefold()), _height(line)


def _height(line: Line) -> int:
    return round(line.bottom / 4)


# -- how the file looks ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Look:
    body: float
    """Size of running text, in points."""
    leading: float
    """From one line of running text to the next, in points."""
    headings: tuple[float, ...]
    """Sizes of headings, the largest first; empty where sizes don't tell."""


def _look(sheets: Sequence[Sheet]) -> _Look:
    lines = [[i for i in sheet.items if isinstance(i, Line)] for sheet in sheets]
    letters: Counter[float] = Counter()
    for line in (line for page in lines for line in page if not line.mono):
        letters[line.size] += len(line.text)
    body = letters.most_common(1)[0][0] if letters else 10.0
    steps = [
        line.top - before.top
        for page in lines
        for before, line in pairwise(page)
        if before.size == line.size == body and 0 < line.top - before.top < 3 * body
    ]
    large = Counter(line.size for page in lines for line in page if _is_large(line, body))
    clear = 3 * sum(large.values()) <= max(sum(map(len, lines)), 6)
    return _Look(
        body, median(steps) if steps else 1.2 * body, tuple(sorted(large, reverse=True)) if clear else ()
    )


def _is_large(line: Line, body: float) -> bool:
    letters = any(letter.isalpha() for letter in line.text)
    return line.size >= 1.12 * body and len(line.text) <= LONGEST_HEADING and letters and not line.mono


def _level(line: Line, look: _Look) -> int:
    """2 to 5 for a heading, 0 for text."""
    if look.headings and _is_large(line, look.body):
        return min(2 + look.headings.index(line.size), 5)
    numbered = line.bold and len(line.text) <= 100 and _SECTION_NUMBER.match(line.text)
    if look.headings and numbered and line.size >= look.body and line.text[-1:] not in ".,;:":
        return min(2 + len(look.headings), 5)
    return 0


def _vocabulary(sheets: Sequence[Sheet]) -> frozenset[str]:
    """Words with a hyphen within a line: where they are parted, the hyphen stays."""
    lines = (i.text for sheet in sheets for i in sheet.items if isinstance(i, Line))
    return frozenset(word.casefold() for text in lines for word in re.findall(r"\w+(?:-\w+)+", text))


# -- lines that belong together --------------------------------------------------------------------------


def _parts(sheet: Sheet, look: _Look) -> Iterator[_Part]:
    group: list[Line] = []
    kind: Kind = "paragraph"
    level = 0

    def finished() -> Iterator[_Part]:
        if group:
            yield _Part(kind, sheet.number, tuple(group), level=level)
            group.clear()

    for item in sheet.items:
        if isinstance(item, Table):
            yield from finished()
            yield _Part("table", sheet.number, table=item)
            continue
        here = 0 if item.mono else _level(item, look)
        marked = _BULLET.match(item.text) or _NUMBERED.match(item.text)
        own: Kind = "code" if item.mono else "heading" if here else "item" if marked else "paragraph"
        if not (group and _goes_on(group, kind, item, own, look) and level == here):
            yield from finished()
            kind, level = own, here
        group.append(item)
    yield from finished()


def _goes_on(group: Sequence[Line], kind: Kind, line: Line, own: Kind, look: _Look) -> bool:
    """Whether the line belongs to the lines before it."""
    last = group[-1]
    step = line.top - last.top
    if kind == "code" or own == "code":
        return kind == own and step > 0
    if kind == "heading" or own == "heading":
        return kind == own and 0 < step < 1.9 * line.size and not _SECTION_NUMBER.match(line.text)
    if own == "item" or abs(line.size - last.size) > 0.75:
        return False
    if step < 0:  # the next column
        return not _is_finished(last.text)
    if step > 1.4 * max(look.leading, 1.1 * line.size):
        return False
    left = min(each.x0 for each in (group[1:] if len(group) > 1 else group))
    if line.x0 > left + 0.8 * line.size and kind != "item":
        return False
    right = max(each.x1 for each in group)
    short = last.x1 < right - 0.2 * (right - left)
    return not (short and _is_finished(last.text))


def _is_finished(text: str) -> bool:
    return text.rstrip("\"')\u201d\u2019 ").endswith((".", "!", "?", ":"))


def _joined(parts: Sequence[_Part]) -> list[_Part]:
    """The parts, with a sentence that goes on upon the next page as one, on the page where it begins."""
    joined: list[_Part] = []
    for part in parts:
        last = joined[-1] if joined else None
        if (
            last is not None
            and part.kind == "paragraph"
            and last.kind in ("paragraph", "item")
            and part.page == last.page + 1
            and not _is_finished(last.lines[-1].text)
            and part.lines[0].text[:1].islower()
        ):
            joined[-1] = replace(last, lines=last.lines + part.lines)
        else:
            joined.append(part)
    return joined


def _text(lines: Sequence[Line], known: frozenset[str]) -> str:
    """The lines as running text, with words put together that were parted at a line's end."""
    text = lines[0].text
    for line in lines[1:]:
        first, last = line.text.split(" ", 1)[0], text.rsplit(" ", 1)[-1]
        if text.endswith("\u00ad"):
            text = text[:-1] + line.text
        elif not _BROKEN_WORD.search(text):
            address = last.startswith(("http://", "https://")) and last[-1] in "/-_.=?&"
            text += ("" if address else " ") + line.text
        elif not first[:1].islower() or "-" in last[:-1] or _plain(last + first) in known:
            text += line.text
        else:
            text = text[:-1] + line.text
    return text


def _plain(word: str) -> str:
    return re.sub(r"^\W+|\W+$", "", word).casefold()


# -- HTML ------------------------------------------------------------------------------------------------


def _title(given: str, parts: list[_Part], known: frozenset[str]) -> tuple[str, list[_Part]]:
    """(the title, the parts without a heading that says the same).

    Meta-data often hold a file's name or nothing: then it is the first heading, if none is larger.
    """
    title = "" if _UNUSABLE_TITLE.fullmatch(given) else given
    headings = [part for part in parts if part.kind == "heading"]
    if not headings:
        return title, parts
    first = headings[0]
    largest = all(first.lines[0].size >= each.lines[0].size for each in headings)
    text = _text(first.lines, known)
    if not title and first.page <= 2 and largest:
        title = text
    if text.casefold() == title.casefold():
        parts = [part for part in parts if part is not first]
    return title, parts


def _body(parts: Sequence[_Part], known: frozenset[str]) -> Iterator[str]:
    page = 0
    for (kind, number), group in groupby(parts, key=lambda part: (part.kind, part.page)):
        if kind == "heading":
            for part in group:
                yield f'<h{part.level} id="page={number}">{_escape(_text(part.lines, known))}</h{part.level}>'
            page = 0
            continue
        if number != page:
            page = number
            yield f'<h6 id="page={page}">page {page}</h6>'
        if kind == "item":
            yield from _lists([_text(part.lines, known) for part in group])
            continue
        for part in group:
            if part.table is not None:
                yield _table(part.table)
            elif kind == "code":
                yield f"<pre>{_escape(_code(part.lines))}</pre>"
            else:
                yield f"<p>{_escape(_text(part.lines, known))}</p>"


def _lists(items: Sequence[str]) -> Iterator[str]:
    """The items that follow each other, as lists with bullets or numbers."""
    for numbered, group in groupby(items, key=lambda text: _NUMBERED.match(text) is not None):
        lines = []
        for text in group:
            number = _NUMBERED.match(text)
            value = f' value="{number[1]}"' if number else ""
            lines.append(
                f"<li{value}>{_escape((_NUMBERED if number else _BULLET).sub('', text, count=1))}</li>"
            )
        tag = "ol" if numbered else "ul"
        yield "\n".join([f"<{tag}>", *lines, f"</{tag}>"])


def _code(lines: Sequence[Line]) -> str:
    """Lines with the indentation and the empty lines that they show."""
    left = min(line.x0 for line in lines)
    steps = [line.top - before.top for before, line in pairwise(lines)]
    leading = min(steps, default=0.0)
    text = ""
    for step, line in zip([0.0, *steps], lines, strict=True):
        letter = (line.x1 - line.x0) / max(len(line.text), 1)
        indent = round((line.x0 - left) / letter) if letter else 0
        gap = "\n\n" if leading and step > 1.6 * leading else "\n"
        text += (gap if text else "") + " " * min(indent, 100) + line.text
    return text


def _table(table: Table) -> str:
    rows = (
        "".join(f"<{cell}>{_escape(text)}</{cell}>" for text in row)
        for cell, row in zip(["th", *["td"] * len(table.rows)], table.rows, strict=False)
    )
    return "<table>\n" + "\n".join(f"<tr>{row}</tr>" for row in rows) + "\n</table>"
