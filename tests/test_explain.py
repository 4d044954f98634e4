"""Codes are explained where programs print codes, and nowhere else."""

from __future__ import annotations

import re
import time

import pytest

from hyce import codes
from hyce.explain import MOST, explanations, search_text
from hyce.records import CommandOutput, Explanation, Status

STATES = """\
BOOT_FAIL BF
CANCELLED CA
COMPLETED CD
CONFIGURING CF
COMPLETING CG
DEADLINE DL
FAILED F
NODE_FAIL NF
OUT_OF_MEMORY OOM
PENDING PD
PREEMPTED PR
RUNNING R
RESV_DEL_HOLD RD
REQUEUE_FED RF
REQUEUE_HOLD RH
REQUEUED RQ
RESIZING RS
REVOKED RV
SIGNALING SI
SPECIAL_EXIT SE
STAGE_OUT SO
STOPPED ST
SUSPENDED S
TIMEOUT TO"""

REASONS = """
None Prolog Priority Dependency Resources PartitionNodeLimit PartitionTimeLimit PartitionDown
PartitionInactive JobHeldAdmin JobHeldUser BeginTime Licenses AssociationJobLimit AssociationResourceLimit
AssociationTimeLimit Reservation ReqNodeNotAvail FrontEndDown SchedDefer NodeDown BadConstraints
SystemFailure JobLaunchFailure NonZeroExitCode RaisedSignal TimeLimit InactiveLimit InvalidAccount
InvalidQOS QOSUsageThreshold QOSJobLimit QOSResourceLimit QOSTimeLimit Cleaning QOSNotAllowed
AccountNotAllowed DependencyNeverSatisfied QOSGrpCpuLimit QOSGrpCPUMinutesLimit QOSGrpCPURunMinutesLimit
QOSGrpJobsLimit QOSGrpMemLimit QOSGrpNodeLimit QOSGrpSubmitJobsLimit QOSGrpWallLimit QOSMaxCpuPerJobLimit
QOSMaxCpuMinutesPerJobLimit QOSMaxNodePerJobLimit QOSMaxWallDurationPerJobLimit QOSMaxCpuPerUserLimit
QOSMaxJobsPerUserLimit QOSMaxNodePerUserLimit QOSMaxSubmitJobPerUserLimit QOSMinCpuNotSatisfied
AssocGrpCpuLimit AssocGrpCPUMinutesLimit AssocGrpJobsLimit AssocGrpMemLimit AssocGrpSubmitJobsLimit
AssocMaxJobsLimit AssocMaxSubmitJobLimit AssocMaxWallDurationPerJobLimit JobHoldMaxRequeue
JobArrayTaskLimit BurstBufferResources BurstBufferStageIn BurstBufferOperation PowerNotAvail PowerReserved
AssocGrpUnknown AssocMaxUnknownMinutesPerJob AssocMaxCpuPerNode QOSGrpMemoryRunMinutes QOSMaxMemoryPerNode
QOSMinNode QOSGrpEnergyMinutes QOSMaxGRESPerUser QOSMinGRES QOSGrpLicense QOSMaxBBPerUser DeadLine
MaxBBPerAccount MaxJobsPerAccount MaxSubmitJobsPerAccount PartitionConfig AccountingPolicy FedJobLock
OutOfMemory MaxMemPerLimit AssocGrpBillingRunMinutes QOSMaxBillingPerNode ReservationDeleted
ReservationInvalid Constraints
"""

TABLES = ("slurm_reasons", "slurm_states", "slurm_nodes", "exits", "pbs")


def output(command: str, stdout: str, status: Status = "ok") -> CommandOutput:
    return CommandOutput(
        id="an.entry",
        argv=(tuple(command.split()),),
        status=status,
        exit_code=0 if status == "ok" else 1,
        stdout=stdout,
        stderr="",
        truncated=False,
        seconds=0.1,
        layers=(),
        started="2026-03-02T10:00:00+00:00",
    )


def shown(command: str, stdout: str) -> list[str]:
    return [each.code for each in explanations([output(command, stdout)])]


# -- the tables ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_complete(name: str) -> None:
    every = [code for entry in codes.table(name) for code in entry.codes]
    assert len(every) == len(set(every))
    for entry in codes.table(name):
        assert len(entry.meaning) > 30 and entry.meaning.endswith("."), entry
        assert entry.search or entry.weak or entry.quiet, entry


