"""`pbsnodes -a -F json` -> the GPU models, their nodes, how many are free, and which the user may use.

What a site calls its models is its own choice (gpu_model, gpu_type, ...), and who may use which nodes PBS
doesn't tell: that is site.gpu_nodes, "group=pattern of node names".
"""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hyce.views import Viewer

_COUNTS = ("ngpus", "ngpu", "gpus", "naccelerators")
_MODELS = (
    "gpu_model",
    "gpu_type",
    "gputype",
    "gpumodel",
    "gpu_name",
    "accelerator_model",
    "accelerator_type",
)
_OUT = {"down", "offline", "offline_by_mom", "unknown", "state-unknown", "stale", "unresolvable"}
_OUT |= {"initializing", "provisioning", "wait-provisioning", "maintenance"}
_WHOLE = {"job-exclusive", "resv-exclusive", "job-busy", "busy"}
"""No further job starts there, whatever is left of its GPUs."""
_NO_MODEL = "model not stated"
_MOST_NODES = 25


@dataclass(frozen=True, slots=True)
class _Node:
    name: str
    model: str
    total: int
    free: int
    out: int
    remark: str
    """Its state where that is not plainly free, and its queue."""


def pbs_gpus(outputs: Sequence[str | None], viewer: Viewer) -> str:
    """What the user may use with its nodes; the rest in one line for each model."""
    nodes = tuple(_nodes(outputs[0] or ""))
    if not nodes:
        return "PBS knows no node with GPUs.\n"
    mine = [node for node in nodes if _allowed(node.name, viewer)]
    others = [node for node in nodes if not _allowed(node.name, viewer)]
    if viewer.gpu_nodes:
        named = {setting.partition("=")[0].strip() for setting in viewer.gpu_nodes}
        groups = ", ".join(group for group in viewer.groups if group in named)
        lines = [f"GPUs that you may use, as a member of {groups or 'no group that the site has named'}:"]
    else:
        lines = ["GPUs of the cluster (the site has set no limits on who may use which):"]
    lines += _details(mine) if mine else ["  none"]
    if others:
        lines += ["", "GPUs that other groups may use, but not yours:"]
        lines += [f"  {_summary(model, found)}" for model, found in _by_model(others)]
    return "\n".join(lines) + "\n"


def _details(nodes: Sequence[_Node]) -> Iterator[str]:
    for model, found in _by_model(nodes):
        yield f"  {_summary(model, found)}"
        ranked = sorted(found, key=lambda node: (-node.free, node.out, node.name))
        for node in ranked[:_MOST_NODES]:
            yield f"    {node.name}: {node.free} free of {node.total}{node.remark}"
        if len(ranked) > _MOST_NODES:
            left = ranked[_MOST_NODES:]
            yield f"    and {len(left)} more nodes, with {sum(node.free for node in left)} free"


def _summary(model: str, nodes: Sequence[_Node]) -> str:
    total, free, out = (sum(getattr(node, what) for node in nodes) for what in ("total", "free", "out"))
    text = f"{model}: {total} GPUs on {len(nodes)} {'node' if len(nodes) == 1 else 'nodes'}: "
    text += f"{free} free, {total - free - out} in use"
    return text + (f", {out} out of service" if out else "")


def _by_model(nodes: Sequence[_Node]) -> list[tuple[str, list[_Node]]]:
    """The most free first, those of unknown model last."""
    models: dict[str, list[_Node]] = {}
    for node in nodes:
        models.setdefault(node.model, []).append(node)
    return sorted(
        models.items(), key=lambda item: (item[0] == _NO_MODEL, -sum(n.free for n in item[1]), item[0])
    )


def _allowed(name: str, viewer: Viewer) -> bool:
    """Whether one of the user's groups may use the node; all may where the site has set nothing."""
    pairs = [setting.partition("=")[::2] for setting in viewer.gpu_nodes]
    return not pairs or any(
        (group.strip() == "*" or group.strip() in viewer.groups)
        and fnmatch.fnmatchcase(name, pattern.strip())
        for group, pattern in pairs
    )


def _nodes(text: str) -> Iterator[_Node]:
    """The hosts with GPUs; the parts (vnodes) into which PBS may divide a host are put together again."""
    try:
        vnodes = json.loads(text, strict=False)["nodes"]
        hosts: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
        for name, vnode in vnodes.items():
            available = vnode.get("resources_available", {})
            if _count(available):
                host = str(available.get("host") or name.partition("[")[0])
                hosts.setdefault((host, _model(available)), []).append(vnode)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError("it is no list of nodes as pbsnodes -F json prints it") from error
    for (host, model), parts in hosts.items():
        yield _node(host, model, parts)


def _node(host: str, model: str, parts: Sequence[Mapping[str, Any]]) -> _Node:
    total = free = out = 0
    states: dict[str, None] = {}
    queues: dict[str, None] = {}
    for part in parts:
        available, state = part.get("resources_available", {}), str(part.get("state", "unknown")).split(",")
        count = _count(available)
        total += count
        if _OUT.intersection(state):
            out += count
        elif not _WHOLE.intersection(state):
            free += max(0, count - _count(part.get("resources_assigned", {})))
        states.update(dict.fromkeys(each for each in state if each != "free"))
        queues.update(dict.fromkeys(str(available.get("Qlist") or part.get("queue") or "").split(",")))
    named = [queue for queue in queues if queue]
    remark = f", {', '.join(states)}" if states else ""
    remark += f" (queue {', '.join(named)})" if named else ""
    return _Node(host, model, total, free, out, remark)


def _count(resources: Mapping[str, Any]) -> int:
    """How many GPUs. PBS writes numbers as numbers or as texts, and leaves out what is 0."""
    for name in _COUNTS:
        value = str(resources.get(name, ""))
        if value.isdecimal():
            return int(value)
    return 0


def _model(resources: Mapping[str, Any]) -> str:
    named = {name.casefold(): str(value) for name, value in resources.items()}
    further = [
        name for name in named if "gpu" in name and not named[name].isdecimal() and name not in _COUNTS
    ]
    for name in (*_MODELS, *further):
        if named.get(name, ""):
            return named[name]
    return _NO_MODEL
