"""Threads that fetch pages for the one that reads the site."""

from __future__ import annotations

import queue
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future

from hyce.sources.web_address import Address
from hyce.sources.web_fetch import Limits, Line, Pace, Reply

_PATIENCE = 2.0
"""Seconds that the end waits for a thread; one that looks a name up can't be hurried."""

Request = tuple[Address, Mapping[str, str], "Future[Reply]"]


class Crew:
    """One thread for each line. Closing it ends what is under way."""

    def __init__(self, lines: Sequence[Line], limits: Limits, pace: Pace) -> None:
        self._lines, self._limits, self._stop = lines, limits, pace.stop
        self._requests: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        # Daemons: an interrupted run must end although a thread still waits for the name server.
        self._threads = [threading.Thread(target=self._work, args=(line,), daemon=True) for line in lines]
        for thread in self._threads:
            thread.start()

    def ask(self, address: Address, headers: Mapping[str, str]) -> Future[Reply]:
        """The reply, once it is there; its exceptions are those of Line.get."""
        future: Future[Reply] = Future()
        self._requests.put((address, headers, future))
        return future

    def close(self) -> None:
        self._stop.set()
        for _ in self._threads:
            self._requests.put(None)
        for line, thread in zip(self._lines, self._threads, strict=True):
            line.cut()
            thread.join(_PATIENCE)
            if not thread.is_alive():
                line.close()

    def _work(self, line: Line) -> None:
        while (request := self._requests.get()) is not None and not self._stop.is_set():
            address, headers, future = request
            try:
                future.set_result(line.get(address, self._limits, headers))
            except Exception as error:
                future.set_exception(error)
