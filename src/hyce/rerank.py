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
    weights = np.ones(len(question), dtype=np.float32) if weights is None else weights
    if not len(question):
        return scores
    # One passage at a time stays in the processor's cache; all of them in one matrix take longer.
    for i, (vectors, scales, _) in enumerate(passages):
        if len(vectors):
            similarity = (vectors.astype(np.float32) @ question.T) * scales[:, None]  # (tokens, m)
            scores[i] = similarity.max(axis=0) @ weights / weights.sum()
    return scores
