"""The audit log: one line of JSON for each run and each refusal, which is only ever appended to.

A record is one write at the end of the file, so that records of several processes never mix. What a killed
process or a full disk left of one is closed by the next writer with a line break, and passed over by readers.
The file is bounded: at MOST_BYTES it becomes audit.1.jsonl, in place of the one before.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import errno
import json
import os
import socket
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hyce.outputs import pipeline
from hyce.records import Pipeline
from hyce.state import State

FILE, OLDER = "audit.jsonl", "audit.1.jsonl"
MOST_BYTES = 5_000_000
SYSLOG = Path("/dev/log")
_LOCK = "audit.lock"
_WAIT = 5.0
_USER_INFO = 14
"""Facility user, severity info, as syslog writes them."""


@dataclass(frozen=True, slots=True)
class Record:
    """A run or a refusal."""

    time: str
    """When it was asked for: ISO 8601 with the offset from UTC."""
    user: str
    uid: int
    host: str
    question: str
    """Without secrets of a known shape; empty where the entry was called by its id."""
    id: str
    """The entry; empty where the question was refused."""
    argv: Pipeline
    also: tuple[Pipeline, ...]
    status: str
    """That of the output, or `interrupted`."""
    exit_code: int | None
    seconds: float
    layers: tuple[str, ...]
    reused: bool
    """Whether the output is that of an earlier run, at `started`."""
    started: str
    reason: str


def append(state: State, record: Record, most_bytes: int = MOST_BYTES) -> None:
    """Add the record. Raises OSError where it can't be written."""
    line = json.dumps(asdict(record)).encode() + b"\n"
    with contextlib.ExitStack() as held:
        locked = False
        # A lock that can't be had (a stopped process, a file system without locks) loses no record: a single
        # write to the end is whole all the same. Only the file's length is looked after by others then.
        with contextlib.suppress(OSError):
            held.enter_context(state.locked(_LOCK, _WAIT))
            locked = True
        if locked and len(line) + _size(state) > most_bytes:
            with contextlib.suppress(FileNotFoundError):
                state.rename(FILE, OLDER)
        file = state.open(FILE, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        try:
            _write(file, line)
        finally:
            # On a network file system, it is here that a full disk may be told.
            os.close(file)


def _size(state: State) -> int:
    try:
        file = state.open(FILE, os.O_RDONLY)
    except FileNotFoundError:
        return 0
    try:
        return os.fstat(file).st_size
    finally:
        os.close(file)


def _write(file: int, line: bytes) -> None:
    size = os.fstat(file).st_size
    if size and os.pread(file, 1, size - 1) != b"\n":
        line = b"\n" + line
    if os.write(file, line) < len(line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def records(state: State) -> Iterator[Record]:
    """All records, oldest first; lines that are none are passed over."""
    for name in (OLDER, FILE):
        for line in state.read(name).splitlines():
            try:
                yield _record(json.loads(line))
            except (ValueError, TypeError, KeyError, RecursionError):
                continue


def _record(row: Any) -> Record:
    values = {field.name: row[field.name] for field in dataclasses.fields(Record)}
    values["argv"] = pipeline(values["argv"])
    values["also"] = tuple(pipeline(argv) for argv in values["also"])
    values["layers"] = tuple(values["layers"])
    for name in ("time", "status", "id", "question", "reason", "started"):
        if not isinstance(values[name], str):
            raise TypeError(f"{name} is a text")
    datetime.datetime.fromisoformat(values["time"])
    values["seconds"] = float(values["seconds"])
    return Record(**values)


def to_syslog(record: Record, address: Path = SYSLOG) -> None:
    """Send the record to syslog, without the question. Nothing happens where nobody listens.

    The standard library's handler would wait for ever for a syslog that doesn't read.
    """
    row = asdict(record)
    del row["question"]
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.settimeout(1.0)
        sender.connect(str(address))
        sender.send(f"<{_USER_INFO}>hyce[{os.getpid()}]: {json.dumps(row)}".encode())
