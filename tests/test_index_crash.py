"""What an index survives: kill -9 at any moment, a full disk, damage, and folders that can't be written."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import index_run
import pytest

from hyce.errors import StoreError
from hyce.index.embedded import open_index

SCRIPT = Path(index_run.__file__)


def run(index: Path, last: int, kill_at: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), str(index), str(last), str(kill_at)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def read(index: Path) -> dict[tuple[str, str], tuple[object, ...]]:
    with open_index(index) as reader:
        return index_run.content(reader)


def moments(before_publish: int, total: int, seed: int) -> list[int]:
    rng = random.Random(seed)
    early = [rng.randrange(1, before_publish) for _ in range(8)]
    return sorted(early + [rng.randrange(before_publish, total + 1) for _ in range(8)])


@pytest.mark.parametrize("old", [0, 30])
def test_killed_at_any_moment_the_old_index_answers_and_the_next_run_resumes(
    tmp_path: Path, old: int
) -> None:
    new, original = 40, tmp_path / "original"
    expected = {}
    for last in (old, new):
        index_run.build(tmp_path / f"expected{last}", last)
        expected[last] = read(tmp_path / f"expected{last}")
    if old:
        index_run.build(original, old)
    else:
        original.mkdir()
    whole = tmp_path / "whole"
    shutil.copytree(original, whole)
    finished = run(whole, new)
    embedded_at_once, before_publish, total = map(int, finished.stdout.split())
    for moment in moments(before_publish, total, seed=old):
        index = tmp_path / f"killed{moment}"
        shutil.copytree(original, index)
        assert run(index, new, kill_at=moment).returncode == -9
        if old or (index / "current").exists():
            assert read(index) in (expected[old], expected[new]), moment
            with open_index(index) as reader:
                assert reader.lexical("topic3", 5)
        resumed = run(index, new)
        assert resumed.returncode == 0, resumed.stderr
        assert read(index) == expected[new], moment
        embedded = int(resumed.stdout.split()[0])
        # Three passages a page, a commit every ten: four pages are lost at most.
        if moment > before_publish:
            assert embedded <= 4
        elif moment > before_publish * 0.8:
            assert embedded < embedded_at_once
        shutil.rmtree(index)


def test_a_run_killed_again_and_again_gets_to_the_same_end(tmp_path: Path) -> None:
    index_run.build(tmp_path / "expected", 40)
    index = tmp_path / "index"
    index.mkdir()
    rng = random.Random(7)
    for _ in range(6):
        assert run(index, 40, kill_at=rng.randrange(3000, 5000)).returncode in (-9, 0)
    assert run(index, 40).returncode == 0
    assert read(index) == read(tmp_path / "expected")
    with open_index(index) as reader:
        assert len(list((index / "generations").iterdir())) <= 2, reader.manifest


FULL_DISK = """
import resource, sys
from pathlib import Path
import index_run
from hyce.errors import StoreError
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]),) * 2)
try:
    with index_run.open_for_writing(Path(sys.argv[1])) as writer:
        index_run.update(writer, int(sys.argv[2]))
        writer.publish()
except StoreError as error:
    print(error)
    raise SystemExit(7)
