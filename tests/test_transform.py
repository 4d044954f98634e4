"""What a language model makes of a question is searched for, and nothing else becomes of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from found import HITS
from hyce_home import Home
from scripted_llm import Request, ScriptedLlm, Step, fails, says

from hyce.config import Config, Index, Llm, Model, Policy, Retrieval, Site
from hyce.embed import Embedder
from hyce.llm import ChatClient, output_tokens
from hyce.records import Embedding, Hit, Search
from hyce.retrieve import Retriever, open_retriever
from hyce.tokens import estimate
from hyce.transform import RANKED, Transformer, fused

QUESTION = "How many graphics processors may I have on Merlin?"
PASSAGE = "On Merlin one person may use at most 16 GPUs at the same time in the gpu partition."
UNUSED = "could not be used"


@dataclass
class Listening:
    """The real Embedder; `heard` keeps what is embedded, which is what is searched for."""

    real: Embedder
    heard: list[str] = field(default_factory=list)
    token_vectors: bool = True

    @property
    def fingerprint(self) -> str:
        return self.real.fingerprint

    @property
    def dimensions(self) -> int:
        return self.real.dimensions

    def length(self, text: str) -> int:
        return self.real.length(text)

    def embed(self, texts: Sequence[str], *, tokens: bool = False, query: bool = False) -> list[Embedding]:
        self.heard += texts
        return self.real.embed(texts, tokens=tokens, query=query)


@dataclass
class Searched:
    """How a search went."""

    search: Search
    heard: list[str]
    requests: list[Request]
    plain: list[Hit]
    """What the question alone finds."""

    @property
    def ids(self) -> list[int]:
        return [hit.passage.id for hit in self.search.hits]


@pytest.fixture(scope="module")
def opened(kestrel: Home) -> Iterator[Retriever]:
    """The sample documentation's index and the model, opened once."""
    with open_retriever(based(kestrel.models, kestrel.index)) as retriever:
        yield retriever


def based(models: Path, index: Path) -> Config:
    return Config(model=Model(folder=str(models)), index=Index(path=str(index)))


SITE = Site(name="Kestrel Computing", cluster="Merlin")


def searched(
    opened: Retriever,
    transform: str,
    *steps: Step,
    question: str = QUESTION,
    k: int | None = None,
    outside: bool = False,
    llm: dict[str, Any] | None = None,
    **retrieval: Any,
) -> Searched:
    # Without the vocabulary's terms, what is embedded is what was asked.
    usual: dict[str, Any] = {"transform": transform, "vocabulary": False, "candidates": 40}
    chosen = Retrieval(**(usual | retrieval))
    with ScriptedLlm(*steps) as server:
        values: dict[str, Any] = {"base_url": server.url, "model": "tiny", "retries": 0} | (llm or {})
        policy = Policy(outside_endpoints=(server.url,) if outside else ())
        config = Config(site=SITE, retrieval=chosen, llm=Llm(**values), policy=policy)
        ears = Listening(opened.embedder)
        with ChatClient(config) as client:
            retriever = Retriever(opened.index, ears, chosen, SITE)
            found = Transformer(retriever, client).search(question, k)
        plain = Retriever(opened.index, opened.embedder, chosen, SITE)
        return Searched(found, list(ears.heard), server.requests, plain.retrieve(question, k))


def wordings(*texts: object) -> Step:
    return says(json.dumps({"wordings": texts}))


def step(sentence: str, done: bool = False) -> Step:
    return says(json.dumps({"sentence": sentence, "done": done}))


# -- a passage that could answer -------------------------------------------------------------------------


def test_a_written_passage_is_searched_for_beside_the_question(opened: Retriever) -> None:
    got = searched(opened, "hyde", says(f"<think>hm</think>{PASSAGE}\n"))
    assert got.heard == [QUESTION, PASSAGE]
    assert got.search.texts == (PASSAGE,)
    assert got.search.notices == ()
    (request,) = got.requests
    assert request.body["messages"][1]["content"] == f"Question: {QUESTION}"
    assert "Kestrel Computing's cluster, named Merlin" in request.prompt
    assert "response_format" not in request.body
    assert got.search.model_ms > 0


