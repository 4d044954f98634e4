"""What others wrote is neutral on a terminal and in a pipe: commands' output, passages, a model's answer."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import termios
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hyce_home import Home
from scripted_llm import ScriptedLlm, Step, breaks, hangs_up, says

from hyce.cli.terminal import Terminal, _Lines

CLIPBOARD = "\x1b]52;c;ZXZpbA==\x07"
HOSTILE = (
    "harmless-start "
    + CLIPBOARD
    + "\x1b[2J\x1b[1;1H\x1b[8mhidden\x1b[0m\x1b]0;title\x1b\\\x1b]8;;http://evil.example\x07link\x1b]8;;\x07"
    + "\x9b31m\x9d52;c;AAAA\x9c\x07\x08\x08 over\rwritten \u202etxt.exe\u202c \u2066a\u2069 "
    + "\x7f\x1bc\x1b(0 harmless-end"
)
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]")
# What rich itself writes for colours and bold; "conceal" is not among it.
STYLE = re.compile(r"\x1b\[(?:0|1|2|3|4|3\d|9\d|1;3\d|38;5;\d+|1;\d+(?:;\d+)*|40|44|97|\d{2}(?:;\d+)*)?m")


def assert_neutral(text: str) -> None:
    """Nothing is left that moves the cursor, fills the clipboard, or makes text appear elsewhere."""
    plain = STYLE.sub("", text).replace("\r\n", "\n")
    found = FORBIDDEN.search(plain)
    assert found is None, (found, plain[max(0, found.start() - 60) : found.end() + 60])
    assert "\r" not in plain


def on_terminal(
    home: Home, *arguments: str, settings: Mapping[str, Any] | None = None, typed: bytes = b""
) -> tuple[int, str]:
    """The exit code, and all that a terminal gets to see on stdout and stderr."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (50, 120))
    process = home.start(
        *arguments,
        settings=settings,
        environ={"TERM": "xterm-256color", "COLUMNS": "120"},
        stdin=slave,
        stdout=slave,
        stderr=slave,
    )
    os.close(slave)
    if typed:
        os.write(master, typed)
    shown = b""
    end = time.monotonic() + 100
    try:
        while time.monotonic() < end:
            if not select.select([master], [], [], 0.1)[0]:
                continue
            try:
                data = os.read(master, 65536)
            except OSError:  # the other end is closed
                break
            if not data:
                break
            shown += data
        return process.wait(30), shown.decode("utf-8", "replace")
    finally:
        process.kill()
        process.wait()
        os.close(master)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory, model_folder: Path) -> Home:
    """An index with a page full of escapes, and a catalogue whose command prints them."""
    home = Home(tmp_path_factory.mktemp("hostile"), model_folder)
    docs = home.folder / "docs"
    docs.mkdir()
    text = f"# Zebra {HOSTILE}\n\nAbout the zebra partition: {HOSTILE}\n\n```\ncode {HOSTILE}\n```\n"
    (docs / f"zebra{CLIPBOARD.replace('/', '')}\u202e.md").write_text(text, encoding="utf-8")
    (docs / "broken\x1b[2J\u202e.md").write_bytes(b"\0")
    (docs / "entities.html").write_text(
        "<title>&#27;]52;c;AAAA&#7;</title><h1>Zebra &#x9b;2J</h1>"
        "<p>zebra &#8238;entities&#27;[2J harmless-start",
        encoding="utf-8",
    )
    made = home.spawn("index", str(docs))
    assert made.code == 1
    assert "broken" in made.err
    assert_neutral(made.out + made.err)
    return home


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    """A catalogue with a command that prints what is hostile."""
    folder = tmp_path / "catalogue"
    folder.mkdir(mode=0o700)
    output = tmp_path / "output"
    output.write_bytes(HOSTILE.encode() + b"\xff\xfe\n")
    (folder / "own.yaml").write_text(
        "own.zebra:\n  description: Shows the state of the zebra partition.\n"
        "  questions: [what is the state of the zebra partition, how is the zebra partition doing]\n"
        f"  command: [cat, '{output}']\n",
        encoding="utf-8",
    )
    (folder / "own.yaml").chmod(0o600)
    return {"policy.catalogue": [str(folder)]}


QUESTION = "what is the state of the zebra partition"


