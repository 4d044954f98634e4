"""Where nothing has to be looked up nothing is, and the reader is told; in doubt everything is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from found import HITS, match, output
from hyce_home import Home
from scripted_llm import Request, ScriptedLlm, Step, fails, says

from hyce.answer import OWN_KNOWLEDGE, answer
from hyce.citations import DROPPED
from hyce.config import Commands, Config, Llm, Policy, Site
from hyce.decide import SCHEMA, Decision, decide
from hyce.gather import Stages
from hyce.llm import ChatClient
from hyce.records import Answer, Hit, Routing, Turn

THANKS = "Thanks a lot, that helped!"
NEAR_HITS = tuple(replace(hit, similarity=0.9) for hit in HITS)
NO = says('{"needed": "no"}')


def decided(
    *steps: Step, question: str = THANKS, turns: Sequence[Turn] = (), outside: bool = False
) -> tuple[Decision, list[Request]]:
    with ScriptedLlm(*steps) as server:
        config = Config(
            site=Site(cluster="Merlin", clusters=("Merlin", "Gull")),
            llm=Llm(base_url=server.url, model="tiny", retries=0),
            policy=Policy(outside_endpoints=(server.url,) if outside else ()),
        )
        with ChatClient(config) as client:
            return decide(question, turns, client), server.requests


# -- the decision ----------------------------------------------------------------------------------------


def test_the_model_is_asked_for_yes_or_no() -> None:
    decision, (request,) = decided(NO)
    assert decision == Decision(False)
    assert request.body["response_format"]["json_schema"]["schema"] == SCHEMA
    assert request.prompt.endswith(f"Message: {THANKS}")
    assert decided(says('<think>{x}</think>{"needed": "yes"}'))[0] == Decision(True)
    assert decided(says('<think>{"needed": "yes"}</think>{"needed": "no"}'))[0] == Decision(False)


@pytest.mark.parametrize(
    "garbage", ["no", "{", '{"needed": false}', '{"needed": "No"}', '{"needed": ["no"]}', '{"answer": "no"}']
)
def test_what_is_no_plain_no_means_yes(garbage: str) -> None:
    decision, requests = decided(says(garbage))
    assert decision.needed
    assert "did not decide" in decision.notices[0]
    assert len(requests) == 1


@pytest.mark.parametrize("step", [fails(500, "down"), fails(401, "no"), says("")])
def test_an_endpoint_that_fails_means_yes(step: Step) -> None:
    decision, _ = decided(step)
    assert decision.needed
    assert "model tiny: " in decision.notices[0]


@pytest.mark.parametrize(
    "question",
    [
        "Thanks! And my job?",
        "Hello, is merlin up?",
        "hi, GULL?",
        "Write me a script",
        "squeue",
        "I ran out of space, thanks",
    ],
)
def test_a_word_about_clusters_means_yes_and_no_model_is_asked(question: str) -> None:
    decision, requests = decided(NO, question=question)
    assert (decision, requests) == (Decision(True), [])


def test_the_question_before_is_sent_along_where_it_was_answered() -> None:
    turns = (Turn("How big is my quota?", "It is 50 GB [1]."),)
    _, (request,) = decided(NO, question="Say that in French.", turns=turns)
    assert "How big is my quota?" in request.prompt
    assert "50 GB" not in request.prompt
    _, (request,) = decided(NO, turns=(Turn("How big is my quota?", ""),))
    assert "quota" not in request.prompt


def test_an_outside_model_sees_no_secrets() -> None:
    turns = (Turn("I am bob@uni.example", "Hello."),)
    _, (request,) = decided(NO, question="And I am ann@uni.example", turns=turns, outside=True)
    assert "uni.example" not in request.everything


# -- what becomes of it ----------------------------------------------------------------------------------


class Flow:
    """One question through the whole flow with a decision that is given."""

    def __init__(self, needed: bool, routing: Routing | None = None) -> None:
        self.needed = needed
        self.routing = routing or Routing()
        self.retrieved: list[str] = []
        self.decided: list[str] = []
        self.ran: list[str] = []
        self.shown: list[str] = []

    def retrieve(self, question: str) -> Sequence[Hit]:
        self.retrieved.append(question)
        return NEAR_HITS

    def decide(self, question: str, turns: Sequence[Turn]) -> Decision:
        self.decided.append(question)
        return Decision(self.needed)

    def run(self, wanted: Any) -> Any:
        self.ran.append(wanted.command.id)
        return output(wanted.command.id)

    def ask(
        self, *steps: Step, question: str = THANKS, turns: Sequence[Turn] = (), **sections: Any
    ) -> tuple[Answer, list[Request]]:
        llm = sections.pop("llm", {})
        with ScriptedLlm(*steps) as server:
            config = Config(llm=Llm(base_url=server.url, model="tiny", retries=0, **llm), **sections)
            with ChatClient(config) as client:
                result = answer(
                    question,
                    config=config,
                    stages=Stages(
                        self.retrieve,
                        lambda question, hits: (self.routing, hits),
                        self.run,
                        decide=self.decide,
                    ),
                    client=client,
                    turns=turns,
                    on_text=self.shown.append,
                )
            return result, server.requests


def test_an_answer_without_any_source_says_so_and_cites_nothing() -> None:
    flow = Flow(needed=False)
    result, (request,) = flow.ask(says("You're welcome", " [1]!"))
    assert flow.retrieved == []
    assert result.text == "".join(flow.shown) == "You're welcome!"
    assert (result.citations, result.hits) == ((), ())
    assert result.notices == (DROPPED, OWN_KNOWLEDGE)
    assert "decide" in result.timings_ms and "retrieve" not in result.timings_ms
    assert "nothing was looked up" in request.prompt
    assert "There are no sources" not in request.prompt
    assert not result.failed


def test_where_documentation_is_needed_all_is_as_without_the_decision() -> None:
    flow = Flow(needed=True)
    result, (request,) = flow.ask(says("Use sbatch [1]."))
    assert flow.retrieved == [THANKS]
    assert result.notices == ()
    assert "Use --gres." in request.prompt


@pytest.mark.parametrize(
    "routing", [Routing(commands=(match("squeue"),)), Routing(ask_back="Which job?"), Routing(refused="No.")]
)
def test_a_command_that_matches_or_is_refused_means_that_documentation_is_needed(routing: Routing) -> None:
    flow = Flow(needed=False, routing=routing)
    result, requests = flow.ask(says("See [1]."))
    assert flow.retrieved == [THANKS]
    assert result.hits == NEAR_HITS
    assert OWN_KNOWLEDGE not in result.notices
    assert len(requests) == (0 if routing.refused else 1)


def test_where_commands_compete_with_passages_none_runs_without_a_search() -> None:
    flow = Flow(needed=False, routing=Routing(commands=(match("squeue"),), supporting=(match("sprio"),)))
    result, _ = flow.ask(says("You're welcome!"), commands=Commands(matching="joint"))
    assert (flow.ran, flow.retrieved, result.outputs) == ([], [], ())
    assert result.notices == (OWN_KNOWLEDGE,)


def test_a_job_that_is_meant_needs_no_decision() -> None:
    flow = Flow(needed=False)
    turns = (Turn("My jobs?", "Two [1].", ("48210", "48213")),)
    flow.ask(says("See [1]."), question="And why is the second one waiting?", turns=turns)
    assert flow.decided == []
    assert len(flow.retrieved) == 2


def test_the_last_answer_can_be_rewritten_its_citations_left_out() -> None:
    turns = (Turn("How big is my quota?", "It is 50 GB [1]."),)
    result, (request,) = Flow(needed=False).ask(
        says("50 GB."), question="Shorter, please.", turns=turns, llm={"chain_of_thought": True}
    )
    assert [message["content"] for message in request.body["messages"][1:]] == [
        "How big is my quota?",
        "It is 50 GB.",
        "Shorter, please.",
    ]
    assert result.text == "50 GB."
    assert result.notices == (OWN_KNOWLEDGE,)


def test_a_claim_to_have_run_something_is_still_marked() -> None:
    result, _ = Flow(needed=False).ask(says("I ran `squeue`: no jobs."))
    assert any("as if it had been run" in notice for notice in result.notices)


def test_an_endpoint_that_fails_leaves_nothing_to_show_but_the_reason() -> None:
    result, _ = Flow(needed=False).ask(fails(500, "down"))
    assert (result.failed, result.text, result.hits) == (True, None, ())
    assert OWN_KNOWLEDGE not in result.notices


def test_on_the_command_line(kestrel: Home) -> None:
    with ScriptedLlm(NO, says("You're welcome!"), says('{"needed": "yes"}'), says("Ask us [1].")) as server:
        chosen = {"llm.base_url": server.url, "llm.model": "tiny", "retrieval.decide": True}
        thanked = kestrel.hyce("ask", THANKS, settings=chosen)
        asked = kestrel.hyce("ask", "Whom can I ask for advice?", "--json", settings=chosen)
        assert server.requests[2].body["response_format"]["json_schema"]["schema"] == SCHEMA
    assert thanked.code == asked.code == 0
    assert thanked.out.splitlines() == [f"Note: {OWN_KNOWLEDGE}", "You're welcome!"]
    assert asked.json["passages"]
    assert list(asked.json["timings_ms"])[:2] == ["decide", "retrieve"]
    assert json.dumps(OWN_KNOWLEDGE) not in asked.out
