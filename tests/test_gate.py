"""A site's gate: what it reads, what it holds against figures, and how it ends in CI."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hyce_home import Home, Result, fails
from rankings import written
from scripted_endpoint import RERANKS, ScriptedEndpoint, breaks_at
from small_run import HYCE, RUN, result, write

from hyce.errors import StoreError, UsageError
from hyce.evaluate.finding.baseline import Baseline, check_comparable, read_baseline, write_baseline
from hyce.evaluate.finding.gate import Taken, digest, outcome, to_store
from hyce.evaluate.finding.gate_file import Gate, read_gate
from hyce.evaluate.finding.measured import ALL, Figure
from hyce.evaluate.records import Evidence, Question

WHOLE = """
[retrieval]
questions = ["q.jsonl", "more/q.jsonl"]
k = 40
"recall@500w" = 0.8
"mrr@10" = 1

[retrieval.kinds.factoid]
"recall@500w" = 0.9

[routing]
questions = ["r.jsonl"]
scheduler = "pbs"
assume_available = true
first = 0.7

[run]
folder = "a-run"
variant = "+cot"
eval_score = 0.75

[baseline]
file = "baseline.json"
tolerance = 0.05
"""


def gate_of(folder: Path, text: str) -> Gate:
    file = folder / "gate.toml"
    file.write_text(text, encoding="utf-8")
    return read_gate(file)


def test_a_gate_is_read_with_paths_relative_to_its_file(tmp_path: Path) -> None:
    gate = gate_of(tmp_path, WHOLE)
    retrieval, routing, run = gate.sections
    assert gate.paths(retrieval) == [tmp_path / "q.jsonl", tmp_path / "more" / "q.jsonl"]
    assert retrieval.settings["k"] == 40
    assert retrieval.thresholds == {
        (ALL, "recall@500w"): 0.8,
        (ALL, "mrr@10"): 1,
        ("factoid", "recall@500w"): 0.9,
    }
    assert routing.settings == {"questions": ["r.jsonl"], "scheduler": "pbs", "assume_available": True}
    assert run.settings == {"folder": "a-run", "variant": "+cot"}
    assert (gate.baseline, gate.tolerance) == (tmp_path / "baseline.json", 0.05)


Q = '[retrieval]\nquestions = ["q"]\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "checks nothing; add [retrieval]"),
        ('[baseline]\nfile = "b"\n', "checks nothing"),
        (Q, '[retrieval] checks nothing; give a figure its least value, such as "recall@500w" = 0.8'),
        ('[retrieval]\n"recall@500w" = 0.8\n', "[retrieval]: has no questions"),
        ('[retrieval]\nquestions = []\n"recall@500w" = 0.8\n', "[retrieval]: has no questions"),
        (Q + '"recal@500w" = 0.8\n', "no such figure or setting: recal@500w; did you mean recall@500w?"),
        (Q + "zebra = 0.8\n", "no such figure or setting: zebra; there are questions, k, recall@500w"),
        (Q + "[retrieval.kinds.factoid]\nmrr = 0.8\n", "factoid: no such figure: mrr; did you mean mrr@10?"),
        (Q + "[retrieval.kinds.factoid]\n", "factoid holds no figures"),
        (Q + "[retrieval.kinds]\nfactoid = 0.7\n", "factoid holds no figures"),
        (Q + "kinds = 7\n", "kinds holds no figures"),
        (Q + '"mrr@10" = 80\n', "mrr@10 is a number from 0 to 1, not 80"),
        (Q + '"mrr@10" = true\n', "mrr@10 is a number from 0 to 1, not True"),
        (Q + '"mrr@10" = nan\n', "mrr@10 is a number from 0 to 1, not nan"),
        (Q + "k = 0\n", "k is a whole number from 1, not 0"),
        (Q + "k = true\n", "k is a whole number from 1, not True"),
        (Q + "recall@500w = 0.8\n", 'names with @ stand in quotes: "recall@500w"'),
        ('[retrieval]\nquestions = "q"\n', "questions is a list of files, not 'q'"),
        ("[retrieval]\nquestions = [1]\n", "questions is a list of files, not [1]"),
        ('[routing]\nquestions = ["q"]\nscheduler = "lsf"\n', "scheduler is slurm or pbs, not 'lsf'"),
        ('[routing]\nquestions = ["q"]\nassume_available = 1\n', "assume_available is true or false"),
        ('[run]\nfolder = "x"\neval_score = 0.5\n', "[run]: has no variant"),
        ('[run]\nfolder = "x"\nvariant = "v"\nscore = 0.5\n', "did you mean eval_score?"),
        ("[retrival]\n", "no such section: retrival; did you mean retrieval?"),
        ("retrieval = 3\n", "retrieval is no section; write [retrieval]"),
        ("[baseline]\n", "[baseline]: has no file"),
        ('[baseline]\nfile = "b"\nkinds = 1\n', "no such figure or setting: kinds"),
        ('[baseline]\nfile = "b"\ntolerance = -0.1\n', "tolerance is a number from 0 to 1"),
    ],
)
def test_what_is_wrong_with_a_gate_is_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        gate_of(tmp_path, text)
    assert words in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "gate.toml"))
    assert "\n" not in str(caught.value)


# -- checks ----------------------------------------------------------------------------------------------


def figure(value: float) -> Figure:
    return Figure(value, value, value, 10)


def checked(
    tmp_path: Path, text: str, groups: dict[str, dict[str, Figure]], before: dict[str, float] | None = None
) -> tuple[str, ...]:
    """What fell of a gate for retrieval; before: the baseline's figures over all questions."""
    stored = before and Baseline({}, {("retrieval", ALL, name): value for name, value in before.items()})
    return outcome(gate_of(tmp_path, text), {"retrieval": Taken(groups, "")}, stored or None).fell


