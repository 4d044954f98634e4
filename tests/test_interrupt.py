"""A real `hyce index` that is killed or interrupted: the previous index answers, the next run goes on."""

from __future__ import annotations

import contextlib
import json
import random
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hyce_home import Home, fails, wait_for

from hyce.index.embedded import open_index

PAGES, PARTS = 80, 10
PASSAGE_BYTES = 384 * 4
COMMIT = 256
"""Passages after which the writer commits, at the latest."""


def write_pages(docs: Path, pages: int) -> None:
    docs.mkdir(exist_ok=True)
    for number in range(pages):
        # A sentence of its own for each part, long enough that parts aren't put into one passage.
        parts = [f"## Part {part}\n\n{f'Word{number} and {part}. ' * 4}" for part in range(PARTS)]
        text = f"# Page {number:03}\n\n" + "\n\n".join(parts)
        (docs / f"page{number:03}.md").write_text(text, encoding="utf-8")


def content(index: Path) -> set[tuple[str, str]]:
    """Path and text of every passage."""
    with open_index(index) as reader:
        ids = [number for number, _ in reader.dense(np.ones(384, np.float32), 10**6)]
        passages = {(passage.path, passage.text) for passage in reader.passages(ids)}
    assert len(passages) == len(ids)
    return passages


@pytest.fixture(scope="module")
def settings() -> dict[str, object]:
    return {"passages.size": 32, "model.threads": 2}


@pytest.fixture(scope="module")
def whole(
    tmp_path_factory: pytest.TempPathFactory, model_folder: Path, settings: dict[str, object]
) -> tuple[Path, set[tuple[str, str]], int]:
    """The pages, what an index of them holds that was made in one go, and how many passages that embedded."""
    docs = tmp_path_factory.mktemp("pages") / "docs"
    write_pages(docs, PAGES)
    home = Home(tmp_path_factory.mktemp("whole"), model_folder)
    done = home.hyce("index", str(docs), "--json", settings=settings)
    assert done.code == 0, done.err
    return docs, content(home.index), done.json["embedded"]


def embedded_so_far(home: Home) -> int:
    sizes = [file.stat().st_size for file in (home.index / "segments").glob("*.vectors")]
    return max(sizes, default=0) // PASSAGE_BYTES


def stop_at(process: subprocess.Popen[bytes], home: Home, passages: int, how: signal.Signals) -> str:
    """Send the signal once so many passages are in the staged files; stderr."""
    wait_for(lambda: process.poll() is not None or embedded_so_far(home) >= passages)
    process.send_signal(how)
    _, err = process.communicate(timeout=60)
    return err.decode()


def test_killed_at_random_moments(
    home: Home,
    whole: tuple[Path, set[tuple[str, str]], int],
    settings: dict[str, object],
) -> None:
    docs, expected, total = whole
    home.folder.joinpath("docs").mkdir()
    mine = home.folder / "docs"
    old = mine / "page000.md"
    old.write_bytes((docs / "page000.md").read_bytes())
    assert home.hyce("index", str(mine), settings=settings).code == 0
    before = content(home.index)
    for page in docs.iterdir():
        (mine / page.name).write_bytes(page.read_bytes())
    rng = random.Random()
    done_before = 0
    for moment in sorted(rng.randrange(COMMIT, total - COMMIT) for _ in range(2)):
        process = home.start("index", "--json", settings=settings)
        assert stop_at(process, home, moment, signal.SIGKILL).count("hyce: ") == 0
        assert process.returncode == -signal.SIGKILL
        assert content(home.index) == before
        found = home.hyce("search", "Word0 and 3", "--json", settings=settings)
        assert {hit["path"] for hit in found.json["hits"]} == {"page000.md"}
        done_before = max(done_before, moment)
    last = home.hyce("index", "--json", settings=settings)
    assert last.code == 0, last.err
    # What came after the last commit is embedded again, and nothing else.
    assert last.json["embedded"] <= total - done_before + COMMIT
    assert last.json["embedded"] < total - len(before)
    assert content(home.index) == expected


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_by_hand_or_by_the_batch_system(
    home: Home,
    whole: tuple[Path, set[tuple[str, str]], int],
    settings: dict[str, object],
    how: signal.Signals,
) -> None:
    docs, expected, total = whole
    process = home.start("index", str(docs), "--json", settings=settings)
    wait_for(lambda: embedded_so_far(home) > 0)
    fails(home.hyce("index", str(docs), settings=settings), f"being written by process {process.pid}", "wait")
    assert stop_at(process, home, COMMIT + 50, how).splitlines()[-1] == "hyce: interrupted"
    assert process.returncode == 130
    fails(home.hyce("search", "Word0", settings=settings), "no index")
    done = home.hyce("index", str(docs), "--json", settings=settings)
    assert done.code == 0, done.err
    assert done.json["embedded"] <= total - 50
    assert content(home.index) == expected


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_other_commands_end_quietly_too(kestrel: Home, how: signal.Signals) -> None:
    process = kestrel.start("search", "-", stdin=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.write(json.dumps({"question": "quota"}).encode() + b"\n")
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["hits"]
    process.send_signal(how)
    assert process.wait(60) == 130
    assert process.stderr.read() == b"hyce: interrupted\n"
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()


@pytest.mark.parametrize("how", [signal.SIGHUP, signal.SIGTERM])
def test_what_runs_ends_with_the_terminal(home: Home, tmp_path: Path, how: signal.Signals) -> None:
    catalogue = tmp_path / "slow.yaml"
    catalogue.write_text("a.slow: {description: Waits., command: [sleep, '61.7'], timeout: 100}\n", "utf-8")
    catalogue.chmod(0o644)
    process = home.start("run", "a.slow", settings={"policy.catalogue": [str(catalogue)]})
    wait_for(lambda: bool(running("sleep", "61.7")))
    process.send_signal(how)
    assert process.wait(60) == 130
    process.communicate()
    assert not running("sleep", "61.7")
    assert home.hyce("commands", "log", "--json").rows[-1]["status"] == "interrupted"


def running(*argv: str) -> list[str]:
    """The processes that were started with these arguments, by their numbers."""
    wanted = "\0".join(argv).encode() + b"\0"
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (folder / "cmdline").read_bytes().endswith(wanted):
                found.append(folder.name)
    return found
