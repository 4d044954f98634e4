"""Figures as people read them."""

from __future__ import annotations

from collections.abc import Iterable

from hyce.evaluate.report.scores import Difference, Estimate, Scores

NONE = "-"
"""Stands where a figure isn't defined."""


def percent(value: float | None) -> str:
    """82.3%, or a dash."""
    return NONE if value is None else f"{100 * value:.1f}%"


def share(found: Estimate | None) -> str:
    """A share with its interval."""
    return (
        NONE if found is None else f"{percent(found.value)} [{100 * found.low:.1f}, {100 * found.high:.1f}]"
    )


def points(found: Difference | None) -> str:
    """A difference with its interval, in percentage points."""
    if found is None:
        return NONE
    return f"{100 * found.value:+.1f} [{100 * found.low:+.1f}, {100 * found.high:+.1f}]"


def words(name: str) -> str:
    """A kind's name as people write it."""
    return name.replace("_", " ")


def three(scores: Scores) -> Iterable[str]:
    """Eval Score, correctness and faithfulness."""
    return map(share, (scores.score, scores.correctness, scores.faithfulness))


def p_value(value: float) -> str:
    """A probability, which is never shown as 0."""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def number(count: int, one: str, many: str) -> str:
    """A count with its noun."""
    return f"{count} {one if count == 1 else many}"