LEAST = Q + '"recall@500w" = 0.8\n'
COMPARED = LEAST + '[baseline]\nfile = "b"\n'


@pytest.mark.parametrize(("value", "holds"), [(0.8, True), (0.1 + 0.7, True), (0.7999, False), (1, True)])
def test_a_figure_must_reach_its_threshold(tmp_path: Path, value: float, holds: bool) -> None:
    fell = checked(tmp_path, LEAST, {ALL: {"recall@500w": figure(value)}})
    assert fell == (() if holds else ("retrieval recall@500w: 0.7999, wanted at least 0.8000",))


@pytest.mark.parametrize(("value", "holds"), [(0.88, True), (0.95, True), (0.8799, False)])
def test_it_may_not_fall_below_the_baseline_by_more_than_the_tolerance(
    tmp_path: Path, value: float, holds: bool
) -> None:
    fell = checked(tmp_path, COMPARED, {ALL: {"recall@500w": figure(value)}}, {"recall@500w": 0.9})
    wanted = "retrieval recall@500w: 0.8799, wanted at most 0.02 below the baseline's 0.9000"
    assert fell == (() if holds else (wanted,))


def test_both_can_be_missed_at_once(tmp_path: Path) -> None:
    (line,) = checked(tmp_path, COMPARED, {ALL: {"recall@500w": figure(0.5)}}, {"recall@500w": 0.9})
    assert "wanted at least 0.8000 and at most 0.02 below the baseline's 0.9000" in line


def test_a_figure_that_is_not_defined_fails(tmp_path: Path) -> None:
    by_kind = LEAST + '[retrieval.kinds.howto]\n"mrr@10" = 0\n'
    fell = checked(tmp_path, by_kind, {ALL: {"recall@500w": figure(1)}})
    assert fell == ("retrieval howto mrr@10: can't be computed, there are no such questions",)


def test_main_figures_are_compared_with_a_baseline_without_a_threshold(tmp_path: Path) -> None:
    groups = {ALL: {"recall@500w": figure(0.9), "mrr@10": figure(0.5), "ndcg@10": figure(0.1)}}
    before = {"recall@500w": 0.9, "mrr@10": 0.7, "recall@2000w": 0.9, "ndcg@10": 0.9}
    fell = checked(tmp_path, COMPARED, groups, before)
    assert fell == (
        "retrieval recall@2000w: can't be computed, there are no such questions",
        "retrieval mrr@10: 0.5000, wanted at most 0.02 below the baseline's 0.7000",
    )
    assert checked(tmp_path, COMPARED, groups) == ()


