"""A question -> ranked passages: dense and lexical search, fused, reranked, neighbours joined.

What orders the candidates is late interaction together with both searches' scores, or else a model that reads
question and passage together (rerank.py), or the fused ranks alone.

The weights below were chosen on the question sets of three centres and of the sample documentation
together; benchmarks/retrieval.py measures them, and what each part brings.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hyce.config import Config, Retrieval, Site, index_folder
from hyce.embed import Embedder, open_embedder
from hyce.index.embedded import IndexReader
from hyce.join import join_neighbours
from hyce.records import Hit, Passage
from hyce.rerank import Reranker, late_interaction, open_reranker
from hyce.vocabulary import field_terms

DENSE_WEIGHT = 0.3
LEXICAL_WEIGHT = 0.15
NEIGHBOUR_WEIGHT = 0.3
"""Weights beside late interaction's 1, each on scores brought to mean 0 and deviation 1 over the candidates.
A passage gains from a good neighbour: an answer often stands beside the words of the question."""

TERM_WEIGHT = 0.75
"""In late interaction, a token of the vocabulary's terms counts this much of one of the question's own."""
TERM_SHARE = 0.5
"""What the question with the vocabulary's terms adds to the vector of the question as it stands."""

NO_NEIGHBOUR = -1.0
OTHER_CLUSTER = 1.5
"""What a passage about another cluster loses, in the same units."""

RRF_K = 60
"""Cormack, Clarke and Buettcher 2009: reciprocal rank fusion adds 1 / (RRF_K + rank)."""

Ranking = list[tuple[int, float]]
Scores = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Query:
    """A question, embedded."""

    text: str
    vector: Scores
    """Shape (dimensions,), length 1."""
    tokens: Scores
    """Shape (tokens, dimensions): its own tokens, then those of the vocabulary's terms."""
    token_ids: tuple[int, ...]
    weights: Scores
    """What each token counts."""


@contextmanager
def open_retriever(config: Config) -> Iterator[Retriever]:
    """A retriever on the configured index. Raises StoreError, ModelError or PolicyError with the remedy."""
    from hyce.index.embedded import open_index

    embedder = open_embedder(config)
    reranker = open_reranker(config)
    with open_index(index_folder(config)) as index:
        index.check(embedder.fingerprint)
        yield Retriever(index, embedder, config.retrieval, config.site, reranker)


class _Aside:
    """A ranking made in a thread of its own: numpy and SQLite both let other threads run meanwhile.

    Not concurrent.futures: importing it takes longer than what a search in a small index would gain.
    """

    def __init__(self, rank: Callable[[], Ranking]) -> None:
        self._ranking: Ranking = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(rank,))
        self._thread.start()

    def _run(self, rank: Callable[[], Ranking]) -> None:
        try:
            self._ranking = rank()
        except BaseException as error:
            self._error = error

    def wait(self) -> None:
        """Until the ranking is there, or couldn't be made."""
        self._thread.join()

    def result(self) -> Ranking:
        """The ranking, once it is there; raises what making it raised."""
        self.wait()
        if self._error is not None:
            raise self._error
        return self._ranking


