"""Two runs side by side: what became worse comes first."""

from __future__ import annotations

from dataclasses import replace

import pytest
from small_run import BASE, HYCE, QUESTIONS, ROWS, RUN, results

from hyce.errors import UsageError
from hyce.evaluate.records import Question, Run
from hyce.evaluate.report.compare import compare
from hyce.evaluate.report.summary import summarise


def later(base: dict[str, object], hyce: dict[str, object] | None = None) -> Run:
    """The run again, with other outcomes of some questions."""
    ours, theirs = {**BASE, **base}, {**HYCE, **(hyce or {})}
    return replace(RUN, results=results("base", ours) + results("+hyce", theirs))  # type: ignore[arg-type]


def test_figures_stand_side_by_side() -> None:
    after = later({"q1": ((0, 0), (0, 1)), "q3": ((1, 1), (1, 1))})
    found = compare(RUN, after)
    pair = found.variants[0]
    assert [pair.name for pair in found.variants] == ["base", "+hyce"]
    assert pair.before == summarise(RUN).variants[0].scores
    assert pair.after == summarise(after).variants[0].scores
    assert pair.difference is not None and pair.same_settings
    assert pair.difference.value == pytest.approx(0)  # one lost, one won
    assert (pair.difference.only_this, pair.difference.only_other, pair.difference.p) == (1, 1, 1)
    assert found.variants[1].difference is not None
    assert found.variants[1].difference.value == 0


def test_regressions_and_improvements_with_both_answers() -> None:
    found = compare(RUN, later({"q1": ((1, 1), (0, 1)), "q3": ((1, 1), (1, 1)), "u1": (1, 1)}))
    assert [(each.variant, each.question) for each in found.regressions] == [("base", "q1")]
    assert [(each.variant, each.question) for each in found.improvements] == [("base", "q3"), ("base", "u1")]
    lost = found.regressions[0]
    assert (lost.asked, lost.reference, lost.kind) == ("How big is home?", "50 GB", "document")
    assert lost.before == "base on q1, pass 1"
    assert lost.after == "base on q1, pass 2"  # the pass that is wrong, not the one that is right


def test_a_question_without_a_verdict_is_no_change_and_is_told() -> None:
    found = compare(RUN, later({"q1": ("withheld", "no reply")}))
    assert found.regressions == () == found.improvements
    assert "base: 2 questions have no verdict in one of the runs." in found.notes  # q4 had none before


def test_equal_runs_have_no_changes() -> None:
    found = compare(RUN, RUN)
    assert (found.regressions, found.improvements) == ((), ())
    assert [pair.difference and pair.difference.value for pair in found.variants] == [0, 0]


def test_other_questions_are_refused() -> None:
    more = (*QUESTIONS, Question("q5", "?", "document", "x"))
    other = replace(RUN, set=replace(RUN.set, questions=more, digest="11" * 32))
    with pytest.raises(UsageError, match=r"different questions \(6 in common of 6 and 7\)"):
        compare(RUN, other)
    same = replace(RUN, set=replace(RUN.set, digest="11" * 32))
    assert "The question files differ, though their questions have the same ids." in compare(RUN, same).notes


def test_a_part_of_the_same_file_is_compared_on_what_both_asked() -> None:
    part = replace(RUN, set=replace(RUN.set, questions=QUESTIONS[:3]))
    found = compare(RUN, part)
    assert "Compared on the 3 questions that both runs asked (of 6, now 3)." in found.notes
    assert found.variants[1].before.score and found.variants[1].before.score.questions == 3
    assert compare(part, RUN).variants[1].after == found.variants[1].before
    with pytest.raises(UsageError, match="no question in common"):
        compare(part, replace(RUN, set=replace(RUN.set, questions=QUESTIONS[3:])))


def test_only_variants_of_both_are_compared() -> None:
    renamed = replace(RUN, rows=(ROWS[0], replace(ROWS[1], name="ours"), ROWS[2]))
    found = compare(RUN, renamed)
    assert [pair.name for pair in found.variants] == ["base"]
    assert "Not compared, as only one run has figures for them: +hyce, +big, ours." in found.notes
    with pytest.raises(UsageError, match="no variant in common"):
        compare(RUN, replace(RUN, rows=(ROWS[2],)))


def test_other_rules_of_judging_are_told() -> None:
    other = replace(
        RUN, mode="paper", judge="another", passes=1, rows=(replace(ROWS[0], key="k9"), *ROWS[1:])
    )
    found = compare(RUN, other)
    notes = " ".join(found.notes)
    assert "The mode of the judge differs (grounded, now paper)" in notes
    assert "The judge's model differs (judge-model, now another)" in notes
    assert "The number of passes differs (2, now 1)." in notes
    assert [pair.same_settings for pair in found.variants] == [False, True]
