"""The form of replies: what a model is told of it, and what is read from one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hyce.reply import json_object, without_thinking

TEXT: Mapping[str, Any] = {"type": "string"}
SCORE: Mapping[str, Any] = {"type": "integer", "enum": [0, 1]}
"""Of a criterion that is met or not."""


def closed(**properties: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON schema of an object with exactly these, in this order: what comes first is written first."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def fields_of(reply: str) -> dict[str, object]:
    """The JSON object of a reply, its names in lower case; {} where there is none.

    Some servers open the block of thoughts themselves, so that a reply has its end alone.
    """
    body = without_thinking(reply)
    found = json_object(body) or json_object(body.partition("</think>")[2])
    return {str(name).strip().lower(): value for name, value in found.items()}


def score(value: object) -> int | None:
    """1 or 0, where the value says one of them."""
    if isinstance(value, str):
        return {"0": 0, "1": 1}.get(value.strip())
    return int(value) if isinstance(value, bool | int | float) and value in (0, 1) else None
