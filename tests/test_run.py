"""Commands run as this user and end in time; nothing from the user's environment or question steers them."""

import os
import pwd
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hyce import catalogue, programs
from hyce.config import Policy
from hyce.parameters import fill
from hyce.records import Command, CommandOutput, Parameter
from hyce.run import available, run

POLICY = Policy(root=True)
Stub = Callable[[str, str], None]


@pytest.fixture
def bin_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    return folder


@pytest.fixture
def stub(bin_folder: Path) -> Stub:
    """Writes a program: a shell script, or a Python one where it begins with `import`."""

    def write(name: str, text: str) -> None:
        interpreter = sys.executable if text.startswith("import") else "/bin/sh"
        file = bin_folder / name
        file.write_text(f"#!{interpreter}\n{text}\n", encoding="utf-8")
        file.chmod(0o755)

    return write


def command(*argv: str | tuple[str, ...], **others: object) -> Command:
    stages = tuple(part if isinstance(part, tuple) else (part,) for part in argv)
    fields = {"timeout": 20.0, **others}
    return Command("test.entry", "A test.", ("test?",), stages, **fields)  # type: ignore[arg-type]


@pytest.fixture
def go(bin_folder: Path) -> Callable[..., CommandOutput]:
    def call(entry: Command, policy: Policy = POLICY, **params: str) -> CommandOutput:
        return run(entry, params, policy=policy, directories=[bin_folder], trusted_uid=os.getuid())

    return call


Go = Callable[..., CommandOutput]


def gone(pid: int) -> bool:
    """Whether the process has ended, a zombie counted as ended; waits a little for it."""
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state in "ZX":
            return True
        time.sleep(0.05)
    return False


# -- what it leads to ------------------------------------------------------------------------------------


def test_output_and_exit_code(stub: Stub, go: Go) -> None:
    stub("tool", "echo out; echo err >&2")
    output = go(command("tool"))
    assert (output.status, output.exit_code, output.stdout, output.stderr) == ("ok", 0, "out\n", "err\n")
    assert not output.truncated
    assert output.argv == (("tool",),)
    assert output.reason == ""
    assert output.started[10] == "T"
    assert set(output.layers) >= {
        "allow-list",
        "argv",
        "root-owned programs",
        "scrubbed environment",
        "time limit",
        "output limit",
        "process group",
    }


def test_a_failure_is_shown_as_one_with_its_stderr(stub: Stub, go: Go) -> None:
    stub("tool", "echo partial; echo 'no controller' >&2; exit 3")
    output = go(command("tool"))
    assert (output.status, output.exit_code) == ("failed", 3)
    assert (output.stdout, output.stderr) == ("partial\n", "no controller\n")


def test_nothing_printed_is_ok_and_empty(stub: Stub, go: Go) -> None:
    stub("tool", "exit 0")
    assert go(command("tool")).status == "ok"
    assert go(command("tool")).stdout == ""


def test_a_program_ended_by_a_signal_failed(stub: Stub, go: Go) -> None:
    stub("tool", "kill -SEGV $$")
    output = go(command("tool"))
    assert (output.status, output.exit_code) == ("failed", 128 + signal.SIGSEGV)


def test_invalid_utf8_is_replaced(stub: Stub, go: Go) -> None:
    stub("tool", r"printf 'a\377b'")
    assert go(command("tool")).stdout == "a\ufffdb"


def test_stdin_is_empty(stub: Stub, go: Go) -> None:
    stub("tool", "cat; echo end")
    assert go(command("tool")).stdout == "end\n"


def test_a_missing_program_is_unavailable_and_named(go: Go) -> None:
    output = go(command("tool"))
    assert output.status == "unavailable"
    assert "tool is not installed" in output.reason


def test_what_an_entry_requires_is_checked(stub: Stub, bin_folder: Path, tmp_path: Path) -> None:
    stub("tool", "true")
    where = {"directories": [bin_folder], "trusted_uid": os.getuid()}
    assert available(command("tool"), **where) is None  # type: ignore[arg-type]
    missing = available(command("tool", requires=(str(tmp_path / "x"),)), **where)  # type: ignore[arg-type]
    assert missing is not None
    assert str(tmp_path / "x") in missing
    assert "other is not installed" in str(available(command("tool", requires=("other",)), **where))  # type: ignore[arg-type]


