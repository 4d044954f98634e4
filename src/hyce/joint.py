"""Descriptions of commands compete with passages for the same places, as the published HyCE code has it.

Every description that gets in has its command run, and takes the place of a passage. What is compared is the
cosine with the question, the one measure that passages and descriptions share.
"""

from __future__ import annotations

from collections.abc import Sequence

from hyce.records import Hit, Match


def compete(hits: Sequence[Hit], matches: Sequence[Match], places: int) -> tuple[list[Match], list[Hit]]:
    """The commands to run, best first, and the passages that stay, in their order.

    matches: every entry that could run, with the cosine of its description as score. places: how many
    passages and commands there may be together.
    """
    pool: list[Match | Hit] = [*matches, *hits]
    best = sorted(pool, key=_cosine, reverse=True)[:places]
    winners = [item for item in best if isinstance(item, Match)]
    kept = {item.passage.id for item in best if isinstance(item, Hit)}
    return winners, [hit for hit in hits if hit.passage.id in kept]


def _cosine(item: Match | Hit) -> float:
    return item.score if isinstance(item, Match) else item.similarity
