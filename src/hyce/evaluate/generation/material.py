"""What a question is made from -> what a model is sent: no more than may leave the site, and cut to fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from hyce.context import fit, measure, passage_label, token_length
from hyce.evaluate.calls import AGAIN, Calls, Recorded, ask
from hyce.llm import ChatClient, output_tokens
from hyce.privacy import redact
from hyce.prompts import output_text
from hyce.prompts.evaluation import Material
from hyce.records import CommandOutput, Hit, Message, Passage, Source, command_line

T = TypeVar("T")


def passage_source(passage: Passage) -> Source:
    """A passage as an answerer is given it."""
    hit = Hit(1, 0.0, passage)
    return Source(1, hit, passage_label(hit), passage.text)


def output_source(output: CommandOutput, description: str) -> Source:
    """A command's output as an answerer is given it."""
    return Source(1, output, command_line(output.argv, output.also), output_text(output, description))


class Asking:
    """Asks one endpoint about material, in one role. Threads may share it."""

    def __init__(self, client: ChatClient, calls: Calls, role: str) -> None:
        self._client, self._calls, self._role = client, calls, role
        self._length = token_length(client.config)
        self._clean = redact if client.location == "outside" else str

    def clean(self, text: str) -> str:
        """The text as the endpoint may see it."""
        return self._clean(text)

    def about(
        self, sources: Sequence[Source], messages: Callable[[Sequence[Material]], Sequence[Message]]
    ) -> list[Message]:
        """The messages about the sources, with a place for each. Raises EndpointError where there is none."""
        config = self._client.config
        room = config.llm.context_tokens - output_tokens(config) - AGAIN
        room -= measure(messages(()), self._length)
        cleaned = [Source(s.number, s.item, self._clean(s.label), self._clean(s.text)) for s in sources]
        kept, _ = fit(cleaned, room, self._length)
        if len(kept) < len(sources):
            setting = f"llm.{self._role}.context_tokens"
            raise self._client.error("the material doesn't fit into its context", f"raise {setting}")
        return list(messages([(_kind(source), source.label, source.text) for source in kept]))

    def tokens(self, messages: Sequence[Message]) -> int:
        """Of a prompt, estimated or measured as llm.tokenizer has it."""
        return measure(messages, self._length)

    def ask(
        self,
        messages: Sequence[Message],
        again: Callable[[Sequence[Message], str], Sequence[Message]],
        read: Callable[[str], T | None],
        schema: Mapping[str, Any],
    ) -> tuple[T | None, str]:
        """What `read` makes of the reply, or of a second one, and the model as it named itself.

        Raises EndpointError.
        """
        model = Recorded(self._client, self._calls, self._role)
        found = ask(model, messages, again, read, schema)
        return found, model.made[-1].completion.model


def _kind(source: Source) -> str:
    return "command output" if isinstance(source.item, CommandOutput) else "documentation"
