"""The loader refuses whatever doesn't follow its schema, and the built-in entries follow it."""

import os
import re
from pathlib import Path

import pytest

from hyce import catalogue
from hyce.catalogue import IDENTITY, PLACEHOLDER
from hyce.errors import CatalogueError, UsageError

IDS = [
    "slurm.my_jobs",
    "slurm.job",
    "slurm.start_time",
    "slurm.history",
    "slurm.efficiency",
    "slurm.job_script",
    "slurm.priority",
    "slurm.fairshare",
    "slurm.accounts",
    "slurm.qos",
    "slurm.usage",
    "slurm.partitions",
    "slurm.gpus",
    "slurm.idle_nodes",
    "slurm.node",
    "slurm.down_nodes",
    "slurm.reservations",
    "slurm.queue_length",
    "pbs.my_jobs",
    "pbs.job",
    "pbs.start_time",
    "pbs.history",
    "pbs.queues",
    "pbs.queue_limits",
    "pbs.nodes",
    "pbs.gpus",
    "pbs.reservations",
    "modules.available",
    "modules.loaded",
    "modules.search",
    "modules.show",
    "storage.quota",
    "storage.lustre_quota",
    "storage.filesystems",
    "storage.home_usage",
    "system.whoami",
    "system.groups",
    "system.host",
    "system.date",
    "system.load",
    "system.cpu",
    "system.memory",
    "system.gpus",
    "system.processes",
    "system.directory",
]

ENTRY = """
site.pizza:
  description: Tells what is for lunch.
  questions: [what is for lunch]
  command: [cat, /etc/lunch]
"""


def write(folder: Path, text: str, name: str = "site.yaml") -> Path:
    folder.mkdir(exist_ok=True, mode=0o755)
    folder.chmod(0o755)
    file = folder / name
    file.write_text(text, encoding="utf-8")
    file.chmod(0o644)
    return folder


def test_the_builtin_catalogue_holds_every_entry() -> None:
    assert set(IDS) <= set(catalogue.load())


@pytest.mark.parametrize("entry_id", IDS)
def test_builtin_entry_is_complete(entry_id: str) -> None:
    command = catalogue.load()[entry_id]
    assert len(command.description) > 40
    assert len(command.questions) >= 4
    assert len(set(command.questions)) == len(command.questions)
    assert 0 < command.timeout <= 120
    family = entry_id.split(".", maxsplit=1)[0]
    assert command.scheduler == (family if family in ("slurm", "pbs") else None)
    for parameter in command.parameters:
        assert parameter.find, "a value that can't be recognised is never taken from a question"
    stages = (*command.argv, *(stage for pipeline in command.also for stage in pipeline))
    used = set(PLACEHOLDER.findall(" ".join(part for stage in stages for part in stage)))
    assert used - set(IDENTITY) == {parameter.name for parameter in command.parameters}


def test_no_builtin_program_changes_anything() -> None:
    programs = {stage[0] for command in catalogue.load().values() for stage in command.argv}
    assert not programs & {
        "scancel",
        "sbatch",
        "qdel",
        "qsub",
        "rm",
        "mv",
        "cp",
        "chmod",
        "kill",
        "tee",
        "touch",
    }
    for command in catalogue.load().values():
        if command.argv[0][0] == "scontrol":
            assert command.argv[0][1] in ("show", "write")
        if command.argv[0][0] == "sacctmgr":
            assert "show" in command.argv[0]


@pytest.mark.parametrize("entry_id", IDS)
def test_builtin_values_can_be_no_option_and_hold_no_blank(entry_id: str) -> None:
    for parameter in catalogue.load()[entry_id].parameters:
        for bad in ("-x", "--format=", "a b", "a;b", "$(id)", "", "a\nb", "\0", "a|b", "`id`"):
            assert not re.fullmatch(parameter.pattern, bad)


def test_entries_of_a_site_are_added_with_defaults(tmp_path: Path) -> None:
    command = catalogue.load([write(tmp_path / "site", ENTRY)], builtin=False)["site.pizza"]
    assert command.argv == (("cat", "/etc/lunch"),)
    assert command.origin.endswith("site.yaml")
    assert (command.timeout, command.may_leave_site, command.scheduler) == (10.0, False, None)


