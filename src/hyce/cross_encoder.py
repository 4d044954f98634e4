"""Question and passage read together -> a score, with a model on this machine.

As in embed.py each pair is one run of the graph on one thread: a score depends on its pair alone.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hyce.embed import clean, most_threads, open_session, open_tokenizer
from hyce.models import ModelFiles

if TYPE_CHECKING:
    import onnxruntime
    import tokenizers


class OnnxCrossEncoder:
    """The Reranker on this machine's processor. The model is loaded at the first use."""

    def __init__(self, files: ModelFiles, threads: int = 0) -> None:
        """threads: as in config.Model; 0 means those this process may use, within reason."""
        self.files = files
        self.threads = most_threads(threads)
        self._lock = threading.Lock()
        self._loaded: tuple[onnxruntime.InferenceSession, tokenizers.Tokenizer, frozenset[str]] | None = None

    def score(self, question: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape (len(texts),): the higher, the better the text answers the question.

        It is the classifier's raw output: what may be put on it (a sigmoid) would not change the order, and
        makes the best ones equal. Of a pair that is too long the longer text is cut, as the original does.
        """
        if not texts:
            return np.empty(0, np.float32)
        session, _, inputs = self._load()

        def one(text: str) -> Any:
            ids, types = self.given(question, text)
            arrays = {"ids": np.array([ids], np.int32), "types": np.array([types], np.int32)}
            return session.run(["score"], {name: arrays[name] for name in inputs})[0].item()

        if len(texts) == 1 or self.threads == 1:
            return np.array([one(text) for text in texts], np.float32)
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(min(self.threads, len(texts))) as pool:
            return np.array(list(pool.map(one, texts)), np.float32)

    def given(self, question: str, text: str) -> tuple[list[int], list[int]]:
        """What the model is given for a pair: ids, special ones included, and which text each is of."""
        encoding = self._load()[1].encode(clean(question), clean(text))
        return encoding.ids, encoding.type_ids

    def _load(self) -> tuple[onnxruntime.InferenceSession, tokenizers.Tokenizer, frozenset[str]]:
        with self._lock:
            if self._loaded is None:
                tokenizer = open_tokenizer(self.files)
                tokenizer.enable_truncation(self.files.max_tokens, strategy="longest_first")
                session = open_session(self.files)
                # Some models have no use for the types, and their graphs no input.
                inputs = frozenset(given.name for given in session.get_inputs())
                self._loaded = (session, tokenizer, inputs)
            return self._loaded
