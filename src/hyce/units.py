"""A page as a row of units, and its passages once it is known at which units they begin.

A unit (a sentence, a list item, a table's row) is the smallest piece of a page that keeps its meaning.
Wherever passages begin, no text gets lost: each unit is in exactly one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise, takewhile

from hyce.chunk import Length, chunk
from hyce.records import Block, Chunk, Page, Section


@dataclass(frozen=True, slots=True)
class Unit:
    """One unit and where it stands."""

    section: int
    block: int
    """Number of its block in the section."""
    heading: tuple[str, ...]
    head: str
    """What stands above its block: column headings, a tab's name."""
    text: str


def units(page: Page) -> list[Unit]:
    """All units of the page in reading order."""
    return [
        Unit(number, place, section.heading, block.head, text)
        for number, section in enumerate(page.sections)
        for place, block in enumerate(section.blocks)
        for text in block.units
    ]


def passages(page: Page, starts: Sequence[int], *, longest: int, length: Length) -> Iterator[Chunk]:
    """The page's passages, the first unit of each given by its index in `units(page)`, ascending from 0.

    A passage of several sections has the part of the heading path that they share, the rest above each
    section's text, and the first one's anchor. One of more than `longest` tokens is cut along its structure.
    """
    row = units(page)
    for first, end in pairwise([*starts, len(row)] if row else []):
        sections = _sections(page, row[first:end])
        whole = together(sections)
        if length(whole.text) <= longest:
            yield whole
        else:
            yield from chunk(Page(page.title, tuple(sections)), size=longest, length=length)


def together(sections: Sequence[Section]) -> Chunk:
    """All text of the sections as one passage."""
    paths = [section.heading for section in sections]
    levels = takewhile(lambda level: len(set(level)) == 1, zip(*paths, strict=False))
    shared = tuple(level[0] for level in levels)
    lines: list[str] = []
    for section in sections:
        own = section.heading[len(shared) :]
        lines += [" > ".join(own)] if own else []
        # In a measure that counts nothing, a section is one passage.
        lines += [part.body for part in chunk(Page("", (section,)), size=1, length=lambda _: 0)]
    return Chunk(shared, sections[0].anchor, "\n".join(lines))


def _sections(page: Page, row: Sequence[Unit]) -> list[Section]:
    """The sections, cut down to these units."""
    found = []
    for number, own in groupby(row, key=lambda unit: unit.section):
        section = page.sections[number]
        blocks = [
            Block(section.blocks[place].kind, tuple(unit.text for unit in part), section.blocks[place].head)
            for place, part in groupby(own, key=lambda unit: unit.block)
        ]
        found.append(Section(section.heading, section.anchor, tuple(blocks)))
    return found
