"""Command -> how bubblewrap starts it: with all the isolation that leaves its output as it is, and no more.

What an entry's `isolation` names, and what it gets for it:
    mount         all file systems but /dev read-only, the home directory too
    user          a user namespace: no other ids than its own; other users show as nobody (not for root)
    pid           only its own processes in /proc and own System V IPC; the kernel ends them all with it
    tmp           /tmp, /var/tmp and /run/user are empty, and gone afterwards
    devices       /dev holds no disk and no accelerator, and /dev/shm is its own
    network       no network, not even this machine's own services by an address
    no_new_privs  setuid programs have no effect

bubblewrap always sets no_new_privs and makes a mount namespace, and for anybody but root a user namespace.
So an entry that doesn't bear these three runs without it: `ps`, `id`, `df`, clients with a setuid helper.

Whether bubblewrap works here is tried, not guessed: containers, kernel settings and AppArmor forbid different
parts of it. A part that is forbidden (`network` or `pid`) is given up before the whole is.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hyce import process, programs
from hyce.errors import PolicyError
from hyce.programs import PROGRAM_DIRECTORIES
from hyce.records import Command

_PLACES = ("/tmp", "/var/tmp", "/run/user")  # noqa: S108 - to be hidden, not used
_PATIENCE = 2.0
"""Seconds for a try. bubblewrap looks at every mount, and waits for a file server that is down."""
_WITHOUT: tuple[tuple[str, ...], ...] = ((), ("network",), ("pid",), ("network", "pid"))
"""What is given up, in this order, where a host forbids it."""
_HANGS = "hangs; is a file server down?"


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What is put before a program's own arguments, and the isolation that it gets by that."""

    prefix: tuple[str, ...]
    isolation: tuple[str, ...]


def around(
    command: Command,
    mode: Literal["auto", "require", "off"],
    folders: Sequence[Path] = (),
    *,
    directories: Sequence[Path] = PROGRAM_DIRECTORIES,
    trusted_uid: int = 0,
) -> Sandbox | None:
    """The entry's sandbox; None where it bears none, the site wants none, or, with `auto`, none works here.

    folders: where its programs are, for those in a place that `tmp` hides.
    directories, trusted_uid: where bwrap comes from; for tests.
    Raises PolicyError where the site requires bubblewrap and it doesn't work.
    """
    if mode == "off":
        return None
    if mode == "require":
        _require(directories, trusted_uid)
    if not {*_always(), "no_new_privs"} <= {*command.isolation}:
        return None
    bwrap = programs.find("bwrap", directories, trusted_uid)
    kinds = tuple(kind for kind in command.isolation if kind not in ("user", "no_new_privs"))
    reason = str(bwrap)
    for without in _WITHOUT if mode == "auto" else _WITHOUT[:1]:
        kept = tuple(dict.fromkeys((*_always(), *(kind for kind in kinds if kind not in without))))
        prefix = (str(bwrap), *_options(kept, folders))
        fault = reason if isinstance(bwrap, str) else _fault(prefix)
        if fault is None:
            return Sandbox(prefix, kept)
        reason = fault
        if reason.endswith(_HANGS):
            break
    if mode == "require":
        raise PolicyError(
            f"{command.id} can't be isolated as the site requires it (policy.sandbox): {reason}; "
            'tell the administrators: mend it, or set policy.sandbox = "auto"'
        )
    return None


def hindrance(directories: Sequence[Path] = PROGRAM_DIRECTORIES, trusted_uid: int = 0) -> str | None:
    """Why bubblewrap doesn't work on this machine at all; None where it does."""
    bwrap = programs.find("bwrap", directories, trusted_uid)
    return bwrap if isinstance(bwrap, str) else _fault((str(bwrap), *_options(_always(), ())))


def missing_parts(directories: Sequence[Path] = PROGRAM_DIRECTORIES, trusted_uid: int = 0) -> tuple[str, ...]:
    """The kinds of isolation that this host forbids, though bubblewrap works."""
    bwrap = programs.find("bwrap", directories, trusted_uid)
    return tuple(kind for kind in _WITHOUT[-1] if _fault((str(bwrap), *_options((*_always(), kind), ()))))


def remedy(kernel: Path = Path("/proc/sys")) -> str:
    """What an administrator can do where bubblewrap is there and doesn't work."""
    if _setting(kernel / "kernel/unprivileged_userns_clone") == "0":
        return "Allow user namespaces: `sysctl kernel.unprivileged_userns_clone=1`."
    if _setting(kernel / "user/max_user_namespaces") == "0":
        return "Allow user namespaces: `sysctl user.max_user_namespaces=10000`."
    if _setting(kernel / "kernel/apparmor_restrict_unprivileged_userns") == "1":
        return "AppArmor restricts user namespaces: give /usr/bin/bwrap a profile that has `userns,`."
    return "Allow user namespaces and mounts in them; in a container, that is up to who started it."


def _always() -> tuple[str, ...]:
    """The isolation that bubblewrap can't do without."""
    return ("mount",) if os.geteuid() == 0 else ("mount", "user")


def _require(directories: Sequence[Path], trusted_uid: int) -> None:
    fault = hindrance(directories, trusted_uid)
    if fault:
        raise PolicyError(
            f"the site requires a sandbox for commands (policy.sandbox), and it doesn't work here: {fault}; "
            "`hyce doctor` says what to do"
        )


def _options(kinds: Sequence[str], folders: Sequence[Path]) -> tuple[str, ...]:
    """bwrap's options. No --new-session: process.py has made one, and ends its whole process group."""
    options = ["--die-with-parent", "--ro-bind", "/", "/"]
    options += ["--dev", "/dev"] if "devices" in kinds else ["--dev-bind", "/dev", "/dev"]
    if "user" in kinds:
        options.append("--unshare-user")
    if "pid" in kinds:
        options += ["--unshare-pid", "--unshare-ipc", "--proc", "/proc"]
    if "network" in kinds:
        options.append("--unshare-net")
    if "tmp" in kinds:
        hidden = {Path(place).resolve() for place in _PLACES if Path(place).is_dir()}
        for place in sorted(hidden):
            options += ["--tmpfs", str(place)]
        for folder in folders:
            if hidden & {*folder.resolve().parents}:
                options += ["--ro-bind-try", str(folder), str(folder)]
    return (*options, "--")


@functools.cache
def _fault(prefix: tuple[str, ...]) -> str | None:
    """Why nothing can be started in this way on this machine; None where it works. Tried once a process."""
    nothing = programs.find("true")
    if isinstance(nothing, str):
        return nothing
    try:
        tried = process.execute([[*prefix, str(nothing)]], environment={}, timeout=_PATIENCE, max_bytes=1000)
    except OSError as error:
        return f"{prefix[0]} can't be started: {error.strerror}"
    if tried.timed_out:
        return f"{prefix[0]} {_HANGS}"
    if tried.exit_code:
        said = tried.stderr.decode("utf-8", "replace").split("\n")[0]
        return f"{prefix[0]} fails: {said or f'exit code {tried.exit_code}'}"
    return None


def _setting(file: Path) -> str:
    """A kernel setting; empty where this kernel doesn't have it."""
    try:
        return file.read_text(encoding="ascii").strip()
    except OSError:
        return ""
