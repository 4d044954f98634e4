"""How well passages are found: figures by hand, like the scorer's, and from the command line."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hyce_home import KESTREL, Home, fails
from rankings import Silent, hits, written
from scripted_endpoint import RERANKS, ScriptedEndpoint, breaks_at
from scripted_llm import ScriptedLlm, says
from scripted_llm import fails as refuses

from hyce.errors import EndpointError
from hyce.evaluate.finding.measured import ALL
from hyce.evaluate.finding.retrieval import Found, is_unanswerable, measure, summarised, unknown_pages
from hyce.evaluate.records import Evidence, Question
from hyce.records import Search

SCORER = Path(__file__).parents[2] / "shared" / "tools" / "score_retrieval.py"
OWN = Path(__file__).parent / "data" / "kestrel_questions.jsonl"

LIMIT, GRACE = "the limit is fifty gigabytes", "the grace period lasts seven days"
ONE = Question("one", "how much?", "factoid", evidence=(Evidence("a.md", LIMIT),))
BOTH = Question("both", "how much, how long?", "multihop", evidence=(*ONE.evidence, Evidence("b.md", GRACE)))
NEITHER = Question("neither", "is there a pool?", "unanswerable")
NOWHERE = Question("nowhere", "who won?", "factoid")
COMMAND = Question("command", "my jobs?", "command", accept=("slurm.my_jobs",))

OTHER = ("c.md", "something else")
FOUND = (
    Found(ONE, hits(("c.md", "word " * 600), ("a.md", LIMIT), OTHER, OTHER, similarity=0.5)),
    Found(BOTH, hits(("a.md", LIMIT), OTHER, ("b.md", GRACE), OTHER, similarity=0.7)),
    Found(NEITHER, hits(OTHER, similarity=0.3)),
    Found(NOWHERE, hits(OTHER, similarity=0.6)),
)


@pytest.mark.parametrize(
    ("figure", "one", "both"),
    [
        ("recall@500w", 0, 1),
        ("recall@2000w", 1, 1),
        ("accuracy@1", 0, 1),
        ("accuracy@5", 1, 1),
        ("precision@1", 0, 1),
        ("precision@5", 1 / 5, 2 / 5),
        ("precision@10", 1 / 10, 2 / 10),
        ("recall@1", 0, 1 / 2),
        ("recall@5", 1, 1),
        ("f1@1", 0, 2 / 3),
        ("f1@5", 1 / 3, 4 / 7),
        ("mrr@10", 1 / 2, 1),
        ("ndcg@10", 1 / math.log2(3), (1 + 1 / 2) / (1 + 1 / math.log2(3))),
        ("auc_passages", 2 / 3, 3 / 4),
    ],
)
def test_figures_of_rankings_by_hand(figure: str, one: float, both: float) -> None:
    groups = summarised(FOUND).groups
    assert list(groups) == [ALL, "factoid", "multihop"]
    assert groups["factoid"][figure].value == pytest.approx(one)
    assert groups["multihop"][figure].value == pytest.approx(both)
    whole = groups[ALL][figure]
    assert whole.value == pytest.approx((one + both) / 2)
    # Of two questions, a draw holds one twice, or both; where both are 1, the exact bound of two out of two.
    least = 0.025**0.5 if one == both == 1 else min(one, both)
    assert (whole.low, whole.high) == pytest.approx((least, max(one, both)))
    assert whole.questions == 2


def test_answerable_questions_are_told_from_others_by_the_nearest_passage() -> None:
    measured = summarised(FOUND)
    assert measured.unanswerable == 2  # by their kind, and for want of evidence and commands
    chances = {group: figures["auc_answerable"].value for group, figures in measured.groups.items()}
    # 0.5 and 0.7 against 0.3 and 0.6
    assert chances == pytest.approx({ALL: 3 / 4, "factoid": 1 / 2, "multihop": 1})
    whole = measured.groups[ALL]["auc_answerable"]
    assert (whole.low, whole.high, whole.questions) == (0, 1, 4)


def test_a_figure_that_is_not_defined_is_missing() -> None:
    nothing = Found(replace(ONE, id="nothing"), ())
    figures = summarised([nothing]).groups[ALL]
    assert "auc_passages" not in figures and "auc_answerable" not in figures
    assert figures["recall@2000w"].value == figures["mrr@10"].value == 0


def test_what_fails_is_in_no_figure_and_what_is_for_commands_is_not_asked() -> None:
    asked: list[tuple[str, int | None]] = []

    def search(question: str, k: int | None) -> Search:
        asked.append((question, k))
        if question == BOTH.question:
            raise EndpointError("the endpoint is down")
        return Search(hits(("a.md", LIMIT)))

    empty = replace(ONE, id="long", question="x" * 30_000)
    measured = measure([ONE, BOTH, COMMAND, NEITHER, empty], search, 7, Silent())
    assert asked == [(ONE.question, 7), (BOTH.question, 7), (NEITHER.question, 7)]
    assert [each.question.id for each in measured.measured] == ["one"]
    assert measured.groups[ALL]["recall@500w"].value == 1
    assert [(each.question.id, each.error[:10]) for each in measured.failed] == [
        ("both", "the endpoi"),
        ("long", "the questi"),
    ]
    assert (measured.left_out, measured.unanswerable) == (1, 1)


def test_what_is_labelled_for_commands_alone_says_nothing_of_the_documentation() -> None:
    """A question that the documentation answers, but no command, isn't one without an answer."""
    told = Question("told", "how do I submit?", "document", accept=())
    assert not is_unanswerable(told)
    assert is_unanswerable(replace(told, kind="unanswerable"))
    measured = measure([ONE, told], lambda *_: Search(hits(("a.md", LIMIT))), 7, Silent())
    assert (measured.left_out, measured.unanswerable) == (1, 0)