def test_what_is_compared_with_nothing_fails(tmp_path: Path) -> None:
    """A section that came after the baseline was stored, without a threshold; and one without any figure."""
    gate = gate_of(tmp_path, Q + '[baseline]\nfile = "b"\n')
    new = {"retrieval": Taken({ALL: {"mrr@10": figure(0.1)}}, "")}
    before = Baseline({"routing": "x"}, {("routing", ALL, "first"): 0.9})
    (line,) = outcome(gate, new, before).fell
    assert line.startswith("retrieval mrr@10: 0.1000, which the baseline doesn't hold; ")
    assert outcome(gate, new, None).fell == ()  # that is how it gets into one
    for stored in (None, before):
        (line,) = outcome(gate, {"retrieval": Taken({}, "")}, stored).fell
        assert line == "retrieval: no figure of it can be computed, so nothing is checked"


def test_a_baseline_holds_what_was_checked_and_comes_back(tmp_path: Path) -> None:
    gate = gate_of(tmp_path, COMPARED + '[retrieval.kinds.howto]\n"mrr@10" = 0\n')
    taken = {
        "retrieval": Taken(
            {ALL: {"recall@500w": figure(2 / 3), "f1@5": figure(1)}, "howto": {"mrr@10": figure(0.25)}}, "abc"
        )
    }
    file = tmp_path / "baseline.json"
    write_baseline(file, to_store(taken, outcome(gate, taken, None)))
    stored = read_baseline(file)
    assert stored.figures == {
        ("retrieval", ALL, "recall@500w"): 0.666667,
        ("retrieval", "howto", "mrr@10"): 0.25,
    }
    # What was rounded up when it was stored has not fallen.
    exact = Gate(gate.file, gate.sections, gate.baseline, tolerance=0)
    assert not outcome(exact, taken, stored).checks[0].fell.count("baseline")
    check_comparable(file, stored, "retrieval", "abc")
    check_comparable(file, stored, "routing", "new section")
    with pytest.raises(StoreError, match="made from other questions than those of"):
        check_comparable(file, stored, "retrieval", "xyz")
    assert [each.name for each in tmp_path.iterdir() if "new" in each.name] == []


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"format": 1, "questions": {}, "figures": {"retrieval": {"all": {"f1@5": "high"}}}}',
        '{"format": 1, "questions": {}, "figures": {"retrieval": {"all": {"f1@5": NaN}}}}',
        '{"format": 1, "questions": {}, "figures": {"retrieval": 3}}',
        '{"format": 2, "questions": {}, "figures": {}}',
    ],
)
def test_a_damaged_baseline_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "baseline.json"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(StoreError, match="--save-baseline"):
        read_baseline(file)


def test_a_baseline_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="can't be written"):
        write_baseline(tmp_path / "gone" / "baseline.json", Baseline({}, {}))


def test_the_digest_is_of_what_is_asked_and_wanted() -> None:
    one = Question("1", "how?", "howto", "so", (Evidence("a", "b"),))
    same = replace(one, id="2", answer="or so")
    assert digest([one], {"questions": ["a"]}) == digest([same], {"questions": ["b"]})
    others = [
        replace(one, question="how!"),
        replace(one, kind="factoid"),
        replace(one, evidence=()),
        replace(one, accept=()),
        replace(one, params={"job": "1"}),
        replace(one, site="slurm"),
    ]
    ways: list[dict[str, Any]] = [{"k": 5}, {"k": 6}, {"scheduler": "pbs"}, {"assume_available": True}]
    found = {digest([each], {}) for each in (one, *others)} | {digest([one], way) for way in ways}
    assert len(found) == 11


# -- from the command line -------------------------------------------------------------------------------

QUOTE = "| `/home/<user>` | person | 50 GB | 55 GB | 500,000 | 7 days |"
QUESTIONS: list[dict[str, Any]] = [
    {
        "id": "home",
        "kind": "factoid",
        "question": "How many gigabytes may I keep in my home folder?",
        "evidence": [{"path": "docs/storage/quotas.md", "quote": QUOTE}],
    },
    {
        "id": "jobs",
        "kind": "command",
        "question": "list my jobs",
        "site": "slurm",
        "accept": ["slurm.my_jobs"],
    },
]
BOTH = """
[retrieval]
questions = ["questions.jsonl"]
"recall@500w" = 0.9

[routing]
questions = ["questions.jsonl"]
assume_available = true
first = 0.9
"""
STORED = BOTH + '\n[baseline]\nfile = "baseline.json"\n'


