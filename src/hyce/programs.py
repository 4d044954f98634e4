"""Which file a program's name stands for: fixed folders of the system, never the user's PATH."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
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

_MOST_LINKS = 40


def find(name: str, directories: Sequence[Path] = PROGRAM_DIRECTORIES, trusted_uid: int = 0) -> Path | str:
    """The program's file, or, as a text, why there is none that may be run."""
    reason = f"{name} is not installed in {_places(directories)}"
    for directory in directories:
        # As text, since hundreds of names are looked for at each start; unreadable folders count as empty.
        if not os.path.isfile(f"{directory}/{name}"):  # noqa: PTH113
            continue
        file = directory / name
        untrusted = writable_by_others(file, trusted_uid)
        if untrusted:
            reason = f"{file} can't be trusted: {untrusted} can be changed by others than root"
        elif not os.access(file, os.X_OK):
            reason = f"{file} may not be executed by this user"
        else:
            return file
    return reason


def writable_by_others(path: Path, trusted_uid: int = 0) -> Path | None:
    """The first place on the way to the file that somebody else could change: a folder, a link, the file."""
    places = list(_way(path))
    for place in places:
        status = place.lstat()
        # A link has no mode of its own; who may replace it is up to its folder.
        mode = 0 if stat.S_ISLNK(status.st_mode) else status.st_mode
        # In a sticky folder (such as /tmp above a test's own) others can't replace what is not theirs.
        sticky = stat.S_ISDIR(mode) and mode & stat.S_ISVTX and place != places[-1]
        if status.st_uid not in (0, trusted_uid) or (mode & (stat.S_IWGRP | stat.S_IWOTH) and not sticky):
            return place
    return None


def distrust(folder: str, trusted_uid: int = 0) -> str | None:
    """Why no program may come from this folder; None where they may."""
    if not folder.startswith("/"):
        return f"{folder} is no absolute path"
    if not Path(folder).is_dir():
        return f"{folder} is no folder"
    # A folder is the last on its way here, and so not excused by being sticky.
    place = writable_by_others(Path(folder), trusted_uid)
    return f"{place} can be changed by others than root" if place else None


def _way(path: Path) -> Iterator[Path]:
    """Every folder and link that is passed on the way to the path, from the root on, and what it leads to."""
    place = Path("/")
    yield place
    ahead = list(reversed(path.absolute().parts[1:]))
    links = 0
    while ahead:
        part = ahead.pop()
        place = place.parent if part == ".." else place / part
        yield place
        if place.is_symlink():
            links += 1
            if links > _MOST_LINKS:
                raise OSError(errno.ELOOP, "too many links", str(path))
            target = place.readlink()
            place = Path("/") if target.is_absolute() else place.parent
            ahead += [part for part in reversed(target.parts) if part != "/"]


def _places(directories: Sequence[Path]) -> str:
    shown = [str(directory) for directory in directories[:5]]
    return ", ".join(shown) + (" or the schedulers' own folders" if len(directories) > 5 else "")
