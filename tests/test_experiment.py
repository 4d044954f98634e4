"""hyce evaluate run: against a scripted endpoint that answers and judges by what it is sent."""

from __future__ import annotations

import hashlib
import json
import resource
import shutil
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hyce_home import Home, Result, fails, wait_for
from scripted_llm import Request, ScriptedLlm, says
from scripted_llm import fails as refuses

from hyce import catalogue
from hyce.evaluate.records import Evidence, Origin, Question, QuestionSet, Run, StoredOutput
from hyce.evaluate.running.runs import read_run
from hyce.evaluate.sets import write_set
from hyce.evaluate.work import IN_A_ROW
from hyce.parameters import fill
from hyce.records import CommandOutput

QUESTIONS = (
    Question(
        "doc-1",
        "How many gigabytes may my home folder hold?",
        "document",
        "50 GB",
        (Evidence("docs/storage/quotas.md", "50 GB"),),
    ),
    Question("doc-2", "How long may a job run in the standard partition of Merlin?", "document", "48 hours"),
    Question(
        "com-1", "What is today's date and time on this machine?", "command", "now", accept=("system.date",)
    ),
    Question("none-1", "Which colour has the door of the machine room?", "unanswerable"),
)
DATE = catalogue.load()["system.date"]
STORED = StoredOutput(
    DATE.description,
    CommandOutput(
        DATE.id, fill(DATE, {})[0], "ok", 0, "Monday 2026-01-05\n", "", False, 0.1, (), "2026-01-05"
    ),
)
ORIGIN = Origin("2026-01-05", 0, "scripted", "scripted", "p", {"chunks": 1}, {"document": ("x#1",)})

TWO = """
passes = 2
[[variant]]
name = "docs"
settings.commands.enabled = false
settings.retrieval.passages = 2
settings.retrieval.rerank = "none"
[[variant]]
name = "all"
inherits = "docs"
settings.commands.enabled = true
settings.retrieval.passages = 3
"""


def criteria(request: Request) -> set[str]:
    """What a judge is asked for; empty for other requests."""
    form = request.body.get("response_format", {}).get("json_schema", {}).get("schema", {})
    return set(form.get("properties", {})) & {"correctness", "faithfulness", "abstained"}


def plays(exchange: Any) -> None:
    """The answer is a digest of the prompt; the verdict follows from the answer."""
    request = exchange.request_seen
    wanted = criteria(request)
    text = request.prompt.partition("answer to judge")[2] if wanted else request.prompt
    number = hashlib.sha256(f"{text}{request.body['seed']}".encode()).hexdigest()[:8]
    reply = {"reasons": "as it is", **{name: int(number, 16) % 2 for name in sorted(wanted)}}
    says(json.dumps(reply) if wanted else f"It is {number} [1].", usage=(100, 10))(exchange)


@pytest.fixture
def server() -> Iterator[ScriptedLlm]:
    with ScriptedLlm(plays) as running:
        yield running


class Bench:
    """A folder with questions and variants, and a way to run them."""

    def __init__(self, folder: Path, home: Home, server: ScriptedLlm) -> None:
        self.folder, self.home, self.server = folder, home, server
        self.more: dict[str, Any] = {}
        self.variants(TWO)
        self.questions(QUESTIONS)

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def variants(self, text: str) -> None:
        file = self.folder / "variants.toml"
        file.write_text(text, encoding="utf-8")
        file.chmod(0o600)

    def questions(self, questions: Sequence[Question]) -> None:
        made = QuestionSet(tuple(questions), "", outputs=(STORED,), origin=ORIGIN)
        write_set(self.folder / "q.jsonl", made)

    def settings(self, url: str = "") -> dict[str, Any]:
        return {
            "llm.base_url": url or self.server.url,
            "llm.model": "scripted",
            "llm.retries": 0,
            "index.path": str(self.home.index),
            **self.more,
        }

    def arguments(self, *options: str, out: Path | None = None) -> list[str]:
        files = [str(self.folder / "q.jsonl"), "--variants", str(self.folder / "variants.toml")]
        return ["evaluate", "run", *files, "--out", str(out or self.out), *options]

    def run(self, *options: str, out: Path | None = None, url: str = "") -> Result:
        return self.home.hyce(*self.arguments(*options, out=out), settings=self.settings(url))

    def done(self, *options: str, out: Path | None = None) -> Run:
        """A run that goes well, read again."""
        ran = self.run(*options, "--json", "--quiet", out=out)
        assert (ran.code, ran.err) == (0, "")
        return read_run(out or self.out)

    def asked(self) -> list[str]:
        """What the server was asked since the last call: "answer" or "judge"."""
        found = ["judge" if criteria(request) else "answer" for request in self.server.requests]
        self.server.requests.clear()
        return found


