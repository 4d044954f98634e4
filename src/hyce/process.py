"""Argument lists joined by pipes -> what they printed, within a time limit and an output limit.

A program may hang, print without end, ignore SIGTERM, or leave children behind that keep its output open.
Each stage runs in a session of its own, so that it has no terminal to read or write, and its whole process
group is ended with it. What leaves the group (setsid, a daemon) is found by a mark in its environment, and
ended too. Only a program that wipes its environment, or one with other rights (setuid), escapes that; it then
writes into a closed pipe. With a PID namespace (sandbox.py) nothing does: it ends with bubblewrap,
which is in the stage's process group.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

GRACE = 1.0
"""Seconds between SIGTERM and SIGKILL, and for output that a finished program's children keep open."""
_PATIENCE = 30.0
"""Seconds that ending a fork bomb may take: it leaves little time to others, and so to who ends it."""
MARK = "HYCE_RUN"
"""Variable by whose random value all processes of one run are known."""
_PIPE_CLOSED = (-signal.SIGPIPE, 128 + signal.SIGPIPE)
"""How a stage ends whose reader had enough; the second as a shell and bubblewrap report it."""
_TICK = 0.05
_BLOCK = 65536


@dataclass(frozen=True, slots=True)
class Finished:
    """How a pipeline ended."""

    exit_code: int | None
    """Of the last stage that failed, else 0; 128 + n for signal n. None where it had to be ended."""
    stdout: bytes
    stderr: bytes
    truncated: bool
    timed_out: bool
    seconds: float


@dataclass(slots=True)
class _Capture:
    """The first `limit` bytes of a stream; the rest is read, so that the program goes on, and dropped."""

    fd: int
    limit: int
    kept: bytearray = field(default_factory=bytearray)
    truncated: bool = False

    def take(self) -> bool:
        """Read one block; False at the end of the stream."""
        data = os.read(self.fd, _BLOCK)
        room = self.limit - len(self.kept)
        self.kept += data[:room]
        self.truncated = self.truncated or len(data) > room
        return bool(data)


def execute(
    argv: Sequence[Sequence[str]], *, environment: Mapping[str, str], timeout: float, max_bytes: int
) -> Finished:
    """Run the stages, each connected to the next. argv[n][0] is the program's absolute path.

    Raises OSError when a stage can't be started.
    """
    started = time.monotonic()
    mark = secrets.token_hex(16)
    out_read, out_write = os.pipe()
    err_read, err_write = os.pipe()
    stages: list[subprocess.Popen[bytes]] = []
    try:
        try:
            _start(argv, {**environment, MARK: mark}, out_write, err_write, stages)
        finally:
            os.close(out_write)
            os.close(err_write)
        out, err = _Capture(out_read, max_bytes), _Capture(err_read, max_bytes)
        timed_out = _collect(stages, (out, err), started + timeout)
    finally:
        _end(stages, mark)
        os.close(out_read)
        os.close(err_read)
    return Finished(
        exit_code=None if timed_out else _exit_code([stage.returncode for stage in stages]),
        stdout=bytes(out.kept),
        stderr=bytes(err.kept),
        truncated=out.truncated or err.truncated,
        timed_out=timed_out,
        seconds=time.monotonic() - started,
    )


def _start(
    argv: Sequence[Sequence[str]],
    environment: Mapping[str, str],
    out: int,
    err: int,
    stages: list[subprocess.Popen[bytes]],
) -> None:
    """Start every stage and append it to `stages`, so that the caller can end those that were started."""
    upstream: int = subprocess.DEVNULL
    for number, arguments in enumerate(argv):
        last = number == len(argv) - 1
        read_end, write_end = (-1, out) if last else os.pipe()
        try:
            stages.append(
                subprocess.Popen(  # noqa: S603 - no shell, absolute path, checked arguments
                    list(arguments),
                    stdin=upstream,
                    stdout=write_end,
                    stderr=err,
                    env=dict(environment),
                    # Some interpreters look for their modules in the working directory first.
                    cwd="/",
                    start_new_session=True,
                    close_fds=True,
                    umask=0o077,
                )
            )
        except BaseException:
            if read_end >= 0:
                os.close(read_end)
            raise
        finally:
            if not last:
                os.close(write_end)
            if upstream >= 0:
                os.close(upstream)
        upstream = read_end


