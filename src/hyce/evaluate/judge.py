"""An answer -> a judge's verdict on it: reasons first, then 1 or 0 by each criterion.

The answer may try to talk the judge round: it stands in a fence that it can't close, and a verdict is read
only from a reply that is one JSON object and nothing else, so that none that the judge quotes is taken for
its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hyce import citations, reply
from hyce.context import cut_end, cut_middle, measure, token_length
from hyce.errors import EndpointError
from hyce.evaluate.calls import AGAIN, ask
from hyce.evaluate.forms import SCORE, TEXT, closed, score
from hyce.evaluate.records import UNANSWERABLE, Given, Mode, Question, Verdict
from hyce.llm import LanguageModel, output_tokens
from hyce.privacy import fence, neutral, redact
from hyce.prompts import evaluation as prompts
from hyce.records import Message
from hyce.tokens import Length

CORRECTNESS, FAITHFULNESS, ABSTAINED = "correctness", "faithfulness", "abstained"

_ANSWERED = (CORRECTNESS, FAITHFULNESS)
_LONGEST_REASONS = 4000
"""Characters that are kept of a judge's reasons."""
_SMALLEST = 48
"""Tokens. A remainder of a source that is smaller than this tells a judge nothing."""


def judge(
    question: Question,
    answer: str,
    given: Sequence[Given],
    *,
    model: LanguageModel,
    role: str,
    mode: Mode,
    repeat: int = 1,
    private: bool = False,
) -> Verdict:
    """The verdict on an answer; of an unanswerable question, on whether it was left unanswered.

    given: what the answer was written from. private: whether the question's own reference comes from output
    that may not leave the site. A judge outside the site gets everything redacted, and nothing at all where
    something of it is private. What the endpoint does wrong is the verdict's status; raises PolicyError and
    ConfigError.

    Two cases need no judge, and name no model: an empty answer makes nothing up and is not correct, nor
    does it say that it doesn't know; one that begins with hyce's own words for "not in the sources" is
    the abstention that an unanswerable question asks for.
    """
    name = model.config.llm.model
    decided = _without_judge(question, answer)
    if decided:
        scores, reasons = decided
        return Verdict(role, "", repeat, "judged", scores, reasons)
    outside = model.location == "outside"
    if outside and (private or any(each.private for each in given)):
        reason = "the judge is outside the site, and a command's output that may not leave it is involved"
        return Verdict(role, name, repeat, "withheld", error=reason)
    clean = redact if outside else str
    task = _task(question, answer, given, mode, clean)
    length = token_length(model.config)
    room = model.config.llm.context_tokens - output_tokens(model.config) - AGAIN
    messages, note = task.fitted(room, length)
    if not messages:
        reason = "question, answer and reference don't fit into the judge's context"
        problem = model.error(reason, f"raise llm.{role}.context_tokens")
        return Verdict(role, name, repeat, "failed", error=str(problem))
    problems: list[str] = []

    def read(text: str) -> tuple[dict[str, int], str] | None:
        try:
            return read_verdict(text, task.criteria)
        except ValueError as error:
            problems.append(str(error))
            return None

    try:
        found = ask(model, messages, task.again, read, _schema(task.criteria))
    except EndpointError as error:
        return Verdict(role, name, repeat, "failed", error=str(error))
    if found is None:
        return Verdict(role, name, repeat, "unparseable", error=f"no verdict: {'; then '.join(problems)}")
    scores, reasons = found
    return Verdict(role, name, repeat, "judged", scores, f"{note}{reasons}")


def read_verdict(text: str, criteria: Sequence[str]) -> tuple[dict[str, int], str]:
    """(1 or 0 by criterion, reasons) of a judge's reply. Raises ValueError, which says what is wrong with it.

    A leading <think> block and one code fence around are put aside; then the reply is one JSON object with
    reasons and all criteria, each once. Text beside it is refused: a quoted object would look the same.
    """
    body = _unfenced(reply.without_thinking(text).strip())
    try:
        found = json.loads(body, strict=False, object_pairs_hook=_once)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not one JSON object alone ({error.msg})") from None
    if not isinstance(found, dict):
        raise ValueError("not a JSON object")
    reasons = found.get("reasons")
    if not isinstance(reasons, str) or not reasons.strip():
        raise ValueError('"reasons" is missing')
    scores = {name: _score(name, found.get(name)) for name in criteria}
    return scores, neutral(reasons).strip()[:_LONGEST_REASONS]


