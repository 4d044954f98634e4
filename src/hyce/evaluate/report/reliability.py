"""How far a judge can be trusted: agreement with itself, with a second judge, and with people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from hyce.evaluate.records import Question, Result, Run, Verdict
from hyce.evaluate.report.labels import Label
from hyce.evaluate.report.outcomes import (
    ABSTAINED,
    CORRECTNESS,
    FAITHFULNESS,
    JUDGE,
    RIGHT,
    SECOND_JUDGE,
    first_verdict,
    scores_of,
)
from hyce.evaluate.statistics import alpha, kappa

_ALL = (CORRECTNESS, FAITHFULNESS, RIGHT, ABSTAINED)


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far verdicts on the same answers agree, by one criterion."""

    between: Literal["repeats", "second judge", "people"]
    """Whose verdicts are set beside the judge's."""
    criterion: str
    answers: int
    """That have more than one verdict."""
    agreement: float
    """Share of them on which all verdicts are the same."""
    measure: Literal["Krippendorff's alpha", "Cohen's kappa"]
    value: float | None
    """Agreement beyond chance: 1 is perfect, 0 no better than chance. None where it isn't defined: all
    verdicts are the same."""


def reliability(run: Run, labels: Sequence[Label] = ()) -> tuple[Agreement, ...]:
    """The agreement of whatever verdicts there are; empty where each answer has one alone."""
    questions = {question.id: question for question in run.set.questions}
    answered = [(questions[r.question], r) for r in run.results if r.question in questions]
    found = []
    for criterion in _ALL:
        units = [_repeats(question, result, criterion) for question, result in answered]
        found.append(_agreement("repeats", criterion, units))
    for criterion in _ALL:
        units = [_both_judges(question, result, criterion) for question, result in answered]
        found.append(_agreement("second judge", criterion, units))
    for criterion in (CORRECTNESS, FAITHFULNESS, RIGHT):
        found.append(_agreement("people", criterion, _with_people(answered, labels, criterion)))
    return tuple(each for each in found if each)


def _repeats(question: Question, result: Result, criterion: str) -> list[int]:
    """The judge's ratings of one answer, over its repeats."""
    return _ratings(question, [each for each in result.verdicts if each.judge == JUDGE], criterion)


def _both_judges(question: Question, result: Result, criterion: str) -> list[int]:
    both = [first_verdict(result, role) for role in (JUDGE, SECOND_JUDGE)]
    return _ratings(question, [each for each in both if each], criterion)


def _ratings(question: Question, verdicts: Sequence[Verdict], criterion: str) -> list[int]:
    """What models said. Where none was asked (judge.judge), all verdicts are alike and show no agreement."""
    found = [scores_of(each, question) for each in verdicts if each.model]
    return [scores[criterion] for scores in found if scores and criterion in scores]


def _with_people(
    answered: Sequence[tuple[Question, Result]], labels: Sequence[Label], criterion: str
) -> list[list[int]]:
    """The judge's rating and the label's, of each answer that has both."""
    results = {(r.question, r.variant, r.attempt): (question, r) for question, r in answered}
    pairs = []
    for label in labels:
        rated = label.scores.get(criterion)
        if rated is None or (label.question, label.variant, label.attempt) not in results:
            continue
        question, result = results[label.question, label.variant, label.attempt]
        scores = scores_of(first_verdict(result), question)
        if scores and criterion in scores:
            pairs.append([scores[criterion], rated])
    return pairs


def _agreement(
    between: Literal["repeats", "second judge", "people"], criterion: str, units: Sequence[Sequence[int]]
) -> Agreement | None:
    units = [unit for unit in units if len(unit) > 1]
    if not units:
        return None
    same = sum(len(set(unit)) == 1 for unit in units) / len(units)
    if between == "repeats":
        return Agreement(between, criterion, len(units), same, "Krippendorff's alpha", alpha(units))
    value = kappa([unit[0] for unit in units], [unit[1] for unit in units])
    return Agreement(between, criterion, len(units), same, "Cohen's kappa", value)
