"""Each role's requests go to its own endpoint, with its own model and key, and nowhere else."""

from __future__ import annotations

import dataclasses
import datetime
import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest
from found import output
from hyce_home import Home, fails
from scripted_llm import Request, ScriptedLlm, Step, says
from scripted_llm import fails as llm_fails

from hyce import doctor
from hyce.assistant import open_assistant
from hyce.config import Commands, Config, Index, Llm, Model, Retrieval, Role, for_role, llm_setting
from hyce.errors import ConfigError, PolicyError
from hyce.llm import ChatClient, LanguageModel, client_for
from hyce.records import Command, CommandOutput
from hyce.settings import ROLES

MEMORY = "how much memory does this machine have and how much is free"
PICK = says(json.dumps({"commands": [{"id": "system.memory", "params": {}}]}))
WORDINGS = says(json.dumps({"wordings": ["free memory of this node"]}))


@dataclass
class Servers:
    """A server for each role, with a key in a variable of its own."""

    by_role: dict[str, ScriptedLlm] = field(default_factory=dict)
    stack: ExitStack = field(default_factory=ExitStack)

    def start(self, role: str, *steps: Step) -> ScriptedLlm:
        self.by_role[role] = self.stack.enter_context(ScriptedLlm(*steps))
        return self.by_role[role]

    @property
    def settings(self) -> dict[str, Any]:
        chosen: dict[str, Any] = {"llm.retries": 0}
        for role, server in self.by_role.items():
            section = f"llm.{role}" if role else "llm"
            chosen |= {
                f"{section}.base_url": server.url,
                f"{section}.model": f"model-{role}",
                f"{section}.api_key_env": self.variable(role),
            }
        return chosen

    @property
    def environ(self) -> dict[str, str]:
        return {self.variable(role): self.key(role) for role in self.by_role}

    def variable(self, role: str) -> str:
        return f"KEY_{role}".upper()

    def key(self, role: str) -> str:
        return f"key-of-{role or 'all'}-4711"

    def got(self, role: str) -> list[Request]:
        """What the role's server was sent, checked to hold its own key and no other's."""
        requests = self.by_role[role].requests
        for request in requests:
            assert request.headers["authorization"] == f"Bearer {self.key(role)}"
            assert request.body["model"] == f"model-{role}"
            for other in set(self.by_role) - {role}:
                assert self.key(other) not in request.everything
        return requests


@pytest.fixture
def servers() -> Iterator[Servers]:
    running = Servers()
    with running.stack:
        yield running


# -- who is asked what -----------------------------------------------------------------------------------


def test_each_role_gets_its_own_requests_and_its_own_key(kestrel: Home, servers: Servers) -> None:
    servers.start("answer", says("There is enough [1]."))
    servers.start("commands", PICK)
    servers.start("queries", WORDINGS)
    chosen = servers.settings | {"commands.matching": "llm", "retrieval.transform": "fusion"}
    done = kestrel.hyce("ask", MEMORY, "--json", settings=chosen, environ=servers.environ)
    assert (done.code, done.err) == (0, "")
    (answered,), (chose,), (reworded,) = (servers.got(role) for role in ("answer", "commands", "queries"))
    assert "Mem:" in answered.prompt
    assert "system.memory" in chose.prompt
    assert "wordings" in reworded.prompt
    for other in (chose, reworded):
        assert "Mem:" not in other.prompt
    assert done.json["answer"] == "There is enough [1]."
    assert done.json["searched"] == ["free memory of this node"]


def test_a_role_without_settings_of_its_own_uses_the_general_model(kestrel: Home, servers: Servers) -> None:
    servers.start("", WORDINGS, says('{"needed": "yes"}'))
    servers.start("answer", says("See [1]."))
    chosen = servers.settings | {"retrieval.transform": "fusion"}
    done = kestrel.hyce("ask", MEMORY, "--json", settings=chosen, environ=servers.environ)
    assert done.json["answer"] == "See [1]."
    assert len(servers.got("answer")) == len(servers.got("")) == 1


