"""The index on this machine: SQLite for text and words, memory-mapped files for vectors.

A reader writes nothing, anywhere: any number of users can search one folder on a shared or read-only file
system. It keeps the generation that was current when it was opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyce.errors import StoreError
from hyce.index import lexical
from hyce.index.database import open_read_only, plain_errors, unpack_heading
from hyce.index.manifest import (
    REBUILD,
    Manifest,
    check_files,
    estimate_bytes,
    generation_folder,
    read_manifest,
)
from hyce.index.segments import SegmentReader, Tokens, unpack_tokens
from hyce.index.writer import IndexWriter, open_writer
from hyce.languages import ENGLISH, beside_english
from hyce.records import Passage

__all__ = ["IndexReader", "IndexWriter", "Manifest", "estimate_bytes", "open_index", "open_writer"]


def open_index(path: Path) -> IndexReader:
    """The published generation.

    Raises StoreError when there is none, or it is damaged or of another format.
    """
    with plain_errors(path):
        manifest = read_manifest(path / "current")
        while True:
            try:
                return IndexReader(path, manifest)
            except (StoreError, OSError):
                # It may have been replaced twice, and removed, since `current` was read.
                newer = read_manifest(path / "current")
                if newer.generation == manifest.generation:
                    raise
                manifest = newer


class IndexReader:
    """Searches one generation. Made by open_index. May be used by several threads."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest
        check_files(path, manifest)
        folder = generation_folder(path, manifest.generation)
        self._ids = np.fromfile(folder / "passages.ids", np.int64)
        self._dead = np.flatnonzero(self._ids < 0)
        self._stems = lexical.Stems()
        self._segments: dict[int, SegmentReader] = {}
        with ExitStack() as opened:
            opened.callback(self.close)
            self._database = open_read_only(folder / "passages.db")
            for number, rows in manifest.segments:
                segment = SegmentReader(path, number, manifest.dimensions, manifest.token_vectors)
                self._segments[number] = segment
                if len(segment.vectors) != rows:
                    raise self._damaged()
            if len(self._ids) != sum(rows for _, rows in manifest.segments):
                raise self._damaged()
            opened.pop_all()

    def __enter__(self) -> IndexReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._stems.close()
        for segment in self._segments.values():
            segment.close()
        if hasattr(self, "_database"):
            self._database.close()

    def check(self, embedder_fingerprint: str) -> None:
        """Raise StoreError unless the index was made with this model, used in the same way."""
        if self.manifest.embedder != embedder_fingerprint:
            raise StoreError(
                f"{self.path}: made with the model {self.manifest.embedder}, not {embedder_fingerprint}; "
                f"{REBUILD}, or set the preset and [model] back"
            )

    def dense(self, vector: NDArray[np.float32], k: int) -> list[tuple[int, float]]:
        """(passage id, cosine) of the k nearest, best first; exact."""
        k = min(k, self.manifest.chunks)
        if k <= 0:
            return []
        query = self._query(vector)
        scores = np.empty(len(self._ids), np.float32)
        end = 0
        for segment in self._segments.values():
            start, end = end, end + len(segment.vectors)
            # Not np.dot: BLAS uses threads for this, and on a busy login node waits 10 ms and more for them.
            np.einsum("ij,j->i", segment.vectors, query, out=scores[start:end])
        scores[self._dead] = -np.inf
        best = np.argpartition(scores, len(scores) - k)[len(scores) - k :]
        best = best[np.lexsort((self._ids[best], -scores[best]))]
        return [(int(self._ids[i]), float(scores[i])) for i in best]

    def lexical(
        self,
        question: str,
        k: int,
        *,
        title: float = lexical.TITLE_WEIGHT,
        heading: float = lexical.HEADING_WEIGHT,
        body: float = lexical.BODY_WEIGHT,
        forms: float = lexical.FORMS_WEIGHT,
        rows: int = lexical.ROWS_RANKED,
    ) -> list[tuple[int, float]]:
        """(passage id, BM25) of the k best that share a word with the question, best first.

        In an index with pages in other languages than English, a word may stand there in another form.
        title, heading, body, forms: weights of the columns. rows: passages ranked, about; in a larger index
        the question's frequent words count only together (see lexical.affordable).
        """
        if k <= 0:
            return []
        with plain_errors(self.path):
            held = self.manifest.languages
            mixed = any(code != ENGLISH for code in held)
            wanted = lexical.terms(question, beside_english(held, question), mixed=mixed)
            expression = lexical.query(wanted)
            if self.manifest.chunks > rows or len(wanted) > lexical.MOST_TERMS:
                passages = self.manifest.chunks
                expression = lexical.affordable(self._database, self._stems, wanted, passages, rows)
            if not expression:
                return []
            found = self._database.execute(
                "SELECT rowid, -rank FROM text WHERE text MATCH ? AND rank MATCH ? ORDER BY rank LIMIT ?",
                (expression, f"bm25({title:.6f}, {heading:.6f}, {body:.6f}, {forms:.6f})", k),
            ).fetchall()
        return [(int(number), float(score)) for number, score in found]

    def token_vectors(self, ids: Sequence[int]) -> list[Tokens]:
        """For each passage: int8 (n, dimensions), float32 scales (n,), int32 vocabulary ids (n,), -1 where
        unknown. A token's vector is its int8 row times its scale."""
        if not self.manifest.token_vectors:
            raise StoreError(f"{self.path}: has no token vectors; set index.token_vectors and {REBUILD}")
        with plain_errors(self.path):
            places = self._rows("SELECT id, segment, token_start, tokens FROM chunk WHERE id IN", ids)
            records: dict[int, Tokens] = {}
            in_order = sorted(places.values(), key=lambda place: place[1:])
            for _, segment, start, count in in_order:
                self._segment(segment).prefetch(start, count)
            for number, segment, start, count in in_order:
                record = self._segment(segment).token_record(start, count)
                records[number] = unpack_tokens(record, count, self.manifest.dimensions)
        return [records[number] for number in ids]

    def passages(self, ids: Sequence[int]) -> list[Passage]:
        """The passages with these ids, in this order."""
        with plain_errors(self.path):
            rows = self._rows(
                "SELECT chunk.id, source, path, url, document.title, titled, heading, body, date, anchor, "
                "ordinal FROM chunk JOIN document ON document.id = chunk.document "
                "JOIN text ON text.rowid = chunk.id WHERE chunk.id IN",
                ids,
            )
        return [self._passage(rows[number]) for number in ids]

    def ids(self) -> list[int]:
        """The ids of all passages, ascending."""
        return sorted(int(number) for number in self._ids[self._ids >= 0])

    def paths(self) -> list[str]:
        """Of all pages, each relative to its source."""
        with plain_errors(self.path):
            return [path for (path,) in self._database.execute("SELECT DISTINCT path FROM document")]

    def similarity(self, vector: NDArray[np.float32], ids: Sequence[int]) -> NDArray[np.float32]:
        """The cosine of each passage with the vector, in the order of ids."""
        query = self._query(vector)
        with plain_errors(self.path):
            places = self._rows("SELECT id, segment, row FROM chunk WHERE id IN", ids)
        scores = np.empty(len(ids), np.float32)
        for position, number in enumerate(ids):
            _, segment, row = places[number]
            vectors = self._segment(segment).vectors
            if not 0 <= row < len(vectors):
                raise self._damaged()
            scores[position] = vectors[row] @ query
        return scores

    def _query(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        if vector.shape != (self.manifest.dimensions,):
            raise StoreError(
                f"{self.path}: holds vectors of {self.manifest.dimensions} dimensions, the question has "
                f"{vector.shape}; {REBUILD}"
            )
        return np.ascontiguousarray(vector, np.float32)

    def _segment(self, number: int) -> SegmentReader:
        segment = self._segments.get(number)
        if segment is None:
            raise self._damaged()
        return segment

    def _rows(self, select: str, ids: Sequence[int]) -> dict[int, tuple[Any, ...]]:
        """The rows that `select` finds for the ids, by id."""
        found: dict[int, tuple[Any, ...]] = {}
        for some in _batches(ids, 500):
            marks = ",".join("?" * len(some))
            found.update((row[0], row) for row in self._database.execute(f"{select} ({marks})", some))
        for number in ids:
            if number not in found:
                raise StoreError(
                    f"{self.path}: no passage {number} in generation {self.manifest.generation}; {REBUILD}"
                )
        return found

    def _passage(self, row: tuple[Any, ...]) -> Passage:
        number, source, path, url, title, titled, packed, body, date, anchor, position = row
        try:
            heading = unpack_heading(title, titled, packed)
        except (ValueError, TypeError) as error:
            raise self._damaged() from error
        if url is not None and anchor:
            url = f"{url.partition('#')[0]}#{anchor}"
        return Passage(number, source, path, url, title, heading, body, date, position)

    def _damaged(self) -> StoreError:
        folder = generation_folder(self.path, self.manifest.generation)
        return StoreError(f"{folder / 'passages.db'}: damaged (it doesn't fit its vectors); {REBUILD}")


def _batches(ids: Sequence[int], size: int) -> Iterator[list[int]]:
    for start in range(0, len(ids), size):
        yield [int(number) for number in ids[start : start + size]]
