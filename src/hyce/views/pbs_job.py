"""`qstat -x -f JOB` -> what matters about the job first; its environment (Variable_List) is left out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hyce.views.pbs_attributes import PbsObject, read
from hyce.views.pbs_states import HOLDS, job_state

if TYPE_CHECKING:
    from hyce.views import Viewer

_FIRST = ("Job_Name", "Job_Owner", "job_state", "comment", "Hold_Types", "depend", "Exit_status", "queue")
_TIMES = {
    "qtime": "entered the queue",
    "eligible_time": "time that it has waited and could have run",
    "Execution_Time": "not before",
    "estimated.start_time": "expected start",
    "stime": "started",
    "obittime": "ended",
}
_LAST = (
    "exec_host",
    "run_count",
    "array_indices_submitted",
    "array_indices_remaining",
    "array_state_count",
    "Account_Name",
    "project",
    "Output_Path",
    "Error_Path",
    "Submit_arguments",
)
_DEFAULTS = {("Hold_Types", "n"), ("project", "_pbs_project_default"), ("run_count", "1")}
"""Said of every job, and so of none."""
_AS_LINES = ("select", "place")
_SIZE = re.compile(r"(\d+)(kb|mb)")


def pbs_job(outputs: Sequence[str | None], _viewer: Viewer) -> str:
    """One paragraph for each job that PBS told of."""
    jobs = read(outputs[0])
    if not jobs:
        raise ValueError("it tells of no job")
    return "\n".join("\n".join(_lines(job)) + "\n" for job in jobs)


def _lines(job: PbsObject) -> Iterator[str]:
    attributes = job.attributes
    yield f"Job {job.name}"
    for name in _FIRST:
        yield from _line(job, name)
    for name, meaning in _TIMES.items():
        if name in attributes:
            yield f"  {name} ({meaning}) = {attributes[name]}"
    yield from _resources(job)
    for name in _LAST:
        yield from _line(job, name)
    folder = re.search(r"(?:^|,)PBS_O_WORKDIR=([^,]*)", attributes.get("Variable_List", ""))
    if folder:
        yield f"  submitted from the folder {folder[1]}"


def _line(job: PbsObject, name: str) -> Iterator[str]:
    value = job.attributes.get(name, "")
    if not value or (name, value) in _DEFAULTS:
        return
    if name == "job_state":
        value = job_state(value)
    elif name == "Hold_Types":
        value = f"{value}: held " + ", ".join(HOLDS.get(letter, letter) for letter in value)
    yield f"  {name} = {value}"


def _resources(job: PbsObject) -> Iterator[str]:
    """A table of what was asked for and what is used so far, in the order in which they were asked for."""
    asked, used = job.below("Resource_List"), job.below("resources_used")
    for name in _AS_LINES:
        if name in asked:
            yield f"  requested {name} = {asked[name]}"
    names = [name for name in dict.fromkeys((*asked, *used)) if name not in _AS_LINES]
    if names:
        yield f"  {'resource':<14} {'requested':>14} {'used':>14}"
    for name in names:
        yield f"  {name:<14} {_readable(asked.get(name, '-')):>14} {_readable(used.get(name, '-')):>14}"


def _readable(value: str) -> str:
    """A size in the largest unit in which it is at least one; anything else as it is."""
    found = _SIZE.fullmatch(value)
    if not found:
        return value
    amount, units = float(found[1]), ["kb", "mb", "gb", "tb"]
    unit = units.index(found[2])
    while amount >= 1024 and unit < len(units) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.1f}".removesuffix(".0") + units[unit]