@pytest.mark.parametrize("questions", ["", "  questions: []\n"])
def test_an_entry_may_have_no_questions(questions: str, tmp_path: Path) -> None:
    text = ENTRY.replace("  questions: [what is for lunch]\n", questions)
    command = catalogue.load([write(tmp_path / "site", text)], builtin=False)["site.pizza"]
    assert command.questions == ()


def test_a_pipe_is_a_list_of_lists(tmp_path: Path) -> None:
    text = ENTRY.replace("[cat, /etc/lunch]", "[[cat, /etc/lunch], [sort, -r]]")
    command = catalogue.load([write(tmp_path / "site", text)], builtin=False)["site.pizza"]
    assert command.argv == (("cat", "/etc/lunch"), ("sort", "-r"))


def test_a_site_replaces_and_disables_builtin_entries(tmp_path: Path) -> None:
    text = ENTRY.replace("site.pizza", "system.date") + "\nsystem.host: {disabled: true}\n"
    entries = catalogue.load([write(tmp_path / "site", text)])
    assert entries["system.date"].description == "Tells what is for lunch."
    assert entries["system.date"].argv == (("cat", "/etc/lunch"),)
    assert "system.host" not in entries
    assert "system.load" in entries


def test_an_unknown_entry_is_wrong_usage_with_a_suggestion() -> None:
    with pytest.raises(UsageError, match=r"did you mean slurm\.my_jobs"):
        catalogue.load().require("slurm.myjobs")


