"""The chat client, against a scripted endpoint over real sockets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scripted_llm import (
    Request,
    ScriptedLlm,
    Step,
    breaks,
    events,
    fails,
    hangs_up,
    says,
    sends,
    stays_silent,
    trickles,
)

from hyce.completion import Completion
from hyce.config import Config, Llm, Policy, load
from hyce.endpoint import api_key, location, parse_address
from hyce.errors import ConfigError, EndpointError, PolicyError
from hyce.llm import ChatClient, output_tokens
from hyce.retry import LONGEST_WAIT

QUESTION = [{"role": "user", "content": "How many nodes?"}]
KEY = "sk-canary-0123456789abcdefghij"


def config_for(url: str, **settings: Any) -> Config:
    values: dict[str, Any] = {"base_url": url, "model": "tiny", "timeout": 30.0} | settings
    return Config(llm=Llm(**values))


def ask(*steps: Step, **settings: Any) -> tuple[Completion, list[Request], list[str], list[float]]:
    """The completion, the requests, the pieces shown, and the pauses made."""
    shown: list[str] = []
    pauses: list[float] = []
    with (
        ScriptedLlm(*steps) as server,
        ChatClient(config_for(server.url, **settings), sleep=pauses.append) as client,
    ):
        completion = client.complete(QUESTION, on_text=shown.append)
    return completion, server.requests, shown, pauses


def failure(*steps: Step, **settings: Any) -> tuple[str, int]:
    """The error's text, checked for what every such text must hold, and the number of requests."""
    with (
        ScriptedLlm(*steps) as server,
        ChatClient(config_for(server.url, **settings), sleep=lambda _: None, environ={"K": KEY}) as client,
    ):
        with pytest.raises(EndpointError) as caught:
            client.complete(QUESTION)
        text = str(caught.value)
        assert text.startswith(f"{server.url}, model tiny: ")
    assert "; " in text
    assert "\n" not in text
    assert KEY not in text
    return text, len(server.requests)


# -- what comes back -------------------------------------------------------------------------------------


def test_a_stream_is_shown_piece_by_piece() -> None:
    completion, requests, shown, _ = ask(says("Four ", "nodes", ".", usage=(11, 3)))
    assert shown == ["Four ", "nodes", "."]
    assert completion == Completion("Four nodes.", "scripted", "stop", 11, 3)
    assert requests[0].path == "/v1/chat/completions"


def test_without_streaming_the_answer_comes_at_once() -> None:
    completion, requests, shown, _ = ask(says("Four ", "nodes."), stream=False)
    assert shown == ["Four nodes."]
    assert completion.finish_reason == "stop"
    assert "stream" not in requests[0].body


def test_an_endpoint_that_ignores_the_wish_for_a_stream_is_understood() -> None:
    document = {"choices": [{"message": {"content": "Four."}, "finish_reason": "stop"}]}
    completion, *_ = ask(sends(200, json.dumps(document)))
    assert completion == Completion("Four.", "tiny", "stop")


def test_a_stream_under_another_content_type_is_understood() -> None:
    completion, *_ = ask(sends(200, events(["Four", "."], "stop"), "text/plain"))
    assert (completion.text, completion.notices) == ("Four.", ())


def test_content_in_parts_is_understood() -> None:
    parts = [{"type": "text", "text": "Fo"}, {"type": "image"}, {"type": "text", "text": "ur"}]
    completion, *_ = ask(sends(200, json.dumps({"choices": [{"message": {"content": parts}}]})))
    assert completion.text == "Four"


def test_a_stream_that_breaks_is_kept_and_noted() -> None:
    completion, requests, shown, _ = ask(breaks("Four", " no"), says("never asked again"))
    assert completion.text == "Four no"
    assert shown == ["Four", " no"]
    assert "breaks off" in completion.notices[0]
    assert len(requests) == 1


def test_a_stream_that_ends_without_its_end_mark_is_noted() -> None:
    body = b'data: {"choices": [{"delta": {"content": "Four"}}]}\n\n'
    completion, *_ = ask(sends(200, body, "text/event-stream"))
    assert "breaks off" in completion.notices[0]


def test_garbage_within_a_stream_is_noted() -> None:
    body = b'data: {"choices": [{"delta": {"content": "Four"}}]}\n\ndata: {"choi\n\n'
    completion, *_ = ask(sends(200, body, "text/event-stream"))
    assert completion.text == "Four"
    assert "breaks off" in completion.notices[0]


