"""Figures over questions, with their intervals: over all of them, and by kind.

Intervals are of a percentile bootstrap over the questions (Efron and Tibshirani 1993, chapter 13): what is
drawn anew is a question with all that came of it, so that a figure that pools several values of a question
doesn't look surer than it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from hyce.evaluate import statistics
from hyce.evaluate.records import Question

ALL = "all"
"""The group of all questions; the others are named after their kinds."""

LEVEL, SEED = 0.95, 0

Values = NDArray[np.float64]


class Asked(Protocol):
    """What came of a question."""

    @property
    def question(self) -> Question: ...


A = TypeVar("A", bound=Asked)


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure, 0 to 1, with its 95 % interval."""

    value: float
    low: float
    high: float
    questions: int
    """That it is made from."""


Figures = Mapping[str, Figure]
"""By name. One that isn't defined is missing."""
Groups = Mapping[str, Figures]
"""Over all questions (ALL), and by kind."""


@dataclass(frozen=True, slots=True)
class Unasked:
    """A question that nothing came of: it is in no figure, and shown beside them."""

    question: Question
    error: str


def grouped(rows: Sequence[A]) -> dict[str, list[A]]:
    """All rows, then those of each kind, in the order in which kinds first come; empty without rows."""
    groups: dict[str, list[A]] = {ALL: list(rows)} if rows else {}
    for row in rows:
        groups.setdefault(row.question.kind, []).append(row)
    return groups


def sizes(rows: Sequence[A]) -> dict[str, int]:
    """How many rows each group has."""
    return {group: len(members) for group, members in grouped(rows).items()}


def mean(values: Iterable[float | None]) -> Figure | None:
    """The mean of one value a question; those that are None are left out. None without any."""
    defined = [value for value in values if value is not None]
    if not defined:
        return None
    low, high = statistics.share_interval(defined, level=LEVEL, seed=SEED)
    return Figure(sum(defined) / len(defined), low, high, len(defined))


def drawn(statistic: Callable[..., float], *samples: Values) -> Figure | None:
    """What `statistic` makes of the samples; for the interval, the rows of each are drawn anew.

    samples: a row a question. None where one is empty or the statistic is NaN; a draw in which it is NaN
    doesn't count.
    """
    if not all(len(sample) for sample in samples):
        return None
    value = statistic(*samples)
    if np.isnan(value):
        return None
    random = np.random.default_rng(SEED)
    values = [
        statistic(*(sample[random.integers(len(sample), size=len(sample))] for sample in samples))
        for _ in range(statistics.RESAMPLES)
    ]
    low, high = np.nanquantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    if low == high == value and value in (0.0, 1.0):
        # Drawing again tells nothing here either. Of several samples the smallest says how much is known.
        low, high = statistics.share_interval([value] * min(map(len, samples)), level=LEVEL)
    return Figure(float(value), float(low), float(high), sum(len(sample) for sample in samples))


def share(rows: Values) -> float:
    """The first column's sum divided by the second's; NaN where that is 0. rows: shape (questions, 2)."""
    part, whole = rows.sum(axis=0)
    return float(part / whole) if whole else float("nan")


def defined(figures: Mapping[str, Figure | None]) -> dict[str, Figure]:
    """Those that are defined."""
    return {name: figure for name, figure in figures.items() if figure is not None}


def groups_json(groups: Groups) -> dict[str, dict[str, Any]]:
    """The groups as they stand in a JSON document."""
    return {
        group: {name: figure_json(figure) for name, figure in figures.items()}
        for group, figures in groups.items()
    }


def figure_json(figure: Figure) -> dict[str, Any]:
    """A figure as it stands in a JSON document, to four digits."""
    return {name: round(value, 4) for name, value in asdict(figure).items()}
