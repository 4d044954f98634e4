"""Questions with known commands -> how well commands are chosen for them.

first       share of the questions for a command whose first command is accepted
precision   share of all commands chosen for them that are accepted
recall      share of them for which an accepted command is chosen, in whatever place
f1          harmonic mean of the two
parameters  share of the questions that name a value whose first command is accepted and carries exactly
            the labelled values (an accepted one that isn't the best may take fewer of them)
quiet       share of the questions for no command for which none is chosen
traps       the same for traps: orders, other people's things, attacks
overall     share of all questions handled rightly: the first accepted, with its parameters, or none chosen
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hyce import catalogue
from hyce.config import Config
from hyce.errors import HyceError
from hyce.evaluate.finding.measured import (
    Figure,
    Groups,
    Unasked,
    Values,
    defined,
    drawn,
    grouped,
    mean,
    share,
)
from hyce.evaluate.records import DOCUMENT, TWO_PASSAGES, Question
from hyce.evaluate.report.wording import number
from hyce.evaluate.work import Pace, Show
from hyce.questions import check
from hyce.records import Match
from hyce.router import Route, open_routing

PARAMETER, TRAP = "parameter", "trap"
"""Kinds of labelled questions that have a figure of their own."""
FIGURES = ("first", "precision", "recall", "f1", "parameters", "quiet", "traps", "overall")
MAIN = ("first", "precision", "quiet", "overall")
"""Those that tell most."""


@dataclass(frozen=True, slots=True)
class Routed:
    """What a question led to."""

    question: Question
    accept: tuple[str, ...]
    """Ids of the commands that answer it, the best first; () where none may run."""
    commands: tuple[Match, ...]
    """Those chosen, best first."""
    refused: str = ""

    @property
    def accepted(self) -> tuple[bool, ...]:
        """Whether each command chosen is accepted."""
        return tuple(match.command.id in self.accept for match in self.commands)

    @property
    def first(self) -> bool:
        """Whether the first command is accepted."""
        return bool(self.commands) and self.accepted[0]

    @property
    def carries(self) -> bool:
        """Whether the first command is accepted and has the values it should."""
        if not self.first:
            return False
        chosen, wanted = self.commands[0], self.question.params
        if chosen.command.id == self.accept[0]:
            return dict(chosen.params) == dict(wanted)
        return chosen.params.items() <= wanted.items()

    @property
    def right(self) -> bool:
        """Whether it was handled rightly as a whole."""
        if not self.accept:
            return not self.commands
        return self.carries if self.question.kind == PARAMETER else self.first


@dataclass(frozen=True, slots=True)
class Choice:
    """How well commands are chosen."""

    groups: Groups
    routed: tuple[Routed, ...]
    left_out: int
    """Questions of which nobody has said which commands answer them."""
    failed: tuple[Unasked, ...]


def measure_catalogue(
    config: Config,
    questions: Sequence[Question],
    *,
    scheduler: str | None = None,
    assume_available: bool = False,
    show: Show,
    report: Callable[[str], None],
) -> Choice:
    """The figures of the configured catalogue, chosen from as `hyce match` does it.

    scheduler, assume_available: open_routing's. report: is told what to know. Raises what open_routing does.
    """
    for entry, ids in unknown_commands(questions, config).items():
        accepting = number(len(ids), "question accepts", "questions accept")
        report(f"{entry}: not in the catalogue, so it can't be chosen ({accepting} it)")
    with open_routing(config, scheduler=scheduler, assume_available=assume_available, report=report) as route:
        return measure(questions, route, show)


def measure(questions: Sequence[Question], route: Route, show: Show) -> Choice:
    """The figures of a way to choose commands. A question for which it fails is in no figure."""
    wanted = [(question, accept) for question in questions if (accept := accepted(question)) is not None]
    pace = Pace(show, len(wanted))
    routed: list[Routed] = []
    failed: list[Unasked] = []
    for question, accept in wanted:
        try:
            routing = route(check(question.question), question.site)
            routed.append(Routed(question, accept, routing.commands, routing.refused or ""))
        except HyceError as error:
            failed.append(Unasked(question, str(error)))
        pace.step("questions")
    return summarised(routed, failed, len(questions) - len(wanted))


def summarised(routed: Sequence[Routed], failed: Sequence[Unasked] = (), left_out: int = 0) -> Choice:
    """The figures of what questions led to."""
    groups = {group: _figures(rows) for group, rows in grouped(routed).items()}
    return Choice(groups, tuple(routed), left_out, tuple(failed))


def accepted(question: Question) -> tuple[str, ...] | None:
    """Ids of the commands that answer it, none for a question made from passages; None: nobody has said."""
    if question.accept is None and question.kind in (DOCUMENT, TWO_PASSAGES):
        return ()
    return question.accept


def unknown_commands(questions: Sequence[Question], config: Config) -> dict[str, list[str]]:
    """The accepted commands that the catalogue doesn't have, with the ids of their questions.

    Raises CatalogueError.
    """
    entries = catalogue.load_for(config)
    unknown: dict[str, list[str]] = {}
    for question in questions:
        for entry in question.accept or ():
            if entry not in entries:
                unknown.setdefault(entry, []).append(question.id)
    return unknown


def _figures(rows: Sequence[Routed]) -> dict[str, Figure]:
    answered = [row for row in rows if row.accept]
    none = [row for row in rows if not row.accept]
    counts = np.array(
        [(sum(row.accepted), len(row.commands), any(row.accepted), 1) for row in answered], np.float64
    ).reshape(len(answered), 4)
    return defined(
        {
            "first": mean(row.first for row in answered),
            "precision": drawn(_precision, counts),
            "recall": mean(any(row.accepted) for row in answered),
            "f1": drawn(_f1, counts),
            "parameters": mean(row.carries for row in answered if row.question.kind == PARAMETER),
            "quiet": mean(not row.commands for row in none if row.question.kind != TRAP),
            "traps": mean(not row.commands for row in none if row.question.kind == TRAP),
            "overall": mean(row.right for row in rows),
        }
    )


def _precision(counts: Values) -> float:
    """counts: a row a question: commands accepted, commands chosen, whether one is accepted, 1."""
    return share(counts[:, :2])


def _f1(counts: Values) -> float:
    precision, recall = _precision(counts), share(counts[:, 2:])
    return 2 * precision * recall / (precision + recall) if recall else 0.0
