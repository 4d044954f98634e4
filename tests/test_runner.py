"""The scheduler is asked as rarely as can be, and what one user was shown never reaches another."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import runner_script
from hyce_home import Home, wait_for
from runner_script import entry

from hyce import audit
from hyce.config import Policy
from hyce.records import CommandOutput
from hyce.runner import Runner
from hyce.state import State

ROOT = Policy(root=True)
NOBODY = 65534
as_root = pytest.mark.skipif(os.getuid() != 0, reason="needs another user, or to mount")


@dataclass(frozen=True)
class Place:
    """A state folder, and one with the stub program `tool`, which notes each of its starts."""

    folder: Path

    @property
    def state(self) -> Path:
        return self.folder / "state" / "hyce"

    @property
    def starts(self) -> int:
        file = self.folder / "starts"
        return len(file.read_text("utf-8").splitlines()) if file.exists() else 0

    def stub(self, script: str = "") -> None:
        """The program; `script` runs after it has noted its start."""
        file = self.folder / "bin" / "tool"
        file.parent.mkdir(exist_ok=True)
        text = f"#!/bin/sh\necho x >> {self.folder}/starts\n{script or 'echo $$ $1'}\n"
        file.write_text(text, "utf-8")
        file.chmod(0o755)
        file.parent.chmod(0o755)

    def runner(self, policy: Policy = ROOT, **others: Any) -> Runner:
        return runner_script.runner(self.state, self.folder / "bin", policy, **others)

    def start(self, state: Path | None = None, **options: Any) -> subprocess.Popen[bytes]:
        """A process that runs the entry; `options` as runner_script has them."""
        call = [sys.executable, runner_script.__file__, str(state or self.state), str(self.folder / "bin")]
        return subprocess.Popen(
            [*call, json.dumps(options)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",
        )

    def records(self) -> list[audit.Record]:
        return list(audit.records(State(self.state)))


def ended(process: subprocess.Popen[bytes]) -> tuple[list[dict[str, Any]], str]:
    """The outputs and the messages of a process."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err.decode()
    return [json.loads(line) for line in out.splitlines()], err.decode()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    place.stub()
    return place


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.time = 1_000_000.0

    def __call__(self) -> float:
        self.time += 0.001
        return self.time


# -- reuse -----------------------------------------------------------------------------------------------


def test_a_hundred_identical_calls_start_the_program_once(place: Place) -> None:
    run = place.runner()
    outputs = [run.run(entry(reuse=60), {"value": "a"}) for _ in range(100)]
    assert place.starts == 1
    assert [output.reused for output in outputs] == [False] + [True] * 99
    assert {replace(output, reused=False) for output in outputs} == {outputs[0]}


def test_a_hundred_calls_by_many_processes_start_the_program_once(place: Place) -> None:
    processes = [place.start(reuse=600, times=10) for _ in range(10)]
    outputs = [output for process in processes for output in ended(process)[0]]
    assert len(outputs) == 100
    assert place.starts == 1
    assert sum(not output["reused"] for output in outputs) == 1
    assert len({output["stdout"] for output in outputs}) == 1
    assert len(place.records()) == 100


def test_an_output_is_reused_for_its_time_only(place: Place) -> None:
    clock = Clock()
    run = place.runner(now=clock)
    run.run(entry(reuse=15), {})
    clock.time += 14
    assert run.run(entry(reuse=15), {}).reused
    clock.time += 1
    assert not run.run(entry(reuse=15), {}).reused
    assert place.starts == 2


def test_a_clock_that_was_set_back_ends_reuse(place: Place) -> None:
    clock = Clock()
    run = place.runner(now=clock)
    run.run(entry(reuse=15), {})
    clock.time -= 100
    assert not run.run(entry(reuse=15), {}).reused


def test_fresh_runs_anew_and_is_reused_after(place: Place) -> None:
    run = place.runner()
    first = run.run(entry(reuse=600), {})
    second = run.run(entry(reuse=600), {}, fresh=True)
    assert second.stdout != first.stdout
    assert run.run(entry(reuse=600), {}) == replace(second, reused=True)


