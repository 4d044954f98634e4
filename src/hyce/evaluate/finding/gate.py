"""Figures, thresholds and a stored baseline -> whether anything got worse than a site wants it.

A figure must reach its threshold, and may not be below the baseline by more than the tolerance. One that
isn't defined, because there are no such questions, fails: what isn't checked must not look as if it held.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hyce.config import Config
from hyce.errors import HyceError, UsageError
from hyce.evaluate.finding import gate_file, retrieval, routing
from hyce.evaluate.finding.baseline import AGAIN, Baseline
from hyce.evaluate.finding.gate_file import MAIN, RETRIEVAL, Gate, Section
from hyce.evaluate.finding.measured import ALL, Figure, Figures, Groups, Unasked
from hyce.evaluate.leaving import may_be_searched
from hyce.evaluate.records import Question
from hyce.evaluate.report.scores import Estimate, Line, Scores
from hyce.evaluate.report.summary import summarise
from hyce.evaluate.report.wording import number
from hyce.evaluate.running.runs import read_run
from hyce.evaluate.sets import asked, read_sets
from hyce.evaluate.work import Show

_ROUNDING = 1e-6
"""A baseline is stored to six digits."""


@dataclass(frozen=True, slots=True)
class Taken:
    """The figures of a section."""

    groups: Groups
    questions: str
    """Digest of what was asked: figures of other questions can't be compared."""
    problems: tuple[str, ...] = ()
    """Why they don't stand for all questions."""


@dataclass(frozen=True, slots=True)
class Check:
    """A figure, and what it must be."""

    section: str
    group: str
    name: str
    figure: Figure | None
    threshold: float | None
    baseline: float | None
    tolerance: float
    compared: bool = False
    """Whether there is a stored baseline."""

    @property
    def title(self) -> str:
        kind = "" if self.group == ALL else f"{self.group} "
        return f"{self.section} {kind}{self.name}"

    @property
    def fell(self) -> str:
        """What is wrong with it; empty where nothing is."""
        if self.figure is None:
            return f"{self.title}: can't be computed, there are no such questions"
        value = self.figure.value
        if self.compared and self.threshold is None and self.baseline is None:
            return f"{self.title}: {value:.4f}, which the baseline doesn't hold; {AGAIN}"
        wanted = []
        if self.threshold is not None and value < self.threshold - _ROUNDING:
            wanted.append(f"at least {self.threshold:.4f}")
        if self.baseline is not None and value < self.baseline - self.tolerance - _ROUNDING:
            wanted.append(f"at most {self.tolerance:g} below the baseline's {self.baseline:.4f}")
        return f"{self.title}: {value:.4f}, wanted {' and '.join(wanted)}" if wanted else ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a gate found."""

    checks: tuple[Check, ...]
    problems: tuple[str, ...]

    @property
    def fell(self) -> tuple[str, ...]:
        """One line for each thing that is wrong; a gate without any is passed."""
        return (*self.problems, *(check.fell for check in self.checks if check.fell))


# -- figures ---------------------------------------------------------------------------------------------


def take(gate: Gate, section: Section, config: Config, show: Show, report: Callable[[str], None]) -> Taken:
    """The figures of a section. Raises HyceError where it can't be measured at all."""
    if section.name == gate_file.RUN:
        return _of_run(gate, section, report)
    sets = may_be_searched(read_sets(gate.paths(section)), config, report)
    questions = asked(sets)
    if section.name == RETRIEVAL:
        if not any(map(retrieval.has_evidence, questions)):
            raise UsageError(f"{gate.file}: [retrieval]: no question says where its answer stands")
        k = section.settings.get("k", retrieval.K)
        found = retrieval.measure_index(config, sets, k, show=show, report=report)
        return Taken(found.groups, digest(questions, section.settings), _failures(section.name, found.failed))
    if all(routing.accepted(question) is None for question in questions):
        raise UsageError(f"{gate.file}: [routing]: no question says which commands answer it")
    chosen = routing.measure_catalogue(
        config,
        questions,
        scheduler=section.settings.get("scheduler"),
        assume_available=section.settings.get("assume_available", False),
        show=show,
        report=report,
    )
    return Taken(chosen.groups, digest(questions, section.settings), _failures(section.name, chosen.failed))


def digest(questions: Sequence[Question], settings: Mapping[str, Any]) -> str:
    """sha256 (hex) of the questions, whatever files they stand in, and of how they are asked."""
    how = sorted((name, value) for name, value in settings.items() if name != "questions")
    asked = repr([*map(_asked, questions), *how])
    return hashlib.sha256(asked.encode("utf-8", "replace")).hexdigest()