def test_an_answer_at_its_longest_is_noted() -> None:
    completion, *_ = ask(says("Four", finish="length"))
    assert "longest length" in completion.notices[0]


def test_a_lone_surrogate_can_be_printed() -> None:
    completion, *_ = ask(says("a\ud800b"))
    assert completion.text.encode("utf-8") == b"a?b"


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (sends(200, "<html>Log in</html>", "text/html; charset=utf-8"), "web page (text/html)"),
        (sends(200, "<html>Log in</html>", "text/plain"), "something else than JSON (text/plain)"),
        (sends(200, "", ""), "answered with nothing"),
        (sends(200, b"\x00\xff\xfe garbage"), "something else than JSON"),
        (sends(200, "[" * 100_000), "something else than JSON"),
        (sends(200, "[]"), "another shape"),
        (sends(200, "{}"), "holds no choices"),
        (sends(200, '{"choices": [{"message": {"content": null}}]}'), "the answer was empty"),
        (sends(200, "data: [DONE]\n\n", "text/event-stream"), "the answer was empty"),
        (
            sends(200, 'data: {"error": {"message": "out of\\nmemory"}}\n', "text/event-stream"),
            "out of memory",
        ),
        (says(" \n", finish="length"), "the answer was empty (finish reason: length)"),
        (sends(200, b"x" * 8_100_000), "more than 8 MB"),
        (sends(200, b"data: " + b"x" * 8_100_000, "text/event-stream"), "more than 8 MB"),
    ],
)
def test_what_cannot_be_used_is_an_error(step: Step, words: str) -> None:
    text, requests = failure(step)
    assert words in text
    assert requests == 1


@pytest.mark.parametrize(
    ("status", "words", "requests"),
    [
        (400, "no such model", 1),
        (401, "check llm.api_key_env", 1),
        (403, "check llm.api_key_env", 1),
        (404, "usually ends in /v1", 1),
        (413, "lower llm.context_tokens", 1),
        (408, "the server failed (408)", 3),
        (429, "too many requests", 3),
        (500, "the server failed (500)", 3),
        (503, "the server failed (503)", 3),
    ],
)
def test_an_error_status_is_explained(status: int, words: str, requests: int) -> None:
    text, sent = failure(fails(status, "no such model"), retries=2)
    assert words in text
    assert sent == requests


def test_an_error_page_is_cut_to_one_line() -> None:
    text, _ = failure(sends(502, "<html>\n<h1>Bad gateway</h1>\n" + "x" * 5000, "text/html"), retries=0)
    assert len(text) < 400


def test_the_key_is_never_in_a_message() -> None:
    text, _ = failure(fails(400, f"bad request by {KEY}"), api_key_env="K")
    assert "bad request by ***" in text
    text, _ = failure(fails(400, "proxy said: Authorization: Bearer abcdefghijklmnop"))
    assert "abcdefgh" not in text
    failure(fails(401, f"wrong key {KEY[:8]}...{KEY[-4:]}"), api_key_env="K")


# -- trying again ----------------------------------------------------------------------------------------


def test_passing_failures_are_tried_again_with_growing_pauses() -> None:
    completion, requests, _, pauses = ask(hangs_up, fails(503, "busy"), fails(500, "oops"), says("Four."))
    assert completion.text == "Four."
    assert len(requests) == 4
    assert pauses == [0.5, 1.0, 2.0]


def test_retry_after_is_honoured() -> None:
    _, _, _, pauses = ask(fails(429, "slow down", retry_after="7"), says("Four."))
    assert pauses == [7.0]


def test_retry_after_as_a_date_that_has_passed_means_now() -> None:
    _, _, _, pauses = ask(fails(429, "later", retry_after="Wed, 21 Oct 2015 07:28:00 GMT"), says("Four."))
    assert pauses == [0.0]


def test_nonsense_in_retry_after_is_ignored() -> None:
    _, _, _, pauses = ask(fails(429, "later", retry_after="-1e9999 ages"), says("Four."))
    assert pauses == [0.5]


