"""hyce evaluate routing."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyce.cli.evaluate.arguments import QUESTIONS
from hyce.cli.terminal import Terminal
from hyce.config import Config
from hyce.errors import UsageError

if TYPE_CHECKING:
    from hyce.evaluate.finding.routing import Choice, Routed

MEANINGS = {
    "first": "the first command chosen is right, of questions that a command answers",
    "precision": "how many of all commands chosen for them are right",
    "recall": "a right command is chosen for them, in whatever place",
    "f1": "harmonic mean of precision and recall",
    "parameters": "of those that name a value: right, and carries exactly that value",
    "quiet": "no command is chosen where none answers",
    "traps": "the same for orders, other people's things and attacks",
    "overall": "the question is handled rightly as a whole",
}


def register(actions: Any, common: argparse.ArgumentParser) -> None:
    """Add the command to the parser."""
    routing = actions.add_parser(
        "routing",
        parents=[common],
        help="which commands questions lead to",
        description="Measures which commands of the catalogue questions lead to, over all questions and by "
        'kind. Runs none. Asks no language model, unless one chooses (commands.matching = "llm").',
    )
    routing.add_argument("questions", nargs="+", type=Path, metavar="QUESTIONS", help=QUESTIONS)
    routing.add_argument(
        "--scheduler",
        choices=("slurm", "pbs"),
        help="choose as on a cluster with this batch system; a question's own site comes first",
    )
    routing.add_argument(
        "--assume-available", action="store_true", help="choose as if every command's program were installed"
    )
    routing.add_argument(
        "--misses", action="store_true", help="list the questions that are not handled rightly"
    )
    routing.set_defaults(call=run_routing)


def run_routing(arguments: argparse.Namespace, config: Config, terminal: Terminal) -> int:
    """Print the figures; exit code 1 where a question could not be asked."""
    from hyce.evaluate.finding.routing import accepted, measure_catalogue
    from hyce.evaluate.leaving import may_be_searched
    from hyce.evaluate.sets import asked, read_sets

    questions = asked(may_be_searched(read_sets(arguments.questions), config, terminal.warn))
    if all(accepted(question) is None for question in questions):
        files = ", ".join(map(str, arguments.questions))
        raise UsageError(f'{files}: no question says which commands answer it; add "accept", [] for none')
    with terminal.progress("matching") as progress:
        choice = measure_catalogue(
            config,
            questions,
            scheduler=arguments.scheduler,
            assume_available=arguments.assume_available,
            show=progress,
            report=terminal.warn,
        )
    for failure in choice.failed:
        terminal.error(f"{failure.question.id}: {failure.error}")
    if terminal.json_output:
        terminal.json(_json(choice, misses=arguments.misses))
    else:
        _show(choice, terminal, misses=arguments.misses)
    return 1 if choice.failed else 0


def _json(choice: Choice, *, misses: bool) -> dict[str, Any]:
    from hyce.evaluate.finding.measured import groups_json

    document: dict[str, Any] = {
        "questions": len(choice.routed),
        "left_out": choice.left_out,
        "failed": [{"id": each.question.id, "error": each.error} for each in choice.failed],
        "figures": groups_json(choice.groups),
    }
    if misses:
        document["misses"] = [_miss_json(each) for each in choice.routed if not each.right]
    return document


def _miss_json(miss: Routed) -> dict[str, Any]:
    return {
        "id": miss.question.id,
        "kind": miss.question.kind,
        "question": miss.question.question,
        "accept": list(miss.accept),
        "params": dict(miss.question.params),
        "commands": [{"id": each.command.id, "params": dict(each.params)} for each in miss.commands],
        "refused": miss.refused or None,
    }


def _show(choice: Choice, terminal: Terminal, *, misses: bool) -> None:
    from hyce.cli.evaluate.tables import by_kind, meant
    from hyce.evaluate.finding.measured import ALL, sizes
    from hyce.evaluate.finding.routing import FIGURES, MAIN
    from hyce.evaluate.report.wording import number

    counts = {
        "left out, as nobody says which commands answer them": choice.left_out,
        "failed": len(choice.failed),
    }
    routed = number(len(choice.routed), "question", "questions")
    said = ", ".join([routed, *(f"{count} {what}" for what, count in counts.items() if count)])
    terminal.print(f"{said}; fractions with 95 % intervals", style="bold")
    if choice.routed:
        names = FIGURES if terminal.verbose else MAIN
        terminal.table(meant(choice.groups[ALL], MEANINGS))
        terminal.print()
        terminal.table(by_kind(choice.groups, sizes(choice.routed), names))
    missed = [each for each in choice.routed if not each.right]
    misses_said = number(len(missed), "question is", "questions are")
    if misses:
        terminal.print(f"\n{misses_said} not handled rightly", style="bold")
        for each in missed:
            _show_miss(each, terminal)
    elif missed:
        terminal.note(f"{misses_said} not handled rightly; --misses lists them")


def _show_miss(miss: Routed, terminal: Terminal) -> None:
    question = miss.question
    terminal.print(f"\n{question.id} ({question.kind}) {' '.join(question.question.split())}", style="bold")
    values = "".join(f" {name}={value}" for name, value in question.params.items())
    terminal.print(f"    wanted  {' or '.join(miss.accept) + values if miss.accept else 'no command'}")
    chosen = [
        each.command.id + "".join(f" {name}={value}" for name, value in each.params.items())
        for each in miss.commands
    ]
    terminal.print(f"    chosen  {', '.join(chosen) or miss.refused or 'no command'}", style="cyan")
