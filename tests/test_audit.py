"""Every run and every refusal is on record: no record is lost, torn, or made to look like another."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hyce_home import Home, fails, wait_for
from runner_script import entry, runner

from hyce import audit
from hyce.audit import Record, append, records
from hyce.config import Policy
from hyce.state import State

RECORD = Record(
    time="2026-03-01T10:00:00+00:00",
    user="alice",
    uid=1000,
    host="login1",
    question="are my jobs running",
    id="slurm.my_jobs",
    argv=(("squeue", "--me"),),
    also=(),
    status="ok",
    exit_code=0,
    seconds=0.25,
    layers=("allow-list", "argv"),
    reused=False,
    started="2026-03-01T10:00:00+00:00",
    reason="",
)


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State(tmp_path / "state" / "hyce")


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with the stub program `tool`."""
    folder = tmp_path / "bin"
    folder.mkdir(mode=0o755)
    (folder / "tool").write_text("#!/bin/sh\n[ $1 = x ] || exit 3\necho done\n", "utf-8")
    (folder / "tool").chmod(0o755)
    return folder


# -- the file --------------------------------------------------------------------------------------------


def test_records_come_back_as_they_were_in_their_order(state: State) -> None:
    odd = replace(
        RECORD, question="a\nb\x1b[2J\x00\u202eü\ud800", argv=(("a", "b c"), ("d",)), also=((("e",),),)
    )
    for record in (RECORD, odd, RECORD):
        append(state, record)
    assert list(records(state)) == [RECORD, odd, RECORD]
    data = (state.folder / audit.FILE).read_bytes()
    assert data.count(b"\n") == 3
    assert data.isascii()
    assert all(byte >= 32 or byte == 10 for byte in data), "control characters stay data"


def test_each_record_has_every_field(state: State) -> None:
    append(state, RECORD)
    row = json.loads((state.folder / audit.FILE).read_bytes())
    assert set(row) == {
        *("time", "user", "uid", "host", "question", "id", "argv", "also", "status", "exit_code"),
        *("seconds", "layers", "reused", "started", "reason"),
    }


@pytest.mark.parametrize("torn", [b'{"time": "2026', b"\x00\x00\x00", b"{}", b"[1]", b'"text"', b"\xff"])
def test_a_torn_line_is_passed_over_and_mended(state: State, torn: bytes) -> None:
    append(state, RECORD)
    with (state.folder / audit.FILE).open("ab") as file:
        file.write(torn)
    append(state, replace(RECORD, id="after"))
    append(state, replace(RECORD, id="last"))
    assert [record.id for record in records(state)] == [RECORD.id, "after", "last"]


@pytest.mark.parametrize(
    "change", [{"time": "yesterday"}, {"seconds": "x"}, {"argv": 5}, {"question": None}, {"layers": 1}]
)
def test_a_record_of_another_kind_is_passed_over(state: State, change: dict[str, object]) -> None:
    append(state, RECORD)
    file = state.folder / audit.FILE
    row = json.loads(file.read_bytes()) | change
    file.write_text(json.dumps(row) + "\n", "utf-8")
    append(state, RECORD)
    assert list(records(state)) == [RECORD]


def test_the_log_stays_bounded_and_its_newest_records_stay(state: State) -> None:
    for number in range(200):
        append(state, replace(RECORD, exit_code=number), most_bytes=5000)
    sizes = [(state.folder / name).stat().st_size for name in (audit.FILE, audit.OLDER)]
    assert max(sizes) <= 5000
    kept = [record.exit_code for record in records(state)]
    assert kept == list(range(200 - len(kept), 200))
    assert len(kept) > 10


WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from dataclasses import replace
from test_audit import RECORD
from hyce.audit import append
from hyce.state import State
state = State(Path(sys.argv[1]))
number = 0
while number < int(sys.argv[4]):
    record = replace(RECORD, id=sys.argv[2], exit_code=number, question="q" * 3000)
    append(state, record, most_bytes=2_000_000)
    number += 1
    print(number, flush=True)
