"""A call is made once: not twice in a run, not again after an interruption, by however many threads."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scripted_llm import ScriptedLlm, Step, breaks, fails, says

from hyce.config import Config, Llm, Role
from hyce.errors import ConfigError, EndpointError, PolicyError, StoreError
from hyce.evaluate.calls import Calls, Recorded, ask, attempt_client
from hyce.evaluate.journal import Journal
from hyce.llm import ChatClient, client_for
from hyce.records import Message

QUESTION: list[Message] = [{"role": "user", "content": "How many nodes?"}]
SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}}
KEY = "sk-canary-0123456789abcdefghij"


def config_for(url: str, **changes: Any) -> Config:
    values: dict[str, Any] = {"base_url": url, "model": "tiny", "retries": 0, "timeout": 30.0} | changes
    return Config(llm=Llm(**values))


@contextmanager
def calls_in(folder: Path) -> Iterator[Calls]:
    with Journal(folder / "calls.jsonl") as journal:
        yield Calls(journal)


def numbered() -> Step:
    """A reply that says which of the replies it is."""
    count = iter(range(1, 1000))

    def step(exchange: Any) -> None:
        says(f"Reply {next(count)}.", usage=(10, 5))(exchange)

    return step


@pytest.fixture
def server() -> Iterator[ScriptedLlm]:
    with ScriptedLlm(numbered()) as server:
        yield server


@pytest.fixture
def client(server: ScriptedLlm) -> Iterator[ChatClient]:
    with ChatClient(config_for(server.url)) as client:
        yield client


def test_the_same_request_is_made_once(tmp_path: Path, server: ScriptedLlm, client: ChatClient) -> None:
    shown: list[str] = []
    with calls_in(tmp_path) as calls:
        model = Recorded(client, calls, "judge")
        first = model.complete(QUESTION)
        second = model.complete(QUESTION, on_text=shown.append)
        assert (calls.made, calls.tokens) == (1, 15)
    assert first == second
    assert first.text == "Reply 1."
    assert shown == ["Reply 1."]
    assert len(server.requests) == 1
    assert [call.recorded for call in model.made] == [False, True]
    assert model.made[0].seconds > 0
    assert model.made[1].seconds == pytest.approx(model.made[0].seconds, abs=0.001)


def test_many_threads_make_it_once(tmp_path: Path, server: ScriptedLlm, client: ChatClient) -> None:
    together = threading.Barrier(20)

    def complete(number: int) -> str:
        together.wait(60)
        question = [{"role": "user", "content": f"Question {number % 4}"}]
        return Recorded(client, calls, "answer").complete(question).text

    with calls_in(tmp_path) as calls, ThreadPoolExecutor(20) as pool:
        texts = list(pool.map(complete, range(20)))
        assert calls.made == 4
    assert len(server.requests) == 4
    assert len(set(texts)) == 4
    assert texts == texts[:4] * 5


def test_it_survives_reopening(tmp_path: Path, server: ScriptedLlm, client: ChatClient) -> None:
    with calls_in(tmp_path) as calls:
        first = Recorded(client, calls, "judge").complete(QUESTION, schema=SCHEMA)
    with calls_in(tmp_path) as calls:
        assert Recorded(client, calls, "judge").complete(QUESTION, schema=SCHEMA) == first
        assert (calls.made, calls.tokens) == (0, 0)
    assert len(server.requests) == 1


def test_notices_and_counts_of_a_reply_survive(tmp_path: Path) -> None:
    with ScriptedLlm(says("Four", finish="length")) as server, ChatClient(config_for(server.url)) as client:
        replies = []
        for _ in range(2):
            with calls_in(tmp_path) as calls:
                replies.append(Recorded(client, calls, "answer").complete(QUESTION))
                assert calls.tokens == 0  # an endpoint that doesn't count
    assert replies[0] == replies[1]
    assert "breaks off" in replies[1].notices[0]
    assert len(server.requests) == 1


def test_whatever_a_reply_depends_on_makes_another_call(tmp_path: Path, server: ScriptedLlm) -> None:
    config = config_for(server.url)
    variants: list[tuple[dict[str, Any], Sequence[Message], dict[str, Any] | None, int]] = [
        ({}, QUESTION, None, 1),
        ({}, QUESTION, None, 2),
        ({}, [{"role": "system", "content": "How many nodes?"}], None, 1),
        ({}, [{"role": "user", "content": "How many cores?"}], None, 1),
        ({}, [*QUESTION, *QUESTION], None, 1),
        ({}, QUESTION, SCHEMA, 1),
        ({"model": "other"}, QUESTION, None, 1),
        ({"seed": 7}, QUESTION, None, 1),
        ({"temperature": 0.5}, QUESTION, None, 1),
        ({"max_output_tokens": 100}, QUESTION, None, 1),
        ({"base_url": server.url + "/"}, QUESTION, None, 1),
        ({"base_url": f"{server.origin}/other/v1"}, QUESTION, None, 1),
    ]
    same = 1  # of these, a slash at the end changes nothing
    with calls_in(tmp_path) as calls:
        for changes, messages, schema, repeat in variants * 2:
            llm = replace(config.llm, **changes)
            with ChatClient(replace(config, llm=llm)) as client:
                Recorded(client, calls, "judge", repeat).complete(messages, schema=schema)
        assert calls.made == len(variants) - same
    assert len(server.requests) == calls.made


@pytest.mark.parametrize("changes", [{"stream": False}, {"timeout": 5.0}, {"retries": 9}])
def test_how_a_reply_comes_makes_no_other_call(
    tmp_path: Path, server: ScriptedLlm, client: ChatClient, changes: dict[str, Any]
) -> None:
    with calls_in(tmp_path) as calls:
        Recorded(client, calls, "judge").complete(QUESTION)
        with ChatClient(config_for(server.url, **changes)) as other:
            Recorded(other, calls, "second_judge").complete(QUESTION)
    assert len(server.requests) == 1


def test_failures_are_not_recorded(tmp_path: Path) -> None:
    steps = (fails(500, "broken"), fails(400, "too long"), says("Four."))
    with ScriptedLlm(*steps) as server, ChatClient(config_for(server.url)) as client:
        with calls_in(tmp_path) as calls:
            model = Recorded(client, calls, "judge")
            for _ in range(2):
                with pytest.raises(EndpointError):
                    model.complete(QUESTION)
            assert (model.made, calls.made) == ([], 0)
        with calls_in(tmp_path) as calls:
            assert Recorded(client, calls, "judge").complete(QUESTION).text == "Four."
            assert calls.made == 1
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    "row", [{}, {"key": "k", "seconds": 1, "reply": {"more": 1}}, {"key": "k", "seconds": 1, "reply": None}]
)
def test_a_line_that_is_no_call_is_named(tmp_path: Path, row: dict[str, Any]) -> None:
    (tmp_path / "calls.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    with pytest.raises(StoreError, match=r"line 1 is no call .*remove that line"), calls_in(tmp_path):
        pass


def test_half_a_reply_is_a_failure(tmp_path: Path) -> None:
    steps = (breaks("It is "), says("It is ", finish=None), says("It is four."))
    with ScriptedLlm(*steps) as server, ChatClient(config_for(server.url)) as client:
        with calls_in(tmp_path) as calls:
            with pytest.raises(EndpointError, match="ended in the middle"):
                Recorded(client, calls, "judge").complete(QUESTION)
            assert calls.made == 0
        with calls_in(tmp_path) as calls:
            # A stream that says that it is over is whole, whatever else it leaves out.
            assert Recorded(client, calls, "judge").complete(QUESTION).text == "It is "
            assert (calls.made, len(server.requests)) == (1, 2)


def test_threads_that_wait_for_one_that_fails_try_it_themselves(tmp_path: Path) -> None:
    together = threading.Barrier(5)

    def complete(_: int) -> str:
        together.wait(60)
        try:
            return Recorded(client, calls, "answer").complete(QUESTION).text
        except EndpointError:
            return "failed"

    with (
        ScriptedLlm(fails(500, "broken"), fails(500, "broken"), says("Four.")) as server,
        ChatClient(config_for(server.url)) as client,
        calls_in(tmp_path) as calls,
        ThreadPoolExecutor(5) as pool,
    ):
        texts = list(pool.map(complete, range(5)))
    assert sorted(texts) == ["Four."] * 3 + ["failed"] * 2
    assert len(server.requests) == 3


def test_no_key_is_written_down(tmp_path: Path, server: ScriptedLlm) -> None:
    config = config_for(server.url, api_key_env="K")
    with calls_in(tmp_path) as calls, ChatClient(config, environ={"K": KEY}) as client:
        Recorded(client, calls, "judge").complete(QUESTION)
    assert KEY in server.requests[0].headers["authorization"]
    text = (tmp_path / "calls.jsonl").read_text("utf-8")
    assert KEY not in text
    row = json.loads(text)
    assert (row["role"], row["request"]["messages"]) == ("judge", QUESTION)


def test_a_recorded_model_is_its_client(server: ScriptedLlm, client: ChatClient, tmp_path: Path) -> None:
    with calls_in(tmp_path) as calls:
        model = Recorded(client, calls, "judge")
        assert (model.location, model.config) == (client.location, client.config)
        assert "model tiny: bad; mend it" in str(model.error("bad", "mend it"))
        model.close()
        assert model.complete(QUESTION).text == "Reply 1."  # who made the client closes it


# -- one more try ----------------------------------------------------------------------------------------


def again(messages: Sequence[Message], reply: str) -> list[Message]:
    return [*messages, {"role": "assistant", "content": reply}, {"role": "user", "content": "Again."}]


def number(reply: str) -> int | None:
    return int(reply) if reply.isdecimal() else None


@pytest.mark.parametrize(
    ("replies", "found"), [(["4"], 4), (["four", "5"], 5), (["four", "five", "6"], None), (["0"], 0)]
)
def test_a_reply_that_cannot_be_read_is_asked_for_once_more(
    tmp_path: Path, replies: list[str], found: int | None
) -> None:
    steps = [says(reply) for reply in replies]
    with ScriptedLlm(*steps) as server, ChatClient(config_for(server.url)) as client:
        for _ in range(2):
            with calls_in(tmp_path) as calls:
                assert ask(Recorded(client, calls, "judge"), QUESTION, again, number, SCHEMA) == found
    assert len(server.requests) == min(len(replies), 2)
    if len(replies) > 1:
        assert [message["content"] for message in server.requests[1].body["messages"]] == [
            "How many nodes?",
            "four",
            "Again.",
        ]
    assert all("response_format" in request.body for request in server.requests)


# -- passes ----------------------------------------------------------------------------------------------


def seed_of(config: Config, attempt: int) -> int:
    client = attempt_client(config, "answer", attempt)
    assert client
    return client.config.llm.seed


def test_passes_differ_in_the_seed() -> None:
    config = config_for("http://127.0.0.1:9/v1", seed=40)
    assert [seed_of(config, attempt) for attempt in (1, 2, 3)] == [40, 41, 42]
    assert [seed_of(config_for("http://127.0.0.1:9/v1", seed=-1), n) for n in (1, 2)] == [-1, -1]


def test_a_pass_uses_the_model_of_its_role() -> None:
    config = replace(config_for("http://127.0.0.1:9/v1", seed=1), roles={"judge": Role(model="large")})
    client = attempt_client(config, "judge", 2)
    assert client
    assert (client.model, client.config.llm.seed) == ("large", 2)
    assert attempt_client(Config(), "judge", 1) is None


@pytest.mark.parametrize(
    ("changes", "error"),
    [({"base_url": "https://llm.example.org/v1"}, PolicyError), ({"base_url": "ftp://x"}, ConfigError)],
)
@pytest.mark.parametrize("make", [client_for, lambda config, role: attempt_client(config, role, 1)])
def test_an_endpoint_that_may_not_be_used_is_refused_before_anything_is_sent(
    changes: dict[str, Any], error: type[Exception], make: Callable[[Config, str], Any]
) -> None:
    with pytest.raises(error):
        make(config_for("", **changes), "judge")
