"""Lines against descriptions: figures by hand, models through the command line, and what can't be had."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_model
from hyce_home import Home, fails
from numpy.typing import NDArray
from scripted_endpoint import ScriptedEndpoint, answers, texts
from scripted_endpoint import fails as refuses
from word_embedder import WordEmbedder

from hyce import catalogue, models
from hyce.config import Config, Model, Reranker, load
from hyce.cross_encoder import OnnxCrossEncoder
from hyce.embed import OnnxEmbedder
from hyce.evaluate.finding import similarity
from hyce.evaluate.finding.encoders import PAPER, SERVED, Encoder, Output, cosine, open_encoder, wanted
from hyce.evaluate.finding.similarity import (
    Candidate,
    CommandSet,
    Compared,
    Measured,
    catalogue_set,
    rank,
    ten_set,
)
from hyce.evaluate.records import Question
from hyce.models import Kind
from hyce.records import command_line
from hyce.rerank import Reranker as Scorer

COMMANDS = CommandSet(
    "hand",
    (
        Candidate("squeue", "your jobs", frozenset({"slurm.my_jobs"}), "slurm"),
        Candidate("qstat", "own jobs", frozenset({"pbs.my_jobs"}), "pbs"),
        Candidate("df", "free space", frozenset({"storage.filesystems"})),
        Candidate("quota", "disk quota", frozenset({"storage.quota"})),
    ),
)


class ByHand:
    """A Reranker with a score for each text, by question."""

    def __init__(self, scores: Mapping[str, Mapping[str, float]]) -> None:
        self._scores = scores

    def score(self, question: str, texts: Sequence[str]) -> NDArray[np.float32]:
        assert len(set(texts)) == len(texts)
        return np.array([self._scores[question][text] for text in texts], np.float32)


def asked(name: str, accept: tuple[str, ...] | None, site: str | None = None, kind: str = "any") -> Question:
    return Question(name, name, kind, accept=accept, site=site)


QUESTIONS = [
    # lines: squeue 1, df 2, quota 4; descriptions: your jobs 8, free space 0, disk quota 5
    asked("jobs", ("slurm.my_jobs",), "slurm"),
    # lines: qstat 3, df 3, quota 1; descriptions: own jobs 2, free space 6, disk quota 6
    asked("space", ("storage.filesystems",), "pbs"),
    # lines: -1 and less; descriptions: -1 and less
    asked("weather", (), "slurm"),
    # the best of the two right ones counts: df 2 in the lines, disk quota 9 in the descriptions
    asked("full", ("storage.filesystems", "storage.quota"), "slurm"),
    asked("unknown", None, "slurm", kind="command"),
]
SCORES = {
    "jobs": {"squeue": 1, "df": 2, "quota": 4, "your jobs": 8, "free space": 0, "disk quota": 5},
    "space": {"qstat": 3, "df": 3, "quota": 1, "own jobs": 2, "free space": 6, "disk quota": 6},
    "weather": {"squeue": -1, "df": -2, "quota": -3, "your jobs": -1, "free space": -2, "disk quota": -4},
    "full": {"squeue": 5, "df": 2, "quota": 0, "your jobs": 1, "free space": 2, "disk quota": 9},
    "unknown": {"squeue": 2, "df": 0, "quota": 0, "your jobs": 1, "free space": 0, "disk quota": 0},
}


def measured(
    scores: Mapping[str, Mapping[str, float]] = SCORES,
    questions: Sequence[Question] = QUESTIONS,
    *,
    output: Output = "raw",
    scheduler: str | None = None,
) -> Measured:
    encoder = Encoder("hand", "cross-encoder", ByHand(scores), output)
    return similarity.measure(encoder, questions, [COMMANDS], scheduler=scheduler)


def compared(*arguments: Any, **options: Any) -> Compared:
    (found,) = measured(*arguments, **options).compared
    return found


# -- figures by hand -------------------------------------------------------------------------------------


def test_means_are_those_of_the_best_scores() -> None:
    found = compared()
    assert found.all.questions == 5
    assert found.all.line == pytest.approx((4 + 3 - 1 + 5 + 2) / 5)
    assert found.all.description == pytest.approx((8 + 6 - 1 + 9 + 1) / 5)
    assert found.all.difference == pytest.approx(23 / 5 - 13 / 5)
    assert found.all.description_nearer == 3, "weather is as near to both"
    assert found.command
    assert found.command.questions == 4, "labelled with a command, or made from one"
    assert (found.command.line, found.command.description) == (14 / 4, 24 / 4)
    assert found.command.description_nearer == 3


def test_ranks_are_of_the_right_command() -> None:
    found = compared()
    assert found.line and found.description and found.difference
    assert (found.ranked, found.unlabelled) == (3, 1)
    # lines: squeue is third of three, df shares the first place and counts as second, df is second
    assert found.line.reciprocal.value == pytest.approx((1 / 3 + 1 / 2 + 1 / 2) / 3)
    assert found.line.first.value == 0
    # descriptions: first, second of the same score, first
    assert found.description.reciprocal.value == pytest.approx((1 + 1 / 2 + 1) / 3)
    assert found.description.first.value == pytest.approx(2 / 3)
    assert found.difference.value == pytest.approx((2 / 3 + 0 + 1 / 2) / 3)
    low, high = found.difference.low, found.difference.high
    assert 0 <= low < found.difference.value < high <= 2 / 3


def test_a_sigmoid_is_put_on_scores_before_they_are_averaged_and_changes_no_rank() -> None:
    raw, smooth = compared(), compared(output="sigmoid")
    expected = np.mean([1 / (1 + np.exp(-best)) for best in (4, 3, -1, 5, 2)])
    assert smooth.all.line == pytest.approx(expected)
    assert smooth.all.line != pytest.approx(1 / (1 + np.exp(-raw.all.line)), abs=0.01)
    assert (smooth.line, smooth.description) == (raw.line, raw.description)
    extreme = {name: dict.fromkeys(scores, -5000) | {"df": 5000} for name, scores in SCORES.items()}
    assert compared(extreme, output="sigmoid").all.line == 1
    assert compared(extreme, output="sigmoid").all.description == 0


@pytest.mark.parametrize(
    ("scores", "right", "expected"),
    [
        ([3, 2, 1], [0], 1),
        ([3, 2, 1], [2], 3),
        ([2, 2, 2], [1], 3),  # a model that scores all alike has found nothing
        ([2, 2, 2], [0, 1, 2], 1),
        ([2, 2, 1], [0, 1], 1),  # the right ones are no rivals of each other
        ([5, 2, 3], [1, 2], 2),
        ([5, 2, 3], [], None),
    ],
)
def test_rank(scores: list[float], right: list[int], expected: int | None) -> None:
    mask = np.isin(np.arange(3), right)
    assert rank(np.array(scores, float), mask) == expected


def test_only_commands_of_the_sites_batch_system_compete() -> None:
    everything = {
        name: {"squeue": 9, "qstat": 9, "your jobs": 0, "own jobs": 0} for name in ("here", "there")
    }
    scores = {
        name: {"df": 1, "quota": 2, "free space": 1, "disk quota": 2} | row
        for name, row in everything.items()
    }
    accept = ("storage.quota",)
    own = asked("here", accept, "pbs")
    assert compared(scores, [own]).line == compared(scores, [own], scheduler="slurm").line
    silent = asked("there", accept)

    def first_line(scheduler: str | None) -> float:
        ranks = compared(scores, [silent], scheduler=scheduler).line
        assert ranks
        return ranks.reciprocal.value

    assert first_line(None) == pytest.approx(1 / 3)
    assert first_line("pbs") == pytest.approx(1 / 2)
    assert first_line("none") == 1


def test_without_questions_for_commands_there_are_no_ranks() -> None:
    found = compared(SCORES, [QUESTIONS[2]])
    assert (found.command, found.line, found.description, found.difference) == (None, None, None, None)
    assert (found.ranked, found.unlabelled) == (0, 0)


def test_scores_that_are_no_numbers_are_no_figures() -> None:
    broken = SCORES | {"full": SCORES["full"] | {"df": float("nan")}}
    found = measured(broken)
    assert found.compared == ()
    assert "scores that are no numbers" in found.unavailable


def test_a_set_without_a_command_for_the_site_is_said() -> None:
    encoder = Encoder("hand", "cross-encoder", ByHand(SCORES))
    few = CommandSet("few", COMMANDS.candidates[:1])
    found = similarity.measure(encoder, [asked("space", None, "pbs")], [few])
    assert "few: no command is for pbs" in found.unavailable


# -- the sets --------------------------------------------------------------------------------------------


def test_the_catalogue_is_compared_as_it_is() -> None:
    entries = catalogue.load()
    found = catalogue_set(entries.values()).candidates
    assert [each.answers for each in found] == [frozenset({name}) for name in entries]
    jobs = next(each for each in found if "pbs.my_jobs" in each.answers)
    assert (jobs.line, jobs.scheduler) == ("qstat -n -s -w -u '{me}'", "pbs")


def test_the_ten_are_described_and_lead_to_entries() -> None:
    ten = ten_set().candidates
    lines = [each.line for each in ten]
    assert lines[:9] == [
        *("id", "groups", "pwd", "quota", "history", "date", "ls", "module avail", "qstat -u $USER")
    ]
    assert lines[9].startswith("pbsnodes ") and " | jq " in lines[9]
    assert len(ten) == 10 and len({each.description for each in ten}) == 10
    known = set(catalogue.load())
    assert all(each.answers <= known for each in ten)
    assert [each.line for each in ten if not each.answers] == ["history"]
    assert all(each.scheduler is None for each in ten), "all compete, as in the published code"
    own = {entry.description for entry in catalogue.load().values()}
    assert own.isdisjoint(each.description for each in ten)


# -- models ----------------------------------------------------------------------------------------------


def test_the_papers_models_and_the_configured_one_are_compared_unless_others_are_named() -> None:
    config = Config(model=Model(name="mine"))
    assert wanted(config) == dict.fromkeys(PAPER, "cross-encoder") | {"mine": "bi-encoder"}
    assert wanted(config, ["a"]) == {"a": "cross-encoder"}
    assert wanted(config, bi_encoders=["b"]) == {"b": "bi-encoder"}


def test_a_bi_encoder_compares_by_the_cosine_and_embeds_a_text_once() -> None:
    embedder = WordEmbedder()
    scorer = cosine(embedder)
    given = ["jobs wait", "disk full", "jobs wait"]
    scores = scorer.score("jobs wait", given)
    assert scores == pytest.approx([1, scores[1], 1])
    assert scores[1] < 0.9
    before = len(embedder.batches)
    assert scorer.score("disk full", given[:2])[1] == pytest.approx(1)
    assert embedder.batches[before:] == [["disk full"]]
    assert scorer.score("disk full", []).shape == (0,)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("models")
    tiny = tiny_model.write(made / "bi")
    cross = tiny_model.write_cross_encoder(made / "cross", seed=2)
    models.pull("tiny", made, source=tiny)
    models.pull("ms-marco-MiniLM-L-12-v2", made, source=cross)
    models.pull("stsb-roberta-large", made, source=cross)
    return made


@pytest.fixture
def home(tmp_path: Path, folder: Path) -> Home:
    return Home(tmp_path, folder)


ROWS = [
    {
        "id": "1",
        "question": "jobs wait in queue",
        "kind": "command",
        "site": "slurm",
        "accept": ["slurm.my_jobs"],
    },
    {"id": "2", "question": "disk full", "kind": "command", "site": "pbs", "accept": ["storage.quota"]},
    {"id": "3", "question": "node time", "kind": "document", "site": "pbs", "accept": []},
]


@pytest.fixture
def questions(tmp_path: Path) -> str:
    file = tmp_path / "questions.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    return str(file)


def best_means(scorer: Scorer) -> tuple[float, float]:
    """Means of the best scores over lines and descriptions of the catalogue, the long way."""
    entries = catalogue.load().values()
    lines, descriptions = [], []
    for row in ROWS:
        own = [entry for entry in entries if entry.scheduler in (None, row["site"])]
        question = str(row["question"])
        lines.append(scorer.score(question, [command_line(entry.argv, entry.also) for entry in own]).max())
        descriptions.append(scorer.score(question, [entry.description for entry in own]).max())
    return float(np.mean(lines)), float(np.mean(descriptions))


def models_of(document: Any) -> dict[str, Any]:
    return {model["name"]: model for model in document["models"]}


def test_models_on_this_machine_are_measured(home: Home, folder: Path, questions: str) -> None:
    name = "cross-encoder/ms-marco-MiniLM-L-12-v2"
    named = ("--model", name, "--bi-encoder", "tiny", "--json")
    done = home.hyce("evaluate", "similarity", questions, *named)
    assert done.code == 0, done.err
    assert (done.json["questions"], done.json["command_questions"]) == (3, 2)
    cross, bi = models_of(done.json)[name], models_of(done.json)["tiny"]
    assert (cross["kind"], cross["where"]) == ("cross-encoder", "this machine, int8")
    assert bi["kind"] == "bi-encoder (extension)"
    scorers: dict[str, Scorer] = {
        name: OnnxCrossEncoder(models.find("ms-marco-MiniLM-L-12-v2", "int8", folder)),
        "tiny": cosine(OnnxEmbedder(models.find("tiny", "int8", folder))),
    }
    for model in (cross, bi):
        whole, ten = model["compared"]
        assert [whole["commands"], ten["commands"]] == ["catalogue", "ten"]
        means = whole["all"]
        assert (means["line"], means["description"]) == pytest.approx(
            best_means(scorers[model["name"]]), abs=1e-6
        )
        assert (whole["ranked"], whole["unlabelled"]) == (2, 0)
        assert (ten["ranked"], ten["unlabelled"]) == (1, 1), "of the ten none tells what squeue does"


def test_the_precision_is_the_settings(home: Home, questions: str) -> None:
    precise = {"reranker.precision": "fp32", "model.precision": "fp32"}
    named = ("--model", "ms-marco-MiniLM-L-12-v2", "--bi-encoder", "tiny", "--commands", "ten", "--json")
    exact = home.hyce("evaluate", "similarity", questions, *named, settings=precise).json
    rough = home.hyce("evaluate", "similarity", questions, *named).json
    assert {model["where"] for model in exact["models"]} == {"this machine, fp32"}
    for one, other in zip(exact["models"], rough["models"], strict=True):
        assert [each["commands"] for each in one["compared"]] == ["ten"]
        assert one["compared"][0]["all"] != other["compared"][0]["all"]


def test_a_model_that_is_here_at_fp32_alone_is_taken(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "tiny").mkdir()
    said = json.loads((folder / "tiny" / "model.json").read_text(encoding="utf-8"))
    said["files"] = {name: about for name, about in said["files"].items() if not name.startswith("int8")}
    for file in said["files"]:
        (tmp_path / "tiny" / file).symlink_to(folder / "tiny" / file)
    (tmp_path / "tiny" / "model.json").write_text(json.dumps(said), encoding="utf-8")
    found = open_encoder("tiny", "bi-encoder", Config(model=Model(folder=str(tmp_path))))
    assert (found.where, found.unavailable) == ("this machine, fp32", "")


def test_the_table_shows_what_was_measured_and_what_could_not_be_had(home: Home, questions: str) -> None:
    done = home.hyce("evaluate", "similarity", questions, settings={"model.name": "tiny"})
    assert done.code == 0, done.err
    rows = [line for line in done.out.splitlines() if line.startswith(tuple(PAPER))]
    first = {line.split()[0]: line for line in reversed(rows) if " lines " not in line}
    assert set(first) == set(PAPER)
    assert "reranker.base_url" in first[SERVED] and '"nim"' in first[SERVED]
    assert first["cross-encoder/stsb-roberta-large"].endswith("this machine, int8, sigmoid")
    camembert = "dangvantuan/CrossEncoder-camembert-large"
    assert first[camembert].endswith(f"not on this machine; get it with `hyce models convert {camembert}`")
    assert done.out.count("tiny ") and "bi-encoder (extension)" in done.out
    assert "never the means of two models" in done.out
    machine = home.hyce("evaluate", "similarity", questions, "--json", settings={"model.name": "tiny"}).json
    means = models_of(machine)["tiny"]["compared"][0]["command"]
    cells = [
        "command 2",
        f"{means['line']:.3f}",
        f"{means['description']:.3f}",
        f"{means['difference']:+.3f}",
    ]
    assert any(all(cell in line for cell in cells) for line in done.out.splitlines())


def test_the_original_of_a_stsb_model_has_a_sigmoid(home: Home, questions: str) -> None:
    same = ("cross-encoder/ms-marco-MiniLM-L-12-v2", "cross-encoder/stsb-roberta-large")
    named = [word for name in same for word in ("--model", name)]
    found = models_of(home.hyce("evaluate", "similarity", questions, *named, "--json").json)
    raw, smooth = (found[name]["compared"][0] for name in same)
    assert 0 < smooth["all"]["line"] < 1
    assert smooth["all"]["line"] != raw["all"]["line"]
    assert smooth["description"] == raw["description"], "the same model: the same ranks"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("ms-marco-MiniLM-L-12-v2", "get it with `hyce models pull ms-marco-MiniLM-L-12-v2`"),
        ("cross-encoder/ms-marco-MiniLM-L-12-v2", "get it with `hyce models pull ms-marco-MiniLM-L-12-v2`"),
        ("some/reranker", "get it with `hyce models convert some/reranker`"),
        ("reranker", "not on this machine; `hyce models list`"),
        ("../reranker", "not on this machine"),
    ],
)
def test_a_model_that_is_not_here_says_how_to_get_it(tmp_path: Path, name: str, reason: str) -> None:
    found = open_encoder(name, "cross-encoder", Config(model=Model(folder=str(tmp_path))))
    assert found.model is None
    assert reason in found.unavailable


def test_a_model_of_the_other_kind_is_not_measured(folder: Path) -> None:
    found = open_encoder("tiny", "cross-encoder", Config(model=Model(folder=str(folder))))
    assert "tiny is a bi-encoder, not a cross-encoder" in found.unavailable


def test_nothing_measured_is_a_failure(home: Home, questions: str) -> None:
    done = home.hyce("evaluate", "similarity", questions, "--model", "nothing")
    assert done.code == 1
    assert "no model could be measured" in done.err
    assert "nothing" in done.out


def test_a_missing_file_is_wrong_usage(home: Home, tmp_path: Path) -> None:
    fails(
        home.hyce("evaluate", "similarity", str(tmp_path / "no.jsonl")), "no.jsonl", "question file", code=2
    )


# -- at an endpoint --------------------------------------------------------------------------------------


def served(server: ScriptedEndpoint, form: str = "nim", name: str = SERVED) -> dict[str, Any]:
    return {"reranker.name": name, "reranker.form": form, "reranker.base_url": server.url}


def test_the_settings_reranker_is_asked_at_its_endpoint(home: Home, questions: str) -> None:
    with ScriptedEndpoint() as server:
        settings = served(server)
        done = home.hyce("evaluate", "similarity", questions, "--model", SERVED, "--json", settings=settings)
    (model,) = done.json["models"]
    assert (model["where"], model["output"], model["unavailable"]) == ("endpoint", "raw", "")
    assert {request.body["query"]["text"] for request in server.requests} == {row["question"] for row in ROWS}
    # The server's score is the likeness of words, nine times as vectors are three times as long.
    means = model["compared"][0]["all"]
    expected = best_means(cosine(WordEmbedder(dimensions=64)))
    assert (means["line"] / 9, means["description"] / 9) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(("scheduler", "lines"), [("slurm", {"squeue"}), ("pbs", {"qstat"}), ("none", set())])
def test_questions_that_name_no_site_are_of_the_settings(
    home: Home, tmp_path: Path, scheduler: str, lines: set[str]
) -> None:
    (tmp_path / "q.jsonl").write_text('{"id": "1", "kind": "document", "question": "jobs?"}\n')
    with ScriptedEndpoint() as server:
        settings = served(server) | {"site.scheduler": scheduler}
        named = ("--model", SERVED, "--commands", "catalogue")
        done = home.hyce("evaluate", "similarity", str(tmp_path / "q.jsonl"), *named, settings=settings)
    assert done.code == 0, done.err
    sent = {text.split()[0] for request in server.requests for text in texts(request)}
    assert sent & {"squeue", "qstat"} == lines


def test_what_form_a_gateway_gives_scores_in_is_its_own() -> None:
    with ScriptedEndpoint() as server:
        said = {"name": "cross-encoder/stsb-roberta-large", "base_url": server.url}
        for form, output in (("cohere", "as served"), ("tei", "sigmoid")):
            config = Config(reranker=Reranker(form=form, **said))  # type: ignore[arg-type]
            assert open_encoder(said["name"], "cross-encoder", config).output == output
    assert server.requests == []


def test_an_endpoint_outside_the_site_is_not_asked_without_consent() -> None:
    config = Config(reranker=Reranker(name=SERVED, form="nim", base_url="https://models.example.org/v1"))
    found = open_encoder(SERVED, "cross-encoder", config)
    assert found.model is None
    assert "outside the site" in found.unavailable and "nothing was sent" in found.unavailable


def test_an_endpoint_that_fails_leaves_the_others(home: Home, questions: str) -> None:
    with ScriptedEndpoint(answers(most=500), refuses(400, "no such model")) as server:
        settings = served(server) | {"reranker.batch": 500}
        named = ("--model", SERVED, "--bi-encoder", "tiny", "--json")
        done = home.hyce("evaluate", "similarity", questions, *named, settings=settings)
    assert done.code == 0, done.err
    found = models_of(done.json)
    assert found[SERVED]["compared"] == [] and "400" in found[SERVED]["unavailable"]
    assert found["tiny"]["compared"]


def test_a_served_bi_encoder_is_asked_at_its_endpoint(home: Home, questions: str) -> None:
    with ScriptedEndpoint() as server:
        settings = {"model.kind": "openai", "model.name": "words", "model.base_url": server.url}
        named = ("--bi-encoder", "words", "--commands", "catalogue", "--json")
        done = home.hyce("evaluate", "similarity", questions, *named, settings=settings)
    (model,) = done.json["models"]
    assert (model["where"], model["output"]) == ("endpoint", "cosine"), done.err
    means = model["compared"][0]["all"]
    expected = best_means(cosine(WordEmbedder(dimensions=64)))
    assert (means["line"], means["description"]) == pytest.approx(expected, abs=1e-5)


# -- sentence-transformers -------------------------------------------------------------------------------

TORCH = ("--backend", "sentence-transformers")
INSTALLED = find_spec("sentence_transformers") is not None


@pytest.mark.skipif(INSTALLED, reason="sentence-transformers is installed")
def test_without_the_package_its_backend_says_what_to_install(home: Home, questions: str) -> None:
    done = home.hyce("evaluate", "similarity", questions, *TORCH)
    fails(done, "sentence-transformers is not installed", "pip install 'hyce[similarity]'")


@pytest.mark.skipif(not INSTALLED, reason="needs the extra `similarity`")
def test_both_backends_give_the_same_scores(folder: Path) -> None:
    config = load(None, {"model.folder": str(folder), "reranker.precision": "fp32"}, {})
    more = {"vocab_size": len(tiny_model.WORDS), "intermediate_size": tiny_model.INNER, "num_labels": 1}
    compared_with = ["job", "disk full", "the queue is full of jobs that wait for a node"]
    cross = OnnxCrossEncoder(models.find("ms-marco-MiniLM-L-12-v2", "fp32", folder))
    bi = cosine(OnnxEmbedder(models.find("tiny", "fp32", folder)))
    pairs: tuple[tuple[Kind, Path, Scorer], ...] = (
        ("cross-encoder", folder / "cross", cross),
        ("bi-encoder", folder / "bi", bi),
    )
    for kind, original, ours in pairs:
        said = json.loads((original / "config.json").read_text(encoding="utf-8"))
        (original / "config.json").write_text(json.dumps(said | more), encoding="utf-8")
        special = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep")}
        given = {"model_input_names": ["input_ids", "token_type_ids", "attention_mask"]}
        tokens = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 12} | given | special
        (original / "tokenizer_config.json").write_text(json.dumps(tokens), encoding="utf-8")
        theirs = open_encoder(str(original), kind, config, "sentence-transformers")
        assert theirs.model, theirs.unavailable
        scores = theirs.model.score("queue full", compared_with)
        np.testing.assert_allclose(scores, ours.score("queue full", compared_with), atol=1e-4)
    missing = open_encoder("/no/such/folder", "cross-encoder", config, "sentence-transformers")
    assert missing.model is None and "can't load it" in missing.unavailable