"""


def writer(state: State, name: str, number: int) -> subprocess.Popen[bytes]:
    call = [sys.executable, "-c", WRITER, str(state.folder), name, str(Path(__file__).parent), str(number)]
    return subprocess.Popen(call, stdout=subprocess.PIPE)


def test_writers_at_the_same_time_lose_and_tear_nothing(state: State) -> None:
    """Also across the change of files: 1,000 records of 3 kB, where a file takes 2 MB."""
    writers = [writer(state, f"w{n}", 250) for n in range(4)]
    for process in writers:
        process.communicate(timeout=120)
        assert process.returncode == 0
    assert (state.folder / audit.OLDER).exists()
    lines = (state.folder / audit.OLDER).read_bytes() + (state.folder / audit.FILE).read_bytes()
    assert len([json.loads(line) for line in lines.splitlines()]) == 1000
    for n in range(4):
        assert [r.exit_code for r in records(state) if r.id == f"w{n}"] == list(range(250))


def test_a_killed_writer_loses_nothing_that_it_had_written(state: State) -> None:
    for round_ in range(5):
        process = writer(state, f"w{round_}", 1_000_000)
        assert process.stdout is not None
        for _ in range(20 + 7 * round_):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        said = process.communicate()[0].splitlines()
        told = int(said[-1]) if said else 20 + 7 * round_
        found = [record.exit_code for record in records(state) if record.id == f"w{round_}"]
        assert found == list(range(len(found)))
        assert told <= len(found) <= told + 1
    append(state, RECORD)
    assert list(records(state))[-1] == RECORD


def test_a_stopped_writer_holds_nobody_up_for_long(state: State) -> None:
    with state.locked("audit.lock", 0):
        append(state, RECORD)
    assert list(records(state)) == [RECORD]


# -- what is recorded ------------------------------------------------------------------------------------


def test_runs_failures_and_refusals_are_recorded(state: State, programs: Path) -> None:
    run = runner(state.folder, programs)
    run.run(entry(reuse=60), {}, "is it done?")
    run.run(entry(reuse=60), {}, "is it done now?")
    run.run(entry(), {"value": "y"})
    run.run(entry(), {"value": "a;b"}, "a;b?")
    run.refused("delete everything", "hyce only looks things up")
    ok, again, failed, bad, refused = records(state)
    assert (ok.status, ok.exit_code, ok.reused, ok.question) == ("ok", 0, False, "is it done?")
    assert ok.argv == (("tool", "x"),)
    assert (ok.uid, ok.host) == (os.getuid(), os.uname().nodename)
    assert "argv" in ok.layers
    assert (again.status, again.reused, again.started) == ("ok", True, ok.started)
    assert (failed.status, failed.exit_code, failed.question) == ("failed", 3, "")
    assert (bad.status, bad.id, bad.exit_code) == ("refused", "test.entry", None)
    assert "no value has" in bad.reason
    assert (refused.status, refused.id, refused.argv) == ("refused", "", ())
    assert (refused.question, refused.reason) == ("delete everything", "hyce only looks things up")


def test_a_secret_in_a_question_is_not_kept(state: State, programs: Path) -> None:
    run = runner(state.folder, programs)
    run.run(entry(), {}, "is it done? my password=Tr0ub4dor and so on")
    run.refused("my password=Tr0ub4dor", "no")
    assert [record.question for record in records(state)] == [
        "is it done? my password=[redacted secret] and so on",
        "my password=[redacted secret]",
    ]
    assert b"Tr0ub4dor" not in b"".join(path.read_bytes() for path in state.folder.iterdir())


def test_an_interrupted_run_is_recorded(state: State, programs: Path, tmp_path: Path) -> None:
    (programs / "tool").write_text(f"#!/bin/sh\ntouch {tmp_path}/begun\nexec sleep 600\n", "utf-8")
    script = Path(__file__).parent / "runner_script.py"
    process = subprocess.Popen(
        [sys.executable, str(script), str(state.folder), str(programs), "{}"], stderr=subprocess.DEVNULL
    )
    wait_for((tmp_path / "begun").exists)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) != 0
    (record,) = records(state)
    assert (record.status, record.argv) == ("interrupted", (("tool", "x"),))


def test_a_question_that_is_refused_is_recorded_by_ask_and_chat(kestrel: Home, tmp_path: Path) -> None:
    where = {"XDG_STATE_HOME": str(tmp_path)}
    question = "Cancel job 48213"
    answer = kestrel.hyce("ask", question, "--no-llm", "--json", environ=where).json
    kestrel.hyce("chat", "--no-llm", "--json", stdin=f"{question}\n", environ=where)
    rows = kestrel.hyce("commands", "log", "--json", environ=where).rows
    assert [(row["status"], row["question"], row["id"]) for row in rows] == [("refused", question, "")] * 2
    assert rows[0]["reason"] == answer["refused"]


def test_ask_records_what_ran_with_its_question(kestrel: Home, tmp_path: Path) -> None:
    where = {"XDG_STATE_HOME": str(tmp_path)}
    question = "How much memory does this machine have, and how much is free?"
    answer = kestrel.hyce("ask", question, "--no-llm", "--json", environ=where).json
    rows = kestrel.hyce("commands", "log", "--json", environ=where).rows
    assert [row["id"] for row in rows] == [command["id"] for command in answer["commands"]]
    assert {row["question"] for row in rows} == {question}
    for row, command in zip(rows, answer["commands"], strict=True):
        assert (row["argv"], row["layers"]) == (command["argv"], command["layers"])


# -- syslog ----------------------------------------------------------------------------------------------


def test_runs_go_to_syslog_without_the_question(state: State, programs: Path, tmp_path: Path) -> None:
    address = tmp_path / "log"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as daemon:
        daemon.bind(str(address))
        daemon.settimeout(10)
        run = runner(state.folder, programs, Policy(root=True, syslog=True), syslog=address)
        run.run(entry(), {}, "a private question")
        run.refused("another private question", "why")
        messages = [daemon.recv(65536).decode() for _ in range(2)]
    for message in messages:
        head, _, body = message.partition(": ")
        assert head == f"<14>hyce[{os.getpid()}]"
        assert "private" not in message
        assert "question" not in json.loads(body)
    ran, refused = (json.loads(message.partition(": ")[2]) for message in messages)
    assert (ran["id"], ran["argv"], ran["status"]) == ("test.entry", [["tool", "x"]], "ok")
    assert (refused["status"], refused["reason"]) == ("refused", "why")
    assert len(list(records(state))) == 2


def test_without_the_setting_nothing_goes_to_syslog(state: State, programs: Path, tmp_path: Path) -> None:
    address = tmp_path / "log"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as daemon:
        daemon.bind(str(address))
        daemon.setblocking(False)
        runner(state.folder, programs, syslog=address).run(entry(), {})
        with pytest.raises(BlockingIOError):
            daemon.recv(100)


def test_no_syslog_or_one_that_does_not_read_breaks_nothing(
    state: State, programs: Path, tmp_path: Path
) -> None:
    syslog = Policy(root=True, syslog=True)
    assert runner(state.folder, programs, syslog, syslog=tmp_path / "none").run(entry(), {}).status == "ok"
    address = tmp_path / "log"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as daemon:
        daemon.bind(str(address))
        run = runner(state.folder, programs, syslog, syslog=address)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as filler, pytest.raises(BlockingIOError):
            filler.setblocking(False)
            filler.connect(str(address))
            while True:
                filler.send(b"x" * 1000)
        done = threading.Thread(target=run.run, args=(entry(), {}), daemon=True)
        done.start()
        done.join(30)
        assert not done.is_alive()


# -- hyce commands log -----------------------------------------------------------------------------------


@pytest.fixture
def logged(home: Home) -> Home:
    """A user's folders with four records: of three days ago, of three hours ago, and two of now."""
    state = State(home.folder / "state" / "hyce")
    now = datetime.now().astimezone()
    rows = (
        (timedelta(days=3), {"id": "system.date"}),
        (timedelta(hours=3), {"status": "failed", "exit_code": 1}),
        (
            timedelta(),
            {"status": "refused", "id": "", "argv": (), "question": "kill\nit\x1b[2J", "seconds": 0.0},
        ),
        (timedelta(), {"reused": True}),
    )
    for age, changes in rows:
        append(state, replace(RECORD, time=(now - age).isoformat(timespec="seconds"), **changes))
    return home


