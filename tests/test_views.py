"""Views make Slurm's output readable, and say it where there is nothing."""

from __future__ import annotations

import pytest

from hyce.views import VIEWS, Viewer

ALICE = Viewer("alice", ("alice", "staff"))


def view(name: str, *outputs: str | None, viewer: Viewer = ALICE) -> str:
    return VIEWS[name](outputs, viewer)


# -- lists -----------------------------------------------------------------------------------------------


def test_columns_are_aligned_and_a_name_may_hold_bars() -> None:
    text = "JOBID|STATE|NODELIST(REASON)|NAME\n7_[2-4%1]|PENDING|(Resources)|a|b  c\n12|RUNNING|c1|x\n"
    assert view("slurm_my_jobs", text) == (
        "JOBID      STATE    NODELIST(REASON)  NAME\n"
        "7_[2-4%1]  PENDING  (Resources)       a|b  c\n"
        "12         RUNNING  c1                x\n"
    )


def test_an_empty_cell_keeps_its_column() -> None:
    text = "Cluster|Account|Partition|QOS\nmerlin|teaching||normal\n"
    assert view("slurm_accounts", text).splitlines()[1].split() == ["merlin", "teaching", "-", "normal"]


def test_the_rest_of_a_name_with_a_line_break_is_no_job() -> None:
    text = "JOBID|STATE|NODELIST(REASON)|NAME\n12|RUNNING|c1|x\nJOB 13 FAILED\n"
    assert view("slurm_my_jobs", text).splitlines()[1:] == ["12     RUNNING  c1                x"]


LISTS = (
    "my_jobs start_time history priority fairshare accounts qos partitions idle_nodes down_nodes efficiency"
)


@pytest.mark.parametrize("name", [f"slurm_{name}" for name in LISTS.split()])
@pytest.mark.parametrize("text", ["", "JobID|State\n"])
def test_nothing_is_said_in_a_sentence(name: str, text: str) -> None:
    assert view(name, text).startswith(("No ", "Slurm has no ", "Slurm's accounting "))


def test_no_queue_no_account_no_script_are_said() -> None:
    assert view("slurm_queue_length", "", "cpu\ngpu\n").startswith("No job is in the queue")
    assert "no account of yours" in view("slurm_usage", "", "")
    assert view("slurm_job_script", "7\n", "").startswith("Slurm gave out no script")
    assert view("slurm_job_script", "", "#!/bin/sh\n") == "#!/bin/sh\n"


def test_history_shows_what_has_ended_the_latest_of_it() -> None:
    jobs = "".join(f"{number}|FAILED|1:0\n" for number in range(60))
    text = f"JobID|State|ExitCode\n{jobs}99|RUNNING|0:0\n"
    lines = view("slurm_history", text).splitlines()
    assert lines[0] == "The latest 50 of 60:"
    assert lines[2].startswith("10 ") and lines[51].startswith("59 ")
    assert lines[52] == "" and lines[53].startswith("ExitCode a:b")


def test_drained_and_absent_nodes_are_not_idle() -> None:
    text = "PARTITION|STATE|NODES|NODELIST\ncpu|n/a|0|\ngpu|drain|1|g3\nh100|idle|1|g2\nbig|idle~|2|b[1-2]\n"
    shown = view("slurm_idle_nodes", text)
    assert "g2" in shown and "b[1-2]" in shown
    assert "g3" not in shown and "cpu" not in shown
    assert view("slurm_idle_nodes", "PARTITION|STATE|NODES|NODELIST\ngpu|drain|1|g3\n").startswith(
        "No node is"
    )


def test_queue_length_names_empty_partitions() -> None:
    text = view(
        "slurm_queue_length",
        "      3 cpu PENDING\n     12 cpu RUNNING\n      1 cpu COMPLETING\n",
        "cpu\ngpu\n",
    )
    assert text.splitlines()[1:] == [
        "cpu        3        12       1",
        "gpu        0        0        0",
        "all        3        12       1",
    ]
    assert "OTHER" not in view("slurm_queue_length", "2 cpu RUNNING\n", "cpu\n")
    assert "gpu" not in view("slurm_queue_length", "1 cpu PENDING\n", None)
    with pytest.raises(ValueError, match="no count of jobs"):
        view("slurm_queue_length", "squeue: something else\n", "")


