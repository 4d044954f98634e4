"""A question -> all that there is to answer from: passages, commands and their output, what codes mean."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from hyce import explain, prompts
from hyce.config import Config
from hyce.decide import Decision
from hyce.records import (
    CommandOutput,
    Explanation,
    Hit,
    Match,
    Passage,
    Routing,
    Search,
    Turn,
    command_line,
)
from hyce.references import Reference, jobs_shown, resolve

Retrieve = Callable[[str], Sequence[Hit]]
Transform = Callable[[str], Search]
Decide = Callable[[str, Sequence[Turn]], Decision]
Route = Callable[[str, Sequence[Hit]], tuple[Routing, Sequence[Hit]]]
"""(question, passages) -> what runs, and the passages that stay beside it."""
Run = Callable[[Match], CommandOutput]

DESCRIPTIONS = "catalogue"
"""The source of descriptions that stand in for output (commands.run = false)."""

_AT_ONCE = 4
"""Commands run at the same time, at most."""

NEAR = 0.3
"""That cosine for all-MiniLM-L6-v2. Of 258 questions about three centres and the
sample documentation, the best passage of 1 in 100 was below it; of questions about cooking or football
nearly every one."""


@dataclass(frozen=True, slots=True)
class Stages:
    """What is called for a question."""

    retrieve: Retrieve
    """Searches for a text as it stands."""
    route: Route
    run: Run
    transform: Transform | None = None
    """Searches with a language model's help; None: without."""
    decide: Decide | None = None
    """Says whether documentation is needed; None: it always is."""
    near: float = NEAR
    """Cosine from which a passage may bear on a question at all."""
    today: datetime.date | None = None
    """The date that the model is told; None: today's."""

    def search(self, text: str) -> Search:
        """What is found for the text, with the help there is."""
        return self.transform(text) if self.transform else Search(tuple(self.retrieve(text)))


