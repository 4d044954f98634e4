"""PBS's lists of jobs -> the same below what its letters mean; that there are no jobs is said."""

from __future__ import annotations

import collections
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hyce.views.pbs_states import JOB_STATES

if TYPE_CHECKING:
    from hyce.views import Viewer

_JOB = re.compile(r"\d+(\[\d*\])?\.\S+")
_STATE_COLUMN = 9
"""Counted from 0: id, user, queue, name, session, nodes, tasks, memory, time, state."""
_MOST_ENDED = 100


def pbs_my_jobs(outputs: Sequence[str | None], viewer: Viewer) -> str:
    """`qstat -n -s -w -u USER`."""
    none = f"PBS has no job of {viewer.user}: none is queued, held or running."
    return _listed(outputs[0], none, "NDS: nodes; TSK: cores; Req'd Time: the walltime that was asked for.")


def pbs_start_time(outputs: Sequence[str | None], viewer: Viewer) -> str:
    """`qstat -T -w -u USER`."""
    none = f"PBS has no job of {viewer.user}: none waits for its start."
    return _listed(
        outputs[0], none, "Est Start Time: when PBS expects the start; --: no estimate, or not waiting."
    )


def pbs_history(outputs: Sequence[str | None], viewer: Viewer) -> str:
    """`qstat -x -w -u USER`: the newest ones, which PBS lists last."""
    none = f"PBS knows no job of {viewer.user}, present or ended; it forgets ended jobs after some days."
    explained = "Elap Time: how long it ran. Whether it ended well: ask for the job by its number."
    return _listed(_newest(outputs[0]), none, explained)


def _newest(text: str | None) -> str:
    lines = (text or "").splitlines()
    jobs = [line for line in lines if _is_job(line.split())]
    older = set(jobs[:-_MOST_ENDED])
    return "\n".join(line for line in lines if line not in older)


def _listed(text: str | None, none: str, columns: str) -> str:
    lines = (text or "").strip("\n").splitlines()
    letters = collections.Counter(fields[_STATE_COLUMN] for line in lines if _is_job(fields := line.split()))
    if not letters:
        if any(line.strip() for line in lines):
            raise ValueError("it holds no list of jobs as qstat prints it")
        return none + "\n"
    head = [f"state {_state(letter)}: {count}" for letter, count in letters.most_common()]
    return "\n".join([f"Jobs: {letters.total()}", *head, columns, "", *lines]) + "\n"


def _state(letter: str) -> str:
    return f"{letter} ({JOB_STATES[letter]})" if letter in JOB_STATES else letter


def _is_job(fields: Sequence[str]) -> bool:
    return len(fields) > _STATE_COLUMN and _JOB.fullmatch(fields[0]) is not None
