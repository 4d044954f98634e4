"""scontrol's lines of NAME=VALUE -> the same without the fields that hold nothing, a third of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hyce.views import Viewer

_NOTHING = re.compile(r"(?<=\s)[\w:/]+=(?:\(null\)|N/A|n/[as]|None|\*|0:0:\*:\*)?(?: |$)")
_NODE = "CPUAlloc of CPUTot cores are in use; RealMemory, AllocMem (that of jobs) and FreeMem are in MB.\n"
_NOT_NOW = "State=INACTIVE: it holds no nodes now; it begins at StartTime, or was over at EndTime.\n"


def filled(text: str) -> str:
    """The lines with what is left of them; blank lines go on keeping records apart."""
    lines = [(line.strip(), _NOTHING.sub("", line).rstrip()) for line in text.strip().splitlines()]
    return "".join(f"{left}\n" for before, left in lines if left or not before)


def slurm_node(outputs: Sequence[str | None], _: Viewer) -> str:
    """`scontrol show node NODE`."""
    return f"{filled(outputs[0] or '')}\n{_NODE}"


def slurm_reservations(outputs: Sequence[str | None], _: Viewer) -> str:
    """`scontrol show reservation`, which says in a sentence that there is none."""
    text = filled(outputs[0] or "")
    return f"{text}\n{_NOT_NOW}" if "State=INACTIVE" in text else text
