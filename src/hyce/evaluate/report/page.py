"""A report as one HTML page that needs nothing else: no script, no request (extra: report).

Answers, documentation, outputs and judges' words are strangers' text. All of it goes through the template's
escaping, and none of it into the name or the address of anything.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hyce.errors import HyceError
from hyce.evaluate.records import APART, Given, Question, Result, Run, Verdict
from hyce.evaluate.report.about import facts
from hyce.evaluate.report.compare import Comparison
from hyce.evaluate.report.outcomes import (
    Outcomes,
    criteria,
    first_verdict,
    outcomes,
    scores_of,
    source,
    status,
)
from hyce.evaluate.report.plots import plots
from hyce.evaluate.report.scores import Summary
from hyce.evaluate.report.tables import comparison_table, tables
from hyce.evaluate.report.wording import words
from hyce.privacy import neutral

if TYPE_CHECKING:
    from markupsafe import Markup

INSTALL = "pip install 'hyce[report]'"
_LONGEST = 20_000
"""Characters of one text."""
_STATUS = {
    "judged": "judged",
    "failed": "failed: no answer",
    "judge_failed": "the judge failed",
    "unparseable": "the judge's reply held no verdict",
    "withheld": "withheld",
    "missing": "missing: the run hasn't come to it",
}


@dataclass(frozen=True, slots=True)
class SourceView:
    """A source that variants were given for a question, shown once however many were."""

    anchor: str
    kind: str
    label: str
    text: str
    private: bool


@dataclass(frozen=True, slots=True)
class VerdictView:
    """A judge's verdict in words."""

    judge: str
    verdict: str
    reasons: str


@dataclass(frozen=True, slots=True)
class AnswerView:
    """What a variant answered in the first pass that there is, and what became of the others."""

    variant: str
    mark: str
    """right, wrong, or unknown: of all passes together."""
    told: str
    """The mark in words."""
    attempt: int | None
    result: Result | None
    given: tuple[tuple[int, SourceView], ...]
    verdicts: tuple[VerdictView, ...]
    others: tuple[tuple[int, str], ...]
    """The other passes: number, what came of it."""


@dataclass(frozen=True, slots=True)
class QuestionView:
    """A question with all answers to it."""

    question: Question
    source: str
    sources: tuple[SourceView, ...]
    answers: tuple[AnswerView, ...]


def page(run: Run, summary: Summary, comparison: Comparison | None = None) -> str:
    """The page. Raises HyceError where the packages that draw it are missing."""
    try:
        import jinja2

        pictures = plots(summary)
    except ImportError as error:
        raise HyceError(
            f"the page needs {error.name}, which isn't installed; `{INSTALL}` brings it"
        ) from error
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("hyce.evaluate.report", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_harmless,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.j2").render(
        title=summary.facts.title,
        facts=facts(summary.facts),
        notes=summary.notes,
        comparison=comparison,
        comparison_table=comparison and comparison_table(comparison),
        tables=tables(summary),
        plots=[(plot, _address(plot.svg)) for plot in pictures],
        variants=[line for line in summary.variants if not line.unavailable],
        sections=_sections(_questions(run)),
        words=words,
    )


def _address(svg: bytes) -> Markup:
    """The picture as an address that holds it."""
    from markupsafe import Markup

    return Markup(f"data:image/svg+xml;base64,{base64.b64encode(svg).decode('ascii')}")  # noqa: S704 - base64


def _harmless(value: Any) -> Any:
    """What is about to be escaped and shown: without control characters, and not endless."""
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value  # what a macro made, and pictures
    text = neutral(value)
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}\n[cut: {len(text) - _LONGEST} more characters]"


def _sections(views: Sequence[QuestionView]) -> list[tuple[str, list[QuestionView]]]:
    """The questions under headings, those that call for a look first."""
    scored = [view for view in views if view.question.kind not in APART]
    solved = [view for view in scored if all(answer.mark == "right" for answer in view.answers)]
    sections = [
        ("Questions that some variant didn't get right", [view for view in scored if view not in solved]),
        ("Questions that every variant got right", solved),
        ("Questions outside the Eval Score", [view for view in views if view.question.kind in APART]),
    ]
    return [(title, found) for title, found in sections if found]


# -- a question ------------------------------------------------------------------------------------------


def _questions(run: Run) -> list[QuestionView]:
    found = [each for each in outcomes(run).values() if not each.row.unavailable]
    return [_question(number, question, found) for number, question in enumerate(run.set.questions, 1)]


def _question(number: int, question: Question, found: Sequence[Outcomes]) -> QuestionView:
    sources: dict[Given, SourceView] = {}
    answers = []
    for own in found:
        passes = sorted(own.results[question.id].items())
        attempt, shown = passes[0] if passes else (None, None)
        given = []
        for each in shown.given if shown else ():
            same = Given(0, each.kind, each.label, each.text, each.private)
            anchor = f"q{number}s{len(sources) + 1}"
            view = SourceView(anchor, each.kind, each.label, each.text, each.private)
            given.append((each.number, sources.setdefault(same, view)))
        mark, told = _mark(own, question)
        answers.append(
            AnswerView(
                variant=own.row.name,
                mark=mark,
                told=told,
                attempt=attempt,
                result=shown,
                given=tuple(given),
                verdicts=tuple(_verdict(each, question) for each in shown.verdicts) if shown else (),
                others=tuple(
                    (other, _told(own, question, other))
                    for other in range(1, own.passes + 1)
                    if other != attempt
                ),
            )
        )
    return QuestionView(question, source(question), tuple(sources.values()), tuple(answers))


def _mark(own: Outcomes, question: Question) -> tuple[str, str]:
    judged = own.scores[question.id]
    right = own.right(question.id)
    if right is None:
        return "unknown", "not judged"
    count = sum(scores["right"] for scores in judged.values())
    of = f" in {count} of {len(judged)} judged passes" if own.passes > 1 else ""
    return ("right" if right else "wrong"), f"right{of}" if right or of else "wrong"


def _told(own: Outcomes, question: Question, attempt: int) -> str:
    """One pass in words."""
    result = own.results[question.id].get(attempt)
    came = status(question, result)
    if came == "judged" and result:
        return _scored(first_verdict(result), question)
    error = (result.error or _error(first_verdict(result))) if result else ""
    return f"{_STATUS[came]}{': ' if error else ''}{error}"


def _error(verdict: Verdict | None) -> str:
    return verdict.error if verdict else ""


def _verdict(verdict: Verdict, question: Question) -> VerdictView:
    role = "Second judge" if verdict.judge == "second_judge" else "Judge"
    repeat = f", asked again ({verdict.repeat})" if verdict.repeat > 1 else ""
    told = _scored(verdict, question)
    return VerdictView(f"{role} {verdict.model}{repeat}", told, verdict.reasons)


def _scored(verdict: Verdict | None, question: Question) -> str:
    scores = scores_of(verdict, question)
    if scores:
        return ", ".join(f"{name} {scores[name]}" for name in criteria(question))
    came = {"failed": "judge_failed", "judged": "unparseable"}
    known = verdict.status if verdict else "missing"
    error = _error(verdict)
    return f"{_STATUS[came.get(known, known)]}{': ' if error else ''}{error}"