def test_an_endpoint_that_asks_for_too_long_a_pause_is_given_up() -> None:
    text, requests = failure(fails(429, "quota", retry_after="3600"), retries=3)
    assert requests == 1
    assert LONGEST_WAIT < 3600
    assert "asks to wait 3600 s" in text


def test_a_stream_that_breaks_before_any_text_is_tried_again() -> None:
    completion, requests, *_ = ask(breaks(), says("Four."))
    assert completion.text == "Four."
    assert len(requests) == 2


def test_nobody_listens() -> None:
    with ScriptedLlm(says("x")) as server:
        url = server.url
    pauses: list[float] = []
    with (
        ChatClient(config_for(url, retries=1), sleep=pauses.append) as client,
        pytest.raises(EndpointError, match=r"connection failed .*check llm\.base_url"),
    ):
        client.complete(QUESTION)
    assert len(pauses) == 1


def test_no_sign_of_life_ends_the_request() -> None:
    text, requests = failure(stays_silent, timeout=0.3, retries=3)
    assert "no sign of life for 0.3 s" in text
    assert "llm.timeout" in text
    assert requests == 1


def test_a_slow_answer_is_waited_for_while_it_comes() -> None:
    completion, *_ = ask(trickles("a", "b", "c", "d", "e", pause=0.5), timeout=2.0)
    assert (completion.text, completion.notices) == ("abcde", ())


# -- what is sent ----------------------------------------------------------------------------------------


