"""The figures of a report, as values. One that isn't defined is None."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hyce.evaluate.records import Mode
from hyce.evaluate.report.reliability import Agreement

RANKS = ("1", "2", "3", "4-5", "6-10", "11+", "not found")
"""Groups of ranks, best first."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A share, from 0 to 1."""

    value: float
    """Mean over the passes of the share of judged answers."""
    low: float
    high: float
    """Bootstrap interval of 95 %, over the questions (each the mean of its judged passes)."""
    questions: int
    """With at least one judged answer."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A variant's Eval Score less another's."""

    versus: str
    value: float
    """Of the two Eval Scores, as they stand in the table."""
    paired: float
    """Mean over the questions that were judged for both; another figure than `value` only where some
    answers were not judged."""
    low: float
    high: float
    """Bootstrap interval of 95 % of `paired`."""
    questions: int
    """Judged for both."""
    only_this: int
    only_other: int
    """Of those, right (in more than half of their passes) with one variant alone."""
    p: float
    """McNemar's exact test, two-sided, on these two."""


@dataclass(frozen=True, slots=True)
class Scores:
    """The shares of answers to some questions; None where no answer was judged."""

    score: Estimate | None
    """Eval Score: correct and faithful."""
    correctness: Estimate | None
    faithfulness: Estimate | None


@dataclass(frozen=True, slots=True)
class Counts:
    """Answers that a variant owes, by what came of them (outcomes.Status), over all kinds of questions."""

    questions: int
    answers: int
    """Questions times passes."""
    judged: int
    failed: int
    judge_failed: int
    unparseable: int
    withheld: int
    missing: int


@dataclass(frozen=True, slots=True)
class Spread:
    """Of a time, in milliseconds."""

    median: float
    p90: float
    """The 90th percentile."""
    answers: int


@dataclass(frozen=True, slots=True)
class Line:
    """A variant's figures; none where it was not available."""

    name: str
    description: str
    model: str
    settings: Mapping[str, object]
    unavailable: str
    counts: Counts
    scores: Scores = field(default_factory=lambda: Scores(None, None, None))
    passes: tuple[float | None, ...] = ()
    """Eval Score of each pass."""
    previous: Difference | None = None
    """To the row before, or the last one before that was available."""
    baseline: Difference | None = None
    """To the first row."""
    by_source: Mapping[str, Scores] = field(default_factory=dict)
    by_kind: Mapping[str, Scores] = field(default_factory=dict)
    apart: Mapping[str, Scores] = field(default_factory=dict)
    """Kinds of their own, which no other figure holds."""
    abstained: Estimate | None = None
    """Share of answers to unanswerable questions that say that they don't know."""
    second_score: float | None = None
    """Eval Score by the second judge's verdicts."""
    total_ms: Spread | None = None
    model_ms: Spread | None = None
    prompt_tokens: float | None = None
    completion_tokens: float | None = None
    """Mean of an answer."""
    ranks: Mapping[str, int] = field(default_factory=dict)
    """Questions with evidence, by the rank of the first hit that supports it."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What was measured, and with what."""

    title: str
    created: str
    mode: Mode
    judge: str
    second_judge: str
    judge_prompts: str
    live: bool
    passes: int
    questions: int
    kinds: Mapping[str, int]
    sources: Mapping[str, int]
    """Of the questions that the Eval Score is made of."""
    rejected: int
    digest: str
    """sha256 of the question file."""
    made: str
    """Date on which the questions were generated; empty where people made them."""
    seed: int | None
    generator: str
    filter: str
    writing_prompts: str


@dataclass(frozen=True, slots=True)
class Summary:
    """All figures of a run."""

    facts: Facts
    variants: tuple[Line, ...]
    reliability: tuple[Agreement, ...]
    notes: tuple[str, ...]
    """What a reader must know to read the figures rightly."""
