"""hyce evaluate retrieval."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyce.cli.documents import positive
from hyce.cli.evaluate.arguments import QUESTIONS
from hyce.cli.terminal import Terminal
from hyce.config import Config
from hyce.errors import UsageError

if TYPE_CHECKING:
    from hyce.evaluate.finding.retrieval import Measured, Retrieval

SHOWN = 3
"""Passages that are shown of what was found instead of the evidence."""

MEANINGS = {
    "recall@500w": "the evidence stands in the first 500 words of what is found",
    "recall@2000w": "the same, in the first 2000 words",
    "accuracy@1": "the first passage holds evidence",
    "accuracy@5": "one of the first 5 passages does",
    "accuracy@10": "one of the first 10",
    "precision@1": "how many of the first passages hold evidence",
    "precision@5": "how many of the first 5 do",
    "precision@10": "how many of the first 10",
    "recall@1": "how much of what the question needs stands in the first passage",
    "recall@5": "in the first 5",
    "recall@10": "in the first 10",
    "f1@1": "harmonic mean of precision and recall",
    "f1@5": "",
    "f1@10": "",
    "mrr@10": "how high up: 1 divided by the rank of the first passage with evidence",
    "ndcg@10": "how high up, of all that the question needs; 1 is as high as can be",
    "auc_passages": "a passage with evidence is ranked above another; 0.5 is chance",
    "auc_answerable": "a question has a nearer passage than one without an answer; 0.5 is chance",
}


def register(actions: Any, common: argparse.ArgumentParser) -> None:
    """Add the command to the parser."""
    retrieval = actions.add_parser(
        "retrieval",
        parents=[common],
        help="how well passages are found",
        description="Measures how well the passages that answer a question are found, over all questions and "
        "by kind. Asks no language model, unless one helps with the search (retrieval.transform).",
    )
    retrieval.add_argument("questions", nargs="+", type=Path, metavar="QUESTIONS", help=QUESTIONS)
    retrieval.add_argument(
        "-k", type=positive, metavar="N", help="passages to ask for (default: 60, for 2000 words)"
    )
    retrieval.add_argument(
        "--misses",
        action="store_true",
        help="list the questions whose evidence isn't found within 2000 words, with what was found instead",
    )
    retrieval.set_defaults(call=run_retrieval)


def run_retrieval(arguments: argparse.Namespace, config: Config, terminal: Terminal) -> int:
    """Print the figures; exit code 1 where a question could not be asked."""
    from hyce.evaluate.finding.retrieval import K, has_evidence, measure_index
    from hyce.evaluate.leaving import may_be_searched
    from hyce.evaluate.sets import asked, read_sets

    sets = may_be_searched(read_sets(arguments.questions), config, terminal.warn)
    if not any(map(has_evidence, asked(sets))):
        files = ", ".join(map(str, arguments.questions))
        raise UsageError(f'{files}: no question says where its answer stands; add its "evidence"')
    with terminal.progress("searching") as progress:
        measured = measure_index(config, sets, arguments.k or K, show=progress, report=terminal.warn)
    for failure in measured.failed:
        terminal.error(f"{failure.question.id}: {failure.error}")
    if terminal.json_output:
        terminal.json(_json(measured, misses=arguments.misses))
    else:
        _show(measured, terminal, misses=arguments.misses)
    return 1 if measured.failed else 0


def _json(measured: Retrieval, *, misses: bool) -> dict[str, Any]:
    from hyce.evaluate.finding.measured import groups_json

    document: dict[str, Any] = {
        "questions": len(measured.measured),
        "unanswerable": measured.unanswerable,
        "left_out": measured.left_out,
        "failed": [{"id": each.question.id, "error": each.error} for each in measured.failed],
        "figures": groups_json(measured.groups),
    }
    if misses:
        document["misses"] = [_miss_json(each) for each in measured.measured if each.missed]
    return document


def _miss_json(miss: Measured) -> dict[str, Any]:
    question = miss.question
    return {
        "id": question.id,
        "kind": question.kind,
        "question": question.question,
        "wanted": [
            {"path": piece.path, "quote": piece.quote, "rank": rank} for piece, rank in miss.lacking()
        ],
        "found": [
            {
                "rank": hit.rank,
                "source": hit.passage.source,
                "path": hit.passage.path,
                "heading": " > ".join(hit.passage.heading),
            }
            for hit in miss.found.hits[:SHOWN]
        ],
    }


def _show(measured: Retrieval, terminal: Terminal, *, misses: bool) -> None:
    from hyce.cli.evaluate.tables import by_kind, meant
    from hyce.evaluate.finding.measured import ALL, sizes
    from hyce.evaluate.finding.retrieval import BY_KIND, FIGURES
    from hyce.evaluate.report.wording import number

    counts = {
        "without an answer": measured.unanswerable,
        "left out, labelled for commands alone": measured.left_out,
        "failed": len(measured.failed),
    }
    measured_ones = number(len(measured.measured), "question with evidence", "questions with evidence")
    said = ", ".join([measured_ones, *(f"{count} {what}" for what, count in counts.items() if count)])
    terminal.print(f"{said}; fractions with 95 % intervals", style="bold")
    if measured.measured:
        names = FIGURES if terminal.verbose else BY_KIND
        terminal.table(meant(measured.groups[ALL], MEANINGS))
        terminal.print()
        terminal.table(by_kind(measured.groups, sizes(measured.measured), names))
    missed = [each for each in measured.measured if each.missed]
    misses_said = number(len(missed), "question misses", "questions miss")
    if misses:
        terminal.print(f"\n{misses_said} evidence within 2000 words", style="bold")
        for each in missed:
            _show_miss(each, terminal)
    elif missed:
        terminal.note(f"{misses_said} evidence within 2000 words; --misses lists them")


def _show_miss(miss: Measured, terminal: Terminal) -> None:
    question = miss.question
    terminal.print(f"\n{question.id} ({question.kind}) {' '.join(question.question.split())}", style="bold")
    for piece, rank in miss.lacking():
        later = f" (rank {rank})" if rank else ""
        terminal.print(f"    wanted  {piece.path}{later}: {_begin(piece.quote)}")
    for hit in miss.found.hits[:SHOWN]:
        heading = " > ".join(hit.passage.heading) or hit.passage.title
        terminal.print(f"    found   {hit.passage.path}: {_begin(heading)}", style="cyan")


def _begin(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 100 else f"{line[:99]}…"
