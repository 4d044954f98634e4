"""The figures of a run: Table 2 of the HyCE paper, with intervals, paired tests, and what was not judged.

Nothing here is a guess: a figure that isn't defined is None, and what is left out of a mean is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from hyce.evaluate.records import APART, UNANSWERABLE, Question, Run
from hyce.evaluate.report.labels import Label
from hyce.evaluate.report.outcomes import (
    ABSTAINED,
    CORRECTNESS,
    FAITHFULNESS,
    RIGHT,
    SECOND_JUDGE,
    Outcomes,
    outcomes,
    source,
    status,
)
from hyce.evaluate.report.reliability import reliability
from hyce.evaluate.report.scores import (
    RANKS,
    Counts,
    Difference,
    Estimate,
    Facts,
    Line,
    Scores,
    Spread,
    Summary,
)
from hyce.evaluate.statistics import interval, mcnemar, share_interval

_FEW = 30
"""Questions. With fewer, the percentile bootstrap misses the true value more often than its level says."""
_TELLING = 0.01
"""From here on it is said that a difference of two scores isn't that of the questions judged for both."""


def summarise(run: Run, labels: Sequence[Label] = ()) -> Summary:
    """The figures of a run; labels: people's verdicts on some of its answers."""
    found, second = outcomes(run), outcomes(run, SECOND_JUDGE)
    lines: list[Line] = []
    for row in run.rows:
        # The rows that this one is compared with: those that have figures.
        before = [found[line.name] for line in lines if not line.unavailable]
        first = found[run.rows[0].name] if lines and not lines[0].unavailable else None
        previous = before[-1] if before else None
        lines.append(_line(run, found[row.name], second[row.name], previous, first))
    return Summary(_facts(run), tuple(lines), reliability(run, labels), _notes(run, lines))


def _line(
    run: Run, own: Outcomes, second: Outcomes, previous: Outcomes | None, baseline: Outcomes | None
) -> Line:
    """The figures of a variant. second: its outcomes by the second judge's verdicts."""
    row, questions = own.row, run.set.questions
    about = (row.name, row.description, row.model, row.settings, row.unavailable, _counts(run, own))
    if row.unavailable:
        return Line(*about)
    scored = [question.id for question in questions if question.kind not in APART]
    answered = [r for passes in own.results.values() for r in passes.values() if r.status == "answered"]
    return Line(
        *about,
        scores=scores_over(own, scored),
        passes=own.by_pass(scored),
        previous=difference(own, previous, scored) if previous else None,
        baseline=difference(own, baseline, scored) if baseline else None,
        by_source=_grouped(own, {q.id: source(q) for q in questions if q.kind not in APART}),
        by_kind=_grouped(own, {q.id: q.kind for q in questions if q.kind not in APART}),
        apart=_grouped(own, {q.id: q.kind for q in questions if q.kind in APART and q.kind != UNANSWERABLE}),
        abstained=estimate(own, [q.id for q in questions if q.kind == UNANSWERABLE], ABSTAINED),
        second_score=_mean_of_passes(second, scored, RIGHT),
        total_ms=_spread([r.timings_ms["total"] for r in answered if "total" in r.timings_ms]),
        model_ms=_spread([r.timings_ms["model"] for r in answered if "model" in r.timings_ms]),
        prompt_tokens=_mean([r.prompt_tokens for r in answered if r.prompt_tokens]),
        completion_tokens=_mean([r.completion_tokens for r in answered if r.completion_tokens]),
        ranks=_ranks(questions, own),
    )


# -- shares and differences ------------------------------------------------------------------------------


def estimate(own: Outcomes, questions: Collection[str], criterion: str = RIGHT) -> Estimate | None:
    """The share of the variant's answers to the questions that meet a criterion."""
    value = _mean_of_passes(own, questions, criterion)
    if value is None:
        return None
    shares = [share for question in questions if (share := own.share(question, criterion)) is not None]
    return Estimate(value, *share_interval(shares), len(shares))


def difference(own: Outcomes, other: Outcomes, questions: Collection[str]) -> Difference | None:
    """How much better `own` does than `other`; None where no question was judged for both."""
    this, that = (_mean_of_passes(each, questions, RIGHT) for each in (own, other))
    pairs = [(own.share(question), other.share(question)) for question in questions]
    both = [(mine, theirs) for mine, theirs in pairs if mine is not None and theirs is not None]
    if this is None or that is None or not both:
        return None
    gains = [mine - theirs for mine, theirs in both]
    test = mcnemar([mine > 0.5 for mine, _ in both], [theirs > 0.5 for _, theirs in both])
    low, high = interval(gains)
    paired = sum(gains) / len(gains)
    return Difference(
        other.row.name, this - that, paired, low, high, len(both), test.only_first, test.only_second, test.p
    )