def test_a_role_alone_is_enough(kestrel: Home, servers: Servers) -> None:
    servers.start("answer", says("There is enough [1]."))
    chosen = servers.settings | {"retrieval.transform": "hyde", "commands.matching": "llm"}
    done = kestrel.hyce("ask", MEMORY, "--json", settings=chosen, environ=servers.environ)
    assert done.json["answer"] == "There is enough [1]."
    assert "no language model is configured" in done.err
    assert len(servers.got("answer")) == 1
    searched = kestrel.hyce("search", MEMORY, "--json", settings=chosen, environ=servers.environ)
    assert "no language model is configured" in searched.err
    assert len(servers.got("answer")) == 1


def test_without_a_model_that_answers_none_is_asked_whether_to_look_up(
    kestrel: Home, servers: Servers
) -> None:
    servers.start("queries", says('{"needed": "no"}'))
    chosen = servers.settings | {"retrieval.decide": True, "commands.enabled": False}
    done = kestrel.hyce("ask", "Thanks!", "--json", settings=chosen, environ=servers.environ)
    assert servers.got("queries") == []
    assert done.json["passages"]
    assert "No language model is configured" in done.json["notices"][0]


def test_a_match_asks_the_model_for_commands(kestrel: Home, servers: Servers) -> None:
    servers.start("", says("not this one"))
    servers.start("commands", PICK)
    chosen = servers.settings | {"commands.matching": "llm"}
    done = kestrel.hyce("match", MEMORY, "--json", settings=chosen, environ=servers.environ)
    assert [command["id"] for command in done.json["commands"]] == ["system.memory"]
    assert (len(servers.got("commands")), servers.got("")) == (1, [])


def test_drafts_are_written_by_the_model_for_commands(kestrel: Home, servers: Servers) -> None:
    servers.start("", says("not this one"))
    questions = [f"How much memory is free, way {n}?" for n in range(4)]
    draft = {"description": "Shows how much memory this machine has.", "questions": questions}
    servers.start("commands", says(json.dumps(draft)))
    done = kestrel.hyce("commands", "describe", "free -h", settings=servers.settings, environ=servers.environ)
    assert done.code == 0, done.err
    assert "model-commands" in done.out
    assert (len(servers.got("commands")), servers.got("")) == (1, [])


def test_a_preview_is_for_the_model_that_answers(kestrel: Home, servers: Servers) -> None:
    """Where it stands outside the site, what would be sent is redacted, whatever the general one is."""
    servers.start("", says("x"))
    outside = servers.start("answer", says("x"))
    policy = {"policy.outside_endpoints": [outside.url]}
    question = f"I am ann@uni.example: {MEMORY}"
    shown = kestrel.hyce(
        "ask", question, "--preview", settings=servers.settings | policy, environ=servers.environ
    )
    inside = kestrel.hyce("ask", question, "--preview", settings=servers.settings, environ=servers.environ)
    assert shown.code == inside.code == 0
    assert "ann@uni.example" in inside.out
    assert "[redacted e-mail address]" in shown.out
    assert servers.got("") == servers.got("answer") == []


def test_the_context_of_the_model_that_answers_counts(kestrel: Home, servers: Servers) -> None:
    servers.start("", says("x"))
    servers.start("answer", says("See [1]."))
    small = servers.settings | {"llm.answer.context_tokens": 1024, "commands.enabled": False}
    long = kestrel.hyce(
        "ask", "quota 7 " * 700, "--json", settings=small | servers.settings, environ=servers.environ
    )
    assert "llm.answer.context_tokens is 1024" in long.json["notices"][-1]
    assert servers.got("answer") == servers.got("") == []


# -- other ways of asking and running --------------------------------------------------------------------


@dataclass
class Stated:
    """Runs nothing; prints one line for every entry."""

    ran: list[tuple[str, str]] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)

    def run(self, command: Command, params: Mapping[str, str], question: str = "") -> CommandOutput:
        self.ran.append((command.id, question))
        return output(command.id, "Mem: 4711 GB")

    def refused(self, question: str, reason: str) -> None:
        self.refusals.append(question)


@dataclass
class Counting:
    """Makes clients, and counts what is asked of them and whether they were closed."""

    made: dict[str, ChatClient] = field(default_factory=dict)
    closed: list[str] = field(default_factory=list)

    def __call__(self, config: Config, role: str) -> LanguageModel | None:
        client = client_for(config, role)
        if client:
            self.made[role] = client
            close = client.close

            def closing() -> None:
                self.closed.append(role)
                close()

            client.close = closing  # type: ignore[method-assign]
        return client


