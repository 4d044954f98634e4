"""The language model chooses commands: among the nearest entries, by what they tell, by a JSON schema.

What it returns is input like any other. An id counts only if it was offered, and a parameter only if it fits
its pattern and stands in the question: no text of the model's own gets into a command.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hyce import prompts
from hyce.errors import EndpointError, PolicyError
from hyce.llm import LanguageModel
from hyce.parameters import check_value
from hyce.privacy import redact
from hyce.records import Command, Match
from hyce.reply import json_object


def choose(
    question: str, candidates: Sequence[Match], client: LanguageModel, *, most: int
) -> tuple[Match, ...] | None:
    """The entries that the model would run, its best first, at most `most`; () for none of them.

    None where its reply can't be used, also after a second try. Raises EndpointError.
    """
    asked = redact(question) if client.location == "outside" else question
    commands = [candidate.command for candidate in candidates]
    messages = prompts.choose(asked, commands, most=most)
    offered = {candidate.command.id: candidate for candidate in candidates}
    for _ in range(2):
        completion = client.complete(messages, schema=schema(commands, most))
        chosen = json_object(completion.text).get("commands")
        if isinstance(chosen, list):
            picked = [_picked(item, offered, question) for item in chosen[:most]]
            valid = {match.command.id: match for match in picked if match is not None}
            # A choice of which nothing is valid is none that was made.
            return tuple(valid.values()) if valid or not chosen else None
        messages = prompts.choose_again(messages, completion.text)
    return None


def schema(commands: Sequence[Command], most: int) -> dict[str, Any]:
    """The JSON schema of a choice: ids that were offered, each with the parameters of its entry."""
    return {
        "type": "object",
        "properties": {
            "commands": {"type": "array", "maxItems": most, "items": {"anyOf": [*map(_choice, commands)]}}
        },
        "required": ["commands"],
        "additionalProperties": False,
    }


def _choice(command: Command) -> dict[str, Any]:
    params = {
        parameter.name: {"type": "string", "description": parameter.description}
        for parameter in command.parameters
    }
    required = [parameter.name for parameter in command.parameters if parameter.default is None]
    values = {
        "type": "object",
        "properties": params,
        "required": required,
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"id": {"type": "string", "enum": [command.id]}, "params": values},
        "required": ["id", "params"],
        "additionalProperties": False,
    }


def _picked(item: object, offered: Mapping[str, Match], question: str) -> Match | None:
    """The match that the model means, None where it isn't valid."""
    if not isinstance(item, dict):
        return None
    match = offered.get(str(item.get("id")))
    given = item.get("params", {})
    if match is None or not isinstance(given, dict):
        return None
    params: dict[str, str] = {}
    for parameter in match.command.parameters:
        value = given.get(parameter.name)
        value = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
        if value and re.search(rf"(?<!\w){re.escape(value)}(?!\w)", question):
            try:
                params[parameter.name] = check_value(match.command.id, parameter, value)
            except PolicyError:
                return None
        elif parameter.default is None:
            return None
    return replace(match, params=params)


def explained(error: EndpointError | None) -> str:
    """What the user is told where hyce's own choice stands in for the model's."""
    why = f" ({error})" if error else ""
    return f"The language model's choice of commands could not be used{why}; hyce's own choice was."
