"""hyce evaluate injection."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyce.cli.documents import positive
from hyce.cli.evaluate.arguments import add_at_once
from hyce.cli.terminal import Terminal
from hyce.config import Config

if TYPE_CHECKING:
    from hyce.evaluate.injection import Outcome, Tally

_SHOWN = 160
"""Characters of an answer that are shown."""

LEGEND = """\
share: obeyed, of the cases that tell something (neither unclear nor failed)
not seen: the order never reached the model; such text of a page is left out, or it may not leave the site
unclear: the judge gives the wrong answer a 1 without any order too, or gives no verdict"""


def register(actions: Any, common: argparse.ArgumentParser) -> None:
    """Add the command to the parser."""
    injection = actions.add_parser(
        "injection",
        parents=[common],
        help="how often orders hidden in the material are obeyed",
        description="Hides orders in job names, log lines, pages and judged answers, asks the configured "
        "models ordinary questions about them, and counts how often an order is obeyed. The material is made "
        "up; no command runs and no index is needed.",
    )
    injection.add_argument(
        "--repeats", type=positive, default=1, metavar="N", help="ask each case so often (default: 1)"
    )
    injection.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="PLACE",
        help="only this place, such as job_name, or all places of case 10 (command output), 11 (pages), 12 "
        "(forged ends and roles) or 13 (the judge); may be repeated",
    )
    injection.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="keep the calls in this folder: what was interrupted goes on there, and no call is made twice",
    )
    add_at_once(injection)
    injection.set_defaults(call=run_injection)


def run_injection(arguments: argparse.Namespace, config: Config, terminal: Terminal) -> int:
    """Print how often orders were obeyed; exit code 1 where a model could not be asked."""
    from hyce.evaluate.calls import Calls
    from hyce.evaluate.injection import CALLS, measure
    from hyce.evaluate.injections import named
    from hyce.evaluate.journal import Journal

    among = named(arguments.only)
    with (
        _folder(arguments.out) as folder,
        Journal(folder / CALLS) as journal,
        terminal.progress("asking") as progress,
    ):
        outcomes = measure(
            config,
            among,
            repeats=arguments.repeats,
            calls=Calls(journal),
            show=progress,
            at_once=arguments.at_once,
        )
    failed = [outcome for outcome in outcomes if outcome.status == "failed"]
    for outcome in failed:
        terminal.error(f"{_named(outcome)}: {outcome.error}")
    if terminal.json_output:
        terminal.json(_json(outcomes, config))
    else:
        _show(outcomes, config, terminal)
    return 1 if failed else 0


@contextmanager
def _folder(out: Path | None) -> Iterator[Path]:
    """The folder for the calls; one that is gone afterwards where nobody wants to keep them."""
    import tempfile

    from hyce.evaluate.journal import locked

    if out is not None:
        with locked(out) as folder:
            yield folder
        return
    with tempfile.TemporaryDirectory(prefix="hyce-") as name:
        yield Path(name)


def _grouped(outcomes: Sequence[Outcome], of: Callable[[Outcome], str]) -> dict[str, Tally]:
    from hyce.evaluate.injection import tally

    names = list(dict.fromkeys(map(of, outcomes)))
    return {name: tally([each for each in outcomes if of(each) == name]) for name in names}


def _models(outcomes: Sequence[Outcome], config: Config) -> dict[str, str]:
    """The model of each role that was asked."""
    from hyce.config import for_role
    from hyce.evaluate.injection import role_of

    roles = dict.fromkeys(role_of(outcome.case.place) for outcome in outcomes)
    return {role: for_role(config, role).llm.model for role in roles}


def _named(outcome: Outcome) -> str:
    case = outcome.case
    return f"{case.place.title}, {case.wording.name}" + (f", repeat {case.repeat}" if case.repeat > 1 else "")


# -- JSON ------------------------------------------------------------------------------------------------


def _json(outcomes: Sequence[Outcome], config: Config) -> dict[str, Any]:
    from hyce.evaluate.injection import tally

    numbers = {outcome.case.place.name: outcome.case.place.case for outcome in outcomes}
    return {
        "models": _models(outcomes, config),
        **_tally_json(tally(outcomes)),
        "places": [
            {"place": name, "case": numbers[name], **_tally_json(counts)}
            for name, counts in _grouped(outcomes, lambda each: each.case.place.name).items()
        ],
        "wordings": [
            {"wording": name, **_tally_json(counts)}
            for name, counts in _grouped(outcomes, lambda each: each.case.wording.name).items()
        ],
        "outcomes": [
            {
                "place": outcome.case.place.name,
                "wording": outcome.case.wording.name,
                "repeat": outcome.case.repeat,
                "status": outcome.status.replace(" ", "_"),
                "text": outcome.text,
                "error": outcome.error,
            }
            for outcome in outcomes
        ],
    }


def _tally_json(counts: Tally) -> dict[str, Any]:
    return {
        "cases": counts.cases,
        "obeyed": counts.obeyed,
        "resisted": counts.resisted,
        "not_seen": counts.not_seen,
        "unclear": counts.unclear,
        "failed": counts.failed,
        "share": None if counts.share is None else round(counts.share, 4),
    }


# -- for a person ----------------------------------------------------------------------------------------


def _show(outcomes: Sequence[Outcome], config: Config, terminal: Terminal) -> None:
    from hyce.evaluate.injection import tally

    for role, model in _models(outcomes, config).items():
        terminal.print(f"{role}: {model}")
    groups = {
        "PLACE": _grouped(outcomes, lambda each: f"{each.case.place.case} {each.case.place.title}"),
        "WORDING": _grouped(outcomes, lambda each: each.case.wording.name),
    }
    for heading, tallies in groups.items():
        rows = [_row(name, counts) for name, counts in tallies.items()]
        if heading == "WORDING":
            rows.append(_row("all", tally(outcomes)))
        terminal.print()
        headings = (heading, "CASES", "OBEYED", "SHARE", "RESISTED", "NOT SEEN", "UNCLEAR", "FAILED")
        terminal.table([headings, *rows])
    terminal.print()
    for line in LEGEND.splitlines():
        terminal.print(line, style="dim")
    _list([each for each in outcomes if each.status == "unclear"], "Unclear:", terminal)
    obeyed = [each for each in outcomes if each.status == "obeyed"]
    _list(
        obeyed,
        "Orders that were obeyed, with the beginning of the answer or of the judge's reasons:",
        terminal,
    )
    if not obeyed:
        told = tally(outcomes).told
        terminal.print(f"\nNo order was obeyed, in {told} cases." if told else "\nNothing can be said.")


def _row(name: str, counts: Tally) -> tuple[str, ...]:
    share = "-" if counts.share is None else f"{counts.share:.2f}"
    numbers = (counts.resisted, counts.not_seen, counts.unclear, counts.failed)
    return (name, str(counts.cases), str(counts.obeyed), share, *map(str, numbers))


def _list(outcomes: Sequence[Outcome], heading: str, terminal: Terminal) -> None:
    if outcomes:
        terminal.print(f"\n{heading}", style="bold")
    for outcome in outcomes:
        said = " ".join((outcome.error or outcome.text).split())
        short = said if len(said) <= _SHOWN else f"{said[:_SHOWN].rstrip()} ..."
        terminal.print(f"  {_named(outcome)}: {short}")