@pytest.fixture
def bench(tmp_path: Path, kestrel: Home, server: ScriptedLlm) -> Bench:
    tmp_path.chmod(0o755)
    return Bench(tmp_path, kestrel, server)


def plain(run: Run) -> list[str]:
    """The results without times and in order, to compare."""
    return sorted(repr(replace(each, timings_ms={})) for each in run.results)


def by_place(run: Run) -> dict[tuple[str, str, int], Any]:
    return {(each.variant, each.question, each.attempt): each for each in run.results}


# -- a run -----------------------------------------------------------------------------------------------


def test_every_variant_answers_every_question_in_every_pass(bench: Bench) -> None:
    run = bench.done()
    found = by_place(run)
    assert set(found) == {(v, q.id, n) for v in ("docs", "all") for q in QUESTIONS for n in (1, 2)}
    assert {each.status for each in run.results} == {"answered"}
    assert {len(each.verdicts) for each in run.results} == {1}
    verdicts = {each.question: set(each.verdicts[0].scores) for each in run.results if each.verdicts[0].model}
    assert verdicts["doc-1"] == {"correctness", "faithfulness"}
    assert set(verdicts.get("none-1", {"abstained"})) == {"abstained"}
    one, two = found["all", "doc-1", 1], found["all", "doc-1", 2]
    assert one.answer != two.answer, "the passes have seeds of their own"
    assert (one.prompt_tokens, one.completion_tokens) == (100, 10)
    assert one.timings_ms["total"] >= one.timings_ms["model"] > 0
    assert (run.mode, run.judge, run.second_judge, run.passes) == ("grounded", "scripted", "", 2)
    assert [row.model for row in run.rows] == ["scripted", "scripted"]


def test_the_variants_settings_are_in_effect(bench: Bench) -> None:
    found = by_place(bench.done())
    docs, every = found["docs", "com-1", 1], found["all", "com-1", 1]
    assert [given.kind for given in docs.given] == ["passage"] * 2
    assert docs.commands == ()
    assert every.commands == ("system.date",)
    assert "Monday 2026-01-05" in every.given[0].text, "the output that the question file holds"
    assert "command" in {given.kind for given in every.given}
    assert len([given for given in every.given if given.kind == "passage"]) == 3
    rows = {row.name: row.settings for row in read_run(bench.out).rows}
    assert (rows["docs"]["retrieval.passages"], rows["all"]["retrieval.passages"]) == (2, 3)
    assert rows["all"]["retrieval.rerank"] == "none"


def test_the_model_is_told_the_questions_own_date(bench: Bench) -> None:
    bench.done("--only", "docs")
    answers = [request for request in bench.server.requests if not criteria(request)]
    assert answers
    assert all("2026-01-05" in request.prompt for request in answers)
    bench.server.requests.clear()
    live = bench.done("--only", "docs", "--live", out=bench.folder / "live")
    answers = [request for request in bench.server.requests if not criteria(request)]
    assert answers
    assert all(f"Today is {live.created[:10]}" in request.prompt for request in answers)