class Retriever:
    """Finds passages in one index with one embedder and, where one is given, one reranker."""

    def __init__(
        self,
        index: IndexReader,
        embedder: Embedder,
        settings: Retrieval,
        site: Site,
        reranker: Reranker | None = None,
    ) -> None:
        self.index = index
        self.embedder = embedder
        self.reranker = reranker
        self._settings = settings
        self._site = site
        stored = index.manifest.token_vectors and embedder.token_vectors
        self._late = settings.rerank == "late" and stored

    def retrieve(self, question: str, k: int | None = None, *, also: Sequence[str] = ()) -> list[Hit]:
        """The best passages, best first, at most k (default: retrieval.passages).

        also: texts whose vectors are averaged with the question's for the dense search.
        """
        query = self._query(question, also)
        count = max(self._settings.candidates, k or 0)
        dense, lexical = self._search(query, count)
        ids = list(dict.fromkeys(number for number, _ in (*dense, *lexical)))
        if not ids:
            return []
        if self.reranker and dense and lexical:
            # Each candidate costs the reranker a run: as many as one search alone would give it.
            ids = _best(ids, _fused(ids, [dense, lexical]), count)
        passages = self.index.passages(ids)
        similarity = self.index.similarity(query.vector, ids)
        if self._late:
            scores = self._late_scores(query, passages, similarity, lexical)
        elif self.reranker:
            scores = self.reranker.score(question, [passage.text for passage in passages])
        else:
            scores = _fused(ids, [ranking for ranking in (dense, lexical) if ranking])
        if self._settings.clusters:
            scores = scores - OTHER_CLUSTER * scores.std() * self._elsewhere(question, passages)
        order = np.argsort(-scores, kind="stable")
        ranked = [(passages[i], float(scores[i]), float(similarity[i])) for i in order]
        shown = join_neighbours(ranked) if self._settings.join else ranked
        best = shown[: k or self._settings.passages]
        return [Hit(rank, score, passage, cosine) for rank, (passage, score, cosine) in enumerate(best, 1)]

    def _query(self, question: str, also: Sequence[str]) -> _Query:
        """The question's vectors, with those of the field's terms for what it says and of `also`."""
        terms = field_terms(question) if self._settings.vocabulary else []
        texts = [question, f"{question} {' '.join(terms)}"] if terms else [question]
        own, extended = (self.embedder.embed(texts, tokens=self._late, query=True) * 2)[:2]
        vector = own.vector + TERM_SHARE * extended.vector
        if also:
            beside = self.embedder.embed(also)
            vector = vector / np.linalg.norm(vector) + sum(each.vector for each in beside)
        # The terms stand behind the question, so that their tokens come after as many as it has.
        count = len(own.tokens)
        added = len(extended.tokens) - count
        weights = np.concatenate([np.ones(count), np.full(added, TERM_WEIGHT)])
        return _Query(
            question,
            vector / np.linalg.norm(vector),
            np.concatenate([own.tokens, extended.tokens[count:]]),
            own.token_ids + extended.token_ids[count:],
            weights.astype(np.float32),
        )

    def _search(self, query: _Query, count: int) -> tuple[Ranking, Ranking]:
        words = _Aside(lambda: self.index.lexical(query.text, count) if self._settings.lexical else [])
        try:
            dense = self.index.dense(query.vector, count) if self._settings.dense else []
        finally:
            # Whatever happens: an index that is closed while it is searched takes the interpreter with it.
            words.wait()
        return dense, words.result()

    def _late_scores(
        self, query: _Query, passages: Sequence[Passage], similarity: Scores, lexical: Ranking
    ) -> Scores:
        """Late interaction, dense, lexical and neighbours' scores in one."""
        ids = [passage.id for passage in passages]
        tokens = self.index.token_vectors(ids)
        rarity = _rarity(query.token_ids, [vocabulary for _, _, vocabulary in tokens])
        late = _standard(late_interaction(query.tokens, tokens, rarity * query.weights))
        # A passage that BM25 didn't list is scored like the last one that it did.
        least = min((score for _, score in lexical), default=0.0)
        by_id = dict(lexical)
        words = np.array([by_id.get(number, least) for number in ids], dtype=np.float32)
        scores: Scores = (
            late
            + DENSE_WEIGHT * _standard(similarity)
            + LEXICAL_WEIGHT * _standard(words)
            + NEIGHBOUR_WEIGHT * _best_neighbour(passages, late)
        )
        return scores

    def _elsewhere(self, question: str, passages: Sequence[Passage]) -> Scores:
        """1 for each passage that is about another cluster than the question, else 0.

        The question is about the clusters it names, or else about the one hyce runs on.
        """
        clusters = (*self._site.clusters, self._site.cluster) if self._site.cluster else self._site.clusters
        meant = _named(question, clusters) or _named(self._site.cluster, clusters)
        elsewhere = np.zeros(len(passages), dtype=np.float32)
        if meant:
            for i, passage in enumerate(passages):
                about = _named(f"{passage.path} {passage.title} {' '.join(passage.heading)}", clusters)
                elsewhere[i] = bool(about) and not about & meant
        return elsewhere


def _best_neighbour(passages: Sequence[Passage], late: Scores) -> Scores:
    """The better score of the passages right before and after in the same page."""
    by_place = {(p.source, p.path, p.position): float(s) for p, s in zip(passages, late, strict=True)}
    best = [
        max(by_place.get((p.source, p.path, p.position + step), NO_NEIGHBOUR) for step in (-1, 1))
        for p in passages
    ]
    return np.array(best, dtype=np.float32).clip(min=NO_NEIGHBOUR)


def _named(text: str, clusters: Sequence[str]) -> set[str]:
    """The clusters that the text names as a word of its own."""
    return {
        name.lower()
        for name in clusters
        if re.search(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])", text, re.IGNORECASE)
    }


def _rarity(question: Sequence[int], passages: Sequence[NDArray[np.int32]]) -> Scores:
    """A weight for each token of the question: the rarer among the candidates, the higher.

    Inverse document frequency, with the candidates as the collection: what all of them have (the topic)
    tells them apart least.
    """
    asked = set(question)
    frequency = Counter(token for vocabulary in passages for token in asked.intersection(vocabulary.tolist()))
    counts = np.array([frequency[token] for token in question], dtype=np.float32)
    return np.log1p(len(passages) / (1 + counts)).astype(np.float32)


def _standard(scores: Scores) -> Scores:
    """Mean 0, deviation 1."""
    standard: Scores = (scores - scores.mean()) / (scores.std() + np.float32(1e-6))
    return standard


def _best(ids: Sequence[int], scores: Scores, count: int) -> list[int]:
    """The `count` ids of the highest scores, best first."""
    return [ids[i] for i in np.argsort(-scores, kind="stable")[:count]]


def _fused(ids: Sequence[int], rankings: Sequence[Ranking]) -> Scores:
    """Reciprocal rank fusion of the rankings."""
    total = dict.fromkeys(ids, 0.0)
    for ranking in rankings:
        for rank, (number, _) in enumerate(ranking, 1):
            total[number] += 1 / (RRF_K + rank)
    return np.array([total[number] for number in ids], dtype=np.float32)
