"""Figures of a ranking: worked out by hand, and the same as established libraries give."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence

import ir_measures
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu
from sklearn.metrics import roc_auc_score

from hyce.evaluate.finding.ranking import (
    Ranking,
    accuracy,
    auc,
    f1,
    ndcg,
    precision,
    recall,
    reciprocal_rank,
)

At = Callable[[Ranking, int], float | None]
AT_K: tuple[At, ...] = (accuracy, precision, recall, f1, reciprocal_rank, ndcg)

many = settings(max_examples=200, deadline=None)


def ranked(*hits: Sequence[int], needs: int = 1) -> Ranking:
    return Ranking(tuple(frozenset(hit) for hit in hits), needs)


# -- by hand ---------------------------------------------------------------------------------------------

MIXED = ranked([0], [], [1], [0], [], needs=3)
"""Needs 0 and 1 are met at ranks 1 and 3, need 0 once more at 4, need 2 never."""
LATE = ranked([], [], [0])
BOTH_AT_SECOND = ranked([], [0, 1], needs=2)


@pytest.mark.parametrize(
    ("figure", "ranking", "k", "expected"),
    [
        (accuracy, MIXED, 1, 1),
        (accuracy, LATE, 2, 0),
        (accuracy, LATE, 3, 1),
        (precision, MIXED, 1, 1),
        (precision, MIXED, 3, 2 / 3),
        (precision, MIXED, 4, 3 / 4),
        (precision, MIXED, 10, 3 / 10),
        (recall, MIXED, 1, 1 / 3),
        (recall, MIXED, 4, 2 / 3),
        (recall, BOTH_AT_SECOND, 2, 1),
        (f1, MIXED, 3, 2 / 3),
        (f1, MIXED, 5, 12 / 19),  # of 3/5 and 2/3
        (f1, LATE, 2, 0),
        (reciprocal_rank, MIXED, 10, 1),
        (reciprocal_rank, LATE, 10, 1 / 3),
        (reciprocal_rank, LATE, 2, 0),
        (ndcg, LATE, 10, 0.5),
        (ndcg, LATE, 2, 0),
        (ndcg, MIXED, 10, (1 + 0.5) / (1 + 1 / math.log2(3) + 0.5)),
        (ndcg, MIXED, 1, 1),
        (ndcg, ranked([0, 1], needs=2), 1, 1),  # not more than the ideal, which meets one need with one hit
        (ndcg, ranked([0, 1], needs=2), 10, 1),  # as good as one after the other
        (ndcg, ranked([0], [1], needs=2), 10, 1),
        (ndcg, BOTH_AT_SECOND, 10, (2 / math.log2(3)) / (1 + 1 / math.log2(3))),
    ],
)
def test_figures_worked_out_by_hand(figure: At, ranking: Ranking, k: int, expected: float) -> None:
    assert figure(ranking, k) == pytest.approx(expected, abs=1e-12)


def test_reciprocal_rank_and_ndcg_look_at_ten_hits() -> None:
    tenth, eleventh = (ranked(*[[]] * before, [0]) for before in (9, 10))
    assert (reciprocal_rank(tenth), reciprocal_rank(eleventh)) == (1 / 10, 0)
    assert ndcg(tenth) == pytest.approx(1 / math.log2(11))
    assert ndcg(eleventh) == 0


@pytest.mark.parametrize("figure", AT_K)
def test_what_nothing_answers_has_no_figure(figure: At) -> None:
    assert figure(ranked([], [], needs=0), 5) is None
    assert figure(ranked(needs=0), 5) is None


@pytest.mark.parametrize("figure", AT_K)
def test_where_nothing_was_found_it_is_zero(figure: At) -> None:
    assert figure(ranked(needs=2), 5) == 0


def test_auc_worked_out_by_hand() -> None:
    # Of six pairs four are in order: 3 > 2, 3 > 0, 2 > 0, 1 > 0; 2 = 2 counts half.
    assert auc([3, 2, 1], [2, 0]) == 4.5 / 6
    assert auc([1, 2], [0]) == 1
    assert auc([0], [1, 2]) == 0
    assert auc([5, 5], [5, 5, 5]) == 0.5


def test_auc_of_one_class_is_not_defined() -> None:
    assert auc([], [1.0]) is None
    assert auc([1.0], []) is None
    assert auc([], []) is None


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_auc_refuses_what_is_no_finite_number(score: float) -> None:
    for positive, negative in (([score], [1.0]), ([1.0], [score]), ([score], [])):
        with pytest.raises(ValueError, match="finite"):
            auc(positive, negative)


# -- against libraries -----------------------------------------------------------------------------------


@st.composite
def binary_rankings(draw: st.DrawFn) -> Ranking:
    """Each relevant hit meets a need of its own, and some needs are never met: plain binary relevance."""
    relevant = draw(st.lists(st.booleans(), max_size=25))
    missed = draw(st.integers(0, 5))
    numbers = iter(range(len(relevant)))
    hits = [frozenset({next(numbers)}) if each else frozenset() for each in relevant]
    return Ranking(tuple(hits), sum(relevant) + missed)


@st.composite
def any_rankings(draw: st.DrawFn) -> Ranking:
    needs = draw(st.integers(1, 5))
    hits = draw(st.lists(st.frozensets(st.integers(0, needs - 1), max_size=needs), max_size=25))
    return Ranking(tuple(hits), needs)


def by_library(ranking: Ranking, measure: str) -> float:
    """ir_measures' figure: one document a hit, and one that was not found for each need that no hit meets."""
    found = {f"hit{n}": int(bool(hit)) for n, hit in enumerate(ranking.hits)}
    missed = ranking.needs - len(frozenset().union(*ranking.hits))
    relevant = {"question": found | {f"missed{n}": 1 for n in range(missed)}}
    scores = {"question": {name: float(-n) for n, name in enumerate(found)} or {"none": 0.0}}
    return float(
        ir_measures.calc_aggregate([ir_measures.parse_measure(measure)], relevant, scores).popitem()[1]
    )


