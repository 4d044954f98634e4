"""hyce commands check."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyce.cli.terminal import Terminal
from hyce.config import Config

if TYPE_CHECKING:
    from hyce.catalogue.check import Finding


def register(actions: Any, common: argparse.ArgumentParser) -> None:
    """Add the command to those of `hyce commands`."""
    checking = actions.add_parser(
        "check",
        parents=[common],
        help="validate the catalogue",
        description="Validates every entry: schema, patterns, references, programs, descriptions that are "
        "too alike, and whether its own example questions lead to it. Exits with 1 when something must be "
        "mended.",
    )
    checking.add_argument(
        "file",
        nargs="?",
        type=Path,
        metavar="FILE",
        help="a catalogue file to check together with the catalogue, before it is put into its folder",
    )
    checking.set_defaults(call=run_check)


def run_check(arguments: argparse.Namespace, config: Config, terminal: Terminal) -> int:
    """Print what must be mended as errors, and what is worth knowing."""
    from hyce import catalogue
    from hyce.catalogue.check import findings
    from hyce.embed import open_embedder
    from hyce.match import misrouted, open_matcher

    if arguments.file:
        folders = (*config.policy.catalogue, str(arguments.file.absolute()))
        config = replace(config, policy=replace(config.policy, catalogue=folders))
    entries = catalogue.load_for(config)
    embedder = open_embedder(config)
    matcher = open_matcher(config, embedder=embedder, assume_available=True)
    found = findings(
        entries,
        policy=config.policy,
        embedder=embedder,
        misrouted=misrouted(matcher, entries.values()),
        known=catalogue.load(),
    )
    questions = sum(len(command.questions) for command in entries.values())
    _show(found, len(entries), questions, terminal)
    return 1 if any(finding.must_mend for finding in found) else 0


def _show(found: Sequence[Finding], entries: int, questions: int, terminal: Terminal) -> None:
    """JSON with all; or a summary, the faults as errors, the rest with --verbose."""
    faults = [finding for finding in found if finding.must_mend]
    kinds = Counter(finding.kind for finding in found)
    if terminal.json_output:
        rows = [asdict(finding) for finding in found]
        terminal.json({"entries": entries, "questions": questions, "findings": rows, "counts": kinds})
    else:
        terminal.print(f"{entries} entries follow the schema; they have {questions} example questions.")
        known = len(found) - len(faults)
        terminal.print(f"Entries that can't run on this machine: {kinds['program']}.")
        terminal.print(f"Findings about questions that lead elsewhere: {kinds['question']}.")
        terminal.print(f"To be mended: {len(faults)}. Worth knowing, shown with --verbose: {known}.")
    for finding in found:
        tell = terminal.error if finding.must_mend else terminal.detail
        tell(f"{finding.entry}: {finding.text}; {finding.remedy}")
