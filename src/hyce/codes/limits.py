"""What Slurm's names of limits say: QOSMaxJobsPerUserLimit, AssocGrpCPUMinutesLimit, MaxGRESPerAccount.

QOS or Assoc    who sets the limit: the QOS, or the account
Grp, Max, Min   of all jobs together; of one user, account, job or node; at least
what            cores, memory, jobs, ...
Minutes         a budget of resource times time; RunMinutes: that of running jobs alone
"""

from __future__ import annotations

import re

_NAME = re.compile(
    r"(?P<by>QOS|Assoc)?(?P<kind>Grp|Max|Min)"
    r"(?P<what>CPU|Cpu|Memory|Mem|Node|GRES|License|BB|Billing|Energy|SubmitJobs?|Jobs?|WallDuration|Wall|Unknown)"
    r"(?P<time>RunMinutes|RunMins|Minutes|Mins)?(?:Per(?P<per>Job|User|Account|Node))?(?:Limit|NotSatisfied)?"
)

_WHAT = {
    "CPU": "cores",
    "Mem": "memory",
    "Node": "nodes",
    "GRES": "GPUs or other special resources (GRES)",
    "License": "software licences",
    "BB": "burst-buffer space",
    "Billing": "billing units",
    "Energy": "energy",
    "Submit": "jobs in the queue, waiting and running",
    "Job": "running jobs",
    "Wall": "run time",
    "Unknown": "of one resource",
}

_SEARCH = {"GRES": "GPU GRES", "CPU": "CPU cores", "Mem": "memory", "Wall": "walltime", "Job": "jobs"}


def limit(name: str) -> tuple[str, str] | None:
    """What the limit of this name says with what to do, and words that find a page on it; None for others."""
    found = _NAME.fullmatch(name)
    if not found or not (found["by"] or found["per"] == "Account"):
        return None
    key = next(key for key in _WHAT if found["what"].lower().startswith(key.lower()))
    what = _WHAT[key]
    by = "your account" if found["by"] == "Assoc" else "its QOS"
    per = (found["per"] or "").lower()
    search = f"limit {_SEARCH.get(key, what.split(',')[0])} {f'per {per} ' if per else ''}"
    search += "account allocation budget" if found["by"] == "Assoc" else "QOS limits"
    return " ".join(_sentences(found, key, what, by)), search


def _sentences(found: re.Match[str], key: str, what: str, by: str) -> tuple[str, str]:
    """What it says, and what the user can do."""
    if found["kind"] == "Min":
        return (
            f"The job asks for less than {by} demands: {what}. It won't start like this.",
            "Ask for more, or use another QOS.",
        )
    if found["kind"] == "Grp" and (found["time"] in ("Minutes", "Mins") or key == "Wall"):
        return (
            f"All jobs under {by} share a budget of compute time ({what}), and this job would go beyond it.",
            "Look at what has been used; a shorter time limit may fit, otherwise ask for more budget.",
        )
    if found["per"] in ("Job", "Node"):
        return (
            f"The job asks for more than {by} allows one job{_on_each(found)}: {_amount(found, what)}. "
            "It won't start like this.",
            "Ask for less, or use another QOS or partition.",
        )
    return (
        f"With this job, {_whose(found, by)} would have more at once than {by} allows: "
        f"{_amount(found, what)}.",
        "It starts by itself when others of them end"
        + ("." if key in ("Job", "Submit") else ", unless it asks for more than the limit all alone.")
        + (" A shorter time limit helps." if found["time"] else ""),
    )


def _on_each(found: re.Match[str]) -> str:
    return " on each node" if found["per"] == "Node" else ""


def _amount(found: re.Match[str], what: str) -> str:
    return f"{what}, times the time asked for" if found["time"] else what


def _whose(found: re.Match[str], by: str) -> str:
    """Whose jobs are counted."""
    if found["kind"] == "Grp":
        return f"all jobs under {by} together"
    return "the jobs of your account" if found["per"] == "Account" else "your jobs"
