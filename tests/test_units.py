"""Wherever passages begin, all units are in exactly one passage, in order, and cited as they stand."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from test_chunk import HEAD, content, length, original, pages

from hyce.records import Block, Chunk, Page, Section
from hyce.units import passages, together, units

few = settings(max_examples=80, deadline=None)


def block(*texts: str, head: str = "") -> Block:
    return Block("list", texts, head)


STORAGE = Page(
    "Storage",
    (
        Section(("Storage",), "", (block("There are three places."),)),
        Section(("Storage", "Home"), "home", (block("It holds 50 GB.", "It is backed up."),)),
        Section(("Storage", "Scratch"), "scratch", (block("a | 1", "b | 2", head="file | size"),)),
    ),
)


def cut(page: Page, *starts: int, longest: int = 1000) -> list[Chunk]:
    return list(passages(page, starts, longest=longest, length=length))


@st.composite
def cut_pages(draw: st.DrawFn) -> tuple[Page, list[int]]:
    page = draw(pages())
    number = len(units(page))
    return page, [0, *sorted(draw(st.sets(st.integers(1, max(1, number - 1)), max_size=number)))][
        : max(number, 1)
    ]


@few
@given(cut_pages(), st.integers(32, 400))
def test_all_units_are_in_exactly_one_passage_in_order(
    given_page: tuple[Page, list[int]], longest: int
) -> None:
    page, starts = given_page
    found = cut(page, *starts, longest=longest)
    headings = {word for section in page.sections for part in section.heading for word in part.split()}
    words = [word for passage in found for word in content(passage.body) if word not in headings | {">"}]
    # An endless word may have been cut to fit.
    assert "".join(words) == "".join(word for section in page.sections for word in original(section))
    anchors = [passage.anchor for passage in found]
    assert anchors == sorted(anchors)


@few
@given(cut_pages())
def test_passages_begin_where_they_are_said_to(given_page: tuple[Page, list[int]]) -> None:
    page, starts = given_page
    row = units(page)
    found = cut(page, *starts, longest=10**6)
    assert len(found) == (len(starts) if row else 0)
    for passage, start in zip(found, starts, strict=False):
        section = page.sections[row[start].section]
        assert passage.anchor == section.anchor
        assert passage.heading == section.heading[: len(passage.heading)]
        assert row[start].text in passage.body
        if row[start].head:
            assert row[start].head in passage.body.split("\n"), "what stands above a table is repeated"


def test_a_passage_within_one_section_has_its_heading() -> None:
    assert cut(STORAGE, 0, 1, 2, 3)[1:3] == [
        Chunk(("Storage", "Home"), "home", "It holds 50 GB."),
        Chunk(("Storage", "Home"), "home", "It is backed up."),
    ]


def test_a_passage_of_several_sections_names_each_and_claims_none_for_all() -> None:
    (passage,) = cut(STORAGE, 0)
    assert (passage.heading, passage.anchor) == (("Storage",), "")
    assert passage.body.split("\n") == [
        "There are three places.",
        "Home",
        "It holds 50 GB.",
        "It is backed up.",
        "Scratch",
        "file | size",
        "a | 1",
        "b | 2",
    ]
    _, second = cut(STORAGE, 0, 2)
    assert (second.heading, second.anchor) == (("Storage",), "home"), "it begins there"
    assert second.body.startswith("Home\nIt is backed up.\nScratch\n")


def test_sections_without_a_common_heading_have_none() -> None:
    page = Page("T", (Section(("A", "B"), "b", (block("one"),)), Section(("C",), "c", (block("two"),))))
    assert cut(page, 0) == [Chunk((), "b", "A > B\none\nC\ntwo")]


def test_a_table_that_is_cut_repeats_its_head() -> None:
    assert [passage.body for passage in cut(STORAGE, 0, 3, 4)[1:]] == [
        "file | size\na | 1",
        "file | size\nb | 2",
    ]


def test_a_passage_that_is_too_long_is_cut_along_its_structure() -> None:
    long = [f"word{number} and more of it" for number in range(30)]
    page = Page("T", (Section(("T", "A"), "a", (block("short"),)), Section(("T", "B"), "b", (block(*long),))))
    found = cut(page, 0, longest=64)
    assert all(length(passage.text) <= 64 for passage in found)
    assert found[0] == Chunk(("T", "A"), "a", "short")
    assert {passage.heading for passage in found[1:]} == {("T", "B")}
    assert "\n".join(passage.body for passage in found[1:]).split("\n") == long


def test_a_page_without_units_has_no_passage() -> None:
    assert cut(Page("T", ()), 0) == []


def test_a_head_stands_once_above_blocks_that_share_it() -> None:
    section = Section(("T",), "", (block("one", head=f"{HEAD}Slurm"), block("two", head=f"{HEAD}Slurm")))
    assert together([section]).body == f"{HEAD}Slurm\none\ntwo"
