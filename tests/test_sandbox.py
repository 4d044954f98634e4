"""What bubblewrap keeps from a program, and that no entry prints anything else for it."""

from __future__ import annotations

import os
import re
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ordinary_user
import pytest

from hyce import catalogue, sandbox
from hyce.config import Policy
from hyce.layers import PROCESSES
from hyce.records import Command, CommandOutput
from hyce.run import available, run

works = pytest.mark.skipif(sandbox.hindrance() is not None, reason=str(sandbox.hindrance()))

ALL = ("mount", "user", "pid", "tmp", "devices", "network", "no_new_privs")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder for programs that other users can read, unlike pytest's own; in a place that `tmp` hides."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def write(folder: Path, name: str, text: str) -> None:
    """A program: a shell script, or a Python one where it begins with `import`."""
    interpreter = ordinary_user.interpreter() if text.startswith("import") else "/bin/sh"
    (folder / name).write_text(f"#!{interpreter}\n{text}\n", encoding="utf-8")
    (folder / name).chmod(0o755)


def entry(*isolation: str, **others: Any) -> Command:
    return Command("test.entry", "A test.", ("test?",), (("tool",),), isolation=isolation, **others)


Go = Callable[..., CommandOutput]


@pytest.fixture(params=["this user", "an ordinary user"])
def go(request: pytest.FixtureRequest, folder: Path) -> Go:
    """Runs the program `tool` with this isolation, as this user (root, in a container), or as another."""

    def call(*isolation: str, mode: str = "auto", **others: Any) -> CommandOutput:
        keywords: dict[str, Any] = {
            "policy": Policy(root=True, sandbox=mode),  # type: ignore[arg-type]
            "directories": [folder],
            "trusted_uid": os.getuid(),
        }
        if request.param == "this user":
            return run(entry(*isolation, **others), {}, **keywords)
        return ordinary_user.run_all([ordinary_user.Call(entry(*isolation, **others), keywords)])[0]

    return call


def layer(output: CommandOutput) -> str:
    """The name under which the sandbox is listed; empty where there was none."""
    return next((name for name in output.layers if name.startswith("sandbox")), "")


# -- what it keeps from a program ------------------------------------------------------------------------


@works
def test_the_layers_name_what_holds(go: Go, folder: Path) -> None:
    write(folder, "tool", "id -u; grep NoNewPrivs /proc/self/status")
    output = go(*ALL)
    uid = output.stdout.split()[0]
    user = "" if uid == "0" else "user, "
    assert layer(output) == f"sandbox (mount, {user}pid, tmp, devices, network)"
    assert "no_new_privs" in output.layers
    assert output.stdout.endswith("\t1\n")
    assert ("process limit" in output.layers) == (uid != "0")


@works
def test_nothing_can_be_written(go: Go, folder: Path) -> None:
    write(folder, "tool", "touch /var/tmp/hyce-made-$$ && echo made; rm -f /var/tmp/hyce-made-$$")
    assert "Read-only file system" in go("mount", "user", "no_new_privs").stderr
    assert go("mount", "user", "no_new_privs", mode="off").stdout == "made\n"


@works
def test_temporary_folders_are_empty_and_its_own(go: Go, folder: Path) -> None:
    write(folder, "tool", "ls -A /tmp; ls -A /var/tmp; echo x > /tmp/hyce-own && cat /tmp/hyce-own")
    assert go("mount", "user", "no_new_privs", "tmp").stdout == f"{folder.name}\nx\n"
    assert not Path("/tmp/hyce-own").exists()


@works
def test_devices_are_hidden(go: Go, folder: Path) -> None:
    write(folder, "tool", "ls /dev; echo x > /dev/null && head -c 1 /dev/zero | wc -c")
    assert {"mem", "vda", "sda", "loop-control", "fuse"}.isdisjoint(
        go("mount", "user", "no_new_privs", "devices").stdout.split()
    )
    shown = go("mount", "user", "no_new_privs")
    assert shown.stdout == go("mount", "user", "no_new_privs", mode="off").stdout
    assert shown.stdout.endswith("1\n")
    assert shown.stderr == ""


