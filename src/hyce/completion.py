"""What an OpenAI-compatible endpoint sends back, read: a stream of events, or one JSON document."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


class UnreadableError(Exception):
    """What came is not what such an endpoint sends; the text says what it is."""


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's answer."""

    text: str
    model: str
    finish_reason: str | None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    notices: tuple[str, ...] = ()
    broken: bool = False
    """Whether the connection ended before the answer did."""


@dataclass
class WrittenAnswer:
    """The answer as far as it has come."""

    show: Callable[[str], None]
    text: str = ""
    model: str = ""
    finish_reason: str | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    broken: bool = False
    done: bool = False

    def add(self, piece: str) -> None:
        """Takes the next piece of text."""
        if piece:
            # A lone surrogate is valid in JSON but can be neither printed nor stored.
            piece = piece.encode("utf-8", "replace").decode("utf-8")
            self.text += piece
            self.show(piece)

    def note(self, event: dict[str, Any]) -> None:
        """Takes what an event or a document says beside the text."""
        self.model = _text(event.get("model")) or self.model
        if isinstance(event.get("usage"), dict):
            self.usage = event["usage"]

    def completion(self, asked: str) -> Completion:
        """The whole, with what the reader must know about it."""
        notices = []
        broken = self.broken or not (self.done or self.finish_reason)
        if broken:
            notices.append("The connection ended in the middle of the answer; it breaks off.")
        elif self.finish_reason == "length":
            notices.append("The answer reached its longest length (llm.max_output_tokens) and breaks off.")
        elif self.finish_reason == "content_filter":
            notices.append("The endpoint's content filter cut the answer.")
        return Completion(
            self.text,
            self.model or asked,
            self.finish_reason,
            _count(self.usage.get("prompt_tokens")),
            _count(self.usage.get("completion_tokens")),
            tuple(notices),
            broken,
        )


def read_event(line: bytes, written: WrittenAnswer) -> bool:
    """Takes one line of a stream; True when it was the last. Raises UnreadableError."""
    name, _, value = line.strip().partition(b":")
    if name != b"data":
        return False
    if value.strip() == b"[DONE]":
        written.done = True
        return True
    event = _object(value)
    written.note(event)
    for choice in _choices(event)[:1]:
        written.add(_content(choice.get("delta")))
        written.finish_reason = _text(choice.get("finish_reason")) or written.finish_reason
    return False


def read_body(body: bytes, kind: str, written: WrittenAnswer) -> None:
    """Takes a whole reply; also a stream that was sent under another content type. Raises UnreadableError."""
    if body.lstrip().startswith((b"data:", b":", b"event:")):
        for line in body.splitlines():
            if read_event(line, written):
                return
        return
    if not body.strip():
        raise UnreadableError("answered with nothing")
    try:
        document = _object(body)
    except UnreadableError as error:
        raise UnreadableError(f"{error} ({kind or 'no content type'})") from error
    choices = _choices(document)
    if not choices:
        raise UnreadableError("answered with JSON that holds no choices")
    written.note(document)
    written.done = True
    written.finish_reason = _text(choices[0].get("finish_reason")) or None
    written.add(_content(choices[0].get("message")))


def _object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UnreadableError("answered with something else than JSON") from error
    if not isinstance(value, dict):
        raise UnreadableError("answered with JSON of another shape")
    if value.get("error"):
        said = value["error"]
        raise UnreadableError(
            f"reported an error: {said.get('message', said) if isinstance(said, dict) else said}"
        )
    return value


def _choices(event: dict[str, Any]) -> list[dict[str, Any]]:
    choices = event.get("choices")
    if not isinstance(choices, list):
        return []
    return [choice for choice in choices if isinstance(choice, dict)]


def _content(message: object) -> str:
    """The text of a message or a delta: a text, or a list of parts."""
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):
        return "".join(_text(part.get("text")) for part in content if isinstance(part, dict))
    return _text(content)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
