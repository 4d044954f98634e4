"""Neighbouring passages that were both found become one again.

Passages are small so that they can be found; what a reader or a model needs is often two or three of them
in a row. Joined, they take the better one's rank, and their headings are not repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from hyce.records import Passage

AMONG = 12
"""Only passages ranked this high are joined to others."""
MOST = 4
"""Passages joined into one, at most."""

Ranked = tuple[Passage, float, float]
"""A passage with its score and its cosine to the question."""


def join_neighbours(ranked: Sequence[Ranked], among: int = AMONG, most: int = MOST) -> list[Ranked]:
    """The ranking with neighbours of the same page joined, in the order of the best of each."""
    top = {_place(passage): i for i, (passage, _, _) in enumerate(ranked[:among])}
    taken: set[int] = set()
    joined: list[Ranked] = []
    for i, (_, score, _) in enumerate(ranked):
        if i in taken:
            continue
        group = _grow(i, ranked, top, taken, most) if i < among else [i]
        taken.update(group)
        members = [ranked[member] for member in group]
        joined.append((_joined([passage for passage, _, _ in members]), score, max(c for _, _, c in members)))
    return joined


def _grow(
    start: int, ranked: Sequence[Ranked], top: dict[tuple[str, str, int], int], taken: set[int], most: int
) -> list[int]:
    """Members in reading order: from the best passage outwards, the better neighbour first."""
    group = [start]
    while len(group) < most:
        source, path, first = _place(ranked[group[0]][0])
        last = ranked[group[-1]][0].position
        before = top.get((source, path, first - 1), -1)
        after = top.get((source, path, last + 1), -1)
        free = [i for i in (before, after) if i >= 0 and i not in taken]
        if not free:
            break
        best = min(free)
        group = [best, *group] if best == before else [*group, best]
    return group


def _place(passage: Passage) -> tuple[str, str, int]:
    return passage.source, passage.path, passage.position


def _joined(passages: Sequence[Passage]) -> Passage:
    """One passage that begins where the first does; what is new in a heading path stands on its own line."""
    first = passages[0]
    if len(passages) == 1:
        return first
    lines = [first.body]
    for previous, passage in pairwise(passages):
        if passage.heading != previous.heading and passage.heading:
            lines.append(" > ".join(_below(previous.heading, passage.heading)))
        lines.append(passage.body)
    return replace(first, body="\n".join(lines))


def _below(before: Sequence[str], heading: Sequence[str]) -> Sequence[str]:
    """The part of the heading path that differs from the one before it, the last heading at least."""
    same = 0
    while same < min(len(before), len(heading) - 1) and before[same] == heading[same]:
        same += 1
    return heading[same:]
