"""Texts -> vectors, with a model on this machine.

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

from hyce.errors import ModelError
from hyce.models import ModelFiles
from hyce.records import Embedding

if TYPE_CHECKING:
    import onnxruntime
    import tokenizers

MOST_THREADS = 4
"""On a login node with hundreds of processors other people work too."""


class Embedder(Protocol):
    """A model that turns texts into vectors; equal fingerprints give equal vectors."""

    fingerprint: str
    dimensions: int

    def embed(self, texts: Sequence[str], *, tokens: bool = False) -> list[Embedding]: ...

    def length(self, text: str) -> int: ...


class OnnxEmbedder:
    """The Embedder on this machine's processor. The model is loaded at the first use."""

    def __init__(self, files: ModelFiles, threads: int = 0) -> None:
        """threads: as in config.Model; 0 means those this process may use, at most MOST_THREADS."""
        self.files = files
        self.fingerprint = files.fingerprint
        self.dimensions = files.dimensions
        self.threads = threads or min(len(os.sched_getaffinity(0)), MOST_THREADS)
        self._lock = threading.Lock()
        self._loaded_session: onnxruntime.InferenceSession | None = None
        self._loaded_tokenizer: tokenizers.Tokenizer | None = None
        self._ends: tuple[int, int] = (0, 0)

    def embed(self, texts: Sequence[str], *, tokens: bool = False) -> list[Embedding]:
        """One Embedding for each text, in their order.

        A text of more than `files.max_tokens` tokens, [CLS] and [SEP] counted, is cut. Token vectors take
        4 * dimensions bytes a token: give some hundred texts at a time when they are asked for.
        """
        if not texts:
            return []
        self._tokenizer()
        session = self._session()

        def one(text: str) -> Embedding:
            return self._embed(session, text, tokens)

        if len(texts) <= 2 or self.threads == 1:
            return [one(text) for text in texts]
        from concurrent.futures import ThreadPoolExecutor  # late: a question is one text or two

        with ThreadPoolExecutor(min(self.threads, len(texts))) as pool:
            return list(pool.map(one, texts))

    def length(self, text: str) -> int:
        """Tokens of the text, special tokens not counted, nothing cut."""
        return len(self._ids(text))

    def _embed(self, session: Any, text: str, tokens: bool) -> Embedding:
        ids = self._ids(text)[: self.files.max_tokens - 2]
        first, last = self._ends
        given = {"ids": np.array([[first, *ids, last]], np.int32)}
        if not tokens:
            (vector,) = session.run(["vector"], given)
            return Embedding(vector[0], np.empty((0, self.dimensions), np.float32))
        vector, rows = session.run(["vector", "tokens"], given)
        return Embedding(vector[0], rows[0, 1:-1], tuple(ids))

    def _ids(self, text: str) -> list[int]:
        # A lone surrogate (half of a character, from broken input) can't be passed on as UTF-8.
        clean = text.encode("utf-8", "replace").decode("utf-8")
        return self._tokenizer().encode(clean, add_special_tokens=False).ids

    def _tokenizer(self) -> tokenizers.Tokenizer:
        with self._lock:
            if self._loaded_tokenizer is None:
                from tokenizers import Tokenizer

                try:
                    tokenizer = Tokenizer.from_file(str(self.files.tokenizer))
                except Exception as error:  # the library raises plain Exception
                    raise _broken(self.files.tokenizer, error) from error
                # Files come with padding and truncation of their own; `length` needs the whole text.
                tokenizer.no_padding()
                tokenizer.no_truncation()
                ends = tokenizer.encode("").ids
                if len(ends) != 2:
                    raise ModelError(
                        f"{self.files.tokenizer}: puts no special token at either end; take a BERT model"
                    )
                self._ends = (ends[0], ends[1])
                self._loaded_tokenizer = tokenizer
            return self._loaded_tokenizer

    def _session(self) -> onnxruntime.InferenceSession:
        with self._lock:
            if self._loaded_session is None:
                self._loaded_session = _session(self.files)
            return self._loaded_session


def _session(files: ModelFiles) -> onnxruntime.InferenceSession:
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


def _broken(path: Path, error: Exception) -> ModelError:
    reason = " ".join(str(error).split())[:200]
    return ModelError(f"{path}: broken ({reason}); get it anew with `hyce models pull`")
