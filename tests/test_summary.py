"""The figures of a run against values computed by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from small_run import HYCE, QUESTIONS, ROWS, RUN, result, results, verdict

from hyce.evaluate.records import Question
from hyce.evaluate.report.labels import Label
from hyce.evaluate.report.outcomes import source
from hyce.evaluate.report.scores import Counts, Scores, Summary
from hyce.evaluate.report.summary import summarise
from hyce.evaluate.statistics import interval

SUMMARY = summarise(RUN)
BASELINE, OURS, BIG = SUMMARY.variants


def values(scores: Scores) -> list[float | None]:
    return [each.value if each else None for each in (scores.score, scores.correctness, scores.faithfulness)]


def test_eval_score_is_the_mean_over_passes_of_the_share_of_judged_answers() -> None:
    # Passes of the first: 1 of 3, 2 of 3. Of the second: 3 of 4, 2 of 2 (one withheld, one missing).
    assert BASELINE.passes == pytest.approx((1 / 3, 2 / 3))
    assert OURS.passes == (0.75, 1.0)
    assert values(BASELINE.scores) == pytest.approx([0.5, 2 / 3, 2 / 3])
    assert values(OURS.scores) == pytest.approx([0.875, 0.875, 0.875])


def test_intervals_are_over_questions_each_the_mean_of_its_judged_passes() -> None:
    assert BASELINE.scores.score and OURS.scores.score and BASELINE.scores.faithfulness
    assert (BASELINE.scores.score.low, BASELINE.scores.score.high) == interval([1, 0.5, 0])
    assert BASELINE.scores.score.questions == 3  # q4 was never judged
    assert (OURS.scores.score.low, OURS.scores.score.high) == interval([1, 1, 1, 0])
    faith = BASELINE.scores.faithfulness
    assert (faith.low, faith.high) == interval([1, 0.5, 0.5])


def test_what_was_not_judged_is_counted_and_in_no_mean() -> None:
    assert BASELINE.counts == Counts(
        6, 12, 10, failed=1, judge_failed=0, unparseable=1, withheld=0, missing=0
    )
    assert OURS.counts == Counts(6, 12, 10, failed=0, judge_failed=0, unparseable=0, withheld=1, missing=1)
    notes = " ".join(SUMMARY.notes)
    assert "of 12 answers these have no verdict, and are in no mean: 1 failed, 1 on which" in notes
    assert "answers or verdicts that are missing: 1)" in notes
    assert "Few questions count in the Eval Score (4)" in notes


def test_a_judge_that_fails_or_leaves_a_criterion_out_gives_no_verdict() -> None:
    came = {**HYCE, "q1": ("failed", (1, 1))}
    half = replace(verdict((1, 1)), scores={"correctness": 1})
    odd = replace(result("+hyce", "q2", 2, (1, 1)), verdicts=(half,))
    none = replace(result("+hyce", "q4", 2, (1, 1)), verdicts=())
    kept = [r for r in results("+hyce", came) if (r.question, r.attempt) != ("q2", 2)]
    counts = summarise(replace(RUN, results=(*kept, odd, none))).variants[1].counts
    assert counts == Counts(6, 12, 9, failed=0, judge_failed=1, unparseable=1, withheld=0, missing=1)


def test_differences_are_paired_on_what_was_judged_for_both() -> None:
    found = OURS.previous
    assert found is not None and found == OURS.baseline
    assert (found.versus, found.questions) == ("base", 3)
    assert found.value == pytest.approx(0.375)
    assert found.paired == pytest.approx(0.5)
    assert (found.low, found.high) == interval([0, 0.5, 1])
    # Right in more than half of the passes: q1 with both, q2 and q3 with the second alone.
    assert (found.only_this, found.only_other, found.p) == (2, 0, 0.5)
    assert BASELINE.previous is None and BASELINE.baseline is None
    assert "by +37.5 points, but by +50.0 on the 3 questions" in " ".join(SUMMARY.notes)


def test_a_variant_that_is_not_available_stands_in_the_table_without_figures() -> None:
    assert (BIG.unavailable, BIG.scores, BIG.passes) == (
        "llm: no such endpoint",
        Scores(None, None, None),
        (),
    )
    rows = (ROWS[0], ROWS[2], ROWS[1])
    assert (
        summarise(replace(RUN, rows=rows)).variants[2].previous == OURS.previous
    )  # the one before is skipped
    first_missing = summarise(replace(RUN, rows=(ROWS[2], ROWS[0], ROWS[1]))).variants
    assert first_missing[2].baseline is None
    assert first_missing[2].previous == OURS.previous


def test_by_source_and_kind() -> None:
    assert {name: values(scores)[0] for name, scores in BASELINE.by_source.items()} == {
        "documentation": pytest.approx(0.75),  # 1 of 2, 1 of 1
        "command": 0,
    }
    assert {name: values(scores)[0] for name, scores in OURS.by_source.items()} == {
        "documentation": pytest.approx(5 / 6),  # 2 of 3, 1 of 1
        "command": 1,
    }
    assert list(BASELINE.by_kind) == ["document", "command"]


def test_a_question_with_accepted_commands_is_one_of_commands() -> None:
    assert source(Question("x", "?", "fact", accept=("my_jobs",))) == "command"
    assert source(Question("x", "?", "fact", accept=())) == "documentation"
    assert source(Question("x", "?", "command")) == "command"


def test_kinds_of_their_own_are_in_no_eval_score() -> None:
    assert {name: values(scores)[0] for name, scores in BASELINE.apart.items()} == {"two_passages": 0}
    assert {name: values(scores)[0] for name, scores in OURS.apart.items()} == {"two_passages": 1}
    assert BASELINE.abstained and OURS.abstained
    assert (BASELINE.abstained.value, BASELINE.abstained.questions) == (0.5, 1)
    assert OURS.abstained.value == 1


def test_times_tokens_and_ranks() -> None:
    # Of 11 answers of the first, 5 took one second and 6 two; of the second it is the other way round.
    assert BASELINE.total_ms and OURS.total_ms and OURS.model_ms
    assert (BASELINE.total_ms.median, BASELINE.total_ms.answers) == (2000, 11)
    assert (OURS.total_ms.median, OURS.total_ms.p90) == (1000, 2000)
    assert OURS.model_ms.median == 500
    assert (BASELINE.prompt_tokens, BASELINE.completion_tokens) == pytest.approx((1700 / 11, 10))
    ranks = {rank: count for rank, count in BASELINE.ranks.items() if count}
    assert ranks == {"1": 1, "4-5": 1, "11+": 1, "not found": 1}  # q4 by its second pass; q3 has no evidence


def test_a_percentile_lies_between_two_times() -> None:
    three = [replace(result("base", "q1", n, (1, 1)), timings_ms={"total": 100.0 * n}) for n in (1, 2, 3)]
    found = summarise(replace(RUN, passes=3, results=tuple(three))).variants[0].total_ms
    assert found and (found.median, found.p90) == pytest.approx((200, 280))


def test_nothing_judged_means_no_figure() -> None:
    lost = summarise(replace(RUN, results=results("base", {"q1": ("no reply", "withheld")}))).variants[0]
    assert lost.scores == Scores(None, None, None)
    assert (lost.passes, lost.abstained, lost.previous) == ((None, None), None, None)
    empty = summarise(replace(RUN, results=())).variants[1]
    assert (empty.counts.missing, empty.total_ms, empty.prompt_tokens, empty.ranks) == (12, None, None, {})


def test_what_was_measured_is_named() -> None:
    facts = SUMMARY.facts
    assert (facts.mode, facts.judge, facts.live, facts.passes) == ("grounded", "judge-model", False, 2)
    assert (facts.seed, facts.generator, facts.rejected) == (7, "writer-1", 1)
    assert facts.kinds == {"document": 3, "command": 1, "unanswerable": 1, "two_passages": 1}
    assert facts.sources == {"documentation": 3, "command": 1}
    people = summarise(replace(RUN, set=replace(RUN.set, origin=None))).facts
    assert (people.seed, people.made) == (None, "")


# -- the judge -------------------------------------------------------------------------------------------


def rated(*verdicts: tuple[tuple[int, int], ...]) -> Summary:
    """A run in which the judge was asked so often of each question's answer."""
    made = [
        replace(
            result("base", question.id, 1, ratings[0]),
            verdicts=tuple(verdict(each, repeat=n) for n, each in enumerate(ratings, 1)),
        )
        for question, ratings in zip(QUESTIONS, verdicts, strict=False)
    ]
    return summarise(replace(RUN, results=tuple(made)))


