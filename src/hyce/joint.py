"""Descriptions of commands compete with passages for the same places, as the published HyCE code has it.

Every description that gets in has its command run, and takes the place of a passage. What is compared is the
cosine with the question, or else the score of the reranker that ordered the passages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter

from hyce.records import Hit, Match
from hyce.rerank import Reranker


def compete(hits: Sequence[Hit], matches: Sequence[Match], places: int) -> tuple[list[Match], list[Hit]]:
    """The commands to run, best first, and the passages that stay, in their order.

    matches: every entry that could run, with the cosine of its description as score. places: how many
    passages and commands there may be together.
    """
    return _winners(matches, hits, [hit.similarity for hit in hits], places)


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
    return _winners(scored, hits, [hit.score for hit in hits], places)


def _winners(
    matches: Sequence[Match], hits: Sequence[Hit], scores: Sequence[float], places: int
) -> tuple[list[Match], list[Hit]]:
    """The best `places` of all: the commands, best first, and the passages in their own order.

    scores: the passages', on the scale of the commands' own.
    """
    pool: list[tuple[float, Match | Hit]] = [(match.score, match) for match in matches]
    pool += zip(scores, hits, strict=True)
    best = [item for _, item in sorted(pool, key=itemgetter(0), reverse=True)[:places]]
    winners = [item for item in best if isinstance(item, Match)]
    kept = {item.passage.id for item in best if isinstance(item, Hit)}
    return winners, [hit for hit in hits if hit.passage.id in kept]
