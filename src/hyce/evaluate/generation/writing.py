"""Material -> a question with its answer, as a language model writes it, checked by rules of form."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hyce.evaluate.calls import Calls
from hyce.evaluate.forms import TEXT, closed, fields_of
from hyce.evaluate.generation.material import Asking, output_source, passage_source
from hyce.evaluate.generation.sample import Task
from hyce.llm import ChatClient
from hyce.privacy import neutral
from hyce.prompts import evaluation as prompts
from hyce.records import Message, Source

ROLE = "generation"

LONGEST_QUESTION = 400
"""Characters."""
_FEWEST_WORDS = 3

_OF_THE_MATERIAL = re.compile(
    r"\b(?:the|this|that|these|those|both|each|any|either)\s+(?:(?:given|provided|above|following|first|second"
    r"|two|same)\s+)?(?:passages?(?!\s+of\s+(?:time|an?)\b)|excerpts?|snippets?"
    r"|contexts?(?!\s+(?:of|menus?|switch\w*|windows?|lengths?|sizes?)\b))\b"
    r"|(?<!\ba\s)\b(?:provided|given|above|following|supplied)\s+(?:texts?|documents?|documentation|materials?"
    r"|sources?|information|outputs?)\b(?!\s+(?:files?|codes?|director|folder|format|path|name|stream|change))"
    r"|\b(?:texts?|documents?|documentation|materials?|sources?|information|outputs?|pages?|sections?|tables?)"
    r"\s+(?:above|below|provided|given|supplied|shown)\b(?!\s+(?:by|at|in|to|for|with|on|as|an?|the|\d))"
    r"|\b(?:according\s+to|based\s+on|(?:stated|described|mentioned|given|shown|listed|found)\s+in)\s+"
    r"(?:the|this|that|these)\s+(?:texts?|documents?|documentation|materials?|outputs?|sources?|pages?"
    r"|articles?|sections?|information)\b(?!\s+(?:of|files?|codes?|director|folder)\b)",
    re.IGNORECASE,
)
"""A question that points at what the user doesn't have before them. One that names what it means ("the output
of squeue", "a given source file") doesn't; where this lets one through, the filter has its say."""

_SCHEMA = closed(question=TEXT, answer=TEXT)


@dataclass(frozen=True, slots=True)
class Written:
    """What the model wrote, or why it can't be used."""

    question: str
    answer: str
    model: str
    """As it named itself."""
    why: str = ""
    """Why there is no question; empty where there is one."""


class Writer:
    """Has questions written by one endpoint. Threads may share it."""

    def __init__(self, client: ChatClient, calls: Calls) -> None:
        self._asking = Asking(client, calls, ROLE)

    def write(self, task: Task) -> Written:
        """The question; after a second try, why there is none. Raises EndpointError."""
        why = ""

        def read(reply: str) -> tuple[str, str] | None:
            nonlocal why
            pair = _pair(reply)
            why = unfit(*pair)
            return None if why else pair

        def again(messages: Sequence[Message], reply: str) -> list[Message]:
            return prompts.write_again(messages, reply, why)

        found, model = self._asking.ask(self.messages(task), again, read, _SCHEMA)
        question, answer = found or ("", "")
        return Written(question, answer, model, "" if found else why)

    def messages(self, task: Task) -> list[Message]:
        """The prompt."""
        return self._asking.about(sources(task), lambda material: prompts.write(task.kind, material))

    def tokens(self, task: Task) -> int:
        """Of the prompt."""
        return self._asking.tokens(self.messages(task))


def sources(task: Task) -> list[Source]:
    """What the question is made from: an output first, as an answerer is given it."""
    outputs = [output_source(task.output.output, task.output.description)] if task.output else []
    return [*outputs, *map(passage_source, task.passages)]


def unfit(question: str, answer: str) -> str:
    """Why a question or its answer can't be used; empty where they can."""
    if not question or not answer:
        return 'it is no JSON object with a text as "question" and one as "answer"'
    if len(answer) > prompts.LONGEST_ANSWER:
        return f"the answer has {len(answer)} characters, and {prompts.LONGEST_ANSWER} are the most"
    if len(question) > LONGEST_QUESTION:
        return f"the question has {len(question)} characters, and {LONGEST_QUESTION} are the most"
    # Scripts without blanks between words have longer ones.
    if len(question.split()) < _FEWEST_WORDS and question.isascii():
        return "the question is too short to be understood"
    if not re.search(r"[?\u061f\uff1f\u037e]", question):
        return "the question has no question mark"
    found = _OF_THE_MATERIAL.search(question)
    if found:
        return f'the question speaks of "{found[0]}", which its reader doesn\'t see'
    if "[redacted" in question or "[redacted" in answer:
        return "it holds what was blacked out"
    return ""


def _pair(reply: str) -> tuple[str, str]:
    """Question and answer, empty where there is none."""
    fields = fields_of(reply)
    return _line(fields.get("question")), _line(fields.get("answer"))


def _line(value: object) -> str:
    """A text or a number in one line."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return " ".join(neutral(str(value)).split())
