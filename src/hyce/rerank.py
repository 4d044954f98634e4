"""Late interaction: candidates ordered by how well each word of the question is met somewhere in them.

Khattab and Zaharia 2020 (ColBERT), eq. 3: the sum over the question's tokens of the largest similarity to
any token of the passage. Here with the token vectors of the embedding model itself, so there is no second
model to load.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

TokenVectors = tuple[NDArray[np.int8], NDArray[np.float32], NDArray[np.int32]]
"""A passage's token vectors: int8 (n, d), a scale for each row (n,), vocabulary ids (n,)."""


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
    filled = [i for i, (vectors, _, _) in enumerate(passages) if len(vectors)]
    if not filled or not len(question):
        return scores
    stacked = np.concatenate([passages[i][0] for i in filled]).astype(np.float32)
    scales = np.concatenate([passages[i][1] for i in filled])
    similarity = (stacked @ question.T) * scales[:, None]  # (all tokens, m)
    starts = np.cumsum([0] + [len(passages[i][0]) for i in filled[:-1]])
    best = np.maximum.reduceat(similarity, starts, axis=0)  # (passages, m)
    weights = np.ones(len(question), dtype=np.float32) if weights is None else weights
    scores[filled] = best @ weights / weights.sum()
    return scores
