"""A manual page as groff lays it out -> HTML.

In the layout, indentation tells what belongs to what: sections begin at the margin, a term stands above or
before the text that explains it, which stands further right.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

LINE = 4000
"""Characters of a line: longer paragraphs take several."""
KEPT = 400
"""Columns by which lines that must stay lines are moved to the right."""
DEEPEST = 12
"""Lists within lists; what is indented further is text."""
_BODY = 5
"""The column from which text stands; what begins further left is a heading."""
_LONGEST_TERM = 120
_WIDEST_GAP = 30

_MARK = re.compile(r".\x08")
_SIGNS = str.maketrans("\u2010\u2011\u2212\u2018\u2019\u00b4\u02c6\u02dc\u00ad", "---'''^~-")
"""What groff makes of the signs in options and commands, and what a user types."""
_BULLET = re.compile(r"[\u2022\u00b7\u25cf\u25e6*o+-]|\u2014|\u2013")
_NUMBER = re.compile(r"(\d{1,3})[.)]|\((\d{1,3})\)|\[(\d{1,3})\]")
_INLINE = re.compile(r"(?P<term>\S.{0,40}?)(?P<gap>[ \t]{2,})(?P<text>\S.*)")
_RULES = re.compile(r"[\u2500-\u257f\s]+")
_RULED = tuple("\u2502\u250c\u251c\u2514\u2500\u2550\u2551\u2554\u255e\u255f\u2560\u255a\u2558")


@dataclass(frozen=True, slots=True)
class _Line:
    indent: int
    text: str
    kept: bool = False
    """Whether it must stay a line of its own: an example, a row of a table."""
    bold: bool = False
    """Whether it begins with bold letters."""

    @property
    def empty(self) -> bool:
        return not self.text

    @property
    def ruled(self) -> bool:
        """Whether it is a row of a table with lines drawn around its cells."""
        return self.text[:1] in _RULED


def to_html(layout: str, title: str) -> str:
    """The page below a heading with its title; empty where there is no text."""
    lines = [_line(raw) for raw in layout.split("\n")]
    filled = [i for i, line in enumerate(lines) if not line.empty]
    # The first and the last line repeat name, date and manual.
    lines = lines[filled[0] + 1 : filled[-1]] if len(filled) > 2 else []
    parts = [f"<h1>{html.escape(title, quote=False)}</h1>"]
    start = 0
    for i, line in enumerate(lines):
        if _is_heading(line):
            parts += _blocks(lines[start:i], 0)
            name, level = line.text, 2 if line.indent == 0 else 3
            ident = re.sub(r"\W+", "-", name.casefold()).strip("-")
            parts.append(f'<h{level} id="{html.escape(ident)}">{html.escape(name, quote=False)}</h{level}>')
            start = i + 1
    parts += _blocks(lines[start:], 0)
    return "\n".join(parts) if any(not part.startswith("<h") for part in parts) else ""


def _line(raw: str) -> _Line:
    raw = raw.rstrip().expandtabs(8)
    text = _MARK.sub("", raw).translate(_SIGNS)
    body = text.lstrip(" ")
    indent = len(text) - len(body)
    bold = len(raw) > indent + 2 and raw[indent + 1] == "\b" and raw[indent] == raw[indent + 2]
    kept = indent >= KEPT
    return _Line(indent - KEPT if kept else indent, body, kept, bold)


def _is_heading(line: _Line) -> bool:
    return not line.empty and not line.kept and line.indent < _BODY and line.bold and len(line.text) < 200


def _blocks(lines: Sequence[_Line], depth: int) -> list[str]:
    """The HTML of lines that belong together."""
    parts: list[str] = []
    i = 0
    while i < len(lines):
        if lines[i].empty:
            i += 1
            continue
        if lines[i].kept:
            end = _kept_end(lines, i)
            parts.append(_kept(lines[i:end]))
        elif depth >= DEEPEST:
            end = i + 1
            parts.append(_paragraph(lines[i:end]))
        else:
            end = _group_end(lines, i)
            entry = _entry(lines, i, end, depth)
            if entry is None:
                parts.append(_paragraph(lines[i:end]))
            else:
                found, end = entry
                _append(parts, found)
        i = end
    return parts


def _kept_end(lines: Sequence[_Line], start: int) -> int:
    """Where an example or a table that begins at `start` ends; empty lines within belong to it."""
    end = start + 1
    for i in range(start + 1, len(lines)):
        if lines[i].empty:
            continue
        if not lines[i].kept or lines[i].ruled != lines[start].ruled:
            break
        end = i + 1
    return end


def _group_end(lines: Sequence[_Line], start: int) -> int:
    """Where the lines that follow `start` without a gap, and begin in the same column, end."""
    end = start + 1
    while (
        end < len(lines)
        and not lines[end].empty
        and not lines[end].kept
        and lines[end].indent == lines[start].indent
        and not _has_term(lines[end])
    ):
        end += 1
    return end


def _has_term(line: _Line) -> bool:
    """Whether a short term stands before its text on the same line."""
    match = _INLINE.fullmatch(line.text)
    return match is not None and len(match["term"]) + len(match["gap"]) <= _WIDEST_GAP


def _entry(lines: Sequence[_Line], start: int, end: int, depth: int) -> tuple[str, int] | None:
    """(an entry of a list, where it ends) of the lines from start, whose first group ends at `end`.

    None where they are text.
    """
    first = lines[start]
    match = _INLINE.fullmatch(first.text)
    if match and _has_term(first):
        inner = first.indent + match.start("text")
        rest = replace(first, indent=inner, text=match["text"], bold=False)
        terms, body = [match["term"]], [rest]
        stop = _body_end(lines, start + 1, inner)
        body += lines[start + 1 : stop]
    else:
        below = end
        if end == start + 1 and (first.bold or first.text.startswith("-")):
            # An option may be parted from its text by an empty line.
            below = next((i for i in range(end, len(lines)) if not lines[i].empty), end)
        follows = below < len(lines) and not lines[below].empty and lines[below].indent > first.indent
        if not follows or any(len(line.text) > _LONGEST_TERM for line in lines[start:end]):
            return None
        terms = [line.text for line in lines[start:end]]
        stop = _body_end(lines, end, first.indent + 1)
        body = list(lines[end:stop])
    return _item(terms, "\n".join(_blocks(body, depth + 1)), bold=first.bold), stop


def _body_end(lines: Sequence[_Line], start: int, indent: int) -> int:
    """Where the text ends that stands at `indent` or further right."""
    end = start
    for i in range(start, len(lines)):
        if lines[i].empty:
            continue
        if lines[i].indent < indent:
            break
        end = i + 1
    return end


def _item(terms: Sequence[str], body: str, *, bold: bool) -> str:
    """An item of a list with bullets or numbers, or a term with what it means.

    A sign in bold letters is a term: a value that can be given, such as `*`.
    """
    number = _NUMBER.fullmatch(terms[0])
    if number and len(terms) == 1:
        value = next(group for group in number.groups() if group)
        return f'<ol>\n<li value="{value}">{body}</li>\n</ol>'
    if len(terms) == 1 and not bold and _BULLET.fullmatch(terms[0]):
        return f"<ul>\n<li>{body}</li>\n</ul>"
    heads = "".join(f"<dt>{html.escape(term, quote=False)}</dt>\n" for term in terms)
    return f"<dl>\n{heads}<dd>{body}</dd>\n</dl>"


def _append(parts: list[str], item: str) -> None:
    """Put an item at the end of the list of its kind that stands last, or else begin one."""
    kind = item[:4]
    if parts and parts[-1].startswith(f"{kind}\n"):
        parts[-1] = parts[-1][: -len("</dl>")] + item[len(kind) + 1 :]
    else:
        parts.append(item)


def _paragraph(lines: Sequence[_Line]) -> str:
    """Text; a line is broken where the page breaks it."""
    text = ""
    for before, line in zip([None, *lines], lines, strict=False):
        # A paragraph that is longer than groff's line goes on without a break.
        joint = "" if before is None else " " if len(before.text) > LINE - 200 else "<br>\n"
        text += joint + html.escape(line.text, quote=False)
    return f"<p>{text}</p>"


def _kept(lines: Sequence[_Line]) -> str:
    """An example as it stands; a table with rules as a table."""
    if lines[0].ruled:
        rows = [
            line.text.strip("\u2502 ").split("\u2502") for line in lines if not _RULES.fullmatch(line.text)
        ]
        body = "\n".join(
            f"<tr>{''.join(f'<{cell}>{html.escape(each.strip())}</{cell}>' for each in row)}</tr>"
            for cell, row in zip(["th", *["td"] * len(rows)], rows, strict=False)
        )
        return f"<table>\n{body}\n</table>"
    margin = min((line.indent for line in lines if not line.empty), default=0)
    text = "\n".join(" " * (line.indent - margin) + line.text if line.text else "" for line in lines)
    return f"<pre>{html.escape(text, quote=False)}</pre>"
