"""A file that only grows: what was written stays, however the program ends."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hyce.errors import StoreError
from hyce.evaluate.journal import Journal, locked, read_rows

ROWS = [{"key": "a", "reply": "four"}, {"key": "b", "reply": "Grüße\n\u2028 \x85 end"}]


def written(path: Path) -> list[dict[str, str]]:
    with Journal(path) as journal:
        for row in ROWS:
            journal.append(row)
        assert journal.rows == ROWS
    return ROWS


def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    rows = written(tmp_path / "calls.jsonl")
    with Journal(tmp_path / "calls.jsonl") as journal:
        assert journal.rows == rows
        journal.append({"key": "c"})
    assert read_rows(tmp_path / "calls.jsonl")[0] == [*rows, {"key": "c"}]


def test_half_a_line_at_the_end_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    rows = written(path)
    whole = path.read_bytes()
    for half in (b"{", b'{"key": "c", "reply": "x"}', b"\xff\xfe"):
        path.write_bytes(whole + half)
        with Journal(path) as journal:
            assert journal.rows == rows
            journal.append({"key": "d"})
        assert path.read_bytes() == whole + b'{"key": "d"}\n'


@pytest.mark.parametrize("damage", [b"{broken", b"[1, 2]", b"\xff\xff", b"", b"[" * 100_000])
def test_a_damaged_line_is_refused_with_its_number(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "calls.jsonl"
    first = json.dumps(ROWS[0]).encode()
    path.write_bytes(first + b"\n" + damage + b"\n" + first + b"\n")
    before = path.read_bytes()
    open_files = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(StoreError, match=r"calls\.jsonl: line 2 is damaged .*; remove that line"):
        Journal(path)
    assert path.read_bytes() == before
    assert len(list(Path("/proc/self/fd").iterdir())) == open_files


def test_what_cannot_be_opened_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "calls.jsonl").mkdir()
    with pytest.raises(StoreError, match=r"calls\.jsonl: can't be written \(Is a directory\)"):
        Journal(tmp_path / "calls.jsonl")


_FILL = """
import resource, sys
from pathlib import Path
from hyce.errors import StoreError
from hyce.evaluate.journal import Journal
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
with Journal(Path(sys.argv[1])) as journal:
    try:
        for number in range(1000):
            journal.append({"key": number, "reply": "x" * 300})
    except StoreError as error:
        print(len(journal.rows))
        print(error)
"""


def test_a_full_disk_leaves_whole_lines_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    filled = subprocess.run(
        [sys.executable, "-c", _FILL, str(path)], capture_output=True, text=True, check=True, timeout=60
    )
    kept, said = filled.stdout.splitlines()
    assert said.startswith(f"{path}: can't be written (File too large); free some space")
    rows, end = read_rows(path)
    assert [row["key"] for row in rows] == list(range(int(kept)))
    assert len(rows) > 20
    assert end == path.stat().st_size  # no half line, though there was room for one
    with Journal(path) as journal:
        journal.append({"key": "after"})
    assert len(read_rows(path)[0]) == len(rows) + 1


def test_threads_write_whole_lines(tmp_path: Path) -> None:
    with Journal(tmp_path / "calls.jsonl") as journal, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: journal.append({"n": number, "text": "y" * 5000}), range(200)))
    rows, _ = read_rows(tmp_path / "calls.jsonl")
    assert sorted(row["n"] for row in rows) == list(range(200))


_HOLD = """
import sys
from pathlib import Path
from hyce.evaluate.journal import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_one_process_writes_and_one_that_was_killed_holds_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(StoreError, match=f"run: being written by process {holder.pid} "), locked(folder):
            pytest.fail("two processes hold it")
        holder.send_signal(signal.SIGKILL)
        holder.wait(60)
        with locked(folder) as held:
            assert held == folder
    with locked(folder):
        pass  # who leaves, frees it


def test_only_the_user_reads_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with locked(tmp_path / "all" / "run") as folder, Journal(folder / "calls.jsonl"):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "calls.jsonl").stat().st_mode) == 0o600


def test_a_folder_that_cannot_be_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    for folder in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(StoreError, match="; choose another folder"), locked(folder):
            pytest.fail("it can't be locked")
