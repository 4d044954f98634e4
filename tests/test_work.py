"""Tasks at the same time: never more than said, and nothing that was begun is lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hyce_home import wait_for

from hyce.evaluate.work import Pace, each


class Counted:
    """Counts the tasks that run at the same time; each waits until `together` do, or somebody opens it."""

    def __init__(self, together: int) -> None:
        self._guard = threading.Lock()
        self._gate = threading.Event()
        self._together = together
        self.running = self.most = 0
        self.ended: list[int] = []

    def __call__(self, task: int) -> int:
        with self._guard:
            self.running += 1
            self.most = max(self.most, self.running)
            if self.running == self._together:
                self._gate.set()
        assert self._gate.wait(60)
        with self._guard:
            self.running -= 1
            self.ended.append(task)
        return task * 10


@pytest.mark.parametrize("at_once", [1, 3, 8])
def test_so_many_run_at_a_time_and_never_more(at_once: int) -> None:
    counted = Counted(at_once)
    assert sorted(each(range(50), counted, at_once)) == [task * 10 for task in range(50)]
    assert counted.most == at_once


def test_results_come_in_the_order_in_which_tasks_end() -> None:
    gates = {task: threading.Event() for task in range(4)}

    def do(task: int) -> int:
        assert gates[task].wait(60)
        return task

    results = each(range(4), do, 4)
    for task in (2, 0, 3, 1):
        gates[task].set()
        assert next(results) == task
    assert list(results) == []


def test_one_at_a_time_keeps_the_order() -> None:
    assert list(each("abcdef", str.upper, 1)) == list("ABCDEF")
    assert list(each((), str.upper, 4)) == []


def test_tasks_are_taken_when_there_is_room_for_them() -> None:
    taken: list[int] = []

    def tasks() -> Iterator[int]:
        for task in range(100):
            taken.append(task)
            yield task

    results = each(tasks(), lambda task: task, 2)
    next(results)
    assert len(taken) <= 4  # 100 tasks with their inputs aren't held in memory
    results.close()
    assert len(taken) <= 4


def test_an_error_ends_it_after_what_runs_has_ended() -> None:
    begun: list[int] = []
    ended: list[int] = []
    slow = threading.Event()

    def do(task: int) -> int:
        begun.append(task)
        if task == 1:
            wait_for(lambda: len(begun) >= 3)
            threading.Timer(0.05, slow.set).start()
            raise ValueError("the disk is full")
        assert slow.wait(60)
        ended.append(task)
        return task

    with pytest.raises(ValueError, match="the disk is full"):
        list(each(range(100), do, 3))
    assert sorted(ended) == sorted(set(begun) - {1})  # whatever was begun has ended
    assert len(begun) <= 6
    assert threading.active_count() < 20


def test_an_interruption_lets_what_runs_end_and_begins_nothing_more() -> None:
    begun: list[int] = []
    ended: list[int] = []

    def do(task: int) -> int:
        begun.append(task)
        if task:
            wait_for(interrupted.is_set)
        ended.append(task)
        return task

    interrupted = threading.Event()

    def consume() -> None:
        for _ in each(range(100), do, 3):
            interrupted.set()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        consume()
    assert sorted(begun) == sorted(ended)
    assert len(begun) <= 4


@dataclass
class Shown:
    lines: list[tuple[int, int | None, str]] = field(default_factory=list)

    def update(self, done: int, total: int | None, detail: str) -> None:
        self.lines.append((done, total, detail))


def test_whoever_waits_is_told_that_something_is_waited_for() -> None:
    told, begun = threading.Event(), threading.Event()

    def do(task: int) -> None:
        if task == 0:
            assert begun.wait(60)
            raise ValueError("no")
        begun.set()
        assert told.wait(60)

    with pytest.raises(ValueError, match="no"):
        list(each(range(9), do, 2, told.set))
    assert told.is_set()
    told.clear()
    assert list(each(range(1, 1), do, 2, told.set)) == []
    assert not told.is_set()


def test_the_pace_counts_what_was_done_before_and_ends_with_nothing_left() -> None:
    shown = Shown()
    pace = Pace(shown, 5, done=3)
    pace.step("120 tokens")
    pace.step("240 tokens, 1 failed")
    assert [(done, total) for done, total, _ in shown.lines] == [(4, 5), (5, 5)]
    assert shown.lines[0][2].startswith("120 tokens, about ")
    assert shown.lines[1][2] == "240 tokens, 1 failed, about 0 s left"


def test_the_time_left_goes_by_what_was_done_now(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    shown = Shown()
    pace = Pace(shown, 1000, done=900)  # those took no time now
    for seconds, left in ((0.5, "about 50 s left"), (60.5, "about 50 min left"), (900.0, "about 8.6 h left")):
        clock[0] += seconds
        pace.step("")
        assert shown.lines[-1][2] == f", {left}", seconds
