"""Two runs over the same questions, side by side: what became worse, then what became better."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from hyce.errors import UsageError
from hyce.evaluate.records import APART, Question, Run
from hyce.evaluate.report.outcomes import Outcomes, outcomes
from hyce.evaluate.report.scores import Difference, Scores
from hyce.evaluate.report.summary import difference, scores_over


@dataclass(frozen=True, slots=True)
class Pair:
    """A variant that both runs have."""

    name: str
    same_settings: bool
    """And the same index, questions, commands, judges and version of hyce."""
    before: Scores
    after: Scores
    difference: Difference | None
    """After less before."""


@dataclass(frozen=True, slots=True)
class Change:
    """A question that a variant got right in one of the runs only."""

    variant: str
    question: str
    kind: str
    asked: str
    reference: str
    before: str
    after: str
    """An answer of each run: one that shows the verdict of most passes."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """This run (after) beside another (before)."""

    before: str
    after: str
    """Titles and dates."""
    variants: tuple[Pair, ...]
    regressions: tuple[Change, ...]
    """Right before, wrong after."""
    improvements: tuple[Change, ...]
    notes: tuple[str, ...]


def compare(before: Run, after: Run) -> Comparison:
    """The comparison of two runs. Raises UsageError where their questions differ."""
    ids = [{question.id for question in run.set.questions} for run in (before, after)]
    if before.set.digest != after.set.digest and ids[0] != ids[1]:
        raise UsageError(
            f"the two runs have different questions ({len(ids[0] & ids[1])} in common of {len(ids[0])} and "
            f"{len(ids[1])}); compare runs of the same question file"
        )
    both = [question for question in after.set.questions if question.id in ids[0]]
    if not both:
        raise UsageError("the two runs have no question in common; compare runs of the same questions")
    old, new = outcomes(before), outcomes(after)
    names = [
        name for name in new if name in old and not (new[name].row.unavailable or old[name].row.unavailable)
    ]
    if not names:
        raise UsageError(
            "the two runs have no variant in common that could be run; give variants the same name"
        )
    scored = [question.id for question in both if question.kind not in APART]
    return Comparison(
        before=_titled(before),
        after=_titled(after),
        variants=tuple(_pair(old[name], new[name], scored) for name in names),
        regressions=_changes(both, old, new, names, better=False),
        improvements=_changes(both, old, new, names, better=True),
        notes=_notes(before, after, old, new, names),
    )


def _titled(run: Run) -> str:
    return f"{run.title} ({run.created})"


def _pair(old: Outcomes, new: Outcomes, scored: Collection[str]) -> Pair:
    return Pair(
        name=new.row.name,
        same_settings=old.row.key == new.row.key,
        before=scores_over(old, scored),
        after=scores_over(new, scored),
        difference=difference(new, old, scored),
    )


def _changes(
    questions: Sequence[Question],
    old: dict[str, Outcomes],
    new: dict[str, Outcomes],
    names: Collection[str],
    *,
    better: bool,
) -> tuple[Change, ...]:
    """The questions, of all kinds, that changed for the better, or for the worse."""
    changes = []
    for name in names:
        for question in questions:
            was, now = old[name].right(question.id), new[name].right(question.id)
            if was is not (not better) or now is not better:
                continue
            shown = [_typical(each, question.id) for each in (old[name], new[name])]
            changes.append(
                Change(name, question.id, question.kind, question.question, question.answer, *shown)
            )
    return tuple(changes)


def _typical(own: Outcomes, question: str) -> str:
    """The answer of the first pass whose verdict is that of most passes."""
    right = int(bool(own.right(question)))
    passes = own.scores[question].items()
    return next(
        own.results[question][attempt].answer for attempt, scores in passes if scores["right"] == right
    )


def _notes(
    before: Run, after: Run, old: dict[str, Outcomes], new: dict[str, Outcomes], names: Collection[str]
) -> tuple[str, ...]:
    """Why figures of the two may not be set side by side, and what is not compared."""
    notes = []
    asked = {question.id for question in before.set.questions}
    both = [question for question in after.set.questions if question.id in asked]
    if len(both) < max(len(asked), len(after.set.questions)):
        notes.append(
            f"Compared on the {len(both)} questions that both runs asked (of {len(asked)}, now "
            f"{len(after.set.questions)})."
        )
    for what, was, now in (
        ("mode of the judge", before.mode, after.mode),
        ("judge's model", before.judge, after.judge),
        ("judge's prompts", before.judge_prompts, after.judge_prompts),
    ):
        if was != now:
            notes.append(f"The {what} differs ({was}, now {now}): the verdicts follow different rules.")
    if before.set.digest != after.set.digest:
        notes.append("The question files differ, though their questions have the same ids.")
    if before.passes != after.passes:
        notes.append(f"The number of passes differs ({before.passes}, now {after.passes}).")
    alone = [name for name in (*old, *new) if name not in names]
    if alone:
        notes.append(
            f"Not compared, as only one run has figures for them: {', '.join(dict.fromkeys(alone))}."
        )
    for name in names:
        unjudged = sum(
            old[name].right(question.id) is None or new[name].right(question.id) is None for question in both
        )
        if unjudged:
            what = "question has" if unjudged == 1 else "questions have"
            notes.append(f"{name}: {unjudged} {what} no verdict in one of the runs.")
    return tuple(notes)
