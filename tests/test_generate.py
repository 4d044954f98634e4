"""hyce evaluate generate, with the sample documentation, harmless commands and a scripted endpoint."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hyce_home import Home, Result, fails, wait_for
from scripted_llm import Request, ScriptedLlm, Step, says, sends, stays_silent
from scripted_llm import fails as refuses

from hyce import catalogue
from hyce.evaluate.generation.filter import missing, read_ratings
from hyce.evaluate.generation.sample import SHORTEST, in_order, pool
from hyce.evaluate.generation.writing import unfit
from hyce.evaluate.records import Question, QuestionSet, Ratings
from hyce.evaluate.sets import read_origin, read_set
from hyce.index.embedded import open_index
from hyce.prompts import evaluation as prompts

KINDS = ("document", "command", "unanswerable", "two_passages", "passage_and_command")
NUMBERS = {"passages": 4, "commands": 2, "unanswerable": 2, "two-passages": 2, "mixed": 1}
TOTAL = sum(NUMBERS.values())
ALL = tuple(word for name, number in NUMBERS.items() for word in (f"--{name}", str(number)))
KILLED = (*ALL[:2], "--all-commands", *ALL[4:])
ONE = ("--passages", "1", "--commands", "0", "--unanswerable", "0", "--two-passages", "0", "--mixed", "0")

_RATE = prompts.rate("", ())[0]["content"]
_WRITE = {prompts.write(kind, ())[0]["content"]: kind for kind in KINDS}
_FENCE = re.compile(
    r"^<<<source \[(\d+)\] (\w{12}) \(([^)\n]*)\): ([^\n]*)\n(.*?)\nend of source \[\1\] \2>>>$", re.M | re.S
)

# -- an endpoint that writes and rates -------------------------------------------------------------------


def role(request: Request) -> str:
    """The kind of question that a request asks for; "filter" where it asks for ratings."""
    rules = request.body["messages"][0]["content"]
    return "filter" if rules == _RATE else _WRITE[rules]


def material(request: Request) -> list[tuple[str, str, str]]:
    """(kind, label, text) of what stands in the fences."""
    found = _FENCE.findall(request.body["messages"][1]["content"])
    return [(kind, label, text) for _, _, kind, label, text in found]


def writes(request: Request) -> dict[str, Any]:
    """A question that tells what it was made from, and its kind."""
    label = " / ".join(label for _, label, _ in material(request))
    return {"question": f"What holds for {label} ({role(request)})?", "answer": "42 hours."}


def rates(request: Request) -> dict[str, Any]:
    """Ratings as a good question of each kind gets them."""
    (_, _, question), *given = material(request)
    kind = question.rpartition("(")[2].partition(")")[0]
    both = kind in ("two_passages", "passage_and_command")
    grounded = kind != "unanswerable" and not (both and len(given) == 1)
    return {"reasons": "As asked.", "groundedness": int(grounded), "relevance": 1, "standalone": 1}


def plays(
    write: Callable[[Request], Any] = writes, rate: Callable[[Request], Any] = rates, **steps: Step
) -> Step:
    """Both roles; steps: what is done in place of it for a role or a kind."""

    def step(exchange: Any) -> None:
        request = exchange.request_seen
        asked = role(request)
        if asked in steps:
            steps[asked](exchange)
            return
        reply = rate(request) if asked == "filter" else write(request)
        text = reply if isinstance(reply, str) else json.dumps(reply)
        says(text, usage=(100, 10))(exchange)

    return step


@pytest.fixture
def site(tmp_path: Path) -> dict[str, Any]:
    """Settings with a catalogue of six entries alone: three print something, one of which may leave the site,
    one fails, one prints nothing, one needs a value."""
    folder = tmp_path / "catalogue"
    folder.mkdir()
    folder.chmod(0o755)
    off = "".join(f"{name}: {{disabled: true}}\n" for name in catalogue.load())
    (folder / "off.yaml").write_text(off, encoding="utf-8")
    (folder / "own.yaml").write_text(
        "test.jobs: {description: Tells how many jobs of yours run., command: [echo, 'running: 7'],"
        " scheduler: slurm}\n"
        "test.mail: {description: Tells whom to ask about storage., may_leave_site: true,"
        " command: [echo, 'ask amy@example.org, token=abcd1234']}\n"
        "test.clock: {description: Tells the time to the nanosecond., command: [date, +%s.%N]}\n"
        "test.fails: {description: Fails., command: [ls, /nonexistent/place]}\n"
        "test.empty: {description: Prints nothing., command: ['true']}\n"
        "test.value: {description: Needs a value., command: [echo, '{job}'],"
        " parameters: {job: {pattern: '[0-9]+', description: A number.}}}\n",
        encoding="utf-8",
    )
    for file in folder.iterdir():
        file.chmod(0o644)
    return {"policy.catalogue": [str(folder)]}


def llm(server: ScriptedLlm) -> dict[str, Any]:
    return {"llm.base_url": server.url, "llm.model": "m", "llm.retries": 0}


def generate(home: Home, folder: Path, settings: Mapping[str, Any], *options: str) -> Result:
    return home.hyce("evaluate", "generate", str(folder), *options, "--json", settings=settings)


def questions(folder: Path) -> dict[str, Question]:
    made = read_set(folder)
    return {question.id: question for question in (*made.questions, *made.rejected)}


def tallies(result: Result) -> dict[str, dict[str, Any]]:
    return {tally["kind"]: tally for tally in result.json["tallies"]}


# -- the whole way ---------------------------------------------------------------------------------------


def test_every_kind_is_made_rated_and_written(kestrel: Home, tmp_path: Path, site: dict[str, Any]) -> None:
    folder = tmp_path / "set"
    with ScriptedLlm(plays()) as server:
        done = generate(kestrel, folder, site | llm(server), *ALL)
        requests = server.requests
    assert (done.code, done.json["kept"]) == (0, TOTAL), done.err
    for tally, number in zip(done.json["tallies"], NUMBERS.values(), strict=True):
        met = dict.fromkeys(("groundedness", "relevance", "standalone"), number)
        assert tally == {
            "kind": tally["kind"],
            "wanted": number,
            **dict.fromkeys(("asked", "written", "rated", "kept"), number),
            "met": met,
        }
    # Each question is rated once, those that need both sources again with each alone.
    assert sum(role(request) == "filter" for request in requests) == TOTAL + 2 * 3
    assert (done.json["calls"], done.json["tokens"]) == (len(requests), 110 * len(requests))
    made = read_set(folder)
    assert (made.rejected, len(made.questions)) == ((), TOTAL)
    assert oct((folder / "questions.jsonl").stat().st_mode)[-3:] == "600"
    _check_document(kestrel, questions(folder)["document-001"])
    _check_commands(questions(folder), made)
    _check_apart(questions(folder))
    assert made.origin
    assert (made.origin.model, made.origin.seed, made.origin.prompts) == (
        "scripted",
        0,
        prompts.writing_digest(),
    )
    assert [len(names) for names in made.origin.sampled.values()] == list(NUMBERS.values())


def _check_document(home: Home, question: Question) -> None:
    (evidence,) = question.evidence
    with open_index(home.index) as index:
        found = [passage for passage in index.passages(index.ids()) if passage.text == evidence.quote]
    assert (evidence.path, evidence.source) in [(passage.path, passage.source) for passage in found]
    assert (question.accept, question.site, question.answer) == ((), None, "42 hours.")
    assert question.ratings == Ratings(1, 1, 1, "As asked.")


def _check_commands(found: Mapping[str, Question], made: QuestionSet) -> None:
    accepted = [found[f"command-00{n}"].accept for n in (1, 2)]
    outputs = {stored.output.id: stored.output for stored in made.outputs}
    assert [(name,) for name in outputs] == accepted
    assert all(output.stdout for output in outputs.values())
    assert {"test.jobs": "slurm"}.get(next(iter(outputs))) == found["command-001"].site
    mixed = found["passage_and_command-001"]
    assert (mixed.accept, len(mixed.evidence)) == (accepted[0], 1)


def _check_apart(found: Mapping[str, Question]) -> None:
    unanswerable = found["unanswerable-001"]
    assert (unanswerable.evidence, unanswerable.accept) == ((), None)
    assert unanswerable.ratings
    assert unanswerable.ratings.groundedness == 0
    for name in ("two_passages-001", "two_passages-002"):
        first, second = found[name].evidence
        assert first.path != second.path
        assert found[name].needs_all


def test_the_filter_sees_question_and_material_and_no_answer(
    kestrel: Home, tmp_path: Path, site: dict[str, Any]
) -> None:
    with ScriptedLlm(plays()) as server:
        assert generate(kestrel, tmp_path / "set", site | llm(server), *ALL).code == 0
        rated = [request for request in server.requests if role(request) == "filter"]
        asked = [request for request in server.requests if role(request) != "filter"]
    assert not any("42 hours" in request.prompt for request in rated)
    by_kind = {role(request): material(request) for request in asked}
    assert [kind for kind, _, _ in by_kind["passage_and_command"]] == ["command output", "documentation"]
    ((_, _, text),) = by_kind["command"]
    assert text.startswith("What it tells: Tells ")
    # An unanswerable question is rated by what the index finds for it, beside the passage it was made from.
    shown = [
        material(request)[1:]
        for request in rated
        if "(unanswerable)" in request.body["messages"][1]["content"]
    ]
    assert [len({text for _, _, text in given}) >= 5 for given in shown] == [True, True]
    # It is answerable also where that holds a part of the answer alone; any other question isn't.
    strict = [request.prompt.endswith(" at all.") for request in rated]
    assert strict == ["(unanswerable)" in request.body["messages"][1]["content"] for request in rated]


def test_the_report_for_a_person(kestrel: Home, tmp_path: Path, site: dict[str, Any]) -> None:
    folder = tmp_path / "set"
    with ScriptedLlm(plays(rate=lambda request: rates(request) | {"standalone": 0})) as server:
        done = kestrel.hyce("evaluate", "generate", str(folder), *ALL, settings=site | llm(server))
    lines = [line.split() for line in done.out.splitlines()]
    assert lines[0] == ["asked", "written", "grounded", "relevant", "standalone", "kept"]
    assert lines[1] == ["documentation", "4", "4", "4", "4", "0", "0"]
    assert (done.code, f"0 questions in {folder}/questions.jsonl" in done.out) == (1, True)
    assert "no question passed the filter" in done.err


# -- the filter ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", ["groundedness", "relevance", "standalone"])
def test_what_misses_one_criterion_is_rejected_and_kept_in_the_file(
    kestrel: Home, tmp_path: Path, site: dict[str, Any], criterion: str
) -> None:
    def rate(request: Request) -> dict[str, Any]:
        bad = "(command)" in material(request)[0][2]
        return rates(request) | ({criterion: 0, "reasons": "Not so."} if bad else {})

    folder = tmp_path / "set"
    with ScriptedLlm(plays(rate=rate)) as server:
        done = generate(kestrel, folder, site | llm(server), *ALL)
    assert done.code == 0
    tally = tallies(done)["command"]
    assert (tally["asked"], tally["rated"], tally["kept"], tally["met"][criterion]) == (2, 2, 0, 0)
    assert [number for name, number in tally["met"].items() if name != criterion] == [2, 2]
    rejected = read_set(folder).rejected
    assert [(each.id, each.rejected) for each in rejected] == [
        ("command-001", criterion),
        ("command-002", criterion),
    ]
    assert rejected[0].ratings
    assert (rejected[0].ratings.reasons, getattr(rejected[0].ratings, criterion)) == ("Not so.", 0)


def test_what_needs_one_source_alone_or_can_be_answered_is_rejected(
    kestrel: Home, tmp_path: Path, site: dict[str, Any]
) -> None:
    with ScriptedLlm(plays(rate=lambda request: rates(request) | {"groundedness": 1})) as server:
        done = generate(kestrel, tmp_path / "set", site | llm(server), *ALL)
    assert [tally["kept"] for tally in done.json["tallies"]] == [4, 2, 0, 0, 0]
    assert tallies(done)["two_passages"]["met"] == {"groundedness": 0, "relevance": 2, "standalone": 2}
    found = {question.id: question.rejected for question in read_set(tmp_path / "set").rejected}
    assert found["unanswerable-001"] == "groundedness (the documentation answers it)"
    for name in ("two_passages-001", "passage_and_command-001"):
        assert found[name] == "groundedness (one source alone answers it)"


@pytest.mark.parametrize(
    ("reply", "scores"),
    [
        ('{"groundedness": 1, "relevance": 0, "standalone": 1}', (1, 0, 1)),
        ('So: ```json\n{"groundedness": true, "relevance": "1", "standalone": false,}\n```', (1, 1, 0)),
        ('<think>{"groundedness": 0}</think>{"groundedness": 1, "relevance": 1, "standalone": 1}', (1, 1, 1)),
        # The server opened the block of thoughts; another model writes its own form of names and numbers.
        ('So {1}?\n</think>\n{"groundedness": 1, "relevance": 0, "standalone": 1}', (1, 0, 1)),
        ('{"Groundedness": 1.0, "Relevance": " 0 ", "Standalone": 1}', (1, 0, 1)),
        ('{"groundedness": 1, "relevance": 1, "standalone": 1, "reasons": "</think> {0}"}', (1, 1, 1)),
        ('{"groundedness": 2, "relevance": 1, "standalone": 1}', None),
        ('{"groundedness": 0.5, "relevance": 1, "standalone": 1}', None),
        ('{"groundedness": "yes", "relevance": 1, "standalone": 1}', None),
        ('{"groundedness": null, "relevance": 1, "standalone": 1}', None),
        ('{"groundedness": 1, "relevance": 1}', None),
        ('{"groundedness": [1], "relevance": 1, "standalone": 1}', None),
        ("1 1 1", None),
        ("", None),
    ],
)
def test_ratings_are_read_strictly(reply: str, scores: tuple[int, int, int] | None) -> None:
    found = read_ratings(reply)
    assert (replace(found, reasons="") if found else None) == (Ratings(*scores) if scores else None)


def test_an_unanswerable_question_misses_groundedness_where_it_is_answered() -> None:
    assert list(missing("unanswerable", Ratings(0, 1, 1))) == []
    assert list(missing("unanswerable", Ratings(1, 1, 0))) == ["groundedness", "standalone"]
    assert list(missing("document", Ratings(0, 0, 1))) == ["groundedness", "relevance"]


# -- replies that can't be used --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "answer", "word"),
    [
        ("How long may a job run on Merlin?", "24 hours.", ""),
        ("In the context of MPI, how many ranks fit a node?", "64", ""),
        ("Where is the documentation of Merlin?", "docs.example.org", ""),
        ("What does ST mean in the output of squeue?", "The state.", ""),
        ("Which columns are shown in the output of squeue?", "ST", ""),
        ("Which document do I need to sign for an account on Merlin?", "The rules.", ""),
        ("How do I compile a given source file on Merlin?", "With mpicc.", ""),
        ("Which information provided by users do others see?", "None.", ""),
        ("What opens a terminal in the context menu of Open OnDemand?", "Shell.", ""),
        ("How many pages below 4 KB may a job lock?", "64", ""),
        ("梅林集群上的作业最长可以运行多久\uff1f", "24", ""),
        ("", "24 hours.", "JSON"),
        ("How long may a job run on Merlin?", "", "JSON"),
        ("How long may a job run on Merlin?", "x" * 301, "301 characters"),
        ("How long " + "x" * 400 + "?", "24 hours.", "410 characters"),
        ("How long?", "24 hours.", "too short"),
        ("Tell me how long a job may run.", "24 hours.", "question mark"),
        ("According to the passage, how long may a job run?", "24 hours.", "the passage"),
        ("How long may a job run in this context?", "24 hours.", "this context"),
        ("How long may a job run as the text above says?", "24 hours.", "text above"),
        ("Which limit do the documents provided name?", "24 hours.", "documents provided"),
        ("Which limit is in the provided documents?", "24 hours.", "provided documents"),
        ("What is the limit, according to the documentation?", "24 hours.", "according to"),
        ("What limit is stated in the output above?", "24 hours.", "in the output"),
        ("What is the limit, based on the provided information?", "24 hours.", "provided information"),
        ("Whom can I write to about disks?", "[redacted e-mail address]", "blacked out"),
    ],
)
def test_what_can_be_asked(question: str, answer: str, word: str) -> None:
    why = unfit(question, answer)
    assert bool(why) == bool(word), why
    assert word in why


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ("{'question': 1", "JSON object"),
        ({"question": "How long may it run?", "answer": "x" * 301}, "the answer has 301 characters"),
        ({"question": "How long, according to the passage?", "answer": "A day."}, 'speaks of "the passage"'),
    ],
)
def test_one_more_try_with_the_reason(
    kestrel: Home, tmp_path: Path, site: dict[str, Any], bad: Any, why: str
) -> None:
    def write(request: Request) -> Any:
        return bad if len(request.body["messages"]) == 2 else writes(request)

    with ScriptedLlm(plays(write)) as server:
        done = generate(kestrel, tmp_path / "good", site | llm(server), *ONE)
        assert (done.code, done.json["kept"]) == (0, 1)
        again = server.requests[1].body["messages"]
    assert [message["role"] for message in again] == ["system", "user", "assistant", "user"]
    assert why.replace('"', "") in again[3]["content"].replace('"', "")
    with ScriptedLlm(plays(lambda request: bad)) as server:
        done = generate(kestrel, tmp_path / "bad", site | llm(server), *ONE)
        assert len(server.requests) == 2
    assert (done.code, done.json["kept"]) == (1, 0)
    ((name, said),) = done.json["left_out"].items()
    assert name.startswith("document-001 ")
    assert said.startswith("the model gave no usable question: ")
    assert why in said
    origin = read_origin(tmp_path / "bad" / "questions.jsonl")
    assert origin
    assert origin.left_out == {name: said}


def test_ratings_that_cannot_be_read_are_failures_and_no_rejections(
    kestrel: Home, tmp_path: Path, site: dict[str, Any]
) -> None:
    def rate(request: Request) -> Any:
        return "It is fine." if "(command)" in material(request)[0][2] else rates(request)

    folder = tmp_path / "set"
    with ScriptedLlm(plays(rate=rate)) as server:
        done = generate(kestrel, folder, site | llm(server), *ALL)
    assert (done.code, done.json["kept"]) == (1, TOTAL - 2)
    assert list(done.json["failed"]) == ["command-001", "command-002"]
    assert "hyce: command-001: the filter's replies" in done.err
    assert read_set(folder).rejected == ()
    assert tallies(done)["command"]["written"] == 2


# -- endpoints that fail ---------------------------------------------------------------------------------


@pytest.mark.parametrize("failure", ["429", "silence", "garbage"])
def test_failures_are_listed_and_tried_again_by_the_next_run(
    kestrel: Home, tmp_path: Path, site: dict[str, Any], failure: str
) -> None:
    step = {
        "429": refuses(429, "slow down"),
        "silence": stays_silent,
        "garbage": sends(200, "<html></html>", "text/html"),
    }[failure]
    folder = tmp_path / "set"
    steps: dict[str, Any] = {"unanswerable": step}

    def endpoint(exchange: Any) -> None:
        plays(**steps)(exchange)

    with ScriptedLlm(endpoint) as server:
        settings = site | llm(server) | {"llm.timeout": 0.5}
        done = generate(kestrel, folder, settings, *ALL)
        assert (done.code, done.json["kept"], done.json["again"]) == (1, TOTAL - 2, True)
        assert list(done.json["failed"]) == ["unanswerable-001", "unanswerable-002"]
        assert f"hyce: unanswerable-001: {server.url}, model m: " in done.err
        assert "Run the same again" in done.err
        assert tallies(done)["unanswerable"]["written"] == 0
        steps.clear()
        before = len(server.requests)
        done = generate(kestrel, folder, settings, *ALL)
        assert (done.code, done.json["kept"], done.json["failed"]) == (0, TOTAL, {})
        assert [role(request) for request in server.requests[before:]].count("filter") == 2
        assert len(server.requests) == before + 4
    with ScriptedLlm(plays()) as server:
        assert generate(kestrel, tmp_path / "calm", site | llm(server), *ALL).code == 0
    assert len(read_set(folder).questions) == len(read_set(tmp_path / "calm").questions)


def test_a_429_is_waited_for(kestrel: Home, tmp_path: Path, site: dict[str, Any]) -> None:
    with ScriptedLlm(refuses(429, "slow down", retry_after="0"), plays()) as server:
        done = generate(kestrel, tmp_path / "set", site | llm(server) | {"llm.retries": 1}, *ONE)
        assert (done.code, len(server.requests)) == (0, 3)


def test_an_endpoint_that_is_down_is_given_up(kestrel: Home, tmp_path: Path, site: dict[str, Any]) -> None:
    folder = tmp_path / "set"
    with ScriptedLlm(refuses(500, "broken")) as server:
        done = generate(kestrel, folder, site | llm(server), "--at-once", "1", "--passages", "90")
        assert len(server.requests) == 10
    fails(done, "the server failed (500): broken", "10 failures one after the other", "run the same again")
    assert not (folder / "questions.jsonl").exists()


def test_without_a_model_nothing_is_made(kestrel: Home, tmp_path: Path, site: dict[str, Any]) -> None:
    fails(generate(kestrel, tmp_path / "set", site, *ONE), "[llm]", "[llm.generation]")
    own = {"llm.generation.base_url": "http://127.0.0.1:9/v1", "llm.generation.model": "m"}
    fails(generate(kestrel, tmp_path / "set", site | own, *ONE), "[llm.filter]")
    assert not (tmp_path / "set").exists()


# -- commands --------------------------------------------------------------------------------------------


def test_commands_that_fail_or_print_nothing_are_listed(
    kestrel: Home, tmp_path: Path, site: dict[str, Any]
) -> None:
    with ScriptedLlm(plays()) as server:
        done = generate(kestrel, tmp_path / "all", site | llm(server), *ONE[:2], "--all-commands", *ONE[4:])
        assert done.code == 0
        left_out = done.json["left_out"]
        assert (sorted(left_out), left_out["test.empty"]) == (
            ["test.empty", "test.fails"],
            "it printed nothing",
        )
        assert left_out["test.fails"].startswith("it failed with exit code 2: ")
        assert "cannot access '/nonexistent/place'" in left_out["test.fails"]
        assert tallies(done)["command"]["asked"] == 3
        accepted = [question.accept for question in read_set(tmp_path / "all").questions if question.accept]
        assert sorted(accepted) == [("test.clock",), ("test.jobs",), ("test.mail",)]
        # The next one of the order takes the place of one that gave nothing.
        for number in (1, 2, 3):
            some = generate(
                kestrel,
                tmp_path / f"{number}",
                site | llm(server),
                *("--passages", "0", "--commands", str(number), *ONE[4:]),
            )
            assert tallies(some)["command"]["kept"] == number
            made = read_set(tmp_path / f"{number}").questions
            assert [question.accept for question in made] == accepted[:number]
        more = generate(kestrel, tmp_path / "9", site | llm(server), *ONE[:2], "--commands", "9", *ONE[4:])
    assert (more.code, tallies(more)["command"]["asked"]) == (0, 3)
    assert "commands: 3 instead of 9" in more.err


@pytest.mark.parametrize("outside", ["generation", "filter"])
def test_what_may_not_leave_the_site_is_not_run_and_the_rest_is_redacted(
    kestrel: Home, tmp_path: Path, site: dict[str, Any], outside: str
) -> None:
    options = (
        "--passages",
        "2",
        "--all-commands",
        "--unanswerable",
        "1",
        "--two-passages",
        "0",
        "--mixed",
        "3",
    )
    with ScriptedLlm(plays()) as here, ScriptedLlm(plays()) as away:
        settings = site | llm(here) | {"policy.outside_endpoints": [away.url]}
        settings |= {f"llm.{outside}.base_url": away.url, f"llm.{outside}.model": "big"}
        done = generate(kestrel, tmp_path / "set", settings, *options)
        sent = "".join(request.everything for request in away.requests)
    reason = f"its output may not leave the site, and the model for {outside} is outside"
    assert (done.code, done.json["left_out"]["test.jobs"], done.json["left_out"]["test.clock"]) == (
        0,
        reason,
        reason,
    )
    assert [stored.output.id for stored in read_set(tmp_path / "set").outputs] == ["test.mail"]
    assert "running: 7" not in sent
    assert "amy@example.org" not in sent
    assert "abcd1234" not in sent
    assert "[redacted e-mail address]" in sent
    assert "running: 7" not in (tmp_path / "set" / "outputs.jsonl").read_text(encoding="utf-8")


# -- again, and going on ---------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_file(kestrel: Home, tmp_path: Path, site: dict[str, Any]) -> None:
    files = []
    with ScriptedLlm(plays()) as server:
        # test.clock prints something else each time.
        settings = site | llm(server)
        options = (*ONE[:2], "--passages", "5", "--unanswerable", "2", "--two-passages", "2")
        for name, at_once in (("one", "1"), ("two", "4")):
            done = generate(kestrel, tmp_path / name, settings, *options, "--commands", "0", "--mixed", "0",
                            "--at-once", at_once)  # fmt: skip
            assert done.code == 0
            files.append((tmp_path / name / "questions.jsonl").read_bytes())
        asked = len(server.requests)
        assert (
            generate(kestrel, tmp_path / "one", settings, *options, "--commands", "0", "--mixed", "0").code
            == 0
        )
        assert len(server.requests) == asked
        other = generate(kestrel, tmp_path / "other", settings, *options, "--commands", "0", "--mixed", "0",
                         "--seed", "1")  # fmt: skip
        assert other.code == 0
    assert files[0] == files[1] == (tmp_path / "one" / "questions.jsonl").read_bytes()
    first, second = (read_origin(tmp_path / name / "questions.jsonl") for name in ("one", "other"))
    assert first
    assert second
    assert first.sampled["document"] != second.sampled["document"]


def test_the_first_date_is_kept(kestrel: Home, tmp_path: Path, site: dict[str, Any]) -> None:
    with ScriptedLlm(plays()) as server:
        assert generate(kestrel, tmp_path, site | llm(server), *ONE).code == 0
        file = tmp_path / "questions.jsonl"
        text = re.sub(r'"created": "[^"]*"', '"created": "2020-02-29"', file.read_text(encoding="utf-8"))
        file.write_text(text, encoding="utf-8")
        assert generate(kestrel, tmp_path, site | llm(server), *ONE).code == 0
    assert file.read_text(encoding="utf-8") == text


def test_kill_9_and_again(kestrel: Home, tmp_path: Path, site: dict[str, Any]) -> None:
    def slow(exchange: Any) -> None:
        if len(server.requests) > 7:
            exchange.server.script.ended.wait(0.2)
        plays()(exchange)

    folder = tmp_path / "set"
    with ScriptedLlm(slow) as server:
        settings = site | llm(server)
        process = kestrel.start("evaluate", "generate", str(folder), *KILLED, settings=settings)
        wait_for(lambda: len(server.requests) >= 10)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        answered = _rows(folder / "calls.jsonl")
        printed = (folder / "outputs.jsonl").read_bytes()
        assert len(answered) >= 6
        assert not (folder / "questions.jsonl").exists()
        before = len(server.requests)
        done = generate(kestrel, folder, settings, *KILLED)
        assert (done.code, (folder / "outputs.jsonl").read_bytes()) == (0, printed)
        later = [request.body["messages"] for request in server.requests[before:]]
        assert not [row for row in answered if row["request"]["messages"] in later]
        assert len(_rows(folder / "calls.jsonl")) == done.json["calls"] + len(answered)
        # The set is the one that would have been made without the interruption, from the same outputs.
        whole = tmp_path / "whole"
        whole.mkdir()
        (whole / "outputs.jsonl").write_bytes(printed)
        assert generate(kestrel, whole, settings, *KILLED).code == 0
    assert (folder / "questions.jsonl").read_bytes() == (whole / "questions.jsonl").read_bytes()


def _rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines(keepends=True)
            if line.endswith("\n")]  # fmt: skip


def test_another_set_is_not_overwritten(kestrel: Home, tmp_path: Path, site: dict[str, Any]) -> None:
    folder = tmp_path / "set"
    with ScriptedLlm(plays()) as server:
        settings = site | llm(server)
        assert generate(kestrel, folder, settings, *ONE).code == 0
        made = (folder / "questions.jsonl").read_bytes()
        asked = len(server.requests)
        fails(generate(kestrel, folder, settings, *ONE, "--seed", "7"), "--seed 0, not 7", code=2)
        fails(generate(kestrel, folder, settings, "--passages", "2"), "--passages 1, not 2", code=2)
        other = settings | {"llm.filter.model": "other"}
        fails(generate(kestrel, folder, other, *ONE), "filter model m at", code=2)
        assert (len(server.requests), (folder / "questions.jsonl").read_bytes()) == (asked, made)
        (folder / "run.json").write_text("{}", "utf-8")
        fails(generate(kestrel, folder, settings, *ONE), "holds a run", "choose another folder", code=2)
        (folder / "run.json").unlink()
        (folder / "questions.jsonl").write_text('{"id": "a", "kind": "x", "question": "Why?"}\n', "utf-8")
        fails(generate(kestrel, folder, settings, *ONE), "was not made by", "choose another folder", code=2)


# -- before anything is sent -----------------------------------------------------------------------------


def test_a_dry_run_sends_and_runs_nothing(kestrel: Home, tmp_path: Path, site: dict[str, Any]) -> None:
    folder = tmp_path / "set"
    mark = tmp_path / "catalogue" / "mark.yaml"
    mark.write_text(f"test.mark: {{description: Is seen., command: [ls, '{folder}']}}\n", encoding="utf-8")
    mark.chmod(0o644)
    with ScriptedLlm(plays()) as server:
        settings = site | llm(server)
        dry = generate(kestrel, folder, settings, *ALL, "--dry-run")
        assert (dry.code, server.requests, folder.exists()) == (0, [], False)
        mark.unlink()
        assert generate(kestrel, folder, settings, *ALL).code == 0
        made = {"generation": 0, "filter": 0}
        for request in server.requests:
            made["filter" if role(request) == "filter" else "generation"] += 1
    assert {role: cost["calls"] for role, cost in dry.json["roles"].items()} == made
    assert all(cost["prompt_tokens"] > 200 * cost["calls"] for cost in dry.json["roles"].values())
    assert dry.json["asked"] == dict(zip(KINDS, NUMBERS.values(), strict=True))
    told = kestrel.hyce("evaluate", "generate", str(tmp_path / "new"), "--dry-run", settings=settings)
    assert "generation (m)  " in told.out
    assert "Nothing was sent" in told.err


@pytest.mark.parametrize(
    "option", [("--passages", "-1"), ("--at-once", "0"), ("--commands", "1", "--all-commands")]
)
def test_wrong_numbers(kestrel: Home, tmp_path: Path, option: tuple[str, ...]) -> None:
    done = kestrel.hyce("evaluate", "generate", str(tmp_path / "set"), *option)
    assert (done.code, done.out) == (2, "")


def test_nothing_to_ask_about(kestrel: Home, tmp_path: Path, site: dict[str, Any]) -> None:
    with ScriptedLlm(plays()) as server:
        done = generate(kestrel, tmp_path / "set", site | llm(server), "--passages", "0", *ONE[2:])
    fails(done, "nothing to make questions of", code=2)


# -- sampling --------------------------------------------------------------------------------------------


def test_short_passages_are_no_candidates(kestrel: Home) -> None:
    with open_index(kestrel.index) as index:
        held = pool(index)
        every = {passage.id: passage for passage in index.passages(index.ids())}
    assert 0.8 * len(every) < len(held.names) < len(every)
    words = {number: len(re.findall(r"[^\W\d_]{2,}", passage.body)) for number, passage in every.items()}
    assert min(words[number] for number in held.names) >= SHORTEST
    assert max(words[number] for number in every.keys() - held.names.keys()) < SHORTEST


def test_the_sample_is_the_same_wherever_the_documentation_lies(home: Home, tmp_path: Path) -> None:
    """In another folder, indexed in another order, and where two sources have a page of one name."""
    pages = {
        name: f"# {name}\n\n" + f"The {name} rule of this cluster holds for all. " * 9 for name in "abcdef"
    }
    pools = []
    for place, order in (("one", "abcdef"), ("two/deeper", "fdbeca")):
        folder = tmp_path / place
        (folder / "docs").mkdir(parents=True)
        (folder / "more").mkdir()
        (folder / "more" / "a.md").write_text(pages["a"].replace("rule", "custom"), encoding="utf-8")
        shutil.rmtree(home.index, ignore_errors=True)
        for name in order:
            (folder / "docs" / f"{name}.md").write_text(pages[name], encoding="utf-8")
            assert home.hyce("index", str(folder / "docs")).code == 0
        assert home.hyce("index", str(folder / "docs"), str(folder / "more")).code == 0
        with open_index(home.index) as index:
            pools.append((pool(index), {each.id: each for each in index.passages(index.ids())}))
    (one, first), (two, second) = pools
    assert (one.digest, len(one.names), len(set(one.names.values()))) == (two.digest, 7, 7)
    orders = [
        [passages[number].body for number in in_order(held.names, 3, "document")]
        for held, passages in ((one, first), (two, second))
    ]
    assert orders[0] == orders[1]
    assert list(first) != list(one.names) or list(second) != list(two.names)  # ids did tell otherwise


def test_more_of_the_same_seed_adds_to_the_sample() -> None:
    names = {number: f"docs page.md#{number}" for number in range(100)}
    order = in_order(names, 0, "document")
    assert sorted(order) == list(names)
    assert order != in_order(names, 1, "document") != in_order(names, 1, "unanswerable")
    fewer = {number: name for number, name in names.items() if number % 2}
    assert in_order(fewer, 0, "document") == [number for number in order if number % 2]
