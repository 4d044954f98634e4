"""The pages of a PDF file -> lines and tables in reading order.

A PDF file holds letters at places. Letters become words and rows by their distance; a page of two columns is
known by the empty strip between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from hyce.errors import SourceError

MOST_EDGES = 3000
"""Lines drawn on a page; one with more is a plot, in which no table is looked for."""
MOST_LETTERS = 100_000
"""On one page; nobody reads more."""

_MONO = re.compile(
    r"courier|mono|consol|menlo|monaco|typewriter|inconsolata|sourcecode|firacode|terminal|fixed|"
    r"(?:^|\+)(?:cmtt|cmsltt|sftt|ectt|lmtt|txtt|t1xtt|pcr|nimbusmon)",
    re.IGNORECASE,
)
_BOLD = re.compile(
    r"bold|black|heavy|demi|[-,]medi|(?:^|\+)(?:cmbx|cmssbx|sfbx|ecbx|lmbx|cmb\d)", re.IGNORECASE
)
_UNKNOWN = re.compile(r"\(cid:\d+\)")
_LONE_SIGN = re.compile(r"^\(cid:\d+\)\s+(?=\w)")
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8})*")


@dataclass(frozen=True, slots=True)
class Line:
    """A row of text in one column."""

    text: str
    x0: float
    x1: float
    top: float
    bottom: float
    size: float
    """Of the letters, in points; the size that most of them have."""
    bold: bool
    mono: bool
    cells: tuple[tuple[float, float, str], ...] = ()
    """Its parts with their left and right ends, where wide gaps part it."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table with drawn lines. The first row is its heading."""

    rows: tuple[tuple[str, ...], ...]
    x0: float
    x1: float
    top: float


@dataclass(frozen=True, slots=True)
class Sheet:
    """A page. Its items stand in reading order."""

    number: int
    """Counted from 1, whatever is printed on it."""
    height: float
    items: tuple[Line | Table, ...]


@dataclass(frozen=True, slots=True)
class File:
    """What was read of a PDF file."""

    sheets: tuple[Sheet, ...]
    title: str
    """As its meta-data has it; often empty or of no use."""
    date: str
    """When it was changed last: YYYY-MM-DD, or empty."""
    language: str


def read(file: Path, *, most_pages: int) -> File:
    """All pages. Raises SourceError for an encrypted file, one with too many pages, and one without text."""
    import pdfplumber
    from pdfminer.pdfdocument import PDFEncryptionError, PDFPasswordIncorrect
    from pdfplumber.utils.exceptions import PdfminerException

    try:
        opened = pdfplumber.open(file)
    except PdfminerException as error:
        if any(isinstance(each, PDFPasswordIncorrect | PDFEncryptionError) for each in error.args):
            raise SourceError("is encrypted; save it without a password") from error
        raise
    with opened as pdf:
        if len(pdf.pages) > most_pages:
            raise SourceError(f"has {len(pdf.pages)} pages, {most_pages} at most; split it")
        sheets = []
        for number, page in enumerate(pdf.pages, 1):
            sheets.append(_sheet(page, number))
            page.close()
        facts = {key: value for key, value in pdf.metadata.items() if isinstance(value, str)}
        language = pdf.doc.catalog.get("Lang", b"")
    _check(sheets)
    tag = language.decode("ascii", "replace") if isinstance(language, bytes) else ""
    return File(
        tuple(sheets),
        " ".join(facts.get("Title", "").split()),
        _day(facts.get("ModDate", "")) or _day(facts.get("CreationDate", "")),
        tag if _LANGUAGE.fullmatch(tag) else "",
    )


def _check(sheets: Sequence[Sheet]) -> None:
    """Raise SourceError where there is no text that could be read."""
    lines = [item.text for sheet in sheets for item in sheet.items if isinstance(item, Line)]
    text = " ".join(lines) + " ".join(
        cell
        for sheet in sheets
        for t in sheet.items
        if isinstance(t, Table)
        for row in t.rows
        for cell in row
    )
    letters = sum(letter.isalpha() for letter in _UNKNOWN.sub("", text))
    if letters < 20:
        raise SourceError(
            "holds no text that can be read (is it a scan?); make it searchable, such as with ocrmypdf"
        )
    if 3 * len(_UNKNOWN.findall(text)) > letters:
        raise SourceError("doesn't say which letters it shows; export it anew with its fonts' encodings")


