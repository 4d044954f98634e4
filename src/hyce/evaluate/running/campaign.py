"""A whole run: its folder, its variants made ready, every task once, and what it would cost beforehand."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path

from hyce.config import Config, for_role, index_folder
from hyce.errors import ConfigError, UsageError
from hyce.evaluate.calls import Calls, attempt_client
from hyce.evaluate.journal import Journal, read_rows
from hyce.evaluate.records import Mode, Result, Row, Run
from hyce.evaluate.running.cost import Cost, cost, cutting
from hyce.evaluate.running.experiment import Judges, Task, Wanted, failure, pending, run_variant, wanted
from hyce.evaluate.running.keys import judging_key
from hyce.evaluate.running.prepare import Load, Prepared, Tells, Workshop
from hyce.evaluate.running.replay import Replay
from hyce.evaluate.running.runs import (
    CALLS,
    OUTPUTS,
    RESULTS,
    Place,
    asked,
    check_questions,
    keep_questions,
    read_plan,
    read_run,
    result_key,
    result_row,
    results_of,
    write_run,
)
from hyce.evaluate.running.variants import Plan, Variant
from hyce.evaluate.sets import read_set
from hyce.evaluate.work import Pace
from hyce.index.manifest import read_manifest
from hyce.llm import ChatClient
from hyce.prompts.evaluation import judging_digest
from hyce.runner import Runner, Runs


@dataclass(frozen=True, slots=True)
class Options:
    """How a run is made."""

    passes: int
    mode: Mode
    repeats: int = 1
    """Verdicts of the judge on each answer."""
    at_once: int = 4
    limit: int | None = None
    live: bool = False
    only: tuple[str, ...] = ()
    """Names of the variants to run; empty for all."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a run would do."""

    prepared: tuple[Prepared, ...]
    tasks: Mapping[str, int]
    """By variant, how many answers or verdicts are missing."""
    costs: Mapping[str, Cost]
    """By role."""