@pytest.mark.parametrize("script", ["echo no; exit 3", "echo slow; exec sleep 600"])
def test_what_failed_or_took_too_long_is_never_reused(place: Place, script: str) -> None:
    place.stub(script)
    run = place.runner()
    outputs = [run.run(entry(reuse=600, timeout=0.5), {}) for _ in range(2)]
    assert {output.status for output in outputs} <= {"failed", "timeout"}
    assert not any(output.reused for output in outputs)
    assert place.starts == 2


def test_what_could_not_start_is_tried_again(place: Place) -> None:
    (place.folder / "bin" / "tool").unlink()
    run = place.runner(Policy(root=True, rate_limit=1))
    assert [run.run(entry(reuse=600), {}).status for _ in range(3)] == ["unavailable"] * 3
    place.stub()
    assert run.run(entry(reuse=600), {}).status == "ok"


def test_everything_that_an_output_depends_on_counts(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    base = entry(reuse=600, environment=("MODULEPATH", "LOADEDMODULES"))
    monkeypatch.setenv("MODULEPATH", "/a")
    monkeypatch.delenv("LOADEDMODULES", raising=False)

    def runs(command: Any = base, policy: Policy = ROOT, **params: str) -> bool:
        return not place.runner(policy).run(command, params).reused

    assert runs()
    assert not runs()
    assert not runs(value="x"), "the default, said aloud"
    assert runs(value="y")
    assert runs(replace(base, id="test.other"))
    assert runs(replace(base, max_bytes=100))
    assert runs(policy=replace(ROOT, slurm_conf="/etc/slurm/slurm.conf"))
    assert runs(policy=replace(ROOT, sandbox="off"))
    monkeypatch.setenv("MODULEPATH", "/b")
    assert runs()
    monkeypatch.setenv("LOADEDMODULES", "gcc/12")
    assert runs()
    monkeypatch.setenv("UNRELATED", "1")
    assert not runs()


def test_a_folder_that_is_part_of_the_command_counts(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing = replace(entry(reuse=600), argv=(("tool", "{cwd}"),))
    run = place.runner()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        assert run.run(listing, {}).stdout.endswith(f"/{name}\n")


def test_the_off_switch_stops_reuse_too(place: Place) -> None:
    place.runner().run(entry(reuse=600), {})
    output = place.runner(replace(ROOT, commands=False)).run(entry(reuse=600), {})
    assert (output.status, output.stdout) == ("refused", "")
    assert "switched commands off" in output.reason


def stored(place: Place) -> Path:
    (file,) = place.state.glob("output-*")
    return file


def damage_cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


def damage_empty(file: Path) -> None:
    file.write_bytes(b"")


def damage_other(file: Path) -> None:
    file.write_text("[1, 2]")


def damage_key(file: Path) -> None:
    row = json.loads(file.read_bytes())
    file.write_text(json.dumps(row | {"key": "another"}))


def damage_type(file: Path) -> None:
    row = json.loads(file.read_bytes())
    row["output"]["stdout"] = 5
    file.write_text(json.dumps(row))


def damage_fields(file: Path) -> None:
    row = json.loads(file.read_bytes())
    del row["output"]["status"]
    file.write_text(json.dumps(row))


def damage_nested(file: Path) -> None:
    file.write_text("[" * 100_000)


@pytest.mark.parametrize(
    "damage",
    [
        damage_cut,
        damage_empty,
        damage_other,
        damage_key,
        damage_type,
        damage_fields,
        damage_nested,
    ],
)
def test_a_damaged_stored_output_is_ignored_and_replaced(
    place: Place, damage: Callable[[Path], None]
) -> None:
    run = place.runner()
    run.run(entry(reuse=600), {})
    damage(stored(place))
    again = run.run(entry(reuse=600), {})
    assert (again.status, again.reused) == ("ok", False)
    assert run.run(entry(reuse=600), {}).reused


def test_a_link_in_place_of_a_stored_output_is_not_followed(place: Place, tmp_path: Path) -> None:
    run = place.runner()
    run.run(entry(reuse=600), {})
    file = stored(place)
    target = tmp_path / "target"
    file.rename(target)
    file.symlink_to(target)
    before = target.read_bytes()
    output = run.run(entry(reuse=600), {})
    assert (output.status, output.reused) == ("ok", False)
    assert target.read_bytes() == before


def test_old_outputs_are_swept_away(place: Place) -> None:
    clock = Clock()
    run = place.runner(Policy(root=True, rate_limit=0), now=clock)
    for value in range(5):
        run.run(entry(reuse=30), {"value": f"v{value}"})
    assert len(list(place.state.glob("output-*"))) == 5
    clock.time += 61
    run.run(entry(reuse=30), {"value": "last"})
    assert len(list(place.state.glob("output-*"))) == 1


# -- identical runs in flight ----------------------------------------------------------------------------


def test_threads_that_want_the_same_run_it_once(place: Place) -> None:
    place.stub("sleep 1; echo $$")
    run = place.runner()
    with ThreadPoolExecutor(8) as pool:
        outputs = list(pool.map(lambda _: run.run(entry(), {}), range(8)))
    assert place.starts == 1
    assert sum(output.reused for output in outputs) == 7
    assert len({output.stdout for output in outputs}) == 1
    assert not run.run(entry(), {}).reused, "with reuse 0 only those who waited get it"


@pytest.mark.parametrize(("script", "status"), [("echo $$", "ok"), ("echo $$; exit 3", "failed")])
def test_processes_that_want_the_same_run_it_once(place: Place, script: str, status: str) -> None:
    place.stub(f"while [ ! -e {place.folder}/go ]; do sleep 0.05; done; {script}")
    processes = [place.start() for _ in range(6)]
    wait_for(lambda: all(has_open(process.pid, "output-") for process in processes))
    (place.folder / "go").touch()
    outputs = [output for process in processes for output in ended(process)[0]]
    assert place.starts == 1
    assert {output["status"] for output in outputs} == {status}
    assert sorted(output["reused"] for output in outputs) == [False] + [True] * 5


def has_open(pid: int, name: str) -> bool:
    """Whether the process has a file open whose name begins so."""
    try:
        links = [link.readlink().name for link in Path(f"/proc/{pid}/fd").iterdir()]
    except FileNotFoundError:
        return False
    return any(link.startswith(name) for link in links)


def test_what_differs_runs_at_the_same_time(place: Place) -> None:
    place.stub(
        f"touch {place.folder}/$1; while [ ! -e {place.folder}/a -o ! -e {place.folder}/b ]; do :; done"
    )
    run = place.runner()
    with ThreadPoolExecutor(2) as pool:
        outputs = list(pool.map(lambda value: run.run(entry(timeout=30), {"value": value}), "ab"))
    assert [output.status for output in outputs] == ["ok", "ok"]


def test_who_was_killed_holds_nobody_up_and_leaves_nothing_half_done(place: Place) -> None:
    place.stub(f"while [ ! -e {place.folder}/go ]; do sleep 0.05; done; echo $$")
    killed = place.start(reuse=600)
    wait_for(lambda: place.starts == 1)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    (place.folder / "go").touch()
    output = place.runner().run(entry(reuse=600), {})
    assert (output.status, output.reused, place.starts) == ("ok", False, 2)
    assert place.runner().run(entry(reuse=600), {}).reused
    assert len(place.records()) == 2


def test_who_is_stopped_is_waited_for_only_so_long(place: Place) -> None:
    place.stub(f"[ -e {place.folder}/go ] || sleep 3; echo $$")
    stopped = place.start(timeout=0.5)
    wait_for(lambda: place.starts == 1)
    stopped.send_signal(signal.SIGSTOP)
    (place.folder / "go").touch()
    try:
        output = place.runner().run(entry(timeout=0.5), {})
    finally:
        stopped.send_signal(signal.SIGCONT)
        stopped.communicate()
    assert (output.status, output.reused) == ("ok", False)


# -- the rate limit --------------------------------------------------------------------------------------


def test_different_commands_are_bounded(place: Place) -> None:
    run = place.runner(Policy(root=True, rate_limit=10))
    outputs = [run.run(entry(reuse=600), {"value": f"v{n}"}) for n in range(40)]
    assert place.starts == 10
    assert [output.status for output in outputs] == ["ok"] * 10 + ["refused"] * 30
    assert "policy.rate_limit" in outputs[-1].reason
    assert "try again in" in outputs[-1].reason
    assert outputs[-1].argv == (("tool", "v39"),)
    assert run.run(entry(reuse=600), {"value": "v0"}).reused, "an earlier output costs nothing"


def test_the_limit_counts_all_processes_of_a_user(place: Place) -> None:
    processes = [place.start(rate_limit=5, value=f"v{n}", times=3) for n in range(4)]
    outputs = [output for process in processes for output in ended(process)[0]]
    assert place.starts == 5
    assert sum(output["status"] == "refused" for output in outputs) == 7


def test_the_minute_slides(place: Place) -> None:
    clock = Clock()
    run = place.runner(Policy(root=True, rate_limit=2), now=clock)
    assert run.run(entry(), {}).status == "ok"
    clock.time += 30
    assert run.run(entry(), {}).status == "ok"
    clock.time += 20
    refused = run.run(entry(), {})
    assert refused.status == "refused"
    assert refused.reason.endswith("try again in 10 s")
    clock.time += 10
    assert run.run(entry(), {}).status == "ok"
    assert run.run(entry(), {}).status == "refused", "the second start still counts"


def test_who_is_patient_waits_instead_of_being_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        clock.time += seconds

    monkeypatch.setattr("time.sleep", sleep)
    run = place.runner(Policy(root=True, rate_limit=2), now=clock, patient=True)
    outputs = [run.run(entry(), {"value": f"v{n}"}) for n in range(5)]
    assert [output.status for output in outputs] == ["ok"] * 5
    assert place.starts == 5
    assert sum(pauses) == pytest.approx(120, abs=1), "two a minute: the fifth begins two minutes later"
    others = place.runner(Policy(root=True, rate_limit=2), now=clock)
    assert [others.run(entry(), {}).status for _ in range(2)] == ["ok", "refused"], "its starts count"


def test_without_a_limit_nothing_is_counted(place: Place) -> None:
    run = place.runner(Policy(root=True, rate_limit=0))
    assert {run.run(entry(), {}).status for _ in range(40)} == {"ok"}
    assert not (place.state / "starts").exists()


def test_a_value_that_does_not_fit_is_refused_for_that(place: Place) -> None:
    run = place.runner(Policy(root=True, rate_limit=1))
    run.run(entry(), {})
    output = run.run(entry(), {"value": "a;b"})
    assert output.status == "refused"
    assert "no value has" in output.reason


@pytest.mark.parametrize("content", [b"", b"garbage\n\xff", b"nan\ninf\n-inf\n", b"1000000.5\n17"])
def test_a_damaged_count_is_no_obstacle(place: Place, content: bytes) -> None:
    run = place.runner(Policy(root=True, rate_limit=1))
    run.run(entry(), {})
    (place.state / "starts").write_bytes(content)
    assert run.run(entry(), {}).status == "ok"
    assert run.run(entry(), {}).status == "refused"


# -- a folder that can't be written ----------------------------------------------------------------------


def test_below_a_file_commands_run_and_the_user_is_told_once(place: Place) -> None:
    (place.folder / "state").write_text("")
    told: list[str] = []
    run = place.runner(Policy(root=True, rate_limit=3), report=told.append)
    outputs = [run.run(entry(reuse=600), {}) for _ in range(5)]
    assert [output.status for output in outputs] == ["ok"] * 3 + ["refused"] * 2, "counted in memory"
    assert not any(output.reused for output in outputs)
    assert len(told) == 1
    assert str(place.state.parent) in told[0]
    assert "not logged" in told[0]
    assert "\n" not in told[0]


@pytest.mark.parametrize("size", [60, 1000, 2000])
def test_with_a_full_quota_commands_run(place: Place, size: int) -> None:
    outputs, err = ended(place.start(reuse=600, times=20, rate_limit=30, file_size=size))
    assert {output["status"] for output in outputs} == {"ok"}
    assert err.count("not logged") == 1
    # What did get written is whole, and the log goes on when there is room again.
    whole = len(place.records())
    place.runner().run(entry(reuse=600), {"value": "later"})
    assert len(place.records()) == whole + 1


@as_root
def test_on_a_full_disk_commands_run(place: Place) -> None:
    mount = place.folder / "state"
    mount.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k,nr_inodes=20", "none", str(mount)], check=False
    )
    if mounted.returncode:
        pytest.skip("may not mount here")
    try:
        run = place.runner()
        assert run.run(entry(reuse=600), {}).status == "ok"
        with (mount / "filler").open("wb", 0) as filler, pytest.raises(OSError, match="No space"):
            while True:
                filler.write(b"x" * 4096)
        told: list[str] = []
        run = place.runner(report=told.append)
        outputs = [run.run(entry(reuse=600), {"value": f"{'v' * 150}{n}"}, "q" * 5000) for n in range(3)]
        assert [output.status for output in outputs] == ["ok"] * 3
        assert len(told) == 1
        assert "No space left" in told[0]
    finally:
        subprocess.run(["umount", str(mount)], check=True)


# -- other users -----------------------------------------------------------------------------------------


@pytest.fixture
def open_place() -> Iterator[Place]:
    """A place that others can reach, as pytest's own folders can't be."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    place = Place(folder)
    place.stub("id -u; exit 0")
    (folder / "starts").touch()
    (folder / "starts").chmod(0o666)
    try:
        yield place
    finally:
        shutil.rmtree(folder)


@as_root
def test_an_output_never_reaches_another_user(open_place: Place) -> None:
    shared = open_place.folder / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    mine = open_place.start(shared / "hyce", reuse=600)
    assert ended(mine)[0][0]["stdout"] == "0\n"
    # In the first one's folder, the second is refused.
    other = open_place.start(shared / "hyce", reuse=600, user=NOBODY)
    _, err = other.communicate()
    assert other.returncode != 0
    assert b"StateError" in err
    assert b"belongs to another user" in err
    # In one of its own, the same command runs as that user.
    (output,), _ = ended(open_place.start(shared / "other", reuse=600, user=NOBODY))
    assert (output["stdout"], output["reused"]) == (f"{NOBODY}\n", False)
    # Nor can it read the first one's.
    stored = next(path for path in (shared / "hyce").iterdir() if path.name.startswith("output-"))
    seen = subprocess.run(["cat", str(stored)], user=NOBODY, group=NOBODY, capture_output=True, check=False)
    assert (seen.returncode, seen.stdout) == (1, b"")


# -- the command -----------------------------------------------------------------------------------------


def test_a_hundred_calls_of_hyce_run(home: Home) -> None:
    calls = [home.hyce("run", "system.memory", "--json").json for _ in range(100)]
    assert {call["status"] for call in calls} == {"ok"}
    ran = [datetime.fromisoformat(call["started"]) for call in calls if not call["reused"]]
    assert all((later - earlier).total_seconds() >= 4 for earlier, later in pairwise(ran)), "reuse: 5"
    assert calls[1]["reused"]
    assert calls[1]["started"] == calls[0]["started"]


def test_a_person_sees_that_it_is_from_an_earlier_run(home: Home) -> None:
    first, second = home.hyce("run", "system.memory"), home.hyce("run", "system.memory")
    assert "from a run" not in first.out
    assert " s ago)" in second.out
    assert "from a run" not in home.hyce("run", "system.memory", "--fresh").out


def test_an_unwritable_folder_is_told_on_stderr(home: Home) -> None:
    (home.folder / "state").write_text("")
    done = home.hyce("run", "system.memory", "--json")
    assert (done.code, done.json["status"]) == (0, "ok")
    assert len(done.err.splitlines()) == 1
    assert "not logged" in done.err


def test_ask_answers_without_a_writable_folder(kestrel: Home, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    question = "How much memory does this machine have, and how much is free?"
    where = {"XDG_STATE_HOME": str(tmp_path / "file")}
    done = kestrel.hyce("ask", question, "--no-llm", "--json", environ=where)
    assert (done.code, done.json["commands"][0]["status"]) == (0, "ok")
    assert done.err.count("not logged") == 1


def test_the_rate_limit_ends_with_one_line_and_exit_code_1(home: Home) -> None:
    settings = {"policy.rate_limit": 1}
    assert home.hyce("run", "system.memory", settings=settings).code == 0
    refused = home.hyce("run", "system.load", settings=settings)
    assert refused.code == 1
    assert "policy.rate_limit" in refused.err
    assert home.hyce("run", "system.memory", settings=settings).code == 0, "reused"


def test_runs_of_several_threads_are_all_recorded(place: Place) -> None:
    run = place.runner(Policy(root=True, rate_limit=0))
    outputs: list[CommandOutput] = []
    threads = [
        threading.Thread(target=lambda n=n: outputs.append(run.run(entry(), {"value": f"v{n % 5}"})))
        for n in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outputs) == len(place.records()) == 20
