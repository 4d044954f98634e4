"""How near questions are to command lines, and to descriptions of the commands: the paper's first table.

For each question the best score over all lines and over all descriptions, and their means (section 3.3).
A score's scale is its model's own, and a higher mean doesn't say that the right command is found, so ranks
stand beside the means: where the right command is among the lines, and among the descriptions.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hyce.errors import CatalogueError, HyceError, ModelError
from hyce.evaluate.finding.encoders import LABELS, Encoder, Output
from hyce.evaluate.records import COMMAND, Question
from hyce.evaluate.statistics import interval, share_interval
from hyce.records import Command, command_line
from hyce.rerank import Reranker

TEN = Path(__file__).with_name("ten_commands.toml")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A command to compare questions with."""

    line: str
    """As a person would type it."""
    description: str
    answers: frozenset[str]
    """Ids of the catalogue entries that tell what it tells."""
    scheduler: str | None = None
    """The batch system that it belongs to; None where it is compared with every question."""


@dataclass(frozen=True, slots=True)
class CommandSet:
    """Commands that compete with each other."""

    name: str
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class Nearest:
    """One question and one set of commands. Ranks count from 1; None where no candidate is labelled right."""

    line: float
    """Best score over the lines."""
    description: float
    line_rank: int | None
    """Of the right command by its line."""
    description_rank: int | None


@dataclass(frozen=True, slots=True)
class Means:
    """The paper's figures: means of the best scores."""

    questions: int
    line: float
    description: float
    difference: float
    """description - line."""
    description_nearer: int
    """Questions that are nearer to a description than to any line."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean over questions with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Ranks:
    """Where the right command is, by lines or by descriptions."""

    reciprocal: Figure
    """Mean reciprocal rank (MRR)."""
    first: Figure
    """Share of the questions whose first command is right."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One model and one set of commands."""

    commands: str
    """Name of the set."""
    all: Means
    command: Means | None
    """Over the questions for commands alone; None where there are none."""
    ranked: int
    """Questions for commands of which a candidate is known to be right; what follows is over them."""
    unlabelled: int
    """The other questions for commands, which have no rank."""
    line: Ranks | None
    description: Ranks | None
    difference: Figure | None
    """Of the two MRR, description - line, question by question."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What came of one model."""

    name: str
    kind: str
    output: Output
    where: str
    unavailable: str = ""
    """Why nothing came of it, and what to do."""
    compared: tuple[Compared, ...] = ()


def catalogue_set(entries: Iterable[Command]) -> CommandSet:
    """The entries of a catalogue."""
    return CommandSet(
        "catalogue",
        tuple(
            Candidate(
                command_line(entry.argv, entry.also),
                entry.description,
                frozenset({entry.id}),
                entry.scheduler,
            )
            for entry in entries
        ),
    )


def ten_set() -> CommandSet:
    """Ten commands like those of the published code. All compete for every question, as they do there."""
    rows = tomllib.loads(TEN.read_text(encoding="utf-8"))["command"]
    return CommandSet(
        "ten",
        tuple(Candidate(row["line"].strip(), row["description"], frozenset(row["same_as"])) for row in rows),
    )


def is_for_command(question: Question) -> bool:
    """Whether a command answers it: it is labelled with one, or was made from one."""
    return bool(question.accept) or question.kind == COMMAND


def measure(
    encoder: Encoder,
    questions: Sequence[Question],
    sets: Sequence[CommandSet],
    *,
    scheduler: str | None = None,
    step: Callable[[], None] = lambda: None,
) -> Measured:
    """One model's figures. What its endpoint or its files do wrong leaves it unmeasured, with the reason.

    scheduler: of the site, for questions that don't say theirs; None lets the commands of all compete.
    step: called when a question is done.
    """
    about = (encoder.name, LABELS[encoder.kind], encoder.output, encoder.where)
    if encoder.model is None:
        return Measured(*about, unavailable=encoder.unavailable)
    found: list[list[Nearest]] = []
    try:
        for question in questions:
            found.append(nearest(encoder.model, question, sets, question.site or scheduler))
            step()
    except HyceError as error:
        return Measured(*about, unavailable=str(error))
    activate = _sigmoid if encoder.output == "sigmoid" else float
    return Measured(
        *about,
        compared=tuple(
            compare(commands.name, questions, each, activate)
            for commands, each in zip(sets, zip(*found, strict=True), strict=True)
        ),
    )


