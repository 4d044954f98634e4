"""What programs print -> what a newcomer and a small model can read.

A view is a pure function of the programs' outputs. It is for output that needs more than the right options:
several programs whose answers belong together, or a format meant for machines. An entry names its view; what
ran is shown beside it, so that everybody can look at the raw output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


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

VIEWS: dict[str, View] = {}
