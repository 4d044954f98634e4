"""What came of each question with each variant: the ground on which every figure of a report stands."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from hyce.evaluate.records import COMMAND, UNANSWERABLE, Question, Result, Row, Run, Verdict

CORRECTNESS, FAITHFULNESS, ABSTAINED, RIGHT = "correctness", "faithfulness", "abstained", "right"
JUDGE, SECOND_JUDGE = "judge", "second_judge"

Status = Literal["judged", "failed", "judge_failed", "unparseable", "withheld", "missing"]
"""failed: no answer came; judge_failed, unparseable, withheld: an answer without a verdict (VerdictStatus);
missing: the run hasn't come to it yet."""

Scores = Mapping[str, int]
"""1 or 0 by criterion, and `right`: 1 where all of them are 1."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What one variant did in the passes of a run."""

    row: Row
    passes: int
    results: Mapping[str, Mapping[int, Result]]
    """By question and pass."""
    scores: Mapping[str, Mapping[int, Scores]]
    """By question and pass, where the judge gave a verdict."""

    def share(self, question: str, criterion: str = RIGHT) -> float | None:
        """Share of the question's judged passes that meet the criterion; None where no pass was judged."""
        found = [scores[criterion] for scores in self.scores[question].values() if criterion in scores]
        return sum(found) / len(found) if found else None

    def right(self, question: str) -> bool | None:
        """Whether more than half of its judged passes are right; None where no pass was judged."""
        share = self.share(question)
        return None if share is None else share > 0.5

    def by_pass(self, questions: Collection[str], criterion: str = RIGHT) -> tuple[float | None, ...]:
        """Of each pass, the share of judged answers that meet the criterion; None where none was judged."""
        return tuple(self._in_pass(attempt, questions, criterion) for attempt in range(1, self.passes + 1))

    def _in_pass(self, attempt: int, questions: Collection[str], criterion: str) -> float | None:
        passes = (self.scores[question].get(attempt, {}) for question in questions)
        found = [scores[criterion] for scores in passes if criterion in scores]
        return sum(found) / len(found) if found else None


def outcomes(run: Run, judge: str = JUDGE) -> dict[str, Outcomes]:
    """The outcomes of each variant, in the run's order. A variant that could not be run has none.

    judge: whose verdicts count.
    """
    questions = {question.id: question for question in run.set.questions}
    results: dict[str, dict[str, dict[int, Result]]] = {
        row.name: {question: {} for question in questions} for row in run.rows
    }
    for result in run.results:
        if result.question in results.get(result.variant, {}) and 1 <= result.attempt <= run.passes:
            results[result.variant][result.question][result.attempt] = result

    def of_variant(row: Row) -> Outcomes:
        own = results[row.name]
        scores = {name: _scores(question, own[name], judge) for name, question in questions.items()}
        return Outcomes(row, run.passes, own, scores)

    return {row.name: of_variant(row) for row in run.rows}


def _scores(question: Question, passes: Mapping[int, Result], judge: str) -> dict[int, Scores]:
    found = {
        attempt: scores_of(first_verdict(result, judge), question)
        for attempt, result in sorted(passes.items())
    }
    return {attempt: scores for attempt, scores in found.items() if scores is not None}


def criteria(question: Question) -> tuple[str, ...]:
    """What an answer to the question is judged by."""
    return (ABSTAINED,) if question.kind == UNANSWERABLE else (CORRECTNESS, FAITHFULNESS)


def first_verdict(result: Result, judge: str = JUDGE) -> Verdict | None:
    """The verdict of that judge that counts."""
    return next((each for each in result.verdicts if each.judge == judge and each.repeat == 1), None)


def scores_of(verdict: Verdict | None, question: Question) -> Scores | None:
    """What the verdict says; None where there is none, or one that lacks a criterion."""
    if verdict is None or verdict.status != "judged":
        return None
    scores = {name: verdict.scores[name] for name in criteria(question) if verdict.scores.get(name) in (0, 1)}
    if len(scores) < len(criteria(question)):
        return None
    return {**scores, RIGHT: int(all(scores.values()))}


def status(question: Question, result: Result | None) -> Status:
    """How far one pass over the question came."""
    if result is None:
        return "missing"
    if result.status == "failed":
        return "failed"
    verdict = first_verdict(result)
    if verdict is None:
        return "missing"
    if verdict.status == "failed":
        return "judge_failed"
    if verdict.status == "judged" and scores_of(verdict, question) is None:
        return "unparseable"
    return verdict.status


def source(question: Question) -> str:
    """Where its answer comes from: command or documentation."""
    return "command" if question.kind == COMMAND or question.accept else "documentation"
