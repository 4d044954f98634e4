"""Where documents come from, by the form of the source: a folder or file, a web site, manual pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from hyce.config import Config
from hyce.records import Document, Failure, Note, Unchanged
from hyce.sources import files, manual, web_address
from hyce.sources.survey import Survey, count_files

Item = Document | Failure | Unchanged | Note


class Known(Protocol):
    """What the index has of a source already. Asked from the thread that reads the source, no other."""

    def paths(self, source: str) -> Sequence[str]:
        """Its pages."""
        ...

    def memo(self, source: str, path: str) -> str:
        """Document.memo of a page as it was indexed; empty where it isn't there."""
        ...


def key(source: str) -> str:
    """The name under which an index keeps a source.

    A folder's or file's absolute path, whether it still exists or not; a site's address and manual pages in
    one form. Raises SourceError for an address that isn't one of a web site.
    """
    if web_address.is_address(source):
        return str(web_address.start(source))
    if source.startswith(manual.SCHEME):
        return manual.key(source)
    return str(Path(source).expanduser().resolve())


def survey(source: str) -> Survey | None:
    """What a source holds, before it is read; None where only reading it can tell."""
    if source.startswith(manual.SCHEME) or web_address.is_address(source):
        return None
    return count_files(Path(key(source)))


def read(source: str, config: Config, known: Known) -> Iterator[Item]:
    """Every page of a source, as it is read.

    Document.source is key(source). A page that is in the index and isn't yielded is gone. A Failure that
    isn't `skipped` keeps what the index has of the page, or (unless `alone`) of all pages below the path.
    Raises SourceError, before the first page, when the source can't be read at all.
    """
    if web_address.is_address(source):
        from hyce.sources import web

        return web.read(source, config, known)
    most = int(config.index.max_page_mb * 1e6)
    if source.startswith(manual.SCHEME):
        return manual.read(source, max_page_bytes=most, known=known)
    return files.read(source, max_page_bytes=most, known=known)
