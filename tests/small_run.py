"""A run made by hand: two variants, six questions, two passes, and all that can go wrong with an answer."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from hyce.evaluate.records import Evidence, Given, Origin, Question, QuestionSet, Result, Row, Run, Verdict
from hyce.evaluate.running.runs import result_key, result_row, write_run
from hyce.evaluate.sets import FILE, read_set, write_set

PAGE = (Evidence("guide/quota.md", "Home has 50 GB."),)
QUESTIONS = (
    Question("q1", "How big is home?", "document", "50 GB", PAGE),
    Question("q2", "How long may a job run?", "document", "48 hours", PAGE),
    Question("q3", "How many jobs do I have?", "command", "3", accept=("my_jobs",)),
    Question("q4", "Which shell do I get?", "document", "bash", PAGE),
    Question("u1", "Who cleans the room?", "unanswerable", "who cleans"),
    Question("t1", "Is home larger than scratch?", "two_passages", "no", PAGE * 2),
)
RANKS = {"q1": 1, "q2": 4, "t1": 12}
ORIGIN = Origin("2026-03-01", 7, "writer-1", "filter-1", "aabbccdd", {}, {"document": ("guide/quota.md#0",)})
SET = QuestionSet(
    QUESTIONS, "0f" * 32, (replace(QUESTIONS[0], id="r1", rejected="standalone"),), origin=ORIGIN
)
ROWS = (
    Row("base", "Documentation alone", "k1", "model-a", {"commands.run": False}),
    Row("+hyce", "Commands run", "k2", "model-a", {"commands.run": True}),
    Row("+big", "A larger model", "k3", "", {}, "llm: no such endpoint"),
)

# For each question the two passes: (correctness, faithfulness), or what went wrong.
BASE: dict[str, tuple[Any, Any]] = {
    "q1": ((1, 1), (1, 1)),
    "q2": ((1, 0), (1, 1)),
    "q3": ((0, 1), (0, 0)),
    "q4": ("no reply", "unparseable"),
    "u1": (0, 1),
    "t1": ((0, 0), (0, 0)),
}
HYCE: dict[str, tuple[Any, Any]] = {
    "q1": ((1, 1), (1, 1)),
    "q2": ((1, 1), "withheld"),
    "q3": ((1, 1), (1, 1)),
    "q4": ((0, 0), None),
    "u1": (1, 1),
    "t1": ((1, 1), (1, 1)),
}


def verdict(came: Any, judge: str = "judge", repeat: int = 1) -> Verdict:
    """The verdict of a pass: scores of a pair or of an abstention, else a status."""
    model = "judge-model" if judge == "judge" else "other-model"
    if isinstance(came, str):
        return Verdict(judge, model, repeat, came, error="no JSON object")  # type: ignore[arg-type]
    scores = (
        {"abstained": came}
        if isinstance(came, int)
        else dict(zip(("correctness", "faithfulness"), came, strict=True))
    )
    return Verdict(judge, model, repeat, "judged", scores, f"reasons for {came}")


def result(variant: str, question: str, attempt: int, came: Any) -> Result:
    """One answer and what came of it."""
    key = result_key({row.name: row.key for row in ROWS}[variant], question)
    if came == "no reply":
        return Result(variant, key, question, attempt, "failed", error="http://127.0.0.1:1/v1: no reply")
    given: tuple[Given, ...] = (Given(1, "passage", "Guide > Quota", "Home has 50 GB."),)
    if variant == "+hyce" and question == "q3":
        given += (Given(2, "command", "squeue --me", "1\n2\n3", private=True),)
    return Result(
        variant,
        key,
        question,
        attempt,
        "answered",
        answer=f"{variant} on {question}, pass {attempt}",
        model="model-a",
        given=given,
        commands=("my_jobs",) if len(given) > 1 else (),
        rank=RANKS.get(question),
        timings_ms={"total": 1000.0 * attempt, "model": 500.0 * attempt},
        prompt_tokens=100 * attempt,
        completion_tokens=10,
        verdicts=(verdict(came),),
    )


def results(variant: str, came: dict[str, tuple[Any, Any]]) -> tuple[Result, ...]:
    """The answers of a variant; None is one that isn't there."""
    return tuple(
        result(variant, question, attempt, each)
        for question, passes in came.items()
        for attempt, each in enumerate(passes, 1)
        if each is not None
    )


RUN = Run(
    title="A small run",
    created="2026-03-02T10:00:00+01:00",
    mode="grounded",
    passes=2,
    judge="judge-model",
    second_judge="",
    judge_prompts="11223344",
    live=False,
    set=SET,
    rows=ROWS,
    results=results("base", BASE) + results("+hyce", HYCE),
)


def write(folder: Path, run: Run = RUN) -> Path:
    """The run as `hyce evaluate run` leaves it in a folder."""
    folder.mkdir()
    write_set(folder / FILE, run.set)
    write_run(folder, replace(run, set=read_set(folder / FILE)))
    rows = (json.dumps(result_row(each)) + "\n" for each in run.results)
    (folder / "results.jsonl").write_text("".join(rows), encoding="utf-8")
    return folder
