"""Writing an index: staged beside the published generation, resumable after any crash, published at once.

Order of writing: vectors reach the disk before the database commits the rows that name them, the database
before the manifest that names it. Killed at any moment, the index that was published stays as it was, and
what was committed to the staged generation isn't embedded again by the next run.
"""

from __future__ import annotations

import dataclasses
import shutil
import time
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType

import numpy as np

from hyce.errors import StoreError
from hyce.index import forms, staging
from hyce.index.database import pack_heading, plain_errors, storable
from hyce.index.lock import Lock
from hyce.index.manifest import (
    FORMAT,
    Manifest,
    Settings,
    generation_folder,
    segment_file,
    sync,
    sync_folder,
    write_manifest,
)
from hyce.index.segments import pack_tokens
from hyce.records import Chunk, Document, Embedding

COMMIT_CHUNKS = 256
COMMIT_SECONDS = 3.0
"""What a crash can cost: passages and seconds between two commits."""


def open_writer(
    path: Path,
    *,
    embedder: str,
    dimensions: int,
    passages: str,
    token_vectors: bool,
    commit_chunks: int = COMMIT_CHUNKS,
) -> IndexWriter:
    """A writer for the index in the folder `path`; a missing folder is made, in the mode that umask gives.

    embedder: fingerprint of the model. passages: kind and size of the passages, such as structure/160.
    An index with other settings can't be added to: then the staged generation starts empty, and
    `IndexWriter.rebuilding` says why. Raises StoreError when another process writes, the folder can't be
    written, or a newer hyce made it.
    """
    with plain_errors(path, writing=True):
        (path / "generations").mkdir(parents=True, exist_ok=True)
        (path / "segments").mkdir(exist_ok=True)
        lock = Lock(path)
        try:
            return IndexWriter(
                path, Settings(embedder, dimensions, passages, token_vectors), lock, commit_chunks
            )
        except BaseException:
            lock.close()
            raise