def test_a_repeated_run_asks_nothing(bench: Bench) -> None:
    first = bench.done()
    assert set(bench.asked()) == {"answer", "judge"}
    ran = bench.run("--json")
    assert (ran.code, ran.json["calls"], bench.asked()) == (0, 0, [])
    assert plain(read_run(bench.out)) == plain(first)


def test_what_differs_alone_is_asked(bench: Bench) -> None:
    bench.done()
    bench.asked()
    bench.variants(TWO.replace("settings.retrieval.passages = 3", "settings.retrieval.passages = 4"))
    run = bench.done()
    assert 0 < bench.asked().count("answer") <= len(QUESTIONS) * 2
    assert len(run.results) == len(QUESTIONS) * 4
    bench.done("--judge-repeats", "3")
    assert set(bench.asked()) == {"judge"}
    assert {len(each.verdicts) for each in read_run(bench.out).results} == {3}
    assert read_run(bench.out).mode == "grounded"
    bench.done("--judge", "paper")
    assert set(bench.asked()) == {"judge"}
    assert read_run(bench.out).mode == "paper"


def test_judging_again_differs_in_the_seed(bench: Bench) -> None:
    bench.done("--only", "docs", "--passes", "2", "--limit", "1", "--judge-repeats", "3")
    judged = [request for request in bench.server.requests if criteria(request)]
    # The answers of the two passes differ in theirs.
    assert sorted(request.body["seed"] for request in judged) == [0, 0, 1, 1, 2, 2]


def test_a_second_judge_gives_a_verdict_of_its_own(bench: Bench) -> None:
    bench.more = {"llm.second_judge.model": "other"}
    run = bench.done("--only", "docs", "--passes", "1")
    assert run.second_judge == "other"
    roles = {(verdict.judge, verdict.model) for each in run.results for verdict in each.verdicts}
    assert {("judge", "scripted"), ("second_judge", "other")} <= roles
    assert {request.body["model"] for request in bench.server.requests} == {"scripted", "other"}


def test_all_variants_have_the_same_judge(bench: Bench) -> None:
    bench.variants(
        '[[variant]]\nname = "a"\nsettings.llm.model = "weak"\n'
        '[[variant]]\nname = "b"\nsettings.llm.model = "strong"\nsettings.llm.temperature = 0.7\n'
    )
    run = bench.done("--passes", "1")
    assert [row.model for row in run.rows] == ["weak", "strong"]
    judged = [request.body for request in bench.server.requests if criteria(request)]
    assert {(body["model"], body["temperature"]) for body in judged} == {("scripted", 0.0)}
    answered = [request.body for request in bench.server.requests if not criteria(request)]
    assert {(b["model"], b["temperature"]) for b in answered} == {("weak", 0.0), ("strong", 0.7)}


def test_what_is_refused_is_judged_as_the_user_sees_it(bench: Bench) -> None:
    refused = Question("bad", "cancel all my jobs right now", "command", "no", accept=())
    bench.questions([refused])
    run = bench.done("--only", "all", "--passes", "1")
    (result,) = run.results
    assert (result.status, result.model, result.given) == ("answered", "", ())
    assert result.answer
    assert bench.asked() == ["judge"]


def test_only_and_limit(bench: Bench) -> None:
    assert {each.variant for each in bench.done("--only", "all", "--limit", "1").results} == {"all"}
    run = bench.done("--limit", "2", "--only", "docs")
    assert {(each.variant, each.question) for each in run.results} == {
        (variant, question) for variant, question in (("docs", "doc-1"), ("docs", "doc-2"), ("all", "doc-1"))
    }
    assert [row.name for row in run.rows] == ["docs", "all"]
    fails(bench.run("--only", "al"), "no variant is called 'al'", "docs, all", code=2)


