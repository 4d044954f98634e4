"""The values that a question holds for a command's parameters."""

from __future__ import annotations

import re

from hyce.errors import PolicyError
from hyce.parameters import check_value
from hyce.records import Command, Parameter

# What stands for a value when texts are compared: numbers and names have no meaning to a model, and
# "job 48213" should be as near to "job 60211" as two words can be.
_SAME_FOR_ALL = {"job_id": "1234", "node": "node1", "mount": "/scratch", "queue": "main", "name": "program"}


def find_all(command: Command, question: str) -> dict[str, str] | None:
    """A value for each of the entry's parameters that the question holds one for, as it stands there.

    None when one without a default is missing: the entry can't answer this question.
    """
    values: dict[str, str] = {}
    for parameter in command.parameters:
        value = find(command, parameter, question)
        if value is not None:
            values[parameter.name] = value
        elif parameter.default is None:
            return None
    return values


def find(command: Command, parameter: Parameter, question: str) -> str | None:
    """The first value in the question that may be given to the program; patterns are tried in order."""
    for pattern in parameter.find:
        for found in re.finditer(pattern, question):
            value = found[1] if found.re.groups else found[0]
            try:
                return check_value(command.id, parameter, value)
            except PolicyError:
                continue
    return None


def generalised(text: str, values: dict[str, str]) -> str:
    """The text with each value replaced by one that stands for all of its kind."""
    for name, value in values.items():
        # No stand-in holds a backslash: it is safe as a replacement.
        text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", _SAME_FOR_ALL.get(name, name), text)
    return text
