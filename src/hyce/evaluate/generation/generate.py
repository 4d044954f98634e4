"""Passages and commands -> a question file: sampled, asked for, filtered (algorithm 1 of the paper, 4.1).

FOLDER/questions.jsonl    the questions, with the rejected ones, the commands' outputs and how it was made
       calls.jsonl        every answered call to a model: going on repeats none
       outputs.jsonl      what the commands printed when they first ran: going on uses the same
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from hyce.catalogue import Catalogue, load_for
from hyce.config import Config
from hyce.errors import ConfigError, UsageError
from hyce.evaluate.calls import Calls
from hyce.evaluate.generation import filter as filtering
from hyce.evaluate.generation import writing
from hyce.evaluate.generation.filter import CRITERIA, Filter
from hyce.evaluate.generation.making import Maker, Outcome
from hyce.evaluate.generation.sample import KINDS, Pool, Sample, Taking, Wanted, neighbours, pool, sample
from hyce.evaluate.generation.writing import Writer
from hyce.evaluate.journal import Journal, locked
from hyce.evaluate.records import Origin, QuestionSet
from hyce.evaluate.running.replay import Replay
from hyce.evaluate.running.runs import RUN
from hyce.evaluate.sets import FILE, read_origin, write_set
from hyce.evaluate.work import Pace, Patience, Show, each
from hyce.index.embedded import IndexReader
from hyce.llm import ChatClient, client_for
from hyce.prompts.evaluation import writing_digest
from hyce.records import Command, CommandOutput
from hyce.retrieve import Retriever, open_retriever
from hyce.run import available
from hyce.runner import Runs

_ASKED = "hyce evaluate generate"
"""What stands as the question in the record of the commands that run."""


@dataclass(frozen=True, slots=True)
class Tally:
    """The questions of one kind, counted."""

    kind: str
    wanted: int | None
    """None: as many as there are."""
    asked: int
    written: int
    rated: int
    met: Mapping[str, int]
    """How many of the rated met each criterion."""
    kept: int


@dataclass(frozen=True, slots=True)
class Report:
    """What came of it all."""

    file: Path
    tallies: tuple[Tally, ...]
    left_out: Mapping[str, str]
    """Commands and passages that made no question, and why."""
    failed: Mapping[str, str]
    """Questions that failed, by their ids, and why."""
    again: bool
    """Whether running the same again may help: an endpoint failed."""
    calls: int
    """Made now."""
    tokens: int
    earlier: Path | None = None
    """Where the file is that stood there and held something else."""

    @property
    def kept(self) -> int:
        return sum(tally.kept for tally in self.tallies)


@dataclass(frozen=True, slots=True)
class Models:
    """The two endpoints."""

    generation: ChatClient
    filter: ChatClient

    @property
    def options(self) -> dict[str, str]:
        """What the settings say of them."""
        clients = {writing.ROLE: self.generation, filtering.ROLE: self.filter}
        return {f"{role} model": f"{each.model} at {each.address}" for role, each in clients.items()}

    def may_not(self, command: Command) -> str:
        """Why they may not see an entry's output; empty where they may."""
        clients = {writing.ROLE: self.generation, filtering.ROLE: self.filter}
        outside = [role for role, client in clients.items() if client.location == "outside"]
        if command.may_leave_site or not outside:
            return ""
        return f"its output may not leave the site, and the model for {' and '.join(outside)} is outside"


@contextmanager
def open_models(config: Config) -> Iterator[Models]:
    """The endpoints that the settings name. Raises ConfigError or PolicyError before anything is sent."""
    with ExitStack() as opened:
        clients = []
        for role in (writing.ROLE, filtering.ROLE):
            client = client_for(config, role)
            if client is None:
                raise ConfigError(
                    "evaluate generate needs a language model; set base_url and model in [llm], or in "
                    f"[llm.{role}]"
                )
            clients.append(opened.enter_context(client))
        yield Models(*clients)


def candidates(config: Config, entries: Catalogue) -> list[Command]:
    """The entries that can run here without a value from a question."""
    if not config.commands.enabled:
        return []
    plain = [each for each in entries.values() if all(p.default is not None for p in each.parameters)]
    return [command for command in plain if available(command, policy=config.policy) is None]


def generate(
    folder: Path,
    wanted: Wanted,
    config: Config,
    runner: Runs,
    *,
    at_once: int,
    running: Callable[[str], None],
    show: Show,
) -> Report:
    """Make the questions and write their file; what was answered or run before in this folder is kept.

    runner: runs the commands, each once; running: is told of each. show: shows how far the questions are.
    Raises HyceError: UsageError for a folder that holds other questions, EndpointError where nothing but
    failures comes.
    """
    file = folder / FILE
    with ExitStack() as opened:
        models = opened.enter_context(open_models(config))
        _refuse_others(file)
        retriever = opened.enter_context(open_retriever(config))
        opened.enter_context(locked(folder))
        calls = Calls(opened.enter_context(Journal(folder / "calls.jsonl")))
        replay = Replay((), opened.enter_context(Journal(folder / "outputs.jsonl")), runner)
        held = pool(retriever.index)
        facts, options = index_facts(retriever.index, held), _options(wanted, models)
        created = _created(file, options, facts)
        sampled = _sampled(wanted, config, retriever, held, models, replay, running)
        maker = Maker(Writer(models.generation, calls), Filter(models.filter, calls, retriever.retrieve))
        outcomes = _outcomes(sampled, maker, at_once, calls, Pace(show, len(sampled.tasks)))
        origin = Origin(
            created=created,
            seed=wanted.seed,
            model=_names(outcome.models[0] for outcome in outcomes),
            filter_model=_names(outcome.models[1] for outcome in outcomes),
            prompts=writing_digest(),
            index=facts,
            sampled=sampled.by_kind,
            left_out=dict(sampled.left_out) | _reasons(outcomes),
            options=options,
        )
        earlier = write_set(file, _set(sampled, outcomes, origin))
        return replace(_report(file, wanted, sampled, outcomes, calls), earlier=earlier)