@dataclass(slots=True)
class Clock:
    """Milliseconds of each stage."""

    timings: dict[str, float] = field(default_factory=dict)
    start: float = field(default_factory=time.perf_counter)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Times what happens inside; time for the same stage adds up."""
        begin = time.perf_counter()
        yield
        self.add(name, (time.perf_counter() - begin) * 1000)

    def add(self, name: str, milliseconds: float) -> None:
        """Adds time to a stage, or takes it from one."""
        self.timings[name] = self.timings.get(name, 0.0) + milliseconds

    def stop(self) -> dict[str, float]:
        """The timings, with the total."""
        self.timings["total"] = (time.perf_counter() - self.start) * 1000
        return self.timings


@dataclass(frozen=True, slots=True)
class Found:
    """All that there is to answer from."""

    question: str
    search: Search
    hits: tuple[Hit, ...]
    routing: Routing
    matches: tuple[Match, ...]
    outputs: tuple[CommandOutput, ...]
    explanations: tuple[Explanation, ...]
    reference: Reference | None
    decision: Decision
    looked_up: bool
    """False where nothing was searched for and nothing ran, because the question needs no source."""
    near: float
    today: datetime.date

    @property
    def notices(self) -> tuple[str, ...]:
        """What the reader must know about how it was found."""
        found = self.reference
        meant = (f'"{found.phrase}" was taken to be job {found.job}.',) if found else ()
        return (*self.decision.notices, *self.search.notices, *meant, *self.routing.notices)

    @property
    def remarks(self) -> tuple[str, ...]:
        """The same for the model."""
        meant = (prompts.meant(self.reference.phrase, self.reference.job),) if self.reference else ()
        asked = (prompts.asked_back(self.routing.ask_back),) if self.routing.ask_back else ()
        return (*meant, *asked)

    @property
    def far(self) -> bool:
        """Whether nothing was found that could bear on the question."""
        asked_back = self.routing.ask_back is not None
        described = any(hit.passage.source == DESCRIPTIONS for hit in self.hits)
        nothing_else = not (self.outputs or described or asked_back) and bool(self.hits)
        return nothing_else and max(hit.similarity for hit in self.hits) < self.near

    @property
    def jobs(self) -> tuple[str, ...]:
        """Numbers of the jobs that the outputs show."""
        return jobs_shown(self.routing.commands, self.outputs)


def gather(question: str, config: Config, stages: Stages, turns: Sequence[Turn], clock: Clock) -> Found:
    """Passages, commands and their output, and what the codes in it mean.

    Where no documentation is needed, none is searched for, unless a command matches or is refused: then the
    question is about the cluster after all.
    """
    reference = resolve(question, turns)
    asked = reference.question if reference else question
    decision = Decision(True)
    if stages.decide and reference is None:
        with clock.stage("decide"):
            decision = stages.decide(question, turns)
    search = _search(question, stages, turns, clock) if decision.needed else Search(())
    with clock.stage("match"):
        routing, hits = stages.route(asked, search.hits)
    looked_up = decision.needed or _about_here(routing, config)
    if looked_up and not decision.needed:
        search = _search(question, stages, turns, clock)
        hits = search.hits
    elif not looked_up:
        # Where commands compete with passages, the two are one search, and there was none.
        routing = replace(routing, commands=(), supporting=())
    matches = _allowed(routing, config)
    if not config.commands.run:
        hits = [replace(hit, rank=n) for n, hit in enumerate((*_described(matches), *hits), 1)]
        matches = ()
    with clock.stage("run"):
        outputs = _run_all(matches, stages.run)
    with clock.stage("explain"):
        explanations = explain.explanations(outputs)
        about = explain.search_text(explanations)
        hits = _merged(hits, stages.retrieve(about)) if about else hits
    return Found(
        question,
        search,
        tuple(hits),
        routing,
        matches,
        outputs,
        explanations,
        reference,
        decision,
        looked_up,
        stages.near,
        stages.today or datetime.date.today(),
    )


def _about_here(routing: Routing, config: Config) -> bool:
    """Whether the routing shows that a question is about this cluster."""
    chosen = routing.commands and config.commands.matching != "joint"
    return bool(routing.refused or routing.ask_back or chosen)


def _search(question: str, stages: Stages, turns: Sequence[Turn], clock: Clock) -> Search:
    """The passages for the question; in a conversation, in turn with those for it and the one before.

    "And on the other cluster?" says nothing by itself, but "thanks, and how do I get a GPU?" says all. The
    language model is asked for its help once: for the two questions together.
    """
    with clock.stage("retrieve"):
        if turns:
            plain = stages.retrieve(question)
            search = stages.search(f"{turns[-1].question}\n{question}")
            search = replace(search, hits=_merged(plain, search.hits))
        else:
            search = stages.search(question)
    if stages.transform:
        clock.add("retrieve", -search.model_ms)
        clock.add("transform", search.model_ms)
    return search


def _merged(hits: Sequence[Hit], others: Sequence[Hit]) -> tuple[Hit, ...]:
    """Two rankings in turn, without what stands twice, as long as the first."""
    in_turn = [hit for pair in zip_longest(hits, others) for hit in pair if hit is not None]
    kept: dict[int, Hit] = {}
    for hit in in_turn:
        kept.setdefault(hit.passage.id, hit)
    return tuple(replace(hit, rank=rank) for rank, hit in enumerate([*kept.values()][: len(hits)], 1))


def _allowed(routing: Routing, config: Config) -> tuple[Match, ...]:
    """The commands to run: none where the routing refuses or commands are switched off."""
    if routing.refused or not config.commands.enabled:
        return ()
    return (*routing.commands, *routing.supporting)


def _described(matches: Sequence[Match]) -> Iterator[Hit]:
    """What the commands would tell, as passages: for answers without live output (commands.run = false)."""
    for rank, match in enumerate(matches, 1):
        command = match.command
        line = command_line(command.argv, command.also)
        # Below all ids that an index gives.
        passage = Passage(-rank, DESCRIPTIONS, command.id, None, line, (line,), command.description, None)
        yield Hit(rank, match.score, passage, match.score)


def _run_all(matches: Sequence[Match], run: Run) -> tuple[CommandOutput, ...]:
    """The outputs, in the order of the matches; several commands wait at the same time."""
    if not matches:
        return ()
    with ThreadPoolExecutor(min(_AT_ONCE, len(matches))) as pool:
        return tuple(pool.map(run, matches))
