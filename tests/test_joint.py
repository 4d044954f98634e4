"""Descriptions and passages compete by their cosine for the same places."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from found import HITS, match
from numpy.typing import NDArray

from hyce.joint import compete, compete_reranked


def test_a_description_that_is_nearer_takes_a_passages_place() -> None:
    hits = [replace(HITS[0], similarity=0.4), replace(HITS[1], similarity=0.6)]
    near, far = replace(match("near"), score=0.5), replace(match("far"), score=0.1)
    commands, kept = compete(hits, [far, near], places=2)
    assert commands == [near]
    assert kept == [hits[1]]


def test_with_places_for_all_every_command_runs_and_passages_keep_their_order() -> None:
    hits = [replace(HITS[0], similarity=0.4), replace(HITS[1], similarity=0.6)]
    a, b = replace(match("a"), score=0.1), replace(match("b"), score=0.2)
    assert compete(hits, [a, b], places=4) == ([b, a], hits)


def test_nothing_to_choose_from() -> None:
    assert compete([], [], places=6) == ([], [])


class Shortest:
    """A Reranker double: the shorter, the better. `seen` keeps what it read."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def score(self, question: str, texts: Sequence[str]) -> NDArray[np.float32]:
        self.seen += texts
        return np.array([-len(text) for text in texts], np.float32)


def test_a_reranker_reads_the_nearest_descriptions_and_compares_them_with_the_passages_it_ordered() -> None:
    hits = [replace(HITS[0], score=-5.0, similarity=0.1), replace(HITS[1], score=-90.0, similarity=0.9)]
    entries = [replace(match(name), score=score) for name, score in (("a", 0.2), ("b", 0.9), ("c", 0.5))]
    length = len(entries[0].command.description)
    assert 5 < length < 90
    reranker = Shortest()
    commands, kept = compete_reranked("q", hits, entries, reranker, candidates=2, places=3)
    assert [command.command.id for command in commands] == ["b", "c"], "the third was too far to be read"
    assert {command.score for command in commands} == {-length}
    assert kept == [hits[0]]
    assert len(reranker.seen) == 2


def test_without_descriptions_a_reranker_is_not_asked() -> None:
    reranker = Shortest()
    assert compete_reranked("q", HITS, [], reranker, candidates=5, places=9) == ([], list(HITS))
    assert reranker.seen == []