def test_the_request_holds_the_settings() -> None:
    _, requests, *_ = ask(says("Four."), temperature=0.5, seed=7, max_output_tokens=99)
    assert requests[0].body == {
        "model": "tiny",
        "messages": QUESTION,
        "max_tokens": 99,
        "temperature": 0.5,
        "seed": 7,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_minus_one_leaves_a_setting_out() -> None:
    _, requests, *_ = ask(
        says("x"), temperature=-1.0, seed=-1, output_limit="max_completion_tokens", stream=False
    )
    assert set(requests[0].body) == {"model", "messages", "max_completion_tokens"}


@pytest.mark.parametrize("by_param", [True, False])
def test_refused_parameters_are_changed_or_left_out_and_stay_so(by_param: bool) -> None:
    def refuses(name: str, text: str) -> Step:
        return fails(400, text, name if by_param else None)

    steps = [
        refuses("max_tokens", "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
        refuses("temperature", "'temperature' does not support 0 with this model."),
        sends(422, '{"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"]}]}'),
        refuses("stream_options", "Unknown field stream_options"),
        says("Four."),
    ]
    with ScriptedLlm(*steps) as server, ChatClient(config_for(server.url), sleep=lambda _: None) as client:
        assert client.complete(QUESTION).text == "Four."
        assert client.complete(QUESTION).text == "Four."
    assert len(server.requests) == 6
    for request in server.requests[-2:]:
        assert set(request.body) == {"model", "messages", "max_completion_tokens", "stream"}


def test_the_other_way_round() -> None:
    _, requests, *_ = ask(
        fails(400, "unknown field: max_completion_tokens"), says("x"), output_limit="max_completion_tokens"
    )
    assert "max_tokens" in requests[1].body
    assert "max_completion_tokens" not in requests[1].body


def test_an_endpoint_that_refuses_both_names_is_an_error() -> None:
    text, requests = failure(fails(400, "neither max_tokens nor max_completion_tokens"))
    assert "neither" in text
    assert requests == 3


def test_too_long_a_request_is_no_unsupported_parameter() -> None:
    text, requests = failure(
        fails(400, "max_tokens is too large: maximum context length is 2048", "max_tokens")
    )
    assert requests == 1
    assert "lower llm.context_tokens" in text


def test_the_users_variables_have_no_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedLlm(says("elsewhere")) as other, ScriptedLlm(says("Four.")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", other.url)
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"):
            monkeypatch.setenv(name, other.origin)
        monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Canary: canary\nAuthorization: Bearer canary")
        for name in ("API_KEY", "ORG_ID", "PROJECT_ID", "ADMIN_KEY", "WEBHOOK_SECRET"):
            monkeypatch.setenv(f"OPENAI_{name}", "canary")
        monkeypatch.setenv("SLURM_JWT", "canary")
        with ChatClient(config_for(server.url)) as client:
            assert client.complete(QUESTION).text == "Four."
    assert other.requests == []
    (request,) = server.requests
    assert "canary" not in request.everything
    assert request.headers.pop("host") in server.origin
    assert int(request.headers.pop("content-length")) == len(request.raw)
    assert "gzip" in request.headers.pop("accept-encoding")
    assert request.headers == {
        "authorization": "Bearer none",
        "connection": "keep-alive",
        "accept": "text/event-stream, application/json",
        "content-type": "application/json",
        "user-agent": "hyce",
        "x-stainless-raw-response": "stream",
    }


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(status: int) -> None:
    with ScriptedLlm(says("elsewhere")) as other:
        target = f"{other.url}/chat/completions"
        text, requests = failure(sends(status, "", location=target), api_key_env="K")
    assert other.requests == []
    assert requests == 1
    assert "redirect" in text


# -- the key ---------------------------------------------------------------------------------------------


def test_the_key_of_a_private_file_is_sent(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(f"{KEY}\n")
    file.chmod(0o600)
    _, requests, *_ = ask(says("x"), api_key_file=str(file))
    assert requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644])
def test_a_key_file_that_others_can_open_is_refused(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "key"
    file.write_text(KEY)
    file.chmod(mode)
    with pytest.raises(ConfigError, match=f"chmod 600 {file}") as caught:
        ChatClient(config_for("http://localhost:1/v1", api_key_file=str(file)))
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("content", ["", " \n", "two words", "sk-a\nX-Header: 1", "sk-\N{BULLET}\N{BULLET}"])
def test_a_key_file_without_a_key_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "key"
    file.write_text(content, encoding="utf-8")
    file.chmod(0o600)
    with pytest.raises(ConfigError, match="key"):
        api_key(config_for("http://localhost/v1", api_key_file=str(file)))


def test_a_missing_key_is_explained(tmp_path: Path) -> None:
    missing = str(tmp_path / "none")
    with pytest.raises(ConfigError, match="MY_KEY is not set; export it"):
        api_key(config_for("http://localhost", api_key_env="MY_KEY"), {})
    with pytest.raises(ConfigError, match="can't be read: No such file"):
        api_key(config_for("http://localhost", api_key_file=missing), {})
    with pytest.raises(ConfigError, match="no ordinary file"):
        api_key(config_for("http://localhost", api_key_file=str(tmp_path)), {})


def test_the_variable_comes_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("from-file")
    file.chmod(0o600)
    config = config_for("http://localhost", api_key_env="K", api_key_file=str(file))
    assert api_key(config, {"K": "from-variable"}) == "from-variable"
    assert api_key(config, {}) == "from-file"
    assert api_key(config_for("http://localhost"), {"OPENAI_API_KEY": KEY}) == "none"


# -- the site's consent ----------------------------------------------------------------------------------


def located(url: str, declared: str = "outside", **policy: tuple[str, ...]) -> str:
    """onsite, outside or refused."""
    llm = Llm(base_url=url, model="tiny", location="onsite" if declared == "onsite" else "outside")
    try:
        return location(Config(llm=llm, policy=Policy(**policy)))  # type: ignore[arg-type]
    except PolicyError:
        return "refused"


@pytest.mark.parametrize(
    "url", ["http://localhost:8000/v1", "http://LOCALHOST", "http://127.3.4.5/v1", "http://[::1]:80/v1"]
)
def test_loopback_is_onsite(url: str) -> None:
    assert located(url) == "onsite"
    assert located(url, onsite_endpoints=("https://llm.example",)) == "onsite"


def test_a_gateway_on_loopback_that_the_site_calls_outside_is_outside() -> None:
    assert located("http://localhost:4000/v1", outside_endpoints=("http://localhost:4000",)) == "outside"


def test_without_lists_the_declaration_counts() -> None:
    assert located("https://llm.example/v1", declared="onsite") == "onsite"
    assert located("https://llm.example/v1") == "refused"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://llm.example/v1", "onsite"),
        ("https://LLM.Example:443/v1/", "onsite"),
        ("https://llm.example/v1/chat", "onsite"),
        ("https://llm.example/v1x", "refused"),
        ("https://llm.example/", "refused"),
        ("https://llm.example:8443/v1", "refused"),
        ("http://llm.example/v1", "refused"),
        ("https://llm.example.evil.com/v1", "refused"),
        ("https://evil-llm.example/v1", "refused"),
        ("https://localhost.evil.com/v1", "refused"),
        ("https://api.example/v1", "outside"),
        ("http://128.0.0.1/v1", "refused"),
    ],
)
@pytest.mark.parametrize("declared", ["onsite", "outside"])
def test_where_lists_are_set_they_alone_count(url: str, expected: str, declared: str) -> None:
    lists = {"onsite_endpoints": ("https://llm.example/v1",), "outside_endpoints": ("https://api.example",)}
    assert located(url, declared, **lists) == expected


@pytest.mark.parametrize(
    "url",
    [
        "https://llm.example@evil.com/v1",
        "https://evil.com/v1?https://llm.example",
        "https://evil.com#https://llm.example",
        "https://evil.com\\@llm.example/v1",
        "https://llm.example/v1/../v2",
        "https://llm.example/v1/%2e%2e/v2",
        "https://llm.example/v1//v2",
        "https://llm.example\t.evil.com/v1",
        "https://llm.ex\N{CYRILLIC SMALL LETTER A}mple/v1",
        "https://llm.example:99999/v1",
        "https://[::1",
        "https:///v1",
        "ftp://llm.example/v1",
        "file:///etc/passwd",
        "llm.example/v1",
        "",
    ],
)
def test_an_address_that_two_readers_could_read_differently_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match=r"llm\.base_url"):
        parse_address(url, "llm.base_url")


