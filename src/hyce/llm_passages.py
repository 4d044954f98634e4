"""Pages -> passages, cut where a language model says.

The model is shown a page as numbered units and returns the numbers at which passages begin: no text of its
own gets into a passage. A long page goes in windows, the last passage of each being carried into the next.
What can't be used is asked for once more, then the page is cut along its structure instead.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from hyce import prompts
from hyce.chunk import Length, chunk
from hyce.config import Config, cache_folder, for_role
from hyce.context import cut_end, measure, token_length
from hyce.cut import Cut, Parsed
from hyce.cut_cache import CutCache
from hyce.errors import ConfigError, EndpointError
from hyce.llm import ChatClient, output_tokens
from hyce.records import Message, Page
from hyce.reply import json_object, without_thinking
from hyce.units import Unit, passages, together, units

AT_ONCE = 4
"""Requests under way at the same time."""
_AHEAD = 3 * AT_ONCE
"""Pages read ahead of the one that is waited for."""
_PATIENCE = 3
"""After so many pages in a row for which the endpoint failed, it isn't asked any more."""
_SHOWN = 400
"""Tokens of a unit that the model is shown at most: to see what it is about, not to read it."""
_NUMBER = 6
"""Tokens that a position takes in the reply, at most."""
_LEAST = 256
"""Tokens of a window, at least."""
_QUOTED = 500
"""Characters of a bad reply that are shown to the model again."""

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"starts": {"type": "array", "items": {"type": "integer"}}},
    "required": ["starts"],
    "additionalProperties": False,
}


_Task = tuple[Parsed, Future[Cut]] | None
"""A page and where the result goes; None ends a thread."""


class _UnusableError(Exception):
    """The page can't be cut as the model says; the text says why."""


@dataclass(frozen=True, slots=True)
class _Limits:
    """What a window, and a passage, may hold."""

    size: int
    """Tokens that passages should have."""
    longest: int
    """Tokens that the embedding model reads."""
    room: int
    """Tokens of the language model's context for a window."""
    units: int
    """Units of a window, so that the reply has room for a position at each."""


