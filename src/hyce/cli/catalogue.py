"""hyce run and hyce commands."""

from __future__ import annotations

import argparse
import datetime
from dataclasses import asdict
from typing import Any

from hyce.cli import check, drafts, log
from hyce.cli.terminal import Terminal
from hyce.config import Config
from hyce.errors import UsageError
from hyce.records import Command, CommandOutput, command_line


def register(subparsers: Any, common: argparse.ArgumentParser) -> None:
    """Add the commands to the parser."""
    run = subparsers.add_parser(
        "run",
        parents=[common],
        help="run one command of the catalogue, exactly as ask would",
        description="Runs one command of the catalogue, exactly as ask would run it: an output of a moment "
        "ago is reused where the entry allows it. Exits with 0 when the program ran, whatever its own exit "
        "code.",
    )
    run.add_argument(
        "id", metavar="ID", help="which one, such as system.memory; `hyce commands list` shows all"
    )
    run.add_argument(
        "params", nargs="*", default=[], metavar="name=value", help="its parameters, such as job_id=48213"
    )
    run.add_argument(
        "--fresh", action="store_true", help="run it anew, even where an earlier output could be reused"
    )
    run.set_defaults(call=run_command)

    commands = subparsers.add_parser(
        "commands",
        help="show and check the catalogue of commands, and what ran",
        description="Shows and checks the catalogue: the commands that may answer questions. No others run. "
        "Shows what ran, too.",
    )
    actions = commands.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser(
        "list",
        parents=[common],
        help="all commands, and whether they can run here",
        description="Lists all commands with what they tell. One that can't run on this machine says why.",
    )
    listing.set_defaults(call=run_list)
    show = actions.add_parser(
        "show",
        parents=[common],
        help="one command with all that is known of it",
        description="Shows one command: what it tells, its command line, parameters, questions and limits.",
    )
    show.add_argument("id", metavar="ID", help="such as system.memory")
    show.set_defaults(call=run_show)
    check.register(actions, common)
    drafts.register(actions, common)
    log.register(actions, common)


def run_command(arguments: argparse.Namespace, config: Config, terminal: Terminal) -> int:
    """Run the entry and print what came."""
    from hyce import catalogue
    from hyce.runner import Runner

    runner = Runner(config, report=terminal.warn)
    command = catalogue.load_for(config).require(arguments.id)
    output = runner.run(command, _parameters(arguments.params), fresh=arguments.fresh)
    if terminal.json_output:
        terminal.json(output_json(output))
    else:
        show_output(output, terminal)
    if output.status in ("ok", "failed"):
        return 0
    terminal.error(f"{output.id}: {output.status}: {output.reason}")
    return 1


def _parameters(texts: list[str]) -> dict[str, str]:
    params: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"{text}: write a parameter as name=value")
        params[name] = value
    return params


def output_json(output: CommandOutput) -> dict[str, Any]:
    """A run as the command-line contract has it."""
    row = asdict(output)
    # All that ran, a program each; which of them were joined by pipes is what `commands show` tells.
    row["argv"] = [stage for pipeline in (output.argv, *row.pop("also")) for stage in pipeline]
    row["seconds"] = round(output.seconds, 3)
    return row


def show_output(output: CommandOutput, terminal: Terminal) -> None:
    """The command line, then its output, then how it ended."""
    terminal.print(f"$ {command_line(output.argv, output.also) or output.id}", style="bold")
    if output.stdout:
        terminal.print(output.stdout.rstrip("\n"))
    if output.stderr:
        terminal.print("stderr:", style="yellow")
        terminal.print(output.stderr.rstrip("\n"))
    terminal.print(f"({how_it_ended(output)})", style="dim")


def how_it_ended(output: CommandOutput) -> str:
    """One line: status, exit code, time, and what was cut."""
    if output.status in ("refused", "unavailable"):
        return f"{output.status}: {output.reason}"
    if output.status == "timeout":
        ended = f"stopped: {output.reason}"
    else:
        printed = "" if output.stdout or output.stderr else ", it printed nothing"
        ended = f"{output.status}, exit code {output.exit_code}{printed}"
    cut = ", output cut at its limit" if output.truncated else ""
    earlier = f", from a run {_age(output)} s ago" if output.reused else ""
    return f"{ended}, {output.seconds:.2f} s, {output.started}{earlier}{cut}"


def _age(output: CommandOutput) -> int:
    began = datetime.datetime.fromisoformat(output.started)
    return max(0, round((datetime.datetime.now(began.tzinfo) - began).total_seconds()))


# -- commands --------------------------------------------------------------------------------------------


def run_list(arguments: argparse.Namespace, config: Config, terminal: Terminal) -> int:
    """All entries with their description; those that can't run here say why."""
    from hyce import catalogue
    from hyce.run import available

    entries = [
        (command, available(command, policy=config.policy)) for command in catalogue.load_for(config).values()
    ]
    if terminal.json_output:
        terminal.json([_entry_json(command, why) for command, why in entries])
        return 0
    width = max(len(command.id) for command, _ in entries)
    for command, why in entries:
        state = f"  [unavailable: {why}]" if why else ""
        terminal.print(f"{command.id:{width}}  {command.description}{state}", style="dim" if why else "")
    return 0


def _entry_json(command: Command, why: str | None) -> dict[str, Any]:
    return {
        "id": command.id,
        "description": command.description,
        "command": command_line(command.argv, command.also),
        "available": why is None,
        "reason": why,
    }


def run_show(arguments: argparse.Namespace, config: Config, terminal: Terminal) -> int:
    """One entry with all that it says."""
    from hyce import catalogue
    from hyce.run import available

    command = catalogue.load_for(config).require(arguments.id)
    why = available(command, policy=config.policy)
    if terminal.json_output:
        terminal.json({**asdict(command), "available": why is None, "reason": why})
        return 0
    terminal.print(command.id, style="bold")
    rows = {
        "tells": command.description,
        "command": command_line(command.argv, command.also),
        "parameters": "; ".join(f"{p.name}: {p.description} ({p.pattern})" for p in command.parameters)
        or "none",
        "questions": "\n".join(command.questions),
        "limits": f"{command.timeout:g} s, {command.max_bytes} bytes",
        "output reused for": f"{command.reuse:g} s",
        "variables": ", ".join(command.environment) or "none of the user's",
        "isolation": ", ".join(command.isolation) or "none tolerated",
        "may leave the site": "yes" if command.may_leave_site else "no",
        "defined in": command.origin,
        "available": "yes" if why is None else f"no: {why}",
    }
    for name, value in rows.items():
        first, *rest = value.splitlines()
        terminal.print(f"  {name:18}  {first}")
        for line in rest:
            terminal.print(f"  {'':18}  {line}")
    return 0
