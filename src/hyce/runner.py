"""Command -> CommandOutput, kindly to the scheduler and with a record: all of hyce runs entries by this.

hyce.run runs an entry once. Here is decided whether it has to run at all: an output that is new enough is
reused, who wants what is running already waits for it, and a user can only start so many a minute.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import pwd
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Protocol

from hyce import audit
from hyce.config import Config, state_folder
from hyce.errors import PolicyError
from hyce.limit import Limit
from hyce.outputs import Outputs, Stored
from hyce.parameters import fill
from hyce.privacy import redact
from hyce.programs import PROGRAM_DIRECTORIES
from hyce.records import Command, CommandOutput
from hyce.run import child_environment, iso_now, not_run, run
from hyce.state import State

_PATIENCE = 5.0
"""Seconds beyond its time limit for which somebody else's run is waited for."""


class Runs(Protocol):
    """What runs entries: a Runner, or what replays the outputs of an earlier run."""

    def run(self, command: Command, params: Mapping[str, str], question: str = "") -> CommandOutput:
        """What the entry prints, or why it did not run."""
        ...

    def refused(self, question: str, reason: str) -> None:
        """Is told that nothing runs for this question."""
        ...


class Runner:
    """Runs entries for this user. Threads may share it.

    Raises StateError where the user's state folder is unsafe: nothing runs then. Where the folder can't be
    written, commands run without reuse, and `report` gets one line about it.
    patient: wait where the rate limit is reached, instead of refusing.
    directories, trusted_uid: as in hyce.run. These, the folder, syslog's socket and the clock are for tests.
    """

    def __init__(
        self,
        config: Config,
        *,
        report: Callable[[str], None] = lambda _: None,
        patient: bool = False,
        folder: Path | None = None,
        directories: Sequence[Path] = PROGRAM_DIRECTORIES,
        trusted_uid: int = 0,
        syslog: Path = audit.SYSLOG,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._config, self._report, self._syslog = config, report, syslog
        self._directories, self._trusted_uid = directories, trusted_uid
        self._state = State(folder or state_folder())
        self._state.check()
        self._now, self._patient = now, patient
        self._outputs = Outputs(self._state, now)
        self._limit = Limit(self._state, config.policy.rate_limit, now)
        self._told = threading.Lock()

    def run(
        self, command: Command, params: Mapping[str, str], question: str = "", *, fresh: bool = False
    ) -> CommandOutput:
        """What the entry printed, now or a moment ago, or why it did not run; recorded either way.

        question: what it answers, for the record. fresh: not a moment ago.
        """
        begun = self._now()
        try:
            output = self._shared(command, params, fresh)
        except KeyboardInterrupt:
            # The program may have run for a while.
            record = self._record(question, _unrun(command, params, "hyce was interrupted"))
            self._log(replace(record, status="interrupted", seconds=round(self._now() - begun, 3)))
            raise
        self._log(self._record(question, output))
        return output

    def refused(self, question: str, reason: str) -> None:
        """Record that nothing ran for this question."""
        nothing = Command(id="", description="", questions=(), argv=())
        self._log(self._record(question, _unrun(nothing, {}, reason)))

    def _shared(self, command: Command, params: Mapping[str, str], fresh: bool) -> CommandOutput:
        """The output of an identical run where there is one, or else of a run of its own."""
        try:
            key = self._key(command, params)
        except PolicyError:
            return self._run(command, params)  # which refuses, and says why
        asked = self._now()
        wait = command.timeout * (1 + len(command.also)) + _PATIENCE
        with self._outputs.slot(key, wait) as slot:
            stored = slot.read() if slot else None
            if stored and stored.serves(command.reuse, asked, self._now(), fresh=fresh):
                return replace(stored.output, reused=True)
            began = self._now()
            output = self._counted(command, params)
            if slot and output.status in ("ok", "failed", "timeout"):
                slot.write(Stored(began, self._now(), output), command.reuse)
        self._outputs.sweep()
        return output

    def _counted(self, command: Command, params: Mapping[str, str]) -> CommandOutput:
        """A run of its own, where the rate limit leaves room for one."""
        while (wait := self._limit.take()) and self._patient:
            time.sleep(wait)
        if wait:
            most = self._config.policy.rate_limit
            reason = f"{most} commands have started within a minute, as many as the site allows one user"
            reason += f" (policy.rate_limit); try again in {math.ceil(wait)} s"
            return _unrun(command, params, reason)
        output = self._run(command, params)
        if output.status in ("refused", "unavailable"):
            self._limit.give_back()
        return output

    def _run(self, command: Command, params: Mapping[str, str]) -> CommandOutput:
        return run(
            command,
            params,
            policy=self._config.policy,
            site=self._config.site,
            directories=self._directories,
            trusted_uid=self._trusted_uid,
        )

    def _key(self, command: Command, params: Mapping[str, str]) -> str:
        """One name for all runs that print the same: everything that the output depends on, digested.

        Raises PolicyError for parameters that don't fit.
        """
        policy, site = self._config.policy, self._config.site
        depends_on = [
            asdict(command),
            fill(command, params),
            child_environment(command, policy),
            [os.getuid(), os.geteuid(), os.getgid(), os.getegid(), sorted(os.getgroups())],
            asdict(policy),
            asdict(site),
            os.uname().nodename,
            [str(folder) for folder in self._directories],
        ]
        return hashlib.sha256(json.dumps(depends_on, sort_keys=True).encode()).hexdigest()

    def _record(self, question: str, output: CommandOutput) -> audit.Record:
        return audit.Record(
            time=iso_now(),
            user=_user(),
            uid=os.getuid(),
            host=os.uname().nodename,
            # Who types a password into a question must not find it on the disk.
            question=redact(question),
            id=output.id,
            argv=output.argv,
            also=output.also,
            status=output.status,
            exit_code=output.exit_code,
            seconds=round(output.seconds, 3),
            layers=output.layers,
            reused=output.reused,
            started=output.started,
            reason=redact(output.reason),
        )

    def _log(self, record: audit.Record) -> None:
        if self._config.policy.syslog:
            audit.to_syslog(record, self._syslog)
        try:
            audit.append(self._state, record)
        except OSError as error:
            if self._told.acquire(blocking=False):  # and never released: once is enough
                place = error.filename or self._state.folder
                why = error.strerror or error
                self._report(f"{place}: {why}; commands run, but are not logged and not reused")


def _unrun(command: Command, params: Mapping[str, str], reason: str) -> CommandOutput:
    """The output of an entry that was refused."""
    try:
        argv, *also = fill(command, params)
    except PolicyError:
        argv, also = command.argv, []
    return not_run(command, argv, "refused", reason, tuple(also))


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