# -- one job ---------------------------------------------------------------------------------------------

ACCOUNTING = "JobID|State|ExitCode|JobName\n"


def test_a_job_is_shown_as_the_controller_has_it() -> None:
    assert view("slurm_job", "", "JobId=12 JobName=x\n", ACCOUNTING) == "JobId=12 JobName=x\n"


def test_fields_that_hold_nothing_are_left_out() -> None:
    text = (
        "JobId=12 ArrayJobId=12 JobName=a (null) b\n   JobState=PENDING Reason=Resources Dependency=(null)\n"
        "   NodeList=(null)\n   Socks/Node=* NtasksPerN:B:S:C=0:0:*:* TimeLimit=04:00:00 TimeMin=N/A\n"
        "   Power=\n   \n\nJobId=13 JobName=y\n   SuspendTime=None RunTime=00:00:01\n\n"
    )
    assert view("slurm_job", "", text, ACCOUNTING) == (
        "JobId=12 ArrayJobId=12 JobName=a (null) b\n   JobState=PENDING Reason=Resources\n"
        "   TimeLimit=04:00:00\n\n\nJobId=13 JobName=y\n   RunTime=00:00:01\n"
    )
    node = view("slurm_node", "NodeName=c1 Arch=x\n   Gres=(null)\n   State=IDLE Owner=N/A\n")
    assert node.startswith("NodeName=c1 Arch=x\n   State=IDLE\n\n")


def test_a_reservation_that_does_not_hold_now() -> None:
    text = "ReservationName=m StartTime=x\n   Users=root Groups=(null) State={}\n"
    assert view("slurm_reservations", text.format("ACTIVE")) == (
        "ReservationName=m StartTime=x\n   Users=root State=ACTIVE\n"
    )
    assert "State=INACTIVE: it holds no nodes now" in view("slurm_reservations", text.format("INACTIVE"))
    none = "No reservations in the system\n"
    assert view("slurm_reservations", none) == none


def test_a_forgotten_job_is_shown_as_the_accounting_has_it() -> None:
    text = view("slurm_job", "", None, ACCOUNTING + "12|FAILED|3:0|x\n")
    assert "not in the queue any more" in text and "12     FAILED  3:0       x" in text


def test_an_unknown_job_is_unknown_only_where_both_say_so() -> None:
    assert "Slurm knows no job of yours" in view("slurm_job", "", None, ACCOUNTING)
    assert "accounting could not be asked" in view("slurm_job", "", None, None)


SACCT = (
    "JobID|State|ExitCode|Elapsed|Timelimit|NNodes|AllocCPUS|NTasks|TotalCPU|ReqMem|MaxRSS|AllocTRES|"
    "JobName\n"
)


def test_efficiency_of_a_job_with_steps() -> None:
    text = SACCT + (
        "12|COMPLETED|0:0|1-02:00:00|2-00:00:00|2|8||4-08:00:00|16G||cpu=8,gres/gpu=2,gres/gpu:a100=2|train\n"
        "12.batch|COMPLETED|0:0|1-02:00:00||1|4|1|00:00:01||1200K|cpu=4|batch\n"
        "12.0|COMPLETED|0:0|1-02:00:00||2|8|4|4-07:59:59||2G|cpu=8|solver\n"
    )
    assert view("slurm_efficiency", text).splitlines() == [
        "Job: 12 (train)",
        "State: COMPLETED (exit code 0)",
        "Run time: 1-02:00:00, 54 % of its time limit 2-00:00:00",
        "Nodes: 2, cores: 8, GPUs: 2 (a100 2)",
        "CPU time: 104:00:00, 50 % of the 208:00:00 that it had (cores times run time)",
        "Memory: peak 8 GB, 50 % of the 16 GB asked for",
    ]


