"""Many tasks at the same time, each finished one handed on at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Protocol, TypeVar

from hyce.errors import EndpointError

T = TypeVar("T")
R = TypeVar("R")

IN_A_ROW = 10
"""So many failures one after the other, and the endpoint is down, not the question hard."""


class Show(Protocol):
    """Shows how far the work is (cli.terminal.Progress)."""

    def update(self, done: int, total: int | None, detail: str) -> None: ...


def each(
    tasks: Iterable[T], do: Callable[[T], R], at_once: int, stopping: Callable[[], None] = lambda: None
) -> Generator[R, None, None]:
    """What `do` returns for each task, in the order in which they end; `at_once` tasks run at a time.

    What `do` raises ends the work once what is under way has ended, so that nothing of it is lost; so does
    an interruption. stopping: is called when that is waited for.
    """
    waiting = iter(tasks)
    with ThreadPoolExecutor(at_once) as pool:
        running: set[Future[R]] = {pool.submit(do, task) for task in islice(waiting, at_once)}
        try:
            while running:
                ended, running = wait(running, return_when=FIRST_COMPLETED)
                for future in ended:
                    yield future.result()
                running |= {pool.submit(do, task) for task in islice(waiting, len(ended))}
        finally:
            cancelled = [future.cancel() for future in running]
            if not all(cancelled):
                stopping()


class Patience:
    """Gives up when nothing but failures comes."""

    def __init__(self) -> None:
        self._failures = 0

    def after(self, problem: str) -> None:
        """One more task has ended. problem: why it failed; empty where it didn't. Raises EndpointError."""
        self._failures = self._failures + 1 if problem else 0
        if self._failures == IN_A_ROW:
            failures = f"{IN_A_ROW} failures one after the other"
            raise EndpointError(f"given up after {failures}; mend this and run the same again: {problem}")


class Pace:
    """Tells how far the work is: tokens, failures, and the time that is left."""

    def __init__(self, show: Show, total: int, done: int = 0) -> None:
        """done: tasks that were done before."""
        self._show, self._total, self._done = show, total, done
        self._before = done
        self._began = time.monotonic()

    def step(self, detail: str) -> None:
        """One more task is done."""
        self._done += 1
        spent = time.monotonic() - self._began
        left = spent / (self._done - self._before) * (self._total - self._done)
        self._show.update(self._done, self._total, f"{detail}, about {_duration(left)} left")

    def stopping(self) -> None:
        """What is under way is waited for."""
        self._show.update(self._done, self._total, "stopping when the calls under way have ended")


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
