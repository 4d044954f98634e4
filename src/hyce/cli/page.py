"""docs/cli.md, from the parser itself: a command can't exist without its page."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from hyce.cli import build_parser

COMMON = "common options"


def cli_page() -> str:
    """The page's Markdown."""
    lines = [
        "# Command line",
        "",
        "Generated from the code by `python -m hyce.cli.page`.",
        "",
        "Exit codes: 0 done; 1 it could not be done, or not all of it; 2 wrong usage; 130 interrupted.",
        "",
        "Every command takes these options:",
        "",
    ]
    commands = list(_commands(build_parser()))
    lines += _options(commands[0][1], common=True)
    for name, parser in commands:
        lines += ["", f"## {name}", "", parser.description or "", ""]
        usage = " ".join([name, *(_usage(action) for action in _own(parser))])
        options = _options(parser, common=False)
        lines += [f"    {usage}", *(["", *options] if options else [])]
    return "\n".join(line.rstrip() for line in lines).rstrip() + "\n"


def _commands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command that does something, with its parser."""
    groups = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    if not groups:
        yield parser.prog, parser
    for group in groups:
        for child in group.choices.values():
            yield from _commands(child)


def _own(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    common = {
        id(action)
        for group in parser._action_groups
        if group.title == COMMON
        for action in group._group_actions
    }
    return [a for a in parser._actions if id(a) not in common and not isinstance(a, argparse._HelpAction)]


def _options(parser: argparse.ArgumentParser, *, common: bool) -> list[str]:
    own = {id(action) for action in _own(parser)}
    rows = []
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction) or (id(action) in own) == common or not action.help:
            continue
        rows.append(f"| `{_name(action)}` | {action.help} |")
    return ["| option | meaning |", "| --- | --- |", *rows] if rows else []


def _name(action: argparse.Action) -> str:
    if not action.option_strings:
        return str(action.metavar or action.dest)
    value = "" if action.nargs == 0 else f" {_value(action)}"
    return f"{', '.join(action.option_strings)}{value}"


def _value(action: argparse.Action) -> str:
    if action.choices is not None:
        return "{" + ",".join(str(choice) for choice in action.choices) + "}"
    return str(action.metavar or action.dest.upper())


def _usage(action: argparse.Action) -> str:
    name = _name(action)
    if action.option_strings:
        return f"[{name}]"
    return {"*": f"[{name} ...]", "?": f"[{name}]"}.get(str(action.nargs), name)


if __name__ == "__main__":
    print(cli_page(), end="")
