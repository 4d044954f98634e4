"""Scores from a reranker at an endpoint: each form's requests, what is taken, what is refused, the search."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hyce_home import Home, fails
from scripted_endpoint import Request, ScriptedEndpoint, Step, answers, hangs_up, sends, texts
from scripted_endpoint import fails as refuses

from hyce.config import Config, Policy, Reranker, Retrieval
from hyce.doctor import examine
from hyce.errors import ConfigError, EndpointError, PolicyError
from hyce.rerank import open_reranker
from hyce.served_reranker import ServedReranker

KEY = "sk-canary-0123456789abcdefghij"
QUESTION = "why is my job pending in the queue"
PASSAGES = [
    "rinse white rice",
    "a pending job waits in the queue",
    "the queue of a printer",
    "my job is pending in the queue why",
]
BEST_FIRST = [3, 1, 2, 0]
FORMS = ["nim", "tei", "cohere"]


def config_for(server: ScriptedEndpoint, form: str = "tei", **settings: Any) -> Config:
    url = server.origin if form == "tei" else server.url
    return Config(reranker=Reranker(**{"form": form, "name": "ranker", "base_url": url} | settings))


def reranker_for(server: ScriptedEndpoint, form: str = "tei", **settings: Any) -> ServedReranker:
    return ServedReranker(config_for(server, form, **settings), sleep=lambda _: None)


def failure(*steps: Step, form: str = "tei", **settings: Any) -> tuple[str, list[Request]]:
    """The error's text, checked for what every such text must hold, and the requests."""
    with ScriptedEndpoint(*steps) as server:
        reranker = reranker_for(server, form, **settings)
        with pytest.raises(EndpointError) as caught:
            reranker.score(QUESTION, PASSAGES)
        text = str(caught.value)
        assert text.startswith(f"{config_for(server, form).reranker.base_url}, model ranker: ")
    assert "; " in text
    assert "\n" not in text
    assert KEY not in text
    return text, server.requests


# -- what is sent and what comes back --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "path", "body"),
    [
        (
            "nim",
            "/v1/ranking",
            {
                "model": "ranker",
                "query": {"text": QUESTION},
                "passages": [{"text": text} for text in PASSAGES],
                "truncate": "END",
            },
        ),
        ("tei", "/rerank", {"query": QUESTION, "texts": PASSAGES, "truncate": True, "raw_scores": True}),
        (
            "cohere",
            "/v1/rerank",
            {"model": "ranker", "query": QUESTION, "documents": PASSAGES, "top_n": 4},
        ),
    ],
)
def test_each_form(form: str, path: str, body: dict[str, Any]) -> None:
    """The scores come best first and are given in the order of the passages."""
    with ScriptedEndpoint() as server:
        scores = reranker_for(server, form).score(QUESTION, PASSAGES)
    assert scores.dtype == np.float32
    assert scores.shape == (4,)
    assert np.argsort(-scores).tolist() == BEST_FIRST
    (request,) = server.requests
    assert (request.path, request.body) == (path, body)
    assert "authorization" not in request.headers


@pytest.mark.parametrize("form", FORMS)
def test_many_passages_go_in_several_requests(form: str) -> None:
    many = [f"{text} {n}" for n in range(5) for text in PASSAGES]
    with ScriptedEndpoint() as server:
        at_once = reranker_for(server, form).score(QUESTION, many)
        server.requests.clear()
        apart = reranker_for(server, form, batch=3).score(QUESTION, many)
    assert np.allclose(at_once, apart)
    assert sorted(len(texts(request)) for request in server.requests) == [2, *[3] * 6]


def test_no_passage_needs_no_request() -> None:
    with ScriptedEndpoint() as server:
        assert reranker_for(server).score(QUESTION, []).shape == (0,)
    assert server.requests == []


def test_an_address_may_be_the_whole_one() -> None:
    with ScriptedEndpoint() as server:
        url = f"{server.origin}/v1/retrieval/nvidia/ranker/reranking"
        reranker_for(server, "nim", base_url=url).score(QUESTION, PASSAGES)
    assert server.requests[0].path == "/v1/retrieval/nvidia/ranker/reranking"


def test_the_key_is_in_its_header_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKER_KEY", KEY)
    with ScriptedEndpoint() as server:
        reranker_for(server, api_key_env="RANKER_KEY").score(QUESTION, PASSAGES)
    (request,) = server.requests
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.everything.count(KEY) == 1
    text, _ = failure(refuses(401, f"bad key {KEY}"), api_key_env="RANKER_KEY")
    assert "the key was refused (401); check reranker.api_key_env" in text


@pytest.mark.parametrize("step", [refuses(429, "busy", retry_after="0"), refuses(503, "loading"), hangs_up])
def test_a_passing_failure_is_tried_again(step: Step) -> None:
    with ScriptedEndpoint(step, answers()) as server:
        assert reranker_for(server).score(QUESTION, PASSAGES).shape == (4,)
    assert len(server.requests) == 2


# -- what is refused -------------------------------------------------------------------------------------


def test_a_batch_that_is_too_large_is_refused_with_the_remedy() -> None:
    text, _ = failure(answers(most=3))
    assert "batch size 4 > maximum allowed batch size 3; lower reranker.batch" in text


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (refuses(404, "no such page"), ["(404)", "check reranker.base_url, reranker.form and reranker.name"]),
        (refuses(422, "the input is too long"), ["lower passages.size"]),
        (refuses(424, "not a classifier"), ["check that it serves a reranker"]),
        (sends(301, "", location="http://127.0.0.1:1/"), ["redirect (301)", "set reranker.base_url"]),
        (sends(200, "<html>", "text/html"), ["a web page"]),
    ],
)
def test_a_refusal_names_what_to_do(step: Step, words: list[str]) -> None:
    text, requests = failure(step)
    for word in words:
        assert word in text
    assert len(requests) == 1


