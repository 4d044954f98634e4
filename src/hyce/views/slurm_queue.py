"""Jobs of all users, counted by partition and state -> a table of how long the queues are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hyce.views.table import aligned

if TYPE_CHECKING:
    from hyce.views import Viewer

_COUNT = re.compile(r"\s*(\d+) (\S+) ([A-Z_]+)")


def slurm_queue_length(outputs: Sequence[str | None], _: Viewer) -> str:
    """`squeue --format="%P %T" | sort | uniq -c`, and the partitions' names by sinfo."""
    counted, partitions = outputs
    states = {"PENDING": Counter[str](), "RUNNING": Counter[str](), "OTHER": Counter[str]()}
    for line in (counted or "").splitlines():
        found = _COUNT.fullmatch(line)
        if not found:
            raise ValueError(f"no count of jobs: {line[:80]!r}")
        states.get(found[3], states["OTHER"])[found[2]] += int(found[1])
    if not states["OTHER"]:
        del states["OTHER"]  # completing, suspended: seldom there
    if not any(states.values()):
        return "No job is in the queue: none waits, and none runs, in any partition.\n"
    names = sorted({*(partitions or "").split()}.union(*states.values()))
    lines = [(name, *(str(jobs[name]) for jobs in states.values())) for name in names]
    total = ("all", *(str(jobs.total()) for jobs in states.values()))
    return aligned(("PARTITION", *states), [*lines, total])