def run(home: Home, folder: Path, text: str, *options: str, **more: Any) -> Result:
    (folder / "gate.toml").write_text(text, encoding="utf-8")
    if not (folder / "questions.jsonl").exists():
        written(folder / "questions.jsonl", QUESTIONS)
    return home.hyce("evaluate", "gate", str(folder / "gate.toml"), *options, **more)


def test_a_gate_that_holds(kestrel: Home, tmp_path: Path) -> None:
    done = run(kestrel, tmp_path, BOTH)
    assert (done.code, done.err) == (0, "")
    lines = [line.split() for line in done.out.splitlines()]
    assert ["retrieval", "recall@500w", "1.000", "[0.03,", "1.00]", "0.900", "-", "ok"] in lines
    assert ["routing", "first", "1.000", "[0.03,", "1.00]", "0.900", "-", "ok"] in lines


def test_a_gate_that_fell_says_what_and_exits_with_1(kestrel: Home, tmp_path: Path) -> None:
    text = BOTH.replace("first = 0.9", "traps = 1") + '[retrieval.kinds.factoid]\n"precision@5" = 0.9\n'
    done = run(kestrel, tmp_path, text, "--json")
    assert done.code == 1
    fell = [
        "retrieval factoid precision@5: 0.2000, wanted at least 0.9000",
        "routing traps: can't be computed, there are no such questions",
    ]
    assert done.err.splitlines() == [f"hyce: {line}" for line in fell]
    document = done.json
    assert (document["passed"], document["fell"]) == (False, fell)
    assert document["figures"][0] == {
        "section": "retrieval",
        "group": "all",
        "figure": "recall@500w",
        "value": 1,
        "low": 0.025,
        "high": 1,
        "questions": 1,
        "threshold": 0.9,
        "baseline": None,
        "passed": True,
    }
    assert [each["passed"] for each in document["figures"]] == [True, False, False]
    assert document["figures"][2]["value"] is None


def test_a_baseline_is_stored_and_compared_with(kestrel: Home, tmp_path: Path) -> None:
    missing = run(kestrel, tmp_path, STORED)
    fails(missing, "baseline.json: there is no baseline yet", "--save-baseline", code=2)
    saved = run(kestrel, tmp_path, STORED, "--save-baseline")
    assert saved.code == 0 and "baseline.json: written" in saved.err
    figures = json.loads((tmp_path / "baseline.json").read_text(encoding="utf-8"))["figures"]
    assert figures["retrieval"]["all"] == {"recall@500w": 1, "recall@2000w": 1, "mrr@10": 0.5}
    assert figures["routing"]["all"] == {"first": 1, "precision": 1, "overall": 1}
    same = run(kestrel, tmp_path, STORED)
    assert same.code == 0 and " 1.000     ok" in same.out
    # One that can only get worse.
    worse = {"commands.matching": "joint", "retrieval.passages": 1}
    fallen = run(kestrel, tmp_path, STORED.replace("first = 0.9\n", ""), settings=worse)
    assert fallen.code == 1
    assert "hyce: routing overall: 0.0000, wanted at most 0.02 below the baseline's 1.0000" in fallen.err


def test_a_baseline_of_other_questions_is_refused(kestrel: Home, tmp_path: Path) -> None:
    assert run(kestrel, tmp_path, STORED, "--save-baseline").code == 0
    written(tmp_path / "questions.jsonl", [{**QUESTIONS[0], "question": "What is my quota?"}, QUESTIONS[1]])
    fails(run(kestrel, tmp_path, STORED, "--quiet"), "made from other questions than those of [retrieval]")
    (tmp_path / "baseline.json").write_text("{", encoding="utf-8")
    fails(run(kestrel, tmp_path, STORED), "baseline.json: damaged")


