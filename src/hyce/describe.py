"""A command line -> a draft of a catalogue entry: what it tells, in the words of a language model.

The model reads the program's manual page, or what `--help` prints. It writes the description and the example
questions, nothing else: what would run is what the person typed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from hyce import prompts
from hyce.drafts import Draft, catalogue_file, fault, free_id
from hyce.errors import CatalogueError, PolicyError, UsageError
from hyce.llm import LanguageModel, output_tokens
from hyce.privacy import neutral, redact
from hyce.records import Command, CommandOutput, Message, Pipeline
from hyce.reply import json_object
from hyce.shell_line import read_line

QUESTIONS = (4, 12)
"""The fewest and the most example questions of a draft."""
_DESCRIPTION = (20, 600)
_QUESTION = (3, 200)
_CHARACTERS_PER_TOKEN = 3
_ISOLATION = ("pid", "tmp", "devices", "no_new_privs")
_OVERSTRUCK = re.compile(".\b")

_HEAD = (
    "A draft, written by the language model {model} from {origin}.",
    "It is not active. Review it: what it runs, whether the description and each question are right, whether",
    "its output may leave the site. Write parameters for what differs from question to question, such as a",
    "job's number. Name the `isolation` that it bears: without any it runs outside of the sandbox.",
    "Then put this file into a folder of policy.catalogue, and run `hyce commands check`.",
)


@dataclass(frozen=True, slots=True)
class Manual:
    """What a program says of itself."""

    origin: str
    """The manual page or the command that printed it."""
    text: str


def typed(line: str) -> tuple[Pipeline, tuple[str, ...]]:
    """The argument lists of the line, and what was changed on the way. Raises UsageError."""
    read = read_line(line)
    if isinstance(read, str):
        raise UsageError(f"{line}: no entry can run this: {read}")
    return read.argv, read.notes


def manual(program: str, run: Callable[[Command], CommandOutput]) -> Manual:
    """The program's manual page, or what `--help` prints where there is none.

    run: runs a command as an entry of the catalogue is run, in all its layers.
    Raises CatalogueError where neither tells anything, PolicyError where nothing may run.
    """
    reasons = []
    for origin, argv in (
        (f"the manual page of {program}", ("man", "-P", "cat", program)),
        (f"`{program} --help`", (program, "--help")),
    ):
        asking = Command(
            "describe.manual", "", (), (argv,), timeout=20, max_bytes=400_000, isolation=_ISOLATION
        )
        output = run(asking)
        if output.status == "refused":
            raise PolicyError(f"{program}: its manual can't be read: {output.reason}")
        # Many programs print their help on stderr, or end it with an error's exit code.
        printed = output.stdout if argv[0] == "man" else output.stdout or output.stderr
        text = _OVERSTRUCK.sub("", printed).strip()
        if text and (output.status == "ok" or (output.status == "failed" and argv[0] != "man")):
            return Manual(origin, text)
        said, *_ = (output.reason or output.stderr.strip() or "empty").splitlines()
        reasons.append(f"{origin}: {neutral(said)}")
    told = "; ".join(reasons)
    raise CatalogueError(f"{program}: nothing to describe it from ({told}); write the entry by hand")


def describe(
    line: str, manuals: Sequence[Manual], client: LanguageModel, *, taken: Collection[str] = ()
) -> Draft:
    """The draft of an entry for the line. taken: ids that exist already.

    Raises UsageError for what no entry can run, EndpointError where the model gives no usable draft.
    """
    argv, notes = typed(line)
    room = _room(client) // max(1, len(manuals))
    parts = [(each.origin, excerpt(each.text, argv, room)) for each in manuals]
    if client.location == "outside":
        parts = [(origin, redact(text)) for origin, text in parts]
    messages = prompts.describe(redact(line) if client.location == "outside" else line, parts, QUESTIONS)
    description, questions = _asked(messages, client)
    entry_id = free_id("draft", argv[0][0], taken)
    draft = Draft(entry_id, line, argv, description, questions, notes)
    if reason := fault(draft):
        raise UsageError(f"{line}: no entry can run this: {reason}")
    return draft


def described_file(draft: Draft, manuals: Sequence[Manual], model: str) -> str:
    """The catalogue file to review."""
    origin = " and ".join(each.origin for each in manuals)
    name = " ".join(neutral(model).split())
    return catalogue_file([draft], [line.format(model=name, origin=origin) for line in _HEAD])


def excerpt(text: str, argv: Pipeline, size: int) -> str:
    """At most so many characters: the beginning, and the paragraphs about options that the line has."""
    if len(text) <= size:
        return text
    options = [argument.partition("=")[0] for stage in argv for argument in stage if argument.startswith("-")]
    head = text[: size * 2 // 3]
    about = [
        paragraph
        for paragraph in re.split(r"\n\s*\n", text[len(head) :])
        if any(re.match(rf"\s*(?:-\S+,\s+)*{re.escape(option)}(?![\w-])", paragraph) for option in options)
    ]
    return "\n\n".join([head, "[...]", *about])[:size]


def schema() -> dict[str, Any]:
    """The JSON schema of the model's part of a draft."""
    least, most = QUESTIONS
    questions = {"type": "array", "items": {"type": "string"}, "minItems": least, "maxItems": most}
    return {
        "type": "object",
        "properties": {"description": {"type": "string"}, "questions": questions},
        "required": ["description", "questions"],
        "additionalProperties": False,
    }


def _asked(messages: list[Message], client: LanguageModel) -> tuple[str, tuple[str, ...]]:
    """Description and questions, asked for a second time where the first reply can't be used."""
    for _ in range(2):
        completion = client.complete(messages, schema=schema())
        usable = _usable(json_object(completion.text))
        if usable is not None:
            return usable
        messages = prompts.describe_again(messages, completion.text, QUESTIONS)
    raise client.error("gave no usable draft, twice", "use another model, or write the entry by hand")


def _usable(reply: dict[str, object]) -> tuple[str, tuple[str, ...]] | None:
    """The reply's description and questions, None where they don't fit."""
    description, questions = reply.get("description"), reply.get("questions")
    if not isinstance(description, str) or not isinstance(questions, list):
        return None
    if not all(isinstance(question, str) for question in questions):
        return None
    description = " ".join(neutral(description).split())
    cleaned = tuple(dict.fromkeys(" ".join(neutral(question).split()) for question in questions))
    fits = _within(len(description), _DESCRIPTION) and _within(len(cleaned), QUESTIONS)
    return (description, cleaned) if fits and all(_within(len(each), _QUESTION) for each in cleaned) else None


def _within(number: int, limits: tuple[int, int]) -> bool:
    return limits[0] <= number <= limits[1]


def _room(client: LanguageModel) -> int:
    """Characters that the model's context has for what programs say of themselves."""
    tokens = client.config.llm.context_tokens - output_tokens(client.config) - 800
    return max(1000, tokens * _CHARACTERS_PER_TOKEN)