def test_repeats_agree_by_krippendorffs_alpha() -> None:
    found = rated(((1, 1), (1, 1)), ((0, 1), (0, 1)), ((1, 1), (0, 1)), ((0, 1), (0, 1)))
    by = {each.criterion: each for each in found.reliability}
    # Of 8 ratings 3 are 1; one of four pairs differs: 1 - 7 * 2 / (2 * 3 * 5).
    assert by["correctness"].value == pytest.approx(1 - 14 / 30)
    assert (by["correctness"].agreement, by["correctness"].answers) == (0.75, 4)
    assert by["correctness"].measure == "Krippendorff's alpha"
    # All the same: agreement is whole, and no coefficient is defined.
    assert (by["faithfulness"].agreement, by["faithfulness"].value) == (1, None)
    assert found.variants[0].scores.score and found.variants[0].scores.score.value == 0.5  # repeat 1 counts


def test_verdicts_for_which_no_judge_was_asked_show_no_agreement() -> None:
    """They are given by a rule, and are the same however often it is applied."""
    plain = [replace(verdict((0, 1), repeat=n), model="") for n in (1, 2)]
    plain.append(replace(verdict((0, 1), "second_judge"), model=""))
    asked = result("base", "q1", 1, (1, 1))
    made = (
        replace(
            asked, verdicts=(verdict((1, 1)), verdict((0, 1), repeat=2), verdict((1, 1), "second_judge"))
        ),
        replace(asked, question="q2", verdicts=tuple(plain)),
    )
    found = summarise(replace(RUN, second_judge="other-model", results=made))
    by = {(each.between, each.criterion): each for each in found.reliability}
    assert {each.answers for each in by.values()} == {1}
    assert by["repeats", "correctness"].agreement == 0
    assert found.variants[0].scores.score and found.variants[0].scores.score.value == 0.5  # they count there