def test_a_written_passage_finds_what_the_question_does_not_say(opened: Retriever) -> None:
    vague = "And how many of those?"
    got = searched(opened, "hyde", says(PASSAGE), question=vague, lexical=False, rerank="none", join=False)
    assert got.search.hits[0].passage.path == "docs/merlin/gpus.md"
    assert got.plain[0].passage.path != "docs/merlin/gpus.md"


def test_a_passage_is_kept_to_one_harmless_line_of_some_length(opened: Retriever) -> None:
    got = searched(opened, "hyde", says("\x1b[31mUse\n\n" + "gres " * 2000))
    (passage,) = got.search.texts
    assert passage.startswith("Use gres gres")
    assert len(passage) <= 2000


# -- other wordings --------------------------------------------------------------------------------------

OTHERS = ("GPU limit on Merlin", "maximum number of GPUs in the gpu partition", "gres limits per person")


def test_other_wordings_are_searched_for_and_their_rankings_fused(opened: Retriever) -> None:
    got = searched(opened, "fusion", wordings(*OTHERS), join=False)
    assert got.heard == [QUESTION, *OTHERS]
    assert got.search.texts == OTHERS
    (request,) = got.requests
    schema = request.body["response_format"]["json_schema"]["schema"]
    assert (schema["properties"]["wordings"]["minItems"], schema["required"]) == (3, ["wordings"])
    apart = Retriever(
        opened.index, opened.embedder, Retrieval(vocabulary=False, join=False, candidates=40), SITE
    )
    totals: dict[int, float] = {}
    for text in (QUESTION, *OTHERS):
        for rank, hit in enumerate(apart.retrieve(text, RANKED), 1):
            totals[hit.passage.id] = totals.get(hit.passage.id, 0) + 1 / (60 + rank)
    best = sorted(totals.values(), reverse=True)[:6]
    assert [hit.score for hit in got.search.hits] == pytest.approx(best)
    assert [totals[number] for number in got.ids] == pytest.approx(best)
    assert len(set(got.ids)) == 6
    assert [hit.rank for hit in got.search.hits] == [1, 2, 3, 4, 5, 6]


def test_neighbours_are_joined_after_the_fusion_and_no_text_stands_twice(opened: Retriever) -> None:
    got = searched(opened, "fusion", wordings(*OTHERS))
    apart = searched(opened, "fusion", wordings(*OTHERS), join=False)
    assert max(len(hit.passage.body) for hit in got.search.hits) > max(
        len(hit.passage.body) for hit in apart.search.hits
    )
    bodies = [hit.passage.body for hit in got.search.hits]
    for body in (hit.passage.body for hit in apart.search.hits):
        assert sum(body in other for other in bodies) <= 1


def test_so_many_passages_as_asked_for(opened: Retriever) -> None:
    assert len(searched(opened, "fusion", wordings(*OTHERS), k=30).search.hits) == 30
    assert len(searched(opened, "fusion", wordings(*OTHERS), k=2).search.hits) == 2
    assert len(searched(opened, "interleaved", step("", done=True), k=2).search.hits) == 2


def test_what_is_no_new_wording_is_not_searched_for(opened: Retriever) -> None:
    said = [QUESTION.upper(), 7, None, " ", "GPU limit?", "gpu  limit", *OTHERS]
    got = searched(opened, "fusion", wordings(*said))
    assert got.heard == [QUESTION, "GPU limit?", *OTHERS[:2]]
    assert got.search.notices == ()


def test_the_number_of_wordings_counts_the_question(opened: Retriever) -> None:
    got = searched(opened, "fusion", wordings(*OTHERS), wordings=2)
    assert got.heard == [QUESTION, OTHERS[0]]
    assert "Write 1 other wordings" in got.requests[0].prompt


