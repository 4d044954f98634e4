"""Slurm's lists, each with a sentence for the case that it is empty: that is an answer, too."""

from __future__ import annotations

from hyce.views.table import Row, listing

_PER_NODE = "CPUS, MEMORY (in MB) and GRES are those of each node; +: of the smallest, others have more."
_NOT_ENDED = ("PENDING", "RUNNING", "SUSPENDED", "REQUEUED", "RESIZING")


def _has_ended(job: Row) -> bool:
    return not job["State"].startswith(_NOT_ENDED)


def _is_idle(group: Row) -> bool:
    """sinfo counts drained nodes as idle where no job is left on them. "idle~" starts when it is needed."""
    return group["STATE"] in ("idle", "idle~") and group["NODES"] != "0"


def _has_nodes(group: Row) -> bool:
    return bool(group["NODELIST"].strip())


slurm_my_jobs = listing("No job of yours is in the queue: none waits, and none runs.")
slurm_start_time = listing(
    "No job of yours waits in the queue.",
    legend="START_TIME is Slurm's estimate and moves as other jobs come and end. N/A: there is none yet.",
)
slurm_history = listing(
    "Slurm's accounting knows no job of yours that ended within the last seven days.",
    keep=_has_ended,
    last=50,
    legend="ExitCode a:b: a is what the job ended with (0: well), b the signal that ended it (0: none).",
)
slurm_priority = listing(
    "No job of yours has a priority now: none waits. (Jobs that are held, or wait for another job or a later "
    "start, have none yet.)",
    legend="The job with the highest PRIORITY comes first; it is the sum of the other columns, less NICE.",
)
slurm_fairshare = listing(
    "Slurm has no fair-share record of you: you have no account here.",
    legend="LevelFS above 1: less used than the share; below 1: more, so that jobs rank lower. "
    "RawUsage is in seconds of one core (or as the site bills), the older the less it counts.",
)
slurm_accounts = listing(
    "Slurm's accounting has no account that you may submit jobs with.",
    legend="Partition empty (-): all partitions that admit the account. MaxJobs, MaxSubmit and GrpTRES are "
    "limits of your own; the account as a whole may have further ones.",
)
slurm_qos = listing(
    "Slurm's accounting knows no QOS.",
    legend="MaxWall and MaxTRES: of one job. PU: of one user at the same time. Grp: of all users together. "
    "-: no limit. Which QOS you may use, your accounts tell.",
)
slurm_partitions = listing(
    "Slurm has no partition that you may see.",
    legend="* marks the default partition. NODES(A/I/O/T): nodes in use, idle, others (down or drained), and "
    "all. " + _PER_NODE,
)
slurm_idle_nodes = listing("No node is idle right now.", keep=_is_idle, legend=_PER_NODE)
slurm_down_nodes = listing("No node is down, drained or failing.", keep=_has_nodes)
