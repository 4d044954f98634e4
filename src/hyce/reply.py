"""What a language model wrote, taken apart: its reasons, its answer, and whether it could answer at all."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from hyce.prompts import NOT_ANSWERED

NO_ANSWER = "The documentation and the commands that were run do not answer this question."
"""What the reader is told, in our words, when the model says that the sources don't answer."""

_THINKING = re.compile(r"\s*<think(?:ing)?>(.*?)(?:</think(?:ing)?>\s*|\Z)", re.DOTALL | re.IGNORECASE)
_DECORATION = " \t\r\n*_#>`\"'"


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's reply."""

    text: str
    """What to show; begins with NO_ANSWER where the sources don't answer."""
    answered: bool
    reasons: str | None = None


def read(text: str) -> Reply:
    """The reply in plain text. A leading <think> block is reasons, not answer."""
    thinking = _THINKING.match(text)
    reasons = thinking[1].strip() or None if thinking else None
    body = text[thinking.end() :] if thinking else text
    rest = _after_marker(body)
    if rest is None:
        return Reply(body.strip(), True, reasons)
    return Reply(f"{NO_ANSWER}\n\n{rest}" if rest else NO_ANSWER, False, reasons)


def read_reasoned(text: str) -> Reply | None:
    """The reply in the form {"reasons": ..., "answer": ...}; None when no answer can be made out.

    Text around the object, code fences, trailing commas, single quotes, raw line breaks, unescaped
    quotes and a missing end are put up with.
    """
    thinking = _THINKING.match(text)
    body = text[thinking.end() :] if thinking else text
    fields = json_object(body) or _picked(body)
    answer = _as_text(fields.get("answer"))
    if not answer:
        return None
    reply = read(answer)
    return Reply(reply.text, reply.answered, _as_text(fields.get("reasons")) or reply.reasons)


class Opening:
    """Passes a streamed reply on, once its beginning is known to be an answer.

    A <think> block is swallowed, and the agreed first line is replaced by our words.
    """

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._held = ""
        self._open = False

    def feed(self, delta: str) -> None:
        """Takes the next piece."""
        if self._open:
            self._show(delta)
            return
        self._held += delta
        start = self._held.lstrip()
        if _may_become("<think", start.lower()) and "</think" not in start.lower():
            return
        body = without_thinking(self._held).lstrip(_DECORATION).casefold()
        if NOT_ANSWERED.casefold().startswith(body) or _after_marker(body) == "":
            return
        self.close()

    def close(self) -> None:
        """Shows what is still held."""
        if not self._open:
            self._open = True
            text = read(self._held).text
            # What came so far may end with the space between two words.
            self._show(text + self._held[len(self._held.rstrip()) :] if text else "")


def without_thinking(text: str) -> str:
    """The text without a leading <think> block."""
    thinking = _THINKING.match(text)
    return text[thinking.end() :] if thinking else text


def _may_become(marker: str, start: str) -> bool:
    return start.startswith(marker) or marker.startswith(start)


def _after_marker(body: str) -> str | None:
    """What follows the agreed first line; None when the reply doesn't begin with it."""
    start = body.lstrip(_DECORATION)
    if not start.casefold().startswith(NOT_ANSWERED.casefold()):
        return None
    rest = start[len(NOT_ANSWERED) :]
    if rest[:1].isalnum():
        return None
    return rest.lstrip(_DECORATION + ".:;,-\N{EN DASH}\N{EM DASH}").strip()


def json_object(body: str) -> dict[str, object]:
    """The object in the text, when it is JSON or nearly; {} otherwise."""
    start, end = body.find("{"), body.rfind("}")
    if start < 0 or end < start:
        return {}
    span = body[start : end + 1]
    without_commas = re.sub(r",\s*}\s*$", "}", span)
    for candidate in (span, without_commas):
        try:
            value = json.loads(candidate, strict=False)
        except (ValueError, RecursionError):
            continue
        return value if isinstance(value, dict) else {}
    try:
        value = ast.literal_eval(span)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return {}
    return value if isinstance(value, dict) else {}


def _picked(body: str) -> dict[str, object]:
    """The fields by their names, when the object is broken or its end is missing."""
    fields: dict[str, object] = {}
    for name, other in (("reasons", "answer"), ("answer", "reasons")):
        begin = re.search(rf"""(?<!\\)["']{name}["']\s*:\s*(["'])""", body)
        if begin is None:
            continue
        rest = body[begin.end() :]
        quote = begin[1]
        # The value ends before the other field, or else at the object's end, or else it was cut off.
        end = re.search(
            rf"""{quote}\s*,\s*["']{other}["']\s*:|{quote}\s*,?\s*}}[^"']*$|{quote}[\s`]*$""", rest
        )
        fields[name] = _unescaped(rest[: end.start()] if end else rest)
    return fields


def _unescaped(value: str) -> str:
    """A JSON string's content, decoded piece by piece, so that one broken escape spoils nothing else."""

    def decode(match: re.Match[str]) -> str:
        if match[0] == r"\'":
            return "'"
        try:
            return str(json.loads(f'"{match[0]}"'))
        except ValueError:
            return match[0]

    pair = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    text = re.sub(rf"{pair}|\\u[0-9a-fA-F]{{4}}|\\.", decode, value, flags=re.DOTALL)
    return re.sub(r"[\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", text)


def _as_text(value: object) -> str:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "\n".join(value).strip()
    if isinstance(value, str | int | float):
        return re.sub(r"[\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", str(value)).strip()
    return ""
