"""Vectors from an endpoint: what is sent, what is taken, what is refused, and the whole command line."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hyce_home import Home, fails, wait_for
from scripted_endpoint import (
    DIMENSIONS,
    Request,
    ScriptedEndpoint,
    Step,
    answers,
    hangs_up,
    sends,
    stays_silent,
    texts,
)
from scripted_endpoint import fails as refuses
from scripted_llm import trickles
from word_embedder import WordEmbedder

from hyce.config import Config, Model, Policy, load
from hyce.embed import open_embedder
from hyce.errors import ConfigError, EndpointError, ModelError, PolicyError
from hyce.served import CHARACTERS
from hyce.served_embedder import ServedEmbedder

KEY = "sk-canary-0123456789abcdefghij"
FORMS = ["openai", "tei"]


def config_for(server: ScriptedEndpoint, **settings: Any) -> Config:
    kind = settings.setdefault("kind", "openai")
    url = server.url if kind == "openai" else server.origin
    return Config(model=Model(**{"name": "words", "base_url": url} | settings))


def embedder_for(server: ScriptedEndpoint, **settings: Any) -> ServedEmbedder:
    return ServedEmbedder(config_for(server, **settings), sleep=lambda _: None)


def failure(*steps: Step, count: int = 1, **settings: Any) -> tuple[str, list[Request]]:
    """The error's text, checked for what every such text must hold, and the requests."""
    with ScriptedEndpoint(*steps) as server:
        embedder = embedder_for(server, **settings)
        with pytest.raises(EndpointError) as caught:
            embedder.embed(["a text"] * count)
        text = str(caught.value)
        assert text.startswith(f"{config_for(server, **settings).model.base_url}, model words: ")
    assert "; " in text
    assert "\n" not in text
    assert KEY not in text
    assert len(text) < 450
    return text, server.requests


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a variable that holds the key."""
    monkeypatch.setenv("EMBEDDING_KEY", KEY)
    return "EMBEDDING_KEY"


# -- what is sent and what comes back --------------------------------------------------------------------


@pytest.mark.parametrize("kind", FORMS)
def test_each_text_gets_its_vector(kind: str) -> None:
    asked = ["where is my quota", "the queue is full", "where is my quota"]
    with ScriptedEndpoint() as server:
        embedder = embedder_for(server, kind=kind)
        found = embedder.embed(asked)
    expected = WordEmbedder(dimensions=DIMENSIONS).embed(asked)
    for embedding, wanted in zip(found, expected, strict=True):
        assert embedding.vector.dtype == np.float32
        assert np.allclose(embedding.vector, wanted.vector, atol=1e-6)
        assert np.linalg.norm(embedding.vector) == pytest.approx(1, abs=1e-6)
        assert embedding.tokens.shape == (0, DIMENSIONS)
    assert embedder.dimensions == DIMENSIONS
    assert len(server.requests) == 1


def test_the_order_is_that_of_the_texts_whatever_the_order_of_the_answer() -> None:
    def shuffled(document: Any) -> Any:
        return document | {"data": document["data"][1:] + document["data"][:1]}

    asked = [f"passage number {n}" for n in range(9)]
    with ScriptedEndpoint(answers(shuffled)) as server:
        found = embedder_for(server).embed(asked)
    expected = WordEmbedder(dimensions=DIMENSIONS).embed(asked)
    assert all(f.vector @ e.vector > 0.999 for f, e in zip(found, expected, strict=True))


@pytest.mark.parametrize(
    ("settings", "query", "path", "body"),
    [
        ({}, True, "/v1/embeddings", {"model": "words", "encoding_format": "float"}),
        (
            {"input_type": True},
            True,
            "/v1/embeddings",
            {"model": "words", "encoding_format": "float", "input_type": "query", "truncate": "END"},
        ),
        (
            {"input_type": True},
            False,
            "/v1/embeddings",
            {"model": "words", "encoding_format": "float", "input_type": "passage", "truncate": "END"},
        ),
        ({"kind": "tei"}, True, "/embed", {"truncate": True, "normalize": True}),
        (
            {"kind": "tei", "input_type": True},
            True,
            "/embed",
            {"truncate": True, "normalize": True, "prompt_name": "query"},
        ),
        ({"kind": "tei", "input_type": True}, False, "/embed", {"truncate": True, "normalize": True}),
    ],
)
def test_what_is_on_the_wire(settings: dict[str, Any], query: bool, path: str, body: dict[str, Any]) -> None:
    with ScriptedEndpoint() as server:
        embedder_for(server, **settings).embed(["one", "Zwölf"], query=query)
    (request,) = server.requests
    assert request.path == path
    sent = request.body
    assert sent.pop("inputs" if "inputs" in sent else "input") == ["one", "Zwölf"]
    assert sent == body
    assert set(request.headers) == {
        "host",
        "content-length",
        "content-type",
        "accept",
        "accept-encoding",
        "user-agent",
    }
    assert request.headers["user-agent"] == "hyce"


def test_an_address_may_be_the_whole_one() -> None:
    with ScriptedEndpoint() as server:
        embedder_for(server, base_url=f"{server.url}/embeddings").embed(["one"])
    assert server.requests[0].path == "/v1/embeddings"


def test_the_key_is_in_its_header_only(key: str) -> None:
    with ScriptedEndpoint() as server:
        embedder_for(server, api_key_env=key).embed(["one"])
    (request,) = server.requests
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.everything.count(KEY) == 1


def test_variables_for_proxies_have_no_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with ScriptedEndpoint() as server:
        assert embedder_for(server).embed(["one"])


def test_requests_hold_as_many_texts_as_the_setting_says() -> None:
    asked = [f"passage number {n}" for n in range(23)]
    with ScriptedEndpoint() as server:
        found = embedder_for(server, batch=5).embed(asked)
    expected = WordEmbedder(dimensions=DIMENSIONS).embed(asked)
    assert all(f.vector @ e.vector > 0.999 for f, e in zip(found, expected, strict=True))
    assert sorted(len(texts(request)) for request in server.requests) == [3, 5, 5, 5, 5]


def test_requests_hold_no_more_than_a_server_takes() -> None:
    long = "word " * (CHARACTERS // 8)
    with ScriptedEndpoint() as server:
        embedder_for(server, kind="tei", max_tokens=100_000).embed([long, "short", long])
    assert sorted(len(texts(request)) for request in server.requests) == [1, 2]


def test_no_text_needs_no_request() -> None:
    with ScriptedEndpoint() as server:
        assert embedder_for(server).embed([]) == []
    assert server.requests == []


def test_a_half_character_is_sent_as_a_question_mark() -> None:
    with ScriptedEndpoint() as server:
        embedder_for(server).embed(["half \ud83d"])
    assert texts(server.requests[0]) == ["half ?"]


# -- lengths ---------------------------------------------------------------------------------------------


def test_what_is_too_long_is_cut_unless_the_server_cuts() -> None:
    text = "queue " * 100
    with ScriptedEndpoint() as server:
        cuts = embedder_for(server, max_tokens=16)
        cuts.embed([text, "short"])
        embedder_for(server, max_tokens=16, input_type=True).embed([text])
        embedder_for(server, max_tokens=16, kind="tei", base_url=server.origin).embed([text])
    (cut, short), *others = [texts(request) for request in server.requests]
    assert text.startswith(cut)
    assert 10 < cuts.length(cut) <= 14
    assert short == "short"
    # Far beyond what any tokenizer makes of so many tokens, nothing is sent.
    assert others == [[text[: 16 * 32]], [text[: 16 * 32]]]


def test_a_tokenizer_measures_where_one_is_named(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    vocabulary = {"[UNK]": 0, "queue": 1}
    model = {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"}
    # As published files have it: this would make every text as long as any other.
    limits = {
        "truncation": {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0},
        "padding": None,
    }
    document = {"version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "Whitespace"}, "model": model}
    file.write_text(json.dumps(document | limits))
    with ScriptedEndpoint() as server:
        embedder = embedder_for(server, max_tokens=16, tokenizer=str(file))
        assert embedder.length("queue queue queue") == 3
        embedder.embed(["queue " * 100])
        broken = embedder_for(server, tokenizer=str(tmp_path / "none.json"))
        with pytest.raises(ConfigError, match=r"model\.tokenizer: .*none\.json"):
            broken.length("a text")
    assert texts(server.requests[0])[0].split() == ["queue"] * 14


def test_token_vectors_are_not_to_be_had() -> None:
    with ScriptedEndpoint() as server:
        embedder = embedder_for(server)
        assert not embedder.token_vectors
        with pytest.raises(ModelError, match=r"index\.token_vectors = false"):
            embedder.embed(["a"], tokens=True)
    assert server.requests == []


# -- the fingerprint -------------------------------------------------------------------------------------


def test_the_fingerprint_names_what_vectors_depend_on_and_asks_nobody() -> None:
    def fingerprint(**settings: Any) -> str:
        values = {"kind": "openai", "name": "m", "base_url": "http://127.0.0.1:1/v1"}
        return open_embedder(Config(model=Model(**values | settings))).fingerprint

    assert fingerprint() == "openai/m/512"
    assert fingerprint(base_url="http://localhost:2/v1", timeout=1.0, batch=1) == fingerprint()
    different = [
        fingerprint(),
        fingerprint(name="n"),
        fingerprint(input_type=True),
        fingerprint(max_tokens=256),
        fingerprint(kind="tei"),
    ]
    assert len(set(different)) == len(different)
    # Where the server cuts, our own limit changes nothing.
    assert fingerprint(kind="tei", max_tokens=256) == fingerprint(kind="tei")


def test_dimensions_are_asked_for_once() -> None:
    with ScriptedEndpoint(answers(dimensions=48)) as server:
        embedder = embedder_for(server)
        assert embedder.dimensions == embedder.dimensions == 48
        assert len(server.requests) == 1


# -- another try -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "pauses"),
    [
        ([refuses(429, "slow down", retry_after="7")], [7.0]),
        ([refuses(503, "loading"), refuses(500, "still loading")], [0.5, 1.0]),
        ([hangs_up], [0.5]),
        ([refuses(408, "too slow")], [0.5]),
        ([sends(200, "[1, 2", content_length="100000")], [0.5]),
    ],
)
def test_a_passing_failure_is_tried_again(steps: list[Step], pauses: list[float]) -> None:
    paused: list[float] = []
    with ScriptedEndpoint(*steps, answers()) as server:
        assert ServedEmbedder(config_for(server), sleep=paused.append).embed(["a text"])
    assert paused == pauses
    assert len({request.raw for request in server.requests}) == 1


def test_a_server_that_goes_on_failing_is_given_up() -> None:
    text, requests = failure(refuses(503, "loading"), retries=2)
    assert "the server failed (503): loading; ask again later" in text
    assert len(requests) == 3


def test_an_endpoint_that_asks_for_a_long_pause_is_given_up_at_once() -> None:
    text, requests = failure(refuses(429, "quota", retry_after="3600"))
    assert "asks to wait 3600 s" in text
    assert len(requests) == 1


def test_a_closed_port_is_named() -> None:
    with ScriptedEndpoint() as server:
        embedder = embedder_for(server, retries=1)
    with pytest.raises(
        EndpointError, match=r"Connection refused.*; check model\.base_url, and that the serv"
    ):
        embedder.embed(["a text"])


def test_silence_is_given_up() -> None:
    text, requests = failure(stays_silent, timeout=0.2)
    assert "no sign of life for 0.2 s; raise model.timeout" in text
    assert len(requests) == 1


def test_an_error_does_not_wait_for_other_requests() -> None:
    text, requests = failure(
        stays_silent, refuses(400, "no more"), stays_silent, count=3, batch=1, timeout=600.0
    )
    assert "(400): no more" in text
    assert 2 <= len(requests) <= 3


def test_an_answer_that_trickles_for_ever_is_given_up() -> None:
    text, requests = failure(trickles(*["piece"] * 200, pause=0.08), timeout=0.1)
    assert "was still answering after 1 s" in text
    assert len(requests) == 1


# -- what is refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (sends(302, "", location="http://127.0.0.1:1/v1/embeddings"), ["redirect (302)", "final address"]),
        (refuses(404, "no such model"), ["(404): no such model", "check model.base_url", "model.name"]),
        (refuses(413, "body too large"), ["(413)", "lower model.batch"]),
        (refuses(422, "batch size 40 > maximum allowed batch size 32"), ["lower model.batch"]),
        (refuses(400, "maximum context length is 512 tokens"), ["lower model.max_tokens"]),
        (sends(400, '{"detail": [{"msg": "field"}]}'), ["field", "check [model] in hyce.toml"]),
        (sends(424, '{"error": "not an embedding model"}'), ["(424)", "serves an embedding model"]),
        (refuses(401, "no key"), ["a key is wanted (401)", "set model.api_key_env or model.api_key_file"]),
        (sends(418, "\x1b[31mred\nlines"), ["(418): red lines"]),
    ],
)
def test_a_refusal_names_what_to_do(step: Step, words: list[str]) -> None:
    text, requests = failure(step)
    for word in words:
        assert word in text
    assert len(requests) == 1


@pytest.mark.parametrize("status", [401, 403, 400, 500])
def test_a_key_that_comes_back_is_not_shown(key: str, status: int) -> None:
    text, _ = failure(refuses(status, f"bad key {KEY}"), api_key_env=key, retries=0)
    assert str(status) in text
    if status in (401, 403):
        assert "bad" not in text
        assert "check model.api_key_env or model.api_key_file" in text


def numbers(value: Any) -> Callable[[Any], Any]:
    """Replaces the first vector, or one number at its start."""

    def change(document: Any) -> Any:
        first = document["data"][0]
        first["embedding"] = value if isinstance(value, list) else [value, *first["embedding"][1:]]
        return document

    return change


def indexes(*numbers: Any) -> Callable[[Any], Any]:
    def change(document: Any) -> Any:
        pairs = zip(document["data"], numbers, strict=True)
        return {"data": [item | {"index": number} for item, number in pairs]}

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (numbers(float("nan")), "sent NaN"),
        (numbers(float("inf")), "sent Infinity"),
        (numbers("0.5"), "something else than numbers"),
        (numbers(None), "something else than numbers"),
        (numbers(True), "something else than numbers"),
        (numbers([0.25]), "different lengths"),
        (numbers([]), "something else than numbers"),
        (numbers(10**400), "too large"),
        (numbers(1e300), "too large"),
        (numbers([0] * DIMENSIONS), "a vector of zeros"),
        (lambda document: {"data": document["data"][1:]}, "which vector is for which text"),
        (lambda document: {"data": document["data"][:1]}, "gave 1 vectors for 2 texts"),
        (indexes(0, 0), "which vector is for which text"),
        (indexes(0, 2), "which vector is for which text"),
        (indexes(0, "1"), "which vector is for which text"),
        (lambda document: {"data": "AAAA"}, "without a list of vectors"),
        (lambda document: document["data"], "without a list of vectors"),
        (lambda document: {"data": [1, 2]}, "which vector is for which text"),
    ],
)
def test_vectors_that_are_none_are_refused(change: Callable[[Any], Any], words: str) -> None:
    text, requests = failure(answers(change), count=2)
    assert words in text
    assert "check model.base_url, model.kind and model.name" in text
    assert len(requests) == 1


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (sends(200, "<html>Please log in</html>", "text/html; charset=utf-8"), "a web page (text/html"),
        (sends(200, "no model here", "text/plain"), "something else than JSON"),
        (sends(200, "[" * 100_000), "something else than JSON"),
        (sends(200, "9" * 100_000), "something else than JSON"),
        (sends(200, b"[0.5" + b" " * 3_000_000 + b"]"), "sent more than 1 MB"),
        (sends(200, ""), "something else than JSON"),
        (sends(204, ""), "(204)"),
    ],
)
def test_what_is_no_answer_is_refused(step: Step, words: str) -> None:
    text, _ = failure(step)
    assert words in text


@pytest.mark.parametrize("kind", FORMS)
def test_another_model_in_the_middle_is_noticed(kind: str) -> None:
    with ScriptedEndpoint(answers(), answers(dimensions=32)) as server:
        embedder = embedder_for(server, kind=kind)
        embedder.embed(["a text"])
        with pytest.raises(EndpointError, match="gave vectors of 32 numbers after such of 64"):
            embedder.embed(["a text"])
    with ScriptedEndpoint(answers(), answers(dimensions=32)) as server:
        embedder = embedder_for(server, kind=kind, batch=1)
        with pytest.raises(EndpointError, match="gave vectors of"):
            embedder.embed(["one", "two"])


def test_plain_http_where_https_is_wanted() -> None:
    with ScriptedEndpoint() as server:
        embedder = embedder_for(server, base_url=f"https{server.url[4:]}", retries=0)
        with pytest.raises(EndpointError, match="; check "):
            embedder.embed(["a text"])
    assert [request for request in server.requests if request.raw] == []


# -- the site's consent ----------------------------------------------------------------------------------


def test_without_consent_no_embedder_is_made() -> None:
    with pytest.raises(PolicyError, match=r"model\.base_url: https://api\.example/v1 is outside the site"):
        open_embedder(Config(model=Model(kind="openai", name="m", base_url="https://api.example/v1")))
    with pytest.raises(ConfigError, match=r"model\.base_url is not set"):
        open_embedder(Config(model=Model(kind="tei")))


def test_questions_are_redacted_for_an_endpoint_outside_and_passages_are_not() -> None:
    text = "write to anna@example.org about password=Hunter2x"
    with ScriptedEndpoint() as server:
        inside = config_for(server)
        outside = Config(model=inside.model, policy=Policy(outside_endpoints=(server.origin,)))
        ServedEmbedder(inside).embed([text], query=True)
        ServedEmbedder(outside).embed([text], query=True)
        ServedEmbedder(outside).embed([text])
    first, second, third = [texts(request)[0] for request in server.requests]
    assert first == third == text
    assert "anna@" not in second
    assert "Hunter2x" not in second
    assert second.startswith("write to ")


# -- the command line ------------------------------------------------------------------------------------

PAGES = {
    "storage.md": "# Quotas\n\nEach home folder has a quota of fifty gigabytes.\n",
    "queue.md": "# Waiting\n\nA pending job waits in the queue until nodes are free.\n",
    "login.md": "# Logging in\n\nUse ssh with your key to reach the login nodes.\n",
}


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    for name, text in PAGES.items():
        (folder / name).write_text(text)
    return folder


def settings_for(server: ScriptedEndpoint, **more: Any) -> dict[str, Any]:
    return {"model.kind": "openai", "model.name": "words", "model.base_url": server.url, **more}


@pytest.fixture(scope="module")
def indexed(docs: Path, tmp_path_factory: pytest.TempPathFactory, model_folder: Path) -> Home:
    """A user's folders with an index whose vectors came from an endpoint that is down by now. It is none of
    what an index depends on where the model is served: each test has a server of its own."""
    home = Home(tmp_path_factory.mktemp("served"), model_folder)
    with ScriptedEndpoint() as server:
        made = home.hyce("index", str(docs), settings=settings_for(server))
    assert made.code == 0, made.err
    assert "3 pages, 3 passages in the index" in made.out
    assert "the index without token vectors takes about" in made.err
    assert "texts of the commands, once for this catalogue and model" in made.err
    # The catalogue's texts, thousands of them, went in whole batches.
    assert sum(len(texts(request)) == 32 for request in server.requests) > 50
    return home


def test_search_asks_for_one_vector(indexed: Home) -> None:
    with ScriptedEndpoint() as server:
        found = indexed.hyce(
            "search", "why is my job pending in the queue", "--json", settings=settings_for(server)
        )
    assert found.json["hits"][0]["path"] == "queue.md"
    assert texts(server.requests[0])[0] == "why is my job pending in the queue"
    assert len(server.requests) == 1


def test_ask_finds_passages_and_commands(indexed: Home) -> None:
    with ScriptedEndpoint() as server:
        asked = indexed.hyce(
            "ask", "what is the quota of a home folder", "--no-llm", settings=settings_for(server)
        )
    assert asked.code == 0
    assert "fifty gigabytes" in asked.out
    # What the catalogue's texts gave lies beside the index.
    assert sum(len(texts(request)) for request in server.requests) < 10


def test_an_unchanged_page_is_not_embedded_again(indexed: Home) -> None:
    with ScriptedEndpoint() as server:
        made = indexed.hyce("index", settings=settings_for(server))
    assert "0 passages embedded, 3 pages unchanged" in made.out
    assert [texts(request) for request in server.requests] == [["dimensions"]]


@pytest.mark.parametrize("arguments", [["search", "quota"], ["ask", "what is my quota", "--no-llm"]])
def test_an_endpoint_that_is_down_is_one_clear_line(indexed: Home, arguments: list[str]) -> None:
    with ScriptedEndpoint() as server:
        settings = settings_for(server) | {"model.retries": 0}
    fails(indexed.hyce(*arguments, settings=settings), server.url, "Connection refused", "model.base_url")


@pytest.mark.parametrize(("command", "empty"), [("search", "hits"), ("match", "commands")])
def test_a_line_for_which_the_endpoint_fails_stops_no_other(indexed: Home, command: str, empty: str) -> None:
    lines = [json.dumps({"question": f"is node c{number} free"}) for number in range(2)]
    with ScriptedEndpoint(refuses(400, "out of memory"), answers()) as server:
        done = indexed.hyce(command, "-", settings=settings_for(server), stdin="\n".join(lines))
    first, second = done.rows
    assert (done.code, first[empty], len(done.err.splitlines())) == (1, [], 1), done.err
    assert "out of memory" in first["error"]
    assert "error" not in second


def test_a_preview_tells_what_a_search_sends(indexed: Home) -> None:
    with ScriptedEndpoint() as server:
        shown = indexed.hyce("ask", "what is my quota", "--preview", settings=settings_for(server))
    assert "The question goes to the endpoint of [model]" in shown.err
    assert "Nothing was sent." not in shown.err


def test_another_model_under_the_same_name_is_noticed(indexed: Home) -> None:
    with ScriptedEndpoint(answers(dimensions=32)) as server:
        found = indexed.hyce("search", "quota", settings=settings_for(server))
        fails(found, "holds vectors of 64 dimensions", "32", "hyce index")
        other = settings_for(server) | {"model.name": "another"}
        fails(indexed.hyce("search", "quota", settings=other), "made with the model openai/words/512")


def test_an_endpoint_that_fails_while_indexing_publishes_nothing(home: Home, docs: Path) -> None:
    with ScriptedEndpoint(answers(), refuses(400, "out of memory")) as server:
        made = home.hyce("index", str(docs), settings=settings_for(server))
        assert made.code == 1
        assert "(400): out of memory" in made.err
        fails(home.hyce("search", "quota", settings=settings_for(server)), "no index here")


def test_an_interrupt_does_not_wait_for_the_endpoint(home: Home, docs: Path) -> None:
    with ScriptedEndpoint(answers(), stays_silent) as server:
        settings = settings_for(server) | {"model.timeout": 600.0, "model.batch": 1}
        process = home.start("index", str(docs), settings=settings)
        wait_for(lambda: len(server.requests) == 4)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert b"interrupted" in err
    assert b"Traceback" not in err


def test_nothing_is_sent_without_consent(indexed: Home, docs: Path) -> None:
    """0.0.0.0 is no address of this machine by name, yet reaches it: a request would be counted."""
    with ScriptedEndpoint() as server:
        url = server.url.replace("127.0.0.1", "0.0.0.0")
        settings = settings_for(server) | {"model.base_url": url}
        for arguments in (["index", str(docs)], ["search", "quota"], ["ask", "what is my quota"]):
            fails(indexed.spawn(*arguments, settings=settings), "has not consented", "model.base_url")
        told = indexed.spawn("doctor", settings=settings)
        assert "model.base_url" in told.out
        assert server.requests == []
        consent = {"policy.outside_endpoints": [url]}
        assert indexed.spawn("search", "quota", settings=settings | consent).code == 0
        assert len(server.requests) == 1


def test_the_doctor_names_a_model_that_answers(indexed: Home) -> None:
    with ScriptedEndpoint() as server:
        told = indexed.hyce("doctor", settings=settings_for(server))
    assert f"words, 64 dimensions, at {server.url}" in told.out
    assert "An endpoint gives none: set retrieval.rerank to cross-encoder, endpoint or none." in told.out


def test_the_doctor_tells_of_a_model_that_gives_senseless_vectors(home: Home) -> None:
    def same(document: Any) -> Any:
        return {"data": [item | {"embedding": [1.0, 2.0]} for item in document["data"]]}

    with ScriptedEndpoint(answers(same)) as server:
        told = home.hyce("doctor", settings=settings_for(server))
    assert told.code == 1
    assert "senseless vectors" in told.out
    assert "what the endpoint serves" in told.out


def test_the_settings_are_read_from_a_file(home: Home) -> None:
    settings = {"model.kind": "tei", "model.base_url": "http://localhost:8080", "model.batch": 8}
    config = load(home.settings(settings), environ={}, site_file=home.folder / "none")
    assert open_embedder(config).fingerprint == "tei/all-MiniLM-L6-v2"
