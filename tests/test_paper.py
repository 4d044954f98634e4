"""The preset `paper` from end to end: each value of the paper's appendix A is in effect."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_model
from hyce_home import Home, fails
from scripted_llm import ScriptedLlm, says

from hyce import models
from hyce.config import Config, load
from hyce.embed import open_embedder
from hyce.index.embedded import open_index
from hyce.match import open_matcher
from hyce.records import Passage
from hyce.rerank import Reranker, open_reranker

PAPER = ("--preset", "paper")
PAGES, PARTS = 16, 3
QUESTION = "disk full"
UNIT = re.compile(r"^(\d+) \(", re.MULTILINE)


def body(page: int) -> str:
    """Six units of eight tokens, of which a model makes three passages."""
    words = tiny_model.WORDS[4:]
    picked = np.random.default_rng(page).choice([word for word in words if "#" not in word], (6, 6))
    return f"# Page {page}\n\n" + "\n".join(
        f"- unit{page}-{i} {' '.join(row)}" for i, row in enumerate(picked)
    )


def cuts(exchange: Any) -> None:
    """A passage at every second unit."""
    numbers = [int(number) for number in UNIT.findall(exchange.request_seen.prompt)]
    says(json.dumps({"starts": numbers[::2]}))(exchange)


def written_by(server: ScriptedLlm) -> dict[str, Any]:
    return {"llm.base_url": server.url, "llm.model": "scripted"}


@dataclass(frozen=True)
class Paper:
    """A user's folders with an index made with the preset, and what the model was asked for it."""

    home: Home
    config: Config
    cutting: ScriptedLlm


@pytest.fixture(scope="module")
def paper(tmp_path_factory: pytest.TempPathFactory, model_folder: Path) -> Paper:
    folder = tmp_path_factory.mktemp("paper")
    bi = tiny_model.write(folder / "bi")
    (bi / "sentence_bert_config.json").write_text(f'{{"max_seq_length": {tiny_model.POSITIONS}}}')
    made = folder / "models"
    models.pull("multi-qa-MiniLM-L6-cos-v1", made, source=bi)
    cross = tiny_model.write_cross_encoder(folder / "cross", seed=1)
    models.pull("ms-marco-MiniLM-L-12-v2", made, source=cross)
    (made / "all-MiniLM-L6-v2").symlink_to(model_folder / "all-MiniLM-L6-v2")
    docs = folder / "docs"
    docs.mkdir()
    for page in range(PAGES):
        (docs / f"{page}.md").write_text(body(page), encoding="utf-8")
    (folder / "home").mkdir()
    home = Home(folder / "home", made)
    with ScriptedLlm(cuts) as server:
        settings = written_by(server)
        done = home.hyce("index", str(docs), *PAPER, "--json", settings=settings)
    assert (done.code, done.json["notes"]) == (0, []), done.err
    config = load(home.settings(settings), {"preset": "paper", "index.path": str(home.index)}, {})
    return Paper(home, config, server)


def test_the_model_cuts_the_pages(paper: Paper) -> None:
    requests = paper.cutting.requests
    assert len(requests) == PAGES
    assert {request.body["temperature"] for request in requests} == {0}
    assert {request.body["max_tokens"] for request in requests} == {4096}
    with open_index(paper.home.index) as index:
        assert index.manifest.chunks == PAGES * PARTS
        assert index.manifest.passages.startswith("llm/")
        assert not index.manifest.token_vectors
        passages = index.passages([number for number, _ in index.lexical("unit0", PARTS)])
    for passage in passages:
        first, second = sorted(re.findall(r"unit0-(\d)", passage.body))
        assert int(first) % 2 == 0 and int(second) == int(first) + 1


def reranker(config: Config) -> Reranker:
    opened = open_reranker(config)
    assert opened is not None
    return opened


def ranked(config: Config, candidates: int) -> list[tuple[float, Passage]]:
    """The nearest passages by their vectors, in the cross-encoder's order."""
    with open_index(Path(config.index.path)) as index:
        (asked,) = open_embedder(config).embed([QUESTION], query=True)
        found = index.passages([number for number, _ in index.dense(asked.vector, candidates)])
    scores = reranker(config).score(QUESTION, [passage.text for passage in found])
    return sorted(zip(scores.tolist(), found, strict=True), key=lambda pair: -pair[0])


def test_the_nearest_20_are_read_by_the_cross_encoder_and_5_stay(paper: Paper) -> None:
    hits = paper.home.hyce("search", QUESTION, *PAPER, "--json").json["hits"]
    best = ranked(paper.config, 20)[:5]
    assert [hit["text"] for hit in hits] == [passage.text for _, passage in best]
    assert [hit["score"] for hit in hits] == [round(score, 4) for score, _ in best]
    assert {passage.id for _, passage in best} != {p.id for _, p in ranked(paper.config, PAGES * PARTS)[:5]}
    assert {passage.id for _, passage in best} != {p.id for _, p in ranked(paper.config, 5)}


def test_descriptions_of_commands_compete_for_the_5_places(paper: Paper) -> None:
    matcher = open_matcher(paper.config, scheduler="slurm", assume_available=True)
    nearest = matcher.by_description(QUESTION)[:20]
    scores = reranker(paper.config).score(QUESTION, [match.command.description for match in nearest])
    described = [(float(score), match.command.id) for score, match in zip(scores, nearest, strict=True)]
    best = sorted([*described, *((score, "") for score, _ in ranked(paper.config, 20)[:5])], reverse=True)[:5]
    expected = [name for _, name in best if name]
    assert 0 < len(expected) < 5, "both kinds, or the test shows nothing"
    named = ("--scheduler", "slurm", "--assume-available", "--json")
    found = paper.home.hyce("match", QUESTION, *PAPER, *named)
    assert [command["id"] for command in found.json["commands"]] == expected


def test_the_answer_is_written_without_citations(paper: Paper) -> None:
    with ScriptedLlm(says("Jobs wait.")) as server:
        done = paper.home.hyce("ask", QUESTION, *PAPER, "--json", settings=written_by(server))
        (request,) = server.requests
    assert (done.code, done.json["answer"]) == (0, "Jobs wait."), done.err
    assert len(done.json["commands"]) + len(done.json["passages"]) == 5
    assert (request.body["temperature"], request.body["max_tokens"]) == (0, 4096)
    assert "square brackets" not in request.prompt
    assert done.json["notices"] == [] or not any("cite" in notice for notice in done.json["notices"])


def test_an_index_made_with_the_preset_is_refused_without_it(paper: Paper) -> None:
    found = paper.home.hyce("search", QUESTION)
    fails(found, "made with the model multi-qa-MiniLM-L6-cos-v1/", "run `hyce index`", "preset")


def test_the_preset_holds_whatever_the_files_say(paper: Paper) -> None:
    other = {"model.kind": "openai", "retrieval.transform": "hyde", "retrieval.decide": True}
    found = paper.home.hyce("search", QUESTION, *PAPER, "--json", settings=other)
    assert found.code == 0, found.err
    assert set(found.json) == {"question", "hits"}
    assert len(found.json["hits"]) == 5
