"""Questions that tell of a command's output stay on the site where that output has to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hyce.config import Config, load
from hyce.errors import PolicyError
from hyce.evaluate.finding import encoders
from hyce.evaluate.leaving import may_be_searched, private_outputs, sends_outside
from hyce.evaluate.records import COMMAND, DOCUMENT, Origin, Question, QuestionSet
from hyce.models import Kind
from hyce.records import Command

OUTSIDE = "http://203.0.113.7/v1"
CONSENT = {"policy.outside_endpoints": [OUTSIDE]}


def settings(**values: Any) -> Config:
    return load(overrides=CONSENT | values, environ={}, site_file=Path("/nonexistent"))


MODEL = {"llm.base_url": OUTSIDE, "llm.model": "m"}


@pytest.mark.parametrize(
    ("values", "search", "answer"),
    [
        ({}, False, False),
        (MODEL, False, True),
        (MODEL | {"retrieval.transform": "hyde"}, True, True),
        (MODEL | {"retrieval.decide": True}, False, True),
        (MODEL | {"commands.matching": "llm"}, True, True),
        (MODEL | {"commands.matching": "llm", "commands.enabled": False}, False, True),
        ({"model.kind": "openai", "model.base_url": OUTSIDE}, True, True),
        ({"reranker.base_url": OUTSIDE}, False, False),
        ({"reranker.base_url": OUTSIDE, "retrieval.rerank": "endpoint"}, True, True),
        ({"model.kind": "tei", "model.base_url": "http://localhost:80"}, False, False),
        ({"llm.base_url": "http://localhost:80/v1", "llm.model": "m"}, False, False),
    ],
)
def test_where_questions_go(values: dict[str, Any], search: bool, answer: bool) -> None:
    config = settings(**values)
    assert sends_outside(config, answers=False) == search
    assert sends_outside(config, answers=True) == answer


def test_what_the_site_has_not_consented_to_is_refused() -> None:
    config = load(overrides=MODEL, environ={}, site_file=Path("/nonexistent"))
    with pytest.raises(PolicyError):
        sends_outside(config, answers=True)


def asked(name: str, kind: str, *accept: str) -> Question:
    return Question(name, "What is it?", kind, accept=accept)


def test_an_output_may_not_leave_unless_its_entry_says_so() -> None:
    entries = {
        name: Command(name, "", (), (("true",),), may_leave_site=may)
        for name, may in (("a.open", True), ("a.shut", False))
    }
    assert not private_outputs(asked("q", COMMAND, "a.open"), entries)
    assert private_outputs(asked("q", COMMAND, "a.open", "a.shut"), entries)
    assert private_outputs(asked("q", COMMAND, "a.gone"), entries)
    assert not private_outputs(asked("q", DOCUMENT), entries)


ORIGIN = Origin("2026-01-01", 0, "m", "m", "", {}, {})


def test_generated_questions_about_private_output_are_left_out_where_they_would_leave() -> None:
    """Of the built-in entries, what a job is may not leave the site, and how the partitions are may."""
    questions = (
        asked("mine", COMMAND, "slurm.my_jobs"),
        asked("all", COMMAND, "slurm.partitions"),
        asked("page", DOCUMENT),
    )
    made, labelled = QuestionSet(questions, "", origin=ORIGIN), QuestionSet(questions, "")
    told: list[str] = []
    outside = settings(**{"model.kind": "openai", "model.base_url": OUTSIDE})
    kept, whole = may_be_searched([made, labelled], outside, told.append)
    assert [question.id for question in kept.questions] == ["all", "page"]
    assert whole == labelled
    assert len(told) == 1 and "left out: 1," in told[0]
    assert may_be_searched([made], settings(), told.append) == (made,)
    assert len(told) == 1


NOT_ALLOWED = {"policy.outside_endpoints": [], "reranker.base_url": OUTSIDE, "reranker.name": "r"}


@pytest.mark.parametrize(
    ("values", "models", "outside"),
    [
        ({"reranker.base_url": OUTSIDE, "reranker.name": "r"}, {"r": "cross-encoder"}, True),
        ({"reranker.base_url": OUTSIDE, "reranker.name": "r"}, {"other": "cross-encoder"}, False),
        ({"reranker.base_url": "http://localhost", "reranker.name": "r"}, {"r": "cross-encoder"}, False),
        ({"model.kind": "openai", "model.name": "e", "model.base_url": OUTSIDE}, {"e": "bi-encoder"}, True),
        (
            {"policy.outside_endpoints": [], "reranker.base_url": OUTSIDE, "reranker.name": "r"},
            {"r": "cross-encoder"},
            False,
        ),
    ],
)
def test_models_to_compare_with(values: dict[str, Any], models: dict[str, Kind], outside: bool) -> None:
    assert encoders.sends_outside(models, settings(**values)) == outside
