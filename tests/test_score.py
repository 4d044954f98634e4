"""Scores are high for what an answer's texts say, and low for what is like none of them."""

import numpy as np
from word_embedder import WordEmbedder

from hyce.score import PENALTY, Likeness

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
