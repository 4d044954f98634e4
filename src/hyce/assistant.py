"""The stages put together for one configuration: what `hyce ask`, `hyce chat` and the chat page call."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

from hyce.answer import Turn, answer, preview
from hyce.config import Config, for_role
from hyce.decide import decide
from hyce.gather import NEAR, Decide, Stages, Transform
from hyce.llm import LanguageModel, client_for
from hyce.records import Answer, CommandOutput, Hit, Match, Routing
from hyce.retrieve import Retriever, open_retriever
from hyce.router import Router, open_router
from hyce.runner import Runner, Runs
from hyce.score import unstretched
from hyce.transform import Transformer, no_model


@dataclass(frozen=True)
class Assistant:
    """Answers questions with one index, one catalogue and, where they are configured, language models."""

    config: Config
    """As the model that writes the answers sees it."""
    retriever: Retriever
    router: Router | None
    client: LanguageModel | None
    runner: Runs
    transform: Transform | None = None
    decide: Decide | None = None
    today: datetime.date | None = None
    """The date that the model is told; None: today's."""

    def answer(
        self, question: str, *, turns: Sequence[Turn] = (), on_text: Callable[[str], None] | None = None
    ) -> Answer:
        """The answer with its sources; `on_text` gets it piece by piece while it is written."""
        return answer(
            question,
            config=self.config,
            stages=self._stages(question, self.transform, self.decide),
            client=self.client,
            turns=turns,
            on_text=on_text,
        )

    def preview(self, question: str) -> list[dict[str, str]]:
        """The messages that a model would be sent; commands run, nothing is sent."""
        return preview(question, config=self.config, stages=self._stages(question))

    def _stages(
        self, question: str, transform: Transform | None = None, decide: Decide | None = None
    ) -> Stages:
        near = unstretched(NEAR, self.router.background) if self.router else NEAR
        run = partial(self._run, question)
        return Stages(self._retrieve, self._route, run, transform, decide, near, self.today)

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
    config: Config,
    *,
    use_model: bool = True,
    report: Callable[[str], None] = lambda _: None,
    clients: Callable[[Config, str], LanguageModel | None] = client_for,
    runner: Runs | None = None,
    today: datetime.date | None = None,
) -> Iterator[Assistant]:
    """An assistant for these settings. An endpoint that may not be used is refused here, before any work.

    use_model: False for passages and command output only. clients: makes the client of a role; runner: what
    runs commands; today: as in Assistant.
    """
    runner = runner or Runner(config, report=report)
    with ExitStack() as opened:

        def client(role: str) -> LanguageModel | None:
            found = clients(config, role) if use_model else None
            if found:
                opened.callback(found.close)
            return found

        answering = client("answer")
        choosing = client("commands") if config.commands.matching == "llm" else None
        helps = config.retrieval.transform != "none" or config.retrieval.decide
        helping = client("queries") if helps else None
        if use_model and helps and helping is None:
            report(no_model(config))
        retriever = opened.enter_context(open_retriever(config))
        router = None
        if config.commands.enabled:
            router = open_router(
                config,
                embedder=retriever.embedder,
                client=choosing,
                reranker=retriever.reranker,
                report=report,
            )
        yield Assistant(
            for_role(config, "answer"),
            retriever,
            router,
            answering,
            runner,
            _transform(config, retriever, helping),
            # Without a model that answers there is only what is found.
            _decide(config, helping) if answering else None,
            today,
        )


def _transform(config: Config, retriever: Retriever, client: LanguageModel | None) -> Transform | None:
    if client is None or config.retrieval.transform == "none":
        return None
    return Transformer(retriever, client).search


def _decide(config: Config, client: LanguageModel | None) -> Decide | None:
    return partial(decide, client=client) if client and config.retrieval.decide else None