def index_facts(index: IndexReader, held: Pool) -> dict[str, str | int]:
    """What is told of an index in a question file."""
    manifest = index.manifest
    return {
        "embedder": manifest.embedder,
        "passages": manifest.passages,
        "documents": manifest.documents,
        "chunks": manifest.chunks,
        "long_enough": len(held.names),
        "digest": held.digest,
    }


def _sampled(  # noqa: PLR0917
    wanted: Wanted,
    config: Config,
    retriever: Retriever,
    held: Pool,
    models: Models,
    runner: Runs,
    running: Callable[[str], None],
) -> Sample:
    def run(command: Command) -> CommandOutput:
        running(command.id)
        return runner.run(command, {}, _ASKED)

    near = neighbours(retriever, held)
    taking = Taking(retriever.index, held, near, run, models.may_not)
    sampled = sample(wanted, candidates(config, load_for(config)), taking)
    if not sampled.tasks:
        raise UsageError(
            f"there is nothing to make questions of: {len(held.names)} passages are long enough, "
            f"{len(sampled.outputs)} commands printed something; index documentation, or ask for others"
        )
    return sampled


def _outcomes(sampled: Sample, maker: Maker, at_once: int, calls: Calls, pace: Pace) -> list[Outcome]:
    """What came of each task, in their order. Raises EndpointError where nothing comes any more."""
    found: dict[str, Outcome] = {}
    patience, failed = Patience(), 0
    with closing(each(sampled.tasks, maker.make, at_once, pace.stopping)) as ended:
        for outcome in ended:
            found[outcome.task.id] = outcome
            failed += outcome.failed
            pace.step(f"{calls.tokens} tokens, {failed} failed")
            patience.after(str(outcome.error or ""))
            if outcome.error and failed == len(sampled.tasks):
                raise outcome.error
    return [found[task.id] for task in sampled.tasks]


def _set(sampled: Sample, outcomes: Sequence[Outcome], origin: Origin) -> QuestionSet:
    questions = [outcome.question for outcome in outcomes if outcome.question]
    return QuestionSet(
        tuple(question for question in questions if not question.rejected),
        "",
        tuple(question for question in questions if question.rejected),
        sampled.outputs,
        origin,
    )


def _report(file: Path, wanted: Wanted, sampled: Sample, outcomes: Sequence[Outcome], calls: Calls) -> Report:
    given_up = [outcome for outcome in outcomes if outcome.why and not outcome.failed]
    return Report(
        file=file,
        tallies=tuple(_tally(kind, wanted, outcomes) for kind in KINDS),
        left_out=dict(sampled.left_out) | _reasons(given_up),
        failed={outcome.task.id: outcome.why for outcome in outcomes if outcome.failed},
        again=any(outcome.error for outcome in outcomes),
        calls=calls.made,
        tokens=calls.tokens,
    )


def _tally(kind: str, wanted: Wanted, outcomes: Sequence[Outcome]) -> Tally:
    own = [outcome for outcome in outcomes if outcome.task.kind == kind]
    rated = [outcome for outcome in own if outcome.question]
    return Tally(
        kind=kind,
        wanted=wanted.by_kind[kind],
        asked=len(own),
        written=sum(outcome.written for outcome in own),
        rated=len(rated),
        met={name: sum(name not in outcome.missed for outcome in rated) for name in CRITERIA},
        kept=sum(not outcome.missed for outcome in rated),
    )


def _reasons(outcomes: Iterable[Outcome]) -> dict[str, str]:
    """Why there is no question, by its id and what it should have been about."""
    return {f"{each.task.id} {each.task.name}": each.why for each in outcomes if each.why}


def _names(models: Iterable[str]) -> str:
    return ", ".join(sorted({name for name in models if name}))


def _options(wanted: Wanted, models: Models) -> dict[str, str | int]:
    numbers: dict[str, str | int] = {
        "--seed": wanted.seed,
        "--passages": wanted.passages,
        "--commands": "all" if wanted.commands is None else wanted.commands,
        "--unanswerable": wanted.unanswerable,
        "--two-passages": wanted.two_passages,
        "--mixed": wanted.mixed,
    }
    return numbers | models.options


def _refuse_others(file: Path) -> None:
    if file.exists() and read_origin(file) is None:
        raise UsageError(f"{file}: was not made by `hyce evaluate generate`; choose another folder")
    if (file.parent / RUN).exists():
        raise UsageError(f"{file.parent}: holds a run, whose questions must stay; choose another folder")


def _created(file: Path, options: Mapping[str, str | int], facts: Mapping[str, str | int]) -> str:
    """The date of the questions: the first where the file is gone on with. Raises UsageError for a file that
    was made in another way."""
    origin = read_origin(file) if file.exists() else None
    if origin is None:
        return datetime.date.today().isoformat()
    pairs = [(name, origin.options.get(name), value) for name, value in options.items()]
    pairs.append(("the prompts' digest", origin.prompts, writing_digest()))
    pairs.append(("the index's digest", origin.index.get("digest"), facts["digest"]))
    differing = [f"{name} {before}, not {now}" for name, before, now in pairs if before != now]
    if differing:
        raise UsageError(
            f"{file.parent}: its questions were made in another way ({'; '.join(differing)}); choose another "
            "folder"
        )
    return origin.created