class Campaign:
    """A run of a plan in a folder.

    Raises UsageError for questions that can't be asked and variants that there aren't, ConfigError or
    PolicyError where there is no judge, or none that may be used. Nothing is sent or written before run().
    """

    def __init__(
        self,
        plan: Plan,
        options: Options,
        *,
        source: Path,
        folder: Path,
        base: Config,
        load: Load,
        tells: Tells,
    ) -> None:
        """source: the question file or its folder. base, load: the settings without and with a variant's."""
        self.plan, self.options = plan, options
        self._source, self._folder, self._base, self._load, self._tells = source, folder, base, load, tells
        self._set = read_set(source)
        self.questions = asked(self._set.questions, options.limit)
        self.unjudged = len(self._set.questions) - len(asked(self._set.questions))
        """Questions without a reference answer, which are left out."""
        if not self.questions:
            raise UsageError(
                f"{source}: no question has a reference answer to judge by; `hyce evaluate routing` and "
                "`hyce evaluate retrieval` need none"
            )
        check_questions(folder, source, self._set)
        self._chosen = _chosen(plan, options.only)

    def forecast(self) -> Forecast:
        """What is left to do, and what it takes, about. Nothing is sent, run or written."""
        with ExitStack() as stack:
            self._judges(stack)
        before = read_plan(self._folder)
        workshop = self._workshop(before.created if before else _now())
        file = self._folder / RESULTS
        known = results_of(read_rows(file)[0], file) if file.exists() else {}
        prepared = [workshop.look(variant) for variant in self._chosen]
        tasks: dict[str, int] = {}
        costs: dict[str, Cost] = {}
        made: set[Path] = set()
        for each in prepared:
            if each.place is None:
                continue
            left = self._left(each.row, known)
            tasks[each.row.name] = len(left)
            found = cost(each.config, left, self.options.mode, self._wanted())
            if each.place.manifest is None and each.place.folder not in made:
                made.add(each.place.folder)
                found |= self._cutting(each.config)
            for role, taken in found.items():
                costs[role] = costs.get(role, Cost()) + taken
        return Forecast(tuple(prepared), tasks, costs)

    def run(self) -> tuple[Run, Calls]:
        """Do all that is left to do; the folder as it is then, and what was asked of the models.

        The folder's lock must be held. Raises StoreError, EndpointError where the endpoints are down.
        """
        with ExitStack() as stack:
            clients = self._judges(stack)
            keep_questions(self._folder, self._source, self._set)
            calls, outputs, results = (
                stack.enter_context(Journal(self._folder / name)) for name in (CALLS, OUTPUTS, RESULTS)
            )
            recorded = Calls(calls)
            before = read_plan(self._folder)
            created = before.created if before else _now()
            prepared = self._prepare(created, results_of(results.rows, results.path), recorded)
            self._answer(
                prepared,
                Judges(clients, self._wanted(), self.options.mode, recorded),
                results,
                runner=self._runners(outputs),
                today=self._today(created),
            )
            return read_run(self._folder), recorded

    def _prepare(self, created: str, known: Mapping[Place, Result], calls: Calls) -> list[Prepared]:
        """The variants to run, ready; run.json then names them, and others that have results."""
        workshop = self._workshop(created)
        prepared = {
            variant.name: workshop.prepare(variant, calls, lambda row: not self._left(row, known))
            for variant in self._chosen
        }
        for each in prepared.values():
            if each.row.unavailable:
                self._tells.warn(f"{each.row.name} can't be run: {each.row.unavailable}")
        rows = [
            prepared[variant.name].row if variant.name in prepared else workshop.look(variant).row
            for variant in self.plan.variants
        ]
        rows = [row for row in rows if row.name in prepared or self._has_results(row, known)]
        write_run(self._folder, self._plan(created, rows))
        return [each for each in prepared.values() if each.place]

    def _answer(
        self,
        prepared: Sequence[Prepared],
        judges: Judges,
        results: Journal,
        *,
        runner: Callable[[Config], Runs],
        today: datetime.date,
    ) -> None:
        """Each result is written as soon as it is there."""
        known = results_of(results.rows, results.path)
        left = {each.row.name: self._left(each.row, known) for each in prepared}
        total = len(prepared) * len(self.questions) * self.options.passes
        done = total - sum(len(tasks) for tasks in left.values())
        failed = 0
        with self._tells.progress("answering") as show:
            pace = Pace(show, total, done)
            for each in prepared:
                tasks = left[each.row.name]
                if not tasks:
                    continue
                answering = run_variant(
                    each,
                    tasks,
                    judges,
                    passes=self.options.passes,
                    at_once=self.options.at_once,
                    runner=runner(each.config),
                    today=today,
                    report=self._tells.note,
                    stopping=pace.stopping,
                )
                with closing(answering):
                    for result in answering:
                        results.append(result_row(result))
                        failed += bool(failure(result))
                        made, tokens = judges.calls.made, judges.calls.tokens
                        pace.step(f"{each.row.name}: {made} calls, {tokens} tokens, {failed} failed")

    def _left(self, row: Row, known: Mapping[Place, Result]) -> list[Task]:
        return pending(row, self.questions, self.options.passes, known, self._wanted())

    def _wanted(self) -> Wanted:
        return wanted(self._base, self.options.repeats)

    def _workshop(self, created: str) -> Workshop:
        return Workshop(
            base=self._base,
            load=self._load,
            folder=self._folder,
            questions=self._set.digest,
            judging=judging_key(self._base, self.options.mode),
            live=self.options.live,
            today=self._today(created).isoformat(),
            tells=self._tells,
        )

    def _today(self, created: str) -> datetime.date:
        """The date that the models are told, which stays the same: of the questions, whose outputs are
        replayed; of the run's beginning where commands run anew."""
        origin = None if self.options.live else self._set.origin
        text = origin.created if origin else created
        return datetime.date.fromisoformat(text[:10])

    def _judges(self, stack: ExitStack) -> dict[tuple[str, int], ChatClient]:
        clients = {}
        for role, repeat in self._wanted():
            client = attempt_client(self._base, role, repeat)
            if client is None:
                raise ConfigError(f"nobody judges: set base_url and model in [llm], or in [llm.{role}]")
            clients[role, repeat] = stack.enter_context(client)
        first, second = clients["judge", 1], clients.get(("second_judge", 1))
        if second and (first.address, first.model) == (second.address, second.model):
            self._tells.warn("[llm.second_judge] is the model of the judge: their agreement says nothing")
        return clients

    def _runners(self, outputs: Journal) -> Callable[[Config], Runs]:
        """What runs commands for a variant: anew, or from what is kept, which is the same for all."""
        report = self._tells.note
        if self.options.live:
            return lambda config: Runner(config, report=report, patient=True)
        kept = [stored.output for stored in self._set.outputs]
        replay = Replay(kept, outputs, Runner(self._base, report=report, patient=True))
        return lambda _: replay

    def _has_results(self, row: Row, known: Mapping[Place, Result]) -> bool:
        keys = {result_key(row.key, question.id) for question in self.questions}
        return not row.unavailable and any(each.key in keys for each in known.values())

    def _plan(self, created: str, rows: Sequence[Row]) -> Run:
        second = "second_judge" in self._base.roles
        return Run(
            title=self.plan.title,
            created=created,
            mode=self.options.mode,
            passes=self.options.passes,
            judge=for_role(self._base, "judge").llm.model,
            second_judge=for_role(self._base, "second_judge").llm.model if second else "",
            judge_prompts=judging_digest(),
            live=self.options.live,
            set=replace(self._set, questions=self.questions),
            rows=tuple(rows),
            results=(),
        )

    def _cutting(self, config: Config) -> dict[str, Cost]:
        """What a language model takes to cut the pages for an index that is missing."""
        if config.passages.kind != "llm":
            return {}
        configured = read_manifest(index_folder(config) / "current")
        return {"passages": cutting(configured.documents, configured.chunks, config.passages.size)}


def _chosen(plan: Plan, only: Sequence[str]) -> tuple[Variant, ...]:
    """The variants to run. Raises UsageError for a name that there is not."""
    names = [variant.name for variant in plan.variants]
    for name in only:
        if name not in names:
            raise UsageError(f"no variant is called {name!r}; there are {', '.join(names)}")
    return tuple(variant for variant in plan.variants if not only or variant.name in only)


def _now() -> str:
    return datetime.datetime.now().astimezone().isoformat(timespec="seconds")
