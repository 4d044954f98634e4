"""hyce index: sources -> parse -> chunk -> embed -> index, page by page, with bounded memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from hyce.config import Config, for_role
from hyce.cut import Cut, Parsed, open_cutter
from hyce.embed import Embedder
from hyce.errors import SourceError
from hyce.index.embedded import IndexWriter
from hyce.languages import Recogniser
from hyce.late_chunking import LateEmbedder
from hyce.parse import Hidden, paragraphs, parse
from hyce.records import Document, Embedding, Failure, Note, Unchanged
from hyce.sources.read import key, read, survey

BATCH = 256
"""Passages embedded together: enough to sort by length, few enough to hold in memory."""


PARSING = 2
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
    notes: tuple[Failure, ...]
    """Pages that are indexed, but not as the settings ask for, and what sources want to be known."""
    cost: str
    """What cutting pages took of a language model, in words; empty where it took none."""
    languages: Mapping[str, int]
    """Pages in each language in the index afterwards, by its code."""
    seconds: float


@dataclass(slots=True)
class _Tally:
    documents: int = 0
    embedded: int = 0
    unchanged: int = 0
    removed: int = 0
    failures: list[Failure] = field(default_factory=list)
    notes: list[Failure] = field(default_factory=list)


Report = Callable[[int, int | None, str], None]


def index_sources(
    sources: Sequence[str], writer: IndexWriter, embedder: Embedder, config: Config, report: Report
) -> IndexReport:
    """Bring the index up to date with the sources and publish it.

    A page that can't be read is listed in the report, keeps what the index has of it, and stops nothing
    else; so does a source. Where none can be read, or where there is nothing of it to keep, SourceError is
    raised and nothing is published.
    """
    started = time.monotonic()
    tally = _Tally()
    recogniser = Recogniser(config.index.languages)
    unread: list[SourceError] = []
    sources = list(dict.fromkeys(sources))
    surveys = [survey(source) for source in sources]
    # Nobody knows how many pages a web site has before its last one was read.
    expected = None if None in surveys else sum(found.pages for found in surveys if found)
    with open_cutter(config, embedder) as cutter:
        for source in sources:
            pages = _changed_pages(source, writer, config, recogniser, tally)
            try:
                for batch in _batches(cutter.cut(pages)):
                    _embed_and_put(batch, writer, embedder, tally)
                    done = tally.documents + len(tally.failures)
                    report(done, expected, f"{tally.embedded} passages embedded")
            except SourceError as error:
                unread.append(error)
                if writer.rebuilding or len(unread) == len(sources):
                    raise
                tally.failures.append(Failure(source, str(error).removeprefix(f"{source}: ")))
                continue
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
        notes=tuple(tally.notes),
        cost=cutter.cost,
        languages=manifest.languages,
        seconds=time.monotonic() - started,
    )


def passage_settings(config: Config) -> str:
    """What passages depend on beside the pages, as the manifest keeps it."""
    languages = "".join(f"/{code}" for code in sorted(config.index.languages))
    kind = config.passages.kind
    by = f"/{for_role(config, 'passages').llm.model}" if kind == "llm" else ""
    return f"{kind}/{config.passages.size}/{PARSING}{by}{languages}"


def _changed_pages(
    source: str, writer: IndexWriter, config: Config, recogniser: Recogniser, tally: _Tally
) -> Iterator[Parsed]:
    """The pages of a source that must be embedded; all others are counted or listed."""
    for item in read(source, config, writer):
        if isinstance(item, Unchanged):
            writer.seen(key(source), item.path, alone=True)
            tally.documents += 1
            tally.unchanged += 1
            continue
        if isinstance(item, Note):
            tally.notes.append(Failure(item.path, item.reason))
            continue
        if isinstance(item, Failure):
            tally.failures.append(item)
            if not item.skipped:
                writer.seen(key(source), item.path, alone=item.alone)
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
            writer.seen(item.source, item.path, alone=True)
            continue
        tally.documents += 1
        yield item, replace(page, language=recogniser.language(page))


def _without_path(error: SourceError, document: Document) -> str:
    """What is wrong with the page; the report names it already."""
    return str(error).removeprefix(f"{document.path}: ")


def _batches(pages: Iterator[Cut]) -> Iterator[list[Cut]]:
    """Pages in groups of about BATCH passages."""
    batch: list[Cut] = []
    size = 0
    for page in pages:
        batch.append(page)
        size += len(page.chunks)
        if size >= BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _embed_and_put(batch: list[Cut], writer: IndexWriter, embedder: Embedder, tally: _Tally) -> None:
    pages = [[piece.text for piece in page.chunks] for page in batch]
    embeddings = _embedded(pages, embedder, writer.token_vectors)
    for page in batch:
        document = page.document
        if page.note:
            tally.notes.append(Failure(document.path, page.note))
            # Another digest than the page's, and no memo: the next run doesn't take it for unchanged.
            document = replace(document, digest=f"{document.digest}!", memo="")
        own = islice(embeddings, len(page.chunks))
        writer.put(document, page.page.title, page.page.date, page.chunks, own, language=page.page.language)
    tally.embedded += sum(len(page.chunks) for page in batch)


def _embedded(pages: Sequence[Sequence[str]], embedder: Embedder, tokens: bool) -> Iterator[Embedding]:
    """The embeddings of the pages' passages in order, never more than BATCH of them in memory."""
    if isinstance(embedder, LateEmbedder):
        yield from embedder.embed_pages(pages, tokens=tokens)
        return
    texts = [text for page in pages for text in page]
    for start in range(0, len(texts), BATCH):
        yield from embedder.embed(texts[start : start + BATCH], tokens=tokens)


def expect(text_bytes: int, size: int) -> tuple[int, float]:
    """About how many passages, and tokens in each, a text of so many bytes gives.

    Measured on the Markdown of three HPC centres: a token, headings repeated in each passage included, for
    every 5 bytes of source, and passages two thirds full.
    """
    tokens = 0.67 * size
    return int(text_bytes / 5 / tokens) + 1, tokens