def nearest(
    model: Reranker, question: Question, sets: Sequence[CommandSet], scheduler: str | None
) -> list[Nearest]:
    """For each set, how near the question is to it. scheduler: whose commands compete; None: everybody's.

    Raises ModelError where a score is no number, CatalogueError where no command competes, and what the
    model raises.
    """
    rivals = [_rivals(commands, scheduler) for commands in sets]
    texts = [text for each in rivals for one in each for text in (one.line, one.description)]
    unique = list(dict.fromkeys(texts))
    scores = np.asarray(model.score(question.question, unique), np.float64)
    if not np.isfinite(scores).all():
        raise ModelError("it gives scores that are no numbers; get it anew, or take another model")
    known = dict(zip(unique, scores.tolist(), strict=True))
    accepted = frozenset(question.accept or ())
    found = []
    for each in rivals:
        lines = np.array([known[one.line] for one in each])
        descriptions = np.array([known[one.description] for one in each])
        right = np.array([not accepted.isdisjoint(one.answers) for one in each])
        ranks = rank(lines, right), rank(descriptions, right)
        found.append(Nearest(float(lines.max()), float(descriptions.max()), *ranks))
    return found


def rank(scores: NDArray[np.float64], right: NDArray[np.bool_]) -> int | None:
    """The rank of the best of the right ones, from 1; None where none is right.

    A wrong one with the same score counts as before it: a model that scores all alike has found nothing.
    """
    if not right.any():
        return None
    return 1 + int((scores[~right] >= scores[right].max()).sum())


def compare(
    name: str, questions: Sequence[Question], found: Sequence[Nearest], activate: Callable[[float], float]
) -> Compared:
    """The figures of one set. activate: what is put on a score before it is averaged."""
    commands = [each for question, each in zip(questions, found, strict=True) if is_for_command(question)]
    lines = [each.line_rank for each in commands if each.line_rank]
    descriptions = [each.description_rank for each in commands if each.description_rank]
    better = [1 / after - 1 / before for before, after in zip(lines, descriptions, strict=True)]
    return Compared(
        commands=name,
        all=_means(found, activate),
        command=_means(commands, activate) if commands else None,
        ranked=len(lines),
        unlabelled=len(commands) - len(lines),
        line=_ranks(lines) if lines else None,
        description=_ranks(descriptions) if descriptions else None,
        difference=_figure(better) if better else None,
    )


def _means(found: Sequence[Nearest], activate: Callable[[float], float]) -> Means:
    line = float(np.mean([activate(each.line) for each in found]))
    description = float(np.mean([activate(each.description) for each in found]))
    nearer = sum(each.description > each.line for each in found)
    return Means(len(found), line, description, description - line, nearer)


def _ranks(ranks: Sequence[int]) -> Ranks:
    return Ranks(_share([1 / each for each in ranks]), _share([float(each == 1) for each in ranks]))


def _share(values: Sequence[float]) -> Figure:
    return Figure(float(np.mean(values)), *share_interval(values))


def _figure(values: Sequence[float]) -> Figure:
    return Figure(float(np.mean(values)), *interval(values))


def _rivals(commands: CommandSet, scheduler: str | None) -> list[Candidate]:
    """Those that compete on a site with this batch system."""
    found = [one for one in commands.candidates if not scheduler or one.scheduler in (None, scheduler)]
    if not found:
        raise CatalogueError(f"{commands.name}: no command is for {scheduler or 'any site'}; enable one")
    return found


def _sigmoid(score: float) -> float:
    return float((1 + np.tanh(score / 2)) / 2)  # the same as 1 / (1 + exp(-score)), which may overflow
