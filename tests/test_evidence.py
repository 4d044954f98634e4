"""Which hits support the evidence, and how much of it is shown within so many words."""

from __future__ import annotations

import functools
import importlib.util
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hyce_home import KESTREL, Home
from hypothesis import given, settings
from hypothesis import strategies as st

from hyce.config import Config, Passages
from hyce.evaluate.finding import evidence, ranking
from hyce.evaluate.records import DOCUMENT, TWO_PASSAGES, Evidence, Question
from hyce.evaluate.sets import read_set
from hyce.index.embedded import open_index, open_writer
from hyce.indexing import index_sources
from hyce.join import join_neighbours
from hyce.records import Embedding, Hit, Passage

QUESTIONS = Path(__file__).parent / "data" / "kestrel_questions.jsonl"
SHARED = Path(__file__).parents[2] / "shared"
"""Documentation and questions of real centres with a scorer, which are not part of the project."""
SCORER = SHARED / "tools" / "score_retrieval.py"

needs_scorer = pytest.mark.skipif(not SCORER.is_file(), reason=f"{SCORER} is not there")
many = settings(max_examples=200, deadline=None)


def hit(text: str, path: str = "docs/jobs.md", source: str = "/site") -> Hit:
    return Hit(1, 1.0, Passage(1, source, path, None, "", (), text, None))


def asked(*quotes: str, kind: str = "factoid", path: str = "docs/jobs.md", source: str = "") -> Question:
    return Question("q", "?", kind, evidence=tuple(Evidence(path, quote, source) for quote in quotes))


def supported(quote: str, text: str) -> bool:
    return evidence.support([Evidence("a.md", quote)], [("a.md", text)]) == [frozenset({0})]


# -- words -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A job runs 24 h.", "a job runs 24 h"),
        ("see [the queue](../queue.md#long) for it", "see the queue for it"),
        ("see [the queue][ref-queue] for it", "see the queue for it"),
        ("## Limits {#limits .wide}", "limits"),
        ("{: .note } up to {.red} ten", "up to ten"),
        ("see :ref:`limits` or `the guide <https://site.example/guide>`__", "see limits or the guide"),
        ("<td>10Gb</td>\n<td>Y</td>", "10gb y"),
        ("a &lt;b&gt; &amp; c&nbsp;d", "a c d"),
        ("`--time=1-00:00:00`, $HOME/x_y", "time 1 00 00 00 home x y"),
        ("Größe über 5 µs", "gr e ber 5 s"),
        ("H\u2082O \u2167 \ufb01le \uff42 \U0001d431 \u2122", "h o le"),
        ("Квота дисков: 10", "квота дисков 10"),
        ("配额为10 GB。", "配 额 为 10 gb"),
        ("クォータ", "ク ォ ー タ"),
        ("", ""),
    ],
)
def test_words_are_what_is_left_without_markup(text: str, expected: str) -> None:
    assert " ".join(evidence.words(text)) == expected


# -- words in order --------------------------------------------------------------------------------------


def plain_common(first: Sequence[str], second: Sequence[str]) -> int:
    """The longest common subsequence by the definition, a cell for each pair of words."""

    @functools.cache
    def longest(i: int, j: int) -> int:
        if i == len(first) or j == len(second):
            return 0
        if first[i] == second[j]:
            return 1 + longest(i + 1, j + 1)
        return max(longest(i + 1, j), longest(i, j + 1))

    return longest(0, 0)


few_words = st.lists(st.sampled_from("abcdef"), max_size=24)


@many
@given(few_words, few_words)
def test_the_longest_common_subsequence_is_that_of_the_definition(
    first: list[str], second: list[str]
) -> None:
    assert evidence.common(first, second) == plain_common(first, second) == evidence.common(second, first)


def test_common_words_of_long_lists() -> None:
    """Longer than any machine word."""
    numbers = [str(n) for n in range(1000)]
    assert evidence.common(numbers, numbers) == 1000
    assert evidence.common(numbers, numbers[::-1]) == 1
    assert evidence.common(numbers[::3], numbers[::5]) == 67
    assert evidence.common([], numbers) == evidence.common(numbers, []) == 0


# -- what supports ---------------------------------------------------------------------------------------


def test_four_words_of_five_in_order_are_enough() -> None:
    quote = "one two three four five"
    assert supported(quote, "one two x three y four")
    assert not supported(quote, "one two three")
    assert not supported(quote, "five four three two one"), "not in order"
    assert supported(quote, "Zero ONE, **two** <b>three</b> [four](x.md): five!")


