"""Every call to a language model is recorded: the same one is never made twice.

A call is known by the sha256 of all that the reply depends on: the endpoint's address, the messages, the
parameters, and which of several repetitions it is. Failures, and replies whose connection ended before they
did, are not recorded: they are tried again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from hyce.completion import Completion
from hyce.config import Config
from hyce.context import cut_end, token_length
from hyce.endpoint import Location
from hyce.errors import EndpointError
from hyce.evaluate.journal import Journal
from hyce.llm import ChatClient, LanguageModel, client_for, request_body
from hyce.records import Message

T = TypeVar("T")

QUOTED = 400
"""Tokens of a reply that can't be used, when the model is shown it again."""
AGAIN = QUOTED + 200
"""Tokens to keep free for a second try."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call, made now or before."""

    completion: Completion
    seconds: float
    """That the endpoint took when it was asked."""
    recorded: bool
    """Whether it was answered from the record."""


class Calls:
    """The record. Threads may share it: who asks the same at the same time waits for the first."""

    def __init__(self, journal: Journal) -> None:
        """Raises StoreError for a line that is no call."""
        self._journal = journal
        self._known = dict(journal.read(_recorded, "call"))
        self._guard = threading.Lock()
        self._under_way: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self.made = 0
        """Calls that went to an endpoint."""
        self.tokens = 0
        """Tokens of those calls, prompt and reply, as far as the endpoints count them."""

    def once(
        self, key: str, about: Mapping[str, Any], make: Callable[[], Completion]
    ) -> tuple[Completion, float, bool]:
        """(reply, seconds it took, whether it stood in the record); made and recorded where it doesn't."""
        with self._guard:
            lock = self._under_way[key]
        with lock:
            known = self._known.get(key)
            if known is not None:
                return *known, True
            began = time.perf_counter()
            completion = make()
            seconds = time.perf_counter() - began
            row = {"key": key, **about, "seconds": round(seconds, 4), "reply": dataclasses.asdict(completion)}
            self._journal.append(row)
            with self._guard:
                self._known[key] = completion, seconds
                self.made += 1
                self.tokens += (completion.prompt_tokens or 0) + (completion.completion_tokens or 0)
            return completion, seconds, False


class Recorded:
    """A LanguageModel whose calls are in the record. One for each task: `made` holds what it was asked."""

    def __init__(self, client: ChatClient, calls: Calls, role: str, repeat: int = 1) -> None:
        """repeat: repetitions of one request are calls of their own."""
        self._client, self._calls = client, calls
        self._role, self._repeat = role, repeat
        self.made: list[Call] = []

    @property
    def location(self) -> Location:
        return self._client.location

    @property
    def config(self) -> Config:
        return self._client.config

    def complete(
        self,
        messages: Sequence[Message],
        *,
        on_text: Callable[[str], None] | None = None,
        schema: Mapping[str, Any] | None = None,
    ) -> Completion:
        """What the model writes, or wrote when it was asked the same. Raises EndpointError."""
        body = request_body(self.config, messages, set(), schema)
        # How a reply comes doesn't change what it says.
        body = {name: value for name, value in body.items() if name not in ("stream", "stream_options")}
        depends_on = [self._client.address, body, self._repeat]
        key = hashlib.sha256(json.dumps(depends_on, sort_keys=True).encode()).hexdigest()
        about = {"role": self._role, "repeat": self._repeat, "request": body}
        completion, seconds, recorded = self._calls.once(key, about, lambda: self._whole(messages, schema))
        self.made.append(Call(completion, seconds, recorded))
        if on_text:
            on_text(completion.text)
        return completion

    def _whole(self, messages: Sequence[Message], schema: Mapping[str, Any] | None) -> Completion:
        """A reply that came to its end: a user is better served by half of one, a record isn't."""
        completion = self._client.complete(messages, schema=schema)
        if completion.broken:
            raise self.error("the connection ended in the middle of the answer", "ask again later")
        return completion

    def error(self, reason: str, remedy: str) -> EndpointError:
        return self._client.error(reason, remedy)

    def close(self) -> None:
        """Nothing: the client belongs to who made it."""


def attempt_client(config: Config, role: str, attempt: int) -> ChatClient | None:
    """The client of a role for one of several passes, which differ in the seed sent; None without a model.

    Raises PolicyError or ConfigError before anything is sent.
    """
    seed = config.llm.seed + attempt - 1 if config.llm.seed >= 0 else config.llm.seed
    return client_for(dataclasses.replace(config, llm=dataclasses.replace(config.llm, seed=seed)), role)


def ask(
    model: LanguageModel,
    messages: Sequence[Message],
    again: Callable[[Sequence[Message], str], Sequence[Message]],
    read: Callable[[str], T | None],
    schema: Mapping[str, Any],
) -> T | None:
    """What `read` makes of the reply; after one more try, with `again`, None. Raises EndpointError.

    again: the messages of the second try, which takes up to AGAIN tokens more than the first, from those of
    the first and the reply, cut to QUOTED tokens.
    """
    reply = model.complete(messages, schema=schema).text
    found = read(reply)
    if found is not None:
        return found
    length = token_length(model.config)
    quoted = reply if length(reply) <= QUOTED else cut_end(reply, QUOTED, length)
    return read(model.complete(again(messages, quoted), schema=schema).text)


def _recorded(row: Mapping[str, Any]) -> tuple[str, tuple[Completion, float]]:
    """A row's key, its reply, and the seconds that it took."""
    reply = row["reply"]
    completion = Completion(**{**reply, "notices": tuple(reply["notices"])})
    return str(row["key"]), (completion, float(row["seconds"]))
