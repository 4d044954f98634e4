"""What orders the candidates: late interaction, or a model that reads question and passage together.

Late interaction: candidates ordered by how well each word of the question is met somewhere in them.

Khattab and Zaharia 2020 (ColBERT), eq. 3: the sum over the question's tokens of the largest similarity to
any token of the passage. Here with the token vectors of the embedding model itself, so there is no second
model to load.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hyce.config import Config, models_folder

TokenVectors = tuple[NDArray[np.int8], NDArray[np.float32], NDArray[np.int32]]
"""A passage's token vectors: int8 (n, d), a scale for each row (n,), vocabulary ids (n,)."""


class Reranker(Protocol):
    """A model that reads question and passage together."""

    def score(self, question: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape (len(texts),): the higher, the better the text answers the question."""
        ...


def open_reranker(config: Config) -> Reranker | None:
    """The model that orders candidates where retrieval.rerank names one, else None.

    Raises ModelError, ConfigError or PolicyError, with the remedy.
    """
    if config.retrieval.rerank == "cross-encoder":
        from hyce.cross_encoder import OnnxCrossEncoder
        from hyce.models import find

        files = find(
            config.reranker.name,
            config.reranker.precision,
            models_folder(config, config.reranker.name),
            "cross-encoder",
        )
        return OnnxCrossEncoder(files, config.model.threads)
    if config.retrieval.rerank == "endpoint":
        from hyce.served_reranker import ServedReranker

        return ServedReranker(config)
    return None


def late_interaction(
    question: NDArray[np.float32],
    passages: Sequence[TokenVectors],
    weights: NDArray[np.float32] | None = None,
) -> NDArray[np.float32]:
    """Score of each passage: the weighted mean, over the question's tokens, of the largest cosine.

    question: (m, d) unit vectors. weights: (m,) positive, one for each of the question's tokens.
    Returns (len(passages),), each -1 to 1. A passage without token vectors scores -1.
    """
    scores = np.full(len(passages), -1.0, dtype=np.float32)
    weights = np.ones(len(question), dtype=np.float32) if weights is None else weights
    if not len(question):
        return scores
    # One passage at a time stays in the processor's cache; all of them in one matrix take longer.
    for i, (vectors, scales, _) in enumerate(passages):
        if len(vectors):
            similarity = (vectors.astype(np.float32) @ question.T) * scales[:, None]  # (tokens, m)
            scores[i] = similarity.max(axis=0) @ weights / weights.sum()
    return scores
