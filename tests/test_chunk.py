"""Passages hold all of a page's text, in order, within their limit, below the heads that it needs."""

from __future__ import annotations

import dataclasses
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyce.chunk import chunk, paragraph_chunks
from hyce.records import Block, Chunk, Page, Section

HEAD = "§"
"""Begins each line of a head, and no other."""


def length(text: str) -> int:
    """Like a model's: a long word is several tokens."""
    return sum(ceil(len(word) / 6) for word in text.split())


def passages(*sections: Section, size: int = 64) -> list[Chunk]:
    return list(chunk(Page("Title", sections), size=size, length=length))


def block(*units: str, head: str = "") -> Block:
    return Block("table", units, head)


@st.composite
def pages(
    draw: st.DrawFn, *, longest_head: int = 30, longest_heading: int = 30, longest_word: int = 300
) -> Page:
    """Pages whose words say where they stand: the section, the block, and a number."""
    sections = []
    for s in range(draw(st.integers(0, 3))):
        blocks = []
        for b in range(draw(st.integers(0, 4))):
            sizes = draw(st.lists(st.integers(1, 40) | st.integers(1, 4), min_size=1, max_size=12))
            separators = draw(st.lists(st.sampled_from(["\n", " ", "  "]), min_size=1, max_size=3))
            stretched = draw(st.integers(0, longest_word))
            units, number = [], 0
            for words in sizes:
                unit = ""
                for w in range(words):
                    number += 1
                    word = f"s{s}b{b}n{number}"
                    filler = "x" * stretched if number == 3 else ""
                    unit += (separators[w % len(separators)] if w else "") + word + filler
                units.append(unit)
            head = " ".join([f"{HEAD}s{s}b{b}", *["head"] * draw(st.integers(0, longest_head))])
            blocks.append(Block("table", tuple(units), head if draw(st.booleans()) else ""))
        heading = ("Title", " ".join([f"Part{s}", *["h"] * draw(st.integers(0, longest_heading))]))
        sections.append(Section(heading, f"part-{s}", tuple(blocks)))
    return Page("Title", tuple(sections))


def content(text: str) -> list[str]:
    """The words of a passage's body, heads left out."""
    return [word for line in text.split("\n") if not line.startswith(HEAD) for word in line.split()]


def original(section: Section) -> list[str]:
    return [word for block in section.blocks for unit in block.units for word in unit.split()]


few = settings(max_examples=80, deadline=None)
sizes = st.integers(32, 256)


@few
@given(pages(), sizes)
def test_all_text_is_there_once_and_in_order(page: Page, size: int) -> None:
    chunks = list(chunk(page, size=size, length=length))
    for section in page.sections:
        own = [c for c in chunks if c.anchor == section.anchor]
        assert "".join(word for c in own for word in content(c.body)) == "".join(original(section))
        assert {c.heading for c in own} <= {section.heading}
    anchors = [c.anchor for c in chunks]
    assert anchors == sorted(anchors), "the sections' order"
    assert all(c.body.strip() for c in chunks)
    assert list(chunk(page, size=size, length=length)) == chunks


@few
@given(pages(longest_head=2, longest_heading=3), sizes)
def test_no_passage_is_longer_than_its_limit(page: Page, size: int) -> None:
    for passage in chunk(page, size=size, length=length):
        assert length(passage.text) <= size


@few
@given(pages(longest_word=3), sizes)
def test_words_are_never_cut_where_they_fit(page: Page, size: int) -> None:
    chunks = list(chunk(page, size=size, length=length))
    found = [word for c in chunks for word in content(c.body)]
    assert found == [word for section in page.sections for word in original(section)]


@few
@given(pages(), sizes)
def test_each_part_stands_below_its_blocks_head(page: Page, size: int) -> None:
    headed = {b.head.split()[0]: b.head for s in page.sections for b in s.blocks if b.head}
    for passage in chunk(page, size=size, length=length):
        above = ""
        for line in passage.body.split("\n"):
            if line.startswith(HEAD):
                above = line
                continue
            for word in line.split():
                wanted = headed.get(HEAD + word.partition("n")[0])
                if wanted is not None and "n" in word:
                    assert above == wanted
        if headed:
            heads = [line for line in passage.body.split("\n") if line.startswith(HEAD)]
            assert len(heads) == len(set(heads)), "no head twice in a passage"


@few
@given(pages(longest_head=2, longest_heading=3), sizes)
def test_a_block_that_is_short_stays_whole(page: Page, size: int) -> None:
    bodies = [passage.body for passage in chunk(page, size=size, length=length)]
    for section in page.sections:
        for b in section.blocks:
            whole = "\n".join(b.units)
            if length(f"{b.head} {whole}") <= size // 4:
                assert sum(whole in body for body in bodies) == 1


