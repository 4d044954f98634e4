"""Late interaction is the weighted mean of each question token's best cosine."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from hyce.rerank import TokenVectors, late_interaction

Matrix = NDArray[np.float32]


def unit_rows(random: np.random.Generator, rows: int, dimensions: int) -> Matrix:
    values = random.normal(size=(rows, dimensions))
    unit: Matrix = (values / np.linalg.norm(values, axis=1, keepdims=True)).astype(np.float32)
    return unit


def stored(rows: Matrix) -> TokenVectors:
    """Rows as an index keeps them: int8 and a scale for each."""
    scales = (np.abs(rows).max(axis=1) / 127).astype(np.float32).reshape(len(rows))
    values = np.round(rows / scales[:, None]).astype(np.int8)
    return values, scales, np.arange(len(rows), dtype=np.int32)


def empty(dimensions: int) -> TokenVectors:
    return np.empty((0, dimensions), np.int8), np.empty(0, np.float32), np.empty(0, np.int32)


def naive(question: Matrix, passages: list[TokenVectors], weights: Matrix | None) -> list[float]:
    scores = []
    for values, scales, _ in passages:
        total = 0.0
        for i, token in enumerate(question):
            cosines = [float(np.dot(token, row * scale)) for row, scale in zip(values, scales, strict=True)]
            total += max(cosines, default=-1.0) * (1.0 if weights is None else float(weights[i]))
        scores.append(total / (len(question) if weights is None else float(weights.sum())))
    return scores


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_what_a_plain_loop_computes(seed: int, weighted: bool) -> None:
    random = np.random.default_rng(seed)
    question = unit_rows(random, int(random.integers(1, 9)), 12)
    passages = [
        stored(unit_rows(random, n, 12)) if n else empty(12)
        for n in random.integers(0, 7, size=int(random.integers(1, 9)))
    ]
    weights = random.uniform(0.1, 4, size=len(question)).astype(np.float32) if weighted else None
    scores = late_interaction(question, passages, weights)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, naive(question, passages, weights), atol=1e-5)


def test_a_passage_that_holds_the_question_scores_1() -> None:
    question = unit_rows(np.random.default_rng(1), 5, 64)
    more = np.concatenate([unit_rows(np.random.default_rng(2), 3, 64), question])
    same, other = late_interaction(question, [stored(more), stored(more[:3])])
    assert same == pytest.approx(1.0, abs=0.01)
    assert other < 0.7


def test_a_tokens_weight_is_its_share_in_the_score() -> None:
    question = np.eye(2, 3, dtype=np.float32)
    passages = [stored(np.eye(1, 3, 0, np.float32)), stored(np.eye(1, 3, 1, np.float32))]
    weights = np.array([3, 1], np.float32)
    np.testing.assert_allclose(late_interaction(question, passages, weights), [0.75, 0.25], atol=1e-6)
    np.testing.assert_allclose(late_interaction(question, passages), [0.5, 0.5], atol=1e-6)
    np.testing.assert_allclose(late_interaction(question, passages, 7 * weights), [0.75, 0.25], atol=1e-6)


def test_passages_without_token_vectors_score_lowest_wherever_they_stand() -> None:
    question = np.eye(1, 3, dtype=np.float32)
    against = stored(-np.eye(1, 3, 0, np.float32))
    near = stored(np.eye(1, 3, 0, np.float32))
    scores = late_interaction(question, [empty(3), near, empty(3), empty(3), against, empty(3)])
    np.testing.assert_allclose(scores, [-1, 1, -1, -1, -1, -1], atol=1e-6)


def test_without_passages_or_question_there_is_nothing_to_compare() -> None:
    question = np.eye(1, 3, dtype=np.float32)
    assert late_interaction(question, []).shape == (0,)
    assert late_interaction(question, [empty(3)]).tolist() == [-1]
    assert late_interaction(question[:0], [stored(question), empty(3)]).tolist() == [-1, -1]
