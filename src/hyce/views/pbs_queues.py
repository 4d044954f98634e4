"""PBS's queues -> how full they are, and what one of them allows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from hyce.views.pbs_attributes import PbsObject, read

if TYPE_CHECKING:
    from hyce.views import Viewer

_COLUMNS = """
Max: most jobs at a time, 0 for no limit; Tot: jobs in all; Ena: takes new jobs; Str: starts jobs.
Que: waiting; Run: running; Hld: held; Wat: waiting for their start time; Trn: being moved; Ext: ending.
Type Rout: a queue that only passes jobs on to others.
"""
_RESOURCES = {
    "resources_max": "most that a job may ask for",
    "resources_min": "least that a job may ask for",
    "resources_default": "what a job gets that doesn't ask",
}
_SWITCHES = {
    ("enabled", "True"): "it takes new jobs",
    ("enabled", "False"): "it takes no new jobs",
    ("started", "True"): "it starts jobs",
    ("started", "False"): "it starts no jobs",
}
_LIMIT = re.compile(r"(max_[a-z_]+|queued_jobs_threshold(_res)?)(\.\w+)?")
_WHO = re.compile(r"\[([ugpo]):([^=\]]+)=([^\]]+)\]")
_KINDS = {"u": "user", "g": "group", "p": "project"}
_ACCESS = re.compile(
    r"acl_(user|group|host)s?(_enable)?|from_route_only|route_destinations|state_count|Priority"
)


def pbs_queues(outputs: Sequence[str | None], _viewer: Viewer) -> str:
    """`qstat -Q`, with its columns explained."""
    text = (outputs[0] or "").strip("\n")
    return f"{text}\n{_COLUMNS}" if text.strip() else "PBS has no queues.\n"


def pbs_queue_limits(outputs: Sequence[str | None], _viewer: Viewer) -> str:
    """`qstat -Q -f QUEUE`: its limits in words."""
    queues = read(outputs[0])
    if not queues:
        raise ValueError("it tells of no queue")
    return "\n".join("\n".join(_lines(queue)) + "\n" for queue in queues)


def _lines(queue: PbsObject) -> Iterator[str]:
    yield f"Queue {queue.name}"
    for (name, value), meaning in _SWITCHES.items():
        if queue.attributes.get(name) == value:
            yield f"  {name} = {value}: {meaning}"
    for prefix, meaning in _RESOURCES.items():
        yield from _group(meaning, queue.below(prefix))
    limits = {name: value for name, value in queue.attributes.items() if _LIMIT.fullmatch(name)}
    yield from _group("limits on jobs (run: running; queued: waiting and running)", limits)
    others = {name: value for name, value in queue.attributes.items() if _ACCESS.fullmatch(name)}
    yield from _group("other settings", others)
    if not limits and not queue.below("resources_max"):
        yield "  PBS sets no limits for this queue itself; those of the whole server may apply."


def _group(meaning: str, values: Mapping[str, str]) -> Iterator[str]:
    if values:
        yield f"  {meaning}:"
    for name, value in values.items():
        yield f"    {name} = {_in_words(value)}"


def _in_words(value: str) -> str:
    """[u:PBS_GENERIC=10] -> 10 for each user; anything else as it is."""
    limits = [f"{most} for {_whom(kind, name.strip())}" for kind, name, most in _WHO.findall(value)]
    return "; ".join(limits) or value


def _whom(kind: str, name: str) -> str:
    if kind == "o" or name == "PBS_ALL":
        return "all together"
    return f"each {_KINDS[kind]}" if name == "PBS_GENERIC" else f"{_KINDS[kind]} {name}"
