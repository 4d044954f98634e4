"""The state folder is the user's alone, or nothing is kept in it; locks end with their process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hyce_home import Home, fails, wait_for

from hyce.errors import StateError
from hyce.state import State

NOBODY = 65534
as_root = pytest.mark.skipif(os.getuid() != 0, reason="needs another user's files")


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State(tmp_path / "state" / "hyce")


def write(state: State, name: str, data: bytes) -> None:
    file = state.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.write(file, data)
    os.close(file)


def test_folder_and_files_are_private_whatever_the_umask(state: State) -> None:
    before = os.umask(0)
    try:
        write(state, "file", b"x")
    finally:
        os.umask(before)
    assert state.folder.stat().st_mode & 0o777 == 0o700
    assert (state.folder / "file").stat().st_mode & 0o777 == 0o600
    assert state.read("file") == b"x"
    assert state.read("other") == b""


def test_reading_makes_nothing(state: State) -> None:
    assert state.read("file") == b""
    assert not state.folder.exists()


def test_a_link_is_refused(state: State, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    state.folder.parent.mkdir()
    state.folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StateError, match=r"hyce: it is a link.*; put"):
        state.check()
    with pytest.raises(StateError):
        state.read("file")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_link_to_nowhere_is_refused(state: State, tmp_path: Path) -> None:
    state.folder.parent.mkdir()
    state.folder.symlink_to(tmp_path / "nowhere")
    with pytest.raises(StateError, match="link"):
        state.check()
    assert not (tmp_path / "nowhere").exists()


def test_a_file_in_its_place_is_refused(state: State) -> None:
    state.folder.parent.mkdir()
    state.folder.write_text("x")
    with pytest.raises(StateError, match="no folder"):
        state.check()


@pytest.mark.parametrize("mode", [0o701, 0o710, 0o750, 0o755, 0o720, 0o702])
def test_a_folder_open_to_others_is_refused(state: State, mode: int) -> None:
    state.check()
    state.folder.chmod(mode)
    with pytest.raises(StateError, match=r"others may enter it.*chmod 700"):
        state.check()


@as_root
def test_somebody_elses_folder_is_refused(state: State) -> None:
    state.check()
    os.chown(state.folder, NOBODY, NOBODY)
    with pytest.raises(StateError, match="belongs to another user"):
        state.check()


def test_links_pipes_and_open_files_are_not_used(state: State, tmp_path: Path) -> None:
    state.check()
    (tmp_path / "target").write_text("x")
    (state.folder / "link").symlink_to(tmp_path / "target")
    os.mkfifo(state.folder / "pipe", 0o600)
    (state.folder / "open").write_text("x")
    (state.folder / "open").chmod(0o644)
    for name in ("link", "pipe", "open"):
        with pytest.raises(OSError, match=r"link|private"):
            state.read(name)


@as_root
def test_somebody_elses_file_is_not_used(state: State) -> None:
    write(state, "file", b"x")
    os.chown(state.folder / "file", NOBODY, NOBODY)
    with pytest.raises(PermissionError, match="private"):
        state.read("file")


# -- locks -----------------------------------------------------------------------------------------------


def test_threads_exclude_each_other(state: State) -> None:
    inside: list[int] = []
    most: list[int] = []

    def work() -> None:
        with state.locked("lock", 30):
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.005)
            inside.pop()

    threads = [threading.Thread(target=work) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 10


def test_a_lock_is_waited_for_only_so_long(state: State) -> None:
    with state.locked("lock", 0):
        begun = time.monotonic()
        with pytest.raises(TimeoutError), state.locked("lock", 0.2):
            pass
        assert time.monotonic() - begun >= 0.2


def test_a_lock_ends_with_a_killed_process(state: State) -> None:
    script = (
        "import sys, time; from pathlib import Path; from hyce.state import State\n"
        "with State(Path(sys.argv[1])).locked('lock', 0):\n    print('locked', flush=True); time.sleep(600)"
    )
    holder = subprocess.Popen([sys.executable, "-c", script, str(state.folder)], stdout=subprocess.PIPE)
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        with pytest.raises(TimeoutError), state.locked("lock", 0):
            pass
        holder.send_signal(signal.SIGKILL)
    with state.locked("lock", 0):
        pass


def test_who_waited_for_a_swept_file_locks_the_new_one(state: State) -> None:
    got: list[int] = []

    def wait() -> None:
        with state.locked("lock", 30) as file:
            got.append(os.fstat(file).st_ino)

    waiter = threading.Thread(target=wait)
    with state.locked("lock", 0) as file:
        waiter.start()
        wait_for(lambda: open_files(state.folder / "lock") == 2)
        (state.folder / "lock").unlink()
        old = os.fstat(file).st_ino
        # Made now, so that it can't get the old one's number.
        write(state, "lock", b"")
    waiter.join()
    assert got == [(state.folder / "lock").stat().st_ino]
    assert got != [old]


def open_files(path: Path) -> int:
    """How often this process has the file open."""
    found = 0
    for link in Path("/proc/self/fd").iterdir():
        try:
            found += link.readlink() == path
        except FileNotFoundError:
            continue
    return found


def test_sweeping_spares_what_is_locked_new_or_something_else(state: State) -> None:
    for name in ("output-old", "output-held", "output-new", "other"):
        write(state, name, b"x")
        os.utime(state.folder / name, (100, 100 if name != "output-new" else 300))
    with state.locked("output-held", 0):
        state.sweep("output-", now=200)
    assert sorted(path.name for path in state.folder.iterdir()) == ["other", "output-held", "output-new"]


# -- the commands ----------------------------------------------------------------------------------------


def test_an_unsafe_folder_stops_run_and_ask_with_one_line(home: Home) -> None:
    folder = home.folder / "state" / "hyce"
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    for call in (("run", "system.date"), ("run", "system.date", "--json"), ("ask", "what time is it")):
        fails(home.hyce(*call), str(folder), "others may enter it", f"chmod 700 {folder}")
    folder.chmod(0o700)
    assert home.hyce("run", "system.date").code == 0
    folder.chmod(0o755)
    fails(home.hyce("commands", "log"), "others may enter it")
