"""One job, or its script, as the controller knows it; when it has forgotten it, as the accounting does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hyce.views.slurm_fields import filled
from hyce.views.table import aligned, read

if TYPE_CHECKING:
    from hyce.views import Viewer


_ARRAYS = "One task of an array is written 1234_5, the whole array 1234.\n"


def slurm_job(outputs: Sequence[str | None], _: Viewer) -> str:
    """squeue (which only shows that the controller answers), `scontrol show job`, and `sacct -X`."""
    controller, accounting = outputs[1:]
    if controller:
        return filled(controller)
    if accounting is None:
        return (
            "Slurm's controller does not know this job: it has ended some time ago, or never existed. The "
            "accounting could not be asked. " + _ARRAYS
        )
    jobs = read(accounting)
    if not jobs:
        return (
            "Slurm knows no job of yours with this number, neither in the queue nor among those that ended. "
            + _ARRAYS
        )
    table = aligned(list(jobs[0]), [list(job.values()) for job in jobs])
    return f"The job is not in the queue any more. The accounting has of it:\n\n{table}"


def slurm_job_script(outputs: Sequence[str | None], _: Viewer) -> str:
    """squeue (which only shows that the controller answers), and `scontrol write batch_script`."""
    return outputs[1] or (
        "Slurm gave out no script: the job may be another user's, forgotten, or interactive. Its message "
        "tells which.\n"
    )
