"""Whether questions leave the site when they are asked, and which of them may not.

A question that was generated from what a command printed tells of it. Where the output may not leave the
site, neither may the question.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from hyce import catalogue
from hyce.config import Config, for_role
from hyce.endpoint import location
from hyce.evaluate.records import COMMAND, MIXED, Question, QuestionSet
from hyce.records import Command


def sends_outside(config: Config, *, answers: bool) -> bool:
    """Whether a question leaves the site while sources are looked up for it, or also while it is answered.

    Raises PolicyError or ConfigError.
    """
    retrieval, commands = config.retrieval, config.commands
    used = {
        "answer": answers,
        "commands": commands.enabled and commands.matching == "llm",
        "queries": retrieval.transform != "none" or (answers and retrieval.decide),
    }
    roles = [for_role(config, role) for role, asked in used.items() if asked]
    places = [location(own) for own in roles if own.llm.base_url]
    if config.model.kind != "onnx":
        places.append(location(config, "model"))
    if retrieval.rerank == "endpoint":
        places.append(location(config, "reranker"))
    return "outside" in places


def is_private(name: str, entries: Mapping[str, Command]) -> bool:
    """Whether what the entry prints may not leave the site; so it is with one that is gone."""
    return name not in entries or not entries[name].may_leave_site


def private_outputs(question: Question, entries: Mapping[str, Command]) -> bool:
    """Whether what answers the question may not leave the site."""
    return any(is_private(name, entries) for name in question.accept or ())


def tells_of_private(question: Question, entries: Mapping[str, Command]) -> bool:
    """Whether the question was made from what may not leave the site."""
    return question.kind in (COMMAND, MIXED) and private_outputs(question, entries)


def may_be_searched(
    sets: Sequence[QuestionSet], config: Config, report: Callable[[str], None]
) -> tuple[QuestionSet, ...]:
    """The sets without the questions for which no sources may be looked up, as they would leave the site.

    Raises PolicyError or ConfigError. report: is told how many are left out.
    """
    return without_private(sets, config, report) if sends_outside(config, answers=False) else tuple(sets)


def without_private(
    sets: Sequence[QuestionSet], config: Config, report: Callable[[str], None]
) -> tuple[QuestionSet, ...]:
    """The sets without the questions that may not leave the site. report: is told how many those are."""
    entries = catalogue.load_for(config)

    def kept(found: QuestionSet) -> QuestionSet:
        if found.origin is None:
            return found
        may_leave = tuple(each for each in found.questions if not tells_of_private(each, entries))
        return replace(found, questions=may_leave)

    remaining = tuple(map(kept, sets))
    left_out = sum(len(found.questions) for found in sets) - sum(len(found.questions) for found in remaining)
    if left_out:
        report(
            f"questions left out: {left_out}, made from commands' output that may not leave the site; a "
            "model that would be sent them is outside"
        )
    return remaining
