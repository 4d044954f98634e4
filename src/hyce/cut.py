"""Pages -> passages, in the way that passages.kind names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Protocol

from hyce.chunk import Length, chunk, paragraph_chunks
from hyce.config import Config
from hyce.embed import Embedder, OnnxEmbedder
from hyce.records import Chunk, Document, Page


@dataclass(frozen=True, slots=True)
class Cut:
    """A page, cut into passages but not embedded yet."""

    document: Document
    page: Page
    chunks: tuple[Chunk, ...]
    note: str = ""
    """Why it was cut in another way than the settings ask for; such a page is cut anew next time."""


Parsed = tuple[Document, Page]


class Cutter(Protocol):
    """Cuts pages one after the other; it may look ahead, to wait for several at the same time."""

    @property
    def cost(self) -> str:
        """What it took of a language model, in words; empty where it took none."""
        ...

    def cut(self, pages: Iterator[Parsed]) -> Iterator[Cut]:
        """The pages in their order, cut."""
        ...


@contextmanager
def open_cutter(config: Config, embedder: Embedder) -> Iterator[Cutter]:
    """The cutter that the settings name. Raises ConfigError or PolicyError, with the remedy."""
    if config.passages.kind == "paragraph":
        yield ParagraphCutter()
    elif config.passages.kind == "structure":
        yield StructureCutter(config.passages.size, embedder.length)
    else:
        from hyce.llm_passages import LlmCutter

        with closing(LlmCutter(config, longest=_longest(config, embedder), length=embedder.length)) as cutter:
            yield cutter


def _longest(config: Config, embedder: Embedder) -> int:
    """Tokens of a passage that the embedder reads, special tokens not counted."""
    read = embedder.files.max_tokens if isinstance(embedder, OnnxEmbedder) else config.model.max_tokens
    return read - 2


class StructureCutter:
    """Along headings, lists, tables and code (chunk.py)."""

    cost = ""

    def __init__(self, size: int, length: Length) -> None:
        self._size, self._length = size, length

    def cut(self, pages: Iterator[Parsed]) -> Iterator[Cut]:
        for document, page in pages:
            yield Cut(document, page, tuple(chunk(page, size=self._size, length=self._length)))


class ParagraphCutter:
    """Every <p> element a passage of its own."""

    cost = ""

    def cut(self, pages: Iterator[Parsed]) -> Iterator[Cut]:
        for document, page in pages:
            yield Cut(document, page, tuple(paragraph_chunks(page)))