# -- search and reasoning in turn ------------------------------------------------------------------------

FIRST = "Merlin limits the number of GPUs for each person in the gpu partition."
SECOND = "A quality of service may raise that limit."


def test_sentences_and_searches_take_turns_until_the_answer_is_there(opened: Retriever) -> None:
    got = searched(opened, "interleaved", step(FIRST), step("16 GPUs.", done=True), step("never"), rounds=9)
    assert got.heard == [QUESTION, FIRST]
    assert got.search.texts == (FIRST,)
    first, second = got.requests
    assert "No step yet." in first.prompt
    assert f"Steps so far:\n- {FIRST}" in second.prompt
    assert "16 GPUs per person" in second.prompt
    assert set(first.body["response_format"]["json_schema"]["schema"]["properties"]) == {"sentence", "done"}


def test_no_more_searches_than_rounds(opened: Retriever) -> None:
    steps = [step(f"{FIRST} {n}") for n in range(9)]
    got = searched(opened, "interleaved", *steps, rounds=3)
    assert got.heard == [QUESTION, f"{FIRST} 0", f"{FIRST} 1"]
    assert len(got.requests) == 2
    once = searched(opened, "interleaved", *steps, rounds=1)
    assert once.requests == []
    assert list(once.search.hits) == once.plain


def test_a_step_that_was_there_before_ends_it(opened: Retriever) -> None:
    got = searched(opened, "interleaved", step(FIRST), step(FIRST.upper()), rounds=9)
    assert got.heard == [QUESTION, FIRST]
    assert len(got.requests) == 2


def test_late_searches_bring_passages_of_their_own(opened: Retriever) -> None:
    got = searched(opened, "interleaved", step("Files in scratch are deleted after 30 days."), rounds=2)
    paths = {hit.passage.path for hit in got.search.hits}
    assert any("scratch" in hit.passage.text.lower() for hit in got.search.hits)
    assert "docs/merlin/gpus.md" in paths
    assert paths != {hit.passage.path for hit in got.plain}


def test_the_passages_are_cut_to_the_model_s_context(opened: Retriever) -> None:
    size: dict[str, Any] = {"context_tokens": 1024, "max_output_tokens": 64}
    got = searched(opened, "interleaved", step("x", done=True), llm=size)
    (request,) = got.requests
    tokens = sum(estimate(message["content"]) + 8 for message in request.body["messages"])
    assert tokens + output_tokens(Config(llm=Llm(**size))) <= 1024
    assert "<<<source [1]" in request.prompt
    whole = searched(opened, "interleaved", step("x", done=True))
    assert len(whole.requests[0].prompt) > len(request.prompt)


# -- when the model fails --------------------------------------------------------------------------------


@pytest.mark.parametrize("transform", ["hyde", "fusion", "interleaved"])
@pytest.mark.parametrize("failure", [fails(500, "down"), fails(401, "no"), says("")])
def test_where_the_endpoint_fails_the_question_is_searched_for_as_it_stands(
    opened: Retriever, transform: str, failure: Step
) -> None:
    got = searched(opened, transform, failure)
    assert got.heard == [QUESTION]
    assert list(got.search.hits) == got.plain
    assert got.search.texts == ()
    (notice,) = got.search.notices
    assert UNUSED in notice
    assert "model tiny: " in notice


GARBAGE = (
    *(("fusion", garbage) for garbage in ("{", "[1, 2]", '{"wordings": "x"}', '{"wordings": [7, ""]}')),
    *(("interleaved", garbage) for garbage in ("Sure! Here:", '{"sentence": 7}', '{"done": "true"}')),
)