@pytest.mark.parametrize(
    "states",
    STATES.splitlines(),
)
def test_every_state_of_squeue_is_known_in_full_and_short(states: str) -> None:
    full, short = states.split()
    assert codes.slurm_state(full) is not None
    assert codes.slurm_state(full) is codes.slurm_state(short)


@pytest.mark.parametrize(
    "reason",
    REASONS.split(),
)
def test_every_reason_of_slurm_is_known(reason: str) -> None:
    assert codes.slurm_reason(reason) is not None


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("QOSMaxJobsPerUserLimit", "your jobs would have more at once than its QOS allows: running jobs"),
        ("AssocGrpCPUMinutesLimit", "All jobs under your account share a budget of compute time (cores)"),
        ("QOSGrpGRES", "all jobs under its QOS together .*: GPUs"),
        ("QOSMaxMemoryPerNode", "more than its QOS allows one job on each node: memory"),
        ("MaxNodePerAccount", "the jobs of your account would have more .*: nodes"),
        ("QOSMinCpuNotSatisfied", "less than its QOS demands: cores"),
        ("QOSMaxWallDurationPerJobLimit", "allows one job: run time. It won't start"),
        ("AssocMaxSubmitJobLimit", "than your account allows: jobs in the queue"),
        ("AssocGrpCPURunMinutesLimit", "cores, times the time asked for.*shorter time limit"),
    ],
)
def test_names_of_limits_are_put_into_words(name: str, says: str) -> None:
    code = codes.slurm_reason(name)
    assert code is not None
    assert re.search(says.replace("(", r"\(").replace(")", r"\)"), code.meaning), code.meaning


@pytest.mark.parametrize("word", ["MaxJobs", "GrpTRES", "QOSMaxPiesPerUser", "Priorities", "", "(null)"])
def test_other_words_are_no_reasons(word: str) -> None:
    assert codes.slurm_reason(word) is None


@pytest.mark.parametrize(
    ("exit_code", "says"),
    [
        ("127:0", "not found"),
        ("126:0", "could not be run"),
        ("0:9", "SIGKILL"),
        ("137:0", "SIGKILL"),
        ("139:0", "SIGSEGV"),
        ("134:0", "SIGABRT"),
        ("0:15", "SIGTERM"),
        ("143:0", "SIGTERM"),
        ("0:125", "memory"),
        ("0:53", "output file"),
        ("1:0", "general sign"),
        ("42:0", "up to that program"),
        ("255:0", "up to that program"),
    ],
)
def test_exit_codes_of_slurm(exit_code: str, says: str) -> None:
    code = codes.slurm_exit(exit_code)
    assert code is not None and says in code.meaning


def test_an_exit_code_of_zero_says_nothing() -> None:
    assert codes.slurm_exit("0:0") is None
    assert codes.pbs_exit(0) is None


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (271, "SIGTERM"),
        (265, "SIGKILL"),
        (137, "SIGKILL"),
        (-29, "walltime"),
        (-27, "memory"),
        (-3, "isn't the cause"),
        (1, "general sign"),
        (127, "not found"),
    ],
)
def test_exit_statuses_of_pbs(status: int, says: str) -> None:
    code = codes.pbs_exit(status)
    assert code is not None and says in code.meaning


# -- Slurm -----------------------------------------------------------------------------------------------

SQUEUE = """\
         JOBID    PARTITION                     NAME      STATE         TIME   TIME_LIMIT NODES  CPUS           START_TIME NODELIST(REASON)
         48213          cpu               (Priority)    PENDING         0:00      4:00:00     1     2                  N/A (QOSMaxJobsPerUserLimit)
         48210          cpu        Reason=BadConstra    RUNNING        12:04      4:00:00     1     2  2026-03-02T09:00:00 c1
   48200_[1-4]          cpu             after FAILED    PENDING         0:00        30:00     1     1                  N/A (JobArrayTaskLimit)
"""  # noqa: E501


def test_reasons_of_waiting_jobs() -> None:
    assert shown("squeue --me", SQUEUE) == ["QOSMaxJobsPerUserLimit", "JobArrayTaskLimit"]


def test_what_others_name_their_jobs_is_no_code() -> None:
    names = SQUEUE.replace("(QOSMaxJobsPerUserLimit)", "(None)").replace("(JobArrayTaskLimit)", "(None)")
    assert shown("squeue --me", names) == ["None"]


VIEW = """\
JOBID          PARTITION  NAME            STATE    TIME   REASON
48213          cpu        (Priority)  PD  PENDING  0:00   QOSMaxJobsPerUserLimit
48210          cpu        TIMEOUT         RUNNING  12:04  None
48200_[1-4]    cpu        a  FAILED  job  PENDING  0:00   ReqNodeNotAvail, UnavailableNodes:c1
"""


