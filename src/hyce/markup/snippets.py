"""Snippets: files that a Markdown page includes (`--8<-- "file"` and its relatives)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

MOST_BYTES = 2_000_000
"""Text that snippets may add to one page; snippets that include each other end here."""
DEEPEST = 10

_INLINE = re.compile(
    r"""^(?P<indent>[ \t]*)(?P<escape>;*)-{1,}8<-{1,}[ \t]+(?P<quote>["'])(?P<name>.*?)(?P=quote)[ \t]*$"""
)
_BLOCK = re.compile(r"^(?P<indent>[ \t]*)(?P<escape>;*)-{2,}8<-{2,}[ \t]*$")
_OTHER = re.compile(
    r"""^(?P<indent>[ \t]*)(?:\{!\s*(?P<plain>[^!{}]+?)\s*!\}"""
    r"""|\{%-?\s*include(?:-markdown)?\s+(?P<quote>["'])(?P<name>[^"']+)(?P=quote)[^%]*%\})[ \t]*$"""
)
_SECTION = (
    r"(?:<!--|#|//|;|%|--|/\*)?[ \t]*-{1,}8<-{1,}[ \t]*\[[ \t]*(start|end)[ \t]*:[ \t]*([\w-]+)[ \t]*\]"
)


class Snippets:
    """Expands the snippets of one page. `used` lists the files that were read for it."""

    def __init__(self, folders: Sequence[Path], root: Path) -> None:
        self.folders = tuple(folders)
        self.root = root.resolve()
        self.used: list[Path] = []
        self._left = MOST_BYTES

    def expand(self, text: str, depth: int = 0) -> str:
        """The text with its snippets in place; a line that names no readable file below the root is left out
        where it is a snippet for certain, and stays where it may be plain text."""
        if "8<" not in text and "{!" not in text and "{%" not in text:
            return text
        out: list[str] = []
        in_block = False
        for line in text.split("\n"):
            block = _BLOCK.match(line)
            if block and not block["escape"]:
                in_block = not in_block
                continue
            if in_block:
                name = line.strip()
                if name and not name.startswith(";"):
                    out.extend(self._lines(name, re.match(r"\s*", line)[0], depth) or [])  # type: ignore[index]
                continue
            match = _INLINE.match(line)
            if match and not match["escape"]:
                out.extend(self._lines(match["name"], match["indent"], depth) or [])
                continue
            other = _OTHER.match(line)
            lines = self._lines(other["plain"] or other["name"], other["indent"], depth) if other else None
            out.extend([line] if lines is None else lines)
        return "\n".join(out)

    def _lines(self, name: str, indent: str, depth: int) -> list[str] | None:
        """The snippet's lines, indented as its mention is; None where it can't be had."""
        if re.match(r"[a-z]+://", name):
            return None
        file, _, part = name.partition(":")
        path = self.find(file)
        if path is None or depth >= DEEPEST:
            return None
        try:
            size = path.stat().st_size
            if size > self._left:
                return None
            text = path.read_text(encoding="utf-8-sig", errors="replace")
        except OSError:
            return None
        self._left -= size
        self.used.append(path)
        lines = _part(text.replace("\r\n", "\n").rstrip("\n").split("\n"), part)
        lines = [line for line in lines if not re.search(_SECTION, line)]
        text = self.expand("\n".join(lines), depth + 1)
        return [indent + line if line else line for line in text.split("\n")]

    def find(self, name: str) -> Path | None:
        """The regular file of that name below one of the folders, and below the root in any case."""
        if not name.strip() or "\0" in name:
            return None
        for folder in self.folders:
            try:
                path = (folder / name.strip()).resolve()
                if path.is_relative_to(self.root) and path.is_file():
                    return path
            except (OSError, RuntimeError):
                continue
        return None


def unescape(text: str) -> str:
    """`;--8<--` as it is to be shown."""
    return re.sub(r"^([ \t]*);(-{2,}8<-{2,})", r"\1\2", text, flags=re.MULTILINE)


def _part(lines: list[str], part: str) -> list[str]:
    """The lines that `file:part` selects: a named section, `3:7`, `:7`, `1:3,9:12`; all for no part."""
    if not part:
        return lines
    if re.fullmatch(r"-?\d*(?::-?\d*)?(?:,-?\d*(?::-?\d*)?)*", part):
        picked: list[str] = []
        for span in part.split(","):
            first, _, last = span.partition(":")
            start, end = int(first or 1), int(last) if last else len(lines)
            picked += lines[max(start - 1, 0) if start > 0 else start : end]
        return picked
    inside, picked = False, []
    for line in lines:
        mark = re.search(_SECTION, line)
        if mark and mark.group(2) == part:
            inside = mark.group(1) == "start"
        elif inside:
            picked.append(line)
    return picked
