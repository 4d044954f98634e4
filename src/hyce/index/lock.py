"""The exclusive lock of the process that writes an index."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
from collections.abc import Callable
from pathlib import Path

from hyce.errors import StoreError

_UNSUPPORTED = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)


class Lock:
    """Held from its making to close(). Raises StoreError when another process holds it.

    The kernel frees it when the process ends, however it ends. Where the file system has no locks (Lustre
    mounted without `flock`), a file that may be made only once takes its place; if its maker was killed
    on this host, it is taken over, and elsewhere the message names the file to remove.
    """

    def __init__(self, index: Path, flock: Callable[[int, int], None] = fcntl.flock) -> None:
        self._marker: Path | None = None
        self._descriptor = os.open(index / "lock", os.O_RDWR | os.O_CREAT, 0o666)
        try:
            try:
                flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise _busy(index, _holder(index / "lock"), "") from None
            except OSError as error:
                if error.errno not in _UNSUPPORTED:
                    raise
                self._marker = _make_marker(index)
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, _this_process(), 0)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._marker is not None:
            self._marker.unlink(missing_ok=True)
            self._marker = None
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _this_process() -> bytes:
    return f"{os.getpid()} {socket.gethostname()}\n".encode("ascii", "replace")


def _holder(file: Path) -> tuple[str, str]:
    pid, _, host = file.read_text(encoding="ascii", errors="replace").strip().partition(" ")
    return pid or "?", host or "?"


def _busy(index: Path, holder: tuple[str, str], or_else: str) -> StoreError:
    pid, host = holder
    return StoreError(
        f"{index}: being written by process {pid} on {host}; wait for it, or end it: what it did is kept"
        + or_else
    )


def _make_marker(index: Path) -> Path:
    marker = index / "lock.made"
    for _ in range(2):
        try:
            descriptor = os.open(marker, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            pid, host = _holder(marker)
            if host != socket.gethostname() or not pid.isdecimal() or _runs(int(pid)):
                raise _busy(index, (pid, host), f" (if it is gone, remove {marker})") from None
            marker.unlink(missing_ok=True)
            continue
        try:
            os.write(descriptor, _this_process())
        finally:
            os.close(descriptor)
        return marker
    raise _busy(index, _holder(marker), f" (if it is gone, remove {marker})")


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
