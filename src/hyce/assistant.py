"""The stages put together for one configuration: what `hyce ask`, `hyce chat` and the chat page call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from hyce.answer import Turn, answer, preview
from hyce.config import Config
from hyce.llm import ChatClient
from hyce.match import Matcher, open_matcher
from hyce.records import Answer, CommandOutput, Hit, Match, Routing
from hyce.retrieve import Retriever, open_retriever
from hyce.run import run


@dataclass(frozen=True)
class Assistant:
    """Answers questions with one index, one catalogue and, where one is configured, one language model."""

    config: Config
    retriever: Retriever
    matcher: Matcher | None
    client: ChatClient | None

    def answer(
        self, question: str, *, turns: Sequence[Turn] = (), on_text: Callable[[str], None] | None = None
    ) -> Answer:
        """The answer with its sources; `on_text` gets it piece by piece while it is written."""
        return answer(
            question,
            config=self.config,
            retrieve=self._retrieve,
            match=self._match,
            run=self._run,
            client=self.client,
            turns=turns,
            on_text=on_text,
        )

    def preview(self, question: str) -> list[dict[str, str]]:
        """The messages that a model would be sent; commands run, nothing is sent."""
        return preview(
            question, config=self.config, retrieve=self._retrieve, match=self._match, run=self._run
        )

    def _retrieve(self, question: str) -> Sequence[Hit]:
        return self.retriever.retrieve(question)

    def _match(self, question: str) -> Routing:
        return self.matcher.match(question) if self.matcher else Routing()

    def _run(self, match: Match) -> CommandOutput:
        return run(match.command, match.params, policy=self.config.policy)


@contextmanager
def open_assistant(
    config: Config, *, use_model: bool = True, report: Callable[[str], None] = lambda _: None
) -> Iterator[Assistant]:
    """An assistant for these settings. An endpoint that may not be used is refused here, before any work.

    use_model: False for passages and command output only.
    """
    with ExitStack() as opened:
        client = None
        if use_model and config.llm.base_url and config.llm.model:
            client = opened.enter_context(ChatClient(config))
        retriever = opened.enter_context(open_retriever(config))
        matcher = None
        if config.commands.enabled:
            matcher = open_matcher(config, embedder=retriever.embedder, report=report)
        yield Assistant(config, retriever, matcher, client)
