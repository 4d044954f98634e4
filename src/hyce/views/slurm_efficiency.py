"""sacct's record of a job and its steps -> what it used of what it had asked for.

Memory is the largest peak of a step: the peak of its largest task, times its tasks. Slurm measures at
intervals, so a job that takes much memory at once is ended before the measurement sees it.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hyce.views.table import Row, read

if TYPE_CHECKING:
    from hyce.views import Viewer

_MOST = 8
_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4, "P": 1024**5}
_SIZE = re.compile(r"([\d.]+)([KMGTP]?)([cn]?)")
_TIME = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)")
_STARTING = ("PENDING", "REQUEUED", "CONFIGURING")


def slurm_efficiency(outputs: Sequence[str | None], _: Viewer) -> str:
    """`sacct --parsable2`, the job's name in the last column."""
    rows = read(outputs[0] or "")
    jobs = [row for row in rows if "." not in row["JobID"]]
    if not jobs:
        return "Slurm's accounting knows no job of yours with this number.\n"
    texts = [
        _job(job, [r for r in rows if r["JobID"].startswith(job["JobID"] + ".")]) for job in jobs[:_MOST]
    ]
    left = f"\n{len(jobs) - _MOST} more tasks are not shown: ask for one, as 1234_5.\n"
    return "\n".join(texts) + (left if len(jobs) > _MOST else "")


def _job(job: Row, steps: Sequence[Row]) -> str:
    lines = [f"Job: {job['JobID']} ({job['JobName']})", f"State: {_state(job)}"]
    if job["State"].startswith(_STARTING):
        return "\n".join([*lines, "It has used nothing yet: it has not started.", ""])
    lines.append(f"Run time: {job['Elapsed']}{_share(_seconds(job['Elapsed']), _seconds(job['Timelimit']))}")
    lines[-1] += f" of its time limit {job['Timelimit']}" if job["Timelimit"] else ""
    lines.append(f"Nodes: {job['NNodes']}, cores: {job['AllocCPUS']}{_gpus(job['AllocTRES'])}")
    if job["State"].startswith("RUNNING"):
        lines.append("CPU time and memory: Slurm's accounting has them when the job has ended.")
    else:
        lines += [_processor(job), _memory(job, steps)]
    return "\n".join([*lines, *_failed_steps(steps), ""])


def _state(job: Row) -> str:
    """With the exit code in seff's words, and what a signal is called."""
    code, _, number = job["ExitCode"].partition(":")
    state = job["State"]
    if "OUT_OF_MEMORY" in state:
        return f"{state} (ended because it used more memory than it had asked for)"
    if state.startswith("TIMEOUT"):
        return f"{state} (ended because its time limit was over)"
    if number.isdigit() and number != "0":
        return f"{state} (ended by signal {number}{_signal(int(number))})"
    told = state.startswith(("COMPLETED", "FAILED")) or code != "0"
    return f"{state} (exit code {code})" if told else state


def _signal(number: int) -> str:
    try:
        return f", {signal.Signals(number).name}"
    except ValueError:
        return ""


def _processor(job: Row) -> str:
    available = _seconds(job["Elapsed"]) * int(job["AllocCPUS"] or 0)
    used = _seconds(job["TotalCPU"])
    if not available:
        return f"CPU time: {_duration(used)}; the job ended within a second"
    share = _share(used, available)
    return (
        f"CPU time: {_duration(used)}{share} of the {_duration(available)} that it had (cores times run time)"
    )


def _memory(job: Row, steps: Sequence[Row]) -> str:
    found = _SIZE.fullmatch(job["ReqMem"])
    per = {"c": int(job["AllocCPUS"] or 1), "n": int(job["NNodes"] or 1)}.get(found[3], 1) if found else 1
    asked = _bytes(job["ReqMem"]) * per
    peak = max((_bytes(step["MaxRSS"]) * int(step["NTasks"] or 1) for step in steps), default=0.0)
    if any("OUT_OF_MEMORY" in row["State"] for row in (job, *steps)):
        return f"Memory: more than the {_size(asked)} asked for (last measured: {_size(peak)})"
    if not peak:
        return f"Memory: {_size(asked)} asked for; what it used was not measured"
    return f"Memory: peak {_size(peak)}{_share(peak, asked)} of the {_size(asked)} asked for"


def _failed_steps(steps: Sequence[Row]) -> list[str]:
    """The steps that didn't end well, where there is more to tell than the job's own end."""
    real = [step for step in steps if not step["JobID"].endswith((".batch", ".extern"))]
    bad = [step for step in real if not step["State"].startswith(("COMPLETED", "RUNNING"))]
    return [f"Step {step['JobID']} ({step['JobName']}): {_state(step)}" for step in bad[:_MOST]]


def _gpus(tres: str) -> str:
    found = re.search(r"gres/gpu=(\d+)", tres)
    kinds = ", ".join(f"{kind} {number}" for kind, number in re.findall(r"gres/gpu:([^=,]+)=(\d+)", tres))
    return (f", GPUs: {found[1]}" + (f" ({kinds})" if kinds else "")) if found else ""


def _seconds(text: str) -> float:
    """1-02:03:04, 02:03:04 or 03:04.567; 0 for UNLIMITED and the like."""
    found = _TIME.fullmatch(text)
    if not found:
        return 0.0
    days, hours, minutes = (int(part or 0) for part in found.groups()[:3])
    return days * 86400 + hours * 3600 + minutes * 60 + float(found[4])


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


def _bytes(text: str) -> float:
    found = _SIZE.fullmatch(text)
    return float(found[1]) * _UNITS[found[2]] if found else 0.0


def _size(number: float) -> str:
    for unit in ("bytes", "KB", "MB", "GB", "TB"):
        if number < 1024 or unit == "TB":
            break
        number /= 1024
    return f"{number:.0f} {unit}" if number >= 100 else f"{number:.3g} {unit}"


def _share(part: float, whole: float) -> str:
    return f", {100 * part / whole:.0f} %" if whole else ""