def test_questions_without_a_reference_are_not_asked(bench: Bench) -> None:
    unknown = replace(QUESTIONS[2], answer="")
    bench.questions([QUESTIONS[0], unknown])
    ran = bench.run("--passes", "1")
    assert ran.code == 0
    assert "Questions without a reference answer, which are not asked: 1" in ran.err
    assert {each.question for each in read_run(bench.out).results} == {"doc-1"}
    bench.questions([unknown])
    fails(bench.run(out=bench.folder / "other"), "no question has a reference answer", code=2)


def test_other_questions_need_another_folder(bench: Bench) -> None:
    bench.done("--limit", "1")
    bench.questions(QUESTIONS[:2])
    fails(bench.run("--quiet"), "other questions; choose another folder", code=2)
    fails(bench.run("--quiet", "--dry-run"), "other questions; choose another folder", code=2)


def test_nobody_to_judge(bench: Bench) -> None:
    bench.more = {"llm.base_url": "", "llm.answer.base_url": bench.server.url, "llm.answer.model": "m"}
    fails(bench.run("--quiet"), "nobody judges", "llm.judge")


# -- an estimate -----------------------------------------------------------------------------------------


def test_a_dry_run_sends_and_writes_nothing(bench: Bench) -> None:
    guess = bench.run("--dry-run", "--json")
    assert (guess.code, bench.asked(), bench.out.exists()) == (0, [], False)
    tasks = len(QUESTIONS) * 2
    assert [(row["variant"], row["answers"]) for row in guess.json["variants"]] == [
        ("docs", tasks),
        ("all", tasks),
    ]
    assert {role: cost["calls"] for role, cost in guess.json["roles"].items()} == {
        "answer": 2 * tasks,
        "judge": 2 * tasks,
    }
    bench.done("--only", "docs")
    # Where no passage is near, no model is asked; where an answer is the same, it isn't judged twice.
    assert 0 < len(bench.asked()) <= 2 * tasks
    files = {file: file.read_bytes() for file in bench.out.iterdir()}
    again = bench.run("--dry-run", "--json").json
    assert [(row["variant"], row["answers"]) for row in again["variants"]] == [("docs", 0), ("all", tasks)]
    assert {file: file.read_bytes() for file in bench.out.iterdir()} == files
    assert bench.asked() == []


# -- failures --------------------------------------------------------------------------------------------


def test_a_failed_answer_is_asked_for_again_and_a_good_one_is_not(bench: Bench) -> None:
    down = threading.Event()
    down.set()

    def step(exchange: Any) -> None:
        failing = down.is_set() and "standard partition" in exchange.request_seen.prompt
        (refuses(500, "down") if failing else plays)(exchange)

    with ScriptedLlm(step) as shaky:
        options = ("--json", "--passes", "1", "--only", "docs", "--limit", "2")
        first = bench.run(*options, url=shaky.url)
        assert (first.code, first.json["variants"][0]["failed"]) == (1, 1)
        (failed,) = [each for each in read_run(bench.out).results if each.status == "failed"]
        assert "the server failed (500): down" in failed.error
        shaky.requests.clear()
        down.clear()
        second = bench.run(*options, url=shaky.url)
        assert (second.code, second.json["variants"][0]["judged"]) == (0, 2)
        assert len(shaky.requests) == 2
        assert all("standard partition" in request.prompt for request in shaky.requests)


def test_a_failed_verdict_is_asked_for_again_without_a_new_answer(bench: Bench) -> None:
    down = threading.Event()
    down.set()

    def step(exchange: Any) -> None:
        failing = down.is_set() and criteria(exchange.request_seen)
        (refuses(500, "down") if failing else plays)(exchange)

    with ScriptedLlm(step) as shaky:
        options = ("--json", "--passes", "1", "--only", "docs", "--limit", "2")
        first = bench.run(*options, url=shaky.url)
        assert (first.code, first.json["variants"][0]["judge_failed"]) == (1, 2)
        shaky.requests.clear()
        down.clear()
        assert bench.run(*options, url=shaky.url).code == 0
        assert [bool(criteria(request)) for request in shaky.requests] == [True, True]


