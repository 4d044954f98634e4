"""Variants x questions x passes -> answers with verdicts (HyCE paper, algorithm 1, sections 4.2 and 5)."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from hyce import catalogue
from hyce.assistant import Assistant, open_assistant
from hyce.catalogue import Catalogue
from hyce.config import Config
from hyce.errors import EndpointError, StoreError, UsageError
from hyce.evaluate.calls import Calls, Recorded
from hyce.evaluate.finding.evidence import first_support
from hyce.evaluate.judge import judge
from hyce.evaluate.leaving import is_private, private_outputs, sends_outside, tells_of_private
from hyce.evaluate.records import Given, Mode, Question, Result, Row, Verdict
from hyce.evaluate.running.asking import Asked, asking, shared
from hyce.evaluate.running.prepare import Prepared
from hyce.evaluate.running.runs import Place, result_key
from hyce.evaluate.work import Patience, each
from hyce.gather import DESCRIPTIONS
from hyce.llm import ChatClient
from hyce.records import Answer, CommandOutput
from hyce.runner import Runs


@dataclass(frozen=True, slots=True)
class Task:
    """One question in one pass, and what is there of it already."""

    question: Question
    attempt: int
    before: Result | None = None


Wanted = Sequence[tuple[str, int]]
"""(role, repeat) of each verdict that an answer gets."""


@dataclass(frozen=True, slots=True)
class Judges:
    """Who judges, what they see, and how often."""

    clients: Mapping[tuple[str, int], ChatClient]
    """By role and repeat: repeats differ in the seed sent."""
    wanted: Wanted
    mode: Mode
    calls: Calls

    def judged(self, question: Question, result: Result, *, private: bool) -> Result:
        """The result with the verdicts that it lacks."""
        lacking = missing(result, self.wanted)
        kept = {(v.judge, v.repeat): v for v in result.verdicts if (v.judge, v.repeat) not in lacking}
        made = {
            (role, repeat): judge(
                question,
                result.answer,
                result.given,
                model=Recorded(self.clients[role, repeat], self.calls, role, repeat),
                role=role,
                mode=self.mode,
                repeat=repeat,
                private=private,
            )
            for role, repeat in lacking
        }
        verdicts = {**kept, **made}
        return replace(result, verdicts=tuple(verdicts[pair] for pair in sorted(verdicts)))


def wanted(config: Config, repeats: int) -> Wanted:
    """The verdicts that an answer gets; the second judge, where the settings name one, gives one."""
    second = [("second_judge", 1)] if "second_judge" in config.roles else []
    return [*(("judge", repeat) for repeat in range(1, repeats + 1)), *second]


def missing(result: Result, wanted: Wanted) -> Wanted:
    """The verdicts that an answer has not, or that failed."""
    there = {(each.judge, each.repeat) for each in result.verdicts if each.status != "failed"}
    return [pair for pair in wanted if pair not in there] if result.status == "answered" else []


def pending(
    row: Row, questions: Sequence[Question], passes: int, known: Mapping[Place, Result], wanted: Wanted
) -> list[Task]:
    """What is left to do for a variant: no answer, a failed one, or a verdict missing."""
    tasks = []
    for attempt in range(1, passes + 1):
        for question in questions:
            before = known.get((row.name, question.id, attempt))
            if before and before.key != result_key(row.key, question.id):
                before = None
            if before is None or before.status == "failed" or missing(before, wanted):
                tasks.append(Task(question, attempt, before))
    return tasks


def run_variant(
    prepared: Prepared,
    tasks: Sequence[Task],
    judges: Judges,
    *,
    passes: int,
    at_once: int,
    runner: Runs,
    today: datetime.date,
    report: Callable[[str], None],
    stopping: Callable[[], None],
) -> Generator[Result, None, None]:
    """The result of each task, as they end. What the endpoints do wrong is in the result.

    Raises EndpointError after IN_A_ROW failures one after the other, and what opening or searching raises;
    StoreError where the index is another one than the variant was prepared with.
    """
    entries = catalogue.load_for(prepared.config)
    with open_assistant(
        prepared.config,
        clients=lambda config, role: shared(config, role, passes, judges.calls),
        runner=runner,
        today=today,
        report=report,
    ) as assistant:
        index = assistant.retriever.index
        if prepared.place is None or index.manifest != prepared.place.manifest:
            # The row's key stands for what was there when the run began.
            raise StoreError(f"{index.path}: was indexed anew while the run went on; run the same again")
        examiner = _Examiner(
            prepared, assistant, entries, judges, sends_outside(prepared.config, answers=True)
        )
        patience = Patience()
        # What is under way must end before the index is closed, whatever ends the work.
        with closing(each(tasks, examiner.examine, at_once, stopping)) as ended:
            for result in ended:
                yield result
                patience.after(failure(result))


def failure(result: Result) -> str:
    """Why there is no answer, or no verdict on it, for the endpoint's sake; empty where there is."""
    if result.status == "failed":
        return result.error
    failed = [each for each in result.verdicts if each.status == "failed"]
    return failed[0].error if failed else ""


