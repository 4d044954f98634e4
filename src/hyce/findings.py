"""What outputs say together that none of them says alone: this job's time limit reaches into the maintenance.

Only what is certain: where an output has another shape than expected, nothing is found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from hyce.columns import rows
from hyce.records import CommandOutput, Explanation

_DURATION = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)")
_WAITING = re.compile(r"^[ \t]*JobState=PENDING\s", re.MULTILINE)
_NOT_AVAILABLE = re.compile(r"^[ \t]*JobState=PENDING\s+Reason=ReqNodeNotAvail", re.MULTILINE)
_LIMIT = re.compile(r"^[ \t]*RunTime=\S+\s+TimeLimit=([\d:-]+)(?=\s)", re.MULTILINE)
_PARTITION = re.compile(r"^[ \t]*Partition=([\w.-]+)(?=\s)", re.MULTILINE)
_RESERVATION = re.compile(
    r"^ReservationName=.*?\bStartTime=(\S+)\s+EndTime=(\S+)(.*?)(?=^ReservationName=|\Z)",
    re.MULTILINE | re.DOTALL,
)
_MAINTENANCE = re.compile(r"\bFlags=\S*MAINT")
_PARTITIONS_HEADING = re.compile(r"\s*PARTITION\b(?=.*\bTIMELIMIT\b)")


@dataclass(frozen=True, slots=True)
class _Job:
    """One waiting job as scontrol tells of it."""

    output: str
    text: str
    asked_at: datetime
    limit: str
    """As it stands in the output, such as 1-00:00:00."""


def findings(outputs: Sequence[CommandOutput]) -> tuple[Explanation, ...]:
    """What keeps a single waiting job from starting, where outputs side by side prove it."""
    read = [output for output in outputs if output.status == "ok"]
    for output in read:
        limit = _LIMIT.findall(output.stdout)
        if _ran(output, "scontrol", "show", "job") and len(limit) == 1:
            job = _Job(output.id, output.stdout, datetime.fromisoformat(output.started), limit[0])
            if _WAITING.search(job.text):
                return (*_maintenance(job, read), *_partition_limit(job, read))
    return ()


def _ran(output: CommandOutput, *words: str) -> bool:
    """Whether a program that begins with these words ran for this output."""
    return any(pipeline[0][: len(words)] == words for pipeline in (output.argv, *output.also))


def _maintenance(job: _Job, outputs: Sequence[CommandOutput]) -> Iterator[Explanation]:
    """The job would still run when the next maintenance begins."""
    # Only nodes of another part of the cluster may be concerned: the scheduler's own reason must agree.
    if not _NOT_AVAILABLE.search(job.text):
        return
    now = job.asked_at.replace(tzinfo=None)
    begins = [
        datetime.fromisoformat(start)
        for output in outputs
        if _ran(output, "scontrol", "show")
        for start, _, rest in _RESERVATION.findall(output.stdout)
        if _MAINTENANCE.search(rest) and _is_time(start)
    ]
    begin = min((each for each in begins if each > now), default=None)
    if begin and now + _duration(job.limit) > begin:
        left = _written(begin - now)
        yield Explanation(
            f"TimeLimit={job.limit}",
            f"A maintenance begins at {begin:%Y-%m-%d %H:%M}, and started now, this job could run beyond "
            f"that. With a time limit below {left} (days-hours:minutes) it could still start before; "
            "otherwise it waits until the maintenance has ended.",
            job.output,
        )


def _partition_limit(job: _Job, outputs: Sequence[CommandOutput]) -> Iterator[Explanation]:
    """The job asks for more time than its partition allows."""
    [partition] = _PARTITION.findall(job.text) or [""]
    for output in outputs:
        for row in rows(output.stdout, _PARTITIONS_HEADING) if _ran(output, "sinfo") else ():
            name, allowed = row.cell("partition") or "", row.cell("timelimit") or ""
            if name.rstrip("*") != partition or not _DURATION.fullmatch(allowed):
                continue
            if _duration(job.limit) > _duration(allowed):
                yield Explanation(
                    f"TimeLimit={job.limit}",
                    f"The job asks for more time than its partition allows, which is {allowed}: it won't "
                    "start like this. Lower its time limit, or use a partition for longer jobs.",
                    job.output,
                )
                return


def _duration(text: str) -> timedelta:
    """Slurm's days-hours:minutes:seconds; nothing for what is none, such as UNLIMITED."""
    found = _DURATION.fullmatch(text)
    if not found:
        return timedelta()
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


def _written(duration: timedelta) -> str:
    hours, minutes = divmod(duration.seconds // 60, 60)
    return f"{duration.days}-{hours:02}:{minutes:02}"


def _is_time(text: str) -> bool:
    return re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", text) is not None