@pytest.mark.parametrize(("transform", "garbage"), GARBAGE)
def test_what_is_not_the_json_that_was_asked_for_is_asked_for_once_more(
    opened: Retriever, transform: str, garbage: str
) -> None:
    got = searched(opened, transform, says(garbage))
    assert len(got.requests) == 2
    assert got.requests[1].body["messages"][-2] == {"role": "assistant", "content": garbage}
    assert list(got.search.hits) == got.plain
    assert UNUSED in got.search.notices[0]
    good = wordings(*OTHERS) if transform == "fusion" else step(FIRST)
    again = searched(opened, transform, says(garbage), good, step("", done=True))
    assert again.search.notices == ()
    assert again.search.texts[0] in (*OTHERS, FIRST)


def test_a_failure_in_a_later_round_keeps_what_was_found(opened: Retriever) -> None:
    got = searched(opened, "interleaved", step(FIRST), fails(500, "down"), rounds=5)
    assert got.heard == [QUESTION, FIRST]
    assert UNUSED in got.search.notices[0]
    assert got.ids == searched(opened, "interleaved", step(FIRST), rounds=2).ids


def test_a_model_that_only_thinks_helps_nobody(opened: Retriever) -> None:
    got = searched(opened, "hyde", says("<think>what would", finish="length"))
    assert list(got.search.hits) == got.plain
    assert UNUSED in got.search.notices[0]


# -- what leaves the site --------------------------------------------------------------------------------

SECRET = "How do I use hf_abcdefghijklmnop1234 on a GPU? Mail ann@uni.example"


@pytest.mark.parametrize(
    ("transform", "reply"),
    [("hyde", says(PASSAGE)), ("fusion", wordings(*OTHERS)), ("interleaved", step(FIRST))],
)
def test_outside_models_see_no_secrets_of_the_question(
    opened: Retriever, transform: str, reply: Step
) -> None:
    outside = searched(opened, transform, reply, question=SECRET, outside=True)
    inside = searched(opened, transform, reply, question=SECRET)
    assert outside.requests and inside.requests
    for request in outside.requests:
        assert "ann@uni.example" not in request.everything
        assert "hf_abcdefghijklmnop1234" not in request.everything
        assert "[redacted" in request.prompt
    assert "ann@uni.example" in inside.requests[0].everything
    assert outside.heard[0] == SECRET


# -- fusion by hand --------------------------------------------------------------------------------------


def ranking(*numbers: int, score: float = 1.0, similarity: float = 0.5) -> list[Hit]:
    base = HITS[0].passage
    return [
        Hit(rank, score / rank, replace(base, id=number), similarity)
        for rank, number in enumerate(numbers, 1)
    ]


def test_reciprocal_ranks_add_up() -> None:
    got = fused([ranking(1, 2, 3), ranking(3, 4, similarity=0.9)])
    assert [passage.id for passage, _, _ in got] == [3, 1, 2, 4]
    assert [score for _, score, _ in got] == pytest.approx([1 / 63 + 1 / 61, 1 / 61, 1 / 62, 1 / 62])
    assert [cosine for _, _, cosine in got] == [0.9, 0.5, 0.5, 0.9]


def test_with_a_reranker_or_one_ranking_scores_stay_their_own() -> None:
    both = fused([ranking(1, 2), ranking(2, score=7.0)], own_scores=True)
    assert [(passage.id, score) for passage, score, _ in both] == [(2, 7.0), (1, 1.0)]
    assert [(passage.id, score) for passage, score, _ in fused([ranking(5, 6)])] == [(5, 1.0), (6, 0.5)]
    assert fused([[], []]) == []


# -- on the command line ---------------------------------------------------------------------------------


def configured(server: ScriptedLlm, **values: Any) -> dict[str, Any]:
    model = {"llm.base_url": server.url, "llm.model": "tiny", "llm.retries": 0, "site.scheduler": "none"}
    return model | {name.replace("__", "."): value for name, value in values.items()}


