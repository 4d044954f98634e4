"""Commands in JSON as the published HyCE code has them, {"command line": "description"} -> drafts of entries.

What an entry can't express is left to a person, with the reason; nothing is guessed and nothing is run.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from hyce.drafts import Draft, catalogue_file, fault, free_id
from hyce.errors import CatalogueError
from hyce.privacy import neutral
from hyce.shell_line import read_line

MAX_BYTES = 1_000_000

_HEAD = (
    "Imported from {file}. Review each entry: what it runs, what it tells, whether its output may leave the",
    "site. Add `questions`, as people ask them: with them an entry is found far better than by its",
    "description alone. Write parameters for what differs from question to question, such as a job's number.",
    "Name the `isolation` that it bears: without any it runs outside of the sandbox.",
    "Then put this file into a folder of policy.catalogue, and run `hyce commands check`.",
)


@dataclass(frozen=True, slots=True)
class Left:
    """A line that a person has to look at."""

    line: str
    reason: str


@dataclass(frozen=True, slots=True)
class Imported:
    """What came of a file."""

    drafts: tuple[Draft, ...]
    left: tuple[Left, ...]


def read_commands(file: Path) -> list[tuple[str, object]]:
    """Each command line with its description, as they stand in the file; a line that stands twice, twice.

    Raises CatalogueError for what is no such file.
    """
    try:
        if file.stat().st_size > MAX_BYTES:
            raise CatalogueError(f"{file}: larger than {MAX_BYTES} bytes; split it")
        rows = json.loads(file.read_text(encoding="utf-8-sig"), object_pairs_hook=_Pairs)
    except OSError as error:
        raise CatalogueError(f"{file}: can't be read: {error.strerror}; name a file that can") from error
    except (ValueError, RecursionError) as error:
        raise CatalogueError(f"{file}: no JSON in UTF-8: {error}; mend that place") from error
    if not isinstance(rows, _Pairs):
        raise CatalogueError(f'{file}: is to be one object, {{"command line": "description", ...}}')
    return list(rows)


class _Pairs(list[tuple[str, object]]):
    """A JSON object with all that stands in it."""


def import_commands(rows: Sequence[tuple[str, object]], taken: Collection[str] = ()) -> Imported:
    """Drafts of entries, and what is left to a person. taken: ids that exist already."""
    drafts: list[Draft] = []
    left: list[Left] = []
    for line, description in rows:
        ids = {*taken, *(draft.id for draft in drafts)}
        made = _draft(line, description, ids)
        if isinstance(made, Draft) and any(made.argv == draft.argv for draft in drafts):
            made = "it runs the same as an earlier line; choose one description of the two"
        if isinstance(made, Draft):
            drafts.append(made)
        else:
            left.append(Left(line, made))
    return Imported(tuple(drafts), tuple(left))


def imported_file(drafts: Sequence[Draft], origin: Path) -> str:
    """The catalogue file to review."""
    name = json.dumps(str(origin))
    return catalogue_file(drafts, [line.format(file=name) for line in _HEAD])


def _draft(line: str, description: object, taken: Collection[str]) -> Draft | str:
    """The entry, or why there is none."""
    if not isinstance(description, str) or not description.strip():
        return "its description is no text; write what it tells, in a user's words"
    read = read_line(line)
    if isinstance(read, str):
        return read
    entry_id = free_id("imported", line.split(maxsplit=1)[0], taken)
    draft = Draft(entry_id, line, read.argv, " ".join(neutral(description).split()), notes=read.notes)
    return fault(draft) or draft
