"""`pbs_rstat -F` -> each reservation's time, state, nodes and users."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hyce.views.pbs_attributes import PbsObject, read

if TYPE_CHECKING:
    from hyce.views import Viewer

_KINDS = {"M": "maintenance", "S": "standing reservation, it comes again and again", "R": "reservation"}
_FIELDS = (
    "Reserve_Name",
    "Reserve_Owner",
    "reserve_state",
    "reserve_start",
    "reserve_end",
    "reserve_rrule",
    "queue",
    "Resource_List.select",
    "Resource_List.nodect",
    "Resource_List.ncpus",
    "Resource_List.ngpus",
    "resv_nodes",
    "Authorized_Users",
    "Authorized_Groups",
    "comment",
)
_STATES = {
    "RESV_CONFIRMED": "confirmed",
    "RESV_UNCONFIRMED": "not confirmed yet",
    "RESV_RUNNING": "running now",
    "RESV_DEGRADED": "some of its nodes are out of service",
    "RESV_FINISHED": "over",
    "RESV_IN_CONFLICT": "in conflict with another one",
}


def pbs_reservations(outputs: Sequence[str | None], _viewer: Viewer) -> str:
    """One paragraph for each reservation, or that there is none."""
    reservations = read(outputs[0])
    if not reservations:
        return "PBS has no reservation and no maintenance window, neither now nor planned.\n"
    return "\n".join("\n".join(_lines(each)) + "\n" for each in reservations)


def _lines(reservation: PbsObject) -> Iterator[str]:
    kind = _KINDS.get(reservation.name[:1], "reservation")
    yield f"{reservation.name} ({kind})"
    for name in _FIELDS:
        value = reservation.attributes.get(name)
        if value:
            meaning = f": {_STATES[value]}" if value in _STATES else ""
            yield f"  {name} = {value}{meaning}"