def test_a_table_with_columns_to_the_left() -> None:
    assert shown("squeue --me", VIEW) == ["QOSMaxJobsPerUserLimit", "ReqNodeNotAvail"]


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("ReqNodeNotAvail, UnavailableNodes:cn[1-3]", "ReqNodeNotAvail"),
        ("ReqNodeNotAvail(Unavailable:cn7)", "ReqNodeNotAvail"),
        ("ReqNodeNotAvail, Reserved for maintenance", "ReqNodeNotAvail, Reserved for maintenance"),
        ("launch failed requeued held", "launch failed requeued held"),
        (
            "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions",
            "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions",
        ),
    ],
)
def test_reasons_that_are_phrases(reason: str, code: str) -> None:
    assert shown("squeue --me", SQUEUE.replace("QOSMaxJobsPerUserLimit", reason))[0] == code
    field = reason.replace(" ", "_")
    assert shown("scontrol show job 1", f"   JobState=PENDING Reason={field} Dependency=(null)\n") == [code]


SCONTROL = """\
JobId=48213 JobName=x JobState=FAILED Reason=OutOfMemory
   UserId=alice(1001) GroupId=alice(1001) MCS_label=N/A
   JobState=PENDING Reason=Dependency Dependency=afterok:48210(unfulfilled)
   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0
   Comment=Reason=TimeLimit
"""


def test_one_job_of_scontrol() -> None:
    """Its name and comment are its owner's own words."""
    assert shown("scontrol show job 48213", SCONTROL) == ["Dependency"]


def test_a_failed_job_of_scontrol() -> None:
    text = SCONTROL.replace("PENDING Reason=Dependency", "FAILED Reason=NonZeroExitCode")
    assert shown("scontrol show job 48213", text.replace("ExitCode=0:0", "ExitCode=127:0")) == ["127:0"]
    assert shown("scontrol show job 48213", text.replace("ExitCode=0:0", "ExitCode=1:0")) == ["1:0"]


@pytest.mark.parametrize("state", ["RUNNING Reason=None", "COMPLETED Reason=None"])
def test_a_job_that_runs_or_ended_well_needs_no_explanation(state: str) -> None:
    assert shown("scontrol show job 1", SCONTROL.replace("PENDING Reason=Dependency", state)) == []


SACCT = """\
           JobID              JobName    Partition                State ExitCode
---------------- -------------------- ------------ -------------------- --------
           48213                   ok          cpu            COMPLETED      0:0
           48214               FAILED          cpu        OUT_OF_MEMORY    0:125
         48215_3         lost TIMEOUT          cpu      CANCELLED by 0       0:0
           48216                sweep          cpu               FAILED    127:0
"""


def test_ends_of_jobs() -> None:
    assert shown("sacct -X --starttime=now-7days", SACCT) == ["OUT_OF_MEMORY", "CANCELLED", "127:0"]


def test_a_state_that_is_cut_off() -> None:
    text = """\
JobID             State ExitCode
------------ ---------- --------
7            OUT_OF_ME+    0:125
"""
    assert shown("sacct", text) == ["OUT_OF_MEMORY"]


def test_a_table_with_bars() -> None:
    assert shown(
        "sacct -P", "JobID|JobName|State|ExitCode\n7|a b|TIMEOUT|0:0\n8|TIMEOUT|COMPLETED|0:0\n"
    ) == ["TIMEOUT"]


STEPS = """\
               JobID              State ExitCode     MaxRSS
-------------------- ------------------ -------- ----------
               48213             FAILED      1:0
         48213.batch             FAILED      1:0      0.10G
             48213.0             FAILED     0:11      3.90G
"""


def test_what_a_step_tells_beyond_the_job() -> None:
    assert shown("sacct -j 48213", STEPS) == ["0:11", "1:0"]
    late = STEPS.replace("            FAILED     0:11", "     OUT_OF_MEMORY    0:125")
    assert shown("sacct -j 48213", late)[0] == "OUT_OF_MEMORY"


def test_steps_that_the_end_of_the_job_ended_tell_nothing() -> None:
    text = STEPS.replace("48213             FAILED      1:0", "48213            TIMEOUT      0:0")
    assert shown("sacct -j 48213", text) == ["TIMEOUT"]


