"""Values for an entry's placeholders -> its argument lists. Whatever doesn't fit is refused here."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Mapping
from pathlib import Path

from hyce.catalogue import PLACEHOLDER
from hyce.errors import PolicyError
from hyce.records import Command, Parameter, Pipeline

MAX_VALUE = 200
"""Longest value of a parameter, in characters."""
_UNSAFE = re.compile(r"""[;&|<>$`"'\\(){}!*?~\s\x00-\x20\x7f-\xa0\u2028\u2029\ud800-\udfff]""")


def fill(command: Command, params: Mapping[str, str]) -> tuple[Pipeline, ...]:
    """The entry's argv, then each of `also`, with every placeholder replaced inside its own argument.

    Raises PolicyError for a parameter that is missing, unknown, or not a plain value of its pattern.
    """
    known = {parameter.name: parameter for parameter in command.parameters}
    for name in params:
        if name not in known:
            wanted = ", ".join(known) or "none"
            raise PolicyError(f"{command.id} has no parameter {name!r}; its parameters are: {wanted}")
    values = identity(command)
    for parameter in command.parameters:
        value = params.get(parameter.name, parameter.default)
        if value is None:
            raise PolicyError(
                f"{command.id} needs {parameter.name} ({parameter.description}); "
                f"give it as {parameter.name}=VALUE"
            )
        values[parameter.name] = _given(command.id, parameter, value)
    return tuple(
        tuple(
            tuple(PLACEHOLDER.sub(lambda found: values[found[1]], part) for part in stage)
            for stage in pipeline
        )
        for pipeline in (command.argv, *command.also)
    )


def _given(entry_id: str, parameter: Parameter, value: str) -> str:
    """The part of a checked value that the program gets."""
    part = re.match(parameter.part or r".*", check_value(entry_id, parameter, value), re.DOTALL)
    if part is None:
        raise PolicyError(f"{entry_id}: {parameter.name}={value!r} doesn't fit; {parameter.description}")
    return part[0]


def check_value(entry_id: str, parameter: Parameter, value: str) -> str:
    """The value. Raises PolicyError unless it is a plain one: the pattern is the rule, the rest holds even
    where a site's pattern is too wide."""
    place = f"{entry_id}: {parameter.name}={value[:60]!r}"
    if len(value) > MAX_VALUE:
        raise PolicyError(f"{place} is longer than {MAX_VALUE} characters; give the value alone")
    if value.startswith("-"):
        raise PolicyError(f"{place} is an option, not a value; expected: {parameter.description}")
    if _UNSAFE.search(value):
        raise PolicyError(f"{place} holds characters that no value has; expected: {parameter.description}")
    if ".." in value.split("/"):
        raise PolicyError(f"{place} leads out of its folder; give the path without `..`")
    # Where a pattern says "digits", digits of other scripts are not meant: programs read them as 0.
    if not re.fullmatch(parameter.pattern, value, re.ASCII):
        raise PolicyError(f"{place} doesn't fit; expected: {parameter.description}")
    return value


def identity(command: Command) -> dict[str, str]:
    """The process's own user as the password database has it. Raises PolicyError where it has none."""
    uid = os.getuid()
    try:
        user = pwd.getpwuid(uid)
    except KeyError as error:
        raise PolicyError(f"user id {uid} is in no password database; hyce can't tell who you are") from error
    values = {"me": user.pw_name, "uid": str(uid), "home": user.pw_dir}
    if user.pw_name.startswith("-") or not user.pw_dir.startswith("/"):
        raise PolicyError(f"user id {uid} has an unusable name or home directory; tell the administrators")
    if any("{cwd}" in part for stage in command.stages for part in stage):
        try:
            values["cwd"] = str(Path.cwd())
        except OSError as error:
            raise PolicyError("the current folder is gone; change to another one with cd") from error
    return values