def test_blocks_that_fit_are_not_cut_to_even_out_passages() -> None:
    blocks = [block(*(f"block {b} row {n} here" for n in range(5))) for b in range(3)]
    found = [c.body for c in passages(Section((), "", tuple(blocks)))]
    for each in blocks:
        assert sum("\n".join(each.units) in body for body in found) == 1


def test_a_passage_never_crosses_a_heading() -> None:
    first = Section(("Title", "One"), "one", (block("a few words"),))
    second = Section(("Title", "Two"), "two", (block("some more words"),))
    assert passages(first, second) == [
        Chunk(("Title", "One"), "one", "a few words"),
        Chunk(("Title", "Two"), "two", "some more words"),
    ]


def test_blocks_that_fit_together_are_one_passage() -> None:
    section = Section(("Title",), "", (block("one"), block("two", "three"), block("four", head="Of four:")))
    assert [c.body for c in passages(section)] == ["one\ntwo\nthree\nOf four:\nfour"]


def test_a_long_table_is_cut_between_rows_and_its_columns_are_repeated() -> None:
    rows = [f"queue{n} | {n} hours | {n} nodes" for n in range(40)]
    found = passages(Section(("Title",), "", (block(*rows, head="queue | time | nodes"),)))
    assert len(found) > 2
    for passage in found:
        head, *own = passage.body.split("\n")
        assert head == "queue | time | nodes"
        assert set(own) <= set(rows)


def test_a_head_counts_towards_the_limit() -> None:
    rows = [f"row {n} of a table" for n in range(12)]
    found = passages(Section((), "", (block(*rows, head="columns of the table are these few"),)))
    assert len(found) == 2, "60 tokens and a head of 7"
    assert max(length(c.body) for c in found) <= 64


def test_one_head_above_several_blocks_in_a_row_stands_once() -> None:
    one, two = "submit it with sbatch", "look at it with squeue"
    section = Section(("Title",), "", (block(one, head="Tab: Slurm"), block(two, head="Tab: Slurm")))
    assert [c.body for c in passages(section)] == [f"Tab: Slurm\n{one}\n{two}"]


def test_a_head_is_repeated_when_another_block_stood_between() -> None:
    texts = ("submit it with sbatch and look at it", "submit it with qsub", "then wait until they have ended")
    blocks = [block(text, head=head) for text, head in zip(texts, ("Slurm", "PBS", "Slurm"), strict=True)]
    (passage,) = passages(Section(("Title",), "", tuple(blocks)))
    assert passage.body.split("\n") == ["Slurm", texts[0], "PBS", texts[1], "Slurm", texts[2]]


def test_parts_of_a_long_text_are_of_similar_length() -> None:
    lines = [f"line {n} of a text" for n in range(40)]
    lengths = [length(c.body) for c in passages(Section((), "", (block(*lines),)))]
    assert min(lengths) > max(lengths) / 2, "no stub at the end"


def test_an_endless_word_is_cut_to_the_limit() -> None:
    found = passages(Section((), "", (block("x" * 5000),)))
    assert "".join(c.body for c in found).replace("\n", "") == "x" * 5000
    assert max(length(c.text) for c in found) <= 64


@pytest.mark.parametrize("heading", [("A " * 500,), ("x" * 5000,)])
def test_an_endless_heading_leaves_room_for_the_text(heading: tuple[str]) -> None:
    text = " ".join(f"word{n}" for n in range(60))
    found = passages(Section(heading, "", (block(text),)))
    assert 1 < len(found) < 12
    assert {c.heading for c in found} == {heading}


def test_sections_without_text_and_empty_pages_have_no_passages() -> None:
    assert passages() == []
    assert passages(Section(("Title",), "", ())) == []


def test_paragraphs_are_passages_of_their_own_without_headings() -> None:
    blocks = (block("one", "sentence two"), block("x " * 500))
    sections = (Section(("Title",), "top", blocks), Section(("Title", "Two"), "two", (block("end"),)))
    assert list(paragraph_chunks(Page("Title", sections))) == [
        Chunk((), "top", "one\nsentence two"),
        Chunk((), "top", "x " * 500),
        Chunk((), "two", "end"),
    ]


def test_the_text_of_a_passage_is_its_heading_path_and_its_body() -> None:
    passage = Chunk(("Title", "Part"), "part", "body")
    assert passage.text == "Title > Part\nbody"
    assert dataclasses.replace(passage, heading=()).text == "body"
