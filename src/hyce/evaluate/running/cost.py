"""What a run will ask the models for, about: calls and tokens by role, before anything is sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hyce.config import Config
from hyce.evaluate.records import Mode
from hyce.evaluate.report.outcomes import source
from hyce.evaluate.running.experiment import Task, Wanted, missing
from hyce.prompts import evaluation as prompts

_BYTES = 4
"""Of English text in a token, about."""
_RULES = 350
"""Tokens of the rules for an answer."""
_FILLED = 0.67
"""Of passages.size, on average (indexing.expect)."""
_OUTPUT = 500
"""Tokens of a command's output."""
_REPLY = 150
"""Tokens of an answer, or of a verdict with its reasons."""
_REASONS = 200
"""Further tokens of an answer with a chain of thought."""
_SEARCH, _MENU = 300, 800
"""Tokens of the prompts that help to search, and that choose commands."""
_HELP = 100
"""Tokens of the replies to these."""
_CUT = 400
"""Tokens of the rules for cutting a page."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Calls to the model of a role, and their tokens, about."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )


def cost(config: Config, tasks: Sequence[Task], mode: Mode, wanted: Wanted) -> dict[str, Cost]:
    """What a variant's tasks take, by role. It is less where a model is asked the same twice."""
    total: dict[str, Cost] = {}
    for task in tasks:
        for role, taken in _of_task(config, task, mode, wanted):
            total[role] = total.get(role, Cost()) + taken
    return total


def cutting(documents: int, chunks: int, size: int) -> Cost:
    """What cutting so many pages takes, with one call for each."""
    return Cost(documents, int(chunks * size * _FILLED) + _CUT * documents, 5 * chunks)


def _of_task(config: Config, task: Task, mode: Mode, wanted: Wanted) -> Iterator[tuple[str, Cost]]:
    asked, reference = (len(text) // _BYTES for text in (task.question.question, task.question.answer))
    sources = _sources(config, task)
    if task.before is None or task.before.status == "failed":
        reply = _REPLY + (_REASONS if config.llm.chain_of_thought else 0)
        yield "answer", Cost(1, _RULES + asked + sources, reply)
        rounds = {"none": 0, "hyde": 1, "fusion": 1, "interleaved": config.retrieval.rounds}
        searches = rounds[config.retrieval.transform] + int(config.retrieval.decide)
        if searches:
            yield "queries", Cost(searches, searches * (_SEARCH + asked), searches * _HELP)
        if config.commands.enabled and config.commands.matching == "llm":
            yield "commands", Cost(1, _MENU + asked, _HELP)
    rules = sum(len(message["content"]) for message in prompts.judge("", "", "", ())) // _BYTES
    seen = rules + asked + _REPLY + reference + (sources if mode == "grounded" else 0)
    answered = task.before is not None and task.before.status == "answered"
    for role, _ in missing(task.before, wanted) if task.before and answered else wanted:
        yield role, Cost(1, seen, _REPLY)


def _sources(config: Config, task: Task) -> int:
    """Tokens of what the model is given."""
    passages = int(config.retrieval.passages * config.passages.size * _FILLED)
    runs = config.commands.enabled and config.commands.run and source(task.question) == "command"
    return min(passages + (_OUTPUT if runs else 0), config.llm.context_tokens)