def test_the_different_words_count_too() -> None:
    """Nine of eleven words in order, but one of three different ones."""
    assert not supported("go " * 9 + "left right", "go " * 9)
    assert supported("go " * 9 + "left right", "go " * 9 + "left right")


def test_nothing_supports_a_quote_without_words() -> None:
    assert not supported("---", "anything at all --- ")
    assert evidence.recall_within(asked("---"), [hit("---")]) == {500: 0, 2000: 0}


@pytest.mark.parametrize(
    ("found", "wanted", "same"),
    [
        ("docs/jobs.md", "docs/jobs.md", True),
        ("docs/jobs.md#limits", "docs/jobs.md", True),
        ("./docs/jobs.md", "docs/jobs.md", True),
        ("site/docs/jobs.md", "docs/jobs.md", True),
        ("jobs.md", "docs/jobs.md", True),
        ("docs/old-jobs.md", "jobs.md", False),
        ("docs/jobs.rst", "docs/jobs.md", False),
    ],
)
def test_only_the_page_of_the_quote_supports_it(found: str, wanted: str, same: bool) -> None:
    hits = [(found, "a quota of ten gigabytes")]
    assert evidence.support([Evidence(wanted, "quota of ten")], hits) == [frozenset({0} if same else ())]


def test_each_hit_has_the_pieces_that_it_supports() -> None:
    pieces = [Evidence("a.md", "alpha beta"), Evidence("a.md", "gamma"), Evidence("b.md", "gamma")]
    hits = [("a.md", "gamma"), ("b.md", "gamma"), ("a.md", "gamma alpha beta"), ("c.md", "gamma")]
    assert evidence.support(pieces, hits) == [{1}, {2}, {0, 1}, set()]


def test_pages_may_lie_elsewhere_than_when_the_question_was_made() -> None:
    moved = asked("ten files", source="/home/alice/docs")
    hits = [hit("nothing", source="/srv/docs"), hit("ten files", source="/srv/docs")]
    assert evidence.found(moved, hits) == [set(), {0}]
    assert evidence.first_support(moved, hits) == 2
    assert evidence.recall_within(moved, hits, (1, 3)) == {1: 0, 3: 1}


def test_the_first_hit_that_supports_a_piece() -> None:
    question = asked("alpha beta", "gamma", kind="multihop")
    assert evidence.first_support(question, [hit("none"), hit("gamma"), hit("alpha beta")]) == 2
    assert evidence.first_support(question, [hit("none")]) is None
    assert evidence.first_support(question, []) is None
    assert evidence.first_support(asked(), [hit("gamma")]) is None


# -- what is shown within so many words ------------------------------------------------------------------


def test_a_hit_that_crosses_the_limit_is_cut_there() -> None:
    question = asked("one two three four five")
    hits = [hit("a b c"), hit("one two three four five")]
    assert evidence.recall_within(question, hits, (3, 6, 7, 8)) == {3: 0, 6: 0, 7: 1, 8: 1}


def test_a_question_that_needs_all_scores_the_share_that_is_shown() -> None:
    hits = [hit("gamma"), hit("alpha beta"), hit("gamma")]
    quotes = ("alpha beta", "gamma", "delta", "gamma")
    for kind, expected in (("multihop", (0.5, 0.75)), (TWO_PASSAGES, (0.5, 0.75)), ("factoid", (1, 1))):
        found = evidence.recall_within(asked(*quotes, kind=kind), hits, (1, 100))
        assert tuple(found.values()) == expected, kind


def test_without_evidence_there_is_no_recall() -> None:
    assert evidence.recall_within(asked(), [hit("alpha")]) == {}
    assert ranking.recall(evidence.ranking(asked(), [hit("alpha")]), 5) is None


def test_pieces_are_needs_where_all_are_needed_and_one_need_else() -> None:
    hits = [hit("gamma"), hit("none"), hit("alpha beta gamma")]
    pieces = ("alpha beta", "gamma")
    assert evidence.ranking(asked(*pieces, kind="multihop"), hits) == ranking.Ranking(
        (frozenset({1}), frozenset(), frozenset({0, 1})), 2
    )
    assert evidence.ranking(asked(*pieces), hits) == ranking.Ranking(
        (frozenset({0}), frozenset(), frozenset({0})), 1
    )


