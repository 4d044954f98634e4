"""The SQLite file of a generation: its tables, how it is opened, and its errors in plain words."""

from __future__ import annotations

import errno
import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hyce.errors import StoreError
from hyce.index.manifest import REBUILD

TOKENIZER = "porter unicode61 remove_diacritics 2"
"""No further token characters: --mem-per-cpu, SLURM_CPUS_PER_TASK and python3.11 are split into their parts
in passages and questions alike, and questions ask for the parts side by side as well (see lexical.py)."""

FREQUENT = 50
"""Terms in more passages than this are counted in the table `frequent`."""

_SCHEMA = f"""
CREATE TABLE source(source TEXT PRIMARY KEY, indexed TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE document(
    id INTEGER PRIMARY KEY, source TEXT NOT NULL, path TEXT NOT NULL, digest TEXT NOT NULL,
    title TEXT NOT NULL, url TEXT, date TEXT, memo TEXT NOT NULL, language TEXT NOT NULL,
    UNIQUE(source, path));
CREATE TABLE chunk(
    id INTEGER PRIMARY KEY, document INTEGER NOT NULL, ordinal INTEGER NOT NULL, titled INTEGER NOT NULL,
    anchor TEXT NOT NULL, segment INTEGER NOT NULL, row INTEGER NOT NULL,
    token_start INTEGER NOT NULL, tokens INTEGER NOT NULL);
CREATE INDEX chunk_of_document ON chunk(document);
CREATE VIRTUAL TABLE text USING fts5(title, heading, body, forms, tokenize = '{TOKENIZER}');
CREATE VIRTUAL TABLE vocabulary USING fts5vocab(text, row);
CREATE TABLE frequent(term TEXT PRIMARY KEY, passages INTEGER NOT NULL) WITHOUT ROWID;
"""
# The text stands in `text` alone, under the rowid of its chunk. Its heading is JSON without the page's title
# (`titled` says whether the title came first), so that the title's words aren't counted in two columns.
# `forms` is empty for English; for other languages the passage's words once more, as forms.py makes them.


def open_read_only(file: Path) -> sqlite3.Connection:
    """immutable: no lock, no journal, no -shm: works in a folder that this user can't write."""
    uri = f"{file.absolute().as_uri()}?mode=ro&immutable=1"
    return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)


def open_staged(file: Path) -> sqlite3.Connection:
    """A database that only this process has: the writer's own lock guards it.

    nolock, because SQLite's locks fail where a file system has none (Lustre without `flock`).
    """
    connection = sqlite3.connect(f"{file.absolute().as_uri()}?nolock=1", uri=True, isolation_level=None)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA cache_size = -32768")
    return connection


def create(connection: sqlite3.Connection) -> None:
    connection.executescript(_SCHEMA)


def pack_heading(title: str, heading: tuple[str, ...]) -> tuple[bool, str]:
    """(whether the title came first, the rest as JSON)."""
    titled = bool(heading) and heading[0] == title
    return titled, json.dumps(heading[titled:], ensure_ascii=False)


def unpack_heading(title: str, titled: int, packed: str) -> tuple[str, ...]:
    return ((title,) if titled else ()) + tuple(json.loads(packed))


def storable(text: str) -> str:
    """The text; lone surrogates, as in a file name that isn't UTF-8, are written as \\udc.. escapes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text


@contextmanager
def plain_errors(index: Path, *, writing: bool = False) -> Iterator[None]:
    """Turns SQLite's and the system's errors into StoreError."""
    try:
        yield
    except (sqlite3.ProgrammingError, sqlite3.InterfaceError):
        raise  # a mistake in hyce, not in the file
    except sqlite3.OperationalError as error:
        # SQLite says "disk I/O error" for a quota that is used up.
        if writing and ("full" in str(error) or "disk I/O" in str(error)):
            raise _no_space(index, str(error)) from error
        raise StoreError(f"{index}: {error}; {REBUILD}") from error
    except sqlite3.Error as error:
        raise StoreError(f"{index}: damaged ({error}); {REBUILD}") from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise _no_space(index, error.strerror or "no space") from error
        raise StoreError(f"{error.filename or index}: {error.strerror}") from error


def _no_space(index: Path, reason: str) -> StoreError:
    return StoreError(
        f"{index}: can't be written ({reason}): the disk or your quota may be full; free some space and run "
        "`hyce index` again: what is embedded already is kept"
    )
