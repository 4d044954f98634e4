"""What "the second one" and "it" stand for is taken from the jobs that were shown, or not at all."""

import pytest
from found import match, output

from hyce.records import Match, Turn
from hyce.references import jobs_shown, resolve

LISTED = Turn("my jobs?", "Three.", ("48210", "48213_7", "1234[].pbs"))
ONE = Turn("why is job 48213_7 waiting?", "A limit.", ("48213_7",))


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("and why is the second one waiting?", "and why is job 48213_7 waiting?"),
        ("and the third?", "and job 1234[].pbs?"),
        ("show me the script of the first job", "show me the script of job 48210"),
        ("when does the last one start?", "when does job 1234[].pbs start?"),
        ("Why is the 2nd still pending", "Why is job 48213_7 still pending"),
        ("when will the third start?", "when will job 1234[].pbs start?"),
        ("why did the second fail?", "why did job 48213_7 fail?"),
        ("what about the second of them", "what about job 48213_7"),
    ],
)
def test_an_ordinal_counts_in_the_latest_list(question: str, wanted: str) -> None:
    found = resolve(question, [LISTED, ONE])
    assert found is not None
    assert found.question == wanted
    assert found.phrase in question


@pytest.mark.parametrize("question", ["why is it waiting?", "when will that job start?", "has it failed"])
def test_it_is_the_one_job_that_the_latest_turn_was_about(question: str) -> None:
    found = resolve(question, [LISTED, ONE])
    assert found is not None
    assert found.job == "48213_7"


@pytest.mark.parametrize(
    "question",
    [
        "why is it waiting?",  # of three, nobody can tell
        "and the fourth one?",  # there are three
        "did my jobs of the last week finish?",
        "how does the first login work?",
        "was job 99123 the second one?",  # it names its job
        "what happened to my last job?",  # the latest in time, not in the list
        "how do I get more disk?",
    ],
)
def test_what_cannot_be_told_is_left_as_it_stands(question: str) -> None:
    assert resolve(question, [LISTED]) is None


@pytest.mark.parametrize(
    "question",
    [
        "is it possible to run longer?",
        "is it allowed to use conda?",
        "is it normal that the queue needs days?",
        "how long does it take to start an interactive job?",
    ],
)
def test_it_is_no_job_where_it_stands_for_nothing(question: str) -> None:
    assert resolve(question, [ONE]) is None


def test_without_a_conversation_nothing_is_meant() -> None:
    assert resolve("why is the second one waiting?", []) is None
    assert resolve("why is it waiting?", [Turn("how?", "So.")]) is None


def test_the_jobs_of_a_turn_are_those_that_its_commands_list() -> None:
    text = "JOBID NAME\n48210 relax RUNNING\n48213_[2-9] scan PENDING\n48210 again\n7.pbs x\nTotal 3 jobs\n"
    listing = match("list", scheduler="slurm")
    assert jobs_shown([listing], [output("list", text), output("companion", "999 x")]) == (
        "48210",
        "48213_[2-9]",
        "7.pbs",
    )


def test_the_numbers_of_processes_are_no_jobs() -> None:
    assert jobs_shown([match("processes")], [output("processes", "PID COMMAND\n4711 bash\n4712 vim\n")]) == ()


def test_a_job_that_the_question_names_is_the_one() -> None:
    job = match("job")
    named = Match(job.command, {"job_id": "48213"}, 0.9)
    assert jobs_shown([named], [output("job", "11 22\n33 44\n")]) == ("48213",)
