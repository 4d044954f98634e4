"""Directives that take a file in: below the page's root or not at all."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes

from hyce.markup.rst_base import Base, captioned


class LiteralInclude(Base):
    """A file below the root as code, or the part of it that the options name."""

    def run(self) -> list[nodes.Node]:
        place = self.place()
        path = place.find(self.title()) if place else None
        if path is None or place is None:
            return []
        lines = selected(place.read(path).split("\n"), self.options)
        caption = str(self.options.get("caption", "") or "")
        if "caption" in self.options and not caption:
            caption = path.name
        return captioned("\n".join(lines), caption)


class Include(Base):
    """A file below the root, parsed in place (or shown with :literal: or :code:)."""

    MOST = 3
    """Times that a page may include the same file: two that include each other end here."""

    def run(self) -> list[nodes.Node]:
        place = self.place()
        path = place.find(self.title()) if place else None
        counts: dict[str, int] = self.state.document.settings.__dict__.setdefault("hyce_included", {})
        if path is None or place is None or counts.get(str(path), 0) >= self.MOST:
            return []
        counts[str(path)] = counts.get(str(path), 0) + 1
        lines = selected(place.read(path).split("\n"), self.options)
        if "literal" in self.options or "code" in self.options:
            return captioned("\n".join(lines), "")
        if path.suffix == ".md" or "parser" in self.options:
            from hyce.markup import markdown

            return [nodes.raw("", markdown.to_html("\n".join(lines)), format="html")]
        self.state_machine.insert_input([line.expandtabs(8) for line in lines], str(path))
        return []


def _number(value: Any) -> int | None:
    return int(value) if re.fullmatch(r"-?\d+", str(value)) else None


def selected(lines: list[str], options: dict[str, Any]) -> list[str]:
    """The lines that :lines:, :start-line:, :start-after: and their relatives pick."""
    if options.get("lines"):
        picked: list[str] = []
        for span in str(options["lines"]).split(","):
            first, dash, last = span.strip().partition("-")
            if (first.isdecimal() or not first) and (last.isdecimal() or not last):
                begin = int(first or 1)
                picked += lines[max(begin - 1, 0) : (int(last) if last else len(lines)) if dash else begin]
        lines = picked
    lines = lines[_number(options.get("start-line")) or 0 : _number(options.get("end-line"))]
    for option, offset in (("start-after", 1), ("start-at", 0)):
        if options.get(option):
            at = next((i for i, line in enumerate(lines) if str(options[option]) in line), None)
            lines = lines if at is None else lines[at + offset :]
    for option, offset in (("end-before", 0), ("end-at", 1)):
        if options.get(option):
            at = next((i for i, line in enumerate(lines) if str(options[option]) in line), None)
            lines = lines if at is None else lines[: at + offset]
    return lines