def test_seff() -> None:
    assert shown("seff 7", "Job ID: 7\nState: OUT_OF_MEMORY (exit code 0)\nCores: 4\n") == ["OUT_OF_MEMORY"]
    assert shown("seff 7", "Job ID: 7\nState: FAILED (exit code 139)\n") == ["139:0"]
    assert shown("seff 7", "Job ID: 7\nState: COMPLETED (exit code 0)\n") == []


def test_what_hyce_makes_of_the_accounting() -> None:
    text = """\
Job: 7 (State: TIMEOUT (exit code 9))
State: FAILED (exit code 1)
Step 7.0 (State): FAILED (exit code 2): TIMEOUT): FAILED (ended by signal 11, SIGSEGV)
"""
    assert shown("sacct -j 7", text) == ["0:11", "1:0"]
    assert shown("sacct -j 7", text.replace("State: FAILED", "State: CANCELLED by 0")) == ["CANCELLED"]
    gone = "The job is not in the queue any more. The accounting has of it:\n\n"
    gone += "JobID  State    ExitCode  JobName\n7      TIMEOUT  0:0       FAILED\n"
    assert shown("squeue --me --noheader", gone) == ["TIMEOUT"]


def test_a_node() -> None:
    text = "NodeName=c1 Arch=x86_64\n   State=DOWN*+DRAIN ThreadsPerCore=1\n   Reason=IDLE fan [root@x]\n"
    assert shown("scontrol show node c1", text) == ["DOWN", "*", "DRAIN"]
    assert shown("scontrol show node c1", "NodeName=c1\n   State=MIXED ThreadsPerCore=1\n") == []


def test_programs_that_print_no_jobs_are_not_read() -> None:
    assert shown("df -h", SACCT) == []
    assert shown("squeue --noheader", "     12 cpu PENDING\n      3 gpu RUNNING\n") == []


# -- PBS -------------------------------------------------------------------------------------------------

QSTAT = """\
Job Id: 48213.pbs01
    Job_Name = job_state = H
    job_state = Q
    Output_Path = login1:/home/alice/Exit_status = 271
    comment = Not Running: Insufficient amount of resource: ngpus (R: 4 A: 0 T:
\t 8)
"""


def test_a_job_of_pbs() -> None:
    assert shown("qstat -x -f 48213", QSTAT) == ["Insufficient amount of resource"]
    ended = QSTAT.replace("job_state = Q", "job_state = F").replace("Not Running: Insufficient", "Job run at")
    assert shown("qstat -x -f 48213", ended + "    Exit_status = -29\n") == ["-29"]
    assert shown("qstat -x -f 48213", ended + "    Exit_status = 0\n") == []


def test_an_ended_job_of_pbs_says_most_in_its_comment() -> None:
    text = "  job_state = F: finished\n  comment = Job run at Thu and exceeded resource walltime\n"
    assert shown("qstat -x -f 1", text + "  Exit_status = 271\n") == ["exceeded resource walltime", "271"]


def test_a_job_of_pbs_as_json() -> None:
    text = '{"Jobs": {"1.s": {"job_state": "H", "comment": "Job held by alice on Mon", "Job_Name": "Q"}}}'
    assert shown("qstat -f -F json 1", text) == ["Job held"]
    assert shown("qstat -f -F json 1", '{"Jobs": [') == []


QSTAT_LIST = """\

pbs01:
                                                                 Req'd  Req'd   Elap
Job ID               Username Queue    Jobname    SessID NDS TSK Memory Time  S Time
-------------------- -------- -------- ---------- ------ --- --- ------ ----- - -----
48213.pbs01          alice    workq    Not_Runnin    --    1   4    8gb 24:00 Q   --
    --
   Not Running: User has reached queue workq running job limit.
48214.pbs01          alice    workq    S H           --    1   4    8gb 24:00 H   --
    --
48215.pbs01          alice    workq    run         4711    1   4    8gb 24:00 R 01:02
   c1/0*4
   Job run at Mon Mar 02 at 09:00 on (c1:ncpus=4)
"""


def test_a_list_of_pbs() -> None:
    assert set(shown("qstat -n -s -w -u alice", QSTAT_LIST)) == {"running job limit", "H"}