def test_a_second_judge_agrees_by_cohens_kappa() -> None:
    pairs = (((1, 1), (1, 1)), ((0, 1), (1, 1)), ((0, 0), (0, 0)), ((1, 1), (1, 1)))
    made = [
        replace(
            result("base", question.id, 1, first), verdicts=(verdict(first), verdict(second, "second_judge"))
        )
        for question, (first, second) in zip(QUESTIONS, pairs, strict=False)
    ]
    found = summarise(replace(RUN, second_judge="other-model", results=tuple(made)))
    by = {(each.between, each.criterion): each for each in found.reliability}
    # 3 of 4 agree; by chance (2*3 + 2*1) / 16 would: (0.75 - 0.5) / 0.5.
    assert by["second judge", "correctness"].value == pytest.approx(0.5)
    assert by["second judge", "faithfulness"].value == pytest.approx(1)
    assert found.variants[0].second_score == 0.75
    assert found.variants[0].scores.score and found.variants[0].scores.score.value == 0.5


def test_people_and_judge() -> None:
    labels = [
        Label("q1", "base", 1, {"correctness": 1, "faithfulness": 1, "right": 1}),
        Label("q2", "base", 1, {"correctness": 0}),
        Label("q3", "base", 1, {"correctness": 0, "faithfulness": 1, "right": 0}),
        Label("q4", "base", 2, {"correctness": 1}),  # the judge said nothing of it
    ]
    by = {each.criterion: each for each in summarise(RUN, labels).reliability}
    assert {each.between for each in by.values()} == {"people"}
    assert (by["correctness"].answers, by["correctness"].agreement) == pytest.approx((3, 2 / 3))
    assert by["correctness"].value == pytest.approx(0.4)  # by chance (2*1 + 1*2) / 9
    assert by["right"].answers == 2
    assert SUMMARY.reliability == ()


def test_the_order_of_results_does_not_matter() -> None:
    assert summarise(replace(RUN, results=RUN.results[::-1])) == SUMMARY