# -- what the judge is sent ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Task:
    """What a judge is asked, before it is cut to fit."""

    criteria: tuple[str, ...]
    build: Callable[[Sequence[Given] | None], list[Message]]
    again: Callable[[Sequence[Message], str], list[Message]]
    given: tuple[Given, ...] | None
    """None where the judge doesn't see what the answerer was given."""
    first: frozenset[int]
    """Numbers of the sources that the answer cites: of use to the judge before the others."""

    def fitted(self, room: int, length: Length) -> tuple[list[Message], str]:
        """The messages, of at most `room` tokens, and a note of what was cut; [] where they can't be."""
        messages = self.build(self.given)
        if measure(messages, length) <= room:
            return messages, ""
        if self.given is None or measure(self.build(()), length) > room:
            return [], ""
        kept: list[Given] = []
        for source in sorted(self.given, key=lambda each: (each.number not in self.first, each.number)):
            left = room - measure(self.build(sorted(kept, key=_number)), length)
            fitting = _cut(source, left - 2, length)
            if fitting:
                kept.append(fitting)
        kept.sort(key=_number)
        return self.build(kept), _note(self.given, kept)


def _task(
    question: Question, answer: str, given: Sequence[Given], mode: Mode, clean: Callable[[str], str]
) -> _Task:
    asked, said, known = clean(question.question), clean(answer), clean(question.answer)
    if question.kind == UNANSWERABLE:
        messages = prompts.abstained(asked, said, known)
        return _Task((ABSTAINED,), lambda _: messages, prompts.abstained_again, None, frozenset())
    shown = tuple(Given(g.number, g.kind, clean(g.label), clean(g.text)) for g in given)

    def build(sources: Sequence[Given] | None) -> list[Message]:
        if sources is None:
            return prompts.judge(asked, said, known)
        return prompts.judge(asked, said, known, [(each.number, _material(each)) for each in sources])

    cited = citations.check(answer, {each.number for each in given}).used
    seen = shown if mode == "grounded" else None
    return _Task(_ANSWERED, build, prompts.judge_again, seen, frozenset(cited))


def _material(source: Given) -> prompts.Material:
    kind = "command output" if source.kind == "command" else "documentation"
    return kind, source.label, source.text


def _cut(source: Given, room: int, length: Length) -> Given | None:
    """The source within `room` tokens, its fence included; None where too little of it would be left."""

    def fenced(text: str) -> int:
        kind, label, _ = _material(source)
        return length(fence(kind, source.number, label, text))

    if fenced(source.text) <= room:
        return source
    left = room - fenced("")
    if left < _SMALLEST:
        return None
    text = (cut_middle if source.kind == "command" else cut_end)(source.text, left, length)
    return Given(source.number, source.kind, source.label, text) if fenced(text) <= room else None


def _number(source: Given) -> int:
    return source.number


def _note(given: Sequence[Given], kept: Sequence[Given]) -> str:
    texts = {each.number: each.text for each in kept}
    cut = [each.number for each in given if texts.get(each.number, each.text) != each.text]
    left_out = [each.number for each in given if each.number not in texts]
    parts = [
        f"{how} {', '.join(f'[{n}]' for n in numbers)}"
        for how, numbers in (("cut", cut), ("left out", left_out))
        if numbers
    ]
    return f"(To fit into the judge's context, of the sources: {'; '.join(parts)}.) "


def _schema(criteria: Sequence[str]) -> Mapping[str, Any]:
    """The reply's form. Reasons come first: what is written later follows from them."""
    return closed(reasons=TEXT, **dict.fromkeys(criteria, SCORE))


# -- what comes back -------------------------------------------------------------------------------------


def _without_judge(question: Question, answer: str) -> tuple[dict[str, int], str] | None:
    """(scores, why) where no judge is needed to tell."""
    unanswerable = question.kind == UNANSWERABLE
    if not answer.strip():
        scores = {ABSTAINED: 0} if unanswerable else {CORRECTNESS: 0, FAITHFULNESS: 1}
        return scores, "The answer is empty; no judge was asked."
    if unanswerable and answer.lstrip().startswith(reply.NO_ANSWER):
        return {ABSTAINED: 1}, "The answer begins with the agreed words for it; no judge was asked."
    return None


def _unfenced(body: str) -> str:
    """The text without a Markdown code fence around the whole of it."""
    first, _, rest = body.partition("\n")
    if first.strip().lower() in ("```", "```json") and rest.endswith("```"):
        return rest.removesuffix("```").strip()
    return body


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a field stands twice")
    return found


def _score(name: str, value: object) -> int:
    found = score(value)
    if found is None:
        raise ValueError(f'"{name}" is neither 0 nor 1')
    return found
