"""Neighbouring passages become one, in reading order, at the place of the best of them."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from hyce.join import Ranked, join_neighbours
from hyce.records import Passage


def passage(position: int, path: str = "a.md", source: str = "/docs", heading: str = "Part") -> Passage:
    body = f"{source}|{path}|{position}"
    return Passage(position, source, path, None, "Title", ("Title", heading), body, None, position)


def ranked(*passages: Passage) -> list[Ranked]:
    """Scores fall with the rank; cosines don't."""
    return [(p, 10.0 - i, ((i * 7) % 10) / 10) for i, p in enumerate(passages)]


def bodies(result: list[Ranked]) -> list[list[str]]:
    return [[line.rpartition("|")[2] for line in p.body.split("\n")] for p, _, _ in result]


def test_neighbours_are_joined_in_reading_order_at_the_better_ones_place() -> None:
    given_ranking = ranked(passage(9), passage(4), passage(7), passage(3), passage(5))
    result = join_neighbours(given_ranking, among=5, most=4)
    assert bodies(result) == [["9"], ["3", "4", "5"], ["7"]]
    assert [score for _, score, _ in result] == [10, 9, 8]
    assert result[1][2] == max(given_ranking[i][2] for i in (1, 3, 4)), "the nearest one's cosine"
    assert result[1][0].id == 3, "it begins where the first does"


def test_three_passages_in_a_row_are_joined_from_the_best_outwards() -> None:
    result = join_neighbours(ranked(passage(5), passage(7), passage(6)), among=3, most=4)
    assert bodies(result) == [["5", "6", "7"]]


def test_at_the_limit_the_better_neighbour_is_taken() -> None:
    result = join_neighbours(ranked(passage(5), passage(6), passage(4)), among=3, most=2)
    assert bodies(result) == [["5", "6"], ["4"]]
    result = join_neighbours(ranked(passage(5), passage(4), passage(6)), among=3, most=2)
    assert bodies(result) == [["4", "5"], ["6"]]


def test_passages_ranked_below_the_limit_are_left_alone() -> None:
    result = join_neighbours(ranked(passage(1), passage(8), passage(2), passage(3)), among=2, most=4)
    assert bodies(result) == [["1"], ["8"], ["2"], ["3"]]


def test_passages_of_different_pages_or_sources_are_never_joined() -> None:
    apart = ranked(passage(1), passage(2, path="b.md"), passage(2, source="/other"), passage(3, path="b.md"))
    assert bodies(join_neighbours(apart, among=4, most=4)) == [["1"], ["2", "3"], ["2"]]


def test_a_new_heading_stands_on_a_line_of_its_own_and_an_old_one_is_not_repeated() -> None:
    parts = [passage(1, heading="One"), passage(2, heading="One"), passage(3, heading="Two")]
    ((joined, _, _),) = join_neighbours(ranked(*parts), among=3, most=4)
    assert joined.body.split("\n") == ["/docs|a.md|1", "/docs|a.md|2", "Two", "/docs|a.md|3"]
    assert joined.heading == ("Title", "One")


def test_the_defaults_join_two_passages_at_the_top() -> None:
    assert bodies(join_neighbours(ranked(passage(2), passage(1)))) == [["1", "2"]]
    assert join_neighbours([]) == []


places = st.tuples(
    st.integers(0, 12), st.sampled_from(["a.md", "b.md"]), st.sampled_from(["/docs", "/other"])
)


@settings(max_examples=200, deadline=None)
@given(st.lists(places, unique=True, max_size=30), st.integers(1, 20), st.integers(1, 5))
def test_no_passage_is_lost_or_doubled_and_the_ranking_is_kept(
    where: list[tuple[int, str, str]], among: int, most: int
) -> None:
    before = ranked(*(passage(*place) for place in where))
    rank = {p.body: i for i, (p, _, _) in enumerate(before)}
    result = join_neighbours(before, among=among, most=most)
    groups = [p.body.split("\n") for p, _, _ in result]
    assert sorted(body for group in groups for body in group) == sorted(rank)
    scores = [score for _, score, _ in result]
    assert scores == sorted(scores, reverse=True)
    for group, (_, score, _) in zip(groups, result, strict=True):
        assert score == before[min(rank[body] for body in group)][1]
        assert len(group) <= most
        pages = {body.rpartition("|")[0] for body in group}
        positions = [int(body.rpartition("|")[2]) for body in group]
        assert len(pages) == 1
        assert positions == list(range(positions[0], positions[0] + len(group)))
        if len(group) > 1:
            assert max(rank[body] for body in group) < among
