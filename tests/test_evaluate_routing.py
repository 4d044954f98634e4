"""Which commands questions lead to: figures by hand, like the scorer's, and from the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from found import match
from hyce_home import Home, fails
from rankings import Silent, written
from scripted_endpoint import RERANKS, ScriptedEndpoint, breaks_at

from hyce.errors import EndpointError
from hyce.evaluate.finding.measured import ALL
from hyce.evaluate.finding.routing import Routed, accepted, measure, summarised
from hyce.evaluate.records import Question
from hyce.records import Match, Routing

SCORER = Path(__file__).parents[2] / "shared" / "tools" / "score_routing.py"
HELD = Path(__file__).parents[1] / "benchmarks" / "data" / "routing_held.jsonl"
SCORED = ("first", "precision", "parameters", "quiet", "traps", "overall")


def chosen(name: str, **params: str) -> Match:
    return replace(match(name), params=params)


def routed(kind: str, accept: tuple[str, ...], *commands: Match, **params: str) -> Routed:
    return Routed(Question("q", "?", kind, accept=accept, params=params), accept, commands)


ROUTED = (
    routed("command", ("a",), chosen("a")),
    routed("command", ("a", "b"), chosen("b"), chosen("c")),
    routed("command", ("a",), chosen("c"), chosen("a")),  # right, but not first
    routed("command", ("a",)),
    routed("parameter", ("a",), chosen("a", job="7"), job="7"),
    routed("parameter", ("a",), chosen("a", job="8"), job="7"),
    routed("parameter", ("a",), chosen("a"), job="7"),
    routed("parameter", ("a", "b"), chosen("b"), job="7"),  # another one may take fewer values
    routed("document", ()),
    routed("neither", (), chosen("a")),
    routed("trap", ()),
    routed("trap", ()),
)


@pytest.mark.parametrize(
    ("figure", "value", "questions"),
    [
        ("first", 6 / 8, 8),
        ("precision", 7 / 9, 8),
        ("recall", 7 / 8, 8),
        ("f1", 2 * (7 / 9) * (7 / 8) / (7 / 9 + 7 / 8), 8),
        ("parameters", 2 / 4, 4),
        ("quiet", 1 / 2, 2),
        ("traps", 1, 2),
        ("overall", (2 + 2 + 1 + 2) / 12, 12),
    ],
)
def test_figures_of_choices_by_hand(figure: str, value: float, questions: int) -> None:
    found = summarised(ROUTED).groups[ALL][figure]
    assert found.value == pytest.approx(value)
    assert found.questions == questions
    assert 0 <= found.low <= found.value <= found.high <= 1


def test_by_kind_only_what_is_defined_is_there() -> None:
    groups = summarised(ROUTED).groups
    assert set(groups) == {ALL, "command", "parameter", "document", "neither", "trap"}
    assert set(groups["trap"]) == {"traps", "overall"}
    assert set(groups["neither"]) == {"quiet", "overall"}
    assert "parameters" not in groups["command"]
    assert groups["command"]["precision"].value == pytest.approx(3 / 5)


def test_where_nothing_is_chosen_there_is_no_precision() -> None:
    figures = summarised([routed("command", ("a",))]).groups[ALL]
    assert "precision" not in figures
    assert figures["recall"].value == figures["f1"].value == 0


def test_the_interval_of_precision_draws_questions_not_commands() -> None:
    """Two commands of one question come and go together: precision of a draw is 1, 1/2 or 0."""
    pair = (routed("command", ("a", "b"), chosen("a"), chosen("b")), routed("command", ("a",), chosen("c")))
    figure = summarised(pair).groups[ALL]["precision"]
    assert figure.value == pytest.approx(2 / 3)
    assert (figure.low, figure.high) == (0, 1)


def test_what_fails_or_is_not_labelled_is_in_no_figure() -> None:
    questions = [
        Question("doc", "one", "document"),
        Question("two", "two", "two_passages"),
        Question("labelled", "three", "factoid"),
        Question("down", "four", "command", accept=("a",), site="pbs"),
        Question("right", "five", "command", accept=("a",), site="slurm"),
    ]
    assert [accepted(each) for each in questions] == [(), (), None, ("a",), ("a",)]
    asked: list[tuple[str, str | None]] = []

    def route(question: str, scheduler: str | None) -> Routing:
        asked.append((question, scheduler))
        if question == "four":
            raise EndpointError("down")
        return Routing(commands=(chosen("a"),) if question == "five" else ())

    choice = measure(questions, route, Silent())
    assert asked == [("one", None), ("two", None), ("four", "pbs"), ("five", "slurm")]
    assert choice.left_out == 1
    assert [(each.question.id, each.error) for each in choice.failed] == [("down", "down")]
    assert choice.groups[ALL]["overall"].value == 1 and choice.groups[ALL]["overall"].questions == 3


# -- from the command line -------------------------------------------------------------------------------

LABELLED: list[dict[str, Any]] = [
    {
        "id": "jobs",
        "kind": "command",
        "question": "list my jobs",
        "site": "slurm",
        "accept": ["slurm.my_jobs"],
    },
    {"id": "pbs", "kind": "command", "question": "list my jobs", "site": "pbs", "accept": ["pbs.my_jobs"]},
    {"id": "doc", "kind": "document", "question": "What is a login node?", "evidence": []},
    {"id": "trap", "kind": "trap", "question": "delete all my jobs", "site": "slurm", "accept": []},
    {"id": "unsaid", "kind": "factoid", "question": "How big is home?"},
    {"id": "wrong", "kind": "command", "question": "list my jobs", "site": "slurm", "accept": ["no.such"]},
]


def test_labelled_questions_as_json(kestrel: Home, tmp_path: Path) -> None:
    file = written(tmp_path / "questions.jsonl", LABELLED)
    done = kestrel.hyce("evaluate", "routing", file, "--assume-available", "--json", "--misses")
    assert done.code == 0
    document = done.json
    assert (document["questions"], document["left_out"], document["failed"]) == (5, 1, [])
    figures = {name: each["value"] for name, each in document["figures"]["all"].items()}
    assert figures["first"] == figures["recall"] == 0.6667
    assert (figures["quiet"], figures["traps"], figures["overall"]) == (1, 1, 0.8)
    (miss,) = document["misses"]
    assert (miss["id"], miss["accept"], miss["refused"]) == ("wrong", ["no.such"], None)
    assert miss["commands"][0] == {"id": "slurm.my_jobs", "params": {}}
    assert "hyce: no.such: not in the catalogue, so it can't be chosen (1 question accepts it)" in done.err


def test_labelled_questions_as_text(kestrel: Home, tmp_path: Path) -> None:
    file = written(tmp_path / "questions.jsonl", LABELLED)
    done = kestrel.hyce("evaluate", "routing", file, "--assume-available", "--misses")
    lines = done.out.splitlines()
    assert lines[0].startswith("5 questions, 1 left out")
    assert any(line.startswith("first      0.667 [") for line in lines)
    assert any(line.startswith("trap (1)") and line.endswith("1.000 [0.03, 1.00]") for line in lines)
    assert "    wanted  no.such" in lines
    assert any(line.startswith("    chosen  slurm.my_jobs") for line in lines)


def test_the_scheduler_is_the_questions_own_or_else_the_calls(kestrel: Home, tmp_path: Path) -> None:
    asked = {"kind": "command", "question": "list my jobs", "accept": ["pbs.my_jobs"]}
    file = written(tmp_path / "q.jsonl", [{"id": "a", **asked}, {"id": "b", **asked, "site": "slurm"}])
    call = ("evaluate", "routing", file, "--assume-available", "--scheduler", "pbs", "--json", "--misses")
    misses = kestrel.hyce(*call).json["misses"]
    assert [miss["id"] for miss in misses] == ["b"]


def test_where_commands_compete_with_passages_it_is_what_match_says(kestrel: Home, tmp_path: Path) -> None:
    """--misses lists every question for a command that accepts none of those chosen."""
    asked = ["list my jobs", "How much of my quota is used?", "How do I log in with ssh?"]
    rows = [
        {"id": str(number), "kind": "command", "question": question, "accept": ["none.such"]}
        for number, question in enumerate(asked)
    ]
    settings = {"commands.matching": "joint"}
    lines = "".join(f"{json.dumps({'question': question})}\n" for question in asked)
    matched = kestrel.hyce("match", "-", "--assume-available", "--json", settings=settings, stdin=lines)
    file = written(tmp_path / "questions.jsonl", rows)
    done = kestrel.hyce(
        "evaluate", "routing", file, "--assume-available", "--json", "--misses", settings=settings
    )
    ours = [[command["id"] for command in miss["commands"]] for miss in done.json["misses"]]
    assert ours == [[command["id"] for command in row["commands"]] for row in matched.rows]
    assert any(ours)


def test_the_figures_are_the_scorers(kestrel: Home, tmp_path: Path) -> None:
    if not SCORER.is_file():
        pytest.skip(f"{SCORER} is not there to compare with")
    some = [json.loads(line) for line in HELD.read_text(encoding="utf-8").splitlines()[::5]]
    file = written(tmp_path / "questions.jsonl", some)
    matched = kestrel.hyce("match", "-", "--assume-available", "--json", stdin=Path(file).read_bytes())
    results = tmp_path / "results.jsonl"
    results.write_text(matched.out, encoding="utf-8")
    scored = subprocess.run(
        [sys.executable, SCORER, file, results, "--json"], capture_output=True, check=True, timeout=60
    )
    own = kestrel.hyce("evaluate", "routing", file, "--assume-available", "--json").json["figures"]["all"]
    theirs = json.loads(scored.stdout)
    assert set(theirs) == set(SCORED)
    for name, value in theirs.items():
        assert own[name]["value"] == pytest.approx(value, abs=0.0006), name


def test_wrong_calls(kestrel: Home, tmp_path: Path) -> None:
    unsaid = written(tmp_path / "unsaid.jsonl", LABELLED[4:5])
    fails(kestrel.hyce("evaluate", "routing", unsaid), "no question says which commands answer it", code=2)
    fails(kestrel.hyce("evaluate", "routing", unsaid, "--scheduler", "lsf"), "lsf", code=2)


def test_a_question_that_fails_is_shown_and_the_exit_code_says_so(kestrel: Home, tmp_path: Path) -> None:
    late = {"id": "late", "kind": "trap", "question": "Who won the election?", "accept": []}
    file = written(tmp_path / "questions.jsonl", [LABELLED[0], late])
    with ScriptedEndpoint(breaks_at("election")) as server:
        settings = {**RERANKS, "reranker.base_url": server.origin, "commands.matching": "joint"}
        done = kestrel.hyce("evaluate", "routing", file, "--assume-available", "--json", settings=settings)
    assert done.code == 1
    assert [failure["id"] for failure in done.json["failed"]] == ["late"]
    assert "traps" not in done.json["figures"]["all"]


def test_commands_that_are_switched_off_are_measured_with_a_warning(kestrel: Home, tmp_path: Path) -> None:
    file = written(tmp_path / "questions.jsonl", LABELLED[:1])
    done = kestrel.hyce(
        "evaluate", "routing", file, "--assume-available", settings={"commands.enabled": False}
    )
    assert "hyce: running commands is switched off" in done.err
    assert "first      1.000" in done.out
