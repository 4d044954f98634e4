"""Sources cut to fit, and what may leave the site."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyce.config import Config, Llm
from hyce.context import Context, build, cut_end, cut_middle, fit, measure, token_length
from hyce.endpoint import Location
from hyce.errors import ConfigError
from hyce.llm import output_tokens
from hyce.prompts import fenced
from hyce.records import Command, CommandOutput, Hit, Match, Passage, Source, Turn
from hyce.tokens import estimate


def words(text: str) -> int:
    """A length that can be counted by hand."""
    return len(text.split())


def hit(number: int, text: str) -> Hit:
    return Hit(number, 1.0, Passage(number, "/docs", "a.md", None, "Title", ("Title",), text, None))


def output(name: str, stdout: str, status: str = "ok", reason: str = "") -> CommandOutput:
    return CommandOutput(
        id=name,
        argv=((name, "--me"),),
        status=status,  # type: ignore[arg-type]
        exit_code=0,
        stdout=stdout,
        stderr="",
        truncated=False,
        seconds=0.1,
        layers=(),
        started="2026-11-21T07:00:00+00:00",
        reason=reason,
    )


def match(name: str, *, may_leave: bool = False) -> Match:
    command = Command(name, f"Tells {name}.", ("What?",), ((name, "--me"),), may_leave_site=may_leave)
    return Match(command, {}, 0.9)


def sources(*items: Hit | CommandOutput) -> list[Source]:
    texts = [item.stdout if isinstance(item, CommandOutput) else item.passage.body for item in items]
    return [
        Source(n, item, "label", text) for n, (item, text) in enumerate(zip(items, texts, strict=True), 1)
    ]


def numbered(prefix: str, count: int) -> str:
    return "\n".join(f"{prefix}{n}" for n in range(count))


# -- fitting ---------------------------------------------------------------------------------------------


def test_what_fits_is_left_alone() -> None:
    given_sources = sources(output("squeue", "one two"), hit(1, "three four"))
    assert fit(given_sources, 200, words) == (given_sources, [])


def test_passages_are_kept_by_rank_and_what_is_left_out_is_told() -> None:
    given_sources = sources(*(hit(n, numbered(f"p{n}w", 100)) for n in range(1, 6)))
    kept, notices = fit(given_sources, 300, words)
    assert [s.number for s in kept] == [1, 2, 3]
    assert kept[:2] == given_sources[:2]
    assert kept[2].text.startswith("p3w0\np3w1")
    assert kept[2].text.endswith("[cut here]")
    assert notices[0].startswith("Source [3] was cut")
    assert notices[1].startswith("2 of 5 sources were left out")
    assert sum(words(fenced(s)) for s in kept) <= 300


def test_a_huge_output_loses_its_middle_and_leaves_half_to_the_passages() -> None:
    given_sources = sources(output("squeue", numbered("job", 5000)), *(hit(n, "w " * 90) for n in (1, 2, 3)))
    kept, notices = fit(given_sources, 400, words)
    first = kept[0].text
    assert first.startswith("job0\njob1")
    assert first.endswith("job4999")
    assert "characters left out here" in first
    assert words(fenced(kept[0])) <= 200
    assert [type(s.item) for s in kept[1:]] == [Hit, Hit]
    assert notices[0].startswith("Source [1] was cut")


def test_a_huge_output_takes_what_the_passages_do_not_need() -> None:
    kept, _ = fit(sources(output("squeue", numbered("job", 5000)), hit(1, "few words")), 400, words)
    assert 330 < words(fenced(kept[0])) < 400
    assert kept[1].text == "few words"


def test_small_outputs_stay_whole_beside_a_huge_one() -> None:
    small, huge = output("squeue", "w " * 30), output("sinfo", numbered("node", 5000))
    kept, notices = fit(sources(huge, small), 400, words)
    assert kept[1].text == small.stdout
    assert len(notices) == 1


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 400)), max_size=7),
    st.integers(-50, 1200),
)
def test_the_room_is_never_exceeded(shape: list[tuple[bool, int]], room: int) -> None:
    items = sorted(shape, reverse=True)
    given_sources = sources(
        *(output("c", "w " * n) if is_output else hit(1, "w " * n) for is_output, n in items)
    )
    kept, notices = fit(given_sources, room, words)
    assert sum(words(fenced(s)) for s in kept) <= max(room, 0)
    assert [s.number for s in kept] == list(range(1, len(kept) + 1))
    lost = len(kept) < len(given_sources) or any(s.text not in {g.text for g in given_sources} for s in kept)
    assert bool(notices) == lost


@pytest.mark.parametrize("cut", [cut_middle, cut_end])
def test_a_single_endless_line_is_cut_too(cut: Any) -> None:
    text = cut("x" * 100_000, 50, estimate)
    assert 0 < estimate(text) <= 50


# -- measuring -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("job", 1), ("jobs run", 3), ("12345", 5), ("a\n\nb", 4), ("a    b", 4), ("\N{EURO SIGN}", 3)],
)
def test_the_estimate(text: str, tokens: int) -> None:
    assert estimate(text) == tokens


def write_tokenizer(path: Path) -> None:
    vocabulary = {"[UNK]": 0, "jobs": 1, "run": 2}
    model = {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"}
    document = {"version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "Whitespace"}, "model": model}
    path.write_text(json.dumps(document))


def test_a_tokenizer_measures(tmp_path: Path) -> None:
    write_tokenizer(tmp_path / "tokenizer.json")
    length = token_length(Config(llm=Llm(tokenizer=str(tmp_path / "tokenizer.json"))))
    assert length("jobs run jobs") == 3


def test_a_broken_tokenizer_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"llm\.tokenizer: .*missing\.json"):
        token_length(Config(llm=Llm(tokenizer=str(tmp_path / "missing.json"))))


# -- the whole context -----------------------------------------------------------------------------------


def context(
    *, where: Location = "onsite", tokens: int = 8192, question: str = "Why?", **parts: Any
) -> Context:
    defaults: dict[str, Any] = {"hits": (), "outputs": (), "matches": (), "turns": ()}
    given_parts = defaults | parts
    return build(
        question,
        given_parts["hits"],
        given_parts["outputs"],
        given_parts["matches"],
        config=Config(llm=Llm(context_tokens=tokens)),
        where=where,
        today="2026-11-21",
        turns=given_parts["turns"],
    )


def prompt(built: Context) -> str:
    return "\n".join(message["content"] for message in built.messages)


@pytest.mark.parametrize("tokens", [1024, 2048, 8192])
def test_prompt_and_answer_fit_into_the_context(tokens: int) -> None:
    built = context(
        tokens=tokens,
        hits=[hit(n, "long words " * 80) for n in range(1, 7)],
        outputs=[output("squeue", numbered("1234567 normal job", 900))],
        matches=[match("squeue")],
        turns=[Turn("question " * 20, "answer " * 60)] * 5,
    )
    longest = output_tokens(Config(llm=Llm(context_tokens=tokens)))
    assert measure(built.messages, estimate) + longest <= tokens
    assert built.fits
    assert built.notices


def test_commands_come_first_and_numbers_are_those_of_the_prompt() -> None:
    built = context(hits=[hit(1, "text")], outputs=[output("squeue", "job")], matches=[match("squeue")])
    assert [(s.number, type(s.item)) for s in built.sources] == [(1, CommandOutput), (2, Hit)]
    for source in built.sources:
        assert fenced(source) in prompt(built)
    assert built.notices == ()


def test_a_command_that_did_not_run_is_no_source() -> None:
    missing = output("squeue", "", "unavailable", "squeue is not installed")
    built = context(outputs=[missing], matches=[match("squeue")])
    assert built.sources == ()
    assert "was not run (squeue is not installed): Tells squeue." in prompt(built)


def test_the_latest_turns_stay_and_their_citations_go() -> None:
    turns = [Turn(f"question {n}", f"answer {n} [{n}] " + "word " * 120) for n in range(1, 6)]
    built = context(tokens=2048, turns=turns, hits=[hit(1, "text")])
    text = prompt(built)
    assert "answer 5" in text
    assert "answer 5 [5]" not in text
    assert "answer 1" not in text
    assert any("earlier turns were left out" in notice for notice in built.notices)


def test_too_long_a_question_is_told() -> None:
    assert not context(tokens=1024, question="7" * 900).fits


SECRET = "alice@site.example password=hunter2-hunter2 sk-abcdefghijklmnop1234"


def test_outside_only_released_outputs_are_sent_and_all_is_redacted() -> None:
    built = context(
        where="outside",
        question=f"Why? {SECRET}",
        outputs=[output("quota", f"private {SECRET}"), output("sinfo", f"public {SECRET}")],
        matches=[match("quota"), match("sinfo", may_leave=True)],
        hits=[hit(1, "Ask help@site.example.")],
        turns=[Turn(f"before {SECRET}", f"said {SECRET}")],
    )
    text = prompt(built)
    for secret in ("alice@", "hunter2", "sk-abc"):
        assert secret not in text
    assert "public" in text
    assert "private" not in text
    assert "not to you: Tells quota." in text
    assert "help@site.example" in text
    assert built.notices == ("The output of `quota --me` may not leave the site; the model did not see it.",)


def test_outside_an_output_without_an_entry_is_not_sent() -> None:
    assert "private" not in prompt(context(where="outside", outputs=[output("quota", "private")]))


def test_onsite_nothing_is_withheld() -> None:
    built = context(outputs=[output("quota", SECRET)], matches=[match("quota")])
    assert SECRET in prompt(built)
    assert built.notices == ()


def test_a_label_says_the_title_once() -> None:
    page = hit(1, "text")
    deep = replace(page, passage=replace(page.passage, heading=("Other", "Deep")))
    built = context(hits=[page, deep])
    assert [s.label for s in built.sources] == ["Title", "Title > Other > Deep"]