@pytest.mark.parametrize(("asked", "total"), [("4Gn", "8 GB"), ("2000Mc", "15.6 GB"), ("4G", "4 GB")])
def test_memory_asked_for_by_node_or_core(asked: str, total: str) -> None:
    text = SACCT + (
        f"12|COMPLETED|0:0|00:01:00|UNLIMITED|2|8||00:10|{asked}||cpu=8|x\n"
        "12.batch|COMPLETED|0:0|00:01:00||1|4|1|00:10||1G|cpu=4|batch\n"
    )
    assert f"of the {total} asked for" in view("slurm_efficiency", text)


@pytest.mark.parametrize(
    ("state", "code", "says"),
    [
        ("OUT_OF_MEMORY", "0:125", "(ended because it used more memory than it had asked for)"),
        ("TIMEOUT", "0:0", "(ended because its time limit was over)"),
        ("FAILED", "3:0", "(exit code 3)"),
        ("FAILED", "0:11", "(ended by signal 11, SIGSEGV)"),
        ("CANCELLED by 1001", "0:0", "CANCELLED by 1001"),
    ],
)
def test_how_a_job_ended(state: str, code: str, says: str) -> None:
    text = SACCT + f"12|{state}|{code}|00:00:00|00:05:00|1|1||00:00.036|30M||cpu=1|x\n"
    text += f"12.batch|{state}|{code}|00:00:00||1|1|1|00:00.036||3780K|cpu=1|batch\n"
    line = view("slurm_efficiency", text).splitlines()[1]
    assert line.startswith(f"State: {state}") and line.endswith(says)


def test_a_low_measurement_does_not_hide_that_memory_ran_out() -> None:
    text = SACCT + "12|OUT_OF_MEMORY|0:125|00:00:01|00:05:00|1|1||00:00.036|30M||cpu=1|x\n"
    text += "12.batch|OUT_OF_MEMORY|0:125|00:00:01||1|1|1|00:00.036||3780K|cpu=1|batch\n"
    assert "Memory: more than the 30 MB asked for (last measured: 3.69 MB)" in view("slurm_efficiency", text)


def test_many_tasks_are_cut_and_it_is_said() -> None:
    tasks = "".join(f"7_{n}|COMPLETED|0:0|00:00:10|00:05:00|1|1||00:05|30M||cpu=1|x\n" for n in range(20))
    text = view("slurm_efficiency", SACCT + tasks)
    assert text.count("Job: ") == 8 and "12 more tasks are not shown" in text


# -- usage -----------------------------------------------------------------------------------------------


def test_usage_is_of_the_users_own_accounts() -> None:
    report = (
        "root||cpu|190\nchemistry||cpu|120\nchemistry||gres/gpu|30\nchemistry|alice|cpu|50\n"
        "chemistry|carol|cpu|70\nchemistry|alice|gres/gpu|30\nphysics||cpu|70\nphysics|bob|cpu|70\n"
    )
    lines = [line.split() for line in view("slurm_usage", report, "chemistry\nteaching\n").splitlines()[3:]]
    assert ["chemistry", "whole", "account", "120", "core-hours"] in lines
    assert ["chemistry", "alice", "(you)", "50", "core-hours"] in lines
    assert ["chemistry", "carol", "70", "core-hours"] in lines
    assert ["chemistry", "alice", "(you)", "30", "GPU-hours"] in lines
    assert ["teaching", "whole", "account", "0", "core-hours"] in lines
    assert not [line for line in lines if line[0] in ("physics", "root")]


# -- GPUs ------------------------------------------------------------------------------------------------

