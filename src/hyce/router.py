"""A question -> what runs for it: which commands answer, in the way that is set, and which explain why."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from hyce import catalogue
from hyce.catalogue import Catalogue
from hyce.choose import choose, explained
from hyce.companions import supporting
from hyce.config import Config
from hyce.embed import Embedder
from hyce.errors import EndpointError
from hyce.joint import compete, compete_reranked
from hyce.llm import LanguageModel, client_for
from hyce.match import Matcher, open_matcher
from hyce.records import Command, Hit, Match, Routing, Search
from hyce.refuse import why_refused
from hyce.rerank import Reranker
from hyce.run import available

CANDIDATES = 8
"""Entries that the language model may choose from."""

Route = Callable[[str, str | None], Routing]
"""(question, the batch system that it is about; None: the one in the settings) -> what would run."""

NO_MODEL = "commands.matching is llm, but no language model is asked; hyce's own choice was used."


class Router:
    """Chooses commands by commands.matching, and adds the companions of a question why."""

    def __init__(
        self,
        config: Config,
        matcher: Matcher,
        entries: Catalogue,
        offered: Callable[[Command], bool],
        *,
        client: LanguageModel | None = None,
        reranker: Reranker | None = None,
    ) -> None:
        """offered: whether an entry can run here; client: for matching = llm; reranker: for joint."""
        self._config = config
        self._matcher = matcher
        self._entries = entries
        self._client = client
        self._offered = offered
        self._reranker = reranker

    @property
    def background(self) -> float:
        """Mean cosine of two of the catalogue's texts: how near the model puts what has little in common."""
        return self._matcher.background

    def route(
        self, question: str, hits: Sequence[Hit] = (), *, scheduler: str | None = None
    ) -> tuple[Routing, Sequence[Hit]]:
        """What runs, and the passages that stay: with joint matching, commands take places of theirs."""
        if self._config.commands.matching == "joint":
            routing, hits = self._joint(question, hits, scheduler)
        else:
            routing = self._matcher.match(question, scheduler=scheduler)
            if self._config.commands.matching == "llm" and not routing.refused:
                routing = self._chosen(question, routing, scheduler)
        if routing.refused:
            return routing, hits
        companions = supporting(question, routing.commands, self._entries, self._offered)
        return replace(routing, supporting=companions), hits

    def _joint(
        self, question: str, hits: Sequence[Hit], scheduler: str | None
    ) -> tuple[Routing, Sequence[Hit]]:
        refused = why_refused(question)
        if refused:
            return Routing(refused=refused), hits
        described = self._matcher.by_description(question, scheduler=scheduler)
        retrieval = self._config.retrieval
        if self._reranker:
            winners, kept = compete_reranked(
                question,
                hits,
                described,
                self._reranker,
                candidates=retrieval.candidates,
                places=retrieval.passages,
            )
        else:
            winners, kept = compete(hits, described, retrieval.passages)
        return Routing(commands=tuple(winners)), kept

    def _chosen(self, question: str, own: Routing, scheduler: str | None) -> Routing:
        """The model's choice; hyce's own where there is no model, or none that can be used."""
        if self._client is None:
            return replace(own, notices=(NO_MODEL,))
        candidates: Sequence[Match] = self._matcher.nearest(question, CANDIDATES, scheduler=scheduler)
        if not candidates:
            return own
        try:
            matches = choose(question, candidates, self._client, most=self._config.commands.most)
        except EndpointError as error:
            return replace(own, notices=(explained(error),))
        if matches is None:
            return replace(own, notices=(explained(None),))
        return Routing(commands=matches, ask_back=own.ask_back if not matches else None)


def open_router(
    config: Config,
    *,
    embedder: Embedder | None = None,
    client: LanguageModel | None = None,
    reranker: Reranker | None = None,
    scheduler: str | None = None,
    assume_available: bool = False,
    report: Callable[[str], None] = lambda _: None,
) -> Router:
    """A router for these settings. client, reranker: as the Router has them; the others are open_matcher's.

    Raises CatalogueError and ModelError.
    """
    entries = catalogue.load_for(config)
    matcher = open_matcher(
        config,
        entries=entries,
        embedder=embedder,
        scheduler=scheduler,
        assume_available=assume_available,
        report=report,
    )
    return Router(
        config,
        matcher,
        entries,
        lambda command: assume_available or available(command, policy=config.policy) is None,
        client=client,
        reranker=reranker,
    )


@contextmanager
def open_routing(
    config: Config,
    *,
    scheduler: str | None = None,
    assume_available: bool = False,
    report: Callable[[str], None],
) -> Iterator[Route]:
    """Chooses commands as an answer would, and runs none.

    scheduler, assume_available: open_matcher's. report: is told of what the reader must know of the searches.
    Raises what open_router and open_retriever do, and PolicyError or ConfigError for an endpoint.
    """
    from hyce.retrieve import open_retriever
    from hyce.transform import open_search

    if not (config.commands.enabled and config.policy.commands):
        report("running commands is switched off: ask runs none of them")
    with ExitStack() as opened:
        client = client_for(config, "commands") if config.commands.matching == "llm" else None
        if client:
            opened.enter_context(client)
        # Passages are needed where commands compete with them.
        joint = config.commands.matching == "joint"
        retriever = opened.enter_context(open_retriever(config)) if joint else None
        search = opened.enter_context(open_search(config, retriever, report)) if retriever else None
        router = open_router(
            config,
            embedder=retriever.embedder if retriever else None,
            client=client,
            reranker=retriever.reranker if retriever else None,
            scheduler=scheduler,
            assume_available=assume_available,
        )

        def route(question: str, about: str | None) -> Routing:
            found = search(question, None) if search else Search(())
            for notice in found.notices:
                report(notice)
            routing, _ = router.route(question, found.hits, scheduler=about or scheduler)
            return routing

        yield route