def test_too_few_passages_for_the_budget_are_counted() -> None:
    assert summarised(FOUND, k=4).short == 2
    assert summarised(FOUND, k=5).short == 0  # there were no more


def test_a_miss_tells_what_is_lacking_and_how_far_down_it_stands() -> None:
    far = Found(BOTH, hits(("a.md", LIMIT), ("c.md", "word " * 2000), ("b.md", GRACE)))
    (miss,) = summarised([far]).measured
    assert miss.missed
    assert [(piece.path, rank) for piece, rank in miss.lacking()] == [("b.md", 3)]
    (gone,) = summarised([Found(ONE, hits(OTHER))]).measured
    assert [(piece.path, rank) for piece, rank in gone.lacking()] == [("a.md", None)]


def test_pages_that_no_index_holds_are_named() -> None:
    twice = replace(ONE, id="twice", evidence=ONE.evidence * 2)
    assert unknown_pages([ONE, BOTH, twice], ["docs/a.md", "x/b.md"]) == {}
    assert unknown_pages([ONE, BOTH, twice], ["docs/ba.md", "b.md"]) == {"a.md": ["one", "both", "twice"]}


# -- from the command line -------------------------------------------------------------------------------

HOME_QUOTE = "| `/home/<user>` | person | 50 GB | 55 GB | 500,000 | 7 days |"
LABELLED: list[dict[str, Any]] = [
    {
        "id": "home",
        "kind": "factoid",
        "question": "How many gigabytes may I keep in my home folder?",
        "evidence": [{"path": "docs/storage/quotas.md", "quote": HOME_QUOTE}],
    },
    {
        "id": "elsewhere",
        "kind": "howto",
        "question": "How do I hand in a job script?",
        "evidence": [{"path": "docs/gone.md", "quote": "nobody wrote this sentence anywhere"}],
    },
    {"id": "pool", "kind": "unanswerable", "question": "Is there a swimming pool?", "evidence": []},
    {"id": "jobs", "kind": "command", "question": "Are my jobs running?", "accept": ["slurm.my_jobs"]},
]