def test_a_question_that_cannot_be_asked_fails_the_gate(kestrel: Home, tmp_path: Path) -> None:
    written(
        tmp_path / "questions.jsonl",
        [*QUESTIONS, {**QUESTIONS[0], "id": "late", "question": "Who won the election?"}],
    )
    with ScriptedEndpoint(breaks_at("election")) as server:
        settings = {**RERANKS, "reranker.base_url": server.origin}
        done = run(kestrel, tmp_path, STORED, "--save-baseline", "--quiet", settings=settings)
    assert done.code == 1
    first, *_, last = done.err.splitlines()  # the words alone rank badly, which fell too
    assert first.startswith(f"hyce: retrieval: late could not be asked: {server.origin}, model ranker: ")
    assert "baseline.json: not written" in last
    assert not (tmp_path / "baseline.json").exists()


def test_sections_without_questions_of_their_kind_are_refused(kestrel: Home, tmp_path: Path) -> None:
    written(tmp_path / "questions.jsonl", QUESTIONS[1:])
    fails(run(kestrel, tmp_path, BOTH), "[retrieval]: no question says where its answer stands", code=2)
    written(tmp_path / "questions.jsonl", QUESTIONS[:1])
    routing = BOTH[BOTH.index("[routing]") :]
    fails(run(kestrel, tmp_path, routing), "[routing]: no question says which commands answer it", code=2)
    gone = BOTH.replace('"questions.jsonl"', '"gone.jsonl"')
    fails(run(kestrel, tmp_path, gone), "gone.jsonl: can't be read", code=2)
    fails(run(kestrel, tmp_path, BOTH, "--save-baseline"), "names no baseline; add [baseline]", code=2)
    fails(kestrel.hyce("evaluate", "gate", str(tmp_path / "no.toml")), "no.toml: can't be read", code=2)
    fails(kestrel.hyce("evaluate", "gate", str(tmp_path)), "can't be read", code=2)


# Of the variant base (small_run.py): half of the judged answers are right, in the mean of both passes.
ANSWERS = '[run]\nfolder = "run"\nvariant = "base"\nlost = 0.2\neval_score = 0.5\ncorrectness = 0.66\n'


def test_the_figures_of_a_run(home: Home, tmp_path: Path) -> None:
    """It needs no index and no model: the run is read."""
    write(tmp_path / "run")
    held = run(home, tmp_path, ANSWERS, "--json")
    assert held.code == 0
    assert [each["value"] for each in held.json["figures"]] == [0.5, 0.6667]
    said = "base: of 12 answers 1 failed and 1 were not judged; they are in no figure"
    assert held.err == f"hyce: {said}\n"
    # More of them than that, and the rest doesn't stand for all.
    strict = run(home, tmp_path, ANSWERS.replace("lost = 0.2\n", ""))
    assert (strict.code, f"hyce: run: {said}, and 0.02 of all is the most (lost)" in strict.err) == (1, True)
    by_kind = (
        ANSWERS + "[run.kinds.document]\neval_score = 0.9\n[run.kinds.two_passages]\ncorrectness = 0.1\n"
    )
    fell = run(home, tmp_path, by_kind, "--json")
    assert fell.code == 1
    assert [line.split(":")[0] for line in fell.json["fell"]] == [
        "run document eval_score",
        "run two_passages correctness",
    ]


def test_a_run_that_is_not_finished_fails(home: Home, tmp_path: Path) -> None:
    write(tmp_path / "run")
    text = ANSWERS.replace("base", "+hyce")
    done = run(home, tmp_path, text)
    assert done.code == 1
    assert "hyce: run: 1 answer is missing; run the same `hyce evaluate run` again" in done.err
    (tmp_path / "again").mkdir()
    whole = (*RUN.results, result("+hyce", "q4", 2, HYCE["q1"][0]))
    write(tmp_path / "again" / "run", replace(RUN, results=whole))
    assert run(home, tmp_path / "again", text).code == 0


def test_a_run_that_has_no_such_variant_or_is_none(home: Home, tmp_path: Path) -> None:
    fails(run(home, tmp_path, ANSWERS), "no run here")
    write(tmp_path / "run")
    other = run(home, tmp_path, ANSWERS.replace('"base"', '"bass"'))
    fails(other, "no such variant: bass; did you mean base?", code=2)
    fails(run(home, tmp_path, ANSWERS.replace('"base"', '"+big"')), "+big: could not be run: llm: no such")