NODES = (
    "gpu*   |mixed    |2 |gpu:a100:4(S:0-1)      |gpu:a100:1(IDX:0)          |g[1-2]|\n"
    "gpu*   |drained  |1 |gpu:a100:4(S:0-1)      |gpu:a100:0(IDX:N/A)        |g3    |\n"
    "gpu*   |idle*    |1 |gpu:a100:4             |gpu:a100:0(IDX:N/A)        |g4    |\n"
    "plain  |allocated|1 |gpu:2                  |gpu:(null):2(IDX:0-1)      |p1    |\n"
    "both   |idle     |1 |gpu:h100:2,gpu:3090:1  |gpu:h100:1(IDX:0,1),gpu:3090:0|b1 |\n"
    "theirs |idle     |1 |gpu:v100:2             |gpu:v100:0(IDX:N/A)        |v1    |\n"
    "cpu    |idle     |9 |(null)                 |gpu:0                      |c[1-9]|\n"
)


def partition(name: str, **settings: str) -> str:
    values = {"AllowGroups": "ALL", "AllowAccounts": "ALL", "AllowQos": "ALL", "State": "UP"} | settings
    return f"PartitionName={name} " + " ".join(f"{key}={value}" for key, value in values.items()) + "\n"


def gpus(partitions: str | None, associations: str | None, nodes: str = NODES) -> dict[str, list[str]]:
    """The lines of the tables by partition and type."""
    text = view("slurm_gpus", nodes, partitions, associations)
    rows = [line.split() for line in text.splitlines()]
    return {f"{row[0]} {row[1]}": row for row in rows if len(row) > 4 and row[2].isdigit()}


def test_free_gpus_are_those_on_nodes_in_service() -> None:
    every = "".join(partition(name) for name in ("gpu", "plain", "both", "theirs"))
    rows = gpus(every, "chemistry||normal\n")
    # total, in use, out of service, free
    assert rows["gpu a100"][2:6] == ["16", "2", "8", "6"]
    assert rows["plain gpu"][2:6] == ["2", "2", "0", "0"]
    assert rows["both h100"][2:6] == ["2", "1", "0", "1"]
    assert rows["both 3090"][2:6] == ["1", "0", "0", "1"]
    assert not [key for key in rows if key.startswith("cpu")]


@pytest.mark.parametrize(
    ("settings", "associations", "why"),
    [
        ({"AllowAccounts": "physics,maths"}, "chemistry||normal\n", "for other accounts"),
        ({"AllowAccounts": "physics"}, "physics|cpu|normal\n", "for other accounts"),
        ({"AllowAccounts": "physics"}, "", "for other accounts"),
        ({"DenyAccounts": "chemistry"}, "chemistry||normal\n", "for other accounts"),
        ({"AllowGroups": "wheel"}, "chemistry||normal\n", "for other groups"),
        ({"AllowQos": "urgent"}, "chemistry||normal,long\n", "for other QOS"),
        ({"State": "DOWN"}, "chemistry||normal\n", "the partition is DOWN"),
        ({"AllowAccounts": "physics,chemistry"}, "chemistry||normal\n", ""),
        ({"AllowAccounts": "physics"}, "physics|theirs|normal\n", ""),
        ({"AllowGroups": "wheel,staff"}, "chemistry||normal\n", ""),
        ({"AllowQos": "urgent,long"}, "chemistry||normal,long\n", ""),
        ({}, "", ""),
    ],
)
def test_who_may_use_a_partition(settings: dict[str, str], associations: str, why: str) -> None:
    row = gpus(partition("theirs", **settings), associations)["theirs v100"]
    assert " ".join(row).endswith(why) if why else row[2:6] == ["2", "0", "0", "2"]


def test_what_could_not_be_asked_is_said() -> None:
    text = view("slurm_gpus", NODES, partition("theirs", AllowAccounts="physics"), None)
    assert "could not be asked about your accounts" in text and "not for you" not in text
    assert "could not be asked about your partitions" in view("slurm_gpus", NODES, None, "")


def test_a_cluster_without_gpus() -> None:
    text = view("slurm_gpus", "cpu|idle|9|(null)|gpu:0|c[1-9]|\n", partition("cpu"), "")
    assert text == "This cluster has no GPUs that Slurm knows of.\n"
