"""Entries for a person to review: command lines with what they tell -> a catalogue file in YAML."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyce.catalogue.loader import parse_entry
from hyce.errors import CatalogueError, UsageError
from hyce.records import Pipeline

_SLURM = re.compile("s(acct|acctmgr|control|diag|info|prio|queue|report|share|stat)")
_PBS = re.compile("q(stat|select)|pbs(nodes|_[a-z]+)")


@dataclass(frozen=True, slots=True)
class Draft:
    """An entry that nobody has read yet."""

    id: str
    line: str
    """The command line that it was made from."""
    argv: Pipeline
    description: str
    questions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What was changed on the way."""


def free_id(family: str, program: str, taken: Collection[str]) -> str:
    """An id such as `imported.squeue_1` that is not among those taken."""
    name = re.sub(r"[^a-z0-9]+", "_", program.lower()).strip("_")
    name = name if name[:1].isalpha() else f"x{name}"
    return next(each for n in itertools.count(1) if (each := f"{family}.{name}_{n}") not in taken)


def fault(draft: Draft) -> str | None:
    """Why the catalogue would refuse the entry; None where it takes it."""
    nowhere = Path("draft")
    try:
        parse_entry(nowhere, draft.id, _entry(draft))
    except CatalogueError as error:
        return str(error).removeprefix(f"{nowhere}: {draft.id}: ")
    return None


def catalogue_file(drafts: Sequence[Draft], head: Sequence[str]) -> str:
    """A catalogue file with these entries. head: lines of the comment at its top."""
    comment = "".join(f"# {line}\n" if line else "#\n" for line in head)
    return comment + "".join(f"\n{_written(draft)}" for draft in drafts)


def refuse_existing(file: Path) -> None:
    """Raise UsageError where the file is there, or has a name by which no catalogue reads it."""
    if file.suffix not in (".yaml", ".yml"):
        raise UsageError(f"--out {file}: catalogue files are read by their ending; name it {file}.yaml")
    if file.exists():
        raise UsageError(f"--out {file}: is there already; name another file, or remove it first")


def write_new(file: Path, text: str) -> None:
    """Write a catalogue file that wasn't there, so that nobody else can change it. Raises as above."""
    refuse_existing(file)
    with file.open("x", encoding="utf-8") as stream:
        file.chmod(0o644)
        stream.write(text)


def _written(draft: Draft) -> str:
    import yaml

    # As JSON: no line break of any kind ends the comment.
    comments = [f"from: {json.dumps(draft.line)}", *(f"note: {note}" for note in draft.notes)]
    entry = yaml.safe_dump(
        {draft.id: _entry(draft)}, sort_keys=False, allow_unicode=True, width=100, default_flow_style=None
    )
    return "".join(f"# {comment}\n" for comment in comments) + str(entry)


def _entry(draft: Draft) -> dict[str, Any]:
    entry: dict[str, Any] = {"description": draft.description}
    if draft.questions:
        entry["questions"] = list(draft.questions)
    stages = [list(stage) for stage in draft.argv]
    entry["command"] = stages[0] if len(stages) == 1 else stages
    program = draft.argv[0][0]
    if _SLURM.fullmatch(program) or _PBS.fullmatch(program):
        entry["scheduler"] = "slurm" if _SLURM.fullmatch(program) else "pbs"
    entry["may_leave_site"] = False
    return entry
