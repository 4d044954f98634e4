"""hyce commands import and hyce commands describe: entries for a person to review."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hyce.cli.terminal import Terminal
from hyce.config import Config
from hyce.errors import ConfigError
from hyce.records import command_line


def register(actions: Any, common: argparse.ArgumentParser) -> None:
    """Add the commands to those of `hyce commands`."""
    importing = actions.add_parser(
        "import",
        parents=[common],
        help="make entries of a JSON file of commands, to review",
        description='Makes a catalogue file of a JSON file {"command line": "description", ...}, to be '
        "reviewed. Nothing is run. Lines that no entry can express are listed with the reason; then it exits "
        "with 1.",
    )
    importing.add_argument("file", type=Path, metavar="FILE", help="the JSON file")
    importing.set_defaults(call=run_import)
    describing = actions.add_parser(
        "describe",
        parents=[common],
        help="draft an entry with the language model, to review",
        description="Drafts an entry: the language model writes the description and example questions from "
        "the program's manual page, or from what --help prints, for which the program is started. What would "
        "run is the command line as it is typed here. The draft is never active by itself.",
    )
    describing.add_argument(
        "line", metavar="COMMAND", help='the command line in quotes, such as "squeue --me"'
    )
    describing.set_defaults(call=run_describe)
    for parser in (importing, describing):
        parser.add_argument(
            "--out", type=Path, metavar="FILE", help="a new YAML file to write, instead of printing it"
        )


def run_import(arguments: argparse.Namespace, config: Config, terminal: Terminal) -> int:
    """Print or write the entries; list what is left to a person."""
    from hyce import catalogue
    from hyce.drafts import write_new
    from hyce.import_commands import import_commands, imported_file, read_commands

    imported = import_commands(read_commands(arguments.file), taken=catalogue.load_for(config))
    text = imported_file(imported.drafts, arguments.file) if imported.drafts else ""
    if arguments.out and text:
        write_new(arguments.out, text)
    if terminal.json_output:
        terminal.json(
            {
                "imported": [
                    {**asdict(draft), "command": command_line(draft.argv)} for draft in imported.drafts
                ],
                "left": [asdict(left) for left in imported.left],
                "catalogue": text,
            }
        )
    elif not arguments.out and text:
        terminal.print(text.rstrip("\n"))
    for left in imported.left:
        terminal.error(f"left to a person: {left.line}: {left.reason}")
    where = f" to {arguments.out}" if arguments.out and text else ""
    counted = f"{len(imported.drafts)} imported{where}, {len(imported.left)} left to a person"
    terminal.note(f"{counted}; review the entries before you put them into a folder of policy.catalogue")
    return 1 if imported.left else 0


def run_describe(arguments: argparse.Namespace, config: Config, terminal: Terminal) -> int:
    """Print or write the draft."""
    from hyce import catalogue
    from hyce.describe import describe, described_file, manual, typed
    from hyce.drafts import refuse_existing, write_new
    from hyce.llm import client_for
    from hyce.runner import Runner

    opened = client_for(config, "commands")
    if opened is None:
        raise ConfigError("commands describe needs a language model; set base_url and model in [llm]")
    if arguments.out:
        refuse_existing(arguments.out)
    argv, _ = typed(arguments.line)
    with opened as client:
        runner = Runner(config, report=terminal.warn)
        asked = f"hyce commands describe {arguments.line}"
        manuals = [
            manual(program, lambda command: runner.run(command, {}, asked))
            for program in dict.fromkeys(stage[0] for stage in argv)
        ]
        draft = describe(arguments.line, manuals, client, taken=catalogue.load_for(config))
    text = described_file(draft, manuals, opened.model)
    if arguments.out:
        write_new(arguments.out, text)
    if terminal.json_output:
        row = {**asdict(draft), "command": command_line(draft.argv), "catalogue": text}
        terminal.json({**row, "manuals": [each.origin for each in manuals]})
    elif not arguments.out:
        terminal.print(text.rstrip("\n"))
    terminal.note("A draft: review it before you put it into a folder of policy.catalogue.")
    return 0
