"""A question -> passages, searched for with what a language model makes of the question first.

hyde         Gao et al. 2022: a passage that could answer; its vector is averaged with the question's. One
             passage, where the paper takes the mean of several.
fusion       Raudaschl 2023, Rackauckas 2024 (RAG-Fusion): other wordings; the rankings are fused.
interleaved  Trivedi et al. 2022 (IRCoT): searches and sentences of reasoning in turn. The rankings of all
             searches are fused: what a late one finds first isn't lost behind the whole of an early one.

What the model writes is only searched for. Where it fails, the search goes on without it, and says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from hyce import prompts
from hyce.config import Config
from hyce.context import fit, measure, passage_label, token_length
from hyce.errors import EndpointError
from hyce.join import Ranked, join_neighbours
from hyce.llm import LanguageModel, client_for, output_tokens
from hyce.privacy import neutral, redact
from hyce.records import Hit, Message, Search, Source
from hyce.reply import json_object, without_thinking
from hyce.retrieve import RRF_K, Retriever

RANKED = 20
"""Passages of each search that are fused, at least."""
_PASSAGE, _QUERY = 2000, 400
"""Characters that are kept of a passage, and of a wording or a sentence, that the model writes."""

Searching = Callable[[str, int | None], Search]
"""(question, how many passages) -> what was found."""
_Read = TypeVar("_Read")


class Transformer:
    """Searches with one retriever in the way that retrieval.transform says; the client's settings count."""

    def __init__(self, retriever: Retriever, client: LanguageModel) -> None:
        config = client.config
        self._client = client
        self._config = config
        self._settings = config.retrieval
        self._retriever = retriever
        # Neighbours are joined once all rankings are fused: before, each would join others.
        self._single = Retriever(
            retriever.index,
            retriever.embedder,
            replace(config.retrieval, join=False),
            config.site,
            retriever.reranker,
        )

    def search(self, question: str, k: int | None = None) -> Search:
        """The best passages, at most k (default: retrieval.passages), and what was searched for."""
        asking = _Asking(self._client, question)
        ways = {"hyde": self._hyde, "fusion": self._fusion, "interleaved": self._interleaved}
        hits = ways[self._settings.transform](question, k or self._settings.passages, asking)
        return Search(tuple(hits), tuple(asking.texts), tuple(asking.notices), asking.milliseconds)

    def _hyde(self, question: str, k: int, asking: _Asking) -> list[Hit]:
        asking.passage()
        return self._retriever.retrieve(question, k, also=asking.texts)

    def _fusion(self, question: str, k: int, asking: _Asking) -> list[Hit]:
        asking.wordings(self._settings.wordings - 1)
        return self._fused([self._ranking(text, k) for text in (question, *asking.texts)], k)

    def _interleaved(self, question: str, k: int, asking: _Asking) -> list[Hit]:
        rankings = [self._ranking(question, k)]
        while len(rankings) < self._settings.rounds and asking.step(self._fused(rankings, k)):
            rankings.append(self._ranking(asking.texts[-1], k))
        return self._fused(rankings, k)

    def _ranking(self, text: str, k: int) -> list[Hit]:
        return self._single.retrieve(text, max(RANKED, k))

    def _fused(self, rankings: Sequence[Sequence[Hit]], k: int) -> list[Hit]:
        """The best k of all, neighbours joined."""
        # Descriptions of commands are compared with a reranker's own scores.
        ranked = fused(rankings, own_scores=self._retriever.reranker is not None)
        best = (join_neighbours(ranked) if self._settings.join else ranked)[:k]
        return [Hit(rank, score, passage, cosine) for rank, (passage, score, cosine) in enumerate(best, 1)]


def fused(rankings: Sequence[Sequence[Hit]], *, own_scores: bool = False) -> list[Ranked]:
    """Every passage once, by reciprocal rank fusion: the sum of 1 / (RRF_K + rank) over the rankings.

    Its cosine is the best that it has in any of them. Its score is the sum, or with own_scores, and where
    there is one ranking alone, the best that it has in any. Of equals, the one that was found first leads.
    """
    totals: dict[int, float] = {}
    best: dict[int, Ranked] = {}
    for ranking in rankings:
        for hit in ranking:
            number = hit.passage.id
            totals[number] = totals.get(number, 0.0) + 1 / (RRF_K + hit.rank)
            _, score, cosine = best.get(number, (None, hit.score, hit.similarity))
            best[number] = (hit.passage, max(score, hit.score), max(cosine, hit.similarity))
    order = sorted(totals, key=totals.__getitem__, reverse=True)
    if own_scores or len(rankings) == 1:
        return [best[number] for number in order]
    return [(best[number][0], totals[number], best[number][2]) for number in order]


