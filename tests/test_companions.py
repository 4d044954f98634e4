"""A question why runs the entries that explain it beside those that answer it."""

from __future__ import annotations

import pytest

from hyce import catalogue
from hyce.companions import MOST, supporting
from hyce.records import Command, Match

ENTRIES = catalogue.load()


def always(_: Command) -> bool:
    return True


def asked(question: str, entry_id: str, **params: str) -> dict[str, Match]:
    """The companions of one entry, by their ids."""
    matches = [Match(ENTRIES[entry_id], params, 0.8)]
    return {match.command.id: match for match in supporting(question, matches, ENTRIES, always)}


@pytest.mark.parametrize(
    "question",
    [
        "why is my job 48213 waiting?",
        "How come 48213 is still in the queue?",
        "what is the reason that job 48213 is pending",
        "48213 is stuck",
        "my job 48213 doesn't start",
        "job 48213 won't even start",
        "what keeps job 48213 from starting?",
        "48213 never gets going",
        "nothing happens with 48213",
        "Why does 48213 fail to start?",
        "what is wrong with job 48213",
    ],
)
def test_why_it_waits(question: str) -> None:
    found = asked(question, "slurm.job", job_id="48213")
    assert {"slurm.priority", "slurm.reservations", "slurm.partitions"} <= set(found)
    assert "slurm.history" not in found


@pytest.mark.parametrize(
    "question",
    [
        "why did job 48213 fail?",
        "job 48213 crashed, what happened",
        "what killed 48213",
        "48213 died",
        "reason why 48213 was cancelled",
        "Why did 48213 end with TIMEOUT?",
        "explain the error of 48213",
    ],
)
def test_why_it_failed(question: str) -> None:
    found = asked(question, "slurm.job", job_id="48213")
    assert list(found) == ["slurm.efficiency", "slurm.history"]
    assert found["slurm.efficiency"].params == {"job_id": "48213"}
    assert found["slurm.history"].params == {}


@pytest.mark.parametrize(
    "question",
    [
        "what is job 48213 doing",
        "details of my job 48213",
        "when does 48213 start?",
        "list my waiting and running jobs",
        "which jobs are pending",
        "on which nodes is 48213 running",
        "has 48213 started or not?",
    ],
)
def test_other_questions_run_nothing_beside(question: str) -> None:
    assert asked(question, "slurm.job", job_id="48213") == {}
    assert asked(question, "slurm.my_jobs") == {}


def test_the_entries_about_a_failed_job_want_each_other() -> None:
    assert list(asked("why did 20114 fail", "slurm.efficiency", job_id="20114")) == [
        "slurm.job",
        "slurm.history",
    ]


def test_two_matches_that_want_each_other_run_once() -> None:
    matches = [Match(ENTRIES[name], {"job_id": "20114"}, 0.8) for name in ("slurm.efficiency", "slurm.job")]
    found = supporting("why did 20114 fail", matches, ENTRIES, always)
    assert [match.command.id for match in found] == ["slurm.history"]


def test_what_needs_a_value_that_is_missing_is_left_out() -> None:
    entries = dict(ENTRIES)
    wide = Command(
        "site.jobs",
        "Lists jobs.",
        (),
        (("squeue",),),
        diagnosis=("slurm.job", "slurm.partitions", "gone"),
    )
    matches = [Match(wide, {}, 0.7)]
    ids = [match.command.id for match in supporting("why do they wait?", matches, entries, always)]
    assert ids == ["slurm.partitions"]


def test_a_value_of_the_question_serves_a_companion() -> None:
    wide = Command("site.jobs", "Lists jobs.", (), (("squeue",),), diagnosis=("slurm.job",))
    [companion] = supporting("why does job 48213 wait?", [Match(wide, {}, 0.7)], ENTRIES, always)
    assert companion.params == {"job_id": "48213"}


def test_nothing_runs_twice_and_nothing_that_is_not_offered() -> None:
    matches = [Match(ENTRIES["slurm.my_jobs"], {}, 0.8), Match(ENTRIES["slurm.priority"], {}, 0.79)]
    found = supporting(
        "why are my jobs stuck?", matches, ENTRIES, lambda command: command.id != "slurm.reservations"
    )
    ids = [match.command.id for match in found]
    assert "slurm.priority" not in ids and "slurm.reservations" not in ids
    assert len(ids) == len(set(ids)) <= MOST
    assert "slurm.partitions" in ids


def test_no_match_no_companion() -> None:
    assert supporting("why is the sky blue?", [], ENTRIES, always) == ()


@pytest.mark.parametrize("command", ENTRIES.values(), ids=lambda command: command.id)
def test_companions_exist_and_belong_to_the_same_scheduler(command: Command) -> None:
    for entry_id in (*command.diagnosis, *command.after_failure):
        assert entry_id in ENTRIES
        assert entry_id != command.id
        assert ENTRIES[entry_id].scheduler in (None, command.scheduler)
