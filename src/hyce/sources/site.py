"""What a site builder's settings say about a folder of pages: addresses, titles, what is left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MOST_BYTES = 2_000_000
"""A larger settings file is none."""


@dataclass(frozen=True, slots=True)
class Site:
    """One built site. `pages` is the folder below which files become pages."""

    file: Path
    pages: Path
    url: str = ""
    titles: Mapping[str, str] = field(default_factory=dict)
    """Navigation titles by path below `pages`."""
    listed: frozenset[str] = frozenset()
    """Paths below `pages` that the navigation names."""
    snippets: tuple[Path, ...] = ()
    """Folders in which snippets are looked for."""
    before: str = ""
    """Text that belongs above every page (rst_prolog)."""
    after: str = ""
    """Text that belongs below every page (rst_epilog, appended snippets)."""

    @property
    def root(self) -> Path:
        """Files that a page includes lie below it."""
        return self.file.parent

    def inner(self, path: Path) -> str | None:
        """The path below `pages`, with forward slashes; None outside of it."""
        return path.relative_to(self.pages).as_posix() if path.is_relative_to(self.pages) else None

    def left_out(self, path: Path) -> str:
        """Why the file is no page of the site; empty where it is one."""
        raise NotImplementedError

    def address(self, path: Path) -> str | None:
        """Where a person reads the page."""
        raise NotImplementedError

    def title(self, path: Path) -> str | None:
        return self.titles.get(self.inner(path) or "")

    def listed_twin(self, path: Path, data: bytes) -> Path | None:
        """A page of the navigation with the same bytes, for one that the navigation doesn't name."""
        if not self.listed or self.inner(path) in self.listed:
            return None
        for other in sorted(self.listed):
            twin = self.pages / other
            try:
                if twin.stat().st_size == len(data) and twin.read_bytes() == data:
                    return twin
            except OSError:
                continue
        return None


def read_settings(file: Path) -> str:
    try:
        if file.stat().st_size > MOST_BYTES:
            return ""
        return file.read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return ""


def text_of(value: Any, default: str = "") -> str:
    return value if isinstance(value, str) else default