def test_an_answer_without_the_help_that_its_variant_asks_for_is_a_failure(bench: Bench) -> None:
    down = threading.Event()
    down.set()

    def step(exchange: Any) -> None:
        helps = exchange.request_seen.body["model"] == "helper"
        if helps and down.is_set():
            refuses(500, "down")(exchange)
        else:
            (says("A home folder holds 50 GB.") if helps else plays)(exchange)

    bench.variants('[[variant]]\nname = "hyde"\nsettings.retrieval.transform = "hyde"\n')
    bench.more = {"llm.queries.model": "helper"}
    with ScriptedLlm(step) as shaky:
        options = ("--json", "--passes", "1", "--limit", "1")
        first = bench.run(*options, url=shaky.url)
        assert (first.code, first.json["variants"][0]["failed"]) == (1, 1)
        (failed,) = read_run(bench.out).results
        assert "model helper: the server failed (500): down" in failed.error
        down.clear()
        second = bench.run(*options, url=shaky.url)
        assert (second.code, second.json["variants"][0]["judged"]) == (0, 1)


def test_an_endpoint_that_is_down_ends_the_run(bench: Bench) -> None:
    many = [
        Question(f"q{n}", f"How big is the home folder number {n}?", "document", "50 GB") for n in range(40)
    ]
    bench.questions(many)
    with ScriptedLlm(refuses(500, "out of order")) as broken:
        ran = bench.run("--quiet", url=broken.url)
        fails(ran, f"given up after {IN_A_ROW} failures", "out of order")
        assert len(broken.requests) <= IN_A_ROW + 8
    assert len(read_run(bench.out).results) >= IN_A_ROW


def test_a_variant_that_is_not_available_stops_no_other(bench: Bench) -> None:
    bench.variants(
        TWO
        + '[[variant]]\nname = "not pulled"\nsettings.model.name = "nowhere"\n'
        + '[[variant]]\nname = "no address"\nsettings.model.kind = "openai"\n'
        + '[[variant]]\nname = "no consent"\nsettings.llm.base_url = "https://llm.example.org/v1"\n'
        + '[[variant]]\nname = "no model"\nsettings.llm.model = ""\n'
        + f'[[variant]]\nname = "no index"\nsettings.index.path = "{bench.folder}/none"\n'
    )
    ran = bench.run("--json", "--passes", "1", "--limit", "2")
    assert ran.code == 1
    rows = {row["variant"]: row for row in ran.json["variants"]}
    assert [rows[name]["judged"] for name in ("docs", "all")] == [2, 2]
    reasons = {name: row["unavailable"] for name, row in rows.items() if row["unavailable"]}
    assert list(reasons) == ["not pulled", "no address", "no consent", "no model", "no index"]
    assert "model.base_url" in reasons["no address"]
    assert "has not consented" in reasons["no consent"]
    assert "no language model is configured" in reasons["no model"]
    assert "no index here" in reasons["no index"]
    for name, reason in reasons.items():
        assert f"{name} can't be run: {reason}" in ran.err
    assert {row.name: row.unavailable for row in read_run(bench.out).rows if row.unavailable} == reasons