BROKEN = {
    "unknown key": (ENTRY + "  colour: red\n", "unknown key `colour`"),
    "nearly a key": (ENTRY + "  descripton: x\n", "did you mean description"),
    "no command": ("site.pizza: {description: x, questions: [y]}", "`command` is missing"),
    "questions are a text": (ENTRY.replace("[what is for lunch]", "lunch"), "`questions` is to be a list"),
    "a number in argv": (ENTRY.replace("/etc/lunch]", "5]"), "list of texts"),
    "a command line": (ENTRY.replace("[cat, /etc/lunch]", "cat /etc/lunch"), "`command` is to be a list"),
    "mixed pipe": (ENTRY.replace("[cat, /etc/lunch]", "[[cat], sort]"), "list of texts"),
    "a program that changes something": (
        ENTRY.replace("[cat, /etc/lunch]", "[scancel, '1']"),
        "scancel changes or sends something",
    ),
    "a shell": (ENTRY.replace("[cat, /etc/lunch]", "[bash, -c, id]"), "bash can run anything"),
    "a program with a folder": (ENTRY.replace("[cat,", "[/tmp/cat,"), "no program name"),
    "a program from a question": (ENTRY.replace("[cat,", "['{name}',"), "no program name"),
    "timeout true": (ENTRY + "  timeout: true\n", "`timeout` is to be a number"),
    "timeout too long": (ENTRY + "  timeout: 9999\n", "between 0.1 and 120"),
    "scheduler": (ENTRY + "  scheduler: lsf\n", "slurm or pbs"),
    "isolation": (ENTRY + "  isolation: [gpu]\n", "`isolation` knows"),
    "bad id": (ENTRY.replace("site.pizza", "Pizza"), "an id is made of"),
    "entry is a list": ("site.pizza: [a]", "is to be a mapping"),
    "file is a list": ("- a", "mapping from entry ids"),
    "twice in a file": (ENTRY + ENTRY, "stands twice"),
    "a key twice": (ENTRY + "  command: [id]\n", "stands twice"),
    "python object": ("site.pizza: !!python/object/apply:os.system [id]", "not valid YAML"),
    "broken yaml": ("site.pizza: [", "not valid YAML"),
    "undeclared placeholder": (ENTRY.replace("/etc/lunch", "'{day}'"), "not in `parameters`"),
    "unused parameter": (ENTRY + "  parameters: {day: {pattern: a, description: b}}\n", "doesn't stand in"),
    "disabled with more": (ENTRY + "  disabled: true\n", "stands alone"),
    "disables nothing": ("system.hots: {disabled: true}", "did you mean system.host"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_refused(case: str, tmp_path: Path) -> None:
    text, message = BROKEN[case]
    folder = write(tmp_path / "site", text)
    with pytest.raises(CatalogueError) as caught:
        catalogue.load([folder])
    assert message in str(caught.value)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


PARAMETER = ENTRY.replace("/etc/lunch]", "'{day}']") + "  parameters: {day: {%s}}\n"
BROKEN_PARAMETERS = {
    "pattern: '[', description: a day": "no regular expression",
    "pattern: a, description: a day, find: ['(']": "no regular expression",
    "pattern: a": "`description` is missing",
    "pattern: a, description: b, default: c": "doesn't match the pattern",
    "pattern: a, description: b, finds: [c]": "did you mean find",
    "pattern: a, description: b, find: c": "`find` is to be a list",
}


@pytest.mark.parametrize("parameter", BROKEN_PARAMETERS)
def test_broken_parameters_are_refused(parameter: str, tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match=re.escape(BROKEN_PARAMETERS[parameter])):
        catalogue.load([write(tmp_path / "site", PARAMETER % parameter)])


@pytest.mark.parametrize(
    "variable",
    [
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "PYTHONPATH",
        "BASH_ENV",
        "PATH",
        "HOME",
        "IFS",
        "SLURM_CONF",
        "SLURM_JWT",
        "OPENAI_API_KEY",
        "PERL5LIB",
        "GITHUB_TOKEN",
        "DB_PASSWORD",
        "HYCE_LLM_MODEL",
        "ld_preload",
        "a-b",
    ],
)
def test_variables_that_steer_programs_or_hold_secrets_are_refused(variable: str, tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match="never passed on"):
        catalogue.load([write(tmp_path / "site", ENTRY + f"  environment: [{variable}]\n")])


@pytest.mark.parametrize("name", [*IDENTITY, "Day", "a b"])
def test_a_parameter_can_not_take_the_place_of_the_user(name: str, tmp_path: Path) -> None:
    text = ENTRY + f"  parameters: {{'{name}': {{pattern: a, description: b}}}}\n"
    with pytest.raises(CatalogueError, match="a name is lower-case"):
        catalogue.load([write(tmp_path / "site", text)])


def test_one_id_in_two_files_of_a_folder_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "site", ENTRY, "a.yaml")
    with pytest.raises(CatalogueError, match="two files"):
        catalogue.load([write(tmp_path / "site", ENTRY, "b.yaml")])


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777])
def test_a_folder_that_others_can_write_is_refused(mode: int, tmp_path: Path) -> None:
    folder = write(tmp_path / "site", ENTRY)
    folder.chmod(mode)
    with pytest.raises(CatalogueError, match="others can write") as caught:
        catalogue.load([folder])
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666])
def test_a_file_that_others_can_write_is_refused(mode: int, tmp_path: Path) -> None:
    folder = write(tmp_path / "site", ENTRY)
    (folder / "site.yaml").chmod(mode)
    with pytest.raises(CatalogueError, match="others can write") as caught:
        catalogue.load([folder])
    assert str(folder / "site.yaml") in str(caught.value)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "site", ENTRY)
    os.chown(folder / "site.yaml", 12345, -1)
    with pytest.raises(CatalogueError, match="another user"):
        catalogue.load([folder])


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match="doesn't exist"):
        catalogue.load([tmp_path / "nowhere"])


def test_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "site", "")
    (folder / "site.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CatalogueError, match="not valid YAML"):
        catalogue.load([folder])


def test_files_of_other_kinds_are_left_alone(tmp_path: Path) -> None:
    write(tmp_path / "site", "not [ yaml", "README.md")
    assert list(catalogue.load([write(tmp_path / "site", ENTRY)], builtin=False)) == ["site.pizza"]


def test_documentation_questions_are_texts() -> None:
    texts = catalogue.documentation_questions()
    assert len(texts) > 50
    assert len(set(texts)) == len(texts)
