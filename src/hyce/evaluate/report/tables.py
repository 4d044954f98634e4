"""The tables of a report as text, which Markdown and the page show alike.

Names of variants, models and kinds come from files that people wrote: whoever shows a cell makes it harmless.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hyce.evaluate.report.compare import Comparison
from hyce.evaluate.report.scores import RANKS, Difference, Line, Scores, Spread, Summary
from hyce.evaluate.report.wording import NONE, number, p_value, percent, points, share, three, words


@dataclass(frozen=True, slots=True)
class Table:
    """A table, whose first column names the rows."""

    title: str
    says: str
    """How to read it, in plain words."""
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tables(summary: Summary) -> tuple[Table, ...]:
    """All tables of a run; one that would be empty is left out."""
    made = (
        score_table(summary),
        _differences(summary),
        _counts(summary),
        _groups(summary, "By source", "where the answer comes from", lambda line: line.by_source),
        _groups(summary, "By kind", "kind of question", lambda line: line.by_kind),
        _groups(
            summary,
            "Questions that need more than one source",
            "kind; these questions are in no other Eval Score",
            lambda line: line.apart,
        ),
        _unanswerable(summary),
        _costs(summary),
        _ranks(summary),
        _reliability(summary),
    )
    return tuple(table for table in made if table.rows)


# -- the score -------------------------------------------------------------------------------------------


def score_table(summary: Summary) -> Table:
    """Table 2 of the paper."""
    return Table(
        "Eval Score",
        "Eval Score is the share of judged answers that are both correct and faithful to their sources, "
        f"averaged over {number(summary.facts.passes, 'pass', 'passes')} over the questions. In brackets is "
        "the 95 % interval: with other questions of the same sort, the figure would mostly fall within it. "
        "Differences are in percentage points; where their interval holds 0, they may be chance. Not judged "
        "are answers that failed or have no verdict: they are in no mean.",
        ("Variant", "Eval Score", "Correctness", "Faithfulness", "To previous", "To baseline", "Not judged"),
        tuple(_score_row(summary, index, line) for index, line in enumerate(summary.variants)),
    )


def _score_row(summary: Summary, index: int, line: Line) -> tuple[str, ...]:
    if line.unavailable:
        return (line.name, f"not available: {line.unavailable}", *[NONE] * 5)
    before = summary.variants[index - 1].name if index else ""
    previous = points(line.previous)
    if line.previous and line.previous.versus != before:
        previous += f" (to {line.previous.versus})"
    return (line.name, *three(line.scores), previous, points(line.baseline), not_judged(line))


def not_judged(line: Line) -> str:
    """How many answers have no verdict."""
    return f"{line.counts.answers - line.counts.judged} of {line.counts.answers}"


def _differences(summary: Summary) -> Table:
    rows = []
    for line in summary.variants:
        compared = {each.versus: each for each in (line.previous, line.baseline) if each}
        rows += [_difference_row(line.name, each) for each in compared.values()]
    return Table(
        "Differences, question by question",
        "Each row compares two variants on the questions that were judged for both. A question counts as "
        "right where more than half of its passes are. p is McNemar's exact test: how likely a difference at "
        "least as large would be by chance if both were equally good; below 0.05 is usually taken to tell.",
        ("Variant", "Compared with", "Difference", "Right here only", "Right there only", "p", "Questions"),
        tuple(rows),
    )


def _difference_row(name: str, found: Difference) -> tuple[str, ...]:
    paired = f"{100 * found.paired:+.1f} [{100 * found.low:+.1f}, {100 * found.high:+.1f}]"
    counts = (str(found.only_this), str(found.only_other), p_value(found.p), str(found.questions))
    return (name, found.versus, paired, *counts)


def _counts(summary: Summary) -> Table:
    return Table(
        "What came of the answers",
        "Answers are questions times passes, of all kinds. Failed: no answer came. Judge failed: the judge "
        "could not be asked. Unparseable: its reply held no verdict, also after a second try. Withheld: a "
        "command's output that may not leave the site would have gone to a judge or, with the question that "
        "was made from it, to another endpoint outside. Missing: the run hasn't come to it. The last column "
        "has the Eval Score of each pass.",
        (
            "Variant",
            "Questions",
            "Answers",
            "Judged",
            "Failed",
            "Judge failed",
            "Unparseable",
            "Withheld",
            "Missing",
            "Each pass",
        ),
        tuple(_count_row(line) for line in summary.variants if not line.unavailable),
    )


def _count_row(line: Line) -> tuple[str, ...]:
    c = line.counts
    lost = (c.failed, c.judge_failed, c.unparseable, c.withheld, c.missing)
    passes = ", ".join(map(percent, line.passes))
    return (line.name, *map(str, (c.questions, c.answers, c.judged, *lost)), passes)


# -- groups of questions ---------------------------------------------------------------------------------


def _groups(summary: Summary, title: str, what: str, of: Callable[[Line], Mapping[str, Scores]]) -> Table:
    rows = [
        (line.name, words(group), *three(scores), str(scores.score.questions if scores.score else 0))
        for line in summary.variants
        for group, scores in of(line).items()
    ]
    columns = ("Variant", "Questions of", "Eval Score", "Correctness", "Faithfulness", "Judged questions")
    return Table(title, f"The same figures by {what}.", columns, tuple(rows))


def _unanswerable(summary: Summary) -> Table:
    found = [(line.name, line.abstained) for line in summary.variants if line.abstained]
    return Table(
        "Unanswerable questions",
        "Nothing that the assistant has answers these questions; it should say so. Abstained is the share of "
        "judged answers that do. They are in no other figure.",
        ("Variant", "Abstained", "Judged questions"),
        tuple((name, share(each), str(each.questions)) for name, each in found),
    )


# -- costs, ranks ----------------------------------------------------------------------------------------


def _costs(summary: Summary) -> Table:
    lines = [line for line in summary.variants if line.total_ms or line.model_ms or line.prompt_tokens]
    return Table(
        "Time and tokens of an answer",
        "Half of the answers took no longer than the median, nine in ten no longer than the 90th percentile. "
        "Tokens are means, as the endpoint counted them.",
        (
            "Variant",
            "Total, median",
            "Total, 90th percentile",
            "Model, median",
            "Model, 90th percentile",
            "Prompt tokens",
            "Completion tokens",
        ),
        tuple(
            (
                line.name,
                *_times(line.total_ms),
                *_times(line.model_ms),
                _tokens(line.prompt_tokens),
                _tokens(line.completion_tokens),
            )
            for line in lines
        ),
    )


def _times(found: Spread | None) -> tuple[str, str]:
    if found is None:
        return (NONE, NONE)
    return (f"{found.median / 1000:.2f} s", f"{found.p90 / 1000:.2f} s")


def _tokens(mean: float | None) -> str:
    return NONE if mean is None else f"{mean:.0f}"


def _ranks(summary: Summary) -> Table:
    return Table(
        "Rank of the first passage that holds the evidence",
        "How far down the list of passages found the first one stands that supports the question's "
        "evidence. Counted are questions that have evidence and were answered.",
        ("Variant", *RANKS),
        tuple(
            (line.name, *(str(line.ranks[rank]) for rank in RANKS)) for line in summary.variants if line.ranks
        ),
    )


# -- the judge -------------------------------------------------------------------------------------------

_BETWEEN = {
    "repeats": "the judge asked again",
    "second judge": "judge and second judge",
    "people": "judge and people",
}


def _reliability(summary: Summary) -> Table:
    second_scores = {line.name: line.second_score for line in summary.variants}
    by_second = [f"{name} {percent(score)}" for name, score in second_scores.items() if score is not None]
    second = f" Eval Scores by the second judge: {', '.join(by_second)}." if by_second else ""
    return Table(
        "Reliability of the judge",
        "Verdicts on the same answers, set side by side. Agreement is the share of answers on which all "
        "verdicts are the same; the coefficient says how much of that is more than chance: 1 is perfect, 0 "
        f"no better than chance, and {NONE} means that it isn't defined because all verdicts are the "
        f"same.{second}",
        ("Between", "Criterion", "Answers", "Agreement", "Coefficient", "Value"),
        tuple(
            (
                _BETWEEN[each.between],
                "both (Eval Score)" if each.criterion == "right" else each.criterion,
                str(each.answers),
                percent(each.agreement),
                each.measure,
                NONE if each.value is None else f"{each.value:.3f}",
            )
            for each in summary.reliability
        ),
    )


# -- two runs --------------------------------------------------------------------------------------------


def comparison_table(comparison: Comparison) -> Table:
    """The variants that both runs have, side by side."""
    return Table(
        "Comparison",
        f"Before: {comparison.before}. After: {comparison.after}. Differences are after less before, in "
        "percentage points, on the questions judged in both. p is McNemar's exact test. Changed: settings, "
        "index, questions, commands, judges or the version of hyce differ.",
        (
            "Variant",
            "Before",
            "After",
            "Difference",
            "Better",
            "Worse",
            "p",
            "Correctness before",
            "Correctness after",
            "Faithfulness before",
            "Faithfulness after",
        ),
        tuple(
            (
                pair.name if pair.same_settings else f"{pair.name} (changed)",
                share(pair.before.score),
                share(pair.after.score),
                *(_difference_row("", pair.difference)[2:6] if pair.difference else [NONE] * 4),
                share(pair.before.correctness),
                share(pair.after.correctness),
                share(pair.before.faithfulness),
                share(pair.after.faithfulness),
            )
            for pair in comparison.variants
        ),
    )