def test_a_program_that_can_not_be_started(bin_folder: Path, go: Go) -> None:
    (bin_folder / "tool").write_bytes(b"\x00garbage")
    (bin_folder / "tool").chmod(0o755)
    assert go(command("tool")).status in ("failed", "unavailable")


# -- pipes -----------------------------------------------------------------------------------------------


def test_stages_are_joined(stub: Stub, go: Go) -> None:
    stub("three", "printf 'b\\na\\nc\\n'")
    stub("order", "sort")
    stub("first", "head -n 1")
    assert go(command("three", "order", "first")).stdout == "a\n"


def test_the_last_failing_stage_gives_the_exit_code(stub: Stub, go: Go) -> None:
    stub("bad", "echo x; echo why >&2; exit 4")
    stub("pass", "cat")
    output = go(command("bad", "pass"))
    assert (output.status, output.exit_code, output.stdout, output.stderr) == ("failed", 4, "x\n", "why\n")


def test_a_reader_that_had_enough_is_no_failure(stub: Stub, go: Go) -> None:
    stub("endless", "exec yes")
    stub("first", "head -n 1")
    output = go(command("endless", "first"))
    assert (output.status, output.stdout) == ("ok", "y\n")


def test_at_the_limit_later_stages_still_write_what_they_hold(stub: Stub, go: Go) -> None:
    stub("slow", "echo b; echo a; exec sleep 600")
    stub("order", "sort")
    output = go(command("slow", "order", timeout=1.0))
    assert (output.status, output.stdout) == ("timeout", "a\nb\n")


# -- limits ----------------------------------------------------------------------------------------------


def test_a_hung_program_is_ended(stub: Stub, go: Go) -> None:
    stub("tool", "echo begun; exec sleep 600")
    output = go(command("tool", timeout=0.5))
    assert (output.status, output.exit_code, output.stdout) == ("timeout", None, "begun\n")
    assert "0.5 seconds" in output.reason
    assert output.seconds < 60


def test_children_that_ignore_sigterm_are_ended(stub: Stub, go: Go) -> None:
    stub(
        "tool",
        "trap '' TERM\n(trap '' TERM; echo $(exec sh -c 'echo $PPID'); while :; do sleep 1; done) &\nwait",
    )
    output = go(command("tool", timeout=1.0))
    assert output.status == "timeout"
    assert gone(int(output.stdout.split()[0]))


def test_a_child_that_keeps_the_output_open_does_not_keep_us(stub: Stub, go: Go) -> None:
    stub("tool", "sleep 600 & echo $!")
    output = go(command("tool", timeout=60.0))
    assert (output.status, output.exit_code) == ("ok", 0)
    assert output.seconds < 30
    assert gone(int(output.stdout))


def test_a_child_in_a_session_of_its_own_is_ended(stub: Stub, go: Go) -> None:
    stub("tool", "setsid sh -c 'setsid sleep 300 & echo $!; sleep 300' >/dev/null & echo $!")
    output = go(command("tool"))
    assert output.status == "ok"
    assert gone(int(output.stdout))
    stub("tool", "trap '' TERM; setsid sleep 300 & echo $!; exec sleep 300")
    output = go(command("tool", timeout=0.5))
    assert output.status == "timeout"
    assert gone(int(output.stdout))


def test_programs_run_outside_of_the_users_folder(stub: Stub, go: Go) -> None:
    stub("tool", "pwd")
    assert go(command("tool")).stdout == "/\n"


def test_a_child_in_a_session_of_its_own_does_not_keep_us(stub: Stub, go: Go) -> None:
    stub(
        "tool",
        "import os, time\n"
        "if os.fork() == 0:\n    os.setsid()\n    time.sleep(15)\n    os._exit(0)\n"
        "print('done')",
    )
    output = go(command("tool", timeout=60.0))
    assert (output.status, output.stdout) == ("ok", "done\n")
    assert output.seconds < 10


