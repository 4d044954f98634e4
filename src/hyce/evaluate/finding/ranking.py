"""How good a ranking is: accuracy, precision, recall, F1, reciprocal rank, nDCG and AUC.

What is relevant is told by needs, not by passages: a question has one need, or several where it needs all of
its evidence, and a passage is relevant that meets one of them. The same words found twice meet a need once.
So recall, nDCG and accuracy count the needs that a hit is the first to meet; precision, which asks how much
of what was read was of use, counts every relevant hit.

Each function gives a number from 0 to 1, or None where the figure is not defined: there is nothing relevant
to find, or only one of the two classes that are to be told apart. None is left out of a mean, and counted.
Where every relevant passage is a need of its own and meets no other, the figures are those of trec_eval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

DEPTH = 10
"""How many hits the reciprocal rank and nDCG look at."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Hits in their order, told by what they are good for."""

    hits: tuple[frozenset[int], ...]
    """Of each, best first, the needs that it meets, numbered from 0; empty for an irrelevant one."""
    needs: int
    """How many the question has; 0 where no passage answers it."""

    def met(self, k: int) -> list[int]:
        """The ranks, from 1 to k, at which a need was met for the first time; one a need, ascending."""
        seen: set[int] = set()
        ranks: list[int] = []
        for rank, hit in enumerate(self.hits[:k], 1):
            ranks += [rank] * len(hit - seen)
            seen |= hit
        return ranks


def accuracy(ranking: Ranking, k: int) -> float | None:
    """1 where a relevant hit is among the first k, else 0.

    Top-k accuracy of Karpukhin et al. 2020, "Dense Passage Retrieval", also called success or hit rate.
    """
    return float(bool(ranking.met(k))) if ranking.needs else None


def precision(ranking: Ranking, k: int) -> float | None:
    """How many of the first k hits are relevant, divided by k, also where fewer were found (trec_eval, P)."""
    return sum(map(bool, ranking.hits[:k])) / k if ranking.needs else None


def recall(ranking: Ranking, k: int) -> float | None:
    """The share of the needs that the first k hits meet."""
    return len(ranking.met(k)) / ranking.needs if ranking.needs else None


def f1(ranking: Ranking, k: int) -> float | None:
    """Harmonic mean of precision and recall at k (van Rijsbergen 1979, chapter 7); 0 where both are."""
    exact, complete = precision(ranking, k), recall(ranking, k)
    if exact is None or complete is None:
        return None
    return 2 * exact * complete / (exact + complete) if exact + complete else 0.0


def reciprocal_rank(ranking: Ranking, k: int = DEPTH) -> float | None:
    """1 divided by the rank of the first relevant hit, 0 where it is not among the first k.

    Voorhees 1999, "The TREC-8 Question Answering Track Report".
    """
    if not ranking.needs:
        return None
    return next((1 / rank for rank in ranking.met(k)), 0.0)


def ndcg(ranking: Ranking, k: int = DEPTH) -> float | None:
    """Discounted gain of the first k hits, divided by that of an ideal ranking, which meets a need a rank.

    Järvelin and Kekäläinen 2002, "Cumulated gain-based evaluation of IR techniques", with the logarithm of
    rank + 1 to the base 2; a gain is a need met for the first time (as in Clarke et al. 2008, "Novelty and
    diversity in information retrieval evaluation", with alpha = 1). A hit that meets two needs is worth as
    much as two hits in a row would be at best, so that no ranking exceeds the ideal one.
    """
    if not ranking.needs:
        return None
    best = min(k, ranking.needs)
    gained = sum(_discount(max(rank, number)) for number, rank in enumerate(ranking.met(k)[:best], 1))
    return gained / sum(_discount(rank) for rank in range(1, best + 1))


def auc(positive: Sequence[float], negative: Sequence[float]) -> float | None:
    """The chance that a positive's score is above a negative's, ties counted half; 0.5 is guessing.

    Area under the ROC curve as Mann and Whitney's U divided by the pairs (Hanley and McNeil 1982). None where
    either is empty. Raises ValueError for a score that is no finite number.
    """
    high, low = np.asarray(positive, dtype=np.float64), np.sort(np.asarray(negative, dtype=np.float64))
    if not (np.isfinite(high).all() and np.isfinite(low).all()):
        raise ValueError("a score is no finite number")
    if not high.size or not low.size:
        return None
    below, not_above = np.searchsorted(low, high, "left"), np.searchsorted(low, high, "right")
    return float(below.sum() + not_above.sum()) / (2 * high.size * low.size)


def _discount(rank: int) -> float:
    return 1 / math.log2(rank + 1)
