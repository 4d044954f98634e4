"""Texts -> vectors, with a model on this machine; served_embedder.py has those at endpoints.

Each text is one run of the graph on one thread, and several threads share a session. Compared with padded
batches nothing is computed for padding, two threads don't wait for each other in the middle of a layer, and
a text's vector is the same to the last bit whatever it is embedded with and on how many threads.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from hyce.config import Config, models_folder
from hyce.errors import ConfigError, ModelError
from hyce.models import ModelFiles
from hyce.records import Embedding

if TYPE_CHECKING:
    import onnxruntime
    import tokenizers

MOST_THREADS = 4
"""On a login node with hundreds of processors other people work too."""


class Embedder(Protocol):
    """A model that turns texts into vectors; equal fingerprints give equal vectors."""

    @property
    def fingerprint(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    @property
    def token_vectors(self) -> bool:
        """Whether it can give token vectors."""
        ...

    def embed(self, texts: Sequence[str], *, tokens: bool = False, query: bool = False) -> list[Embedding]:
        """One Embedding for each text, in their order.

        tokens: with token vectors. query: the texts are questions, which some models embed in another way.
        """
        ...

    def length(self, text: str) -> int:
        """Tokens of the text."""
        ...


def open_embedder(config: Config) -> Embedder:
    """The embedder that the settings name. Raises ModelError, ConfigError or PolicyError, with the remedy."""
    if config.model.kind != "onnx":
        from hyce.served_embedder import ServedEmbedder

        if config.model.late_chunking:
            raise ConfigError('model.late_chunking needs a model on this machine: set model.kind = "onnx"')
        return ServedEmbedder(config)
    from hyce.models import find

    files = find(config.model.name, config.model.precision, models_folder(config), "bi-encoder")
    if config.model.late_chunking:
        from hyce.late_chunking import LateEmbedder

        return LateEmbedder(files, config.model.threads)
    return OnnxEmbedder(files, config.model.threads)


class OnnxEmbedder:
    """The Embedder on this machine's processor. The model is loaded at the first use."""

    def __init__(self, files: ModelFiles, threads: int = 0) -> None:
        """threads: as in config.Model; 0 means those this process may use, at most MOST_THREADS."""
        self.files = files
        self.fingerprint = files.fingerprint
        self.dimensions = files.dimensions
        self.token_vectors = files.token_vectors
        self.threads = most_threads(threads)
        self._lock = threading.Lock()
        self._loaded_session: onnxruntime.InferenceSession | None = None
        self._loaded_tokenizer: tokenizers.Tokenizer | None = None
        self._ends: tuple[int, int] = (0, 0)

    def embed(self, texts: Sequence[str], *, tokens: bool = False, query: bool = False) -> list[Embedding]:
        """One Embedding for each text, in their order.

        A text of more than `files.max_tokens` tokens, special ones and the prompt counted, is cut. Token
        vectors are those of the text itself; a model without them gives none. They take 4 * dimensions bytes
        a token: give some hundred texts at a time when they are asked for.
        """
        if not texts:
            return []
        self._tokenizer()
        session = self._session()

        def one(text: str) -> Embedding:
            return self._embed(session, text, tokens and self.token_vectors, query)

        if len(texts) <= 2 or self.threads == 1:
            return [one(text) for text in texts]
        from concurrent.futures import ThreadPoolExecutor  # late: a question is one text or two

        with ThreadPoolExecutor(min(self.threads, len(texts))) as pool:
            return list(pool.map(one, texts))

    def length(self, text: str) -> int:
        """Tokens of the text, special tokens not counted, nothing cut."""
        return len(self._ids(text))

    def given(self, text: str, *, query: bool = False) -> tuple[list[int], int]:
        """What the model is given for a text: its ids, and how many of the first are not the text's own.

        Those are a special token and, with a model that wants one, the prompt; one more ends the list.
        """
        prompt = self.files.query_prompt if query else self.files.passage_prompt
        encoding = self._encode(prompt + text)
        ids = encoding.ids[: self.files.max_tokens - 2]
        # A token that holds the end of the prompt and the beginning of the text is the text's.
        lead = sum(end <= len(prompt) for _, end in encoding.offsets[: len(ids)]) if prompt else 0
        first, last = self._ends
        return [first, *ids, last], 1 + lead

    def _embed(self, session: Any, text: str, tokens: bool, query: bool) -> Embedding:
        ids, lead = self.given(text, query=query)
        given = {"ids": np.array([ids], np.int32)}
        if not tokens:
            (vector,) = session.run(["vector"], given)
            return Embedding(vector[0], np.empty((0, self.dimensions), np.float32))
        vector, rows = session.run(["vector", "tokens"], given)
        return Embedding(vector[0], rows[0, lead:-1], tuple(ids[lead:-1]))

    def _ids(self, text: str) -> list[int]:
        return list(self._encode(text).ids)

    def _encode(self, text: str) -> tokenizers.Encoding:
        return self._tokenizer().encode(clean(text), add_special_tokens=False)

    def _tokenizer(self) -> tokenizers.Tokenizer:
        with self._lock:
            if self._loaded_tokenizer is None:
                tokenizer = open_tokenizer(self.files)
                ends = tokenizer.encode("").ids
                if len(ends) != 2:
                    raise ModelError(
                        f"{self.files.tokenizer}: puts other special tokens around a text than one at each "
                        "end; take another model"
                    )
                self._ends = (ends[0], ends[1])
                self._loaded_tokenizer = tokenizer
            return self._loaded_tokenizer

    def _session(self) -> onnxruntime.InferenceSession:
        with self._lock:
            if self._loaded_session is None:
                self._loaded_session = open_session(self.files)
            return self._loaded_session


def clean(text: str) -> str:
    """The text without lone surrogates (halves of characters, from broken input): they are no UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")


def open_tokenizer(files: ModelFiles) -> tokenizers.Tokenizer:
    """The model's tokenizer, neither padding nor cutting. Raises ModelError."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(files.tokenizer))
    except Exception as error:  # the library raises plain Exception
        raise _broken(files.tokenizer, error) from error
    # Files come with padding and truncation of their own; `length` needs the whole text.
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def open_session(files: ModelFiles) -> onnxruntime.InferenceSession:
    """The model's graph, for one thread a run. Raises ModelError."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    # The graph was written in its final form: nothing to gain, and this halves the time to load it.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    # Patterns are remembered for each length of a text, which costs memory and saves nothing measurable.
    options.enable_mem_pattern = False
    options.log_severity_level = 4
    try:
        return ort.InferenceSession(str(files.graph), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime's own exceptions share no base but Exception
        raise _broken(files.graph, error) from error


def most_threads(threads: int) -> int:
    """As many as asked for; where that is 0, those this process may use, at most MOST_THREADS."""
    return threads or min(len(os.sched_getaffinity(0)), MOST_THREADS)


def _broken(path: Path, error: Exception) -> ModelError:
    reason = " ".join(str(error).split())[:200]
    return ModelError(f"{path}: broken ({reason}); get it anew with `hyce models pull {path.parent.name}`")