def numbers(home: Home, *options: str) -> list[int]:
    """Which of the four records the options show."""
    everything = home.hyce("commands", "log", "--json").rows
    return [everything.index(row) for row in home.hyce("commands", "log", "--json", *options).rows]


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ((), [0, 1, 2, 3]),
        (("-n", "2"), [2, 3]),
        (("-n", "0"), [0, 1, 2, 3]),
        (("--entry", "slurm.my_jobs"), [1, 3]),
        (("--entry", "slurm.my_jobs", "-n", "1"), [3]),
        (("--status", "failed"), [1]),
        (("--status", "timeout"), []),
        (("--since", "2h"), [2, 3]),
        (("--since", "240m"), [1, 2, 3]),
        (("--since", "7d"), [0, 1, 2, 3]),
        (("--since", "1w"), [0, 1, 2, 3]),
        (("--since", "2020-01-01"), [0, 1, 2, 3]),
        (("--since", "2020-01-01T10:00+02:00"), [0, 1, 2, 3]),
        (("--since", "2999-12-31"), []),
    ],
)
def test_the_options_choose_records(logged: Home, options: tuple[str, ...], shown: list[int]) -> None:
    assert numbers(logged, *options) == shown


@pytest.mark.parametrize("when", ["tomorrow", "2h3", "-1d", "2026-13-01", "999999w", ""])
def test_a_time_that_is_none_is_wrong_usage(logged: Home, when: str) -> None:
    fails(logged.hyce("commands", "log", f"--since={when}"), "--since", code=2)