def _mean_of_passes(own: Outcomes, questions: Collection[str], criterion: str) -> float | None:
    return _mean([share for share in own.by_pass(questions, criterion) if share is not None])


def scores_over(own: Outcomes, questions: Collection[str]) -> Scores:
    """The three shares of the variant's answers to the questions."""
    return Scores(*(estimate(own, questions, name) for name in (RIGHT, CORRECTNESS, FAITHFULNESS)))


def _grouped(own: Outcomes, groups: Mapping[str, str]) -> dict[str, Scores]:
    """Scores of each group. groups: by question, the group that it belongs to."""
    names = dict.fromkeys(groups.values())
    return {name: scores_over(own, [q for q, group in groups.items() if group == name]) for name in names}


# -- counts, times, ranks --------------------------------------------------------------------------------


def _counts(run: Run, own: Outcomes) -> Counts:
    found = Counter(
        status(question, own.results[question.id].get(attempt))
        for question in run.set.questions
        for attempt in range(1, run.passes + 1)
    )
    return Counts(
        questions=len(run.set.questions),
        answers=len(run.set.questions) * run.passes,
        judged=found["judged"],
        failed=found["failed"],
        judge_failed=found["judge_failed"],
        unparseable=found["unparseable"],
        withheld=found["withheld"],
        missing=found["missing"],
    )


def _spread(times: Sequence[float]) -> Spread | None:
    import numpy as np

    if not times:
        return None
    median, p90 = np.percentile(times, [50, 90])
    return Spread(float(median), float(p90), len(times))


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _ranks(questions: Sequence[Question], own: Outcomes) -> dict[str, int]:
    """Of each question with evidence the first pass that was answered: searching doesn't change by chance."""
    found: Counter[str] = Counter()
    for question in questions:
        answered = [r for _, r in sorted(own.results[question.id].items()) if r.status == "answered"]
        if question.evidence and answered:
            found[_rank(answered[0].rank)] += 1
    return {name: found[name] for name in RANKS} if found else {}


def _rank(rank: int | None) -> str:
    if rank is None:
        return "not found"
    if rank <= 3:
        return str(rank)
    return "4-5" if rank <= 5 else "6-10" if rank <= 10 else "11+"


# -- what stands beside the figures ----------------------------------------------------------------------


def _facts(run: Run) -> Facts:
    made = run.set.origin
    return Facts(
        title=run.title,
        created=run.created,
        mode=run.mode,
        judge=run.judge,
        second_judge=run.second_judge,
        judge_prompts=run.judge_prompts,
        live=run.live,
        passes=run.passes,
        questions=len(run.set.questions),
        kinds=dict(Counter(question.kind for question in run.set.questions)),
        sources=dict(Counter(source(each) for each in run.set.questions if each.kind not in APART)),
        rejected=len(run.set.rejected),
        digest=run.set.digest,
        made=made.created if made else "",
        seed=made.seed if made else None,
        generator=made.model if made else "",
        filter=made.filter_model if made else "",
        writing_prompts=made.prompts if made else "",
    )


def _notes(run: Run, lines: Sequence[Line]) -> tuple[str, ...]:
    notes = []
    missing = sum(line.counts.missing for line in lines if not line.unavailable)
    if missing:
        notes.append(
            f"The run isn't finished (answers or verdicts that are missing: {missing}). The same command, "
            "hyce evaluate run, goes on where it stopped."
        )
    scored = sum(question.kind not in APART for question in run.set.questions)
    if 0 < scored < _FEW:
        notes.append(
            f"Few questions count in the Eval Score ({scored}): it says little yet, and the intervals of "
            "differences are too narrow; go by p, the paired test."
        )
    for line in lines:
        notes += _notes_on(line)
    if run.live:
        notes.append("Commands ran anew for each answer, so the reference may have moved (--live).")
    return tuple(notes)


def _notes_on(line: Line) -> list[str]:
    notes: list[str] = []
    if line.unavailable:
        return notes
    name, answers = line.name, line.counts.answers
    if lost := _lost(line.counts):
        notes.append(f"{name}: of {answers} answers these have no verdict, and are in no mean: {lost}.")
    compared = {other.versus: other for other in (line.previous, line.baseline) if other}
    for other in compared.values():
        if abs(other.value - other.paired) >= _TELLING:
            notes.append(
                f"{name}: its Eval Score differs from that of {other.versus} by {100 * other.value:+.1f} "
                f"points, but by {100 * other.paired:+.1f} on the {other.questions} questions that were "
                "judged for both: answers without a verdict make up the rest."
            )
    return notes


def _lost(counts: Counts) -> str:
    """How many answers have no verdict, by why."""
    reasons = {
        "failed": counts.failed,
        "on which the judge failed": counts.judge_failed,
        "on which the judge's reply held no verdict": counts.unparseable,
        "withheld": counts.withheld,
    }
    return ", ".join(f"{count} {why}" for why, count in reasons.items() if count)
