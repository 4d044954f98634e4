"""hyce evaluate report."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyce.cli.terminal import Terminal
from hyce.config import Config
from hyce.errors import HyceError, StoreError, UsageError

if TYPE_CHECKING:
    from hyce.evaluate.records import Run
    from hyce.evaluate.report.compare import Comparison
    from hyce.evaluate.report.scores import Summary

_SHOWN = 20
"""Changed questions listed in the terminal."""


def register(actions: Any, common: argparse.ArgumentParser) -> None:
    """Add the command to the parser."""
    report = actions.add_parser(
        "report",
        parents=[common],
        help="show what a run came to",
        description="Writes report.md, report.json and report.html for a run, and prints its table. The "
        "reports have the Eval Score of each variant with intervals and paired tests, by source and by kind; "
        "the page has pictures as well, and each question with its answers, sources and verdicts.",
    )
    report.add_argument("folder", type=Path, metavar="FOLDER", help="the folder of `hyce evaluate run`")
    report.add_argument("--out", type=Path, metavar="DIR", help="where the reports go (default: into FOLDER)")
    report.add_argument(
        "--compare",
        type=Path,
        metavar="OTHER",
        help="an earlier run over the same questions: what became worse is listed first",
    )
    report.add_argument(
        "--labels", type=Path, metavar="CSV", help="people's verdicts on answers: how far the judge agrees"
    )
    report.add_argument(
        "--sheet", type=Path, metavar="CSV", help="write a sheet of answers for people to judge (50 answers)"
    )
    report.set_defaults(call=run_report)


def run_report(arguments: argparse.Namespace, config: Config, terminal: Terminal) -> int:
    """Write the reports and print the table; exit code 1 where the page can't be made."""
    from hyce.evaluate import report as files
    from hyce.evaluate.journal import write_whole
    from hyce.evaluate.report.compare import compare
    from hyce.evaluate.report.labels import read_labels, sheet
    from hyce.evaluate.report.markdown import markdown
    from hyce.evaluate.report.summary import summarise
    from hyce.evaluate.running.runs import read_run

    run = read_run(arguments.folder)
    if arguments.sheet and arguments.sheet.exists():
        raise UsageError(f"{arguments.sheet}: exists, and may be filled in; name a new file")
    labels, problems = read_labels(arguments.labels, run) if arguments.labels else ((), ())
    for problem in problems:
        terminal.error(problem)
    if problems:
        return 2
    comparison = compare(read_run(arguments.compare), run) if arguments.compare else None
    summary = summarise(run, labels)
    folder = arguments.out or arguments.folder
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise StoreError(f"{folder}: {error.strerror}; choose another folder") from error
    content = files.report_json(run, summary, comparison)
    write_whole(folder / files.MARKDOWN, markdown(summary, comparison))
    write_whole(folder / files.JSON, json.dumps(content, allow_nan=False, indent=1) + "\n")
    if arguments.sheet:
        write_whole(arguments.sheet, sheet(run))
        terminal.note(f"{arguments.sheet}: fill in the columns correctness and faithfulness with 1 or 0")
    if terminal.json_output:
        terminal.json(content)
    else:
        _show(summary, comparison, terminal)
    return _write_page(folder, run, summary, comparison, terminal)


def _write_page(
    folder: Path, run: Run, summary: Summary, comparison: Comparison | None, terminal: Terminal
) -> int:
    from hyce.evaluate import report as files
    from hyce.evaluate.journal import write_whole
    from hyce.evaluate.report.page import page

    try:
        text = page(run, summary, comparison)
    except HyceError as error:
        terminal.error(f"{error}; {files.MARKDOWN} and {files.JSON} are in {folder}")
        return 1
    write_whole(folder / files.HTML, text)
    size = (folder / files.HTML).stat().st_size / 1e6
    terminal.note(f"{folder}: {files.MARKDOWN}, {files.JSON}, {files.HTML} ({size:.1f} MB)")
    return 0


def _show(summary: Summary, comparison: Comparison | None, terminal: Terminal) -> None:
    """The score table, what must be known to read it, and what became worse."""
    from hyce.cli.evaluate.tables import compared, show_scores
    from hyce.evaluate.report.wording import number

    found = summary.facts
    terminal.print(found.title, style="bold")
    judge = f"judge {found.judge or 'not named'} ({found.mode})"
    terminal.print(f"{found.questions} questions, {number(found.passes, 'pass', 'passes')}; {judge}")
    terminal.print()
    show_scores(summary, terminal)
    if comparison:
        terminal.print()
        terminal.print(f"Compared with {comparison.before}", style="bold")
        terminal.print()
        terminal.table(compared(comparison))
        for title, changes in (
            ("Regressions", comparison.regressions),
            ("Improvements", comparison.improvements),
        ):
            terminal.print()
            terminal.print(f"{title}: {len(changes)}")
            for change in changes[:_SHOWN]:
                terminal.print(f"  {change.variant}: {change.question}: {' '.join(change.asked.split())}")
            if len(changes) > _SHOWN:
                terminal.print(f"  and {len(changes) - _SHOWN} more, which the reports list")
        for note in comparison.notes:
            terminal.warn(note)