def _day(stamp: str) -> str:
    """YYYY-MM-DD of `D:20240305120000Z`; empty for anything else."""
    match = re.match(r"(?:D:)?((?:19|20)\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])", stamp)
    return "-".join(match.groups()) if match else ""


# -- one page --------------------------------------------------------------------------------------------


def _sheet(page: Any, number: int) -> Sheet:
    if len(page.chars) > MOST_LETTERS:
        raise SourceError(f"has {len(page.chars)} letters on page {number}; split it, or print it anew")
    # What doesn't stand upright is a watermark or the label of a plot's axis.
    page = page.filter(lambda item: item["object_type"] != "char" or item["upright"])
    places = {(char["text"], round(char["x0"]), round(char["top"])) for char in page.chars}
    if len(places) < 0.98 * len(page.chars):
        page = page.dedupe_chars()  # letters printed twice to look bold; to look for them takes long
    tables, boxes = _tables(page)
    words = [
        word
        for word in page.extract_words(x_tolerance_ratio=0.15, extra_attrs=["fontname", "size"])
        if -1 <= word["x0"] <= page.width and not any(_within(word, box) for box in boxes)
    ]
    rows = _rows(words)
    strip = _strip(rows)
    items: list[tuple[float, int, Line | Table]] = [
        (table.top, _column(table.x0, table.x1, strip), table) for table in tables
    ]
    for row in rows:
        items += [(line.top, column, line) for column, line in _lines(row, strip)]
    items.sort(key=lambda item: item[0])
    return Sheet(number, float(page.height), tuple(_in_order(items)))


def _tables(page: Any) -> tuple[list[Table], list[tuple[float, ...]]]:
    """(tables with drawn lines, the boxes that they fill)."""
    tables: list[Table] = []
    boxes: list[tuple[float, ...]] = []
    if len(page.edges) > MOST_EDGES:
        return tables, boxes
    for found in page.find_tables():
        rows = [
            tuple(" ".join(_plain(cell or "").split()) for cell in row)
            for row in found.extract(x_tolerance_ratio=0.15)
        ]
        rows = [row for row in rows if any(row)]
        filled = sum(1 for row in rows for cell in row if cell)
        # A frame around text has one cell, the axes of a plot have empty ones.
        if len(rows) >= 2 and len(rows[0]) >= 2 and 3 * filled >= len(rows) * len(rows[0]):
            x0, top, x1, _ = found.bbox
            tables.append(Table(tuple(rows), x0, x1, top))
            boxes.append(found.bbox)
    return tables, boxes


def _within(word: dict[str, Any], box: tuple[float, ...]) -> bool:
    x, y = (word["x0"] + word["x1"]) / 2, (word["top"] + word["bottom"]) / 2
    return bool(box[0] <= x <= box[2] and box[1] <= y <= box[3])


def _plain(text: str) -> str:
    return text.replace("\u00a0", " ")


Words = list[dict[str, Any]]


def _rows(words: Words) -> list[Words]:
    """The words that stand side by side, from the top down, each row from the left."""
    rows: list[Words] = []
    top = bottom = 0.0
    for word in sorted(words, key=lambda w: (w["top"] + w["bottom"]) / 2):
        middle = (word["top"] + word["bottom"]) / 2
        if rows and top <= middle <= bottom - 0.25 * (bottom - top):
            rows[-1].append(word)
        else:
            rows.append([word])
            top, bottom = word["top"], word["bottom"]
    return [sorted(row, key=lambda w: float(w["x0"])) for row in rows]