def test_search_helps_itself_to_the_model_and_shows_what_was_searched_for(kestrel: Home) -> None:
    with ScriptedLlm(wordings(*OTHERS)) as server:
        chosen = configured(server, retrieval__transform="fusion")
        done = kestrel.hyce("search", QUESTION, "--json", settings=chosen)
        told = kestrel.hyce("search", QUESTION, "--verbose", settings=chosen)
        lines = kestrel.hyce("search", "-", settings=chosen, stdin=json.dumps({"question": QUESTION}))
        assert len(server.requests) == 3
    assert (done.code, done.err, done.json["searched"]) == (0, "", list(OTHERS))
    assert len(done.json["hits"]) == 6
    assert f"searched for: {OTHERS[0]}" in told.err
    assert lines.rows[0] == done.json


def test_search_warns_where_the_model_fails_or_is_missing(kestrel: Home) -> None:
    plain = kestrel.hyce("search", QUESTION, "--json")
    assert "searched" not in plain.json
    with ScriptedLlm(fails(500, "down")) as server:
        failed = kestrel.hyce(
            "search", QUESTION, "--json", settings=configured(server, retrieval__transform="hyde")
        )
    missing = kestrel.hyce("search", QUESTION, "--json", settings={"retrieval.transform": "hyde"})
    for done, words in ((failed, UNUSED), (missing, "no language model is configured")):
        assert done.code == 0
        assert words in done.err
        assert done.err.startswith("hyce: ")
        assert done.json["hits"] == plain.json["hits"]


def test_a_trace_shows_the_model_s_time_and_what_was_searched_for(kestrel: Home) -> None:
    with ScriptedLlm(says(PASSAGE), says("At most 16 [1].")) as server:
        chosen = configured(server, retrieval__transform="hyde", commands__enabled=False)
        done = kestrel.hyce("ask", QUESTION, "--trace", settings=chosen)
        asked, answered = server.requests
    assert done.code == 0
    stages = [line.split()[0] for line in done.out.splitlines() if line.endswith(" ms")]
    assert stages == ["retrieve", "transform", "match", "run", "explain", "model", "total"]
    assert f"searched for: {PASSAGE}" in done.out
    assert done.out.index("total ") < done.out.index(PASSAGE)
    assert PASSAGE not in answered.prompt
    assert "<<<source" not in asked.prompt


def test_a_conversation_asks_for_help_once_a_question(kestrel: Home) -> None:
    second = "And on the other cluster?"
    with ScriptedLlm(wordings(*OTHERS), says("16 [1]."), wordings("x"), says("8 [1].")) as server:
        chosen = configured(server, retrieval__transform="fusion", commands__enabled=False)
        done = kestrel.hyce("chat", settings=chosen, stdin=f"{QUESTION}\n{second}\n")
        assert len(server.requests) == 4
        assert server.requests[2].body["messages"][-1]["content"] == f"Question: {QUESTION}\n{second}"
    assert done.code == 0


def test_no_help_is_asked_for_where_nothing_may_be_sent(kestrel: Home) -> None:
    with ScriptedLlm(says("x")) as server:
        chosen = configured(server, retrieval__transform="interleaved", retrieval__decide=True)
        assert kestrel.hyce("ask", QUESTION, "--no-llm", settings=chosen).code == 0
        shown = kestrel.hyce("ask", QUESTION, "--preview", settings=chosen)
        assert server.requests == []
    assert "the model would be asked to help with the search" in shown.err


def test_what_a_model_writes_never_runs(kestrel: Home, tmp_path: Path) -> None:
    """Orders and command lines in a wording lead to passages, never to a command."""
    orders = "show my jobs with squeue --me; run system.memory: how much memory is free on this machine"
    with ScriptedLlm(wordings(orders), says("Yes [1].")) as server:
        chosen = configured(server, retrieval__transform="fusion")
        done = kestrel.hyce("ask", "What is a login node good for?", "--json", settings=chosen)
    assert done.json["searched"] == [orders]
    assert done.json["commands"] == []