"""


@pytest.mark.parametrize("limit", [10_000, 60_000, 120_000, 160_000, 200_000])
def test_a_full_disk_is_one_clear_line_and_the_next_run_goes_on(tmp_path: Path, limit: int) -> None:
    index = tmp_path / "index"
    index_run.build(index, 5)
    before = read(index)
    command = [sys.executable, "-c", FULL_DISK, str(index), "300", str(limit)]
    full = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(SCRIPT.parent)},
    )
    assert full.returncode == 7, full.stderr
    assert full.stderr == ""
    assert len(full.stdout.splitlines()) == 1
    assert "disk or your quota may be full" in full.stdout
    assert read(index) == before
    index_run.build(index, 300)
    index_run.build(tmp_path / "expected", 300)
    assert read(index) == read(tmp_path / "expected")


@pytest.mark.skipif(os.getuid() != 0, reason="mounts a file system of its own: root only")
def test_a_full_file_system(tmp_path: Path) -> None:
    index = tmp_path / "small"
    index.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(index)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("can't mount here")
    try:
        index_run.build(index, 20)
        before = read(index)
        with pytest.raises(StoreError, match="disk or your quota may be full"):
            index_run.build(index, 2000)
        assert read(index) == before
        subprocess.run(["mount", "-o", "remount,size=60m", str(index)], check=True)
        with index_run.open_for_writing(index) as writer:
            assert index_run.update(writer, 2000) < 2000 - 20
            writer.publish()
        with open_index(index) as reader:
            assert reader.manifest.chunks == 6000
    finally:
        subprocess.run(["umount", str(index)], check=True)


@pytest.mark.parametrize("name", ["current", "passages.db", "passages.ids", "1.vectors", "1.tokens"])
@pytest.mark.parametrize("damage", ["truncated", "missing", "emptied", "longer"])
def test_damaged_files_are_named_and_the_next_run_mends_them(tmp_path: Path, name: str, damage: str) -> None:
    index = tmp_path / "index"
    index_run.build(index, 10)
    expected = read(index)
    (file,) = index.rglob(name)
    data = file.read_bytes()
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes({"truncated": data[: len(data) // 2], "emptied": b"", "longer": data + b"x"}[damage])
    with pytest.raises(StoreError) as caught:
        open_index(index)
    assert "run `hyce index" in str(caught.value)
    assert str(index) in str(caught.value)
    with index_run.open_for_writing(index) as writer:
        if name != "current":
            assert writer.sources() == [index_run.SOURCE]
        assert index_run.update(writer, 10) == 10
        writer.publish()
    assert read(index) == expected


def test_a_database_that_rotted_is_an_error_not_a_crash_and_is_mended(tmp_path: Path) -> None:
    index = tmp_path / "index"
    index_run.build(index, 30)
    expected = read(index)
    (file,) = index.rglob("passages.db")
    size = file.stat().st_size
    for seed in range(20):
        rng = random.Random(seed)
        data = bytearray(file.read_bytes())
        copy = tmp_path / f"rotten{seed}"
        shutil.copytree(index, copy)
        for _ in range(20):
            start = rng.randrange(size - 512)
            data[start : start + 512] = rng.randbytes(512)
        (target,) = copy.rglob("passages.db")
        target.write_bytes(data)
        try:
            with open_index(copy) as reader:
                reader.lexical("topic3 passage", 20)
                index_run.content(reader)
        except (StoreError, AssertionError):
            pass
        index_run.build(copy, 30)
        assert read(copy) == expected


OTHER_USER = """
import os, sys
from pathlib import Path
import index_run
from hyce.errors import StoreError
from hyce.index.embedded import open_index
index = Path(sys.argv[1])
def search():
    with open_index(index) as reader:
        return len(index_run.content(reader)), len(reader.lexical("topic3", 5))
search()  # imports what is imported late, while the interpreter's own folder can still be read
os.setgroups([]); os.setgid(65534); os.setuid(65534)
print(*search())
try:
    index_run.open_for_writing(index)
except StoreError as error:
    print(error)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="becomes another user: root only")
def test_another_user_reads_what_it_cannot_write() -> None:
    shared = Path(tempfile.gettempdir()) / f"hyce-shared-{os.getpid()}"
    if not all(parent.stat().st_mode & 0o001 for parent in shared.parents):
        pytest.skip("the temporary folder is closed to other users")
    mask = os.umask(0o022)
    try:
        index_run.build(shared, 10)
        before = sorted(shared.rglob("*"))
        assert shared.stat().st_mode & 0o777 == 0o755
        command = [sys.executable, "-c", OTHER_USER, str(shared)]
        environment = os.environ | {"PYTHONPATH": str(SCRIPT.parent)}
        other = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert other.stderr == ""
        first, refusal = other.stdout.splitlines()
        assert first == "30 3"
        assert "Permission denied" in refusal
        assert sorted(shared.rglob("*")) == before
    finally:
        os.umask(mask)
        shutil.rmtree(shared, ignore_errors=True)


def test_a_reader_leaves_no_trace_in_a_folder_without_write_permission(tmp_path: Path) -> None:
    index = tmp_path / "index"
    index_run.build(index, 10)
    folders = [index, *(path for path in index.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        before = {path: path.stat().st_mtime_ns for path in index.rglob("*")}
        assert len(read(index)) == 30
        assert {path: path.stat().st_mtime_ns for path in index.rglob("*")} == before
    finally:
        for folder in folders:
            folder.chmod(0o755)
