"""sreport's account utilisation -> what the user and their accounts have used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hyce.views.table import Row, aligned, read

if TYPE_CHECKING:
    from hyce.views import Viewer

_MOST_USERS = 10
_UNITS = {"cpu": "core-hours", "gres/gpu": "GPU-hours"}


def slurm_usage(outputs: Sequence[str | None], viewer: Viewer) -> str:
    """`sreport cluster AccountUtilizationByUser` of all users, and the user's accounts by sacctmgr."""
    rows = [
        row for row in read(outputs[0] or "", "account", "login", "tres", "used") if row["used"].isdigit()
    ]
    mine = {row["account"] for row in rows if row["login"] == viewer.user} | set((outputs[1] or "").split())
    lines: list[tuple[str, ...]] = []
    for account in sorted(mine):
        for tres, unit in _UNITS.items():
            used = [row for row in rows if row["account"] == account and row["tres"] == tres]
            if any(row["used"] != "0" for row in used) or tres == "cpu":
                lines += _lines(account, unit, used, viewer.user)
    if not lines:
        return "Slurm's accounting has no account of yours, so there is no usage to show.\n"
    table = aligned(("ACCOUNT", "WHO", "USED", "UNIT"), lines)
    return f"Used within the last 30 days (Slurm adds it up once an hour):\n\n{table}"


def _lines(account: str, unit: str, used: Sequence[Row], user: str) -> list[tuple[str, ...]]:
    """The account as a whole, the user, and whoever used most of it."""
    users = {row["login"]: int(row["used"]) for row in used}
    total = users.pop("", sum(users.values()))
    own = users.pop(user, 0)
    others = sorted(users.items(), key=lambda item: -item[1])[:_MOST_USERS]
    people = [(f"{user} (you)", own), *others]
    return [(account, who, str(hours), unit) for who, hours in [("whole account", total), *people]]
