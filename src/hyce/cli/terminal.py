"""What a person sees: results on stdout, messages on stderr, progress, and colours only on a terminal."""

from __future__ import annotations

import argparse
import io
import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from hyce.privacy import neutral

if TYPE_CHECKING:
    from rich.console import Console


class Progress(Protocol):
    """Tells how far long work is."""

    def update(self, done: int, total: int | None, detail: str) -> None:
        """`done` of `total` pages (None: not known); `detail` says what else there is to say."""


@dataclass(frozen=True, slots=True)
class Terminal:
    """Where a command writes. Everything is made harmless for a terminal on its way out."""

    out: TextIO
    err: TextIO
    json_output: bool = False
    quiet: bool = False
    verbose: bool = False

    @classmethod
    def plain(cls) -> Terminal:
        """A terminal for messages before the options are known."""
        return cls(sys.stdout, sys.stderr)

    @classmethod
    def for_arguments(cls, arguments: argparse.Namespace) -> Terminal:
        """The terminal that --json, --quiet and --verbose ask for."""
        if isinstance(sys.stdout, io.TextIOWrapper):
            # A terminal that isn't UTF-8 shows a question mark for what it lacks.
            sys.stdout.reconfigure(errors="replace")
        return cls(sys.stdout, sys.stderr, arguments.json, arguments.quiet, arguments.verbose)

    @property
    def is_rich(self) -> bool:
        """Whether colours and layout reach a person."""
        return not self.json_output and self.out.isatty()

    def console(self) -> Console:
        """A rich console on stdout; rich is imported for terminals only."""
        from rich.console import Console

        return Console(file=self.out, highlight=False, soft_wrap=False)

    def print(self, text: str = "", *, style: str = "") -> None:
        """A line of the result."""
        text = neutral(text)
        if style and self.is_rich:
            from rich.text import Text

            self.console().print(Text(text, style=style))
        else:
            self.out.write(text + "\n")

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        """Rows below each other, each column as wide as it has to be; the first row holds the headings.

        A row with fewer cells than the first says something in place of figures; its last cell has no column.
        """
        lines = [[" ".join(neutral(cell).split()) for cell in row] for row in rows]
        columns = range(len(lines[0]))
        in_columns = [line if len(line) == len(columns) else line[:-1] for line in lines]
        widths = [max(len(line[column]) for line in in_columns if column < len(line)) for column in columns]
        for line in lines:
            self.print("  ".join(map(str.ljust, line, widths)).rstrip())

    def write(self, text: str) -> None:
        """A part of a line, shown at once."""
        self.out.write(neutral(text))
        self.out.flush()

    def markdown(self, text: str) -> None:
        """A model's answer: laid out on a terminal, as it is in a pipe."""
        if self.is_rich:
            from rich.markdown import Markdown

            self.console().print(Markdown(neutral(text), hyperlinks=False))
        else:
            self.out.write(neutral(text) + "\n")

    def json(self, value: Any) -> None:
        """One JSON document on a line of its own, in ASCII: no control character survives."""
        self.out.write(json.dumps(value) + "\n")
        self.out.flush()

    def error(self, text: str) -> None:
        """What could not be done."""
        self._message(f"hyce: {text}", "bold red")

    def warn(self, text: str) -> None:
        """What the user should know although the work goes on."""
        self._message(f"hyce: {text}", "yellow")

    def note(self, text: str) -> None:
        """A hint; not with --quiet."""
        if not self.quiet:
            self._message(text, "dim")

    def detail(self, text: str) -> None:
        """What is shown with --verbose only."""
        if self.verbose:
            self._message(text, "dim")

    def _message(self, text: str, style: str) -> None:
        text = neutral(text)
        if self.err.isatty():
            from rich.console import Console
            from rich.text import Text

            Console(file=self.err, highlight=False).print(Text(text, style=style))
        else:
            self.err.write(text + "\n")
            self.err.flush()

    @contextmanager
    def progress(self, label: str) -> Iterator[Progress]:
        """A bar on a terminal, a line every ten seconds elsewhere, nothing with --quiet."""
        if self.quiet:
            yield _Silent()
        elif self.err.isatty():
            with _bar(self.err, label) as bar:
                yield bar
        else:
            yield _Lines(self.err, label)


class _Silent:
    def update(self, done: int, total: int | None, detail: str) -> None:
        """Nothing is shown."""


class _Lines:
    """A line every ten seconds."""

    def __init__(self, err: TextIO, label: str) -> None:
        self._err, self._label = err, label
        self._last = time.monotonic()

    def update(self, done: int, total: int | None, detail: str) -> None:
        now = time.monotonic()
        if now - self._last < 10:
            return
        self._last = now
        of = f" of {total}" if total else ""
        self._err.write(f"{self._label}: {done}{of} {detail}\n")
        self._err.flush()


@contextmanager
def _bar(err: TextIO, label: str) -> Iterator[Progress]:
    from rich import progress as rich_progress
    from rich.console import Console

    columns = (
        rich_progress.TextColumn("{task.description}"),
        rich_progress.BarColumn(),
        rich_progress.MofNCompleteColumn(),
        rich_progress.TextColumn("{task.fields[detail]}"),
        rich_progress.TimeRemainingColumn(),
    )
    with rich_progress.Progress(*columns, console=Console(file=err), transient=True) as bar:
        task = bar.add_task(label, total=None, detail="")

        class _Bar:
            def update(self, done: int, total: int | None, detail: str) -> None:
                bar.update(task, completed=done, total=total, detail=neutral(detail))

        yield _Bar()
