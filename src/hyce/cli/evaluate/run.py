"""hyce evaluate run."""

from __future__ import annotations

import argparse
import dataclasses
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyce.cli.documents import positive
from hyce.cli.evaluate.arguments import QUESTIONS, add_at_once
from hyce.cli.terminal import Terminal
from hyce.config import Config, expanded

if TYPE_CHECKING:
    from hyce.evaluate.calls import Calls
    from hyce.evaluate.records import Run
    from hyce.evaluate.report.scores import Line
    from hyce.evaluate.running.campaign import Forecast
    from hyce.evaluate.running.prepare import Prepared


def register(actions: Any, common: argparse.ArgumentParser) -> None:
    """Add the command to the parser."""
    run = actions.add_parser(
        "run",
        parents=[common],
        help="answer questions with several variants of the settings, and have the answers judged",
        description="Answers each question with each variant of the settings, several times, and has a "
        "language model judge the answers. What was done is kept in the folder: an interrupted run goes on "
        "where it stopped, and a repeated one costs nothing.",
    )
    run.add_argument(
        "questions",
        type=Path,
        metavar="QUESTIONS",
        help=QUESTIONS,
    )
    run.add_argument(
        "--variants", required=True, metavar="NAME", help="paper, local, or a file with variants of your own"
    )
    run.add_argument(
        "--out", required=True, type=Path, metavar="FOLDER", help="folder of the results, made if missing"
    )
    run.add_argument(
        "--passes", type=positive, metavar="N", help="answer each question so often (default: the file's, 3)"
    )
    run.add_argument(
        "--judge",
        choices=("grounded", "paper"),
        help="what the judge sees. grounded: also what the answer was written from; paper: question, answer "
        "and reference (default: the file's, grounded)",
    )
    run.add_argument(
        "--judge-repeats",
        type=positive,
        default=1,
        metavar="N",
        help="judge each answer so often, to see how far the judge agrees with itself; the first counts",
    )
    add_at_once(run)
    run.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="run this variant alone; may be repeated"
    )
    run.add_argument("--limit", type=positive, metavar="N", help="ask the first N questions alone")
    run.add_argument(
        "--live", action="store_true", help="run commands anew for each answer, in place of kept outputs"
    )
    run.add_argument(
        "--dry-run", action="store_true", help="estimate calls and tokens; nothing is sent and nothing runs"
    )
    run.set_defaults(call=run_run)


def run_run(arguments: argparse.Namespace, config: Config, terminal: Terminal) -> int:
    """Answer, have judged, and tell the scores; exit code 1 where something failed or was unavailable."""
    from hyce.evaluate.journal import locked
    from hyce.evaluate.running.campaign import Campaign, Options
    from hyce.evaluate.running.variants import read_variants

    plan = read_variants(arguments.variants)
    options = Options(
        passes=arguments.passes or plan.passes,
        mode=arguments.judge or plan.judge,
        repeats=arguments.judge_repeats,
        at_once=arguments.at_once,
        limit=arguments.limit,
        live=arguments.live,
        only=tuple(arguments.only),
    )
    folder = expanded(str(arguments.out))
    campaign = Campaign(
        plan,
        options,
        source=expanded(str(arguments.questions)),
        folder=folder,
        base=config,
        load=arguments.load,
        tells=terminal,
    )
    if campaign.unjudged:
        terminal.note(f"Questions without a reference answer, which are not asked: {campaign.unjudged}")
    if arguments.dry_run:
        return _tell_forecast(campaign.forecast(), len(campaign.questions), terminal)
    with locked(folder):
        run, calls = campaign.run()
    return _tell(run, calls, folder, terminal)


# -- what a run would take -------------------------------------------------------------------------------


def _tell_forecast(forecast: Forecast, questions: int, terminal: Terminal) -> int:
    from hyce.cli.evaluate.tables import costs

    for each in forecast.prepared:
        if each.row.unavailable:
            terminal.warn(f"{each.row.name} can't be run: {each.row.unavailable}")
    if terminal.json_output:
        roles = {role: dataclasses.asdict(cost) for role, cost in forecast.costs.items()}
        rows = [
            {
                "variant": each.row.name,
                "answers": forecast.tasks.get(each.row.name, 0),
                "index": _index(each),
                "unavailable": each.row.unavailable,
            }
            for each in forecast.prepared
        ]
        terminal.json({"questions": questions, "variants": rows, "roles": roles})
    else:
        for each in forecast.prepared:
            if each.place:
                terminal.print(f"{each.row.name}: {forecast.tasks[each.row.name]} answers, {_index(each)}")
        terminal.print()
        terminal.table(costs(forecast.costs))
        terminal.note(
            "Nothing was sent. Second tries come on top; calls that are recorded, or the same in every word, "
            "are not made."
        )
    return 1 if any(each.row.unavailable for each in forecast.prepared) else 0


def _index(prepared: Prepared) -> str:
    if prepared.place is None:
        return ""
    return "index there" if prepared.place.manifest else "index to be made"


# -- what came of it -------------------------------------------------------------------------------------


def _tell(run: Run, calls: Calls, folder: Path, terminal: Terminal) -> int:
    from hyce.cli.evaluate.tables import show_scores
    from hyce.evaluate.report.summary import summarise

    summary = summarise(run)
    lines = summary.variants
    if terminal.json_output:
        rows = [_line_json(line) for line in lines]
        terminal.json({"folder": str(folder), "calls": calls.made, "tokens": calls.tokens, "variants": rows})
    else:
        show_scores(summary, terminal)
        terminal.note(f"{calls.made} calls, {calls.tokens} tokens")
        terminal.note(f"Next: hyce evaluate report {shlex.quote(str(folder))}")
    failed = any(line.unavailable or line.counts.failed or line.counts.judge_failed for line in lines)
    return 1 if failed else 0


def _line_json(line: Line) -> dict[str, Any]:
    scores = line.scores
    named = {
        "score": scores.score,
        "correctness": scores.correctness,
        "faithfulness": scores.faithfulness,
        "abstained": line.abstained,
    }
    return {
        "variant": line.name,
        "unavailable": line.unavailable,
        **{name: round(found.value, 4) if found else None for name, found in named.items()},
        **dataclasses.asdict(line.counts),
    }