def first(**fields: Any) -> Callable[[Any], Any]:
    return lambda ranks: [ranks[0] | fields, *ranks[1:]]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda ranks: ranks[:3], "scored 3 of 4 passages"),
        (lambda ranks: [], "scored 0 of 4 passages"),
        (lambda ranks: [*ranks, ranks[0]], "which score is for which passage"),
        (first(index=4), "which score is for which passage"),
        (first(index=-1), "which score is for which passage"),
        (first(index=True), "which score is for which passage"),
        (lambda ranks: [1, 2, 3, 4], "which score is for which passage"),
        (first(score=float("nan")), "sent NaN"),
        (first(score="0.5"), "something else than a number"),
        (first(score=None), "something else than a number"),
        (first(score=1e300), "something else than a number"),
        (first(score=10**400), "something else than a number"),
        (lambda ranks: {"results": ranks}, "without a list of scores"),
    ],
)
def test_scores_that_are_none_are_refused(change: Callable[[Any], Any], words: str) -> None:
    text, requests = failure(answers(change))
    assert words in text
    assert len(requests) == 1


def test_another_forms_answer_is_refused() -> None:
    text, _ = failure(answers(lambda document: document["results"]), form="cohere")
    assert "without a list of scores; check reranker.base_url, reranker.form and reranker.name" in text


# -- the site's consent ----------------------------------------------------------------------------------


def test_without_consent_no_reranker_is_made() -> None:
    retrieval = Retrieval(rerank="endpoint")
    with pytest.raises(PolicyError, match=r"reranker\.base_url: https://api\.example is outside the site"):
        open_reranker(Config(retrieval=retrieval, reranker=Reranker(base_url="https://api.example")))
    with pytest.raises(ConfigError, match=r"reranker\.base_url is not set"):
        open_reranker(Config(retrieval=retrieval))


def test_questions_are_redacted_for_an_endpoint_outside_and_passages_are_not() -> None:
    question, passage = "is anna@example.org allowed", "write to help@example.org"
    with ScriptedEndpoint() as server:
        inside = config_for(server)
        outside = Config(reranker=inside.reranker, policy=Policy(outside_endpoints=(server.origin,)))
        ServedReranker(inside).score(question, [passage])
        ServedReranker(outside).score(question, [passage])
    assert [request.body["texts"] for request in server.requests] == [[passage], [passage]]
    assert [request.body["query"] for request in server.requests] == [
        question,
        "is [redacted e-mail address] allowed",
    ]


# -- the doctor ------------------------------------------------------------------------------------------


def told(config: Config, tmp_path: Path) -> tuple[str, str, str]:
    """What the doctor says of the reranker: state, text, remedy."""
    nowhere = Config(
        retrieval=Retrieval(rerank="endpoint"), reranker=config.reranker, policy=Policy(catalogue=())
    )
    (found,) = (finding for finding in examine(nowhere) if finding.subject == "reranker")
    return found.state, found.text, found.remedy


def test_the_doctor_names_a_reranker_that_answers(tmp_path: Path) -> None:
    with ScriptedEndpoint() as server:
        assert told(config_for(server), tmp_path) == ("ok", f"ranker, at {server.origin}", "")


def test_the_doctor_tells_of_a_reranker_that_is_down_or_senseless(tmp_path: Path) -> None:
    def upside_down(ranks: Any) -> Any:
        return [rank | {"score": -rank["score"]} for rank in ranks]

    with ScriptedEndpoint(answers(upside_down)) as server:
        state, text, remedy = told(config_for(server), tmp_path)
        assert (state, text) == ("fail", "ranker: the model gives senseless scores")
        assert "reranker.form" in remedy
    state, text, remedy = told(config_for(server, retries=0), tmp_path)
    assert state == "fail"
    assert "Connection refused" in text
    assert "check reranker.base_url" in remedy


# -- the command line ------------------------------------------------------------------------------------


def test_search_is_ordered_by_the_endpoint(kestrel: Home) -> None:
    """Scored by place alone, first one way and then the other, the order can be nobody else's."""
    question = "How much space do I have in my home folder?"

    def first_best(ranks: Any) -> Any:
        return [rank | {"score": -rank["index"]} for rank in ranks]

    def last_best(ranks: Any) -> Any:
        return [rank | {"score": rank["index"]} for rank in ranks]

    found = []
    for change in (first_best, last_best):
        with ScriptedEndpoint(answers(change)) as server:
            settings = {
                "retrieval.rerank": "endpoint",
                "retrieval.candidates": 20,
                "retrieval.join": False,
                "retrieval.clusters": False,
                "reranker.form": "tei",
                "reranker.base_url": server.origin,
            }
            result = kestrel.hyce("search", question, "--json", settings=settings)
        assert result.code == 0, result.err
        assert len(server.requests) == 1
        assert server.requests[0].body["query"] == question
        sent = texts(server.requests[0])
        assert len(sent) == 20
        found.append(result.json["hits"][0]["text"])
        assert found[-1] == (sent[0] if change is first_best else sent[-1])
    assert found[0] != found[1]
    down = kestrel.hyce("search", question, settings=settings | {"reranker.retries": 0})
    fails(down, server.origin, "Connection refused", "check reranker.base_url")
