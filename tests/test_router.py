"""The three ways of matching, as a user sets them, and the companions of a question why."""

from __future__ import annotations

import json
from typing import Any

from hyce_home import Home
from scripted_llm import ScriptedLlm, fails, says

FREE = "How much memory does this machine have, and how much of it is free?"
WHY = "why is my job 48213 still waiting?"


def matched(home: Home, question: str, **settings: Any) -> Any:
    values = {name.replace("__", "."): value for name, value in settings.items()}
    arguments = ("match", question, "--assume-available", "--scheduler", "slurm", "--json")
    return home.hyce(*arguments, settings=values).json


def ids(rows: list[dict[str, Any]]) -> list[str]:
    return [row["id"] for row in rows]


def test_why_brings_companions_and_a_plain_question_none(kestrel: Home) -> None:
    found = matched(kestrel, WHY)
    assert found["commands"][0]["id"] == "slurm.job"
    companions = ids(found["supporting"])
    assert "slurm.priority" in companions
    assert not set(companions) & set(ids(found["commands"]))
    assert matched(kestrel, "tell me everything about job 48213")["supporting"] == []


def test_joint_lets_descriptions_compete_with_passages(kestrel: Home) -> None:
    found = matched(kestrel, FREE, commands__matching="joint")
    assert "system.memory" in ids(found["commands"])
    scores = [row["score"] for row in found["commands"]]
    assert scores == sorted(scores, reverse=True)
    # Fewer places, fewer commands: they share them with the passages.
    few = matched(kestrel, FREE, commands__matching="joint", retrieval__passages=1)
    assert len(few["commands"]) <= 1
    assert matched(kestrel, "cancel all my jobs", commands__matching="joint")["refused"]


def test_joint_takes_places_from_passages(kestrel: Home) -> None:
    asked = kestrel.hyce("ask", FREE, "--no-llm", "--json", settings={"commands.matching": "joint"}).json
    assert len(asked["passages"]) + len(asked["commands"]) <= 6
    assert "system.memory" in ids(asked["commands"])


def test_the_model_chooses(kestrel: Home) -> None:
    choice = {"commands": [{"id": "system.load", "params": {}}]}
    with ScriptedLlm(says(json.dumps(choice))) as server:
        found = matched(kestrel, FREE, commands__matching="llm", llm__base_url=server.url, llm__model="t")
        assert ids(found["commands"]) == ["system.load"]
        assert len(server.requests) == 1
        assert matched(
            kestrel, "cancel all my jobs", commands__matching="llm", llm__base_url=server.url, llm__model="t"
        )["refused"]
        assert len(server.requests) == 1


def test_hyces_own_choice_stands_in_for_a_models(kestrel: Home) -> None:
    own = ids(matched(kestrel, FREE)["commands"])
    for step in (fails(400, "no such model"), says("I would look at the memory.")):
        with ScriptedLlm(step) as server:
            settings = {"commands.matching": "llm", "llm.base_url": server.url, "llm.model": "t"}
            arguments = ("match", FREE, "--assume-available", "--scheduler", "slurm")
            found = kestrel.hyce(*arguments, settings=settings)
        assert found.code == 0
        assert own[0] in found.out
        assert "hyce's own choice was" in found.out
    without = kestrel.hyce("match", FREE, "--assume-available", settings={"commands.matching": "llm"})
    assert "no language model is asked" in without.out
    assert "no language model is asked" in matched(kestrel, FREE, commands__matching="llm")["notices"][0]


def test_a_preview_sends_nothing_in_this_way_either(kestrel: Home) -> None:
    with ScriptedLlm(says("{}")) as server:
        settings = {"commands.matching": "llm", "llm.base_url": server.url, "llm.model": "t"}
        shown = kestrel.hyce("ask", FREE, "--preview", settings=settings)
        assert shown.code == 0
        assert server.requests == []
        assert "the model would be asked to choose" in shown.err