def test_labelled_questions_as_json(kestrel: Home, tmp_path: Path) -> None:
    file = written(tmp_path / "questions.jsonl", LABELLED)
    done = kestrel.hyce("evaluate", "retrieval", file, "--json", "--misses")
    assert done.code == 0
    document = done.json
    assert (document["questions"], document["unanswerable"], document["left_out"]) == (2, 1, 1)
    assert document["failed"] == []
    figures = document["figures"]
    assert figures["factoid"]["recall@500w"] == {"value": 1, "low": 0.025, "high": 1, "questions": 1}
    assert figures["all"]["recall@2000w"]["value"] == 0.5
    assert figures["all"]["auc_answerable"]["questions"] == 3
    (miss,) = document["misses"]
    assert (miss["id"], miss["kind"]) == ("elsewhere", "howto")
    wanted = {"path": "docs/gone.md", "quote": "nobody wrote this sentence anywhere", "rank": None}
    assert miss["wanted"] == [wanted]
    assert [found["rank"] for found in miss["found"]] == [1, 2, 3]
    assert miss["found"][0]["source"] == str(KESTREL)
    warning = "hyce: docs/gone.md: not in the index, so its evidence can't be found (elsewhere)"
    assert warning in done.err.splitlines()


def test_labelled_questions_as_text(kestrel: Home, tmp_path: Path) -> None:
    file = written(tmp_path / "questions.jsonl", LABELLED)
    done = kestrel.hyce("evaluate", "retrieval", file, "--misses")
    lines = done.out.splitlines()
    assert lines[0].startswith("2 questions with evidence, 1 without an answer, 1 left out")
    assert any(line.startswith("recall@500w     0.500 [0.00, 1.00]  the evidence stands") for line in lines)
    assert any(line.startswith("factoid (1)") and "1.000 [0.03, 1.00]" in line for line in lines)
    assert "1 question misses evidence within 2000 words" in lines
    assert "    wanted  docs/gone.md: nobody wrote this sentence anywhere" in lines
    assert sum(line.startswith("    found   ") for line in lines) == 3
    plain = kestrel.hyce("evaluate", "retrieval", file, "--verbose")
    assert "    wanted" not in plain.out
    assert "ndcg@10" in next(line for line in plain.out.splitlines() if line.startswith("by kind"))


def test_fewer_passages_are_less_to_look_in(kestrel: Home, tmp_path: Path) -> None:
    file = written(tmp_path / "questions.jsonl", LABELLED[:1])
    done = kestrel.hyce("evaluate", "retrieval", file, "--json", "-k", "1")
    figures = done.json["figures"]["all"]
    assert figures["precision@5"]["value"] == pytest.approx(figures["precision@1"]["value"] / 5)
    assert "1 passage has fewer than 2000 words for 1 question; raise -k" in done.err


def test_of_a_generated_question_the_source_passage_is_the_label(kestrel: Home, tmp_path: Path) -> None:
    hit = kestrel.hyce("search", "How long may a job run on Merlin?", "-k", "1", "--json").json["hits"][0]
    label = {"path": hit["path"], "quote": hit["text"], "source": hit["source"]}
    asked = {"kind": "document", "question": "How long may a job run on Merlin?", "answer": "48 hours"}
    origin = {
        "created": "2026-01-01",
        "seed": 0,
        "model": "m",
        "filter_model": "m",
        "prompts": "x",
        "index": {},
        "sampled": {},
    }
    rows: list[dict[str, Any]] = [
        {"origin": {**origin, "index": {"passages": "structure/999/2"}}},
        {"id": "d1", **asked, "evidence": [label]},
        {"id": "d2", **asked, "evidence": [label], "rejected": "standalone"},
        {"id": "d3", **asked, "evidence": [{**label, "source": "/where/the/pages/lay/before"}]},
        {"id": "d4", **asked, "evidence": [{**label, "path": "docs/gone.md"}]},
    ]
    written(tmp_path / "questions.jsonl", rows)
    done = kestrel.hyce("evaluate", "retrieval", str(tmp_path), "--json")
    assert done.json["questions"] == 3  # one was rejected
    assert done.json["figures"]["document"]["mrr@10"]["value"] == 0.6667
    first, second = done.err.splitlines()
    assert "passages of structure/999/2, and this index has structure/" in first
    assert second == "hyce: docs/gone.md: not in the index, so its evidence can't be found (d4)"
    written(tmp_path / "questions.jsonl", [{"origin": origin}, *rows[1:4]])
    assert kestrel.hyce("evaluate", "retrieval", str(tmp_path), "--json").err == ""


