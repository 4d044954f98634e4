"""Figures as rows of text, for Terminal.table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hyce.cli.terminal import Terminal
from hyce.evaluate.finding.measured import ALL, Figure, Figures, Groups
from hyce.evaluate.report.compare import Comparison
from hyce.evaluate.report.scores import Line, Summary
from hyce.evaluate.report.tables import comparison_table, not_judged
from hyce.evaluate.report.wording import NONE, percent, share
from hyce.evaluate.running.cost import Cost

Rows = Sequence[Sequence[str]]


# -- of retrieval, routing and a gate --------------------------------------------------------------------


def meant(figures: Figures, meanings: Mapping[str, str]) -> Rows:
    """Each figure with what it means, in the order of the meanings."""
    return [(name, cell(figures[name]), said) for name, said in meanings.items() if name in figures]


def by_kind(groups: Groups, sizes: Mapping[str, int], names: Sequence[str]) -> Rows:
    """A row a kind, a column a figure. sizes: how many questions each group has."""
    kinds = {group: figures for group, figures in groups.items() if group != ALL}
    shown = [name for name in names if any(name in figures for figures in kinds.values())]
    return [
        ("by kind", *shown),
        *(
            (f"{kind} ({sizes[kind]})", *(cell(figures.get(name)) for name in shown))
            for kind, figures in kinds.items()
        ),
    ]


def cell(figure: Figure | None) -> str:
    """The figure with its interval."""
    return f"{figure.value:.3f} [{figure.low:.2f}, {figure.high:.2f}]" if figure else NONE


# -- before anything is sent -----------------------------------------------------------------------------


def costs(taken: Mapping[str, Cost]) -> Rows:
    """What the model of each role is about to be asked."""
    return [
        ("about", "calls", "tokens sent", "tokens written"),
        *(
            (role, *map(str, (cost.calls, cost.prompt_tokens, cost.completion_tokens)))
            for role, cost in taken.items()
        ),
    ]


# -- of a run --------------------------------------------------------------------------------------------


def show_scores(summary: Summary, terminal: Terminal) -> None:
    """Print the score of each variant, and warn of what must be known to read it."""
    headings = ("Variant", "Eval Score", "Correct", "Faithful", "Previous", "Baseline", "Not judged")
    terminal.table([headings, *map(_scores, summary.variants)])
    for note in summary.notes:
        terminal.warn(note)


def _scores(line: Line) -> tuple[str, ...]:
    if line.unavailable:
        return (line.name, f"not available: {line.unavailable}")
    scores = line.scores
    parts = (each.value if each else None for each in (scores.correctness, scores.faithfulness))
    steps = (f"{100 * each.value:+.1f}" if each else NONE for each in (line.previous, line.baseline))
    return (line.name, share(scores.score), *map(percent, parts), *steps, not_judged(line))


def compared(comparison: Comparison) -> Rows:
    """The scores of two runs side by side: the columns that fit on a terminal, without intervals."""
    return [
        ("Variant", "Before", "After", "Difference", "Better", "Worse", "p"),
        *(
            (row[0], row[1].split()[0], row[2].split()[0], *row[3:7])
            for row in comparison_table(comparison).rows
        ),
    ]