@pytest.mark.parametrize(
    ("comment", "code"),
    [
        (
            "Not Running: Job would conflict with reservation or top job",
            "Job would conflict with reservation",
        ),
        ("Not Running: Queue not started.", "Queue not started"),
        (
            "Not Running: Server per-user limit reached on resource ncpus",
            "per-user limit reached on resource",
        ),
        ("Not Running: would exceed user alice's limit on resource ngpus in queue gpu", "would exceed user"),
        ("Not Running: Job would cross dedicated time boundary", "cross dedicated time boundary"),
        ("Not Running: Not enough free nodes available", "Not enough free nodes available"),
        ("Can Never Run: Insufficient amount of resource: mem", "Insufficient amount of resource"),
        ("Can Never Run: can't fit in the largest placement set", "fit in the largest placement set"),
        (
            "Not Running: Insufficient amount of queue resource: ncpus",
            "Insufficient amount of queue resource",
        ),
        ("Not Running: something new", "Not Running"),
    ],
)
def test_comments_of_pbs(comment: str, code: str) -> None:
    found = codes.pbs_comment(comment)
    assert found is not None
    assert any(code in each for each in found.codes)


def test_a_job_that_runs_has_a_comment_without_a_code() -> None:
    assert codes.pbs_comment("Job run at Mon Mar 02 at 09:00 on (c1:ncpus=4)") is None


# -- together --------------------------------------------------------------------------------------------


def test_other_jobs_are_left_out_where_one_was_asked_for() -> None:
    found = explanations([output("scontrol show job 48213", SCONTROL), output("squeue --me --start", SQUEUE)])
    assert [each.code for each in found] == ["Dependency"]


def test_the_ends_of_other_jobs_explain_nothing_about_one_that_is_unknown() -> None:
    unknown = output("sacct -j 999", "Slurm's accounting knows no job of yours with this number.\n")
    assert explanations([unknown, output("sacct -X", SACCT)]) == ()
    gone = output("scontrol show job 999", "", status="failed")
    assert explanations([gone, output("sacct -X", SACCT)]) == ()


def test_output_of_a_command_that_failed_is_not_read() -> None:
    assert explanations([output("squeue --me", SQUEUE, status="failed")]) == ()


def test_the_most_telling_come_first_and_few_are_shown() -> None:
    reasons = ["Priority", "None", "Licenses", "BeginTime", "Dependency", "JobHeldUser", "Cleaning"]
    text = "JOBID STATE   NODELIST(REASON)\n" + "".join(f"    1 PENDING ({each})\n" for each in reasons)
    found = shown("squeue --me", text)
    assert found == ["Licenses", "BeginTime", "Dependency", "JobHeldUser"]
    assert len(found) == MOST


def test_an_explanation_holds_nothing_of_the_output_but_the_code() -> None:
    name = SQUEUE.replace("QOSMaxJobsPerUserLimit", "ReqNodeNotAvail, UnavailableNodes:delete-everything")
    [first, *_] = explanations([output("squeue --me", name)])
    assert "delete" not in first.code + first.meaning


def test_the_sites_own_page_is_looked_up_by_code_and_reason() -> None:
    found = explanations([output("squeue --me", SQUEUE)])
    text = search_text(found)
    assert text is not None
    assert text.startswith("QOSMaxJobsPerUserLimit limit jobs per user QOS")
    assert "JobArrayTaskLimit" in text


@pytest.mark.parametrize(
    ("command", "text", "word"),
    [
        ("sacct -j 48214", SACCT, "memory"),
        ("qstat -x -f 48213", QSTAT, "queue"),
        ("qstat -x -f 48213", "    job_state = F\n    Exit_status = 271\n", "time limit"),
        ("scontrol show node c1", "   State=DOWN\n", "node"),
        ("qstat -x -f 48213", "    job_state = H\n", "qrls"),
    ],
)
def test_what_is_looked_up_for_other_codes(command: str, text: str, word: str) -> None:
    assert word in (search_text(explanations([output(command, text)])) or "")


def test_nothing_to_look_up() -> None:
    assert search_text(()) is None
    found = explanations([output("squeue --me", SQUEUE.replace("QOSMaxJobsPerUserLimit", "None"))])
    nothing = [each for each in found if each.code == "None"]
    assert nothing and isinstance(nothing[0], Explanation)
    assert search_text(nothing) is None


@pytest.mark.parametrize(
    "command", ["squeue --me", "scontrol show job 1", "scontrol show node x", "qstat -f 1"]
)
@pytest.mark.parametrize(
    "text", ["\n" * 65_536, "    \n" * 13_000, f"JOBID STATE\n{'-' * 65_000}x\n", '{"Jobs":' + "[" * 60_000]
)
def test_output_that_is_made_to_take_long_does_not(command: str, text: str) -> None:
    begun = time.process_time()
    assert explanations([output(command, text)]) == ()
    assert time.process_time() - begun < 2
