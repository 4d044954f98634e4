"""How well each entry of the catalogue answers a question, learnt from the texts that each stands for.

Every text has one answer: its entry, or none where only documentation answers it. A question's scores are
weighted sums of its likeness to every text, so that an entry is judged by all its texts and by those of its
neighbours. The weights are those of ridge regression on that likeness (kernel ridge regression), in closed
form, from whatever the catalogue holds:

    likeness   0.8 of it by meaning:  (exp(2 cos) - 1) / (exp(2) - 1), cos between the vectors, stretched
                                      so that texts taken at random are as far apart as for the model
                                      that the constants were chosen with
               0.2 of it by words:    cosine of the sets of words, rare words counting more (idf)
    weights    (likeness of the texts to each other + penalty)^-1 @ answers; a lower penalty for the texts of
               an answer that has few

A score is near 1 where a question says what an answer's texts say, near 0 where it is like none of them.
The constants were chosen on benchmarks/data/routing_held.jsonl (benchmarks/routing.py).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

BEND = 2.0
"""How much more near neighbours count than far ones."""
WORDS = 0.2
PENALTY = 0.1
BALANCE = 0.6
"""How much of the advantage of an answer with many texts is taken away, 0 to 1."""

BACKGROUND = 0.1
"""Mean cosine of two texts of the built-in catalogue with all-MiniLM-L6-v2. Models differ in it by far more
than in what they find alike: with some no two texts have a cosine below 0.7."""
ENOUGH = 200
"""Texts from which their mean cosine says something of the model, not of what they are about."""

Array = NDArray[np.float32]

_WORD = re.compile(r"[a-z]+|\d+")


class Likeness:
    """Of questions to the texts of a catalogue, and the answers' scores that follow from it."""

    def __init__(self, texts: Sequence[str], vectors: Array) -> None:
        counts = Counter(word for text in texts for word in _words(text))
        self._columns = {word: column for column, word in enumerate(counts)}
        self._rarity = np.log((len(texts) + 1) / (np.array([*counts.values()], np.float32) + 0.5))
        self._texts = texts
        self._vectors = vectors
        self.background = background(vectors)

    @property
    def rows(self) -> int:
        """How many rows the weights have: one for each text, then one for each word."""
        return len(self._texts) + len(self._columns)

    def fit(self, answers: NDArray[np.int64], count: int) -> Array:
        """Weights of shape (rows, count); answers: for each text which of the `count` answers it has."""
        words = self._word_vectors(self._texts)
        likeness = (1 - WORDS) * self._meaning(self._vectors) + WORDS * (words @ words.T)
        of_each = np.bincount(answers, minlength=count)
        penalty = PENALTY * (of_each[answers] / of_each[of_each > 0].mean()) ** BALANCE
        wanted = np.zeros((len(answers), count), np.float32)
        wanted[np.arange(len(answers)), answers] = 1
        likeness[np.diag_indices_from(likeness)] += penalty
        by_text = np.linalg.solve(likeness, wanted)
        return np.vstack([(1 - WORDS) * by_text, WORDS * (words.T @ by_text)]).astype(np.float32)

    def scores(self, questions: Sequence[str], vectors: Array, weights: Array) -> Array:
        """Shape (questions, answers); weights: what fit() gave for the same texts."""
        by_text, by_word = weights[: len(self._texts)], weights[len(self._texts) :]
        meaning = self._meaning(vectors) @ by_text
        scores: Array = meaning + self._word_vectors(questions) @ by_word
        return scores

    def _meaning(self, vectors: Array) -> Array:
        return _bent(stretched(vectors @ self._vectors.T, self.background))

    def _word_vectors(self, texts: Sequence[str]) -> Array:
        """Shape (texts, words), each row of length 1, or 0 where no word is known."""
        rows = np.zeros((len(texts), len(self._columns)), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in _words(text):
                if word in self._columns:
                    row[self._columns[word]] = self._rarity[self._columns[word]]
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
        return rows


def background(vectors: Array) -> float:
    """The mean cosine of two of the vectors, which have length 1; BACKGROUND where they are few."""
    count = len(vectors)
    if count < ENOUGH:
        return BACKGROUND
    total = vectors.sum(axis=0, dtype=np.float64)
    # Each one's cosine with itself, 1, is in the sum and doesn't count.
    return min(float(total @ total - count) / (count * (count - 1)), 0.99)


def stretched(cosine: Array, background: float) -> Array:
    """Cosines on the scale of the constants: 1 stays 1, the model's background becomes BACKGROUND."""
    scaled: Array = 1 - (1 - cosine) * np.float32((1 - BACKGROUND) / (1 - background))
    return scaled


def unstretched(cosine: float, background: float) -> float:
    """The model's own cosine for one on the scale of the constants: what stretched() takes back."""
    return 1 - (1 - cosine) * (1 - background) / (1 - BACKGROUND)


def _bent(cosine: Array) -> Array:
    bent: Array = np.expm1(BEND * cosine) / np.float32(np.expm1(BEND))
    return bent


def _words(text: str) -> list[str]:
    """Each word once, in the order of the text: sums of floats depend on their order."""
    return list(dict.fromkeys(_WORD.findall(text.lower())))
