"""What a model wrote, taken apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyce.reply import NO_ANSWER, Opening, Reply, read, read_reasoned


def test_an_answer_is_an_answer() -> None:
    assert read("  Four nodes [1].\n") == Reply("Four nodes [1].", True)


@pytest.mark.parametrize(
    "text",
    [
        "NOT IN THE SOURCES\nThe price is missing.",
        "**NOT IN THE SOURCES**\n\nThe price is missing.",
        "NOT IN THE SOURCES: The price is missing.",
        "Not in the sources.\nThe price is missing.",
        "# NOT IN THE SOURCES\nThe price is missing.",
        "<think>Hm.</think>\nNOT IN THE SOURCES\nThe price is missing.",
    ],
)
def test_the_agreed_line_is_put_into_our_words(text: str) -> None:
    reply = read(text)
    assert reply.text == f"{NO_ANSWER}\n\nThe price is missing."
    assert not reply.answered


def test_the_agreed_line_alone() -> None:
    assert read("NOT IN THE SOURCES") == Reply(NO_ANSWER, False)


@pytest.mark.parametrize("text", ["Not in the sourcesX", "The limit is not in the sources.", "NOT IN"])
def test_other_lines_are_answers(text: str) -> None:
    assert read(text).answered


def test_thinking_is_reasons_and_not_answer() -> None:
    assert read("<think>\nHm.\n</think>\n\nFour.") == Reply("Four.", True, "Hm.")
    assert read("<think>never ended") == Reply("", True, "never ended")


STARTS = [
    "Four",
    " nodes",
    "\n",
    "NOT",
    " IN THE",
    " SOURCES",
    "\n\n",
    "<think>",
    "x</think>",
    "**",
    ": ",
    "<",
]


@given(st.lists(st.sampled_from(STARTS), max_size=8))
def test_a_streamed_beginning_reads_as_the_whole(pieces: list[str]) -> None:
    shown: list[str] = []
    opening = Opening(shown.append)
    for piece in pieces:
        opening.feed(piece)
    opening.close()
    assert "".join(shown).strip() == read("".join(pieces)).text


def test_an_answer_is_shown_as_soon_as_it_is_known_to_be_one() -> None:
    shown: list[str] = []
    opening = Opening(shown.append)
    for piece in ("No", "t", " far"):
        opening.feed(piece)
    assert shown == ["Not far"]


ANSWER = "Use sbatch [1]."


@pytest.mark.parametrize(
    "text",
    [
        '{"reasons": "because", "answer": "Use sbatch [1]."}',
        '```json\n{"reasons": "because", "answer": "Use sbatch [1]."}\n```',
        'Here it is:\n{"reasons": "because", "answer": "Use sbatch [1]."}\nI hope it helps.',
        '{"reasons": "because", "answer": "Use sbatch [1].",}',
        '{"reasons": "because", "answer": "Use sbatch [1].",\n}\n',
        "{'reasons': 'because', 'answer': 'Use sbatch [1].'}",
        '{"reasons": "because", "answer": "Use sbatch [1].',
        '{"reasons": "because", "answer": "Use sbatch [1]."',
        '{"reasons": "because", "answer": "Use sbatch [1]."\n```',
        '{"answer": "Use sbatch [1].", "reasons": "because"}',
        '{"answer": "Use sbatch [1].", "reasons": "because',
        '{"reasons": ["because"], "answer": ["Use sbatch [1]."]}',
        '<think>{"answer": "no"}</think>{"reasons": "because", "answer": "Use sbatch [1]."}',
    ],
)
def test_broken_json_is_mended(text: str) -> None:
    assert read_reasoned(text) == Reply(ANSWER, True, "because")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('{"reasons": "", "answer": "Use "sbatch" [1]."}', 'Use "sbatch" [1].'),
        ('{"reasons": "", "answer": "Two\nlines"}', "Two\nlines"),
        ('{"reasons": "", "answer": "Two\\nlines, cut \\"he', 'Two\nlines, cut "he'),
        ('{"reasons": "", "answer": "caf\\u00e9 \\ud83d\\ude00", }', "caf\u00e9 \U0001f600"),
        ('{"reasons": "", "answer": "bad \\q escape"}', "bad \\q escape"),
        ('{"reasons": "", "answer": "half \\ud83d pair"}', "half \N{REPLACEMENT CHARACTER} pair"),
        ('{"reasons": "see \\"answer\\": \\"no\\"", "answer": "yes"', "yes"),
        ('{"reasons": "", "answer": 42}', "42"),
    ],
)
def test_what_the_answer_holds_is_kept(text: str, answer: str) -> None:
    reply = read_reasoned(text)
    assert reply is not None
    assert reply.text == answer


@pytest.mark.parametrize(
    "text",
    [
        "Just prose.",
        "",
        '{"reasons": "it was cut he',
        '{"reasons": "because"}',
        '{"answer": ""}',
        '{"answer": {"a": 1}}',
        "[1, 2]",
        "{" * 5000 + "}" * 5000,
        "}{",
    ],
)
def test_without_an_answer_there_is_none(text: str) -> None:
    assert read_reasoned(text) is None


def test_the_agreed_line_in_json() -> None:
    reply = read_reasoned('{"reasons": "r", "answer": "NOT IN THE SOURCES\\nThe price."}')
    assert reply == Reply(f"{NO_ANSWER}\n\nThe price.", False, "r")


@given(st.text(), st.integers(0, 400))
def test_any_text_is_survived(text: str, cut: int) -> None:
    read_reasoned(text)
    read_reasoned(f'{{"reasons": "r", "answer": "{text}"}}'[:cut])
