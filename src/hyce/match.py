"""A question -> the commands that answer it, with their parameters (HyCE).

Command lines and questions look nothing alike. What is compared instead is the hypothetical command: each
entry's description, and questions that it answers, in one vector space with the user's question. Questions
that only documentation answers are one more answer among the entries. `score.py` weighs them all up.

    none       documentation is the likeliest answer, or no entry reaches the threshold
    one        the likeliest entry
    several    others within MARGIN of it beside it
    ask back   the likeliest entry by far needs a value that the question doesn't hold: the entry that the
               parameter names for this case runs instead, or the user is asked for the value
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hyce import catalogue, values
from hyce.catalogue import Catalogue
from hyce.config import Config, cache_folder, index_folder
from hyce.embed import Embedder, open_embedder
from hyce.example_vectors import example_vectors, example_weights, keep_vectors, keep_weights
from hyce.languages import ENGLISH, english_only, of_question
from hyce.records import Command, Match, Routing
from hyce.refuse import why_refused
from hyce.run import available
from hyce.score import Likeness, background, stretched

THRESHOLD = 0.15
MARGIN = 0.01
"""How near to the best score another entry's must be to run beside it."""
NAMED = 0.05
"""Added to an entry whose parameter the question names."""
NUMBERED = 0.1
"""The same for a value with a number: "job 48213" is about that job, "my Python job" isn't about Python."""
DESCRIBED = 0.1
"""Taken from the cosine of a description, by which an entry without questions is judged as well: little is
learnt from one text."""
NOT_ENGLISH = (
    "No command was run: the embedding model knows English alone, and the question seems to be in another "
    "language. Ask in English for the present state of things."
)
MISSING = 0.1
"""How far an entry whose value is missing must be ahead for the question to be about nothing else."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An entry that is offered, with its values from the question; None where one is missing."""

    command: Command
    params: dict[str, str] | None
    score: float


@dataclass(frozen=True, slots=True)
class _Field:
    """The entries that compete on one cluster, and what scores them."""

    positions: tuple[int, ...]
    """Of the entries in the catalogue; the scores are in this order, documentation's is the last."""
    likeness: Likeness
    weights: NDArray[np.float32]


