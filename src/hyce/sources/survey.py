"""What a source holds, before it is read: for progress and for the space that its index takes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from hyce.sources.files import MEDIA_TYPES


@dataclass(frozen=True, slots=True)
class Survey:
    """Files that look like pages, and their bytes. Some of them may be left out when they are read."""

    pages: int
    bytes: int


def key(source: str) -> str:
    """The name under which an index keeps a source: its absolute path, whether it still exists or not."""
    return str(Path(source).expanduser().resolve())


def survey(source: str) -> Survey:
    """Counts the pages below a folder, or the one file. A source that isn't there counts nothing."""
    place = Path(key(source))
    if place.is_file():
        return Survey(1, place.stat().st_size)
    pages = size = 0
    for folder, folders, names in os.walk(place):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if Path(name).suffix.lower() not in MEDIA_TYPES:
                continue
            try:
                size += (Path(folder) / name).stat().st_size
            except OSError:
                continue  # a dangling link: it is listed when the source is read
            pages += 1
    return Survey(pages, size)
