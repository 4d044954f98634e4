"""What two outputs prove together."""

from __future__ import annotations

import pytest

from hyce.explain import explanations, search_text
from hyce.findings import findings
from hyce.records import CommandOutput

JOB = """\
JobId=19 JobName=week-end-run
   JobState=PENDING Reason=ReqNodeNotAvail,_Reserved_for_maintenance Dependency=(null)
   RunTime=00:00:00 TimeLimit=1-00:00:00 TimeMin=N/A
   Partition=cpu AllocNode:Sid=login:3993
"""
RESERVATIONS = """\
ReservationName=course StartTime=2026-03-02T11:00:00 EndTime=2026-03-02T12:00:00 Duration=01:00:00
   Nodes=c1 NodeCnt=1 CoreCnt=4 Features=(null) PartitionName=(null) Flags=SPEC_NODES
ReservationName=maintenance StartTime=2026-03-03T00:30:00 EndTime=2026-03-03T04:30:00 Duration=04:00:00
   Nodes=c[1-2] NodeCnt=2 CoreCnt=8 Features=(null) PartitionName=(null) Flags=MAINT,IGNORE_JOBS,SPEC_NODES
"""
PARTITIONS = """\
PARTITION         AVAIL    TIMELIMIT   NODES(A/I/O/T)
cpu*                 up     12:00:00          1/1/0/2
cpu-long             up   7-00:00:00          1/1/0/2
all                  up     infinite          1/1/0/2
"""


def output(entry_id: str, command: str, stdout: str) -> CommandOutput:
    return CommandOutput(
        id=entry_id,
        argv=(tuple(command.split()),),
        status="ok",
        exit_code=0,
        stdout=stdout,
        stderr="",
        truncated=False,
        seconds=0.1,
        layers=(),
        started="2026-03-02T10:00:00+01:00",
    )


def job(text: str = JOB) -> CommandOutput:
    return output("slurm.job", "scontrol show job 19", text)


def reservations(text: str = RESERVATIONS) -> CommandOutput:
    return output("slurm.reservations", "scontrol show reservation", text)


def partitions(text: str = PARTITIONS) -> CommandOutput:
    return output("slurm.partitions", "sinfo", text)


def test_a_job_that_would_run_into_the_maintenance() -> None:
    [found] = findings([job(), reservations()])
    assert found.code == "TimeLimit=1-00:00:00"
    assert found.output == "slurm.job"
    assert "2026-03-03 00:30" in found.meaning
    assert "below 0-14:30" in found.meaning


@pytest.mark.parametrize(
    ("text", "planned"),
    [
        (JOB.replace("1-00:00:00", "14:00:00"), RESERVATIONS),
        (JOB.replace("ReqNodeNotAvail,_Reserved_for_maintenance", "Priority"), RESERVATIONS),
        (JOB.replace("PENDING", "RUNNING"), RESERVATIONS),
        (JOB, RESERVATIONS.replace("MAINT,", "")),
        (JOB, RESERVATIONS.replace("2026-03-03", "2026-02-03")),
        (JOB, RESERVATIONS.replace("2026-03-03T00:30:00", "tomorrow")),
        (JOB, "No reservations in the system\n"),
        (JOB.replace("TimeLimit=1-00:00:00", "TimeLimit=UNLIMITED"), RESERVATIONS),
    ],
)
def test_no_conflict_with_a_maintenance(text: str, planned: str) -> None:
    assert findings([job(text), reservations(planned)]) == ()


def test_more_time_than_the_partition_allows() -> None:
    [found] = findings([job(), partitions()])
    assert "12:00:00" in found.meaning


@pytest.mark.parametrize("partition", ["cpu-long", "all", "other"])
def test_no_conflict_with_the_partition(partition: str) -> None:
    assert findings([job(JOB.replace("Partition=cpu", f"Partition={partition}")), partitions()]) == ()


def test_several_jobs_prove_nothing() -> None:
    assert findings([job(JOB + "\n" + JOB), reservations(), partitions()]) == ()


def test_findings_come_before_the_codes_and_the_codes_find_the_page() -> None:
    found = explanations([job(), reservations()])
    assert [each.code for each in found] == [
        "TimeLimit=1-00:00:00",
        "ReqNodeNotAvail, Reserved for maintenance",
    ]
    assert (search_text(found) or "").startswith("ReqNodeNotAvail, Reserved for maintenance maintenance")
