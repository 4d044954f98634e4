"""Intervals, tests and agreement: worked out by hand or published, and the same as libraries give."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import krippendorff
import numpy as np
import pytest
import statsmodels.stats.contingency_tables as tables
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from hyce.evaluate.statistics import McNemar, alpha, difference, interval, kappa, mcnemar, share_interval

some = settings(max_examples=100, deadline=None)

# -- intervals -------------------------------------------------------------------------------------------


def test_the_interval_of_a_share_is_the_binomials() -> None:
    """The mean of a sample drawn again from 50 ones and 50 zeros is binomial: 0.40 to 0.60 hold 95 %."""
    low, high = interval([0, 1] * 50, resamples=20_000)
    assert low == pytest.approx(stats.binom.ppf(0.025, 100, 0.5) / 100, abs=0.011)
    assert high == pytest.approx(stats.binom.ppf(0.975, 100, 0.5) / 100, abs=0.011)
    assert (low, high) == pytest.approx((0.4, 0.6), abs=0.011)


def test_intervals_that_can_be_told_without_drawing() -> None:
    assert interval([0.5] * 7) == (0.5, 0.5)
    assert interval([1.0]) == (1, 1)
    # The mean of two draws from 0 and 1 is 0 or 1 with a chance of a quarter each.
    assert interval([0, 1]) == (0, 1)
    assert interval([0, 1], level=0.4) == (0.5, 0.5)


@pytest.mark.parametrize("count", [1, 3, 60])
def test_like_shares_have_the_exact_interval(count: int) -> None:
    theirs = stats.binomtest(count, count).proportion_ci(0.95, "exact")
    assert share_interval([1.0] * count) == pytest.approx((theirs.low, theirs.high))
    assert share_interval([0.0] * count) == pytest.approx((1 - theirs.high, 1 - theirs.low))
    assert share_interval([0.5] * count) == (0.5, 0.5)
    assert share_interval([0.0, 1.0] * count) == interval([0.0, 1.0] * count)


def test_the_seed_decides() -> None:
    values = np.random.default_rng(1).random(40).tolist()
    assert interval(values) == interval(values) == interval(values, seed=0)
    assert interval(values) != interval(values, seed=1)


def test_a_higher_level_is_wider_and_more_values_narrower() -> None:
    values = np.random.default_rng(2).random(30).tolist()
    (low, high), (lower, higher) = interval(values), interval(values, level=0.99)
    assert lower < low < sum(values) / 30 < high < higher
    low_of_many, high_of_many = interval(values * 9)
    assert high_of_many - low_of_many == pytest.approx((high - low) / 3, rel=0.1)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=60), st.integers(0, 99), st.sampled_from([0.9, 0.95]))
def test_the_interval_is_scipys(values: list[float], seed: int, level: float) -> None:
    """The same percentiles of the same samples, drawn from a generator in the same state."""
    theirs = stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=500,
        confidence_level=level,
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    assert interval(values, level=level, resamples=500, seed=seed) == pytest.approx(tuple(theirs), abs=1e-9)


def test_large_samples_are_drawn_in_steps() -> None:
    """As it would be in one go; 3000 values in 2000 samples would take 48 MB at once."""
    values = np.random.default_rng(3).normal(size=3000)
    low, high = interval(values.tolist())
    error = float(values.std()) / math.sqrt(3000)
    assert low == pytest.approx(values.mean() - 1.96 * error, abs=error / 4)
    assert high == pytest.approx(values.mean() + 1.96 * error, abs=error / 4)


def test_the_interval_holds_the_true_mean_as_often_as_it_says() -> None:
    generator = np.random.default_rng(4)
    held = 0
    for seed in range(300):
        low, high = interval((generator.random(60) < 0.7).astype(float).tolist(), resamples=400, seed=seed)
        held += low <= 0.7 <= high
    assert 0.90 <= held / 300 <= 0.98


@pytest.mark.parametrize("values", [[], [0.5, math.nan], [math.inf]])
def test_no_interval_without_finite_values(values: list[float]) -> None:
    with pytest.raises(ValueError, match="value"):
        interval(values)
    with pytest.raises(ValueError, match="value"):
        difference(values, [0.0] * len(values))


# -- differences -----------------------------------------------------------------------------------------


def test_the_difference_is_the_firsts_gain_question_by_question() -> None:
    values = [0.1, 0.9, 0.4, 0.7]
    assert difference([value + 0.25 for value in values], values) == pytest.approx((0.25, 0.25, 0.25))
    assert difference([1, 1, 0, 1], [1, 0, 0, 0])[0] == 0.5
    assert difference([0, 0], [1, 1]) == (-1, -1, -1)


@some
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=30))
def test_the_other_way_round_the_difference_changes_its_sign(pairs: list[tuple[float, float]]) -> None:
    first, second = zip(*pairs, strict=True)
    mean, low, high = difference(first, second, resamples=200)
    back, back_low, back_high = difference(second, first, resamples=200)
    assert (mean, low, high) == pytest.approx((-back, -back_high, -back_low), abs=1e-9)
    assert low - 1e-9 <= high
    assert (low, high) == interval([a - b for a, b in pairs], resamples=200)


def test_differences_are_of_the_same_questions() -> None:
    with pytest.raises(ValueError, match="argument"):
        difference([1, 0], [1])
    with pytest.raises(ValueError, match="argument"):
        mcnemar([True, False], [True])
    with pytest.raises(ValueError, match="argument"):
        kappa([1, 0], [1])


# -- McNemar ---------------------------------------------------------------------------------------------


def outcomes(both: int, first: int, second: int, neither: int) -> tuple[list[bool], list[bool]]:
    pairs = [(True, True)] * both + [(True, False)] * first + [(False, True)] * second
    pairs += [(False, False)] * neither
    random.Random(5).shuffle(pairs)
    return [one for one, _ in pairs], [other for _, other in pairs]


def test_mcnemar_worked_out_by_hand() -> None:
    # Of 12 fair throws at most 2: (1 + 12 + 66) / 4096, and as much on the other side.
    assert mcnemar(*outcomes(50, 10, 2, 7)) == McNemar(10, 2, 158 / 4096)
    assert mcnemar(*outcomes(0, 0, 5, 0)) == McNemar(0, 5, 2 / 32)
    assert mcnemar(*outcomes(3, 4, 4, 3)) == McNemar(4, 4, 1)
    assert mcnemar(*outcomes(3, 0, 0, 3)) == McNemar(0, 0, 1)
    assert mcnemar([], []) == McNemar(0, 0, 1)


@some
@given(*[st.integers(0, 60)] * 4)
def test_mcnemar_is_that_of_statsmodels_and_scipy(both: int, first: int, second: int, neither: int) -> None:
    found = mcnemar(*outcomes(both, first, second, neither))
    assert (found.only_first, found.only_second) == (first, second)
    if first + second:
        theirs = tables.mcnemar([[both, first], [second, neither]], exact=True)
        assert found.p == pytest.approx(theirs.pvalue, abs=1e-12)
        assert found.p == pytest.approx(stats.binomtest(first, first + second).pvalue, abs=1e-9)


def test_mcnemar_of_very_many_questions() -> None:
    first, second = outcomes(0, 3000, 2700, 0)
    assert mcnemar(first, second).p == pytest.approx(stats.binomtest(2700, 5700).pvalue, rel=1e-9)
    assert mcnemar([True] * 5000, [False] * 5000).p == 0


# -- agreement -------------------------------------------------------------------------------------------


def test_kappa_worked_out_by_hand() -> None:
    # 35 of 50 alike; by chance 25/50 x 30/50 + 25/50 x 20/50 = 1/2: (0.7 - 0.5) / (1 - 0.5).
    pairs = [(1, 1)] * 20 + [(1, 0)] * 5 + [(0, 1)] * 10 + [(0, 0)] * 15
    assert kappa(*zip(*pairs, strict=True)) == pytest.approx(0.4, abs=1e-12)
    assert kappa([0, 1], [0, 1]) == 1
    assert kappa([0, 1], [1, 0]) == -1
    assert kappa([1, 1, 1, 1], [1, 1, 0, 0]) == 0, "who always says the same agrees as by chance"


def test_kappa_is_not_defined_where_both_always_say_the_same() -> None:
    assert kappa([], []) is None
    assert kappa([1, 1, 1], [1, 1, 1]) is None
    assert kappa([1], [1]) is None
    assert kappa([1, 1], [0, 0]) == 0, "they never agree, nor would chance"


ratings = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40)


@some
@given(ratings)
def test_kappa_is_that_of_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    assume(len({rating for pair in pairs for rating in pair}) > 1)
    first, second = zip(*pairs, strict=True)
    assert kappa(first, second) == pytest.approx(cohen_kappa_score(first, second), abs=1e-9)


PUBLISHED = [
    [1, 1, 1], [2, 2, 3, 2], [3, 3, 3, 3], [3, 3, 3, 3], [2, 2, 2, 2], [1, 2, 3, 4],
    [4, 4, 4, 4], [1, 1, 2, 1], [2, 2, 2, 2], [5, 5, 5], [1, 1], [3],
]  # fmt: skip
"""Krippendorff 2011, section C: four observers, twelve units, some of them not rated by all."""


def test_alpha_as_published_and_worked_out_by_hand() -> None:
    assert alpha(PUBLISHED) == pytest.approx(0.743, abs=0.0005)
    # Section A: of ten pairs four differ; 14 zeros and 6 ones: 1 - 19 x 4 / (14 x 6).
    pairs = [(0, 0)] * 5 + [(1, 1)] + [(0, 1)] * 3 + [(1, 0)]
    assert alpha(pairs) == pytest.approx(1 - 76 / 84, abs=1e-12)
    assert alpha([[1, 1, 1], [0, 0]]) == 1
    assert alpha([[0, 1], [1, 0]]) == -0.5, "worse than chance"


def test_one_rating_alone_tells_nothing() -> None:
    assert alpha([*PUBLISHED, [5], [2], []]) == alpha(PUBLISHED)
    assert alpha([[1], [0]]) is None
    assert alpha([]) is None


def test_alpha_is_not_defined_where_all_ratings_are_alike() -> None:
    assert alpha([[1, 1, 1], [1, 1]]) is None
    assert alpha([[1, 1], [0]]) is None, "the 0 is left out"


@some
@given(st.lists(st.lists(st.integers(0, 3), max_size=5), min_size=1, max_size=25), st.randoms())
def test_alpha_is_krippendorffs_in_any_order(units: list[list[int]], order: random.Random) -> None:
    found = alpha(units)
    paired = {rating for unit in units if len(unit) > 1 for rating in unit}
    assert (found is None) == (len(paired) < 2)
    if found is None:
        return
    counts = np.array([[unit.count(rating) for rating in range(4)] for unit in units if len(unit) > 1])
    theirs = krippendorff.alpha(value_counts=counts, level_of_measurement="nominal")
    assert found == pytest.approx(theirs, abs=1e-9)
    shuffled: list[Sequence[int]] = [order.sample(unit, len(unit)) for unit in units]
    order.shuffle(shuffled)
    assert alpha(shuffled) == pytest.approx(found, abs=1e-12)
