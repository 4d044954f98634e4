"""One assistant for many tasks at the same time, with a record of what each of them asked its models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from hyce.completion import Completion
from hyce.config import Config
from hyce.endpoint import Location
from hyce.errors import EndpointError
from hyce.evaluate.calls import Call, Calls, Recorded, attempt_client
from hyce.llm import ChatClient, LanguageModel
from hyce.records import Message


@dataclass(slots=True)
class Asked:
    """What the models were asked for one task."""

    attempt: int
    calls: dict[str, list[Call]] = field(default_factory=dict)
    """By role."""
    failure: str = ""
    """What an endpoint did wrong. Whoever asks in earnest goes on without the model's help then, and says so;
    what comes of it isn't what the variant answers."""

    def seconds(self, role: str | None = None, *, recorded: bool = False) -> float:
        """That the endpoints took when they were really asked. recorded: of calls from the record alone."""
        found = [call for each in self._of(role) for call in each]
        return sum(call.seconds for call in found if call.recorded or not recorded)

    def tokens(self) -> tuple[int, int]:
        """Of prompts and of replies, as far as the endpoints count them."""
        replies = [call.completion for each in self.calls.values() for call in each]
        return sum(r.prompt_tokens or 0 for r in replies), sum(r.completion_tokens or 0 for r in replies)

    def _of(self, role: str | None) -> list[list[Call]]:
        return [each for name, each in self.calls.items() if role in (None, name)]


_task: ContextVar[Asked] = ContextVar("task")


@contextmanager
def asking(attempt: int) -> Iterator[Asked]:
    """What is asked inside belongs to one task: this pass over one question."""
    asked = Asked(attempt)
    token = _task.set(asked)
    try:
        yield asked
    finally:
        _task.reset(token)


class Shared:
    """A LanguageModel for all tasks: each call is recorded, with the seed of its task's pass."""

    def __init__(self, clients: Sequence[ChatClient], calls: Calls, role: str) -> None:
        """clients: one for each pass."""
        self._clients, self._calls, self._role = clients, calls, role

    @property
    def location(self) -> Location:
        return self._clients[0].location

    @property
    def config(self) -> Config:
        return self._clients[0].config

    def complete(
        self,
        messages: Sequence[Message],
        *,
        on_text: Callable[[str], None] | None = None,
        schema: Mapping[str, Any] | None = None,
    ) -> Completion:
        """What the model writes, or wrote when the same was asked in the same pass. Raises EndpointError."""
        task = _task.get()
        # Where the endpoint takes no seed, the passes differ in nothing else.
        client = Recorded(self._clients[task.attempt - 1], self._calls, self._role, repeat=task.attempt)
        try:
            return client.complete(messages, on_text=on_text, schema=schema)
        except EndpointError as error:
            task.failure = task.failure or str(error)
            raise
        finally:
            task.calls.setdefault(self._role, []).extend(client.made)

    def error(self, reason: str, remedy: str) -> EndpointError:
        return self._clients[0].error(reason, remedy)

    def close(self) -> None:
        for client in self._clients:
            client.close()


def shared(config: Config, role: str, passes: int, calls: Calls) -> LanguageModel | None:
    """The client of a role for all passes; None without a model. Raises PolicyError or ConfigError."""
    clients = [attempt_client(config, role, attempt) for attempt in range(1, passes + 1)]
    found = [client for client in clients if client is not None]
    return Shared(found, calls, role) if found else None
