"""hyce index: sources -> parse -> chunk -> embed -> index, page by page, with bounded memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from hyce.chunk import chunk, paragraph_chunks
from hyce.config import Config
from hyce.embed import Embedder
from hyce.errors import SourceError
from hyce.index.embedded import IndexWriter
from hyce.parse import Hidden, paragraphs, parse
from hyce.records import Chunk, Document, Embedding, Failure, Page
from hyce.sources import files
from hyce.sources.survey import key, survey

BATCH = 256
"""Passages embedded together: enough to sort by length, few enough to hold in memory."""


PARSING = 1
"""Raised when pages are read or cut in a new way, so that unchanged pages are indexed again."""


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What one run did."""

    documents: int
    """Pages in the index afterwards, of the sources named."""
    chunks: int
    """Passages in the index afterwards, whatever their source."""
    embedded: int
    """Passages that were embedded in this run."""
    unchanged: int
    removed: int
    failed: tuple[Failure, ...]
    skipped: tuple[Failure, ...]
    seconds: float


@dataclass(slots=True)
class _Tally:
    documents: int = 0
    embedded: int = 0
    unchanged: int = 0
    removed: int = 0
    failures: list[Failure] = field(default_factory=list)


Report = Callable[[int, int | None, str], None]


def index_sources(
    sources: Sequence[str], writer: IndexWriter, embedder: Embedder, config: Config, report: Report
) -> IndexReport:
    """Bring the index up to date with the sources and publish it.

    A source that can't be read at all raises SourceError before anything is published; a page that can't
    be read is listed in the report, keeps what the index has of it, and stops nothing else.
    """
    started = time.monotonic()
    tally = _Tally()
    expected = sum(survey(source).pages for source in sources)
    for source in sources:
        for batch in _batches(_changed_pages(source, writer, embedder, config, tally)):
            _embed_and_put(batch, writer, embedder, config, tally)
            done = tally.documents + len(tally.failures)
            report(done, expected, f"{tally.embedded} passages embedded")
        tally.removed += writer.remove_unseen(key(source))
    manifest = writer.publish()
    return IndexReport(
        documents=tally.documents,
        chunks=manifest.chunks,
        embedded=tally.embedded,
        unchanged=tally.unchanged,
        removed=tally.removed,
        failed=tuple(f for f in tally.failures if not f.skipped),
        skipped=tuple(f for f in tally.failures if f.skipped),
        seconds=time.monotonic() - started,
    )


def passage_settings(config: Config) -> str:
    """What passages depend on beside the pages, as the manifest keeps it."""
    return f"{config.passages.kind}/{config.passages.size}/{PARSING}"


@dataclass(frozen=True, slots=True)
class _Cut:
    """A page, cut into passages but not embedded yet."""

    document: Document
    page: Page
    chunks: list[Chunk]


def _changed_pages(
    source: str, writer: IndexWriter, embedder: Embedder, config: Config, tally: _Tally
) -> Iterator[_Cut]:
    """The pages of a source that must be embedded; all others are counted or listed."""
    for item in files.read(source, max_page_bytes=int(config.index.max_page_mb * 1e6)):
        if isinstance(item, Failure):
            tally.failures.append(item)
            if not item.skipped:
                writer.seen(key(source), item.path)
            continue
        if writer.unchanged(item):
            tally.documents += 1
            tally.unchanged += 1
            continue
        try:
            page = paragraphs(item) if config.passages.kind == "paragraph" else parse(item)
        except Hidden as reason:
            tally.failures.append(Failure(item.path, _without_path(reason, item), skipped=True))
            continue
        except SourceError as error:
            tally.failures.append(Failure(item.path, _without_path(error, item)))
            writer.seen(item.source, item.path)
            continue
        tally.documents += 1
        yield _Cut(item, page, list(_cut(page, embedder, config)))


def _without_path(error: SourceError, document: Document) -> str:
    """What is wrong with the page; the report names it already."""
    return str(error).removeprefix(f"{document.path}: ")


def _cut(page: Page, embedder: Embedder, config: Config) -> Iterator[Chunk]:
    if config.passages.kind == "paragraph":
        return paragraph_chunks(page)
    return chunk(page, size=config.passages.size, length=embedder.length)


def _batches(pages: Iterator[_Cut]) -> Iterator[list[_Cut]]:
    """Pages in groups of about BATCH passages."""
    batch: list[_Cut] = []
    size = 0
    for page in pages:
        batch.append(page)
        size += len(page.chunks)
        if size >= BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _embed_and_put(
    batch: list[_Cut], writer: IndexWriter, embedder: Embedder, config: Config, tally: _Tally
) -> None:
    texts = [piece.text for page in batch for piece in page.chunks]
    embeddings = _embedded(texts, embedder, config.index.token_vectors)
    for page in batch:
        own = islice(embeddings, len(page.chunks))
        writer.put(page.document, page.page.title, page.page.date, page.chunks, own)
    tally.embedded += len(texts)


def _embedded(texts: Sequence[str], embedder: Embedder, tokens: bool) -> Iterator[Embedding]:
    """The embeddings in order, never more than BATCH of them in memory."""
    for start in range(0, len(texts), BATCH):
        yield from embedder.embed(texts[start : start + BATCH], tokens=tokens)


def expect(text_bytes: int, size: int) -> tuple[int, float]:
    """About how many passages, and tokens in each, a text of so many bytes gives.

    Measured on the Markdown of three HPC centres: a token, headings repeated in each passage included, for
    every 5 bytes of source, and passages two thirds full.
    """
    tokens = 0.67 * size
    return int(text_bytes / 5 / tokens) + 1, tokens
