"""hyce commands log."""

from __future__ import annotations

import argparse
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from hyce.cli.terminal import Terminal
from hyce.config import Config
from hyce.errors import UsageError
from hyce.records import command_line

if TYPE_CHECKING:
    from hyce.audit import Record

_STATUSES = ("ok", "failed", "timeout", "refused", "unavailable", "interrupted")
_SPAN = re.compile(r"(\d{1,6})([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_MOST_CHARACTERS = 300
_SHOWN = 20


def register(actions: Any, common: argparse.ArgumentParser) -> None:
    """Add the command to those of `hyce commands`."""
    log = actions.add_parser(
        "log",
        parents=[common],
        help="what ran, and what was refused",
        description="Shows what hyce ran for this user and what it refused, newest last, from the audit log "
        "in $XDG_STATE_HOME/hyce. With --json, one JSON object a line.",
    )
    log.add_argument(
        "-n", type=_count, default=_SHOWN, metavar="N", help=f"the newest N (default: {_SHOWN}); 0: all"
    )
    log.add_argument("--entry", metavar="ID", help="only this entry, such as slurm.my_jobs")
    log.add_argument("--status", choices=_STATUSES, help="only what ended so")
    log.add_argument(
        "--since",
        type=_since,
        metavar="WHEN",
        help="only what is newer: 30m, 2h, 7d, or a date such as 2025-03-01",
    )
    log.set_defaults(call=run_log)


def run_log(arguments: argparse.Namespace, config: Config, terminal: Terminal) -> int:
    """Show the records that the options ask for, newest last."""
    shown = deque(_wanted(arguments), maxlen=arguments.n or None)
    for record in shown:
        if terminal.json_output:
            terminal.json(asdict(record))
        else:
            _show(record, terminal)
    if not shown:
        terminal.note("Nothing is logged.")
    return 0


def _wanted(arguments: argparse.Namespace) -> Iterator[Record]:
    from hyce import audit
    from hyce.config import state_folder
    from hyce.state import State

    for record in audit.records(State(state_folder())):
        if arguments.entry and record.id != arguments.entry:
            continue
        if arguments.status and record.status != arguments.status:
            continue
        if arguments.since and datetime.fromisoformat(record.time) < arguments.since:
            continue
        yield record


def _show(record: Record, terminal: Terminal) -> None:
    """A line for the run, and one each for the question and the reason."""
    when = datetime.fromisoformat(record.time).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    ended = f"{record.status} {record.exit_code}" if record.status == "failed" else record.status
    took = "reused" if record.reused else f"{record.seconds:.2f} s" if record.seconds else ""
    ran = f"{record.id:20}  {command_line(record.argv, record.also)}" if record.id else "(no command)"
    terminal.print(f"{when}  {ended:11}  {took:>8}  {_cut(ran)}")
    for name, text in (("asked", record.question), ("why", record.reason)):
        if text:
            # On one line: what somebody wrote must not pass for a line of the log.
            terminal.print(f"{'':19}  {name}: {_cut(' '.join(text.split()))}", style="dim")


def _cut(text: str) -> str:
    text = text.replace("\n", " ")
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"


def _count(text: str) -> int:
    if not text.isascii() or not text.isdecimal():
        raise UsageError(f"-n {text}: give a whole number, such as 50")
    return int(text)


def _since(text: str) -> datetime:
    """The time that the text names. Raises UsageError where it names none."""
    span = _SPAN.fullmatch(text)
    now = datetime.now().astimezone()
    try:
        if span:
            return now - timedelta(**{_UNITS[span[2]]: int(span[1])})
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f"--since {text}: give a time span such as 2h or 7d, or a date as YYYY-MM-DD"
        ) from error
