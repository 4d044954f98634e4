"""What a question is made from -> the question, written by one model and rated by another; or why not."""

from __future__ import annotations

from dataclasses import dataclass

from hyce.errors import EndpointError
from hyce.evaluate.generation.filter import Filter, Rated
from hyce.evaluate.generation.sample import Task
from hyce.evaluate.generation.writing import Writer, Written
from hyce.evaluate.records import UNANSWERABLE, Evidence, Question

NO_RATINGS = "the filter's replies, also after a second try, don't hold three ratings of 1 or 0"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one task."""

    task: Task
    question: Question | None = None
    """None where there is none, or none that could be rated."""
    missed: tuple[str, ...] = ()
    """Criteria that it doesn't meet."""
    written: bool = False
    why: str = ""
    """Why there is none."""
    failed: bool = False
    """Whether that is a failure, of an endpoint or of the filter, rather than of the material."""
    error: EndpointError | None = None
    """What the endpoint did."""
    models: tuple[str, str] = ("", "")
    """Who wrote it and who rated it, as they named themselves."""


class Maker:
    """Makes questions with two endpoints. Threads may share it."""

    def __init__(self, writer: Writer, rater: Filter) -> None:
        self._writer, self._filter = writer, rater

    def make(self, task: Task) -> Outcome:
        """What came of the task; an endpoint's failure is a part of it."""
        written: Written | None = None
        try:
            written = self._writer.write(task)
            if written.why:
                return Outcome(task, why=f"the model gave no usable question: {written.why}")
            rated = self._filter.rate(written.question, task)
        except EndpointError as error:
            return Outcome(task, written=written is not None, why=str(error), failed=True, error=error)
        models = (written.model, rated.model)
        if rated.ratings is None:
            return Outcome(task, written=True, why=NO_RATINGS, failed=True, models=models)
        return Outcome(task, _question(task, written, rated), tuple(rated.missed), True, models=models)


def _question(task: Task, written: Written, rated: Rated) -> Question:
    answered = task.kind != UNANSWERABLE
    accept = (task.command.id,) if task.command else ()
    return Question(
        id=task.id,
        question=written.question,
        kind=task.kind,
        answer=written.answer,
        evidence=tuple(Evidence(p.path, p.text, p.source) for p in task.passages) if answered else (),
        # What the documentation doesn't say, a command that nobody thought of may show.
        accept=accept if answered else None,
        site=task.command.scheduler if task.command else None,
        rejected=", ".join(rated.missed.values()),
        ratings=rated.ratings,
    )
