"""What the codes of schedulers mean: why a job waits, its state, and how a program ended.

The texts stand in TOML files beside this one. Names of limits follow a scheme: their texts are put together.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hyce.codes.limits import limit

FOLDER = Path(__file__).parent

_KILLED_BY_PBS = 256
"""PBS adds it to the signal that ended the job; a shell adds 128."""
_SIGNAL = 128
_UNKNOWN_EXIT = "The script ended with the exit code of its last command, which says that it failed."


@dataclass(frozen=True, slots=True)
class Code:
    """An entry of the tables."""

    codes: tuple[str, ...]
    meaning: str
    """What it says, and what the user can do."""
    search: str
    """Words that find the site's own page about it; empty where no page would help."""
    weak: bool = False
    """It says little where there is another code."""
    quiet: bool = False
    """There is nothing to explain: a job that runs, a node that is free."""


@cache
def table(name: str) -> tuple[Code, ...]:
    """All entries of one file, such as slurm_states, in its order."""
    entries = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))["code"]
    return tuple(
        Code(
            tuple(entry["codes"]),
            f"{entry['means']} {entry['do']}",
            entry.get("search", ""),
            entry.get("weak", False),
            entry.get("quiet", False),
        )
        for entry in entries
    )


def slurm_reason(text: str) -> Code | None:
    """What squeue prints in parentheses, or scontrol behind Reason= (with _ for blanks).

    A phrase counts by its beginning: the names of nodes may follow.
    """
    said = text.replace("_", " ").strip()
    found = [
        (len(code), entry)
        for entry in table("slurm_reasons")
        for code in entry.codes
        if said == code or (said.startswith(code) and not said[len(code)].isalnum())
    ]
    if found:
        return max(found, key=lambda pair: pair[0])[1]
    texts = limit(said)
    return Code((said,), *texts) if texts else None


def slurm_state(word: str) -> Code | None:
    """A job's state, also cut off as sacct does (OUT_OF_ME+)."""
    return _named("slurm_states", word)


def slurm_node_state(word: str) -> Code | None:
    """A node's state, or the mark behind it."""
    return _named("slurm_nodes", word.upper())


def pbs_comment(text: str) -> Code | None:
    """What PBS's scheduler noted at the job."""
    said = " ".join(text.lower().split())
    for entry in table("pbs"):
        if any(code.lower() in said for code in entry.codes if not re.match(r"(state|exit) ", code)):
            return entry
    return None


def pbs_state(letter: str) -> Code | None:
    return _named("pbs", f"state {letter}")


def slurm_exit(text: str) -> Code | None:
    """An exit code as Slurm prints it, `code:signal`; None for 0:0."""
    code, _, signal = text.partition(":")
    return (_ended_by(int(signal)) if int(signal or 0) else None) or exit_code(int(code))


def pbs_exit(status: int) -> Code | None:
    """PBS's Exit_status: negative where PBS itself ended the job, 256 and the signal where it was killed."""
    if status < 0:
        return _named("pbs", f"exit {status}")
    if status > _KILLED_BY_PBS:
        return _ended_by(status - _KILLED_BY_PBS)
    return exit_code(status)


def exit_code(status: int) -> Code | None:
    """What a program's own exit code means; None for 0."""
    if status == 0:
        return None
    if status > _SIGNAL:
        known = _ended_by(status - _SIGNAL)
        if known:
            return known
    return _named("exits", str(status)) or Code(
        (str(status),),
        f"{_UNKNOWN_EXIT} What it means is up to that program; read the job's error file.",
        "job failed exit code error file",
        weak=True,
    )


def _ended_by(signal: int) -> Code | None:
    return _named("exits", f"signal {signal}")


def _named(name: str, word: str) -> Code | None:
    """The entry of this code, or of the only one that begins so where the word ends with a plus sign."""
    for entry in table(name):
        if word in entry.codes:
            return entry
    beginning = word.removesuffix("+")
    if beginning == word or not beginning:
        return None
    fits = [entry for entry in table(name) if any(code.startswith(beginning) for code in entry.codes)]
    return fits[0] if len(fits) == 1 else None
