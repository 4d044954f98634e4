"""A user's state: one folder that nobody else can read, replace or plant files in.

What is in it decides what a user is shown, so it is trusted only as far as it was checked: the folder and
each file are opened without following links, and looked at once they are open, when nobody can exchange them
any more. Raises StateError where the folder is unsafe, OSError where it can't be used (a full disk, a quota).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hyce.errors import StateError

_TICKS = (0.01, 0.02, 0.05, 0.1)
"""Seconds between tries to get a lock: more and more; the last one for good."""


@dataclass(frozen=True, slots=True)
class State:
    """The folder; every use opens and checks it anew."""

    folder: Path

    def check(self) -> None:
        """Make the folder where it is missing. Raises StateError where it is unsafe; where it can't be made,
        that is for the one to say who needs it."""
        with contextlib.suppress(OSError):
            os.close(self._enter(make=True))

    def open(self, name: str, flags: int) -> int:
        """A descriptor of the file, which is this user's own and nobody else's to read."""
        folder = self._enter(make=bool(flags & os.O_CREAT))
        try:
            # Without O_NONBLOCK, opening a named pipe would wait for somebody at its other end.
            safe = flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
            file = os.open(name, safe, 0o600, dir_fd=folder)
        finally:
            os.close(folder)
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
            os.close(file)
            raise PermissionError(
                errno.EPERM, "not a private file of this user; delete it", str(self.folder / name)
            )
        return file

    def read(self, name: str) -> bytes:
        """All that the file holds; nothing where there is none."""
        try:
            file = self.open(name, os.O_RDONLY)
        except FileNotFoundError:
            return b""
        with os.fdopen(file, "rb") as stream:
            return stream.read()

    @contextlib.contextmanager
    def locked(self, name: str, wait: float) -> Iterator[int]:
        """A descriptor of the file (made where it is missing), which no other thread or process has locked.

        The lock ends with the process, however that ends. Raises TimeoutError after `wait` seconds.
        """
        deadline = time.monotonic() + wait
        while True:
            file = self.open(name, os.O_RDWR | os.O_CREAT)
            try:
                _lock(file, deadline)
                # Who swept the file away while this one waited has left a lock that nobody else looks at.
                if self._is_current(name, file):
                    yield file
                    return
            finally:
                os.close(file)

    def rename(self, name: str, other: str) -> None:
        """Give the file another name, in place of what has that name."""
        folder = self._enter(make=False)
        try:
            os.rename(name, other, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            os.close(folder)

    def sweep(self, prefix: str, now: float) -> None:
        """Delete the files whose names begin so, whose time has come, and which nobody has locked."""
        for name in self._past(prefix, now):
            with contextlib.suppress(OSError), self.locked(name, 0) as file:
                if os.fstat(file).st_mtime < now:
                    self._remove(name)

    def _past(self, prefix: str, now: float) -> list[str]:
        folder = self._enter(make=False)
        try:
            with os.scandir(folder) as entries:
                named = [entry for entry in entries if entry.name.startswith(prefix)]
                return [entry.name for entry in named if entry.stat(follow_symlinks=False).st_mtime < now]
        finally:
            os.close(folder)

    def _remove(self, name: str) -> None:
        folder = self._enter(make=False)
        try:
            os.unlink(name, dir_fd=folder)
        finally:
            os.close(folder)

    def _is_current(self, name: str, file: int) -> bool:
        folder = self._enter(make=False)
        try:
            there, ours = os.stat(name, dir_fd=folder, follow_symlinks=False), os.fstat(file)
            return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)
        except FileNotFoundError:
            return False
        finally:
            os.close(folder)

    def _enter(self, *, make: bool) -> int:
        """A descriptor of the folder, once it is known to be this user's alone."""
        if make:
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                self.folder.mkdir(0o700)
        try:
            folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            # To say why: a link or somebody else's folder isn't just one that can't be used.
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                self._refuse_unsafe(self.folder.lstat())
            raise
        try:
            self._refuse_unsafe(os.fstat(folder))
        except StateError:
            os.close(folder)
            raise
        return folder

    def _refuse_unsafe(self, status: os.stat_result) -> None:
        if stat.S_ISLNK(status.st_mode):
            what, remedy = "it is a link", "put a folder of your own there"
        elif not stat.S_ISDIR(status.st_mode):
            what, remedy = "it is no folder", "put a folder of your own there"
        elif status.st_uid != os.getuid():
            what, remedy = "it belongs to another user", "set XDG_STATE_HOME to a folder of your own"
        elif status.st_mode & 0o077:
            what, remedy = "others may enter it", f"run `chmod 700 {self.folder}`"
        else:
            return
        raise StateError(f"{self.folder}: {what}, so it can't hold hyce's state; {remedy}")


def _lock(file: int, deadline: float) -> None:
    """Lock the open file. By trying again and again: what is stopped may hold a lock for ever."""
    tries = 0
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as error:
            if time.monotonic() >= deadline:
                raise TimeoutError(errno.ETIMEDOUT, "another process keeps it locked") from error
        time.sleep(_TICKS[min(tries, len(_TICKS) - 1)])
        tries += 1