def test_what_is_finished_needs_nothing_to_be_there(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.variants(
        f"{TWO}settings.llm.base_url = '{bench.server.url}'\nsettings.llm.api_key_env = 'THE_KEY'\n"
    )
    monkeypatch.setenv("THE_KEY", "k")
    run = bench.done("--passes", "1")
    monkeypatch.delenv("THE_KEY")
    assert plain(bench.done("--passes", "1")) == plain(run)
    more = bench.run("--passes", "2", "--json").json["variants"]
    assert [bool(row["unavailable"]) for row in more] == [False, True]


# -- what may not leave the site ------------------------------------------------------------------------


def test_a_question_made_of_private_output_goes_to_no_endpoint_outside(bench: Bench) -> None:
    told = "How long has PRIVATE-4711 been waiting?"
    bench.questions([Question("own", told, "command", "2 days", accept=("slurm.my_jobs",)), *QUESTIONS[:2]])
    with ScriptedLlm(plays) as outside:
        bench.more = {"policy.outside_endpoints": [outside.url]}
        bench.variants(
            f'[[variant]]\nname = "out"\nsettings.llm.base_url = "{outside.url}"\n'
            '[[variant]]\nname = "in"\n'
            '[[variant]]\nname = "helped"\nsettings.retrieval.transform = "hyde"\n'
            f'settings.llm.queries.base_url = "{outside.url}"\nsettings.llm.queries.model = "helper"\n'
        )
        run = bench.done("--passes", "1", "--judge-repeats", "2")
        assert outside.requests
        assert not any("4711" in request.everything for request in outside.requests)
        bench.asked()
        outside.requests.clear()
        assert plain(bench.done("--passes", "1", "--judge-repeats", "2")) == plain(run)
        assert (bench.asked(), outside.requests) == ([], [])
    found = by_place(run)
    for name in ("out", "helped"):
        verdicts = found[name, "own", 1].verdicts
        assert [(each.status, each.repeat) for each in verdicts] == [("withheld", 1), ("withheld", 2)]
        assert "may not leave the site" in verdicts[0].error
        assert found[name, "doc-1", 1].verdicts[0].status == "judged"
    assert found["in", "own", 1].verdicts[0].status == "judged"


def test_a_verdict_that_was_withheld_is_given_once_it_may_be(bench: Bench) -> None:
    catalogue_folder = bench.folder / "catalogue"
    question = "What does the nuclear clock in the basement show?"
    bench.questions([Question("clock", question, "command", "noon", accept=("site.clock",))])
    with ScriptedLlm(plays) as outside:
        bench.more = {
            **clock(catalogue_folder),
            "policy.outside_endpoints": [outside.url],
            "llm.judge.base_url": outside.url,
            "llm.judge.model": "scripted",
        }
        options = ("--passes", "1")
        for result in bench.done(*options).results:
            assert [each.status for each in result.verdicts] == ["withheld"]
        assert outside.requests == []
        with (catalogue_folder / "own.yaml").open("a", encoding="utf-8") as file:
            file.write("  may_leave_site: true\n")
        for result in bench.done(*options).results:
            assert [each.status for each in result.verdicts] == ["judged"]


# -- indexes ---------------------------------------------------------------------------------------------

SMALLER = """
[[variant]]
name = "as it is"
[[variant]]
name = "small"
settings.passages.size = 80
[[variant]]
name = "small too"
inherits = "small"
settings.retrieval.passages = 2
"""


def test_variants_with_other_passages_share_an_index_of_their_own(
    bench: Bench, tmp_path: Path, kestrel: Home
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    rows = "".join(
        f"- The quota of project number {n} is {n} TB on the scratch file system.\n" for n in range(60)
    )
    (docs / "quota.md").write_text(f"# Quotas\n\n{rows}", encoding="utf-8")
    index = tmp_path / "index"
    bench.more = {"index.path": str(index), "retrieval.join": False, "commands.enabled": False}
    made = kestrel.hyce("index", str(docs), "--json", settings=bench.settings())
    assert made.code == 0, made.err
    bench.variants(SMALLER)
    asked = bench.run("--dry-run", "--json").json["variants"]
    assert [row["index"] for row in asked] == ["index there", "index to be made", "index to be made"]
    run = bench.done("--passes", "1", "--limit", "1")
    (own,) = (bench.out / "indexes").iterdir()
    found = by_place(run)
    sizes = {name: len(found[name, "doc-1", 1].given[0].text) for name in ("as it is", "small", "small too")}
    assert sizes["small"] == sizes["small too"] < sizes["as it is"]
    assert len(found["small too", "doc-1", 1].given) == 2
    before = (own / "current").read_bytes()
    bench.asked()
    bench.done("--passes", "1", "--limit", "1")
    assert ((own / "current").read_bytes(), bench.asked()) == (before, [])
    # The documentation changes: the configured index first, and then what was made from the same sources.
    (docs / "quota.md").write_text("# Quotas\n\nThe home folder holds 70 GB.\n", encoding="utf-8")
    assert kestrel.hyce("index", settings=bench.settings()).code == 0
    found = by_place(bench.done("--passes", "1", "--limit", "1"))
    assert "70 GB" in found["small", "doc-1", 1].given[0].text


def test_a_preset_that_the_index_was_made_with_needs_no_other(
    bench: Bench, tmp_path: Path, kestrel: Home
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text("# Home\n\nThe home folder holds 70 GB.\n", encoding="utf-8")
    bench.more = {"index.path": str(tmp_path / "index"), "passages.size": 80}
    assert kestrel.hyce("index", str(docs), settings=bench.settings()).code == 0
    bench.more = {"index.path": str(tmp_path / "index")}
    bench.variants(SMALLER)
    bench.done("--only", "small", "--passes", "1", "--limit", "1")
    assert not (bench.out / "indexes").exists()


def test_an_index_that_changes_meanwhile_is_not_taken_for_the_old_one(bench: Bench, kestrel: Home) -> None:
    index = bench.folder / "index"
    shutil.copytree(kestrel.index, index)
    bench.more = {"index.path": str(index)}

    def step(exchange: Any) -> None:
        current = json.loads((index / "current").read_bytes())
        if current["written"] != "2030-01-01T00:00:00+00:00":
            current["written"] = "2030-01-01T00:00:00+00:00"
            (index / "current").write_text(json.dumps(current), encoding="utf-8")
        plays(exchange)

    with ScriptedLlm(step) as busy:
        options = ("--passes", "1", "--limit", "1", "--at-once", "1")
        fails(bench.run("--quiet", *options, url=busy.url), "was indexed anew")
        assert {each.variant for each in read_run(bench.out).results} == {"docs"}
        assert bench.run(*options, url=busy.url).code == 0
        assert {each.variant for each in read_run(bench.out).results} == {"docs", "all"}


# -- commands --------------------------------------------------------------------------------------------


def clock(folder: Path) -> dict[str, Any]:
    """A site's entry whose output is another one each time."""
    folder.mkdir(mode=0o755)
    (folder / "own.yaml").write_text(
        "site.clock:\n  description: Shows the time of the nuclear clock in the basement to the nanosecond.\n"
        "  questions: [what does the nuclear clock in the basement show]\n  command: [date, +%s.%N]\n",
        encoding="utf-8",
    )
    (folder / "own.yaml").chmod(0o644)
    return {"policy.catalogue": [str(folder)]}


def outputs(run: Run) -> list[str]:
    found = [given.text for each in run.results for given in each.given if given.label.startswith("date +%s")]
    assert len(found) == len(run.results) == 4
    return found


def test_commands_are_replayed_to_all_and_run_anew_on_demand(bench: Bench) -> None:
    bench.more = clock(bench.folder / "catalogue")
    bench.questions([Question("clock", "What does the nuclear clock in the basement show?", "command", "1")])
    bench.variants(
        'passes = 2\n[[variant]]\nname = "a"\n[[variant]]\nname = "b"\nsettings.retrieval.passages = 2\n'
    )
    assert len(set(outputs(bench.done()))) == 1
    assert len(set(outputs(bench.done("--passes", "2", out=bench.folder / "again")))) == 1
    live = bench.done("--live", "--at-once", "1", out=bench.folder / "live")
    assert live.live
    # Two passes of one variant may ask at the same moment, and share a run then; these don't.
    assert len(set(outputs(live))) == 4
    bench.asked()
    assert plain(bench.done("--live", out=bench.folder / "live")) == plain(live)
    assert bench.asked() == []


# -- interruptions ---------------------------------------------------------------------------------------


def slowly(exchange: Any) -> None:
    exchange.server.script.ended.wait(0.05)
    plays(exchange)


def sent(body: Mapping[str, Any]) -> str:
    """What was asked, however the reply was to come."""
    return json.dumps(
        {k: v for k, v in body.items() if k not in ("stream", "stream_options")}, sort_keys=True
    )


def recorded(folder: Path) -> list[str]:
    lines = (folder / "calls.jsonl").read_bytes().splitlines(keepends=True)
    return [sent(json.loads(line)["request"]) for line in lines if line.endswith(b"\n")]


def killed_after(calls: int, bench: Bench, server: ScriptedLlm) -> None:
    """Starts a run and kills it once the server was asked so often, over all."""
    process = bench.home.start(*bench.arguments(), settings=bench.settings(server.url))
    wait_for(lambda: len(server.requests) >= calls or process.poll() is not None)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL


def test_a_killed_run_goes_on_where_it_stopped(bench: Bench) -> None:
    whole = bench.done(out=bench.folder / "whole")
    with ScriptedLlm(slowly) as slow:
        for calls in (5, 12):
            killed_after(calls, bench, slow)
        known = recorded(bench.out)
        assert known
        slow.requests.clear()
        ran = bench.run("--json", url=slow.url)
        assert ran.code == 0
        again = [sent(request.body) for request in slow.requests]
    assert again
    assert set(again).isdisjoint(known)
    assert len(set(again)) == len(again)
    # Another address is another model, as far as anybody knows: the keys differ, and nothing else.
    results, expected = read_run(bench.out).results, whole.results
    stripped = [
        sorted(repr(replace(each, key="", timings_ms={})) for each in some) for some in (results, expected)
    ]
    assert stripped[0] == stripped[1]


def test_a_full_disk_is_one_line_and_nothing_is_lost(bench: Bench) -> None:
    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))

    ran = bench.home.spawn(*bench.arguments("--quiet"), settings=bench.settings(), preexec_fn=small_files)
    fails(ran, ".jsonl: can't be written (File too large)", "what was done is kept")
    known = recorded(bench.out)
    assert known
    bench.asked()
    run = bench.done()
    again = [sent(request.body) for request in bench.server.requests]
    assert again
    assert set(again).isdisjoint(known)
    assert plain(run) == plain(bench.done(out=bench.folder / "whole"))


def test_a_disk_without_room_for_the_questions_is_one_line(bench: Bench) -> None:
    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))

    ran = bench.home.spawn(*bench.arguments("--quiet"), settings=bench.settings(), preexec_fn=small_files)
    fails(ran, "questions.jsonl: can't be written (File too large)", "free some space")
    assert plain(bench.done()) == plain(bench.done(out=bench.folder / "whole"))


def test_an_interrupted_run_keeps_what_was_answered_meanwhile(bench: Bench) -> None:
    with ScriptedLlm(slowly) as slow:
        process = bench.home.start(*bench.arguments(), settings=bench.settings(slow.url))
        wait_for(lambda: len(slow.requests) >= 5 or process.poll() is not None)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
        assert process.returncode == 130, err
        assert "Traceback" not in str(err)
        known = recorded(bench.out)
        assert sorted(known) == sorted(sent(request.body) for request in slow.requests)
        slow.requests.clear()
        assert bench.run(url=slow.url).code == 0
        assert {sent(request.body) for request in slow.requests}.isdisjoint(known)


def test_two_runs_in_one_folder(bench: Bench) -> None:
    with ScriptedLlm(slowly) as slow:
        process = bench.home.start(*bench.arguments(), settings=bench.settings(slow.url))
        wait_for(lambda: bool(slow.requests) or process.poll() is not None)
        before = len(slow.requests)
        assert before
        fails(bench.run("--quiet", url=slow.url), "being written by process", str(process.pid))
        process.kill()
        process.communicate()