@many
@given(binary_rankings().filter(lambda ranking: ranking.needs), st.integers(1, 30))
def test_figures_are_those_of_ir_measures(ranking: Ranking, k: int) -> None:
    for figure, measure in (
        (accuracy, "Success"),
        (precision, "P"),
        (recall, "R"),
        (ndcg, "nDCG"),
        (reciprocal_rank, "RR"),
    ):
        assert figure(ranking, k) == pytest.approx(by_library(ranking, f"{measure}@{k}"), abs=1e-9), measure
    both = [by_library(ranking, f"{measure}@{k}") for measure in ("P", "R")]
    assert f1(ranking, k) == pytest.approx(statistics.harmonic_mean(both), abs=1e-9)


@many
@given(any_rankings(), st.integers(1, 30))
def test_what_is_found_again_is_worth_nothing_but_precision(ranking: Ranking, k: int) -> None:
    """Hits that meet nothing new may as well be irrelevant, for all that counts needs."""
    seen: set[int] = set()
    new = []
    for hit in ranking.hits:
        new.append(hit - seen)
        seen |= hit
    without = Ranking(tuple(new), ranking.needs)
    for figure in (accuracy, recall, reciprocal_rank, ndcg):
        assert figure(ranking, k) == figure(without, k)
    assert (precision(ranking, k) or 0) >= (precision(without, k) or 0)
    if all(len(hit) <= 1 for hit in new):
        assert ndcg(ranking, k) == pytest.approx(by_library(without, f"nDCG@{k}"), abs=1e-9)


@many
@given(any_rankings(), st.integers(1, 30))
def test_every_figure_is_a_share(ranking: Ranking, k: int) -> None:
    for figure in AT_K:
        value = figure(ranking, k)
        assert value is not None
        assert 0 <= value <= 1 + 1e-12
    assert (recall(ranking, k) or 0) <= (recall(ranking, k + 1) or 0)
    assert (accuracy(ranking, k) == 1) == (reciprocal_rank(ranking, k) != 0) == (ndcg(ranking, k) != 0)


scores = st.lists(st.integers(-5, 5) | st.floats(-1e6, 1e6), min_size=1, max_size=40)


@many
@given(scores, scores)
def test_auc_is_that_of_scikit_learn_and_scipy(positive: list[float], negative: list[float]) -> None:
    found = auc(positive, negative)
    truth = [1] * len(positive) + [0] * len(negative)
    assert found == pytest.approx(roc_auc_score(truth, positive + negative), abs=1e-9)
    pairs = len(positive) * len(negative)
    assert found == pytest.approx(mannwhitneyu(positive, negative).statistic / pairs, abs=1e-9)
