"""Pages with made-up vectors for the index's tests, and a run of the writer in a process that can be killed.

As a script: index_run.py INDEX LAST_PAGE KILL_AT, where KILL_AT counts function calls below open_writer
(0: not killed); the last line printed is the number of pages embedded and of the calls.
"""

from __future__ import annotations

import os
import signal
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import numpy as np
from numpy.typing import NDArray

from hyce.index.embedded import IndexReader, IndexWriter, Manifest, open_writer
from hyce.records import Chunk, Document, Embedding

DIMENSIONS = 8
SOURCE = "/docs"


def vector(text: str) -> NDArray[np.float32]:
    values = np.random.default_rng(zlib.crc32(text.encode("utf-8", "replace"))).normal(size=DIMENSIONS)
    return (values / np.linalg.norm(values)).astype(np.float32)


def embed(chunk: Chunk) -> Embedding:
    words = chunk.body.split()
    tokens = np.array([vector(word) for word in words], np.float32).reshape(len(words), DIMENSIONS)
    return Embedding(vector(chunk.text), tokens, tuple(range(len(words))))


def page(number: int, version: int = 0) -> tuple[Document, list[Chunk]]:
    title = f"Page {number}"
    document = Document(SOURCE, f"{number}.md", "text/markdown", "", f"digest-{number}-{version}")
    bodies = [f"Passage {part} of {number} version{version} about topic{number % 7}" for part in range(3)]
    return document, [Chunk((title, f"Part {i}"), f"part-{i}", body) for i, body in enumerate(bodies)]


def open_for_writing(
    index: Path, *, embedder: str = "model", token_vectors: bool = True, commit_chunks: int = 10
) -> IndexWriter:
    return open_writer(
        index,
        embedder=embedder,
        dimensions=DIMENSIONS,
        passages="structure/160",
        token_vectors=token_vectors,
        commit_chunks=commit_chunks,
    )


def put(writer: IndexWriter, document: Document, chunks: list[Chunk]) -> None:
    title = chunks[0].heading[0] if chunks and chunks[0].heading else "Untitled"
    writer.put(document, title, "2024-05-06", chunks, [embed(chunk) for chunk in chunks])


def update(writer: IndexWriter, last: int) -> int:
    """Bring the index to pages 0 to last, every fifth in a version of its own; how many were embedded."""
    embedded = 0
    for number in range(last):
        document, chunks = page(number, last if number % 5 == 0 else 0)
        if not writer.unchanged(document):
            put(writer, document, chunks)
            embedded += 1
    writer.remove_unseen(SOURCE)
    return embedded


def build(index: Path, last: int) -> Manifest:
    with open_for_writing(index) as writer:
        update(writer, last)
        return writer.publish()


def content(reader: IndexReader) -> dict[tuple[str, str], tuple[object, ...]]:
    """All that can be read of each passage, by path and text; ids left out."""
    ids = [number for number, _ in reader.dense(vector("anything"), 10**6)]
    assert len(ids) == len(set(ids)) == reader.manifest.chunks
    found: dict[tuple[str, str], tuple[object, ...]] = {}
    similarities = reader.similarity(vector("another"), ids)
    tokens = reader.token_vectors(ids)
    for passage, similarity, (values, scales, token_ids) in zip(
        reader.passages(ids), similarities, tokens, strict=True
    ):
        rest = (passage.source, passage.title, passage.url, passage.date, round(float(similarity), 5))
        found[passage.path, passage.text] = (*rest, values.tobytes(), scales.tobytes(), token_ids.tobytes())
    assert len(found) == len(ids)
    return found


def _killer(at: int) -> tuple[list[int], Callable[[FrameType, str, object], None]]:
    calls = [0]

    def count(frame: FrameType, event: str, argument: object) -> None:
        calls[0] += 1
        if calls[0] == at:
            os.kill(os.getpid(), signal.SIGKILL)

    return calls, count


def main() -> None:
    index, last, kill_at = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    calls, count = _killer(kill_at)
    sys.setprofile(count)
    with open_for_writing(index) as writer:
        embedded = update(writer, last)
        before_publish = calls[0]
        writer.publish()
    sys.setprofile(None)
    print(embedded, before_publish, calls[0])


if __name__ == "__main__":
    main()
