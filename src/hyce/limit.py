"""How many commands a user may still start: a sliding minute, over all of the user's processes."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from hyce.state import State

WINDOW = 60.0
_FILE = "starts"
_WAIT = 5.0
_SKEW = 5.0
"""Seconds by which the clocks of two machines that share the folder may differ."""


class Limit:
    """Counts starts in the state folder; in memory, for this process, where that can't be written."""

    def __init__(self, state: State, most: int, now: Callable[[], float] = time.time) -> None:
        self._state, self._most, self._now = state, most, now
        self._here: list[float] = []
        self._guard = threading.Lock()

    def take(self) -> float:
        """0 when a command may start, which is counted; otherwise the seconds until one may."""
        return self._change(self._taken) if self._most else 0.0

    def give_back(self) -> None:
        """Uncount what take() has just counted: nothing was started after all."""
        if self._most:
            self._change(lambda starts: (starts[:-1], 0.0))

    def _taken(self, starts: list[float]) -> tuple[list[float], float]:
        now = self._now()
        if len(starts) < self._most:
            return [*starts, now], 0.0
        return starts, max(starts[-self._most] + WINDOW - now, 0.001)

    def _change(self, change: Callable[[list[float]], tuple[list[float], float]]) -> float:
        try:
            with self._state.locked(_FILE, _WAIT) as file:
                starts, result = change(self._recent(_read(file)))
                _write(file, starts)
                return result
        except OSError:
            with self._guard:
                self._here, result = change(self._recent(self._here))
                return result

    def _recent(self, starts: list[float]) -> list[float]:
        now = self._now()
        return sorted(start for start in starts if now - WINDOW < start <= now + _SKEW)


def _read(file: int) -> list[float]:
    starts = []
    for line in os.pread(file, os.fstat(file).st_size, 0).split():
        try:
            starts.append(float(line))
        except ValueError:
            continue  # half a line, from a process that was killed
    return starts


def _write(file: int, starts: list[float]) -> None:
    """Lines of one length, written over the old ones before the rest is cut: no moment without a count."""
    data = "".join(f"{start:017.6f}\n" for start in starts).encode()
    if os.pwrite(file, data, 0) < len(data):
        raise OSError("the disk is full")
    os.ftruncate(file, len(data))
