"""Command -> the programs that start each of its stages, and the names of all layers that hold with them.

prlimit, setpriv (util-linux) and bwrap (bubblewrap) stand for code between fork and exec, which is unsafe in
a program with threads. Where one is missing, the other layers hold without it.

The limit on processes: Linux counts them per user, over all that the user runs on the machine. So it is
what the user has running now, and a margin; what else the user starts meanwhile shares the margin. For root
the kernel doesn't keep it.
"""

from __future__ import annotations

import contextlib
import math
import os
import resource
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hyce import programs, sandbox
from hyce.config import Policy
from hyce.programs import PROGRAM_DIRECTORIES
from hyce.records import Command

_ALWAYS = (
    "allow-list",
    "argv",
    "root-owned programs",
    "scrubbed environment",
    "time limit",
    "output limit",
    "process group",
)
_OPEN_FILES = 256
PROCESSES = 128
"""How many processes and threads a run may add to those of its user."""


@dataclass(frozen=True, slots=True)
class Start:
    """How each stage of an entry is started."""

    prefix: tuple[str, ...]
    """What stands before the program's own arguments."""
    layers: tuple[str, ...]


def around(
    command: Command,
    policy: Policy,
    folders: Sequence[Path] = (),
    *,
    directories: Sequence[Path] = PROGRAM_DIRECTORIES,
    trusted_uid: int = 0,
) -> Start:
    """Everything that is put around the entry's programs.

    folders: where its programs are. directories, trusted_uid: where prlimit, setpriv and bwrap come from.
    Raises PolicyError where the site requires a sandbox and there is none.
    """
    prefix: list[str] = []
    layers = [*_ALWAYS]
    prlimit = programs.find("prlimit", directories, trusted_uid)
    if isinstance(prlimit, Path):
        prefix += [str(prlimit), *_limits(command), "--"]
        layers.append("resource limits")
        if os.geteuid() != 0:
            layers.append("process limit")
    own = sandbox.around(command, policy.sandbox, folders, directories=directories, trusted_uid=trusted_uid)
    setpriv = programs.find("setpriv", directories, trusted_uid)
    if own:
        prefix += own.prefix
        layers += ["no_new_privs", f"sandbox ({', '.join(own.isolation)})"]
    elif isinstance(setpriv, Path) and "no_new_privs" in command.isolation:
        prefix += [str(setpriv), "--no-new-privs", "--"]
        layers.append("no_new_privs")
    return Start(tuple(prefix), tuple(layers))


def _limits(command: Command) -> list[str]:
    """prlimit's options."""
    files = _at_most(resource.RLIMIT_NOFILE, _OPEN_FILES)
    seconds = _at_most(resource.RLIMIT_CPU, math.ceil(command.timeout) + 1)
    processes = _at_most(resource.RLIMIT_NPROC, _running() + PROCESSES)
    return ["--core=0", f"--nofile={files}", f"--cpu={seconds}", f"--nproc={processes}"]


def _at_most(limit: int, wanted: int) -> int:
    """What this process may lower the limit to; raising it above its own hard limit would fail."""
    hard = resource.getrlimit(limit)[1]
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


def _running() -> int:
    """How many threads this user has on the machine, as far as this process can see them."""
    threads = 0
    with contextlib.suppress(OSError), os.scandir("/proc") as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                if entry.name.isdecimal() and entry.stat().st_uid == os.getuid():
                    # A folder's links are two of its own and one for each folder in it, here a thread.
                    threads += Path(entry.path, "task").stat().st_nlink - 2
    return threads