class _Asking:
    """What the model is asked for one question. A failure becomes a notice; `texts` are what it wrote."""

    def __init__(self, client: LanguageModel, question: str) -> None:
        self._client = client
        self._site = client.config.site
        self._question = redact(question) if client.location == "outside" else question
        self._written = {_folded(question)}
        self.texts: list[str] = []
        self.notices: list[str] = []
        self.milliseconds = 0.0

    def passage(self) -> None:
        """Adds a passage that could answer the question."""
        messages = prompts.hypothetical(self._question, self._site)
        self._take([self._try(messages, lambda text: _line(text, _PASSAGE) or None)])

    def wordings(self, count: int) -> None:
        """Adds other wordings of the question, at most `count`."""
        strings = {"type": "array", "items": {"type": "string"}, "minItems": count, "maxItems": count}
        messages = prompts.reword(self._question, count, self._site)
        self._take(self._try(messages, _wordings, _schema(wordings=strings)) or [], count)

    def step(self, hits: Sequence[Hit]) -> bool:
        """Adds the next sentence of reasoning; whether there is one to search for."""
        kinds = {"sentence": {"type": "string"}, "done": {"type": "boolean"}}
        said = self._try(self._reason(hits), _step, _schema(**kinds))
        if said is None or said[1]:
            return False
        return self._take([said[0]])

    def _reason(self, hits: Sequence[Hit]) -> list[Message]:
        """The messages, with as much of the passages as the model's context has room for."""
        config = self._client.config
        length = token_length(config)
        bare = prompts.reason(self._question, (), self.texts, self._site)
        room = config.llm.context_tokens - output_tokens(config) - measure(bare, length)
        given = [Source(n, hit, passage_label(hit), hit.passage.text) for n, hit in enumerate(hits, 1)]
        sources, _ = fit(given, room, length)
        return prompts.reason(self._question, sources, self.texts, self._site)

    def _take(self, texts: Sequence[str | None], most: int = 1) -> bool:
        """Keeps what is new, at most so many; whether anything is."""
        new: list[str] = []
        for text in texts:
            if text and len(new) < most and _folded(text) not in self._written:
                self._written.add(_folded(text))
                new.append(text)
        self.texts += new
        return bool(new)

    def _try(
        self,
        messages: list[Message],
        read: Callable[[str], _Read | None],
        schema: Mapping[str, Any] | None = None,
    ) -> _Read | None:
        """What `read` makes of the reply, asked for once more where that is None; None after a failure."""
        why = ""
        begin = time.perf_counter()
        try:
            for _ in range(2):
                reply = self._client.complete(messages, schema=schema).text
                usable = read(without_thinking(reply))
                if usable is not None:
                    return usable
                messages = prompts.object_again(messages, reply) if schema else messages
        except EndpointError as error:
            why = f" ({error})"
        finally:
            self.milliseconds += (time.perf_counter() - begin) * 1000
        self.notices.append(
            f"The language model's help with the search could not be used{why}; hyce searched without it."
        )
        return None


def _wordings(reply: str) -> list[str] | None:
    given = json_object(reply).get("wordings")
    lines = (
        [_line(each, _QUERY) for each in given if isinstance(each, str)] if isinstance(given, list) else []
    )
    return [line for line in lines if line] or None


def _step(reply: str) -> tuple[str, bool] | None:
    """The sentence, and whether the answer is there; None where the reply says neither."""
    said = json_object(reply)
    sentence, done = said.get("sentence"), said.get("done") is True
    line = _line(sentence, _QUERY) if isinstance(sentence, str) else ""
    return (line, done) if line or done else None


def _line(text: str, most: int) -> str:
    """At most so many characters, harmless and in one line; without keys, as the embedder may be outside."""
    return " ".join(redact(neutral(text[: 2 * most])).split())[:most]


def _folded(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip("?.! ")


def _schema(**kinds: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": kinds,
        "required": list(kinds),
        "additionalProperties": False,
    }


@contextmanager
def open_search(config: Config, retriever: Retriever, report: Callable[[str], None]) -> Iterator[Searching]:
    """Searches as retrieval.transform says; as the question stands where no model is configured.

    report: is told that none is. Raises PolicyError or ConfigError before anything is sent.
    """
    client = client_for(config, "queries") if config.retrieval.transform != "none" else None
    if client is None:
        if config.retrieval.transform != "none":
            report(no_model(config))
        yield lambda question, k: Search(tuple(retriever.retrieve(question, k)))
        return
    with client:
        yield Transformer(retriever, client).search


def no_model(config: Config) -> str:
    """What the user is told where the settings ask for a model that isn't configured."""
    set_to = "retrieval.decide is true"
    if config.retrieval.transform != "none":
        set_to = f"retrieval.transform is {config.retrieval.transform}"
    return f"{set_to}, but no language model is configured: hyce searches without one"
