"""Descriptions of commands compete with passages for the same places, as the published HyCE code has it.

Every description that gets in has its command run, and takes the place of a passage. What is compared is the
cosine with the question, or else the score of the reranker that ordered the passages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hyce.records import Hit, Match
from hyce.rerank import Reranker


def compete(hits: Sequence[Hit], matches: Sequence[Match], places: int) -> tuple[list[Match], list[Hit]]:
    """The commands to run, best first, and the passages that stay, in their order.

    matches: every entry that could run, with the cosine of its description as score. places: how many
    passages and commands there may be together.
    """
    return _winners([*matches, *hits], hits, places, {hit.rank: hit.similarity for hit in hits})


def compete_reranked(
    question: str,
    hits: Sequence[Hit],
    matches: Sequence[Match],
    reranker: Reranker,
    *,
    candidates: int,
    places: int,
) -> tuple[list[Match], list[Hit]]:
    """The same where a reranker ordered the passages: it reads the nearest `candidates` descriptions too.

    The published code gives the reranker the nearest of passages and descriptions together; here the
    nearest of each.
    """
    nearest = sorted(matches, key=lambda match: match.score, reverse=True)[:candidates]
    scores = reranker.score(question, [match.command.description for match in nearest]) if nearest else ()
    scored = [replace(match, score=float(score)) for match, score in zip(nearest, scores, strict=True)]
    return _winners([*scored, *hits], hits, places, {hit.rank: hit.score for hit in hits})


def _winners(
    pool: Sequence[Match | Hit], hits: Sequence[Hit], places: int, of_hits: Mapping[int, float]
) -> tuple[list[Match], list[Hit]]:
    """The best `places` of the pool: the commands, best first, and the passages in their own order."""

    def score(item: Match | Hit) -> float:
        return item.score if isinstance(item, Match) else of_hits[item.rank]

    best = sorted(pool, key=score, reverse=True)[:places]
    winners = [item for item in best if isinstance(item, Match)]
    kept = {item.passage.id for item in best if isinstance(item, Hit)}
    return winners, [hit for hit in hits if hit.passage.id in kept]