@pytest.mark.parametrize(
    "arguments",
    [("run", "own.zebra"), ("search", "zebra partition"), ("ask", QUESTION), ("ask", QUESTION, "--preview")],
)
@pytest.mark.parametrize("form", ["terminal", "pipe", "json"])
def test_output_and_passages_are_neutral(
    hostile: Home, settings: dict[str, Any], arguments: tuple[str, ...], form: str
) -> None:
    if form == "terminal":
        code, shown = on_terminal(hostile, *arguments, settings=settings)
    else:
        done = hostile.spawn(*arguments, *(["--json"] if form == "json" else []), settings=settings)
        code, shown = done.code, done.out + done.err
    assert code == 0, shown
    assert "harmless-start" in shown
    if form != "json":
        assert "harmless-end" in shown
    assert_neutral(shown)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("form", ["terminal", "pipe", "json"])
def test_a_models_answer_is_neutral(hostile: Home, settings: dict[str, Any], form: str, stream: bool) -> None:
    # Cut anywhere, also within an escape.
    pieces = [HOSTILE[start : start + 3] for start in range(0, len(HOSTILE), 3)]
    with ScriptedLlm(says(*pieces, " [1]\n\n![x](http://evil.example/x.png) [2]")) as server:
        llm = {"base_url": server.url, "model": "tiny", "location": "onsite", "retries": 0, "stream": stream}
        more = {f"llm.{name}": value for name, value in llm.items()}
        if form == "terminal":
            code, shown = on_terminal(hostile, "ask", QUESTION, settings=settings | more)
        else:
            form_option = ["--json"] if form == "json" else []
            done = hostile.spawn("ask", QUESTION, *form_option, settings=settings | more)
            code, shown = done.code, done.out + done.err
        assert len(server.requests) == 1
    assert code == 0, shown
    assert "harmless-start" in shown
    assert "Sources" in shown or form == "json"
    assert_neutral(shown)


@pytest.mark.parametrize(("step", "expected"), [(breaks("A beginning", " of an answer"), 0), (hangs_up, 1)])
def test_an_endpoint_that_breaks_off_on_a_terminal(hostile: Home, step: Step, expected: int) -> None:
    with ScriptedLlm(step) as server:
        llm = {"base_url": server.url, "model": "tiny", "location": "onsite", "retries": 0}
        settings = {f"llm.{name}": value for name, value in llm.items()}
        code, shown = on_terminal(hostile, "ask", "zebra partition", settings=settings)
    assert code == expected
    assert "Traceback" not in shown
    assert_neutral(shown)
    words = " ".join(STYLE.sub("", shown).split())
    if expected:
        assert "did not answer" in words
        assert server.url in words
    else:
        assert "A beginning of an answer" in words
        assert "Note: " in words


def test_a_conversation_on_a_terminal(hostile: Home) -> None:
    code, shown = on_terminal(hostile, "chat", "--no-llm", typed=b"zebra partition\n\n")
    assert code == 0, shown
    assert "harmless-start" in shown
    assert "Traceback" not in shown


def test_a_terminal_gets_a_bar_and_a_log_gets_lines(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    for number in range(300):
        (docs / f"{number}.md").write_text(f"# Page {number}\n\nWord{number}.", encoding="utf-8")
    code, shown = on_terminal(home, "index", str(docs))
    assert code == 0
    assert "indexing" in shown
    assert "300 pages" in shown
    done = home.spawn("index", str(docs), "--quiet")
    assert (done.code, done.err) == (0, "")


def test_a_log_gets_a_line_every_ten_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    with Terminal.plain().progress("indexing") as progress:
        assert isinstance(progress, _Lines)
        progress.update(1, 9, "pages")
        assert capsys.readouterr().err == ""
        progress._last -= 10
        progress.update(2, 9, "passages embedded")
        progress.update(3, 9, "passages embedded")
    assert capsys.readouterr().err == "indexing: 2 of 9 passages embedded\n"


def test_a_table_is_aligned_and_a_cell_cannot_leave_its_line() -> None:
    out = io.StringIO()
    rows = [
        ("name", "a", "b"),
        ("x\ny", "1", "long"),
        ("all gone", "not \x1b[2Jthere at all"),
        ("z", "222", "-"),
    ]
    Terminal(out, io.StringIO()).table(rows)
    lines = out.getvalue().splitlines()
    assert lines == [
        "name      a    b",
        "x y       1    long",
        "all gone  not there at all",
        "z         222  -",
    ]
