"""Late chunking: a page is embedded before it is cut, so that a passage's vector knows what stands around it.

The passages of a page go through the model side by side, as many as it reads at once, and each one's vector
is the mean of its own tokens' rows. Longer pages go in windows that overlap; a passage is taken from the
window that shows more of what stands around it. Günther et al. 2024, arXiv:2409.04701.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyce.embed import OnnxEmbedder
from hyce.errors import ConfigError, ModelError
from hyce.models import ModelFiles
from hyce.records import Embedding

_AT_ONCE = 64
"""Windows whose rows are in memory together."""


@dataclass(frozen=True, slots=True)
class Window:
    """Passages of a page that go through the model together, by their numbers on the page."""

    shown: range
    taken: range
    """Those whose vectors come from this window."""


class LateEmbedder(OnnxEmbedder):
    """An OnnxEmbedder that can also embed pages as a whole; questions are embedded as ever."""

    def __init__(self, files: ModelFiles, threads: int = 0) -> None:
        """Raises ConfigError for a model whose vectors aren't means of its tokens' rows."""
        super().__init__(files, threads)
        if files.pooling != "mean":
            raise ConfigError(
                f"model.late_chunking: {files.name} takes its vectors from one token; set it to false, or "
                "use a model that takes their mean"
            )
        self.fingerprint = f"{files.fingerprint}/late"

    def embed_pages(self, pages: Sequence[Sequence[str]], *, tokens: bool = False) -> Iterator[Embedding]:
        """An Embedding for each passage of each page, in their order; what `embed` cuts, this cuts too.

        tokens: with token vectors, which know the surroundings as well. Raises ModelError where the model's
        files were made before this was possible.
        """
        session = self._session()
        if "hidden" not in [output.name for output in session.get_outputs()]:
            raise ModelError(
                f"{self.files.graph}: made by an older hyce, without what late chunking needs; get it anew "
                f"with `hyce models pull {self.files.name}`"
            )
        lead = self._ids(self.files.passage_prompt.rstrip())
        room = self.files.max_tokens - 2 - len(lead)
        work = (
            (passages, window)
            for passages in ([self._ids(text)[:room] for text in page] for page in pages)
            for window in windows([len(ids) for ids in passages], room)
        )

        def one(given: tuple[list[list[int]], Window]) -> list[Embedding]:
            return self._pooled(session, *given, lead, tokens)

        from concurrent.futures import ThreadPoolExecutor  # late: as in embed

        with ThreadPoolExecutor(self.threads) as pool:
            while group := list(islice(work, _AT_ONCE)):
                for embeddings in pool.map(one, group):
                    yield from embeddings

    def _pooled(
        self, session: Any, passages: Sequence[list[int]], window: Window, lead: list[int], tokens: bool
    ) -> list[Embedding]:
        first, last = self._ends
        ids = [first, *lead, *(token for number in window.shown for token in passages[number]), last]
        rows = session.run(["hidden"], {"ids": np.array([ids], np.int32)})[0][0]
        ends = np.cumsum([1 + len(lead), *(len(passages[number]) for number in window.shown)])
        found = []
        for number, (begin, end) in zip(window.shown, pairwise(ends), strict=True):
            if number in window.taken:
                own = rows[begin:end]
                # A passage without a token has the row of the whole window.
                vector = (own if len(own) else rows[:1]).mean(axis=0)
                kept, known = (own, tuple(passages[number])) if tokens else (rows[:0], ())
                found.append(Embedding(_unit(vector), _unit(kept), known))
        return found


def windows(lengths: Sequence[int], room: int) -> list[Window]:
    """The windows of a page whose passages have so many tokens, none of them more than `room`.

    Every passage lies whole in one window at least, and is taken from one. Each window begins in the middle
    of the one before, or later where the next passage wouldn't fit in otherwise.
    """
    if not lengths:
        return []
    shown = [range(_end(lengths, 0, room))]
    while (end := shown[-1].stop) < len(lengths):
        last = shown[-1]
        begin = next(
            number
            for number in range(last.start + 1, end + 1)
            if number == end
            or (
                2 * sum(lengths[last.start : number]) >= sum(lengths[last.start : end])
                and sum(lengths[number : end + 1]) <= room
            )
        )
        shown.append(range(begin, _end(lengths, begin, room)))
    borders = [0, *(_border(lengths, one, other) for one, other in pairwise(shown)), len(lengths)]
    return [
        Window(each, range(first, end))
        for each, (first, end) in zip(shown, pairwise(borders), strict=True)
        if end > first
    ]


def _end(lengths: Sequence[int], begin: int, room: int) -> int:
    """The first passage that doesn't fit any more into a window that begins at `begin`."""
    end, left = begin + 1, room - lengths[begin]
    while end < len(lengths) and lengths[end] <= left:
        left -= lengths[end]
        end += 1
    return end


def _border(lengths: Sequence[int], one: range, other: range) -> int:
    """The first passage that the second of two windows shows more around than the first one does."""
    shared = range(other.start, one.stop)
    better = (n for n in shared if sum(lengths[other.start : n]) >= sum(lengths[n + 1 : one.stop]))
    return next(better, one.stop)


def _unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """The rows, each of length 1."""
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-12), np.float32)
