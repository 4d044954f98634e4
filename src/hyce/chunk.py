"""Passages: a page's sections cut where a reader would cut them.

A passage never crosses a heading, so its heading path says what it is about. Blocks stay whole while they
fit; a longer one is cut between its units (table rows, list items, lines, sentences), and what stands above
it (column headings, a tab's name) is repeated on each part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from hyce.records import Block, Chunk, Page

Length = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class _Piece:
    """What packing never cuts: a whole block, or one unit of a block that is too long."""

    head: str
    text: str
    tokens: int
    head_tokens: int


def chunk(page: Page, *, size: int, length: Length) -> Iterator[Chunk]:
    """The page's passages in reading order, each of at most `size` tokens as `length` counts them.

    Only a single word, a heading path or a block's head that is longer by itself can exceed the limit.
    All text of the page is in exactly one passage, apart from heads, which are repeated.
    """
    for section in page.sections:
        # A heading path may take half of the passage; the rest is always there for the content.
        room = max(size - length(" > ".join(section.heading)), size // 2)
        pieces = [piece for block in section.blocks for piece in _pieces(block, room, length)]
        for group in _pack(pieces, room):
            yield Chunk(section.heading, section.anchor, _join(group))


def paragraph_chunks(page: Page) -> Iterator[Chunk]:
    """Every block as a passage of its own without headings: the cut of the published HyCE code."""
    for section in page.sections:
        for block in section.blocks:
            yield Chunk((), section.anchor, "\n".join(block.units))


def _pieces(block: Block, room: int, length: Length) -> Iterator[_Piece]:
    head_tokens = length(block.head) if block.head else 0
    whole = "\n".join(block.units)
    tokens = length(whole)
    if tokens + head_tokens <= room:
        yield _Piece(block.head, whole, tokens, head_tokens)
        return
    for unit in block.units:
        for text in _fitting(unit, max(room - head_tokens, room // 2), length):
            yield _Piece(block.head, text, length(text), head_tokens)


def _fitting(text: str, room: int, length: Length) -> Iterator[str]:
    """The text itself, or its parts where it is too long: at lines, then words, then (one endless word)
    characters."""
    if length(text) <= room:
        yield text
        return
    for separator in ("\n", " "):
        parts = text.split(separator)
        if len(parts) > 1:
            middle = len(parts) // 2
            yield from _fitting(separator.join(parts[:middle]), room, length)
            yield from _fitting(separator.join(parts[middle:]), room, length)
            return
    if len(text) < 2:
        yield text
        return
    yield from _fitting(text[: len(text) // 2], room, length)
    yield from _fitting(text[len(text) // 2 :], room, length)


def _pack(pieces: list[_Piece], room: int) -> Iterator[list[_Piece]]:
    """Consecutive pieces in groups of about equal size, none above `room`."""
    full = list(_groups(pieces, room, room))
    if len(full) < 2:
        return iter(full)
    # Equal shares instead of full passages and a stub: a stub's few words match anything.
    total = sum(_cost(piece, before) for group in full for before, piece in pairwise([None, *group]) if piece)
    return _groups(pieces, room, total / len(full))


def _groups(pieces: list[_Piece], room: int, share: float) -> Iterator[list[_Piece]]:
    """Consecutive pieces in groups that end once they reach `share`, and before they pass `room`."""
    group: list[_Piece] = []
    used = 0
    for piece in pieces:
        if group and (used >= share or used + _cost(piece, group[-1]) > room):
            yield group
            group, used = [], 0
        used += _cost(piece, group[-1] if group else None)
        group.append(piece)
    if group:
        yield group


def _cost(piece: _Piece, before: _Piece | None) -> int:
    """Tokens of a piece in its group: a head counts where it is written."""
    return piece.tokens + (piece.head_tokens if before is None or before.head != piece.head else 0)


def _join(group: list[_Piece]) -> str:
    lines: list[str] = []
    head = ""
    for piece in group:
        if piece.head and piece.head != head:
            lines.append(piece.head)
        head = piece.head
        lines.append(piece.text)
    return "\n".join(lines)
