"""How sure a figure is, whether two differ, and how far judges agree.

The questions are the sample: a value is one question's, and several passes over the same question are
averaged first, because they are not independent of each other.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2000
_AT_ONCE = 2_000_000
"""Values drawn in one step: 16 MB."""


@dataclass(frozen=True, slots=True)
class McNemar:
    """Two ways to answer the same questions, compared by the questions in which they differ."""

    only_first: int
    """Questions that the first alone has right."""
    only_second: int
    p: float
    """Probability of a difference at least as large if both were equally good; two-sided."""


def interval(
    values: Sequence[float], *, level: float = 0.95, resamples: int = RESAMPLES, seed: int = 0
) -> tuple[float, float]:
    """(low, high) of the mean: the percentiles of the means of samples drawn again from the values.

    values: one for each question. Percentile bootstrap (Efron and Tibshirani 1993, chapter 13); the same
    values in the same order and the same seed give the same interval. It says how much the mean depends on
    which questions were asked; with few of them it is too narrow, and where all values are alike it says
    nothing (for shares, see share_interval). Raises ValueError where there is no value, or one that is no
    finite number.
    """
    means = _means(_finite(values), resamples, seed)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def share_interval(
    values: Sequence[float], *, level: float = 0.95, resamples: int = RESAMPLES, seed: int = 0
) -> tuple[float, float]:
    """(low, high) of the mean of values from 0 to 1, also where all are 1 or all are 0.

    Drawing from like values again gives no spread, however few there are: three right answers of three would
    seem certain. There it is the exact binomial interval (Clopper and Pearson 1934), which has a closed form
    at its ends; everywhere else that of `interval`.
    """
    low, high = interval(values, level=level, resamples=resamples, seed=seed)
    if low == high and low in (0.0, 1.0):
        least = ((1 - level) / 2) ** (1 / len(values))
        return (least, 1.0) if high else (0.0, 1 - least)
    return low, high


def difference(
    first: Sequence[float],
    second: Sequence[float],
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[float, float, float]:
    """(mean, low, high) of first - second, question by question, with its bootstrap interval.

    The two hold the same questions in the same order. Raises ValueError as `interval` does, and where one is
    longer.
    """
    values = [one - other for one, other in zip(first, second, strict=True)]
    return float(_finite(values).mean()), *interval(values, level=level, resamples=resamples, seed=seed)


def mcnemar(first: Sequence[bool], second: Sequence[bool]) -> McNemar:
    """Whether two ways that are right or wrong about the same questions differ: McNemar's test, exact.

    p is twice the smaller tail of the binomial with 1/2, at most 1 (McNemar 1947; exact as in Fagerland,
    Lydersen and Laake 2013); 1 where they differ in no question. Raises ValueError where one is longer.
    """
    pairs = Counter((bool(one), bool(other)) for one, other in zip(first, second, strict=True))
    only_first, only_second = pairs[True, False], pairs[False, True]
    differ = only_first + only_second
    tail = sum(math.comb(differ, count) for count in range(min(only_first, only_second) + 1))
    return McNemar(only_first, only_second, min(1.0, 2 * tail / 2**differ))


def kappa(first: Sequence[int], second: Sequence[int]) -> float | None:
    """Agreement of two raters beyond chance: 1 where they always agree, 0 as by chance, below 0 less often.

    Cohen 1960, "A coefficient of agreement for nominal scales", unweighted. None where nothing is rated, or
    where both gave one and the same rating to all: chance would agree as often, and the coefficient is 0 / 0.
    Raises ValueError where one is longer.
    """
    count = len(first)
    agreed = sum(one == other for one, other in zip(first, second, strict=True))
    ours, theirs = Counter(first), Counter(second)
    by_chance = sum(ours[rating] * theirs[rating] for rating in ours)  # times count, so that it is whole
    if by_chance == count * count:
        return None
    return (count * agreed - by_chance) / (count * count - by_chance)


def alpha(units: Sequence[Sequence[int]]) -> float | None:
    """Agreement of several ratings of each unit beyond chance: 1 always, 0 as by chance, below 0 less often.

    units: of each item that was rated, its ratings, in any order and number; one with a single rating can't
    agree with anything and is left out. Krippendorff's alpha with the nominal metric (Krippendorff 2011,
    "Computing Krippendorff's alpha-reliability"). None where no unit is left, or where all ratings are alike:
    without variation nothing tells agreement from a rater who always says the same, and alpha is 1 - 0 / 0.
    """
    rated = [Counter(unit) for unit in units if len(unit) > 1]
    totals: Counter[int] = sum(rated, Counter())
    pairs = _unlike(totals)
    if not pairs:
        return None
    disagreed = sum(_unlike(unit) / (unit.total() - 1) for unit in rated)
    return 1 - (totals.total() - 1) * disagreed / pairs


def _unlike(ratings: Counter[int]) -> int:
    """Ordered pairs of ratings that differ."""
    return ratings.total() ** 2 - sum(count * count for count in ratings.values())


def _means(values: NDArray[np.float64], resamples: int, seed: int) -> NDArray[np.float64]:
    """The mean of each sample, drawn with replacement and as large as the values; shape (resamples,)."""
    random = np.random.default_rng(seed)
    means = np.empty(resamples)
    step = max(1, _AT_ONCE // len(values))
    for start in range(0, resamples, step):
        part = means[start : start + step]
        part[:] = values[random.integers(len(values), size=(len(part), len(values)))].mean(axis=1)
    return means


def _finite(values: Sequence[float]) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if not array.size:
        raise ValueError("there is no value to take the mean of")
    if not np.isfinite(array).all():
        raise ValueError("a value is no finite number")
    return array
