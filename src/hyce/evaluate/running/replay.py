"""Commands that print what they printed before, so that a live cluster doesn't move the reference.

What the question file holds comes first. Whatever else a variant runs is run once, kept with the run, and
given to all variants and passes from then on.
"""

from __future__ import annotations

import dataclasses
import json
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping

from hyce.errors import PolicyError
from hyce.evaluate.journal import Journal
from hyce.outputs import read_output
from hyce.parameters import fill
from hyce.records import Command, CommandOutput
from hyce.runner import Runs

_KEPT = ("ok", "failed", "timeout")


class Replay:
    """Runs entries by replaying them. Threads may share it."""

    def __init__(self, stored: Iterable[CommandOutput], journal: Journal, runner: Runs) -> None:
        """stored: outputs of the question file. journal: keeps what runs now. runner: runs it."""
        self._journal, self._runner = journal, runner
        self._guard = threading.Lock()
        self._under_way: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        kept = journal.read(lambda row: read_output(row["output"]), "output")
        self._known = {_key(output.id, output.argv): output for output in (*kept, *stored)}

    def run(self, command: Command, params: Mapping[str, str], question: str = "") -> CommandOutput:
        """What the entry printed when it first ran for this evaluation; it is run where it never did."""
        try:
            key = _key(command.id, fill(command, params)[0])
        except PolicyError:
            return self._runner.run(command, params, question)  # which refuses, and says why
        with self._guard:
            lock = self._under_way[key]
        with lock:
            output = self._known.get(key)
            if output is None:
                output = self._runner.run(command, params, question)
                if output.status in _KEPT:
                    self._journal.append({"output": dataclasses.asdict(output)})
                    self._known[key] = output
        return output

    def refused(self, question: str, reason: str) -> None:
        """Nothing: the questions of an evaluation are nobody's."""


def _key(name: str, argv: object) -> str:
    return json.dumps([name, argv])
