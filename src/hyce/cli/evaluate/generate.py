"""hyce evaluate generate."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyce.cli.evaluate.arguments import add_at_once, from_zero
from hyce.cli.terminal import Terminal
from hyce.config import Config

if TYPE_CHECKING:
    from hyce.evaluate.generation.generate import Report, Tally
    from hyce.evaluate.generation.sample import Wanted

_LABELS = {
    "document": "documentation",
    "command": "commands",
    "unanswerable": "unanswerable",
    "two_passages": "two passages",
    "passage_and_command": "passage and command",
}


def register(actions: Any, common: argparse.ArgumentParser) -> None:
    """Add the command to the parser."""
    parser = actions.add_parser(
        "generate",
        parents=[common],
        help="make questions from the documentation and from commands",
        description="Has a language model write questions with their answers, from passages of the index and "
        "from what commands print now, and another one (or the same) filter them. The numbers count before "
        "the filter. Interrupted, it goes on where it stopped when the same is run again.",
    )
    parser.add_argument(
        "folder",
        type=Path,
        metavar="FOLDER",
        help="where the questions are written; made where it is missing",
    )
    numbers = {
        "passages": (90, "a passage"),
        "unanswerable": (10, "the subject of a passage, which the documentation doesn't answer"),
        "two-passages": (10, "two passages that are both needed"),
        "mixed": (10, "a passage and a command that are both needed"),
    }
    for name, (number, about) in numbers.items():
        parser.add_argument(
            f"--{name}",
            type=from_zero,
            default=number,
            metavar="N",
            help=f"questions about {about} (default: {number})",
        )
    commands = parser.add_mutually_exclusive_group()
    commands.add_argument(
        "--commands", type=from_zero, default=10, metavar="N", help="questions about a command (default: 10)"
    )
    commands.add_argument(
        "--all-commands", action="store_true", help="one about each command that can run here"
    )
    parser.add_argument(
        "--seed", type=from_zero, default=0, metavar="N", help="another one takes other passages (default: 0)"
    )
    add_at_once(parser)
    parser.add_argument(
        "--dry-run", action="store_true", help="tell how many calls and tokens it takes; send and run nothing"
    )
    parser.set_defaults(call=run_generate)


def run_generate(arguments: argparse.Namespace, config: Config, terminal: Terminal) -> int:
    """Make the questions; exit code 1 where some failed, or none was kept."""
    from hyce.evaluate.generation.generate import generate
    from hyce.evaluate.generation.sample import Wanted
    from hyce.runner import Runner

    wanted = Wanted(
        passages=arguments.passages,
        commands=None if arguments.all_commands else arguments.commands,
        unanswerable=arguments.unanswerable,
        two_passages=arguments.two_passages,
        mixed=arguments.mixed,
        seed=arguments.seed,
    )
    if arguments.dry_run:
        return _estimate(wanted, config, terminal)
    runner = Runner(config, report=terminal.warn, patient=True)
    with terminal.progress("questions") as progress:
        report = generate(
            arguments.folder,
            wanted,
            config,
            runner,
            at_once=arguments.at_once,
            running=lambda name: progress.update(0, None, f"running {name}"),
            show=progress,
        )
    if terminal.json_output:
        earlier = str(report.earlier) if report.earlier else None
        terminal.json(asdict(report) | {"file": str(report.file), "earlier": earlier, "kept": report.kept})
    else:
        _show(report, terminal)
    if report.earlier:
        terminal.warn(f"{report.file} held something else, which is now in {report.earlier}")
    return _ended(report, terminal)


def _estimate(wanted: Wanted, config: Config, terminal: Terminal) -> int:
    """Calls and tokens by role."""
    from hyce.cli.evaluate.tables import costs
    from hyce.config import for_role
    from hyce.evaluate.generation.estimate import estimate

    sampled, roles = estimate(wanted, config)
    asked = {kind: len(names) for kind, names in sampled.by_kind.items()}
    if terminal.json_output:
        by_role = {role: asdict(cost) for role, cost in roles.items()}
        terminal.json({"asked": asked, "left_out": sampled.left_out, "roles": by_role})
        return 0
    terminal.print(", ".join(f"{_LABELS[kind]}: {number}" for kind, number in asked.items()))
    terminal.print()
    named = {f"{role} ({for_role(config, role).llm.model})": cost for role, cost in roles.items()}
    terminal.table(costs(named))
    terminal.note("Estimated: second tries come on top. Nothing was sent, and no command ran.")
    return 0


def _show(report: Report, terminal: Terminal) -> None:
    """The counts by kind, what made no question, and where the rest is."""
    from hyce.evaluate.report.wording import number

    rows: list[tuple[str, ...]] = [("", "asked", "written", "grounded", "relevant", "standalone", "kept")]
    rows += [_row(tally) for tally in report.tallies if tally.asked or tally.wanted]
    terminal.table(rows)
    if report.left_out:
        terminal.print()
        terminal.print("No question was made of", style="bold")
        for name, why in report.left_out.items():
            terminal.print(f"  {name}: {why}")
    terminal.print()
    terminal.print(
        f"{number(report.kept, 'question', 'questions')} in {report.file} "
        f"({report.calls} calls, {report.tokens} tokens)"
    )


def _row(tally: Tally) -> tuple[str, ...]:
    met: Mapping[str, int] = tally.met
    numbers = (tally.asked, tally.written, *met.values(), tally.kept)
    return (_LABELS[tally.kind], *map(str, numbers))


def _ended(report: Report, terminal: Terminal) -> int:
    """What went wrong, what comes next; the exit code."""
    for tally in report.tallies:
        if tally.wanted is not None and tally.asked < tally.wanted:
            terminal.warn(
                f"{_LABELS[tally.kind]}: {tally.asked} instead of {tally.wanted}, as there are no more"
            )
    for name, why in report.failed.items():
        terminal.error(f"{name}: {why}")
    if report.again:
        terminal.note("Run the same again to try what failed; what was answered is kept and costs nothing.")
    if not report.kept:
        terminal.error(
            f"{report.file}: no question passed the filter; look at its reasons there, and try another model"
        )
        return 1
    folder = shlex.quote(str(report.file.parent))
    terminal.note(f"Next: hyce evaluate run {folder} --variants local --out FOLDER")
    return 1 if report.failed else 0
