"""What programs print -> what a newcomer and a small model can read.

A view is a pure function of the programs' outputs. It is for output that needs more than the right options:
several programs whose answers belong together, or a format meant for machines. An entry names its view; what
ran is shown beside it, so that everybody can look at the raw output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hyce.views import (
    lmod,
    pbs_gpus,
    pbs_job,
    pbs_jobs,
    pbs_nodes,
    pbs_queues,
    pbs_reservations,
    slurm_efficiency,
    slurm_fields,
    slurm_gpus,
    slurm_job,
    slurm_lists,
    slurm_queue,
    slurm_usage,
)


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who looks, and what the site has set."""

    user: str
    groups: tuple[str, ...] = ()
    """Names of the user's Unix groups."""
    gpu_nodes: tuple[str, ...] = ()
    """site.gpu_nodes: "group=pattern of node names"."""


View = Callable[[Sequence[str | None], Viewer], str]
"""(outputs, viewer) -> text. outputs: standard output of the entry's `command`, then of each of `also`; None
for one of `also` that failed. Raises ValueError where an output is not of the shape that it expects."""

VIEWS: dict[str, View] = {
    "modules_available": lmod.modules_available,
    "modules_loaded": lmod.modules_loaded,
    "modules_search": lmod.modules_search,
    "modules_show": lmod.modules_show,
    "pbs_gpus": pbs_gpus.pbs_gpus,
    "pbs_history": pbs_jobs.pbs_history,
    "pbs_job": pbs_job.pbs_job,
    "pbs_my_jobs": pbs_jobs.pbs_my_jobs,
    "pbs_nodes": pbs_nodes.pbs_nodes,
    "pbs_queue_limits": pbs_queues.pbs_queue_limits,
    "pbs_queues": pbs_queues.pbs_queues,
    "pbs_reservations": pbs_reservations.pbs_reservations,
    "pbs_start_time": pbs_jobs.pbs_start_time,
    "slurm_accounts": slurm_lists.slurm_accounts,
    "slurm_down_nodes": slurm_lists.slurm_down_nodes,
    "slurm_efficiency": slurm_efficiency.slurm_efficiency,
    "slurm_fairshare": slurm_lists.slurm_fairshare,
    "slurm_gpus": slurm_gpus.slurm_gpus,
    "slurm_history": slurm_lists.slurm_history,
    "slurm_idle_nodes": slurm_lists.slurm_idle_nodes,
    "slurm_job": slurm_job.slurm_job,
    "slurm_job_script": slurm_job.slurm_job_script,
    "slurm_my_jobs": slurm_lists.slurm_my_jobs,
    "slurm_node": slurm_fields.slurm_node,
    "slurm_partitions": slurm_lists.slurm_partitions,
    "slurm_priority": slurm_lists.slurm_priority,
    "slurm_qos": slurm_lists.slurm_qos,
    "slurm_queue_length": slurm_queue.slurm_queue_length,
    "slurm_reservations": slurm_fields.slurm_reservations,
    "slurm_start_time": slurm_lists.slurm_start_time,
    "slurm_usage": slurm_usage.slurm_usage,
}
