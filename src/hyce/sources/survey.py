"""What a source holds, before it is read: for progress and for the space that its index takes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from hyce.sources.files import media_type

_TEXT = {".pdf": 0.4, ".gz": 3.0, ".xz": 3.5, ".bz2": 3.5}
"""Bytes of text in a byte of such a file, about."""


@dataclass(frozen=True, slots=True)
class Survey:
    """Files that look like pages, and the bytes of their text. Some may be left out when they are read."""

    pages: int
    bytes: int


def count_files(place: Path) -> Survey:
    """Counts the pages below a folder, or the one file. What isn't there counts nothing."""
    if place.is_file():
        return Survey(1, _text_bytes(place))
    pages = size = 0
    for folder, folders, names in os.walk(place):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            file = Path(folder) / name
            if media_type(file) is None:
                continue
            try:
                size += _text_bytes(file)
            except OSError:
                continue  # a dangling link: it is listed when the source is read
            pages += 1
    return Survey(pages, size)


def _text_bytes(file: Path) -> int:
    return int(file.stat().st_size * _TEXT.get(file.suffix.lower(), 1.0))