@works
def test_other_processes_are_hidden(go: Go, folder: Path) -> None:
    write(folder, "tool", f"ls -d /proc/[0-9]* | wc -l; test -d /proc/{os.getpid()}/fd && echo seen")
    hidden = go("mount", "user", "no_new_privs", "pid").stdout.split()
    assert int(hidden[0]) < 6
    assert int(go("mount", "user", "no_new_privs").stdout.split()[0]) > int(hidden[0])


@works
def test_there_is_no_network(go: Go, folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        write(
            folder,
            "tool",
            f"import socket\nsocket.create_connection(('127.0.0.1', {port})); print('through')",
        )
        assert go("mount", "user", "no_new_privs").stdout == "through\n"
        output = go("mount", "user", "no_new_privs", "network")
        assert output.status == "failed"
        assert "refused" in output.stderr


@works
@pytest.mark.parametrize("missing", ["mount", "no_new_privs"])
def test_an_entry_that_does_not_bear_bubblewrap_runs_without(go: Go, folder: Path, missing: str) -> None:
    write(folder, "tool", "echo ran")
    for mode in ("auto", "require"):
        output = go(*(kind for kind in ALL if kind != missing), mode=mode)
        assert (output.status, output.stdout, layer(output)) == ("ok", "ran\n", "")


@works
def test_without_user_only_root_has_a_sandbox(go: Go, folder: Path) -> None:
    write(folder, "tool", "id -u")
    output = go("mount", "pid", "no_new_privs")
    assert bool(layer(output)) == (output.stdout == "0\n")


@works
def test_off_is_off(go: Go, folder: Path) -> None:
    write(folder, "tool", "echo ran")
    assert layer(go(*ALL, mode="off")) == ""


# -- it changes nothing else -----------------------------------------------------------------------------


@works
def test_exit_codes_signals_and_limits_are_the_same(go: Go, folder: Path) -> None:
    for text in ("exit 3", "echo out; echo err >&2; exit 0", "kill -SEGV $$", r"printf 'a\377b'", "pwd"):
        write(folder, "tool", text)
        inside, outside = go(*ALL), go(*ALL, mode="off")
        assert layer(inside)
        for name in ("status", "exit_code", "stdout", "stderr", "truncated"):
            assert getattr(inside, name) == getattr(outside, name), (text, name)


@works
def test_a_hung_program_with_children_in_sessions_of_their_own_is_ended(go: Go, folder: Path) -> None:
    """Also one that wipes its environment, which nothing but a PID namespace keeps hold of."""
    name = f"hyce-{os.getpid()}-{time.monotonic_ns()}"
    write(folder, "tool", f"trap '' TERM; setsid env -i sh -c 'sleep 60; : {name}' & echo begun; sleep 60")
    output = go(*ALL, timeout=1.0)
    assert (output.status, output.stdout) == ("timeout", "begun\n")
    assert output.seconds < 30
    time.sleep(0.5)
    assert [line for line in command_lines() if f": {name}" in line] == []


def command_lines() -> list[str]:
    lines = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(file.read_text(errors="replace").replace("\0", " "))
        except OSError:
            continue
    return lines


@works
def test_a_reader_that_had_enough_is_no_failure_inside_either(folder: Path) -> None:
    write(folder, "endless", "exec yes")
    write(folder, "first", "head -n 1")
    both = Command("test.entry", "A test.", ("test?",), (("endless",), ("first",)), isolation=ALL)
    output = run(both, {}, policy=Policy(root=True), directories=[folder], trusted_uid=os.getuid())
    assert (output.status, output.stdout) == ("ok", "y\n")
    assert layer(output)


def settled(text: str) -> list[str]:
    """The text without what changes from one moment to the next: numbers, and their units."""
    return sorted(" ".join(re.sub(r"[\d.,:]+([KMGT]i?)?\b", "N", line).split()) for line in text.splitlines())


ENTRIES = [
    command.id
    for command in catalogue.load().values()
    if command.id.startswith(("system.", "storage.")) and not command.parameters and not available(command)
]


@works
@pytest.mark.parametrize("entry_id", ENTRIES)
def test_entries_print_the_same_with_and_without_as_this_user(
    entry_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    command = catalogue.load()[entry_id]

    def outputs() -> list[CommandOutput]:
        modes = ("off", "auto", "off")
        return [run(command, {}, policy=Policy(root=True, sandbox=mode)) for mode in modes]  # type: ignore[arg-type]

    check_same(outputs)


@works
@pytest.mark.parametrize("entry_id", ENTRIES)
def test_entries_print_the_same_with_and_without_as_an_ordinary_user(entry_id: str) -> None:
    command = catalogue.load()[entry_id]
    calls = [ordinary_user.Call(command, {"policy": Policy(sandbox=mode)}) for mode in ("off", "auto", "off")]
    check_same(lambda: ordinary_user.run_all(calls))


def check_same(outputs: Callable[[], list[CommandOutput]]) -> None:
    """The one in the middle is as the first and the last, tried again where even these two differ."""
    for _ in range(5):
        before, inside, after = outputs()
        if not layer(inside):
            # Started in the same way, and so the same.
            assert (inside.status, inside.layers) == (before.status, before.layers)
            assert not {"mount", "user", "no_new_privs"} <= {*catalogue.load()[inside.id].isolation}
            return
        if settled(before.stdout) == settled(after.stdout):
            break
    else:
        pytest.skip("what it shows changes all the time on this machine")
    for name in ("status", "exit_code", "truncated"):
        assert getattr(inside, name) == getattr(before, name)
    assert settled(inside.stdout) == settled(before.stdout)
    assert settled(inside.stderr) == settled(before.stderr)


# -- where it doesn't work -------------------------------------------------------------------------------


def without(folder: Path, bwrap: str | None) -> dict[str, Any]:
    """Helpers are found in a folder with the system's own, and this program for bwrap."""
    helpers = folder / "helpers"
    helpers.mkdir(exist_ok=True)
    helpers.chmod(0o755)
    for name in ("prlimit", "setpriv"):
        (helpers / name).symlink_to(f"/usr/bin/{name}")
    if bwrap:
        write(helpers, "bwrap", bwrap)
    return {"directories": [folder], "trusted_uid": os.getuid(), "helpers": [helpers]}


MISSING = [
    (None, "bwrap is not installed"),
    ("echo 'bwrap: No permissions to create new namespace' >&2; exit 1", "No permissions to create"),
    ("exec sleep 60", "hangs"),
    ("exit 1", "exit code 1"),
]


@pytest.mark.parametrize(("bwrap", "reason"), MISSING)
def test_auto_goes_on_without_and_require_refuses(folder: Path, bwrap: str | None, reason: str) -> None:
    write(folder, "tool", "echo ran")
    where = without(folder, bwrap)
    output = run(entry(*ALL), {}, policy=Policy(root=True), **where)
    assert (output.status, output.stdout, layer(output)) == ("ok", "ran\n", "")
    assert {"no_new_privs", "resource limits"} <= {*output.layers}
    required = Policy(root=True, sandbox="require")
    for isolation in (ALL, ()):
        refused = run(entry(*isolation), {}, policy=required, **where)
        assert refused.status == "refused"
        assert reason in refused.reason
        assert "policy.sandbox" in refused.reason
        assert "hyce doctor" in refused.reason


@works
def test_a_part_that_the_host_forbids_is_given_up_first(folder: Path) -> None:
    write(folder, "tool", "echo ran")
    real = '; exec /usr/bin/bwrap "$@"'
    where = without(
        folder, 'case " $* " in *" --unshare-net "*) echo "bwrap: no network" >&2; exit 1; esac' + real
    )
    output = run(entry(*ALL), {}, policy=Policy(root=True), **where)
    assert output.stdout == "ran\n"
    assert layer(output).endswith("pid, tmp, devices)")
    refused = run(entry(*ALL), {}, policy=Policy(root=True, sandbox="require"), **where)
    assert refused.status == "refused"
    assert "bwrap: no network" in refused.reason
    assert sandbox.missing_parts(where["helpers"], os.getuid()) == ("network",)


@pytest.mark.parametrize(
    ("setting", "value", "word"),
    [
        ("kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
        ("user/max_user_namespaces", "0", "user.max_user_namespaces"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "AppArmor"),
        ("kernel/unprivileged_userns_clone", "1", "in a container"),
    ],
)
def test_the_remedy_follows_the_kernels_settings(tmp_path: Path, setting: str, value: str, word: str) -> None:
    (tmp_path / setting).parent.mkdir()
    (tmp_path / setting).write_text(f"{value}\n")
    assert word in sandbox.remedy(tmp_path)


# -- fork bombs ------------------------------------------------------------------------------------------

BOMB = """import os, time
end = time.time() + 150
print("begun", flush=True)
while time.time() < end:
    try:
        if os.fork() == 0 and {escapes}:
            os.setsid()
    except OSError:
        pass"""


def test_a_program_can_start_only_so_many_processes(folder: Path) -> None:
    """Root may start as many as it likes."""
    write(
        folder,
        "tool",
        "import os, signal\npids = []\ntry:\n"
        f"    while len(pids) < {PROCESSES + 400}:\n"
        "        pid = os.fork()\n"
        "        if not pid:\n            signal.pause()\n"
        "        pids.append(pid)\n"
        "except BlockingIOError:\n    pass\nprint(len(pids))",
    )
    where = {"directories": [folder], "trusted_uid": os.getuid()}
    for mode in ("off", "auto"):
        call = ordinary_user.Call(entry(*ALL), {**where, "policy": Policy(sandbox=mode)})
        output = ordinary_user.run_all([call])[0]
        assert PROCESSES - 60 < int(output.stdout) <= PROCESSES + 20, output.stderr


@pytest.mark.parametrize(("escapes", "mode"), [(False, "off"), (True, "off"), (True, "auto")])
def test_a_fork_bomb_is_ended_whole(folder: Path, escapes: bool, mode: str) -> None:
    """Of a user with a hard limit of its own, and one that ends by itself, should all else fail."""
    write(folder, "tool", BOMB.format(escapes=escapes))
    policy = Policy(sandbox=mode)  # type: ignore[arg-type]
    keywords = {"policy": policy, "directories": [folder], "trusted_uid": os.getuid()}
    call = ordinary_user.Call(entry(*ALL, timeout=1.0), keywords)
    output = ordinary_user.run_all([call])[0]
    assert (output.status, output.stdout) == ("timeout", "begun\n")
    assert output.seconds < 140, "it ended by itself"
    deadline = time.monotonic() + 20
    while bombs := [line for line in command_lines() if str(folder) in line]:
        assert time.monotonic() < deadline, f"{len(bombs)} are left"
        time.sleep(0.2)


# -- what others can see of it ---------------------------------------------------------------------------

CANARY = "canary-77ae"


def test_no_process_of_a_run_holds_a_secret(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the program nor what starts it, in its environment or its arguments."""
    for name in ("OPENAI_API_KEY", "SLURM_JWT", "ANYTHING"):
        monkeypatch.setenv(name, CANARY)
    write(folder, "tool", "sleep 30 & wait")
    thread = threading.Thread(
        target=run,
        args=(entry(*ALL, timeout=1.5), {}),
        kwargs={"policy": Policy(root=True), "directories": [folder], "trusted_uid": os.getuid()},
    )
    thread.start()
    seen: set[str] = set()
    while thread.is_alive():
        for process in Path("/proc").glob("[0-9]*"):
            try:
                environment = (process / "environ").read_bytes().decode(errors="replace")
                arguments = (process / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if "HYCE_RUN=" in environment and str(folder) in environment + arguments:
                seen.add(Path(arguments.split("\0")[0]).name)
                assert CANARY not in environment + arguments
        time.sleep(0.05)
    assert "sh" in seen
    if sandbox.hindrance() is None:
        assert "bwrap" in seen
