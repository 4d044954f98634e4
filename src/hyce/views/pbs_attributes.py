"""`qstat -f`, `qstat -Q -f`, `pbs_rstat -F` -> objects with their attributes.

    Job Id: 1234.pbs
        Job_Name = relax
        Variable_List = PBS_O_HOME=/home/alice,PBS_O_LANG=C,
    \\tPBS_O_WORKDIR=/home/alice/run

A long value goes on in the next line, behind a tab, wherever the width ended.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_HEAD = re.compile(r"(?:Job Id|Queue|Resv ID|Name): *(\S+)")
_ATTRIBUTE = re.compile(r" *([A-Za-z_][\w.-]*) = ?(.*)")


@dataclass(frozen=True, slots=True)
class PbsObject:
    """A job, queue or reservation."""

    name: str
    attributes: Mapping[str, str]
    """By name, a resource's behind a dot, in PBS's order."""

    def below(self, prefix: str) -> dict[str, str]:
        """The attributes `prefix.resource`, by resource."""
        start = prefix + "."
        return {
            name[len(start) :]: value for name, value in self.attributes.items() if name.startswith(start)
        }


def read(text: str | None) -> tuple[PbsObject, ...]:
    """The objects in their order. Raises ValueError where there is text, but none of this shape."""
    objects: list[PbsObject] = []
    attributes: dict[str, str] = {}
    last = ""
    for line in (text or "").splitlines():
        if head := _HEAD.fullmatch(line.rstrip()):
            attributes = {}
            last = ""
            objects.append(PbsObject(head[1], attributes))
        elif line.startswith("\t") and last:
            attributes[last] += line[1:]
        elif objects and (found := _ATTRIBUTE.fullmatch(line)):
            last = found[1]
            attributes[last] = found[2]
    if not objects and text and text.strip():
        raise ValueError("it holds no object with attributes as PBS prints them")
    return tuple(objects)