@pytest.mark.parametrize("count", ["-1", "x", "1.5"])
def test_a_count_that_is_none_is_wrong_usage(logged: Home, count: str) -> None:
    fails(logged.hyce("commands", "log", f"-n={count}"), code=2)


def test_a_person_reads_a_table_newest_last(logged: Home) -> None:
    lines = logged.hyce("commands", "log").out.splitlines()
    shown = [line for line in lines if not line.startswith(" ")]
    assert len(shown) == 4
    assert "system.date" in shown[0]
    assert "failed 1" in shown[1]
    assert "squeue --me" in shown[1]
    assert "(no command)" in shown[2]
    assert "reused" in shown[3]
    assert shown == sorted(shown, key=lambda line: line[:19])
    # What somebody asked can't pass for a line of the log, nor reach the terminal as more than text.
    (asked,) = (line for line in lines if "asked: kill" in line)
    assert asked.strip().startswith("asked: kill it")
    assert "\x1b" not in asked


def test_an_empty_log_is_no_error(home: Home) -> None:
    shown = home.hyce("commands", "log")
    assert (shown.code, shown.out, shown.err) == (0, "", "Nothing is logged.\n")
    assert home.hyce("commands", "log", "--json").out == ""
    assert not (home.folder / "state").exists()


def test_hyce_run_appears_in_the_log(home: Home) -> None:
    home.hyce("run", "system.date")
    home.hyce("run", "slurm.job", "job_id=1;2")
    rows = home.hyce("commands", "log", "--json").rows
    assert [(row["id"], row["status"]) for row in rows] == [("system.date", "ok"), ("slurm.job", "refused")]
