"""Citations of an answer, checked."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyce.citations import Checker, check, records, unrun_command
from hyce.records import Citation, CommandOutput, Hit, Passage, Source


def output(*argv: str, status: str = "ok") -> CommandOutput:
    return CommandOutput(
        id="slurm.my_jobs",
        argv=(argv,),
        status=status,  # type: ignore[arg-type]
        exit_code=0,
        stdout="",
        stderr="",
        truncated=False,
        seconds=0.021,
        layers=(),
        started="2026-11-21T07:00:00+00:00",
    )


@pytest.mark.parametrize(
    ("text", "expected", "used"),
    [
        ("Four nodes [1].", "Four nodes [1].", {1}),
        ("Four nodes [1][3].", "Four nodes [1][3].", {1, 3}),
        ("Four nodes [1, 2].", "Four nodes [1][2].", {1, 2}),
        ("Four nodes [1; 2 and 3].", "Four nodes [1][2][3].", {1, 2, 3}),
        ("Four nodes [1-3].", "Four nodes [1][2][3].", {1, 2, 3}),
        ("Four nodes [1\N{EN DASH}3].", "Four nodes [1][2][3].", {1, 2, 3}),
        ("Four nodes 【2】.", "Four nodes [2].", {2}),
        ("Four nodes【2\N{DAGGER}L1-L4】.", "Four nodes[2].", {2}),
        ("Four nodes [Source 2].", "Four nodes [2].", {2}),
        ("Four nodes [source 1, source 2].", "Four nodes [1][2].", {1, 2}),
        ("Four nodes [^1].", "Four nodes [1].", {1}),
        ("Four nodes[1].", "Four nodes[1].", {1}),
        ("- first [1]\n- second [2]\n", "- first [1]\n- second [2]\n", {1, 2}),
    ],
)
def test_every_form_becomes_the_plain_one(text: str, expected: str, used: set[int]) -> None:
    checked = check(text, {1, 2, 3})
    assert (checked.text, set(checked.used), checked.dropped) == (expected, used, False)


@pytest.mark.parametrize(
    ("text", "expected", "used"),
    [
        ("Four nodes [9].", "Four nodes.", set()),
        ("Four nodes [0] there.", "Four nodes there.", set()),
        ("Four nodes [1, 9].", "Four nodes [1].", {1}),
        ("Four nodes [2-5].", "Four nodes [2][3].", {2, 3}),
        ("Four nodes [1][9].", "Four nodes [1].", {1}),
        ("Four nodes 【9】.", "Four nodes.", set()),
        ("Four nodes[999]!", "Four nodes!", set()),
        ("Four [[8]9] nodes.", "Four nodes.", set()),
        ("Four [[8]1] nodes.", "Four [1] nodes.", {1}),
        ("[9] Four nodes.", " Four nodes.", set()),
        ("Use `squeue` [9].", "Use `squeue`.", set()),
    ],
)
def test_a_source_that_was_not_given_is_dropped(text: str, expected: str, used: set[int]) -> None:
    checked = check(text, {1, 2, 3})
    assert (checked.text, set(checked.used), checked.dropped) == (expected, used, True)


@pytest.mark.parametrize(
    "text",
    [
        "`a[1]` and ``b`[9]`` are code.",
        "```\n#SBATCH --array=[1-3]\n[9]\n```\n",
        "```bash\necho ${a[9]}\n~~~\n[9]\n```",
        "~~~~\n[9]\n~~~\n[9]\n~~~~\n",
        "1. Write\n   ```\n   x[9]\n   ```\n",
        "- ```\n  x[9]\n  ```\n",
        "> ```\n> x[9]\n> ```\n",
        "```\nnever closed [9]\n",
        "Submit with --array=[1-9] to get ten.",
        "Nodes cn[1-4,7] and gpu[10-12] are down.",
        "Nodes cn[001-004] are down.",
        "In [2024] and [a1] and [ ] and [x].",
        "From [9-1] or [1-900].",
    ],
)
def test_code_and_host_lists_cite_nothing(text: str) -> None:
    checked = check(text, {1})
    assert (checked.text, checked.used, checked.dropped) == (text, frozenset(), False)


def test_after_code_citations_count_again() -> None:
    checked = check("```\nx[9]\n```\nSo [1], `y[9]` [9] and more [2].\n", {1, 2})
    assert checked.text == "```\nx[9]\n```\nSo [1], `y[9]` and more [2].\n"
    assert checked.used == {1, 2}


ANSWERS = st.lists(
    st.sampled_from(
        [
            "word",
            " ",
            "\n",
            "[1]",
            "[9]",
            "[1-3]",
            "[2, 9]",
            "【2】",
            "`a[9]`",
            "`",
            "```",
            "\n```\n",
            ".",
            "[",
            "]",
            "=",
        ]
    )
).map("".join)


@given(ANSWERS, st.data())
def test_in_pieces_as_at_once(text: str, data: st.DataObject) -> None:
    shown: list[str] = []
    checker = Checker({1, 2}, shown.append)
    rest = text
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        checker.feed(rest[:size])
        rest = rest[size:]
    checker.close()
    whole = check(text, {1, 2})
    assert "".join(shown) == whole.text
    assert (checker.used, checker.dropped) == (set(whole.used), whole.dropped)


@given(st.text("[]19, \n-", max_size=30))
def test_nothing_is_left_to_drop(text: str) -> None:
    once = check(text, {1})
    again = check(once.text, {1})
    assert (again.text, again.used, again.dropped) == (once.text, once.used, False)


def test_plain_words_are_shown_before_the_line_ends() -> None:
    shown: list[str] = []
    checker = Checker({1}, shown.append)
    checker.feed("There are four")
    assert "".join(shown) == "There are"
    checker.feed(" nodes [")
    assert "".join(shown) == "There are"
    checker.feed("1] in all.\nAnd")
    assert "".join(shown) == "There are four nodes [1] in all.\n"


@pytest.mark.parametrize(
    "text",
    [
        "I ran `sacct -X` and found nothing.",
        "I ran scancel 42 for you.",
        "I've just executed the command `squeue -u bob`.",
        "`sinfo -R` returned two nodes.",
        "According to the output of `sprio`, it is low.",
    ],
)
def test_a_command_that_did_not_run_is_found(text: str) -> None:
    assert unrun_command(text, [output("squeue", "--me", "--noheader")]) is not None


@pytest.mark.parametrize(
    "text",
    [
        "I ran `squeue --me` and found nothing.",
        "According to the output of `squeue`, you have none.",
        "`squeue --me ...` returned nothing.",
        "Run `sacct -X`; the output of `sacct` shows the exit code.",
        "You can check with `sinfo -R`.",
        "I ran into a limit.",
    ],
)
def test_a_command_that_ran_or_is_only_named_is_not(text: str) -> None:
    assert unrun_command(text, [output("squeue", "--me", "--noheader")]) is None


@pytest.mark.parametrize("part", ["squeue --me", "scontrol show job 1", "squeue --me; scontrol show job 1"])
def test_each_part_of_what_ran_may_be_named(part: str) -> None:
    ran = replace(output("squeue", "--me"), also=((("scontrol", "show", "job", "1"),),))
    assert unrun_command(f"`{part}` returned nothing.", [ran]) is None


def test_a_command_that_could_not_run_did_not_run() -> None:
    assert unrun_command("`squeue` returned nothing.", [output("squeue", status="unavailable")]) == "squeue"


def test_records_lead_to_the_place() -> None:
    def hit(url: str | None, source: str = "/docs", date: str | None = None) -> Hit:
        return Hit(1, 1.0, Passage(1, source, "run/jobs.md", url, "Jobs", ("Jobs", "Limits"), "Text", date))

    stopped = output("sinfo", status="timeout")
    sources = [
        Source(1, output("squeue", "--me"), "squeue --me", ""),
        Source(2, stopped, "sinfo", ""),
        Source(3, hit("https://docs.example/jobs#limits", date="2026-03-01"), "Jobs > Limits", "Text"),
        Source(4, hit(None), "Jobs > Limits", "Text"),
        Source(5, hit(None, "https://docs.example/"), "Jobs > Limits", "Text"),
    ]
    ran = "run 2026-11-21T07:00:00+00:00"
    assert records(sources, {1, 3}) == (
        Citation(1, "command", "squeue --me", f"{ran}, exit code 0, 0.02 s", "2026-11-21", True),
        Citation(2, "command", "sinfo", f"{ran}, stopped at its time limit, 0.02 s", "2026-11-21", False),
        Citation(3, "passage", "Jobs > Limits", "https://docs.example/jobs#limits", "2026-03-01", True),
        Citation(4, "passage", "Jobs > Limits", "/docs/run/jobs.md", None, False),
        Citation(5, "passage", "Jobs > Limits", "run/jobs.md", None, False),
    )


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("Wait [1](https://evil.example/x).", "Wait [1]."),
        ("Wait ![1](//evil.example/x.png).", "Wait ![1]."),
        ("Wait [2](javascript:alert).", "Wait."),
        ("Wait [1].\n\n[1]: https://evil.example", "Wait [1].\n\n[1]"),
        ("Two kinds [1](see below).", "Two kinds [1](see below)."),
        ("[1]: the quota page", "[1]: the quota page"),
    ],
)
def test_a_citation_leads_nowhere_else_than_to_its_source(written: str, shown: str) -> None:
    assert check(written, {1}).text == shown