# -- whole passages as evidence, as of generated questions ------------------------------------------------


def of_passage(passage: Passage) -> Question:
    return asked(passage.text, kind=DOCUMENT, path=passage.path, source=passage.source)


Pages = list[list[Passage]]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, model_folder: Path) -> Home:
    """Somebody whose index holds the sample documentation."""
    home = Home(tmp_path_factory.mktemp("evidence"), model_folder)
    assert home.hyce("index", str(KESTREL), "--quiet").code == 0
    return home


@pytest.fixture(scope="module")
def pages(home: Home) -> Pages:
    return read_pages(home.index)


class NoVectors:
    """An embedder for an index that is only searched by words, which takes a tenth of the time to make."""

    fingerprint, dimensions, token_vectors = "none", 1, False

    def embed(self, texts: Sequence[str], *, tokens: bool = False, query: bool = False) -> list[Embedding]:
        return [Embedding(np.ones(1, np.float32), np.empty((0, 1), np.float32)) for _ in texts]

    def length(self, text: str) -> int:
        return len(text) // 4


def index_words(index: Path, folder: Path, size: int = Passages().size) -> None:
    """Index a folder for a search by words, in passages of about `size` tokens."""
    config = Config(passages=Passages(size=size))
    with open_writer(
        index, embedder="none", dimensions=1, passages="structure", token_vectors=False
    ) as writer:
        index_sources([str(folder)], writer, NoVectors(), config, lambda *_: None)


def read_pages(index: Path) -> Pages:
    """The passages of each page in reading order."""
    found = defaultdict(list)
    with open_index(index) as reader:
        for passage in reader.passages(reader.ids()):
            found[passage.path].append(passage)
    return [sorted(page, key=lambda passage: passage.position) for page in found.values()]