def test_clients_runner_and_date_may_be_others(kestrel: Home, servers: Servers) -> None:
    servers.start("answer", says("It has 4711 GB [1]."))
    servers.start("commands", PICK)
    servers.start("queries", WORDINGS)
    config = Config(
        model=Model(folder=str(kestrel.models)),
        index=Index(path=str(kestrel.index)),
        commands=Commands(matching="llm"),
        retrieval=Retrieval(transform="fusion"),
        roles={
            role: Role(base_url=server.url, model=f"model-{role}") for role, server in servers.by_role.items()
        },
    )
    counting, stated = Counting(), Stated()
    leap = datetime.date(2020, 2, 29)
    with open_assistant(config, clients=counting, runner=stated, today=leap) as assistant:
        answered = assistant.answer(MEMORY)
        refused = assistant.answer("cancel job 4711")
        assert counting.closed == []
    assert set(counting.made) == set(counting.closed) == {"answer", "commands", "queries"}
    assert answered.text == "It has 4711 GB [1]."
    assert stated.ran == [("system.memory", MEMORY)]
    assert answered.sources[0].item == output("system.memory", "Mem: 4711 GB")
    (asked,) = servers.by_role["answer"].requests
    assert "Today is 2020-02-29." in asked.prompt
    assert "Mem: 4711 GB" in asked.prompt
    assert refused.refused
    assert stated.refusals == ["cancel job 4711"]


def test_without_a_model_no_client_is_made(kestrel: Home) -> None:
    config = Config(model=Model(folder=str(kestrel.models)), index=Index(path=str(kestrel.index)))
    counting, stated = Counting(), Stated()
    with open_assistant(config, use_model=False, clients=counting, runner=stated) as assistant:
        assert assistant.answer(MEMORY).text is None
    assert counting.made == {}
    assert [name for name, _ in stated.ran] == ["system.memory"]


# -- keys and addresses ----------------------------------------------------------------------------------


def test_a_key_goes_to_no_other_address(kestrel: Home, servers: Servers) -> None:
    servers.start("", says("x"))
    other = servers.start("answer", says("See [1]."))
    chosen = servers.settings
    del chosen["llm.answer.api_key_env"]
    done = kestrel.hyce("ask", MEMORY, "--json", settings=chosen, environ=servers.environ)
    assert done.code == 0
    (request,) = other.requests
    assert request.headers["authorization"] == "Bearer none"
    assert "4711" not in request.everything


@pytest.mark.parametrize("role", ROLES)
def test_settings_of_a_role_stand_above_the_general_ones(role: str) -> None:
    general = Llm(base_url="http://localhost:1/v1", model="all", api_key_env="ALL", timeout=5, seed=3)
    own = Config(llm=general, roles={role: Role(model="own", max_output_tokens=99)})
    llm = for_role(own, role).llm
    expected = dataclasses.replace(general, model="own", max_output_tokens=99)
    assert llm == expected
    elsewhere = Config(llm=general, roles={role: Role(base_url="http://localhost:2/v1")})
    llm = for_role(elsewhere, role).llm
    assert (llm.base_url, llm.model, llm.api_key_env, llm.timeout) == ("http://localhost:2/v1", "all", "", 5)
    (another,) = [name for name in ROLES if name != role][:1]
    assert for_role(elsewhere, another).llm == general


def test_an_onsite_mark_belongs_to_its_address() -> None:
    general = Llm(base_url="https://llm.site.example/v1", model="all", location="onsite")
    config = Config(llm=general, roles={"queries": Role(base_url="https://api.example/v1")})
    assert client_for(config, "answer") is not None
    with pytest.raises(PolicyError, match=r"llm\.queries\.base_url: https://api\.example/v1 is outside"):
        client_for(config, "queries")


def test_a_role_s_endpoint_that_is_not_allowed_is_refused_before_any_work(
    kestrel: Home, servers: Servers
) -> None:
    servers.start("", says("x"))
    chosen = servers.settings | {
        "llm.queries.base_url": "https://192.0.2.1/v1",
        "retrieval.transform": "hyde",
    }
    done = kestrel.hyce("ask", MEMORY, settings=chosen, environ=servers.environ)
    fails(done, "llm.queries.base_url", "nothing was sent")
    assert servers.got("") == []


