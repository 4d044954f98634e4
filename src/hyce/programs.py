"""Which file a program's name stands for: fixed folders of the system, never the user's PATH."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

PROGRAM_DIRECTORIES = tuple(
    Path(folder)
    for folder in (
        "/usr/bin",
        "/bin",
        "/usr/sbin",
        "/sbin",
        "/usr/local/bin",
        "/opt/slurm/bin",
        "/opt/slurm/current/bin",
        "/opt/slurm/default/bin",
        "/usr/local/slurm/bin",
        "/opt/pbs/bin",
        "/opt/pbs/default/bin",
        "/usr/pbs/bin",
        "/usr/share/lmod/lmod/libexec",
        "/usr/lmod/lmod/libexec",
        "/opt/lmod/lmod/libexec",
        "/opt/apps/lmod/lmod/libexec",
        "/opt/cray/pe/lmod/lmod/libexec",
    )
)


def find(name: str, directories: Sequence[Path] = PROGRAM_DIRECTORIES, trusted_uid: int = 0) -> Path | str:
    """The program's file, or, as a text, why there is none that may be run."""
    reason = f"{name} is not installed in {_places(directories)}"
    for directory in directories:
        file = directory / name
        if not file.is_file():
            continue
        # The link itself is protected by its folder; what it leads to is checked by its own.
        untrusted = writable_by_others(directory, trusted_uid) or writable_by_others(file, trusted_uid)
        if untrusted:
            reason = f"{file} can't be trusted: {untrusted} can be changed by others than root"
        elif not os.access(file, os.X_OK):
            reason = f"{file} may not be executed by this user"
        else:
            return file
    return reason


def writable_by_others(path: Path, trusted_uid: int = 0) -> Path | None:
    """The first of the resolved path and its parent folders that somebody else could change."""
    resolved = path.resolve()
    for place in (resolved, *resolved.parents):
        status = place.stat()
        sticky = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX
        # In a sticky folder (such as /tmp above a test's own) others can't replace what is not theirs.
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not (sticky and place != resolved):
            return place
        if status.st_uid not in (0, trusted_uid):
            return place
    return None


def _places(directories: Sequence[Path]) -> str:
    shown = [str(directory) for directory in directories[:5]]
    return ", ".join(shown) + (" or the schedulers' own folders" if len(directories) > 5 else "")
