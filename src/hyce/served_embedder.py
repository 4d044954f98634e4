"""Texts -> vectors, with a model at an endpoint.

openai: POST {base_url}/embeddings, as OpenAI, vLLM, Ollama, llama.cpp, NVIDIA NIM and gateways have it.
tei: POST {base_url}/embed of Text Embeddings Inference.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyce.completion import UnreadableError
from hyce.config import Config
from hyce.errors import ModelError
from hyce.privacy import redact
from hyce.records import Embedding
from hyce.served import MOST_BYTES, JsonClient, at_once, batches
from hyce.tokens import Length, longest, token_length

MOST_BYTES_A_TEXT = 400_000
"""A vector of 16,000 numbers, written out."""
_CHARACTERS_A_TOKEN = 32
"""No tokenizer has longer tokens than this on average; more text than that is never sent."""
_ENDS = 2
"""Tokens that models put at the ends of a text themselves."""
_PATHS = {"openai": "embeddings", "tei": "embed"}


class ServedEmbedder:
    """The Embedder at an endpoint. Raises PolicyError or ConfigError when made, before anything is sent.

    For an endpoint outside the site, questions are redacted before they are sent.
    """

    token_vectors = False

    def __init__(self, config: Config, sleep: Callable[[float], None] = time.sleep) -> None:
        self._model = config.model
        self._client = JsonClient(config, "model", (_PATHS[config.model.kind],), sleep)
        # Otherwise the server is asked to cut what is too long.
        self._cuts = config.model.kind == "openai" and not config.model.input_type
        self._dimensions: int | None = None
        self._measure: Length | None = None

    @property
    def fingerprint(self) -> str:
        """What the vectors depend on: the form, the model's name, whether questions are told from passages,
        and where longer texts are cut here. Not the address: the same model gives the same vectors
        wherever it is served."""
        parts = [self._model.kind, self._model.name]
        parts += ["input_type"] if self._model.input_type else []
        parts += [str(self._model.max_tokens)] if self._cuts else []
        return "/".join(parts)

    @property
    def dimensions(self) -> int:
        """Numbers in a vector; asks the endpoint, unless it has given a vector already."""
        if self._dimensions is None:
            return len(self.embed(["dimensions"])[0].vector)
        return self._dimensions

    def embed(self, texts: Sequence[str], *, tokens: bool = False, query: bool = False) -> list[Embedding]:
        """One Embedding for each text, in their order, without token vectors. Raises EndpointError."""
        if tokens:
            raise ModelError(
                f"model.kind = {self._model.kind}: an endpoint gives no token vectors; set "
                "index.token_vectors = false"
            )
        ready = [self._ready(text, query) for text in texts]
        asked = list(batches(ready, self._model.batch))
        if not asked:
            return []
        answers = at_once(lambda batch: self._vectors(batch, query), asked)
        for vectors in answers:
            self._agree(vectors.shape[1])
        none = np.empty((0, answers[0].shape[1]), np.float32)
        return [Embedding(vector, none) for vectors in answers for vector in vectors]

    def length(self, text: str) -> int:
        """Tokens of the text: measured with model.tokenizer, or else estimated too high."""
        if self._measure is None:
            self._measure = token_length(self._model.tokenizer, "model.tokenizer")
        return self._measure(text.encode("utf-8", "replace").decode("utf-8"))

    def _ready(self, text: str, query: bool) -> str:
        """The text as it may be sent, in a length that the model takes."""
        if query and self._client.location == "outside":
            text = redact(text)
        text = text[: _CHARACTERS_A_TOKEN * self._model.max_tokens]
        room = self._model.max_tokens - _ENDS
        # A token is one byte at least: most texts need no measuring.
        if not self._cuts or len(text.encode("utf-8", "replace")) <= room or self.length(text) <= room:
            return text
        return longest(len(text), lambda kept: text[:kept], room, self.length)

    def _vectors(self, batch: Sequence[str], query: bool) -> NDArray[np.float32]:
        """Shape (texts, dimensions), each row of length 1."""
        most = MOST_BYTES + MOST_BYTES_A_TEXT * len(batch)
        return self._client.post(
            self._body(batch, query), lambda document: _unit(self._rows(document, len(batch))), most
        )

    def _body(self, batch: Sequence[str], query: bool) -> dict[str, Any]:
        if self._model.kind == "tei":
            body = {"inputs": list(batch), "truncate": True, "normalize": True}
            return body | ({"prompt_name": "query"} if query and self._model.input_type else {})
        body = {"model": self._model.name, "input": list(batch), "encoding_format": "float"}
        if self._model.input_type:
            body |= {"input_type": "query" if query else "passage", "truncate": "END"}
        return body

    def _rows(self, document: Any, count: int) -> list[Any]:
        """What stands for the vectors in the answer, in the order of the texts."""
        rows = document
        if self._model.kind == "openai":
            data = document.get("data") if isinstance(document, dict) else None
            rows = _by_index(data) if isinstance(data, list) else None
        if not isinstance(rows, list):
            raise UnreadableError("answered without a list of vectors")
        if len(rows) != count:
            raise UnreadableError(f"gave {len(rows)} vectors for {count} texts")
        return rows

    def _agree(self, dimensions: int) -> None:
        if self._dimensions is None:
            self._dimensions = dimensions
        elif self._dimensions != dimensions:
            raise self._client.unusable(
                f"gave vectors of {dimensions} numbers after such of {self._dimensions}"
            )


def _by_index(data: list[Any]) -> list[Any]:
    """The embeddings in the order of "index", each of which must be there once."""
    rows: dict[int, Any] = {}
    for item in data:
        index = item.get("index") if isinstance(item, dict) else None
        if type(index) is not int or not 0 <= index < len(data) or index in rows:
            raise UnreadableError("doesn't say which vector is for which text")
        rows[index] = item.get("embedding")
    return [rows[index] for index in range(len(data))]


def _unit(rows: Sequence[Any]) -> NDArray[np.float32]:
    """The rows as vectors of length 1. Raises UnreadableError unless all are numbers, finite, as many in
    each row, and none is all zeros."""
    for row in rows:
        if not isinstance(row, list) or not row or any(type(value) not in (int, float) for value in row):
            raise UnreadableError("gave something else than numbers in a vector")
        if len(row) != len(rows[0]):
            raise UnreadableError("gave vectors of different lengths")
    try:
        vectors = np.array(rows, np.float64)
    except OverflowError:
        raise UnreadableError("gave numbers that are too large in a vector") from None
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(lengths).all():
        raise UnreadableError("gave numbers that are too large in a vector")
    if not lengths.all():
        raise UnreadableError("gave a vector of zeros")
    unit: NDArray[np.float32] = (vectors / lengths).astype(np.float32)
    return unit