def test_messages_name_the_section_where_the_setting_stands() -> None:
    config = Config(
        llm=Llm(base_url="http://localhost:1/v1", model="all"),
        roles={"answer": Role(base_url="http://localhost:2/v1", timeout=9), "queries": Role(model="own")},
    )
    answering, asking = for_role(config, "answer"), for_role(config, "queries")
    names = ("base_url", "api_key_file", "model", "timeout")
    assert [llm_setting(answering, name) for name in names] == [
        *("llm.answer.base_url", "llm.answer.api_key_file", "llm.model", "llm.answer.timeout")
    ]
    assert [llm_setting(asking, name) for name in names] == [
        *("llm.base_url", "llm.api_key_file", "llm.queries.model", "llm.timeout")
    ]
    assert llm_setting(config, "model") == "llm.model"
    broken = dataclasses.replace(config, roles={"answer": Role(base_url="nonsense")})
    with pytest.raises(ConfigError, match=r"^llm\.answer\.base_url: "):
        client_for(broken, "answer")
    keyless = Role(base_url="http://localhost:2/v1", api_key_env="NOT_SET")
    with pytest.raises(ConfigError, match=r"^llm\.answer\.api_key_env: the variable NOT_SET"):
        client_for(dataclasses.replace(config, roles={"answer": keyless}), "answer")


def test_an_error_of_a_role_s_endpoint_names_its_settings() -> None:
    with ScriptedLlm(llm_fails(401, "no")) as server:
        config = Config(llm=Llm(model="all", retries=0), roles={"answer": Role(base_url=server.url)})
        client = client_for(config, "answer")
        assert client is not None
        with client, pytest.raises(Exception, match=r"check llm\.answer\.api_key_env"):
            client.complete([{"role": "user", "content": "x"}])


# -- the doctor ------------------------------------------------------------------------------------------


def examined(home: Home, llm: Llm, roles: dict[str, Role], **sections: Any) -> list[tuple[str, str, str]]:
    config = Config(
        model=Model(folder=str(home.models)),
        index=Index(path=str(home.index)),
        llm=llm,
        roles=roles,
        **sections,
    )
    found = doctor._language_model(config)
    return [(each.state, each.subject, f"{each.text}; {each.remedy}") for each in found]


def test_the_doctor_asks_each_role_s_model(kestrel: Home) -> None:
    with ScriptedLlm(says("yes")) as general, ScriptedLlm(llm_fails(401, "no")) as broken:
        llm = Llm(base_url=general.url, model="all", retries=0)
        roles = {"queries": Role(base_url=broken.url), "answer": Role(model="own")}
        findings = examined(kestrel, llm, roles)
        asked = [request.body["model"] for request in general.requests]
    assert [finding[:2] for finding in findings] == [
        ("ok", "language model"),
        ("fail", "language model (queries)"),
        ("ok", "language model (answer)"),
    ]
    assert "check llm.queries.api_key_env" in findings[1][2]
    assert asked == ["all", "own"]


def test_the_doctor_notes_what_is_missing(kestrel: Home) -> None:
    with ScriptedLlm(says("yes")) as server:
        alone = {"answer": Role(base_url=server.url, model="own")}
        assert [finding[:2] for finding in examined(kestrel, Llm(), alone)] == [
            ("ok", "language model (answer)")
        ]
        helped = examined(kestrel, Llm(), alone, retrieval=Retrieval(transform="hyde"))
    assert helped[-1][0] == "note"
    assert "retrieval.transform is hyde, but no language model is configured" in helped[-1][2]
    nothing = examined(kestrel, Llm(), {"queries": Role(model="own")})
    assert [finding[:2] for finding in nothing] == [
        ("note", "language model"),
        ("note", "language model (queries)"),
    ]


def test_a_client_is_made_only_where_address_and_model_are_set() -> None:
    assert client_for(Config(), "answer") is None
    assert client_for(Config(roles={"answer": Role(model="own")}), "answer") is None
    whole = Config(roles={"answer": Role(base_url="http://localhost:1/v1", model="own")})
    assert isinstance(client_for(whole, "answer"), ChatClient)
    assert client_for(whole, "queries") is None
