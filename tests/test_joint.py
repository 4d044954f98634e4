"""Descriptions and passages compete by their cosine for the same places."""

from dataclasses import replace

from found import HITS, match

from hyce.joint import compete


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
