"""What commands printed a moment ago: one file for each way of running an entry, locked while it runs.

The lock joins identical runs: who wants the same waits for it, and finds what the other has stored. The file
is written and read only by who has locked it, so that nobody sees half of it; what a killed process left
half-written is no JSON, and counts as nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from hyce.records import CommandOutput, Pipeline
from hyce.state import State

_PREFIX = "output-"
_KEPT = 60.0
"""Seconds for which an output is kept for those who wait for it, where it may not be reused."""


@dataclass(frozen=True, slots=True)
class Stored:
    """An output and when it ran, in seconds since 1970."""

    began: float
    ended: float
    output: CommandOutput

    def serves(self, reuse: float, asked: float, now: float, *, fresh: bool) -> bool:
        """Whether it may stand for a run that was asked for at `asked`.

        It may while it is new enough, if it went well; and, however it went and whatever `reuse` says, for
        who waited while it ran. fresh: only if it began after it was asked for.
        """
        if self.ended > now:
            return False  # the clock was set back: nobody knows how old it is
        if fresh:
            return self.began >= asked
        return self.ended > asked or (self.output.status == "ok" and now - self.began < reuse)


@dataclass(frozen=True, slots=True)
class Slot:
    """The locked file of one way of running an entry."""

    key: str
    file: int

    def read(self) -> Stored | None:
        """What was stored last; None where there is nothing, or nothing that can be read."""
        try:
            row = json.loads(os.pread(self.file, os.fstat(self.file).st_size, 0))
            if row["key"] != self.key:
                return None
            return Stored(float(row["began"]), float(row["ended"]), read_output(row["output"]))
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return None

    def write(self, stored: Stored, reuse: float) -> None:
        """Store it until it may not be reused any more, if there is room."""
        row = {"key": self.key, "began": stored.began, "ended": stored.ended, "output": asdict(stored.output)}
        data = json.dumps(row).encode()
        until = stored.began + max(reuse, _KEPT)
        with contextlib.suppress(OSError):
            os.ftruncate(self.file, 0)
            if os.pwrite(self.file, data, 0) < len(data):
                os.ftruncate(self.file, 0)
            # The file's time is when it may be swept away.
            os.utime(self.file, (until, until))


@dataclass(frozen=True, slots=True)
class Outputs:
    """The stored outputs of one user."""

    state: State
    now: Callable[[], float] = time.time

    @contextlib.contextmanager
    def slot(self, key: str, wait: float) -> Iterator[Slot | None]:
        """The slot of this key, once nobody else has it; None where it can't be had within `wait` seconds."""
        with contextlib.ExitStack() as held:
            slot = None
            with contextlib.suppress(OSError):
                slot = Slot(key, held.enter_context(self.state.locked(f"{_PREFIX}{key}.json", wait)))
            yield slot

    def sweep(self) -> None:
        """Delete what may not be reused any more."""
        with contextlib.suppress(OSError):
            self.state.sweep(_PREFIX, self.now())


def read_output(row: Mapping[str, Any]) -> CommandOutput:
    """The output as it was stored. Raises TypeError, ValueError or KeyError where it is none."""
    if not isinstance(row["stdout"], str) or not isinstance(row["stderr"], str):
        raise TypeError("an output is text")
    return CommandOutput(
        **{
            **row,
            "argv": pipeline(row["argv"]),
            "layers": tuple(row["layers"]),
            "also": tuple(pipeline(argv) for argv in row["also"]),
        }
    )


def pipeline(rows: Any) -> Pipeline:
    """Argument lists as JSON has them."""
    return tuple(tuple(str(part) for part in stage) for stage in rows)
