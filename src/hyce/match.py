"""A question -> the commands that answer it, with their parameters (HyCE).

Command lines and questions look nothing alike. What is compared instead is the hypothetical command: each
entry's description, and questions that it answers, in one vector space with the user's question.

    score      of an entry: a fifth of its description's similarity, the rest from its nearest questions
               (0.6 the nearest, 0.4 the mean of the nearest three: one odd example must not decide alone)
    chosen     the best entry, when it reaches the threshold and no question of the kind that only
               documentation answers is nearer; others within MARGIN of it beside it

The weights were chosen on benchmarks/data/routing_own.jsonl.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hyce import catalogue, values
from hyce.config import Config, cache_folder, index_folder, models_folder
from hyce.embed import Embedder, OnnxEmbedder
from hyce.example_vectors import example_vectors, remove_others
from hyce.models import find
from hyce.records import Command, Match, Routing
from hyce.refuse import why_refused
from hyce.run import available

THRESHOLD = 0.33
MARGIN = 0.01
"""How near to the best score another entry's must be to run beside it."""
NAMED = 0.1
"""Added to an entry whose parameters the question names: "job 48213" is about that one job."""
HOW_TO = 0.15
"""Taken from every entry when the question asks how something is done or what it means."""

_HOW_TO = re.compile(
    r"\bhow\s+(?:do|does|can|could|should|would|might|must|to)\b|\bwhat\s+(?:does|do|is|are)\b[^?]*\bmean"
    r"|\bmeaning\s+of\b|\bdifference\s+between\b|\bstands?\s+for\b|\bis\s+it\s+(?:possible|allowed)\b"
    r"|\bwhat\s+happens\b|\bam\s+i\s+allowed\b|\bcan\s+i\b.*\buse\b|\bexplain\b|\bexamples?\b|\bshould\s+i\b"
    r"|\bam\s+i\s+(?:meant|supposed)\b|\bwhat\s+is\s+an?\b|\bbest\s+way\b|\brecommended\b|\bsteps\b|\bprocedure\b"
    r"|\btutorial\b|\bguide\b|\bwhich\s+command\b|\bmay\s+i\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Where an entry's texts are among the vectors."""

    description: int
    questions: slice


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
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        """cache: folder for the vectors; caches: further ones that are only read.
        documentation: questions that no command answers.
        scheduler: the batch system whose entries are offered, None for all; offered: further entries
        to leave out, such as those that can't run here. report: is told of longer work."""
        self._commands = tuple(commands)
        self._embedder = embedder
        self._caches = (*([cache] if cache else []), *caches)
        self._write = cache is not None
        self._documentation = tuple(documentation)
        self._threshold = threshold
        self._most = most
        self._scheduler = scheduler
        self._report = report
        self._offered = tuple(offered(command) for command in self._commands)
        self._texts, self._rows = _layout(self._commands)
        self._vectors: NDArray[np.float32] | None = None

    def match(self, question: str, *, scheduler: str | None = None) -> Routing:
        """The commands that would run, best first; none where none answers; or why none may run.

        scheduler: the batch system that this question is about, in place of the matcher's own.
        """
        refused = why_refused(question)
        if refused:
            return Routing(refused=refused)
        matches, documentation = self._scores(question, scheduler or self._scheduler)
        penalty = HOW_TO if _HOW_TO.search(question) else 0.0
        if not matches or matches[0].score - penalty < max(self._threshold, documentation):
            return Routing()
        least = max(self._threshold, matches[0].score - MARGIN)
        return Routing(commands=tuple(match for match in matches[: self._most] if match.score >= least))

    def keep_vectors(self, folder: Path) -> None:
        """Store the vectors of the catalogue's texts in a folder that readers are given in `caches`."""
        texts = [*self._texts, *self._documentation]
        self._vectors = example_vectors(texts, self._embedder, [folder], report=self._report)
        remove_others(folder, texts, self._embedder)

    def _scores(self, question: str, scheduler: str | None) -> tuple[list[Match], float]:
        """Every entry that could answer, best first, and the score of what only documentation answers."""
        candidates = [
            (position, command, params)
            for position, command in enumerate(self._commands)
            if self._offered[position] and (scheduler is None or command.scheduler in (None, scheduler))
            for params in [values.find_all(command, question)]
            if params is not None
        ]
        # The question as it stands, and once for each kind of value that it names.
        wordings = {question: 0}
        for _, _, params in candidates:
            wordings.setdefault(values.generalised(question, params), len(wordings))
        asked = np.stack([embedding.vector for embedding in self._embedder.embed(list(wordings))])
        similarity = asked @ self._example_vectors().T
        matches = []
        for position, command, params in candidates:
            wording = wordings[values.generalised(question, params)]
            nearest = np.maximum(similarity[0], similarity[wording])
            rows = self._rows[position]
            score = _mixed(nearest[rows.questions], nearest[rows.description])
            matches.append(Match(command, params, min(1.0, score + (NAMED if params else 0.0))))
        matches.sort(key=lambda match: -match.score)
        documentation = similarity[0, len(self._texts) :]
        return matches, _mixed(documentation) if len(documentation) else -1.0

    def _example_vectors(self) -> NDArray[np.float32]:
        if self._vectors is None:
            texts = [*self._texts, *self._documentation]
            self._vectors = example_vectors(
                texts, self._embedder, self._caches, write=self._write, report=self._report
            )
        return self._vectors


def _layout(commands: Sequence[Command]) -> tuple[list[str], list[_Rows]]:
    """The texts of all entries, and where each entry's are among them."""
    texts: list[str] = []
    rows: list[_Rows] = []
    for command in commands:
        texts.append(command.description)
        texts += [
            values.generalised(text, values.find_all(command, text) or {}) for text in command.questions
        ]
        rows.append(
            _Rows(
                len(texts) - len(command.questions) - 1,
                slice(len(texts) - len(command.questions), len(texts)),
            )
        )
    return texts, rows


def _mixed(questions: NDArray[np.float32], description: float | None = None) -> float:
    """One score from an entry's similarities; see the module's docstring."""
    nearest = np.sort(questions)[::-1]
    score = 0.6 * float(nearest[0]) + 0.4 * float(nearest[:3].mean())
    return score if description is None else 0.8 * score + 0.2 * float(description)


def open_matcher(
    config: Config,
    *,
    embedder: Embedder | None = None,
    scheduler: str | None = None,
    assume_available: bool = False,
    report: Callable[[str], None] = lambda _: None,
) -> Matcher:
    """A matcher for these settings.

    embedder: one that is loaded already. scheduler: in place of site.scheduler.
    assume_available: offer entries whose programs are not on this machine as well.
    Raises CatalogueError and ModelError.
    """
    commands = list(catalogue.load_for(config).values())
    if embedder is None:
        files = find(config.model.name, config.model.precision, models_folder(config))
        embedder = OnnxEmbedder(files, config.model.threads)
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