def test_a_bounded_fork_bomb_is_ended(stub: Stub, go: Go) -> None:
    stub(
        "tool",
        "for i in 1 2 3 4 5 6 7 8; do (for j in 1 2 3 4; do sleep 600 & echo $!; done; wait) & done; wait",
    )
    output = go(command("tool", timeout=1.0))
    assert output.status == "timeout"
    assert len(output.stdout.split()) == 32
    assert all(gone(int(pid)) for pid in output.stdout.split())


def test_output_is_capped_and_marked(stub: Stub, go: Go) -> None:
    stub("tool", "head -c 1000000000 /dev/zero | tr '\\0' x; echo late >&2")
    output = go(command("tool", max_bytes=1000, timeout=60.0))
    assert output.status == "ok"
    assert output.truncated
    assert output.stdout == "x" * 1000
    assert output.stderr == "late\n"


def test_endless_output_ends_with_the_time_limit(stub: Stub, go: Go) -> None:
    stub("tool", "exec yes >&2")
    output = go(command("tool", max_bytes=1000, timeout=0.5))
    assert (output.status, output.truncated, len(output.stderr)) == ("timeout", True, 1000)


def test_output_of_exactly_the_limit_is_whole(stub: Stub, go: Go) -> None:
    stub("tool", "printf 12345")
    assert not go(command("tool", max_bytes=5)).truncated
    assert go(command("tool", max_bytes=4)).truncated


def test_no_file_descriptor_is_left(stub: Stub, go: Go) -> None:
    stub("tool", "echo x")
    go(command("tool"))
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for _ in range(5):
        go(command("tool", "missing"))
        go(command("tool"))
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def test_several_threads_run_commands_at_once(stub: Stub, go: Go) -> None:
    stub("tool", "sleep 0.2; echo $1")
    outputs: list[str] = []
    threads = [
        threading.Thread(target=lambda n=n: outputs.append(go(command(("tool", str(n)))).stdout))
        for n in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outputs) == [f"{n}\n" for n in range(6)]


def test_resource_limits_and_no_new_privs(stub: Stub, go: Go) -> None:
    stub("tool", "ulimit -c; ulimit -n; umask; grep NoNewPrivs /proc/self/status")
    output = go(command("tool", isolation=("no_new_privs",)))
    if "resource limits" in output.layers:
        assert output.stdout.splitlines()[:2] == ["0", "256"]
    assert output.stdout.splitlines()[2] == "0077"
    assert ("no_new_privs" in output.layers) == output.stdout.endswith("\t1\n")


def test_an_entry_that_does_not_bear_no_new_privs_runs_without(stub: Stub, go: Go) -> None:
    stub("tool", "grep NoNewPrivs /proc/self/status")
    output = go(command("tool"))
    assert "no_new_privs" not in output.layers
    own = [
        line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("NoNewPrivs")
    ]
    assert output.stdout.splitlines() == own


def test_a_program_has_no_terminal(stub: Stub, go: Go) -> None:
    stub("tool", "(: < /dev/tty) 2>/dev/null && echo terminal || echo none")
    assert go(command("tool")).stdout == "none\n"


# -- policy ----------------------------------------------------------------------------------------------


def test_the_off_switch(stub: Stub, go: Go, tmp_path: Path) -> None:
    stub("tool", f"touch {tmp_path}/ran")
    output = go(command("tool"), policy=Policy(commands=False, root=True))
    assert output.status == "refused"
    assert "switched commands off" in output.reason
    assert not (tmp_path / "ran").exists()


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_root_is_refused_unless_the_site_allows_it(stub: Stub, go: Go) -> None:
    stub("tool", "true")
    output = go(command("tool"), policy=Policy())
    assert output.status == "refused"
    assert "policy.root" in output.reason


# -- programs --------------------------------------------------------------------------------------------


