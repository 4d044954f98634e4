"""Files that decide what hyce does: read only where nobody else can change them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from hyce.errors import ConfigError


def refuse_if_others_can_write(path: Path) -> None:
    """Raise ConfigError when anyone but its owner, who must be root or this user, can change the file.

    A file that somebody else can change could name another endpoint or another command. Its folder
    counts too, and that of a link to it: who can write there can replace the file.
    """
    for place in (path, path.absolute().parent, path.resolve().parent):
        _refuse_if_open(place, place.stat())


def read_private(path: Path) -> str:
    """The text of a file that nobody else can change. The open file is looked at: it can't change between.

    Raises ConfigError, OSError and UnicodeDecodeError.
    """
    refuse_if_others_can_write(path)
    # Without O_NONBLOCK, opening a named pipe would wait for a writer.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), encoding="utf-8") as file:
        status = os.fstat(file.fileno())
        _refuse_if_open(path, status)
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError(f"{path}: no ordinary file; write the settings to one")
        return file.read()


def _refuse_if_open(place: Path, status: os.stat_result) -> None:
    sticky = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not sticky:
        raise ConfigError(f"{place}: others can write it; run `chmod go-w {place}`")
    if status.st_uid not in (0, os.getuid()) and not sticky:
        raise ConfigError(f"{place}: it belongs to another user; use a file of your own or of root's")