def _strip(rows: Sequence[Words]) -> float | None:
    """Where the empty strip between two columns of text is; None on a page of one column."""
    parts = [part for row in rows for part in _parted(row, 8.0)]
    if len(rows) < 8:
        return None
    left, right = min(part[0]["x0"] for part in parts), max(part[-1]["x1"] for part in parts)
    best: tuple[int, float] | None = None
    for step in range(30, 71):
        x = left + (right - left) * step / 100
        before = [part for part in parts if part[-1]["x1"] <= x]
        behind = [part for part in parts if part[0]["x0"] >= x]
        crossing = len(parts) - len(before) - len(behind)
        texts = _is_text(before, x - left) and _is_text(behind, right - x)
        if texts and 3 * crossing <= len(rows) and (best is None or crossing < best[0]):
            best = (crossing, x)
    return best[1] if best else None


def _is_text(parts: Sequence[Words], width: float) -> bool:
    """Whether these rows are a column of running text: several words each, that fill its width."""
    if len(parts) < 5:
        return False
    widths: float = median(part[-1]["x1"] - part[0]["x0"] for part in parts)
    return bool(widths >= 0.6 * width and median(len(part) for part in parts) >= 3)


def _parted(row: Words, gap: float) -> Iterator[Words]:
    """The row, cut where its words are further apart than `gap` points, or a letter's size."""
    part = row[:1]
    for before, word in pairwise(row):
        if word["x0"] - before["x1"] > max(gap, 0.9 * word["size"]):
            yield part
            part = []
        part.append(word)
    yield part


def _lines(row: Words, strip: float | None) -> Iterator[tuple[int, Line]]:
    """(column, line): -1 and 1 beside the strip, 0 across it."""
    if strip is None or any(w["x0"] < strip < w["x1"] for w in row):
        yield 0, _line(row)
        return
    left, right = [w for w in row if w["x1"] <= strip], [w for w in row if w["x0"] >= strip]
    if left and right and right[0]["x0"] - left[-1]["x1"] < 8.0:
        yield 0, _line(row)
        return
    for column, words in ((-1, left), (1, right)):
        if words:
            yield column, _line(words)


def _column(x0: float, x1: float, strip: float | None) -> int:
    return 0 if strip is None or x0 < strip < x1 else -1 if x1 <= strip else 1


def _in_order(items: Sequence[tuple[float, int, Line | Table]]) -> Iterator[Line | Table]:
    """The left column before the right one, down to what stands across both."""
    right: list[Line | Table] = []
    for _, column, item in items:
        if column == 1:
            right.append(item)
            continue
        if column == 0:
            yield from right
            right = []
        yield item
    yield from right


def _line(words: Words) -> Line:
    sizes: dict[float, int] = {}
    for word in words:
        size = round(2 * float(word["size"])) / 2
        sizes[size] = sizes.get(size, 0) + len(word["text"])
    mono = all(_MONO.search(word["fontname"]) for word in words)
    text = _text(words, mono)
    cells = tuple((part[0]["x0"], part[-1]["x1"], _text(part, mono)) for part in _parted(words, 10.0))
    line = Line(
        text,
        words[0]["x0"],
        words[-1]["x1"],
        min(word["top"] for word in words),
        max(word["bottom"] for word in words),
        max(sizes, key=lambda size: sizes[size]),
        all(_BOLD.search(word["fontname"]) for word in words),
        mono,
    )
    return replace(line, cells=cells) if len(cells) > 1 and not mono else line


def _text(words: Words, mono: bool) -> str:
    """The words with spaces between them; in code as many as there is room for."""
    text = words[0]["text"]
    for before, word in pairwise(words):
        gap = word["x0"] - before["x1"]
        letter = (word["x1"] - word["x0"]) / max(len(word["text"]), 1)
        # A change of font parts a word that has no gap.
        blanks = round(gap / letter) if mono and letter else int(gap > 0.15 * word["size"])
        text += " " * min(max(blanks, 0), 200) + word["text"]
    # A sign that no letter is known for, before text: what a font for symbols draws as a bullet.
    return _LONE_SIGN.sub("\u2022 ", _plain(str(text)))