def test_the_users_path_has_no_effect(
    stub: Stub, go: Go, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evil = tmp_path / "evil"
    evil.mkdir()
    (evil / "tool").write_text("#!/bin/sh\necho evil\n")
    (evil / "tool").chmod(0o755)
    monkeypatch.setenv("PATH", f"{evil}:{os.environ['PATH']}")
    stub("tool", "echo good")
    assert go(command("tool")).stdout == "good\n"


@pytest.mark.parametrize("mode", [0o775, 0o757])
def test_a_folder_that_others_can_write_is_not_trusted(
    mode: int, stub: Stub, go: Go, bin_folder: Path
) -> None:
    stub("tool", "echo x")
    bin_folder.chmod(mode)
    output = go(command("tool"))
    assert output.status == "unavailable"
    assert str(bin_folder) in output.reason


def test_a_program_that_others_can_write_is_not_trusted(stub: Stub, go: Go, bin_folder: Path) -> None:
    stub("tool", "echo x")
    (bin_folder / "tool").chmod(0o777)
    output = go(command("tool"))
    assert output.status == "unavailable"
    assert str(bin_folder / "tool") in output.reason


def test_a_link_to_a_file_that_others_can_write_is_not_trusted(
    go: Go, bin_folder: Path, tmp_path: Path
) -> None:
    target = tmp_path / "target"
    target.write_text("#!/bin/sh\necho x\n")
    target.chmod(0o777)
    (bin_folder / "tool").symlink_to(target)
    assert go(command("tool")).status == "unavailable"


def test_every_link_on_the_way_to_a_program_counts(stub: Stub, go: Go, bin_folder: Path) -> None:
    stub("real", "echo x")
    open_folder = bin_folder.parent / "open"
    open_folder.mkdir()
    (open_folder / "link").symlink_to(bin_folder / "real")
    (bin_folder / "tool").symlink_to(open_folder / "link")
    assert go(command("tool")).status == "ok"
    open_folder.chmod(0o777)
    assert go(command("tool")).status == "unavailable"
    assert str(open_folder) in go(command("tool")).reason


def test_links_in_a_circle_are_no_program(go: Go, bin_folder: Path) -> None:
    (bin_folder / "tool").symlink_to("tool")
    assert go(command("tool")).status == "unavailable"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_a_link_of_another_user_in_a_sticky_folder_is_not_trusted(
    stub: Stub, go: Go, bin_folder: Path
) -> None:
    stub("real", "echo x")
    sticky = bin_folder.parent / "sticky"
    sticky.mkdir()
    sticky.chmod(0o1777)
    (sticky / "link").symlink_to(bin_folder / "real")
    (bin_folder / "tool").symlink_to(sticky / "link")
    assert go(command("tool")).status == "ok"
    os.chown(sticky / "link", 12345, -1, follow_symlinks=False)
    assert go(command("tool")).status == "unavailable"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_a_program_of_another_user_is_not_trusted(stub: Stub, go: Go, bin_folder: Path) -> None:
    stub("tool", "echo x")
    os.chown(bin_folder / "tool", 12345, -1)
    assert go(command("tool")).status == "unavailable"


def test_the_systems_own_programs_are_found_through_links() -> None:
    found = programs.find("id")
    assert isinstance(found, Path)
    assert found.name == "id"


# -- environment -----------------------------------------------------------------------------------------

CANARY = "canary-5f1c"


def test_the_environment_is_scrubbed(stub: Stub, go: Go, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [
        "OPENAI_API_KEY",
        "SLURM_JWT",
        "LD_PRELOAD_X",
        "PYTHONPATH",
        "BASH_ENV",
        "ENV",
        "SLURM_CONF",
        "ANYTHING",
        "IFS",
    ]
    for name in names:
        monkeypatch.setenv(name, CANARY)
    monkeypatch.setenv("HOME", "/tmp/elsewhere")
    monkeypatch.setenv("USER", "somebody")
    stub("tool", "env; tr '\\0' '\\n' < /proc/self/environ; cat /proc/$PPID/cmdline")
    output = go(command("tool"))
    assert CANARY not in output.stdout + output.stderr
    user = pwd.getpwuid(os.getuid())
    lines = output.stdout.splitlines()
    assert f"HOME={user.pw_dir}" in lines
    assert f"USER={user.pw_name}" in lines
    assert "PATH=/usr/bin:/bin:/usr/sbin:/sbin" in lines
    assert "LC_ALL=C.UTF-8" in lines


def test_variables_that_an_entry_names_are_passed(
    stub: Stub, go: Go, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODULEPATH", "/opt/modules")
    monkeypatch.setenv("PATH", f"/evil:{os.environ['PATH']}")
    stub("tool", "echo $MODULEPATH $UNSET $PATH")
    entry = command("tool", environment=("MODULEPATH", "UNSET", "PATH"))
    assert go(entry).stdout == "/opt/modules /usr/bin:/bin:/usr/sbin:/sbin\n"


def test_no_variable_of_the_user_steers_a_program(
    stub: Stub, go: Go, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each would show if it had an effect: on the loader, on a shell, on Python, on Slurm's clients."""
    (tmp_path / "start.sh").write_text("echo steered\n")
    (tmp_path / "sitecustomize.py").write_text("print('steered')\n")
    for name in ("BASH_ENV", "ENV"):
        monkeypatch.setenv(name, str(tmp_path / "start.sh"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("LD_PRELOAD", str(tmp_path / "steered.so"))
    monkeypatch.setenv("SLURM_CONF", "steered")
    stub("shell", "bash -c 'echo from bash'; echo $SLURM_CONF; sh -ic 'echo from sh' 2>/dev/null")
    stub("tool", "import os\nprint(os.environ.get('SLURM_CONF'))")
    for isolation in ((), ("mount", "user", "pid", "network", "no_new_privs")):
        shell, python = go(command("shell", isolation=isolation)), go(command("tool", isolation=isolation))
        assert (shell.stdout, shell.stderr) == ("from bash\n\nfrom sh\n", "")
        assert (python.stdout, python.stderr) == ("None\n", "")


def test_slurm_conf_is_the_sites(stub: Stub, go: Go, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_CONF", "/home/me/slurm.conf")
    stub("tool", "echo $SLURM_CONF")
    assert go(command("tool"), policy=Policy(root=True)).stdout == "\n"
    site = Policy(root=True, slurm_conf="/etc/site/slurm.conf")
    assert go(command("tool"), policy=site).stdout == "/etc/site/slurm.conf\n"


def test_the_sites_program_folders_come_first_and_only_when_trusted(
    stub: Stub, bin_folder: Path, go: Go, tmp_path: Path
) -> None:
    stub("tool", "echo usual")
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "tool").write_text("#!/bin/sh\necho site\n")
    (folder / "tool").chmod(0o755)
    policy = Policy(root=True, program_folders=(str(folder),))
    assert go(command("tool"), policy=policy).stdout == "site\n"
    folder.chmod(0o777)
    assert go(command("tool"), policy=policy).stdout == "usual\n"
    (bin_folder / "tool").unlink()
    assert str(folder) in go(command("tool"), policy=policy).reason
    monkey = Policy(root=True, program_folders=(os.path.relpath(folder, "/"),))
    assert "not installed" in go(command("tool"), policy=monkey).reason


# -- parameters ------------------------------------------------------------------------------------------

ANYTHING = Parameter("value", r"(?s).*", "anything at all")


def test_a_value_stays_one_argument(stub: Stub, go: Go) -> None:
    stub("tool", 'echo "$#"; echo "$1"')
    entry = command(("tool", "job={value}"), parameters=(ANYTHING,))
    assert go(entry, value="48213_7").stdout == "1\njob=48213_7\n"


@pytest.mark.parametrize(
    "value",
    [
        "1; id",
        "$(id)",
        "${HOME}",
        "a|b",
        "a>b",
        "a<b",
        "a&b",
        "a\nb",
        "a\n",
        "a\0b",
        "`id`",
        "--format=x",
        "-x",
        "../x",
        "/scratch/../etc",
        "..",
        "a b",
        "a\tb",
        "a\x1b[0m",
        "a'b",
        'a"b',
        "a\\b",
        "*",
        "~bob",
        "x" * 201,
        "{me}",
        "a\u2028b",
        "a\x9bb",
    ],
)
def test_unsafe_values_are_refused_even_where_the_pattern_allows_them(
    value: str, stub: Stub, go: Go, tmp_path: Path
) -> None:
    stub("tool", f"touch {tmp_path}/ran")
    output = go(command(("tool", "{value}"), parameters=(ANYTHING,)), value=value)
    assert output.status == "refused"
    assert "value=" in output.reason
    assert "\n" not in output.reason
    assert not (tmp_path / "ran").exists()


def test_the_pattern_holds_for_the_whole_value(stub: Stub, go: Go) -> None:
    stub("tool", "true")
    entry = command(("tool", "{value}"), parameters=(Parameter("value", r"\d+|a", "a number"),))
    assert go(entry, value="12").status == "ok"
    assert go(entry, value="12a").status == "refused"
    assert go(entry, value="x12").status == "refused"


def test_missing_and_unknown_parameters_are_refused(stub: Stub, go: Go) -> None:
    stub("tool", "true")
    entry = command(("tool", "{value}"), parameters=(ANYTHING,))
    assert "needs value" in go(entry).reason
    assert "no parameter 'other'" in go(entry, value="1", other="2").reason
    assert "no parameter 'me'" in go(command(("tool", "{me}")), me="root").reason


def test_a_default_stands_in(stub: Stub, go: Go) -> None:
    stub("tool", "echo $1")
    entry = command(("tool", "{value}"), parameters=(Parameter("value", r"\d+", "n", default="7"),))
    assert go(entry).stdout == "7\n"


def test_identity_comes_from_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("USER", "LOGNAME", "HOME"):
        monkeypatch.setenv(name, "/somebody")
    user = pwd.getpwuid(os.getuid())
    argv, *_ = fill(command(("tool", "{me}", "{uid}", "{home}", "{cwd}")), {})
    assert argv == (("tool", user.pw_name, str(os.getuid()), user.pw_dir, str(Path.cwd())),)


@pytest.mark.parametrize(
    "entry_id", ["system.whoami", "system.date", "system.host", "system.groups", "storage.filesystems"]
)
def test_builtin_entries_run_here(entry_id: str) -> None:
    entry = catalogue.load()[entry_id]
    if available(entry):
        pytest.skip(str(available(entry)))
    output = run(entry, {}, policy=POLICY)
    assert output.status == "ok"
    assert output.stdout.strip()


def test_whoami_tells_this_user() -> None:
    assert f"uid={os.getuid()}(" in run(catalogue.load()["system.whoami"], {}, policy=POLICY).stdout


# -- several commands for one view -----------------------------------------------------------------------


def test_what_runs_beside_a_command_that_failed_is_not_run(stub: Stub, go: Go, tmp_path: Path) -> None:
    stub("fails", "echo broken >&2; exit 3")
    stub("second", f"touch {tmp_path}/ran")
    output = go(command("fails", also=((("second",),),), view="slurm_job"))
    assert (output.status, output.exit_code, output.also) == ("failed", 3, ())
    assert output.stderr == "broken\n"
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("view", "printed"),
    [
        ("slurm_history", "CLUSTER: one\\nJobID|State\\n1|FAILED\\n"),
        ("slurm_efficiency", "JobID|State\\n1|FAILED\\n"),
        (
            "pbs_gpus",
            '{"nodes": {"a": {"state": "free", "resources_available": {"ngpus": 1}, '
            '"resources_assigned": null}}}',
        ),
        ("pbs_gpus", '{"nodes":' + "[" * 5000),
    ],
)
def test_what_a_view_can_not_read_is_shown_as_printed(stub: Stub, go: Go, view: str, printed: str) -> None:
    stub("tool", f"printf '{printed}'")
    output = go(command("tool", view=view))
    assert (output.status, output.stdout) == ("ok", printed.replace("\\n", "\n"))
    assert "it could not be read" in output.stderr


def test_the_program_gets_the_part_of_a_value_that_it_takes() -> None:
    number = Parameter("job", r"\d+(_\d+|_\[[\d-]+\])?", "a job", part=r"\d+(_\d+)?")
    entry = command(("tool", "{job}"), parameters=(number,))
    for value, given in {"48213": "48213", "48213_7": "48213_7", "48213_[2-9]": "48213"}.items():
        assert fill(entry, {"job": value})[0] == (("tool", given),)
