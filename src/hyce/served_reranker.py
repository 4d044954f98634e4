"""A question and passages -> scores, with a reranker at an endpoint."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyce.completion import UnreadableError
from hyce.config import Config
from hyce.privacy import redact
from hyce.served import MOST_BYTES, JsonClient, at_once, batches

MOST_BYTES_A_TEXT = 100_000
"""Some servers send the passages back."""
_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True, slots=True)
class _Form:
    """How an endpoint is asked, and where its answer has the scores."""

    paths: tuple[str, ...]
    body: Callable[[str, str, list[str]], dict[str, Any]]
    """Of the model's name, the question, and the passages."""
    results: str
    """The list's name in the answer; empty where the answer is the list."""
    score: str


_FORMS = {
    # NVIDIA's own hosted models have the other name, below an address of each model's own.
    "nim": _Form(
        ("ranking", "reranking"),
        lambda name, question, texts: {
            "model": name,
            "query": {"text": question},
            "passages": [{"text": text} for text in texts],
            "truncate": "END",
        },
        "rankings",
        "logit",
    ),
    "tei": _Form(
        ("rerank",),
        lambda _, question, texts: {"query": question, "texts": texts, "truncate": True, "raw_scores": True},
        "",
        "score",
    ),
    "cohere": _Form(
        ("rerank",),
        lambda name, question, texts: {
            "model": name,
            "query": question,
            "documents": texts,
            "top_n": len(texts),
        },
        "results",
        "relevance_score",
    ),
}


class ServedReranker:
    """The Reranker at an endpoint. Raises PolicyError or ConfigError when made, before anything is sent.

    For an endpoint outside the site, questions are redacted before they are sent. More passages than
    reranker.batch are sent in several requests: a cross-encoder scores each passage by itself.
    """

    def __init__(self, config: Config, sleep: Callable[[float], None] = time.sleep) -> None:
        self._reranker = config.reranker
        self._form = _FORMS[config.reranker.form]
        self._client = JsonClient(config, "reranker", self._form.paths, sleep)

    def score(self, question: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape (len(texts),): the higher, the better the text answers the question.

        nim and tei give logits, cohere mostly 0 to 1. Raises EndpointError.
        """
        if self._client.location == "outside":
            question = redact(question)
        asked = list(batches(texts, self._reranker.batch))
        if not asked:
            return np.empty(0, np.float32)
        answers = at_once(lambda batch: self._scores(question, batch), asked)
        return np.array([score for scores in answers for score in scores], np.float32)

    def _scores(self, question: str, batch: list[str]) -> list[float]:
        most = MOST_BYTES + MOST_BYTES_A_TEXT * len(batch)
        body = self._form.body(self._reranker.name, question, batch)
        return self._client.post(body, lambda document: self._read(document, len(batch)), most)

    def _read(self, document: Any, count: int) -> list[float]:
        """The scores in the order of the passages, of which none may lack one."""
        rows = document
        if self._form.results:
            rows = document.get(self._form.results) if isinstance(document, dict) else None
        if not isinstance(rows, list):
            raise UnreadableError("answered without a list of scores")
        scores: dict[int, float] = {}
        for row in rows:
            index = row.get("index") if isinstance(row, dict) else None
            if type(index) is not int or not 0 <= index < count or index in scores:
                raise UnreadableError("doesn't say which score is for which passage")
            score: Any = row.get(self._form.score)
            if type(score) not in (int, float) or not abs(score) <= _LARGEST:
                raise UnreadableError("gave something else than a number as a score")
            scores[index] = float(score)
        if len(scores) != count:
            raise UnreadableError(f"scored {len(scores)} of {count} passages")
        return [scores[index] for index in range(count)]