@pytest.mark.parametrize("location_in", ["environment", "site file"])
def test_where_a_site_governs_no_user_can_call_an_outside_address_onsite(
    tmp_path: Path, location_in: str
) -> None:
    """case 22: the user names another endpoint, and the site's word about its own doesn't hold for that."""
    site = tmp_path / "site.toml"
    site.write_text('[llm]\nbase_url = "https://llm.site.example/v1"\nlocation = "onsite"\n')
    own = {"HYCE_LLM_BASE_URL": "https://api.elsewhere.example/v1", "XDG_CONFIG_HOME": str(tmp_path)}
    if location_in == "environment":
        site.write_text('[site]\nname = "Centre"\n')
        own["HYCE_LLM_LOCATION"] = "onsite"
    config = load(environ=own, site_file=site)
    with pytest.raises(PolicyError, match="has not consented"):
        location(config)
    assert any("llm.location" in notice for notice in config.notices)


def test_the_sites_own_endpoint_stays_onsite(tmp_path: Path) -> None:
    site = tmp_path / "site.toml"
    site.write_text('[llm]\nbase_url = "https://llm.site.example/v1"\nlocation = "onsite"\n')
    assert location(load(environ={"XDG_CONFIG_HOME": str(tmp_path)}, site_file=site)) == "onsite"


def test_a_site_file_that_is_a_broken_link_is_not_taken_for_none(tmp_path: Path) -> None:
    (tmp_path / "site.toml").symlink_to(tmp_path / "missing")
    with pytest.raises((ConfigError, OSError)):
        load(environ={"XDG_CONFIG_HOME": str(tmp_path)}, site_file=tmp_path / "site.toml")


def test_an_address_with_a_password_is_refused_without_showing_it() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_address("https://me:secret@llm.example/v1", "llm.base_url")
    assert "secret" not in str(caught.value)


def test_a_broken_entry_of_the_policy_is_reported() -> None:
    with pytest.raises(ConfigError, match=r"policy\.onsite_endpoints"):
        located("https://llm.example/v1", onsite_endpoints=("https://llm.example", "nonsense"))


def test_without_consent_nothing_is_sent_and_the_remedy_is_named() -> None:
    with pytest.raises(PolicyError) as caught:
        ChatClient(config_for("https://api.example/v1"))
    text = str(caught.value)
    assert "nothing was sent" in text
    assert 'outside_endpoints = ["https://api.example/v1"] in [policy] of ' in text
    assert "hyce.toml" in text


# -- room for the answer ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("context", "longest", "expected"),
    [(131072, 4096, 4096), (8192, 4096, 4096), (4096, 4096, 1024), (1024, 4096, 256), (1024, 100, 100)],
)
def test_a_small_context_leaves_room_for_the_prompt(context: int, longest: int, expected: int) -> None:
    config = Config(llm=Llm(context_tokens=context, max_output_tokens=longest))
    assert output_tokens(config) == expected