@pytest.fixture(scope="module")
def cut_by_length(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    """The sample documentation in passages of the default size, four letters to a token."""
    index = tmp_path_factory.mktemp("index")
    index_words(index, KESTREL)
    return read_pages(index)


def joined(page: Sequence[Passage], starts: int, count: int) -> Passage:
    """So many passages of a page as retrieval joins them."""
    [(passage, _, _)] = join_neighbours([(p, 1.0, 1.0) for p in page[starts : starts + count]], most=count)
    return passage


def test_a_passage_supports_itself(pages: Pages) -> None:
    assert sum(map(len, pages)) > 300
    for page in pages:
        for passage in page:
            assert evidence.first_support(of_passage(passage), [Hit(1, 1.0, passage)]) == 1


def test_a_passage_is_supported_by_what_it_was_joined_to(pages: Pages) -> None:
    for page in pages:
        for count in (2, 3, 4):
            for start in range(len(page) - count + 1):
                whole = Hit(1, 1.0, joined(page, start, count))
                for passage in page[start : start + count]:
                    assert evidence.first_support(of_passage(passage), [whole]) == 1, passage


def test_hardly_any_other_passage_supports_it(pages: Pages) -> None:
    others = [
        evidence.first_support(of_passage(passage), [Hit(1, 1.0, other)])
        for page in pages
        for passage in page
        for other in page
        if other is not passage
    ]
    assert len(others) > 3000
    assert sum(other is not None for other in others) <= 3


@pytest.mark.parametrize(("size", "at_least", "at_most"), [(128, 0.6, 0.8), (256, 0.85, 0.99)])
def test_passages_cut_in_another_way_support_it_once_they_are_joined(
    size: int, at_least: float, at_most: float, tmp_path: Path, cut_by_length: Pages
) -> None:
    """Of smaller passages seldom one alone has 80 % of a larger one, of larger ones mostly."""
    index_words(tmp_path, KESTREL, size)
    cut = {page[0].path: page for page in read_pages(tmp_path)}
    alone, together = [], []
    for passage in (passage for page in cut_by_length for passage in page):
        page = cut[passage.path]
        runs = [joined(page, start, n) for n in (2, 3, 4) for start in range(len(page) - n + 1)]
        question = of_passage(passage)
        alone.append(evidence.first_support(question, [Hit(1, 1.0, p) for p in page]) is not None)
        together.append(
            evidence.first_support(question, [Hit(1, 1.0, p) for p in [*page, *runs]]) is not None
        )
    assert all(together)
    assert at_least <= sum(alone) / len(alone) <= at_most


# -- as the scorer that question files are published with ---------------------------------------------------


@pytest.fixture(scope="module")
def scorer() -> Any:
    spec = importlib.util.spec_from_file_location("score_retrieval", SCORER)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


texts = st.lists(
    st.sampled_from(
        [
            *(
                "job",
                "jobs",
                "the",
                "a",
                "b",
                "c",
                "10",
                "é",
                "--",
                "\n",
                "|",
                "&lt;",
                "&amp;",
                "<b>",
                "</b>",
            ),
            *("[x](y.md)", "[x][z]", "{#k}", "{.k", ":ref:`m`", "`n <o>`__", "<", ">", "`"),
        ]
    ),
    max_size=40,
).map(" ".join)
paths = st.sampled_from(["a.md", "docs/a.md", "./a.md", "docs/a.md#x", "b.md", "ba.md"])


@needs_scorer
@many
@given(
    st.lists(st.tuples(paths, texts), min_size=1, max_size=4),
    st.lists(st.tuples(paths, texts), max_size=14),
    st.sampled_from(["multihop", "factoid"]),
    st.sampled_from([(3, 17), (10, 40)]),
)
def test_any_question_scores_as_the_scorer_says(
    scorer: Any,
    pieces: list[tuple[str, str]],
    found: list[tuple[str, str]],
    kind: str,
    budgets: tuple[int, int],
) -> None:
    scorer.BUDGETS = budgets
    question = Question("q", "?", kind, evidence=tuple(Evidence(*piece) for piece in pieces))
    hits = [hit(text, path) for path, text in found]
    row = {"kind": kind, "evidence": [{"path": path, "quote": quote} for path, quote in pieces]}
    theirs = scorer.score(row, [{"path": path, "text": text} for path, text in found])
    ours = evidence.recall_within(question, hits, budgets)
    assert [*ours.values(), ranking.reciprocal_rank(evidence.ranking(question, hits))] == list(
        theirs.values()
    )


def check_scores(questions: Path, found: Sequence[Sequence[Hit]], folder: Path) -> None:
    """Over all questions and by kind, the figures are the scorer's to three digits."""
    asked = read_set(questions).questions
    rows = [
        {"question": q.question, "hits": [{"path": h.passage.path, "text": h.passage.text} for h in hits]}
        for q, hits in zip(asked, found, strict=True)
    ]
    results = folder / "results.jsonl"
    results.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    command = [sys.executable, str(SCORER), str(questions), str(results), "--json"]
    theirs = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout)
    ours: dict[str, list[list[float]]] = defaultdict(list)
    for question, hits in zip(asked, found, strict=True):
        if question.evidence:
            rank = ranking.reciprocal_rank(evidence.ranking(question, hits))
            assert rank is not None
            figures = [*evidence.recall_within(question, hits).values(), rank]
            ours["all"].append(figures)
            ours[question.kind].append(figures)
    assert ours.keys() == theirs.keys()
    for group, each in ours.items():
        means = [round(sum(column) / len(each), 3) for column in zip(*each, strict=True)]
        assert [len(each), *means] == list(theirs[group].values()), group
    assert 0.3 < theirs["all"]["recall@500w"] < theirs["all"]["recall@2000w"] <= 1


def searched(home: Home, questions: Path) -> list[list[Hit]]:
    """The 60 best hits for each question, as `hyce search` prints them."""
    rows = home.hyce("search", "-", "-k", "60", "--json", stdin=questions.read_text(encoding="utf-8")).rows
    return [[hit(h["text"], h["path"], h["source"]) for h in row["hits"]] for row in rows]


@needs_scorer
def test_the_sample_documentation_scores_as_the_scorer_says(home: Home, tmp_path: Path) -> None:
    check_scores(QUESTIONS, searched(home, QUESTIONS), tmp_path)


@needs_scorer
@pytest.mark.parametrize("centre", ["katana", "cscs", "archer2"])
def test_centres_searched_by_words_score_as_the_scorer_says(centre: str, tmp_path: Path) -> None:
    questions, index = SHARED / "questions" / f"{centre}.jsonl", tmp_path / "index"
    index_words(index, SHARED / "corpora" / centre)
    with open_index(index) as reader:
        found = []
        for question in read_set(questions).questions:
            numbers = [number for number, _ in reader.lexical(question.question, 60)]
            found.append([Hit(1, 1.0, passage) for passage in reader.passages(numbers)])
    check_scores(questions, found, tmp_path)
