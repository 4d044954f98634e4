"""Files that a reStructuredText page includes, found below its root or not at all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MOST_BYTES = 2_000_000
_NAMES = re.compile(
    r"^[ \t]*\.\. (?:literal)?include::[ \t]*(\S.*)$|^[ \t]+:file:[ \t]*(\S.*)$", re.MULTILINE
)


def find(name: str, folder: Path, root: Path) -> Path | None:
    """The regular file that a page in `folder` names: `/x` counts from the site's top folder (the one with
    conf.py, or the root). None outside the root, and for files too large to be part of a page."""
    name = name.strip()
    if not name or "\0" in name or name.startswith("<"):
        return None
    root = root.resolve()
    starts = [folder] if not name.startswith("/") else [*_tops(folder, root), root]
    for start in starts:
        try:
            path = (start / name.lstrip("/")).resolve()
            if path.is_relative_to(root) and path.is_file() and path.stat().st_size <= MOST_BYTES:
                return path
        except (OSError, RuntimeError):
            continue
    return None


def _tops(folder: Path, root: Path) -> list[Path]:
    places = [folder.resolve(), *folder.resolve().parents]
    return [place for place in places if place.is_relative_to(root) and (place / "conf.py").exists()][:1]


def read(path: Path) -> str:
    """The file's text; empty when it can't be read."""
    try:
        return path.read_text(encoding="utf-8-sig", errors="replace").replace("\r\n", "\n")
    except OSError:
        return ""


def included(text: str, folder: Path, root: Path) -> tuple[Path, ...]:
    """All files that the page's text names, and those that they name in turn."""
    found: dict[Path, None] = {}
    waiting = [(text, folder)]
    while waiting and len(found) < 100:
        text, folder = waiting.pop()
        for match in _NAMES.finditer(text):
            path = find(match[1] or match[2], folder, root)
            if path is not None and path not in found:
                found[path] = None
                if path.suffix in (".rst", ".txt", ".inc", ".rest"):
                    waiting.append((read(path), path.parent))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page is: the folder that its includes count from, and the root that they may not leave."""

    folder: Path
    root: Path

    def find(self, name: str) -> Path | None:
        return find(name, self.folder, self.root)

    @staticmethod
    def read(path: Path) -> str:
        return read(path)

    def within(self, folder: Path) -> Place:
        return Place(folder, self.root)

    def texts(self, text: str) -> Iterator[str]:
        """The texts of all files that the page includes."""
        return (read(path) for path in included(text, self.folder, self.root))
