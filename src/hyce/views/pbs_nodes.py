"""`pbsnodes -a -S -j` -> how many nodes are in which state, then the list."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hyce.views import Viewer

_COLUMNS = "f/t: free of total. state free: it can take more jobs; job-busy: all its cores are taken."
_LEAST_FIELDS = 9


def pbs_nodes(outputs: Sequence[str | None], _viewer: Viewer) -> str:
    """Raises ValueError where there is no list of nodes."""
    lines = (outputs[0] or "").rstrip("\n").splitlines()
    start = next((place for place, line in enumerate(lines) if line.startswith("-----")), len(lines))
    rows = [line.split() for line in lines[start + 1 :] if len(line.split()) >= _LEAST_FIELDS]
    if not rows:
        raise ValueError("it holds no list of nodes as pbsnodes prints it")
    states = collections.Counter(row[1] for row in rows)
    counted = ", ".join(f"{number} {state}" for state, number in states.most_common())
    return "\n".join([f"Nodes: {len(rows)}, of them {counted}. {_COLUMNS}", "", *lines]) + "\n"
