"""hyce evaluate gate."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyce.cli.terminal import Terminal
from hyce.config import Config
from hyce.errors import UsageError

if TYPE_CHECKING:
    from hyce.evaluate.finding.gate import Check, Outcome


def register(actions: Any, common: argparse.ArgumentParser) -> None:
    """Add the command to the parser."""
    gate = actions.add_parser(
        "gate",
        parents=[common],
        help="exit with 1 where a figure is below what this site wants",
        description="Compares figures of retrieval, routing and a run with thresholds and a stored baseline. "
        "Exits with 1 and a list of what fell. For CI; asks no language model, unless one helps with the "
        "search or chooses commands.",
    )
    gate.add_argument(
        "file", type=Path, metavar="FILE", help="TOML file with the question files and the thresholds"
    )
    gate.add_argument(
        "--save-baseline",
        action="store_true",
        help="store the figures as the baseline, in place of comparing",
    )
    gate.set_defaults(call=run_gate)


def run_gate(arguments: argparse.Namespace, config: Config, terminal: Terminal) -> int:
    """Print each figure with what it must be; exit code 1 where one fell."""
    from hyce.evaluate.finding.baseline import check_comparable, read_baseline, write_baseline
    from hyce.evaluate.finding.gate import outcome, take, to_store
    from hyce.evaluate.finding.gate_file import read_gate

    gate = read_gate(arguments.file)
    if arguments.save_baseline and not gate.baseline:
        raise UsageError(f'{gate.file}: names no baseline; add [baseline] with file = "baseline.json"')
    stored = read_baseline(gate.baseline) if gate.baseline and not arguments.save_baseline else None
    taken = {}
    for section in gate.sections:
        with terminal.progress(section.name) as progress:
            own = take(gate, section, config, progress, terminal.warn)
        if gate.baseline and stored:
            check_comparable(gate.baseline, stored, section.name, own.questions)
        taken[section.name] = own
    found = outcome(gate, taken, stored)
    if terminal.json_output:
        terminal.json(_json(found))
    else:
        _show(found, terminal)
    for line in found.fell:
        terminal.error(line)
    if gate.baseline and arguments.save_baseline:
        if found.problems:
            terminal.error(f"{gate.baseline}: not written, as the figures don't stand for all questions")
        else:
            write_baseline(gate.baseline, to_store(taken, found))
            terminal.note(f"{gate.baseline}: written")
    return 1 if found.fell else 0


def _json(found: Outcome) -> dict[str, Any]:
    return {
        "passed": not found.fell,
        "figures": [_check_json(check) for check in found.checks],
        "fell": list(found.fell),
    }


def _check_json(check: Check) -> dict[str, Any]:
    from hyce.evaluate.finding.measured import figure_json

    nothing = {"value": None, "low": None, "high": None, "questions": 0}
    return {
        "section": check.section,
        "group": check.group,
        "figure": check.name,
        **(figure_json(check.figure) if check.figure else nothing),
        "threshold": check.threshold,
        "baseline": check.baseline,
        "passed": not check.fell,
    }


def _show(found: Outcome, terminal: Terminal) -> None:
    from hyce.cli.evaluate.tables import cell

    rows = [["", "value [95 % interval]", "at least", "baseline", ""]]
    rows += [
        [
            check.title,
            cell(check.figure),
            *("-" if value is None else f"{value:.3f}" for value in (check.threshold, check.baseline)),
            "FELL" if check.fell else "ok",
        ]
        for check in found.checks
    ]
    terminal.table(rows)