class LlmCutter:
    """Asks about several pages at the same time and passes them on in their order."""

    def __init__(self, config: Config, *, longest: int, length: Length, cache: Path | None = None) -> None:
        """longest: tokens that the embedding model reads, as `length` counts them.

        Raises ConfigError where no language model is configured, PolicyError where the site hasn't consented
        to it; nothing has been sent then.
        """
        asked = for_role(config, "passages")
        if not (asked.llm.base_url and asked.llm.model):
            raise ConfigError(
                'passages.kind = "llm" needs a language model: set base_url and model in [llm] or '
                '[llm.passages], or passages.kind = "structure"'
            )
        self._stopped = threading.Event()
        self._client = ChatClient(asked, sleep=self._pause)
        self._cache = CutCache(cache or cache_folder() / "passages")
        self._length, self._model_length = length, token_length(asked)
        self._limits = _limits(asked, longest, self._model_length)
        self._lock = threading.Lock()
        self._failed = 0
        self._counts = dict.fromkeys(("asked", "sent", "written", "reused"), 0)

    @property
    def cost(self) -> str:
        """How much the language model was asked for."""
        counts = self._counts
        if not (counts["asked"] or counts["reused"]):
            return ""
        return (
            f"{self._client.model} cut the pages; requests: {counts['asked']}, "
            f"tokens read: {counts['sent']}, written: {counts['written']}, "
            f"replies kept from earlier runs: {counts['reused']}"
        )

    def close(self) -> None:
        """Ends what is under way; nothing is waited for."""
        self._stopped.set()
        self._client.close()

    def cut(self, pages: Iterator[Parsed]) -> Iterator[Cut]:
        """The pages in their order, cut."""
        tasks: SimpleQueue[_Task] = SimpleQueue()
        for _ in range(AT_ONCE):
            # Daemons: Ctrl-C ends the program without waiting for replies.
            threading.Thread(target=self._work, args=(tasks,), daemon=True).start()
        waiting: deque[Future[Cut]] = deque()
        try:
            for parsed in pages:
                future: Future[Cut] = Future()
                tasks.put((parsed, future))
                waiting.append(future)
                if len(waiting) > _AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            _empty(tasks)
            for _ in range(AT_ONCE):
                tasks.put(None)

    def _work(self, tasks: SimpleQueue[_Task]) -> None:
        while (task := tasks.get()) is not None:
            (document, page), future = task
            try:
                future.set_result(self._cut(Cut(document, page, ())))
            except BaseException as error:
                future.set_exception(error)

    def _cut(self, cut: Cut) -> Cut:
        page, limits = cut.page, self._limits
        row = units(page)
        try:
            starts = [0] if self._needs_no_cut(page, row) else self._starts(row)
        except _UnusableError as error:
            made = chunk(page, size=limits.size, length=self._length)
            note = f"cut along its structure, not by the language model: {error}"
            return replace(cut, chunks=tuple(made), note=note)
        made = passages(page, starts, longest=limits.longest, length=self._length)
        return replace(cut, chunks=tuple(made))

    def _needs_no_cut(self, page: Page, row: Sequence[Unit]) -> bool:
        """Whether the page is one short passage."""
        full = [section for section in page.sections if section.blocks]
        return len(row) < 2 or self._length(together(full).text) <= self._limits.size

    def _starts(self, row: Sequence[Unit]) -> list[int]:
        """The indexes of the units at which passages begin, window by window. Raises _UnusableError."""
        lines = [self._line(unit) for unit in row]
        starts, first = [0], 0
        while True:
            end = self._end(row, lines, first)
            written = "\n".join(_entry(row, lines, at, first) for at in range(first, end))
            starts += [first + at for at in self._ask(written, end - first)]
            if end == len(row):
                return starts
            # The last passage may go on beyond the window, so it is looked at again; a very long one is not.
            if starts[-1] - first < (end - first) // 2:
                starts.append(end)
            first = starts[-1]

    def _line(self, unit: Unit) -> str:
        """The unit's length, and as much of its text as the model is shown."""
        most = min(_SHOWN, self._limits.room // 4)
        fits = self._model_length(unit.text) <= most
        shown = unit.text if fits else cut_end(unit.text, most, self._model_length)
        return f"({self._length(unit.text)}): {shown}"

    def _end(self, row: Sequence[Unit], lines: Sequence[str], first: int) -> int:
        """Where the window that begins at `first` ends: at the last border of sections in its second half, or
        else where it is full."""
        room, end = self._limits.room, first
        while end < len(row) and end - first < self._limits.units:
            room -= self._model_length(_entry(row, lines, end, first)) + 1
            if room < 0 and end - first >= 2:
                break
            end += 1
        if end == len(row):
            return end
        middle = first + (end - first) // 2
        borders = (at for at in range(end, middle, -1) if row[at].section != row[at - 1].section)
        return next(borders, end)

    def _ask(self, written: str, number: int) -> list[int]:
        """Where passages begin within a window of so many units, counted from 0; 0 itself is left out."""
        messages = prompts.cut(written, size=self._limits.size, longest=self._limits.longest)
        key = (self._client.model, *(message["content"] for message in messages))
        kept = _positions(self._cache.read(*key), number)
        if kept is not None:
            self._count(reused=1)
            return kept
        if self._failed >= _PATIENCE:
            raise _UnusableError(f"it failed for {_PATIENCE} pages in a row and isn't asked any more")
        found = self._reply(messages, number)
        self._cache.write({"starts": [1, *(at + 1 for at in found)]}, *key)
        return found

    def _reply(self, messages: list[Message], number: int) -> list[int]:
        """The positions that the model gives, at the second try where the first fails."""
        for last in (False, True):
            try:
                text = self._complete(messages)
            except EndpointError as error:
                if last:
                    with self._lock:
                        self._failed += 1
                    raise _UnusableError(str(error)) from error
                continue
            found = _positions(json_object(without_thinking(text)), number)
            if found is not None:
                return found
            messages = prompts.cut_again(messages, text[:_QUOTED], number)
        raise _UnusableError("its reply holds no ascending numbers of units")

    def _complete(self, messages: Sequence[Message]) -> str:
        """What the model writes. Raises EndpointError."""
        if self._stopped.is_set():
            raise EndpointError("interrupted")
        completion = self._client.complete(messages, schema=SCHEMA)
        self._failed = 0
        self._count(asked=1, sent=completion.prompt_tokens or 0, written=completion.completion_tokens or 0)
        return completion.text

    def _count(self, **more: int) -> None:
        with self._lock:
            for name, number in more.items():
                self._counts[name] += number

    def _pause(self, seconds: float) -> None:
        """Waits between two tries, unless the work has ended."""
        if self._stopped.wait(seconds):
            raise EndpointError("interrupted")


def _entry(row: Sequence[Unit], lines: Sequence[str], at: int, first: int) -> str:
    """A unit as the model is shown it, below its section's heading and its block's head where they begin."""
    unit, before = row[at], row[at - 1] if at > first else None
    above = []
    if before is None or unit.section != before.section:
        above.append("# " + " > ".join(unit.heading))
    if unit.head and (before is None or (unit.section, unit.block) != (before.section, before.block)):
        above.append("~ " + unit.head)
    return "\n".join([*above, f"{at - first + 1} {lines[at]}"])


def _positions(reply: object, number: int) -> list[int] | None:
    """The positions of a reply, counted from 0 and without 0 itself; None where they can't be used."""
    starts = reply.get("starts") if isinstance(reply, dict) else None
    if not isinstance(starts, list) or not starts:
        return None
    if any(isinstance(start, bool) or not isinstance(start, int) for start in starts):
        return None
    ascending = all(one < next_one for one, next_one in pairwise(starts))
    if not ascending or not 1 <= starts[0] <= starts[-1] <= number:
        return None
    return [start - 1 for start in starts if start > 1]


def _limits(asked: Config, longest: int, length: Length) -> _Limits:
    """What fits into the language model's context and reply. Raises ConfigError where nothing does."""
    size = min(asked.passages.size, longest)
    frame = measure(prompts.cut("", size=size, longest=longest), length)
    reply = output_tokens(asked)
    # A second try holds the first reply as well.
    room = asked.llm.context_tokens - reply - frame - _QUOTED
    most = (reply - 32) // _NUMBER
    if room < _LEAST or most < 8:
        raise ConfigError(
            'passages.kind = "llm": llm.context_tokens or llm.max_output_tokens leaves no room for a page; '
            "raise them, for [llm.passages] alone if need be"
        )
    return _Limits(size, longest, room, most)


def _empty(tasks: SimpleQueue[_Task]) -> None:
    """Take out what nobody has begun."""
    try:
        while True:
            tasks.get_nowait()
    except Empty:
        return