class Matcher:
    """Finds the commands that answer a question. Texts are embedded at the first question."""

    def __init__(
        self,
        commands: Sequence[Command],
        embedder: Embedder,
        *,
        cache: Path | None = None,
        caches: Sequence[Path] = (),
        documentation: Sequence[str] = (),
        threshold: float = THRESHOLD,
        most: int = 2,
        scheduler: str | None = None,
        offered: Callable[[Command], bool] = lambda _: True,
        english_only: bool = False,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        """cache: folder for vectors and what is learnt from them; caches: further ones that are only read.
        documentation: questions that no command answers.
        scheduler: the batch system whose entries are offered, None for all; offered: further entries
        to leave out, such as those that can't run here. english_only: whether the embedder knows no other
        language. report: is told of longer work."""
        self._commands = tuple(commands)
        self._embedder = embedder
        self._caches = (*([cache] if cache else []), *caches)
        self._write = cache is not None
        self._documentation = tuple(documentation)
        self._threshold = threshold
        self._most = most
        self._scheduler = scheduler
        self._english_only = english_only
        self._report = report
        self._offered = tuple(offered(command) for command in self._commands)
        self._texts, self._examples = _layout(self._commands, self._documentation)
        self._row = {text: row for row, text in enumerate(self._texts)}
        self._vectors: NDArray[np.float32] | None = None
        self._fields: dict[frozenset[str], _Field] = {}

    def match(self, question: str, *, scheduler: str | None = None) -> Routing:
        """The commands that would run, best first; none where none answers; or why none may run.

        scheduler: the batch system that this question is about, in place of the matcher's own.
        """
        refused = why_refused(question)
        if refused:
            return Routing(refused=refused)
        routing = self._matched(question, scheduler)
        foreign = self._english_only and of_question(question) not in ("", ENGLISH)
        if foreign and (routing.commands or routing.ask_back):
            # What led to a command is a word that looks alike: as often to a wrong one as to the right.
            return Routing(notices=(NOT_ENGLISH,))
        return routing

    def _matched(self, question: str, scheduler: str | None) -> Routing:
        """What the scores lead to."""
        candidates, documentation = self._ranked(question, scheduler)
        needed = max(self._threshold, documentation)
        if not candidates or candidates[0].score < needed:
            return Routing()
        best = candidates[0].score
        able = _matches(candidates)
        if candidates[0].params is None:
            needed = max(needed, best - MISSING)
            if not able or able[0].score < needed:
                return self._without_value(candidates[0], question)
        least = max(needed, able[0].score - MARGIN)
        return Routing(commands=tuple(match for match in able[: self._most] if match.score >= least))

    def nearest(self, question: str, most: int, *, scheduler: str | None = None) -> list[Match]:
        """The likeliest entries, best first, whether or not the question holds the values that they need."""
        candidates, _ = self._ranked(question, scheduler)
        return [Match(each.command, each.params or {}, each.score) for each in candidates[:most]]

    def by_description(self, question: str, *, scheduler: str | None = None) -> list[Match]:
        """Every entry that could run, with the cosine of its description and the question as its score."""
        cosine = self._text_vectors() @ self._embed([question])[0]
        rows = {command.id: row for row, command in enumerate(self._commands)}
        candidates, _ = self._ranked(question, scheduler)
        matches = [
            Match(match.command, match.params, float(cosine[rows[match.command.id]]))
            for match in _matches(candidates)
        ]
        return sorted(matches, key=lambda match: -match.score)

    @cached_property
    def background(self) -> float:
        """Mean cosine of two of the catalogue's texts (score.background)."""
        return background(self._text_vectors())

    def keep(self, folder: Path) -> None:
        """Store what is made of the catalogue's texts in a folder that readers are given in `caches`."""
        self._caches = (*self._caches, folder)
        field = self._field(None)
        keep_vectors(folder, self._texts, self._text_vectors(), self._embedder)
        _, texts, answers = self._examples_of(field.positions)
        keep_weights(folder, texts, answers, field.weights, self._embedder)

    def _without_value(self, best: _Candidate, question: str) -> Routing:
        """What a question leads to that is about an entry, but doesn't hold the value that it needs."""
        needed = [each for each in best.command.parameters if each.default is None]
        missing = [each for each in needed if values.find(best.command, each, question) is None]
        for command, offered in zip(self._commands, self._offered, strict=True):
            if offered and command.id == missing[0].instead and values.find_all(command, "") is not None:
                return Routing(commands=(Match(command, {}, best.score),))
        return Routing(ask_back=f"Please ask again and name: {missing[0].description}")

    def _ranked(self, question: str, scheduler: str | None) -> tuple[list[_Candidate], float]:
        """Every entry that is offered, best first, and the score of documentation as the answer."""
        if not self._commands:
            return [], 0.0
        field = self._field(scheduler)
        found = [values.find_all(self._commands[position], question) for position in field.positions]
        # The question as it stands, and once for each kind of value that it names.
        wordings = {question: 0}
        for params in found:
            wordings.setdefault(values.generalised(question, params or {}), len(wordings))
        asked = self._embed(list(wordings))
        scores = field.likeness.scores(list(wordings), asked, field.weights)
        candidates = []
        for answer, (position, params) in enumerate(zip(field.positions, found, strict=True)):
            wording = wordings[values.generalised(question, params or {})]
            score = max(scores[0, answer], scores[wording, answer]) + _named(params)
            if not self._commands[position].questions:
                cosine = self._text_vectors()[position] @ asked[0]
                score = max(score, stretched(cosine, field.likeness.background) - DESCRIBED)
            if self._offered[position]:
                candidates.append(_Candidate(self._commands[position], params, min(1.0, float(score))))
        candidates.sort(key=lambda candidate: -candidate.score)
        return candidates, float(scores[0, -1])

    def _field(self, scheduler: str | None) -> _Field:
        """The entries that compete. Those that can't run here compete too: what only they would answer
        is not for the next best to answer."""
        wanted = scheduler or self._scheduler
        offered = (command for command, yes in zip(self._commands, self._offered, strict=True) if yes)
        schedulers = {wanted} if wanted else {command.scheduler for command in offered}
        key = frozenset(name for name in schedulers if name)
        if key not in self._fields:
            positions = tuple(
                position
                for position, command in enumerate(self._commands)
                if command.scheduler is None or command.scheduler in key
            )
            self._fields[key] = self._fitted(positions)
        return self._fields[key]

    def _fitted(self, positions: tuple[int, ...]) -> _Field:
        rows, texts, answers = self._examples_of(positions)
        likeness = Likeness(texts, self._text_vectors()[rows])
        shape = (likeness.rows, len(positions) + 1)
        weights = example_weights(
            texts,
            answers,
            self._embedder,
            self._caches,
            lambda: likeness.fit(answers, shape[1]),
            shape=shape,
            write=self._write,
        )
        return _Field(positions, likeness, weights)

    def _examples_of(self, positions: tuple[int, ...]) -> tuple[list[int], list[str], NDArray[np.int64]]:
        """Rows of the texts, the texts, and the number of each one's answer, where these entries compete."""
        numbers = {position: number for number, position in enumerate(positions)}
        examples = [(row, numbers[entry]) for row, entry in self._examples if entry in numbers]
        documentation = [
            (row, len(positions)) for row, entry in self._examples if entry == len(self._commands)
        ]
        # No more of documentation's texts than of all entries together: a few would be drowned.
        examples += documentation[:: -(-len(documentation) // max(1, len(examples))) or 1]
        rows = [row for row, _ in examples]
        answers = np.array([answer for _, answer in examples], np.int64)
        return rows, [self._texts[row] for row in rows], answers

    def _embed(self, wordings: Sequence[str]) -> NDArray[np.float32]:
        """Their vectors; those of example questions are there already."""
        known = self._text_vectors()
        new = [text for text in wordings if text not in self._row]
        vectors = {
            text: embedding.vector
            for text, embedding in zip(new, self._embedder.embed(new, query=True), strict=True)
        }
        return np.stack([vectors[text] if text in vectors else known[self._row[text]] for text in wordings])

    def _text_vectors(self) -> NDArray[np.float32]:
        if self._vectors is None:
            self._vectors = example_vectors(
                self._texts,
                self._embedder,
                self._caches,
                descriptions=len(self._commands),
                write=self._write,
                report=self._report,
            )
        return self._vectors


def _layout(
    commands: Sequence[Command], documentation: Sequence[str]
) -> tuple[list[str], list[tuple[int, int]]]:
    """All texts, the entries' descriptions first, and examples: (row of its text, position of its entry).

    A text that several entries share stands once. Documentation has the position after the last entry.
    """
    texts = [command.description for command in commands]
    examples = [(row, row) for row in range(len(texts))]
    rows: dict[str, int] = {}
    asked = [
        (values.generalised(text, values.find_all(command, text) or {}), position)
        for position, command in enumerate(commands)
        for text in command.questions
    ]
    for text, position in [*asked, *((text, len(commands)) for text in documentation)]:
        if text not in rows:
            rows[text] = len(texts)
            texts.append(text)
        examples.append((rows[text], position))
    return texts, list(dict.fromkeys(examples))


def _named(params: Mapping[str, str] | None) -> float:
    if not params:
        return 0.0
    return NUMBERED if any(re.search(r"\d", value) for value in params.values()) else NAMED


def _matches(candidates: Iterable[_Candidate]) -> list[Match]:
    """Those that have all their values."""
    return [Match(each.command, each.params, each.score) for each in candidates if each.params is not None]


def open_matcher(
    config: Config,
    *,
    entries: Catalogue | None = None,
    embedder: Embedder | None = None,
    scheduler: str | None = None,
    assume_available: bool = False,
    report: Callable[[str], None] = lambda _: None,
) -> Matcher:
    """A matcher for these settings.

    entries, embedder: those that are loaded already. scheduler: in place of site.scheduler.
    assume_available: offer entries whose programs are not on this machine as well.
    Raises CatalogueError and ModelError.
    """
    commands = list((entries or catalogue.load_for(config)).values())
    embedder = embedder or open_embedder(config)
    configured = None if config.site.scheduler == "auto" else config.site.scheduler
    return Matcher(
        commands,
        embedder,
        cache=cache_folder(),
        caches=[index_folder(config)],
        documentation=catalogue.documentation_questions(),
        threshold=config.commands.threshold,
        most=config.commands.most,
        scheduler=scheduler or configured,
        offered=lambda command: assume_available or available(command, policy=config.policy) is None,
        english_only=english_only(config.model.name),
        report=report,
    )


def misrouted(matcher: Matcher, commands: Iterable[Command]) -> Iterator[tuple[str, str, str]]:
    """(entry, question, where it leads) for each example question that doesn't lead to its own entry."""
    for command in commands:
        for question in command.questions:
            routing = matcher.match(question, scheduler=command.scheduler)
            ids = [match.command.id for match in routing.commands]
            if command.id not in ids:
                yield command.id, question, ids[0] if ids else routing.refused or "no command"