def test_the_figures_are_the_scorers(kestrel: Home, tmp_path: Path) -> None:
    if not SCORER.is_file():
        pytest.skip(f"{SCORER} is not there to compare with")
    # Every third question, of all kinds: the scorer takes its time.
    some = [json.loads(line) for line in OWN.read_text(encoding="utf-8").splitlines()[::3]]
    file = written(tmp_path / "questions.jsonl", some)
    found = kestrel.hyce("search", "-", "-k", "60", "--json", stdin=Path(file).read_bytes())
    results = tmp_path / "results.jsonl"
    results.write_text(found.out, encoding="utf-8")
    scored = subprocess.run(
        [sys.executable, SCORER, file, results, "--json"], capture_output=True, check=True, timeout=120
    )
    own = kestrel.hyce("evaluate", "retrieval", file, "--json").json["figures"]
    theirs = json.loads(scored.stdout)
    assert list(own) == list(theirs)
    for group, figures in theirs.items():
        for name in ("recall@500w", "recall@2000w", "mrr@10"):
            assert own[group][name]["value"] == pytest.approx(figures[name], abs=0.0006), (group, name)
            assert own[group][name]["questions"] == figures["n"]


def test_a_model_that_helps_with_the_search_is_asked(kestrel: Home, tmp_path: Path) -> None:
    file = written(tmp_path / "questions.jsonl", LABELLED[:1])
    wordings = says(json.dumps({"wordings": ["quota of the home folder"]}))
    with ScriptedLlm(wordings, refuses(400, "no")) as server:
        settings = {
            "llm.base_url": server.url,
            "llm.model": "scripted",
            "llm.retries": 0,
            "retrieval.transform": "fusion",
        }
        helped = kestrel.hyce("evaluate", "retrieval", file, "--json", settings=settings)
        without = kestrel.hyce("evaluate", "retrieval", file, "--json", settings=settings)
    assert len(server.requests) == 2
    assert helped.code == without.code == 0
    assert "could not be used" not in helped.err
    assert "home: The language model's help with the search could not be used" in without.err


def test_a_question_that_fails_is_shown_and_the_exit_code_says_so(kestrel: Home, tmp_path: Path) -> None:
    file = written(
        tmp_path / "q.jsonl",
        [LABELLED[0], {**LABELLED[0], "id": "late", "question": "Who won the election?"}],
    )
    with ScriptedEndpoint(breaks_at("election")) as server:
        settings = {**RERANKS, "reranker.base_url": server.origin}
        done = kestrel.hyce("evaluate", "retrieval", file, "--json", settings=settings)
    assert done.code == 1
    assert done.json["questions"] == 1
    assert [failure["id"] for failure in done.json["failed"]] == ["late"]
    assert f"hyce: late: {server.origin}, model ranker: the server failed (500)" in done.err


def test_wrong_calls(kestrel: Home, tmp_path: Path) -> None:
    commands = written(tmp_path / "commands.jsonl", LABELLED[3:])
    fails(kestrel.hyce("evaluate", "retrieval", commands), "no question says where its answer stands", code=2)
    gone = str(tmp_path / "gone.jsonl")
    fails(kestrel.hyce("evaluate", "retrieval", gone), "can't be read", "hyce evaluate generate", code=2)
    fails(kestrel.hyce("evaluate", "retrieval"), "QUESTIONS", code=2)
    fails(kestrel.hyce("evaluate", "retrieval", commands, "-k", "0"), "no number from 1 upwards", code=2)


def test_without_an_index_the_remedy_is_named(home: Home, tmp_path: Path) -> None:
    file = written(tmp_path / "questions.jsonl", LABELLED)
    fails(home.hyce("evaluate", "retrieval", file), "hyce index")
