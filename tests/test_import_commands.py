"""Command lines become argument lists where that means the same; else they are left to a person."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hyce_home import Home, fails

from hyce import catalogue
from hyce.catalogue.loader import CHANGERS, LAUNCHERS
from hyce.drafts import free_id
from hyce.errors import CatalogueError
from hyce.import_commands import import_commands, imported_file, read_commands
from hyce.records import Pipeline
from hyce.shell_line import Line, read_line

TEN = {
    "id": "Shows user and group names and numeric IDs of the current user.",
    "groups": "Displays the groups that the current user belongs to.",
    "pwd": "Prints the current working directory.",
    "quota": "Displays the user's disk usage and limits.",
    "history": "Shows the commands that were typed earlier.",
    "date": "Displays the current date and time.",
    "ls": "Lists the files of the current directory.",
    "module avail": "Lists the available software modules.",
    "qstat -u $USER": "Shows the status of my jobs.",
    """pbsnodes -aFjson | jq -r '.nodes | to_entries[] | "\\(.key): \\(.value.state)"'""": "Lists all nodes.",
}

CONVERTED: dict[str, Pipeline] = {
    "qstat -u $USER": (("qstat", "-u", "{me}"),),
    'qstat -u "${USER}"': (("qstat", "-u", "{me}"),),
    "qstat -u`whoami`": (("qstat", "-u{me}"),),
    'squeue -u "$(id -un)" -o "%i %T"': (("squeue", "-u", "{me}", "-o", "%i %T"),),
    "ps -U $(id -u)": (("ps", "-U", "{uid}"),),
    "ls -la ~": (("ls", "-la", "{home}"),),
    "ls ~/jobs $HOME/.ssh": (("ls", "{home}/jobs", "{home}/.ssh"),),
    "ls": (("ls", "{cwd}"),),
    "du -d 1 .": (("du", "-d", "1", "{cwd}"),),
    "find . -name '*.out'": (("find", "{cwd}", "-name", "*.out"),),
    "pwd": (("echo", "{cwd}"),),
    "scontrol -o show node cn1": (("scontrol", "-o", "show", "node", "cn1"),),
    "sacctmgr -nP show qos": (("sacctmgr", "-nP", "show", "qos"),),
    "pbsnodes -a -F json | sort -t: -k2": (("pbsnodes", "-a", "-F", "json"), ("sort", "-t:", "-k2")),
    "squeue --me 2>/dev/null|head -n 5": (("squeue", "--me"), ("head", "-n", "5")),
    "sinfo 2>&1 | sort -u": (("sinfo",), ("sort", "-u")),
    "echo '$USER' \"\\$USER\" \\$USER a#b": (("echo", "$USER", "$USER", "$USER", "a#b"),),
    "jq '.a | .b[] > 1'": (("jq", ".a | .b[] > 1"),),
}

LEFT = {
    "squeue && sinfo": "`&&`",
    "squeue; sinfo": "`;`",
    "squeue || sinfo": "`||`",
    "squeue |& sort": "error messages",
    "squeue > jobs": "redirects",
    "sort < jobs": "redirection",
    "sleep 1 &": "background",
    "(squeue)": "subshell",
    "sacct -S $(date +%F)": "another command",
    "sacct -S `date +%F`": "another command",
    'echo "$(cat $(ls))"': "another command",
    "squeue -p $PARTITION": "variable",
    "echo ${USER:-x}": "variable",
    "echo $1": "variable",
    "SLURM_TIME_FORMAT=%s squeue": "SLURM_TIME_FORMAT",
    "history": "part of the shell",
    "alias": "part of the shell",
    "cd /tmp": "part of the shell",
    "type squeue": "part of the shell",
    "ulimit -a": "part of the shell",
    "jobs": "part of the shell",
    "module avail": "modules.*",
    "ls *.out": "file pattern",
    "ls /scratch/{a,b}": "list in braces",
    "echo ~root": "another user's",
    "/opt/x/bin/lic": "program_folders",
    "squeue | awk '{print $1}'": "can run anything",
    "squeue | xargs echo": "can run anything",
    "python3 -c 'x'": "can run anything",
    "scancel 1": "changes",
    "find . -delete": "changes",
    "scontrol update job=1": "changes",
    "sacctmgr -i add user x": "changes",
    # Slurm takes its words in capitals and cut short as well.
    "scontrol UPDATE job=1": "changes",
    "scontrol -o rel 1": "changes",
    "scontrol -M show update job=1": "changes",
    "scontrol write batch_script 1": "changes",
    "scontrol": "changes",
    "sacctmgr -n DEL user x": "changes",
    "sdiag -r": "changes",
    "pbsnodes -oC x": "changes",
    "squeue | sort -o /tmp/x": "changes",
    "man -P 'sh -c id' ls": "can run anything",
    "sinfo -o '{me}'": "parameter",
    'sinfo -o "{me""}"': "parameter",
    "jq '{name}'": "parameter",
    "cat notes.txt": "'notes.txt'",
    "echo 'a": "quote",
    "squeue |": "nothing on one of its sides",
    "": "empty",
    "squeue\nsinfo": "several lines",
    "squeue\u2028sinfo": "several lines",
    "squeue # mine": "comment",
    "echo $'a'": "plain quotes",
}


@pytest.mark.parametrize("line", CONVERTED)
def test_what_means_the_same_without_a_shell_is_converted(line: str) -> None:
    read = read_line(line)
    assert isinstance(read, Line), read
    assert read.argv == CONVERTED[line]


@pytest.mark.parametrize("line", LEFT)
def test_what_needs_a_shell_is_left_to_a_person(line: str) -> None:
    reason = read_line(line)
    assert isinstance(reason, str), reason
    assert LEFT[line] in reason


@pytest.mark.parametrize("program", ["bash", "env", "ssh", "sbatch", "qdel", "rm"])
def test_what_the_catalogue_refuses_is_left(program: str) -> None:
    assert LAUNCHERS.fullmatch(program) or CHANGERS.fullmatch(program)
    assert isinstance(read_line(f"{program} x"), str)


def test_what_was_changed_is_told() -> None:
    assert "2>/dev/null left out" in str(read_line("id 2>/dev/null"))
    assert read_line("id") == Line((("id",),))
    assert "{cwd}" in str(read_line("ls"))


def test_ids_are_free_and_readable() -> None:
    assert free_id("imported", "pbs_rstat", ()) == "imported.pbs_rstat_1"
    assert free_id("imported", "Nvidia-SMI", {"imported.nvidia_smi_1"}) == "imported.nvidia_smi_2"
    assert free_id("draft", "7z", ()) == "draft.x7z_1"


def test_the_file_of_a_cluster_loads_as_a_catalogue(tmp_path: Path) -> None:
    imported = import_commands(list(TEN.items()), taken={"imported.id_1"})
    assert [left.line for left in imported.left] == ["history", "module avail"]
    folder = tmp_path / "catalogue"
    folder.mkdir(mode=0o755)
    file = folder / "own.yaml"
    file.write_text(imported_file(imported.drafts, Path("a\nb: c")), encoding="utf-8")
    file.chmod(0o644)
    entries = catalogue.load([folder], builtin=False)
    assert len(entries) == 8
    assert entries["imported.id_2"].argv == (("id",),)
    assert entries["imported.qstat_1"].argv == (("qstat", "-u", "{me}"),)
    assert entries["imported.qstat_1"].scheduler == "pbs"
    assert entries["imported.pbsnodes_1"].argv[1][:2] == ("jq", "-r")
    assert all(entry.description in TEN.values() for entry in entries.values())
    assert not any(entry.may_leave_site or entry.questions for entry in entries.values())


def test_nothing_in_a_line_or_description_gets_out_of_its_place(tmp_path: Path) -> None:
    rows: list[tuple[str, object]] = [
        ("id \"\x85evil.x: {command: [id]}\"", "One."),
        ("echo 'a: b # c'", "x: y\nevil.y:\n  command: [id]"),
        ("date", 5),
        ("date -u", " "),
        ("date -R", "First."),
        ("date  -R", "Second."),
    ]  # fmt: skip
    imported = import_commands(rows)
    (tmp_path / "own.yaml").write_text(imported_file(imported.drafts, Path("x")), encoding="utf-8")
    entries = catalogue.load([tmp_path / "own.yaml"], builtin=False)
    assert set(entries) == {"imported.echo_1", "imported.date_1"}
    assert entries["imported.echo_1"].argv == (("echo", "a: b # c"),)
    assert [left.line for left in imported.left] == [rows[n][0] for n in (0, 2, 3, 5)]


@pytest.mark.parametrize("text", ["", "[]", '"id"', '{"id": ', "\xff"])
def test_what_is_no_such_file_is_one_error(text: str, tmp_path: Path) -> None:
    file = tmp_path / "commands.json"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(CatalogueError) as caught:
        read_commands(file)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_line_that_stands_twice_is_seen_twice(tmp_path: Path) -> None:
    file = tmp_path / "commands.json"
    file.write_text('{"id": "One.", "id": "Two."}', encoding="utf-8")
    imported = import_commands(read_commands(file))
    assert (len(imported.drafts), len(imported.left)) == (1, 1)


def test_import_review_and_run(home: Home, tmp_path: Path) -> None:
    source = tmp_path / "commands.json"
    source.write_text(json.dumps(TEN), encoding="utf-8")
    folder = tmp_path / "catalogue"
    folder.mkdir(mode=0o755)
    done = home.hyce("commands", "import", str(source), "--out", str(folder / "own.yaml"))
    assert (done.code, done.out) == (1, "")
    assert "history is a part of the shell" in done.err
    assert "8 imported to " in done.err
    assert (folder / "own.yaml").stat().st_mode & 0o022 == 0

    settings = {"policy.catalogue": [str(folder)]}
    ran = home.hyce("run", "imported.pwd_1", "--json", settings=settings)
    assert (ran.code, ran.json["stdout"]) == (0, f"{Path.cwd()}\n")
    again = home.hyce("commands", "import", str(source), "--json", settings=settings)
    assert [row["id"] for row in again.json["imported"]][:2] == ["imported.id_2", "imported.groups_2"]
    assert [row["line"] for row in again.json["left"]] == ["history", "module avail"]
    assert again.json["catalogue"].startswith("# Imported from ")
    matched = home.hyce("match", "Prints the current working directory.", "--json", settings=settings)
    assert "imported.pwd_1" in [row["id"] for row in matched.json["commands"]]


def test_out_never_replaces_a_file(home: Home, tmp_path: Path) -> None:
    source, out = tmp_path / "commands.json", tmp_path / "own.yaml"
    source.write_text('{"id": "Who I am."}', encoding="utf-8")
    assert home.hyce("commands", "import", str(source), "--out", str(out)).code == 0
    fails(home.hyce("commands", "import", str(source), "--out", str(out)), "is there already", code=2)
    fails(home.hyce("commands", "import", str(source), "--out", str(tmp_path / "x.txt")), ".yaml", code=2)
    fails(home.hyce("commands", "import", str(tmp_path / "none.json")), "none.json", "can't be read")
