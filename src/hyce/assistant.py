"""The stages put together for one configuration: what `hyce ask`, `hyce chat` and the chat page call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

from hyce.answer import Turn, answer, preview
from hyce.config import Config
from hyce.llm import ChatClient
from hyce.records import Answer, CommandOutput, Hit, Match, Routing
from hyce.retrieve import Retriever, open_retriever
from hyce.router import Router, open_router
from hyce.runner import Runner


@dataclass(frozen=True)
class Assistant:
    """Answers questions with one index, one catalogue and, where one is configured, one language model."""

    config: Config
    retriever: Retriever
    router: Router | None
    client: ChatClient | None
    runner: Runner

    def answer(
        self, question: str, *, turns: Sequence[Turn] = (), on_text: Callable[[str], None] | None = None
    ) -> Answer:
        """The answer with its sources; `on_text` gets it piece by piece while it is written."""
        return answer(
            question,
            config=self.config,
            retrieve=self._retrieve,
            route=self._route,
            run=partial(self._run, question),
            client=self.client,
            turns=turns,
            on_text=on_text,
        )

    def preview(self, question: str) -> list[dict[str, str]]:
        """The messages that a model would be sent; commands run, nothing is sent."""
        return preview(
            question,
            config=self.config,
            retrieve=self._retrieve,
            route=self._route,
            run=partial(self._run, question),
        )

    def _retrieve(self, question: str) -> Sequence[Hit]:
        return self.retriever.retrieve(question)

    def _route(self, question: str, hits: Sequence[Hit]) -> tuple[Routing, Sequence[Hit]]:
        routing, kept = self.router.route(question, hits) if self.router else (Routing(), hits)
        if routing.refused:
            self.runner.refused(question, routing.refused)
        return routing, kept

    def _run(self, question: str, match: Match) -> CommandOutput:
        return self.runner.run(match.command, match.params, question)


@contextmanager
def open_assistant(
    config: Config, *, use_model: bool = True, report: Callable[[str], None] = lambda _: None
) -> Iterator[Assistant]:
    """An assistant for these settings. An endpoint that may not be used is refused here, before any work.

    use_model: False for passages and command output only.
    """
    runner = Runner(config, report=report)
    with ExitStack() as opened:
        client = None
        if use_model and config.llm.base_url and config.llm.model:
            client = opened.enter_context(ChatClient(config))
        retriever = opened.enter_context(open_retriever(config))
        router = None
        if config.commands.enabled:
            router = open_router(config, embedder=retriever.embedder, client=client, report=report)
        yield Assistant(config, retriever, router, client, runner)
