"""The model's choice of commands is input like any other: offered ids, checked values from the question."""

from __future__ import annotations

import json
from typing import Any

import pytest
from scripted_llm import ScriptedLlm, Step, fails, says

from hyce.choose import choose, schema
from hyce.config import Config, Llm, Policy
from hyce.errors import EndpointError
from hyce.llm import ChatClient
from hyce.records import Command, Match, Parameter

JOB = Command(
    "slurm.job",
    "One job by its number.",
    ("what is job 1?",),
    (("scontrol", "show", "job", "{job_id}"),),
    parameters=(Parameter("job_id", r"\d{1,10}(_\d+)?", "the job's number"),),
)
JOBS = Command("slurm.my_jobs", "All my jobs.", ("my jobs?",), (("squeue", "--me"),))
CANDIDATES = (Match(JOBS, {}, 0.5), Match(JOB, {}, 0.4))
QUESTION = "why is job 48213 waiting? mail me at ann@uni.example"


def picks(*commands: Any, **others: Any) -> Step:
    return says(json.dumps({"commands": list(commands)} | others))


def chosen(*steps: Step, question: str = QUESTION, most: int = 2, outside: bool = False) -> Any:
    with ScriptedLlm(*steps) as server:
        policy = Policy(outside_endpoints=(server.url,) if outside else ())
        config = Config(llm=Llm(base_url=server.url, model="tiny", retries=0), policy=policy)
        with ChatClient(config) as client:
            result = choose(question, CANDIDATES, client, most=most)
    return result, server.requests


def ids(matches: tuple[Match, ...] | None) -> list[tuple[str, dict[str, str]]] | None:
    return None if matches is None else [(match.command.id, dict(match.params)) for match in matches]


def test_the_model_chooses_among_what_it_is_offered() -> None:
    result, (request,) = chosen(picks({"id": "slurm.job", "params": {"job_id": "48213"}}))
    assert ids(result) == [("slurm.job", {"job_id": "48213"})]
    assert request.body["response_format"]["json_schema"]["schema"] == schema([JOBS, JOB], 2)
    assert "One job by its number." in request.prompt
    assert "scontrol" not in request.prompt
    assert QUESTION in request.prompt


def test_none_is_a_choice() -> None:
    assert chosen(picks())[0] == ()


@pytest.mark.parametrize(
    "choice",
    [
        {"id": "slurm.cancel", "params": {}},
        {"id": "slurm.job", "params": {}},
        {"id": "slurm.job", "params": {"job_id": "99999"}},  # not in the question
        {"id": "slurm.job", "params": {"job_id": "8213"}},  # a part of a number in the question
        {"id": "slurm.job", "params": {"job_id": "waiting"}},  # in the question, not of the pattern
        {"id": "slurm.job", "params": {"job_id": "48213; rm -rf ~"}},
        {"id": "slurm.job", "params": "48213"},
        {"id": ["slurm.job"], "params": {}},
        "slurm.my_jobs",
    ],
)
def test_what_is_not_valid_is_no_choice(choice: Any) -> None:
    question = "why is job 48213 waiting?"
    assert chosen(picks(choice), question=question)[0] is None


def test_the_valid_part_of_a_choice_counts_once_and_at_most_so_many() -> None:
    mine = {"id": "slurm.my_jobs", "params": {}}
    assert ids(chosen(picks({"id": "made.up"}, mine))[0]) == [("slurm.my_jobs", {})]
    assert ids(chosen(picks(mine, mine))[0]) == [("slurm.my_jobs", {})]
    job = {"id": "slurm.job", "params": {"job_id": 48213, "user": "root"}}
    assert ids(chosen(picks(job, mine), most=1)[0]) == [("slurm.job", {"job_id": "48213"})]


def test_a_reply_that_is_no_choice_is_asked_for_once_more() -> None:
    result, requests = chosen(says("I would run squeue."), picks({"id": "slurm.my_jobs", "params": {}}))
    assert ids(result) == [("slurm.my_jobs", {})]
    assert "I would run squeue." in requests[1].prompt
    result, requests = chosen(says("no"), says("again no"))
    assert (result, len(requests)) == (None, 2)


def test_an_endpoint_that_fails_is_an_error() -> None:
    with pytest.raises(EndpointError):
        chosen(fails(500, "down"))


def test_an_endpoint_without_schemas_is_asked_without_one() -> None:
    refuse = fails(400, "response_format is not supported", "response_format")
    result, requests = chosen(refuse, picks())
    assert result == ()
    assert ["response_format" in request.body for request in requests] == [True, False]


def test_an_outside_model_does_not_see_addresses() -> None:
    _, (request,) = chosen(picks(), outside=True)
    assert "ann@uni.example" not in request.everything
