"""A file of JSON Lines that only grows: whatever ends the program, what was written before is still there.

A line is written in one go and counts once it ends; a half one, left by a killed process or a full disk, is
cut off when the file is opened the next time. One process writes: the one that has the folder `locked`.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from hyce.errors import StoreError
from hyce.index.lock import Lock

T = TypeVar("T")

_KEPT = "free some space and run the same again: what was done is kept"


@contextmanager
def locked(folder: Path) -> Iterator[Path]:
    """The folder, made where it is missing, for this user's eyes only, while no other process writes in it.

    Raises StoreError.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = Lock(folder)
    except OSError as error:
        raise StoreError(f"{error.filename or folder}: {error.strerror}; choose another folder") from error
    try:
        yield folder
    finally:
        lock.close()


class Journal:
    """The rows of one file, and a way to add some. Threads may share it."""

    def __init__(self, path: Path) -> None:
        """Raises StoreError where the file can't be read or a whole line of it is no JSON object."""
        self.path = path
        self._guard = threading.Lock()
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise self._error(error) from error
        try:
            self.rows, end = read_rows(path)
            if os.fstat(self._file).st_size > end:
                os.ftruncate(self._file, end)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """No more rows."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def read(self, what: Callable[[Mapping[str, Any]], T], name: str) -> Iterator[T]:
        """What `what` makes of each row that was there. Raises StoreError for one that is no `name`."""
        return parsed(self.path, self.rows, what, name)

    def append(self, row: Mapping[str, Any]) -> None:
        """Add a row, on the disk when this returns. Raises StoreError where it can't be written."""
        line = json.dumps(row, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        with self._guard:
            before = os.fstat(self._file).st_size
            try:
                # What can't be written whole says why when the rest is tried.
                while line:
                    line = line[os.write(self._file, line) :]
                os.fsync(self._file)
            except OSError as error:
                os.ftruncate(self._file, before)
                raise self._error(error) from error
            self.rows.append(dict(row))

    def _error(self, error: OSError) -> StoreError:
        return StoreError(f"{self.path}: can't be written ({error.strerror}); {_KEPT}")


def write_whole(file: Path, content: str | bytes) -> None:
    """Write a file for this user's eyes only, whole or not at all. Raises StoreError."""
    data = content.encode("utf-8", "replace") if isinstance(content, str) else content
    new = file.with_name(f".{file.name}.new")
    try:
        new.unlink(missing_ok=True)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
            opened.write(data)
            opened.flush()
            os.fsync(opened.fileno())
        new.replace(file)
    except OSError as error:
        raise StoreError(
            f"{file}: can't be written ({error.strerror}); free some space, or choose another folder"
        ) from error


def parsed(
    path: Path, rows: Iterable[Mapping[str, Any]], what: Callable[[Mapping[str, Any]], T], name: str
) -> Iterator[T]:
    """What `what` makes of each row of a file. Raises StoreError, with the line, where one is no `name`."""
    for number, row in enumerate(rows, 1):
        try:
            found = what(row)
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            problem = f"{path}: line {number} is no {name} ({error})"
            raise StoreError(f"{problem}; remove that line and run the same again") from error
        yield found


def read_rows(path: Path) -> tuple[list[dict[str, Any]], int]:
    """The rows of a file, and where its last whole line ends, in bytes. Raises StoreError."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path}: can't be read ({error.strerror})") from error
    end = data.rfind(b"\n") + 1
    rows = []
    for number, line in enumerate(data[:end].splitlines(), 1):
        try:
            row = json.loads(line)
            if not isinstance(row, dict):
                raise ValueError("no object")
        except (ValueError, RecursionError) as error:
            raise StoreError(
                f"{path}: line {number} is damaged ({error}); remove that line and run the same again"
            ) from error
        rows.append(row)
    return rows, end
