"""An Embedder without a model: each word has a vector of its own, a text's is their mean."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hyce.records import Embedding


class WordEmbedder:
    """Texts that share words are near. `batches` records what was embedded together."""

    token_vectors = True

    def __init__(self, fingerprint: str = "words", dimensions: int = 32) -> None:
        self.fingerprint = fingerprint
        self.dimensions = dimensions
        self.batches: list[list[str]] = []

    @property
    def embedded(self) -> list[str]:
        return [text for batch in self.batches for text in batch]

    def embed(self, texts: Sequence[str], *, tokens: bool = False, query: bool = False) -> list[Embedding]:
        self.batches.append(list(texts))
        return [self._embedding(text, tokens) for text in texts]

    def length(self, text: str) -> int:
        return len(text.split())

    def _embedding(self, text: str, tokens: bool) -> Embedding:
        ids = [zlib.crc32(word.encode()) >> 2 for word in re.findall(r"\w+", text.lower())]
        rows = np.array([self._word(number) for number in ids], np.float32).reshape(-1, self.dimensions)
        mean = rows.sum(axis=0) if len(rows) else np.ones(self.dimensions, np.float32)
        vector = (mean / np.linalg.norm(mean)).astype(np.float32)
        return Embedding(vector, rows, tuple(ids)) if tokens else Embedding(vector, rows[:0])

    def _word(self, number: int) -> NDArray[np.float32]:
        values = np.random.default_rng(number).normal(size=self.dimensions)
        return (values / np.linalg.norm(values)).astype(np.float32)
