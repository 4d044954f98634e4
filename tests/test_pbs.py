"""Every pbs.* entry against programs that print what OpenPBS does: tests/pbs_stubs. PBS is in no package."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hyce import catalogue
from hyce.config import Policy, Site
from hyce.records import CommandOutput
from hyce.run import run

STUBS = Path(__file__).parent / "pbs_stubs"
POLICY = Policy(root=True, sandbox="off")
"""The stubs lie in /tmp, which a sandbox hides."""
ENTRIES = [entry_id for entry_id in catalogue.load() if entry_id.startswith("pbs.")]
PARAMETERS = {"pbs.job": {"job_id": "40211"}, "pbs.queue_limits": {"queue": "gpuq"}}

Pbs = Callable[..., CommandOutput]


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    shutil.copytree(STUBS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in folder.iterdir():
        if not file.suffix:
            _, _, text = file.read_text(encoding="utf-8").partition("\n")
            file.write_text(f"#!{sys.executable} -B\n{text}", encoding="utf-8")
        file.chmod(0o755)
    folder.chmod(0o755)
    return folder


@pytest.fixture
def pbs(programs: Path) -> Pbs:
    def call(entry_id: str, site: Site | None = None, **params: str) -> CommandOutput:
        entry = catalogue.load()[entry_id]
        where = {"directories": [programs], "trusted_uid": os.getuid()}
        return run(entry, params, policy=POLICY, site=site or Site(), **where)  # type: ignore[arg-type]

    return call


def shown(output: CommandOutput) -> str:
    """What it printed, when it went well and the view could read it."""
    assert (output.status, output.stderr) == ("ok", ""), output
    return output.stdout


# -- for all ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry_id", ENTRIES)
def test_every_entry_runs_and_its_view_can_read_it(entry_id: str, pbs: Pbs) -> None:
    output = pbs(entry_id, **PARAMETERS.get(entry_id, {}))
    assert shown(output).strip()
    assert not output.truncated


@pytest.mark.parametrize("entry_id", ENTRIES)
def test_no_server_is_a_failure_and_never_no_jobs(entry_id: str, pbs: Pbs, programs: Path) -> None:
    (programs / "scenario").write_text("down", encoding="utf-8")
    output = pbs(entry_id, **PARAMETERS.get(entry_id, {}))
    assert (output.status, output.exit_code, output.stdout) == ("failed", 111, "")
    assert "cannot connect to server pbs (errno=111)" in output.stderr


@pytest.mark.parametrize("entry_id", ENTRIES)
def test_clients_keep_the_network_and_their_setuid_helper(entry_id: str) -> None:
    assert not {"network", "no_new_privs", "user"} & set(catalogue.load()[entry_id].isolation)


# -- jobs ------------------------------------------------------------------------------------------------


def test_my_jobs_are_mine_with_their_reasons(pbs: Pbs) -> None:
    text = shown(pbs("pbs.my_jobs"))
    for number in ("40211.pbs", "40215.pbs", "40216.pbs", "40220[].pbs", "40230.pbs"):
        assert number in text
    for other in ("40212", "IGNORE_ALL", "40217", "tbrandt", "40188"):
        assert other not in text
    assert "Insufficient amount of resource: ngpus (R: 4 A: 0 T: 8)" in text
    assert "User has reached queue gpuq running job limit." in text
    assert "g02/0*8" in text
    assert text.startswith("Jobs: 5\nstate Q (queued, it waits until the scheduler starts it): 2\n")
    assert "state F" not in text


@pytest.mark.parametrize("entry_id", ["pbs.my_jobs", "pbs.start_time", "pbs.history"])
def test_no_jobs_is_said(entry_id: str, pbs: Pbs, programs: Path) -> None:
    (programs / "scenario").write_text("empty", encoding="utf-8")
    assert " no job of " in shown(pbs(entry_id))


def test_history_shows_ended_jobs(pbs: Pbs) -> None:
    text = shown(pbs("pbs.history"))
    assert "40188.pbs" in text
    assert "40190.pbs" in text
    assert "strangers" not in text
    assert "state F (finished): 2\n" in text


def test_expected_start(pbs: Pbs) -> None:
    text = shown(pbs("pbs.start_time"))
    assert "Mon Nov 24 06:30" in text
    assert "--: no estimate" in text


def test_a_running_job(pbs: Pbs) -> None:
    text = shown(pbs("pbs.job", job_id="40211"))
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines[0] == "Job 40211.pbs"
    assert "job_state = R: running" in lines
    assert "stime (started) = Fri Nov 21 08:02:11 2025" in lines
    assert "walltime 12:00:00 02:03:44" in lines
    assert "mem 64gb 24gb" in lines
    assert "ngpus 2 -" in lines
    assert "exec_host = g02/0*8" in lines
    assert any(line.startswith("submitted from the folder /home/") for line in lines)


def test_the_job_s_environment_is_not_shown(pbs: Pbs) -> None:
    text = shown(pbs("pbs.job", job_id="40211"))
    assert "hunter2" not in text
    assert "Variable_List" not in text


def test_a_waiting_job_with_a_long_name(pbs: Pbs) -> None:
    text = shown(pbs("pbs.job", job_id="40215.pbs"))
    assert "Job_Name = parameter_scan_over_all_temperatures_and_pressures\n" in text
    assert "job_state = Q: queued" in text
    # PBS broke both lines.
    assert "comment = Not Running: Insufficient amount of resource: ngpus (R: 4 A: 0 T: 8)\n" in text
    assert "parameter_scan_over_all_temperatures_and_pressures.o40215\n" in text
    assert "estimated.start_time (expected start) = Mon Nov 24 06:30:00 2025" in text


def test_a_held_job(pbs: Pbs) -> None:
    text = shown(pbs("pbs.job", job_id="40216"))
    assert "job_state = H: held" in text
    assert "Hold_Types = s: held by the system" in text
    assert "depend = afterok:40215.pbs" in text


def test_an_ended_job(pbs: Pbs) -> None:
    text = shown(pbs("pbs.job", job_id="40188"))
    assert "job_state = F: finished" in text
    assert "Exit_status = 271" in text
    assert "exceeded resource walltime" in text


def test_an_array_and_one_of_its_tasks(pbs: Pbs) -> None:
    array = shown(pbs("pbs.job", job_id="40220[]"))
    assert "job_state = B: array job" in array
    assert "array_state_count = Queued:193 Running:1" in array
    assert "Job 40220[7].pbs" in shown(pbs("pbs.job", job_id="40220[7].pbs"))


def test_an_unknown_job(pbs: Pbs) -> None:
    output = pbs("pbs.job", job_id="999999")
    assert (output.status, output.stdout) == ("failed", "")
    assert output.stderr == "qstat: Unknown Job Id 999999.pbs\n"


# -- the cluster -----------------------------------------------------------------------------------------


def test_queues(pbs: Pbs) -> None:
    text = shown(pbs("pbs.queues"))
    assert "workq                0   212 yes yes   180    30" in text
    assert "longq                0     0  no  no" in text
    assert "Ena: takes new jobs" in text


def test_limits_of_a_queue(pbs: Pbs) -> None:
    text = shown(pbs("pbs.queue_limits", queue="gpuq"))
    for line in (
        "Queue gpuq",
        "enabled = True: it takes new jobs",
        "most that a job may ask for:\n    ngpus = 8\n    walltime = 24:00:00",
        "max_run = 2 for each user; 40 for all together",
        "max_run_res.ngpus = 4 for each user; 8 for user mkessler",
        "acl_groups = physics,chemistry",
        "Running:5 Exiting:0 Begun:0",
    ):
        assert line in text
    assert "Unknown queue nosuch" in pbs("pbs.queue_limits", queue="nosuch").stderr


def test_nodes(pbs: Pbs) -> None:
    text = shown(pbs("pbs.nodes"))
    assert text.startswith("Nodes: 10, of them 6 free, 2 down, 1 job-busy, 1 job-exclusive.")
    assert "c002            job-busy" in text


def test_gpus_without_limits_by_the_site(pbs: Pbs) -> None:
    text = shown(pbs("pbs.gpus"))
    assert "A100: 12 GPUs on 3 nodes: 4 free, 4 in use, 4 out of service" in text
    assert "g01: 2 free of 4 (queue gpuq)" in text
    assert "g03: 0 free of 4, down, offline (queue gpuq)" in text
    # A host that PBS has divided is one node; one that a job has to itself has nothing free.
    assert "H100: 2 GPUs on 1 node: 1 free, 1 in use" in text
    assert "V100: 2 GPUs on 1 node: 0 free, 2 in use" in text
    assert "model not stated: 2 GPUs on 1 node" in text
    assert "c001" not in text


def test_gpus_that_the_user_s_groups_may_use(pbs: Pbs) -> None:
    text = shown(pbs("pbs.gpus", Site(gpu_nodes=("*=g0*", "nobody-has-this-group=h*"))))
    mine, _, others = text.partition("GPUs that other groups may use, but not yours:")
    assert "A100" in mine
    assert "H100" not in mine
    assert "H100: 2 GPUs" in others
    assert "V100" in others, "a node that no group is set for is nobody's"
    assert "A100" not in others


def test_reservations(pbs: Pbs, programs: Path) -> None:
    text = shown(pbs("pbs.reservations"))
    assert "M981.pbs (maintenance)" in text
    assert "reserve_start = Mon Dec 01 06:00:00 2025" in text
    assert "reserve_state = RESV_RUNNING: running now" in text
    assert "Variable_List" not in text
    (programs / "scenario").write_text("empty", encoding="utf-8")
    assert "PBS has no reservation" in shown(pbs("pbs.reservations"))
