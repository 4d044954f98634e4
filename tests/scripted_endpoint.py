"""Endpoints of embedding models and rerankers on loopback: each form's own paths and answers, on a server
that misbehaves when the script says so (scripted_llm.py has the server and further steps).

Vectors are WordEmbedder's; a passage's score is its likeness to the question: shared words count.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

import numpy as np
from scripted_llm import Request, ScriptedLlm, Step, fails, hangs_up, sends, stays_silent
from word_embedder import WordEmbedder

__all__ = [
    "RERANKS",
    "Request",
    "ScriptedEndpoint",
    "Step",
    "answers",
    "breaks_at",
    "fails",
    "hangs_up",
    "sends",
    "stays_silent",
    "texts",
]

DIMENSIONS = 64

RERANKS = {"retrieval.rerank": "endpoint", "reranker.name": "ranker", "reranker.retries": 0}
"""Settings with which a search asks the server; reranker.base_url is its origin."""


class ScriptedEndpoint(ScriptedLlm):
    """A server that answers; each request takes the next step of the script, and the last step stays."""

    def __init__(self, *steps: Step) -> None:
        super().__init__(*(steps or (answers(),)))

    def take(self, request: Request) -> Step:
        """The next step; its connection is kept only where the step says so."""
        step = super().take(request)

        def taken(exchange: Any) -> None:
            exchange.close_connection = True
            step(exchange)

        return taken


def breaks_at(word: str) -> Step:
    """The right answer, but a failure for a question with this word."""

    def step(exchange: Any) -> None:
        broken = word in exchange.request_seen.body["query"]
        (fails(500, "out of memory") if broken else answers())(exchange)

    return step


def answers(
    change: Callable[[Any], Any] = lambda document: document,
    *,
    dimensions: int = DIMENSIONS,
    most: int = 32,
    **headers: str,
) -> Step:
    """The right answer for the request's path, after `change`. most: texts that are taken at once, as TEI has
    it. Connections are kept, as such servers keep them."""

    def step(exchange: Any) -> None:
        asked = exchange.request_seen.body
        count = len(texts(exchange.request_seen))
        status, document = 200, None
        if count > most:
            status = 413
            document = {"error": f"batch size {count} > maximum allowed batch size {most}"}
        else:
            document = change(_ANSWERS[exchange.request_seen.path.rpartition("/")[2]](asked, dimensions))
        body = json.dumps(document).encode()
        exchange.protocol_version = "HTTP/1.1"
        exchange.close_connection = False
        exchange.send(status, "application/json", body, {"content-length": str(len(body)), **headers})

    return step


def texts(request: Request) -> list[str]:
    """What a request asks to embed or to score."""
    body = request.body
    found = next(body[name] for name in ("input", "inputs", "passages", "texts", "documents") if name in body)
    return [item["text"] if isinstance(item, dict) else item for item in found]


def _vectors(asked: list[str], dimensions: int) -> list[list[float]]:
    return [_vector(text, dimensions) for text in asked]


@functools.cache
def _vector(text: str, dimensions: int) -> list[float]:
    """Three times as long as it should be, as of models that don't normalise."""
    (embedding,) = WordEmbedder(dimensions=dimensions).embed([text])
    vector: list[float] = (3 * embedding.vector).tolist()
    return vector


def _scores(question: str, passages: list[str], dimensions: int) -> list[tuple[int, float]]:
    """(index, score), best first."""
    first, *rest = np.array(_vectors([question, *passages], dimensions))
    scores = [(index, float(vector @ first)) for index, vector in enumerate(rest)]
    return sorted(scores, key=lambda pair: -pair[1])


def _openai(body: dict[str, Any], dimensions: int) -> dict[str, Any]:
    assert body["encoding_format"] == "float"
    vectors = _vectors(body["input"], dimensions)
    data = [{"object": "embedding", "index": n, "embedding": vector} for n, vector in enumerate(vectors)]
    return {"object": "list", "data": data, "model": body["model"], "usage": {"prompt_tokens": 1}}


def _tei(body: dict[str, Any], dimensions: int) -> list[list[float]]:
    return _vectors(body["inputs"], dimensions)


def _ranking(body: dict[str, Any], dimensions: int) -> dict[str, Any]:
    passages = [passage["text"] for passage in body["passages"]]
    scored = _scores(body["query"]["text"], passages, dimensions)
    return {"rankings": [{"index": index, "logit": score} for index, score in scored]}


def _rerank(body: dict[str, Any], dimensions: int) -> Any:
    """TEI's or Cohere's, as the request has it."""
    if "texts" in body:
        scored = _scores(body["query"], body["texts"], dimensions)
        return [{"index": index, "score": score} for index, score in scored]
    scored = _scores(body["query"], body["documents"], dimensions)[: body["top_n"]]
    return {"id": "1", "results": [{"index": index, "relevance_score": score} for index, score in scored]}


_ANSWERS: dict[str, Callable[[dict[str, Any], int], Any]] = {
    "embeddings": _openai,
    "embed": _tei,
    "ranking": _ranking,
    "reranking": _ranking,
    "rerank": _rerank,
}