def _collect(
    stages: Sequence[subprocess.Popen[bytes]], captures: Sequence[_Capture], deadline: float
) -> bool:
    """Read until every stage has ended; True when the time limit came first.

    At the limit the first stage is asked to end, so that later ones (sort, head) can still write what
    they hold; after the grace `_end` ends them all.
    """
    timed_out = False
    with selectors.DefaultSelector() as selector:
        for capture in captures:
            selector.register(capture.fd, selectors.EVENT_READ, capture)
        while selector.get_map() or not all(_ended(stage) for stage in stages):
            left = deadline - time.monotonic()
            if left <= 0:
                if timed_out or all(_ended(stage) for stage in stages):
                    break
                timed_out = True
                _signal(stages[0], signal.SIGTERM)
                deadline = time.monotonic() + GRACE
                continue
            # Without an open stream there is nothing but the end of the stages to wait for.
            for key, _ in selector.select(min(left, _TICK if selector.get_map() else _TICK / 20)):
                if not key.data.take():
                    selector.unregister(key.fd)
            if not timed_out and all(_ended(stage) for stage in stages):
                # A child that outlives its parent may keep the pipe open for ever.
                deadline = min(deadline, time.monotonic() + GRACE)
    return timed_out


def _ended(stage: subprocess.Popen[bytes]) -> bool:
    """Whether the stage has ended, without reaping it: until then nobody else can get its group's number."""
    if stage.returncode is not None:
        return True
    with contextlib.suppress(ChildProcessError):
        return os.waitid(os.P_PID, stage.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    return True


def _signal(stage: subprocess.Popen[bytes], number: int) -> None:
    # Its session is its own, so the group's number is the stage's pid; it is not reaped yet.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(stage.pid, number)


def _end(stages: Sequence[subprocess.Popen[bytes]], mark: str) -> None:
    """Kill every stage's whole group and what has left it, then reap the stages."""
    for stage in stages:
        _signal(stage, signal.SIGKILL)
    _end_escaped(mark)
    for stage in stages:
        # A program in uninterruptible sleep (a dead file server) can't be waited for.
        with contextlib.suppress(subprocess.TimeoutExpired):
            stage.wait(GRACE)


def _end_escaped(mark: str) -> None:
    """Kill what carries the mark, once none of it can start more: killed one by one, a fork bomb regrows."""
    deadline = time.monotonic() + _PATIENCE
    stopped: set[int] = set()
    growing = True
    while growing and time.monotonic() < deadline:
        growing = False
        for pid in _marked(mark):
            if pid not in stopped:
                _signal_one(pid, signal.SIGSTOP)  # at once: each that runs on delays the search
                stopped.add(pid)
                growing = True
    if stopped:
        for pid in _marked(mark):
            _signal_one(pid, signal.SIGKILL)


def _signal_one(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _marked(mark: str) -> Iterator[int]:
    """The processes of this user that carry the mark, zombies left out."""
    needle = f"{MARK}={mark}".encode()
    with contextlib.suppress(OSError), os.scandir("/proc") as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                mine = entry.name.isdecimal() and entry.stat().st_uid == os.getuid()
                if mine and needle in Path(entry.path, "environ").read_bytes():
                    yield int(entry.name)


def _exit_code(codes: Sequence[int | None]) -> int:
    """As `set -o pipefail` has it; a stage whose reader had enough (SIGPIPE) has not failed."""
    failed = [
        128 - code if code < 0 else code
        for position, code in enumerate(codes)
        if code and not (code in _PIPE_CLOSED and position < len(codes) - 1)
    ]
    return failed[-1] if failed else 0