@dataclass(frozen=True, slots=True)
class _Examiner:
    """Answers questions as one variant does, and has the answers judged. Threads share it."""

    prepared: Prepared
    assistant: Assistant
    entries: Catalogue
    judges: Judges
    outside: bool
    """Whether questions leave the site."""

    def examine(self, task: Task) -> Result:
        """The result of one task. An answer that is there already is only judged."""
        if self.outside and tells_of_private(task.question, self.entries):
            return self._withheld(task)
        result = task.before
        if result is None or result.status == "failed":
            result = self._answered(task)
        private = private_outputs(task.question, self.entries)
        return self.judges.judged(task.question, result, private=private)

    def _withheld(self, task: Task) -> Result:
        """Nothing is sent: a question that was made from an output tells of it."""
        reason = "it was made from a command's output that may not leave the site, and would leave it"
        verdicts = tuple(
            Verdict(role, "", repeat, "withheld", error=f"the question was not asked: {reason}")
            for role, repeat in self.judges.wanted
        )
        return replace(self._empty(task), status="answered", verdicts=verdicts)

    def _empty(self, task: Task) -> Result:
        row, question = self.prepared.row, task.question.id
        return Result(row.name, result_key(row.key, question), question, task.attempt, "failed")

    def _answered(self, task: Task) -> Result:
        empty = self._empty(task)
        with asking(task.attempt) as asked:
            try:
                answer = self.assistant.answer(task.question.question)
            except (EndpointError, UsageError) as error:
                return replace(empty, error=str(error), model=self.prepared.row.model)
        if asked.failure:
            return replace(empty, error=asked.failure, model=self.prepared.row.model)
        return self._result(empty, task.question, answer, asked)

    def _result(self, empty: Result, question: Question, answer: Answer, asked: Asked) -> Result:
        prompt_tokens, completion_tokens = asked.tokens()
        return replace(
            empty,
            status="failed" if answer.failed else "answered",
            answer="" if answer.failed else shown(answer),
            error=answer.notices[-1] if answer.failed else "",
            model=answer.model or "",
            reasons=answer.reasons or "",
            given=tuple(self._given(answer)),
            commands=tuple(output.id for output in answer.outputs),
            rank=_rank(question, answer),
            notices=answer.notices,
            timings_ms=_timings(answer, asked),
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
        )

    def _given(self, answer: Answer) -> Iterator[Given]:
        for source in answer.sources:
            output = isinstance(source.item, CommandOutput)
            private = isinstance(source.item, CommandOutput) and is_private(source.item.id, self.entries)
            yield Given(source.number, "command" if output else "passage", source.label, source.text, private)


def _rank(question: Question, answer: Answer) -> int | None:
    """Of the first passage that supports the evidence; descriptions of commands don't count."""
    return first_support(question, [hit for hit in answer.hits if hit.passage.source != DESCRIPTIONS])


def shown(answer: Answer) -> str:
    """What the user reads as the answer; where no model was asked, why."""
    if answer.text is not None:
        return answer.text
    return answer.refused or answer.ask_back or " ".join(answer.notices)


def _timings(answer: Answer, asked: Asked) -> dict[str, float]:
    """Milliseconds of the stages. A call from the record counts as long as it took when it was made."""
    timings = dict(answer.timings_ms)
    timings["total"] += 1000 * asked.seconds(recorded=True)
    timings["model"] = 1000 * asked.seconds("answer")
    return {stage: round(value, 1) for stage, value in timings.items()}
