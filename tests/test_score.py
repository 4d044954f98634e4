"""Scores are high for what an answer's texts say, and low for what is like none of them."""

import numpy as np
from word_embedder import WordEmbedder

from hyce.score import BACKGROUND, ENOUGH, PENALTY, Array, Likeness, background, stretched

TEXTS = ["list jobs", "jobs queued", "running jobs", "disk quota"]
ANSWERS = np.array([0, 0, 0, 1], np.int64)


def scores(questions: list[str]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    embedder = WordEmbedder(dimensions=256)

    def vectors(texts: list[str]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        return np.stack([row.vector for row in embedder.embed(texts)])

    likeness = Likeness(TEXTS, vectors(TEXTS))
    weights = likeness.fit(ANSWERS, 2)
    assert weights.shape == (likeness.rows, 2)
    return likeness.scores(questions, vectors(questions), weights)


def test_a_known_text_has_the_score_of_ridge_regression() -> None:
    embedder = WordEmbedder(dimensions=256)
    (row,) = embedder.embed(["only"])
    likeness = Likeness(["only"], row.vector[None])
    (score,) = likeness.scores(["only"], row.vector[None], likeness.fit(np.array([0]), 1))[0]
    assert abs(score - 1 / (1 + PENALTY)) < 1e-5


def test_the_answer_whose_texts_are_like_the_question_scores_highest() -> None:
    jobs, quota, nothing = scores(["queued jobs please", "my disk quota", "penguins"])
    assert jobs[0] > 0.5 > jobs[1]
    assert quota[1] > 0.5 > quota[0]
    assert np.abs(nothing).max() < 0.2


def test_words_that_no_text_holds_count_for_nothing() -> None:
    assert np.isfinite(scores(["", "?!", "xyzzy 12345"])).all()


def some_vectors(count: int) -> Array:
    """Unit vectors that lean in one direction, as a model's do."""
    values = np.random.default_rng(0).normal(size=(count, 64)) + 0.3
    unit: Array = (values / np.linalg.norm(values, axis=1, keepdims=True)).astype(np.float32)
    return unit


def squeezed(vectors: Array) -> Array:
    """As another model would have them whose cosines are all between 0.7 and 1."""
    common = np.full((len(vectors), 1), np.sqrt(0.7))
    rows: Array = np.concatenate([vectors * np.sqrt(0.3), common], axis=1).astype(np.float32)
    return rows


def test_the_background_is_the_mean_cosine_of_two_texts() -> None:
    vectors = some_vectors(ENOUGH)
    cosines = vectors.astype(np.float64) @ vectors.T
    expected = cosines[~np.eye(len(vectors), dtype=bool)].mean()
    assert abs(background(vectors) - expected) < 1e-6
    assert background(vectors[: ENOUGH - 1]) == BACKGROUND, "so few tell nothing of a model"


def test_cosines_come_on_one_scale() -> None:
    cosine = np.array([1, 0.7, 0.85], np.float32)
    assert np.allclose(stretched(cosine, 0.7), [1, BACKGROUND, (1 + BACKGROUND) / 2], atol=1e-6)
    assert np.allclose(stretched(cosine, BACKGROUND), cosine)


def test_a_model_whose_cosines_are_all_high_scores_alike() -> None:
    texts = [f"text {number}" for number in range(ENOUGH)]
    answers = np.arange(len(texts)) % 5
    asked = some_vectors(ENOUGH + 20)[ENOUGH:]
    found = []
    for change in (lambda rows: rows, squeezed):
        likeness = Likeness(texts, change(some_vectors(ENOUGH)))
        weights = likeness.fit(answers, 5)
        found.append(likeness.scores(["?"] * 20, change(asked), weights))
    assert np.allclose(found[0], found[1], atol=1e-3)
