"""What Slurm says of nodes, partitions and the user's accounts -> the GPUs that the user may ask for, and how
many of them are free.

An account of another cluster in the same database counts as well: sacctmgr can't be asked for "this cluster".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hyce.views.table import Row, aligned, read

if TYPE_CHECKING:
    from hyce.views import Viewer

_SOUND = ("idle", "mixed", "allocated", "completing", "planned")
_UNSOUND_SIGN = "*$!%"  # does not answer, maintenance, about to be switched off


@dataclass(frozen=True, slots=True)
class _Gpus:
    """The GPUs of one type in a partition."""

    total: int = 0
    used: int = 0
    out: int = 0
    """On nodes that take no jobs now."""
    nodes: str = ""

    @property
    def free(self) -> int:
        return self.total - self.used - self.out


def slurm_gpus(outputs: Sequence[str | None], viewer: Viewer) -> str:
    """sinfo's nodes, `scontrol show partition`, and the user's associations by sacctmgr."""
    nodes, partitions, associations = outputs
    known = {row["PartitionName"]: row for row in map(_fields, (partitions or "").splitlines()) if row}
    accounts = None if associations is None else read(associations, "account", "partition", "qos")
    mine: list[tuple[str, ...]] = []
    others: list[tuple[str, ...]] = []
    for (partition, kind), gpus in _count(nodes or "").items():
        closed = _closed(known.get(partition, {}), accounts, viewer)
        if closed:
            others.append((partition, kind, str(gpus.total), gpus.nodes, closed))
        else:
            numbers = (gpus.total, gpus.used, gpus.out, gpus.free)
            limit = known.get(partition, {}).get("MaxTime", "")
            mine.append((partition, kind, *map(str, numbers), limit, gpus.nodes))
    return "\n".join(_text(mine, others, partitions is not None, associations is not None))


def _text(
    mine: list[tuple[str, ...]], others: list[tuple[str, ...]], asked: bool, known: bool
) -> Iterator[str]:
    if not mine and not others:
        yield "This cluster has no GPUs that Slurm knows of.\n"
        return
    if not asked or not known:
        what = "accounts" if asked else "partitions"
        yield f"Slurm could not be asked about your {what}: not all of these may be open to you.\n"
    if mine:
        yield "GPUs in the partitions that you may use:\n"
        names = ("PARTITION", "GPU", "TOTAL", "IN USE", "OUT OF SERVICE", "FREE NOW", "TIME LIMIT", "NODES")
        yield aligned(names, mine)
        first = max(mine, key=lambda line: int(line[5]))
        kind = "" if first[1] == "gpu" else f":{first[1]}"
        yield f"Ask for one with, for example: --partition={first[0]} --gres=gpu{kind}:1\n"
    else:
        yield "There is no GPU that you may use.\n"
    if others:
        yield "GPUs that are there, but not for you:\n"
        yield aligned(("PARTITION", "GPU", "TOTAL", "NODES", "WHY NOT"), others)


def _count(text: str) -> dict[tuple[str, str], _Gpus]:
    """GPUs by partition and type, in the order of sinfo."""
    counted: dict[tuple[str, str], _Gpus] = {}
    for row in read(text, "partition", "state", "count", "gres", "used", "nodes", "rest"):
        partition = row["partition"].strip().rstrip("*")
        count, used = int(row["count"]), dict(_kinds(row["used"]))
        for kind, each in _kinds(row["gres"]):
            before = counted.get((partition, kind), _Gpus())
            total, busy = each * count, used.get(kind, 0) * count
            counted[partition, kind] = _Gpus(
                before.total + total,
                before.used + busy,
                before.out + (0 if _in_service(row["state"]) else total - busy),
                ",".join(filter(None, (before.nodes, row["nodes"].strip()))),
            )
    return counted


def _kinds(gres: str) -> Iterator[tuple[str, int]]:
    """Types and numbers in gpu:a100:4(S:0-1),gpu:h100:2(IDX:0,1),shard:8; a GPU without a type is a "gpu"."""
    numbers: dict[str, int] = {}
    # The sockets and indices in parentheses hold commas, and "(null)" stands for no type.
    for item in re.sub(r"\([^)]*\)", "", gres.strip()).split(","):
        name, *rest = item.split(":")
        if name == "gpu":
            number = int(rest.pop()) if rest and rest[-1].isdigit() else 1
            kind = rest[0] if rest and rest[0] else "gpu"
            numbers[kind] = numbers.get(kind, 0) + number
    yield from numbers.items()


def _in_service(state: str) -> bool:
    state = state.strip()
    return state.rstrip("~#@^-+*$!%") in _SOUND and not any(sign in state for sign in _UNSOUND_SIGN)


def _closed(partition: Row, accounts: Sequence[Row] | None, viewer: Viewer) -> str:
    """Why the user can't submit to the partition; empty where nothing speaks against it."""
    if partition.get("State", "UP") != "UP":
        return f"the partition is {partition['State']}"
    if partition.get("RootOnly") == "YES":
        return "for administrators"
    if not _open(partition.get("AllowGroups", "ALL"), viewer.groups):
        return "for other groups"
    return "" if accounts is None else _closed_to(accounts, partition)


def _closed_to(accounts: Sequence[Row], partition: Row) -> str:
    """Why none of the user's accounts may be charged there."""
    allowed, denied = partition.get("AllowAccounts", "ALL"), partition.get("DenyAccounts", "").split(",")
    usable = [
        row
        for row in accounts
        if row["partition"] in ("", partition.get("PartitionName"))
        and _open(allowed, [row["account"]])
        and row["account"] not in denied
    ]
    if not usable and (accounts or allowed != "ALL"):
        return "for other accounts"
    denied_qos = partition.get("DenyQos", "").split(",")
    qos = [name for row in usable for name in row["qos"].split(",") if name not in denied_qos]
    if usable and not _open(partition.get("AllowQos", "ALL"), qos):
        return "for other QOS"
    return ""


def _open(allowed: str, own: Sequence[str]) -> bool:
    return allowed == "ALL" or any(name in own for name in allowed.split(","))


def _fields(line: str) -> Row:
    """PartitionName=gpu AllowGroups=ALL ... by name."""
    return dict(word.split("=", 1) for word in line.split() if "=" in word)