class IndexWriter:
    """One run of indexing. Made by open_writer; closing it without publish() keeps what is staged."""

    rebuilding: str | None
    """Why nothing of the published index can be kept, where that is so: every source has to be read again."""

    def __init__(self, path: Path, settings: Settings, lock: Lock, commit_chunks: int) -> None:
        self.path = path
        self._settings = settings
        self._lock = lock
        self._commit_chunks = commit_chunks
        self._base, self.rebuilding = staging.base(path, settings)
        self._generation, self._database = staging.open_generation(
            path, settings, self._base, self.rebuilding
        )
        try:
            self._segment = staging.open_segment(path, settings, self._base, self._database)
        except BaseException:
            self._database.close()
            raise
        self._touched: set[str] = set()
        self._seen = bytearray()  # by document id: a byte each, so that any number of pages can be followed
        self._uncommitted = 0
        self._committed_at = time.monotonic()
        self._open = True

    @property
    def token_vectors(self) -> bool:
        """Whether token vectors are stored."""
        return self._settings.token_vectors

    def __enter__(self) -> IndexWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._open:
            self._commit()
        self.close()

    def close(self) -> None:
        """Free the lock. What is committed stays staged for the next run; the rest is lost."""
        self._close_files()
        self._lock.close()

    def sources(self) -> list[str]:
        """All sources that the index holds, or held before it had to be built again."""
        with plain_errors(self.path, writing=True):
            return [row[0] for row in self._database.execute("SELECT source FROM source ORDER BY source")]

    def unchanged(self, document: Document) -> bool:
        """Whether this very page (source, path and digest) is staged already; it then counts as seen."""
        with plain_errors(self.path, writing=True):
            self._touch(document.source)
            found = self._find(document.source, document.path)
            if found is None or found[1] != document.digest:
                return False
            self._mark(found[0])
            # A page keeps its date as long as it is the same; one without gets it once it is known.
            dated = found[3] or document.date is None
            if found[2] != document.memo or not dated:
                self._change()
                self._database.execute(
                    "UPDATE document SET memo = ?, date = coalesce(date, ?) WHERE id = ?",
                    (storable(document.memo), document.date, found[0]),
                )
            return True

    def paths(self, source: str) -> list[str]:
        """The pages that the index has of a source, in order."""
        with plain_errors(self.path, writing=True):
            rows = self._database.execute(
                "SELECT path FROM document WHERE source = ? ORDER BY path", (storable(source),)
            )
            return [path for (path,) in rows]

    def memo(self, source: str, path: str) -> str:
        """What the source noted of the page when it was indexed; empty where it isn't there."""
        with plain_errors(self.path, writing=True):
            found = self._find(source, path)
            return found[2] if found else ""

    def seen(self, source: str, path: str, *, alone: bool = False) -> None:
        """Keep what the index has of the page, or of all pages below a folder: it can't be read this time.

        alone: the page only; of a site, `gpu` and `gpu/memory` may be two pages.
        """
        with plain_errors(self.path, writing=True):
            self._touch(source)
            below = "" if path in ("", ".") else path + "/"
            for (number,) in self._database.execute(
                "SELECT id FROM document WHERE source = ?1 "
                "AND (path = ?2 OR (NOT ?4 AND substr(path, 1, length(?3)) = ?3))",
                (storable(source), storable(path), storable(below), alone),
            ).fetchall():
                self._mark(number)

    def put(
        self,
        document: Document,
        page_title: str,
        date: str | None,
        chunks: Sequence[Chunk],
        embeddings: Iterable[Embedding],
        *,
        language: str = "en",
    ) -> None:
        """Store a page with its passages in place of what the index had of it.

        embeddings: as many as chunks; one by one, so that a long page's need not be in memory together.
        language: the page's, as a code of languages.py.
        Raises StoreError when the disk is full or a vector isn't usable; what is committed is kept, and the
        writer is closed.
        """
        try:
            with plain_errors(self.path, writing=True):
                self._put(document, storable(page_title), date, chunks, embeddings, language=language)
        except BaseException:
            self.close()  # half a page must never be committed
            raise

    def remove_unseen(self, source: str) -> int:
        """Remove the source's pages that were neither put, unchanged nor seen in this run; how many."""
        with plain_errors(self.path, writing=True):
            self._touch(source)
            rows = self._database.execute("SELECT id FROM document WHERE source = ?", (storable(source),))
            gone = [number for (number,) in rows if number >= len(self._seen) or not self._seen[number]]
            return self._remove(gone)

    def remove_source(self, source: str) -> int:
        """Remove a source with all its pages; how many pages."""
        with plain_errors(self.path, writing=True):
            name = storable(source)
            rows = self._database.execute("SELECT id FROM document WHERE source = ?", (name,)).fetchall()
            if self._database.execute("SELECT 1 FROM source WHERE source = ?", (name,)).fetchone():
                self._change()
                self._database.execute("DELETE FROM source WHERE source = ?", (name,))
            self._touched.discard(name)
            return self._remove([number for (number,) in rows])

    def publish(self) -> Manifest:
        """Make what is staged the current generation, at once; the writer is finished then.

        When nothing has changed, the current generation stays and only its sources' times are renewed.
        """
        with plain_errors(self.path, writing=True):
            now = datetime.now().astimezone().isoformat(timespec="seconds")
            rows = [(now, source) for source in sorted(self._touched)]
            self._begin()
            self._database.executemany("UPDATE source SET indexed = ? WHERE source = ?", rows)
            self._commit()
            sources = dict(self._database.execute("SELECT source, indexed FROM source ORDER BY source"))
            folder = generation_folder(self.path, self._generation)
            if self._base is not None and self.rebuilding is None and not staging.changed(self._database):
                manifest = dataclasses.replace(self._base, sources=sources)
                self._close_files()
                write_manifest(self.path / "current", manifest)
                shutil.rmtree(folder, ignore_errors=True)
            else:
                manifest = self._finish(folder, now, sources)
                write_manifest(folder / "manifest.json", manifest)
                write_manifest(self.path / "current", manifest)
                (folder / staging.MARKER).unlink()
            staging.clean(self.path, keep=manifest.generation, connection=None)
        self.close()
        return manifest

    # -- one page ----------------------------------------------------------------------------------------

    def _check(self, document: Document, embedding: Embedding) -> None:
        """Raise StoreError for vectors that would spoil the index."""
        dimensions = self._settings.dimensions
        fits = embedding.vector.shape == (dimensions,) and embedding.tokens.shape[1:] == (dimensions,)
        if not fits or not np.isfinite(embedding.vector).all() or not np.isfinite(embedding.tokens).all():
            raise StoreError(
                f"{document.path}: the model {self._settings.embedder} gave a vector that isn't "
                f"{dimensions} finite numbers; pull the model again"
            )

    def _put(
        self,
        document: Document,
        title: str,
        date: str | None,
        chunks: Sequence[Chunk],
        embeddings: Iterable[Embedding],
        *,
        language: str,
    ) -> None:
        self._touch(document.source)
        self._change()
        found = self._find(document.source, document.path)
        if found is not None:
            self._delete_chunks(found[0])
        number = self._put_document(document, title, date, language)
        self._mark(number)
        for ordinal, (chunk, embedding) in enumerate(zip(chunks, embeddings, strict=True)):
            self._check(document, embedding)
            self._put_chunk(number, ordinal, title, chunk, embedding, language=language)
        self._uncommitted += 1 + len(chunks)
        late = time.monotonic() - self._committed_at > COMMIT_SECONDS
        if late or self._uncommitted >= self._commit_chunks:
            self._commit()

    def _find(self, source: str, path: str) -> tuple[int, str, str, bool] | None:
        """Number, digest and memo of a page, and whether it has a date."""
        row = self._database.execute(
            "SELECT id, digest, memo, date IS NOT NULL FROM document WHERE source = ? AND path = ?",
            (storable(source), storable(path)),
        ).fetchone()
        return None if row is None else (row[0], row[1], row[2], bool(row[3]))

    def _put_document(self, document: Document, title: str, date: str | None, language: str) -> int:
        row = self._database.execute(
            "INSERT INTO document(source, path, digest, title, url, date, memo, language) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT(source, path) DO UPDATE SET digest = excluded.digest, title = excluded.title, "
            "url = excluded.url, date = excluded.date, memo = excluded.memo, language = excluded.language "
            "RETURNING id",
            (
                storable(document.source),
                storable(document.path),
                document.digest,
                title,
                None if document.url is None else storable(document.url),
                date,
                storable(document.memo),
                language,
            ),
        ).fetchone()
        return int(row[0])

    def _put_chunk(
        self, number: int, ordinal: int, title: str, chunk: Chunk, embedding: Embedding, *, language: str
    ) -> None:
        tokens = embedding.tokens if self._settings.token_vectors else embedding.tokens[:0]
        packed = pack_tokens(tokens, embedding.token_ids)
        row, start = self._segment.append(np.asarray(embedding.vector, np.float32).tobytes(), packed)
        titled, heading = pack_heading(title, tuple(storable(part) for part in chunk.heading))
        found = self._database.execute(
            "INSERT INTO chunk(document, ordinal, titled, anchor, segment, row, token_start, tokens) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                number,
                ordinal,
                titled,
                storable(chunk.anchor),
                self._segment.number,
                row,
                start,
                len(tokens),
            ),
        )
        self._database.execute(
            "INSERT INTO text(rowid, title, heading, body, forms) VALUES (?, ?, ?, ?, ?)",
            (found.lastrowid, title, heading, storable(chunk.body), _forms(title, chunk, language)),
        )

    def _delete_chunks(self, number: int) -> None:
        self._database.execute(
            "DELETE FROM text WHERE rowid IN (SELECT id FROM chunk WHERE document = ?)", (number,)
        )
        self._database.execute("DELETE FROM chunk WHERE document = ?", (number,))

    def _remove(self, documents: Sequence[int]) -> int:
        if documents:
            self._change()
        for number in documents:
            self._delete_chunks(number)
            self._database.execute("DELETE FROM document WHERE id = ?", (number,))
        return len(documents)

    def _touch(self, source: str) -> None:
        name = storable(source)
        if name not in self._touched:
            self._begin()
            self._database.execute("INSERT OR IGNORE INTO source(source, indexed) VALUES (?, '')", (name,))
            self._touched.add(name)

    def _mark(self, number: int) -> None:
        if number >= len(self._seen):
            self._seen.extend(bytes(max(number + 1, 2 * len(self._seen)) - len(self._seen)))
        self._seen[number] = 1

    def _close_files(self) -> None:
        self._open = False
        self._segment.close()
        self._database.close()

    # -- transactions ------------------------------------------------------------------------------------

    def _begin(self) -> None:
        if not self._database.in_transaction:
            self._database.execute("BEGIN IMMEDIATE")

    def _change(self) -> None:
        self._begin()
        staging.mark_changed(self._database)

    def _commit(self) -> None:
        with plain_errors(self.path, writing=True):
            if self._database.in_transaction:
                self._segment.sync()
                self._database.execute("COMMIT")
            self._uncommitted = 0
            self._committed_at = time.monotonic()

    def _finish(self, folder: Path, now: str, sources: dict[str, str]) -> Manifest:
        """Merge, tidy up and close the staged generation; its manifest."""
        staging.merge_if_worthwhile(self.path, self._settings, self._database)
        segments = staging.write_ids(self.path, self._settings, self._database, folder / "passages.ids")
        staging.finish_text(self._database)
        languages = dict(
            self._database.execute(
                "SELECT language, count(*) FROM document GROUP BY language ORDER BY language"
            )
        )
        chunks = self._database.execute("SELECT count(*) FROM chunk").fetchone()[0]
        self._close_files()
        files = [folder / "passages.db", folder / "passages.ids"]
        kinds = ("vectors", "tokens")
        files += [segment_file(self.path, number, kind) for number, _ in segments for kind in kinds]
        for file in files:
            sync(file)
        for place in (folder, folder.parent, self.path / "segments"):
            sync_folder(place)
        sizes = {str(file.relative_to(self.path)): file.stat().st_size for file in files}
        return Manifest(
            format=FORMAT,
            **dataclasses.asdict(self._settings),
            written=now,
            documents=sum(languages.values()),
            chunks=chunks,
            generation=self._generation,
            segments=segments,
            files=sizes,
            sources=sources,
            languages=languages,
        )


def _forms(title: str, chunk: Chunk, language: str) -> str:
    """The passage's words in the forms of its language, those of title and headings as well."""
    titled = chunk.heading if chunk.heading[:1] == (title,) else (title, *chunk.heading)
    return forms.stored(storable("\n".join((*titled, chunk.body))), language)