def _asked(question: Question) -> tuple[object, ...]:
    evidence = [(piece.path, piece.quote) for piece in question.evidence]
    params = sorted(question.params.items())
    return question.question, question.kind, evidence, question.accept, params, question.site


def _failures(section: str, failed: Sequence[Unasked]) -> tuple[str, ...]:
    return tuple(f"{section}: {each.question.id} could not be asked: {each.error}" for each in failed)


def _of_run(gate: Gate, section: Section, report: Callable[[str], None]) -> Taken:
    """The figures of one variant of a run."""
    run = read_run(gate.file.parent / section.settings["folder"])
    lines = {line.name: line for line in summarise(run).variants}
    name = section.settings["variant"]
    if name not in lines:
        raise UsageError(f"{gate.file}: [run]: no such variant: {name}{gate_file.suggest(name, list(lines))}")
    line = lines[name]
    if line.unavailable:
        raise HyceError(f"{name}: could not be run: {line.unavailable}")
    return Taken(
        run_groups(line),
        run.set.digest,
        tuple(_lost(line, section.settings.get("lost", gate_file.LOST), report)),
    )


def _lost(line: Line, most: float, report: Callable[[str], None]) -> Iterator[str]:
    """Why the figures of a run don't stand for all answers. A few without a verdict are only reported."""
    counts = line.counts
    if counts.missing:
        what = number(counts.missing, "answer is", "answers are")
        yield f"run: {what} missing; run the same `hyce evaluate run` again"
    unjudged = counts.judge_failed + counts.unparseable + counts.withheld
    lost = {"failed": counts.failed, "were not judged": unjudged}
    said = " and ".join(f"{count} {what}" for what, count in lost.items() if count)
    text = f"{line.name}: of {counts.answers} answers {said}; they are in no figure"
    if sum(lost.values()) > most * counts.answers:
        yield f"run: {text}, and {most:g} of all is the most (lost)"
    elif said:
        report(text)


def run_groups(line: Line) -> Groups:
    """The figures of a variant, over all questions that are scored, and by kind."""
    groups = {ALL: _scores(line.scores)}
    if line.abstained:
        groups[ALL]["abstained"] = _figure(line.abstained)
    kinds = {**line.by_kind, **line.apart}
    return groups | {kind: _scores(scores) for kind, scores in kinds.items()}


def _scores(scores: Scores) -> dict[str, Figure]:
    by_name = {
        "eval_score": scores.score,
        "correctness": scores.correctness,
        "faithfulness": scores.faithfulness,
    }
    return {name: _figure(estimate) for name, estimate in by_name.items() if estimate}


def _figure(estimate: Estimate) -> Figure:
    return Figure(estimate.value, estimate.low, estimate.high, estimate.questions)


# -- checks ----------------------------------------------------------------------------------------------


def outcome(gate: Gate, taken: Mapping[str, Taken], stored: Baseline | None) -> Outcome:
    """What holds and what fell. stored: None where nothing is compared."""
    checks: list[Check] = []
    problems: list[str] = []
    for section in gate.sections:
        own = taken[section.name]
        problems += own.problems
        wanted = list(_checks(gate, section, own.groups, stored))
        checks += wanted
        if not wanted:
            problems.append(f"{section.name}: no figure of it can be computed, so nothing is checked")
    return Outcome(tuple(checks), tuple(problems))


def _checks(gate: Gate, section: Section, groups: Groups, stored: Baseline | None) -> Iterator[Check]:
    before = stored.figures if stored else {}
    watched = dict.fromkeys(section.thresholds)
    if gate.baseline:
        watched |= {
            (ALL, name): None
            for name in MAIN[section.name]
            if name in groups.get(ALL, {}) or (section.name, ALL, name) in before
        }
    for group, name in watched:
        figures: Figures = groups.get(group, {})
        yield Check(
            section.name,
            group,
            name,
            figures.get(name),
            section.thresholds.get((group, name)),
            before.get((section.name, group, name)),
            gate.tolerance,
            compared=stored is not None,
        )


def to_store(taken: Mapping[str, Taken], found: Outcome) -> Baseline:
    """The figures that were checked, as a baseline."""
    return Baseline(
        {name: each.questions for name, each in taken.items()},
        {
            (check.section, check.group, check.name): check.figure.value
            for check in found.checks
            if check.figure
        },
    )
