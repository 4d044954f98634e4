"""An OpenAI-compatible endpoint on loopback that plays all the models of an evaluation by fixed rules.

It knows nothing but what it is sent. Material holds facts, sentences of the form

    The <thing> of <place> is <value>.

and whoever it plays goes by them:

generation  asks for the fact of each source that it is given; of an unanswerable question, for a thing of
            the same place that is not there
filter      a question is grounded where the material holds each fact that it asks for, relevant unless it
            asks for a serial number, and standalone unless it asks about "it"
answer      gives the facts that are asked for, with their sources, where the sources hold all of them;
            otherwise it doesn't know
judge       an answer is correct where it gives each value of the reference, and faithful where the sources
            (or, where it sees none, the reference) hold each fact that it states. It is naive: it reads what
            stands in fences, and does whatever it is told outside of them.

A plan makes it misbehave, by role and a word of the question.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scripted_llm import Request, ScriptedLlm, Step, fails, says, stays_silent

from hyce import prompts
from hyce.prompts import evaluation
from hyce.records import Message

KINDS = ("document", "command", "two_passages", "passage_and_command", "unanswerable")
UNKNOWN = "colour"
"""The thing that unanswerable questions ask for."""
DONT_KNOW = "I don't know."

_FENCE = re.compile(
    r"<<<source \[(\d+)\] ([0-9a-f]{12}) \(([^)\n]*)\): ([^\n]*)\n(.*?)\nend of source \[\1\] \2>>>",
    re.DOTALL,
)
_FACT = re.compile(
    r"\bThe ([a-z][a-z ]*?) of ([^.?\n]+?) is (rumoured to be )?(\S*[^\s.](?: [^\s.]+)*?)\.(?=\s|$)"
)
_ASKED = re.compile(r"\b[Ww]hat is the ([a-z][a-z ]*?) of ([^?,\n]+)")
_CITATION = re.compile(r"\s*\[\d+\]")
_TODAY = re.compile(r"Today is (\d{4}-\d\d-\d\d)")
_OBEYED = re.compile(r"(?i)correctness\W+1\b")

Fact = tuple[str, str]
"""(thing, place)."""


@dataclass(frozen=True)
class Part:
    """A fenced text."""

    number: int
    kind: str
    text: str


@dataclass(frozen=True)
class Played:
    """A request as the model that it is sent to understands it."""

    role: str
    """generation, filter, answer, judge or abstained."""
    kind: str
    """Of the question to write; of an answer "reasoned" or "plain", and " cited" where citations are wanted;
    of a judge grounded or paper."""
    user: str
    parts: tuple[Part, ...]
    again: bool
    """Whether it is the second try."""

    def of(self, *kinds: str) -> list[Part]:
        return [part for part in self.parts if part.kind in kinds]

    def text(self, kind: str) -> str:
        """The first text of this kind."""
        return next(part.text for part in self.parts if part.kind == kind)

    @property
    def sources(self) -> list[Part]:
        return self.of("documentation", "command output")

    @property
    def question(self) -> str:
        """What is asked; while it is still to be written, all of the material."""
        if self.role == "generation":
            return "\n".join(part.text for part in self.parts)
        if self.role == "answer":
            return self.user.rpartition("Question: ")[2]
        return self.text("question to rate" if self.role == "filter" else "question")


@dataclass(frozen=True)
class Trouble:
    """A way to misbehave."""

    reply: str | None = None
    """Said in place of what the rules give."""
    first: bool = False
    """Only the first time that a request comes; where it is a reply: on the first try alone."""
    step: Step | None = None
    """Done in place of any reply."""
    model: str = ""
    """Only where this model is asked; empty for any."""


BROKEN = '{"question": "What is", "reasons": "The answer'
BROKEN_ONCE = Trouble(BROKEN, first=True)
BROKEN_ALWAYS = Trouble(BROKEN)
SILENT = Trouble(step=stays_silent)
BUSY_ONCE = Trouble(step=fails(429, "slow down", retry_after="0"), first=True)
DOWN_ONCE = Trouble(step=fails(503, "starting"), first=True)
DOWN_ALWAYS = Trouble(step=fails(500, "out of memory"))

Plan = Mapping[tuple[str, str], Trouble]
"""By role, and a word that the question holds."""


class Actor(ScriptedLlm):
    """The server. After `hold(n)` it replies to n requests, and to no other until it is told again."""

    def __init__(self, plan: Plan | None = None) -> None:
        super().__init__(says("never said"))
        self.plan = dict(plan or {})
        self.replies: list[Reply] = []
        self._seen: Counter[bytes] = Counter()
        self._left: int | None = None
        self._told = threading.Event()
        self._guard = threading.Lock()

    def hold(self, after: int | None) -> None:
        """Stop after so many replies; None: never. Whoever was held is left without a reply."""
        with self._guard:
            self._left = after
            self._told.set()
            self._told = threading.Event()

    def take(self, request: Request) -> Step:
        super().take(request)
        with self._guard:
            self._seen[request.raw] += 1
            first = self._seen[request.raw] == 1
        return lambda exchange: self._play(exchange, request, first)

    def _play(self, exchange: Any, request: Request, first: bool) -> None:
        played = understood(request.body["messages"])
        trouble = self._trouble(played, request, first)
        if trouble and trouble.step:
            trouble.step(exchange)
            return
        text = trouble.reply if trouble and trouble.reply is not None else RULES[played.role](played)
        with self._guard:
            told = self._told
            held = self._left == 0
            if self._left:
                self._left -= 1
        if held:
            told.wait(60)
            return  # whoever asked is gone
        says(text, usage=(len(request.prompt) // 4, len(text) // 4))(exchange)
        with self._guard:
            self.replies.append(Reply(played, request.raw))

    def _trouble(self, played: Played, request: Request, first: bool) -> Trouble | None:
        for (role, word), trouble in self.plan.items():
            if role != played.role or word not in played.question:
                continue
            if trouble.model and trouble.model != request.body["model"]:
                continue
            if not trouble.first or (first if trouble.step else not played.again):
                return trouble
        return None

    def twice(self) -> list[Reply]:
        """Requests that were answered more than once."""
        counts = Counter(reply.raw for reply in self.replies)
        return [reply for reply in self.replies if counts[reply.raw] > 1]


@dataclass(frozen=True)
class Reply:
    """A request that was answered."""

    played: Played
    raw: bytes = field(repr=False)


def understood(messages: Sequence[Message]) -> Played:
    """Who is asked, and for what. Raises ValueError for messages that nobody here wrote."""
    system, user = messages[0]["content"], messages[1]["content"]
    role, kind = _who(system)
    parts = tuple(Part(int(number), kind, text) for number, _, kind, _, text in _FENCE.findall(user))
    return Played(role, kind, user, parts, len(messages) > 2)


def _who(system: str) -> tuple[str, str]:
    for role, kind, rules in _rules():
        if rules == system:
            return role, kind
    today = _TODAY.search(system)
    for reasoned in (True, False):
        for cited in (True, False):
            rules = prompts.answer(
                "", (), today=today[1] if today else "", chain_of_thought=reasoned, cited=cited
            )[0]["content"]
            if rules == system:
                return "answer", f"{'reasoned' if reasoned else 'plain'}{' cited' if cited else ''}"
    raise ValueError(f"nobody is asked so: {system[:200]}")


def _rules() -> list[tuple[str, str, str]]:
    asked: list[tuple[str, str, list[Message]]] = [
        *(("generation", kind, evaluation.write(kind, ())) for kind in KINDS),
        ("filter", "", evaluation.rate("", ())),
        ("judge", "paper", evaluation.judge("", "", "")),
        ("judge", "grounded", evaluation.judge("", "", "", ())),
        ("abstained", "", evaluation.abstained("", "", "")),
    ]
    return [(role, kind, messages[0]["content"]) for role, kind, messages in asked]


def facts(text: str) -> dict[Fact, str]:
    """The facts that a text states for sure."""
    return {(m[1], m[2]): m[4] for m in _FACT.finditer(_CITATION.sub("", text)) if not m[3]}


def asked_for(question: str) -> list[Fact]:
    """The facts that a question asks for."""
    return [(m[1], m[2].strip()) for m in _ASKED.finditer(question)]


# -- the roles -------------------------------------------------------------------------------------------


def generated(played: Played) -> str:
    """A question with its answer; a rumour is taken for a fact."""
    found = [m for part in played.parts for m in _FACT.finditer(part.text)]
    if played.kind == "unanswerable":
        place = found[0][2]
        return _json(question=f"What is the {UNKNOWN} of {place}?", answer=f"the {UNKNOWN} of {place}")
    question = ", and what is the ".join(f"{m[1]} of {m[2]}" for m in found)
    return _json(question=f"What is the {question}?", answer="; ".join(m[4] for m in found))


def rated(played: Played) -> str:
    """The three ratings."""
    wanted = asked_for(played.question)
    held = {fact for part in played.sources for fact in facts(part.text)}
    return _json(
        reasons=f"It asks for {len(wanted)} facts.",
        groundedness=int(held.issuperset(wanted)),
        relevance=int(all(thing != "serial number" for thing, _ in wanted)),
        standalone=int(all(place != "it" for _, place in wanted)),
    )


def answered(played: Played) -> str:
    """The facts that are asked for, where the sources hold all of them."""
    found = [
        (fact, part.number, held[fact])
        for fact in asked_for(played.question)
        for part in played.sources
        if fact in (held := facts(part.text))
    ]
    cited = played.kind.endswith("cited")
    if {fact for fact, _, _ in found} == set(asked_for(played.question)):
        said = " ".join(
            f"The {thing} of {place} is {value}{f' [{number}]' if cited else ''}."
            for (thing, place), number, value in found
        )
    else:
        said = f"{prompts.NOT_ANSWERED}\nNo source says it." if cited else DONT_KNOW
    if played.kind.startswith("reasoned"):
        return _json(reasons=f"{len(played.sources)} sources bear on it.", answer=said)
    return said


def judged(played: Played) -> str:
    """The verdicts. Whatever stands outside of the fences is obeyed."""
    if _OBEYED.search(_FENCE.sub("", played.user)):
        return _json(reasons="I was told to.", correctness=1, faithfulness=1)
    answer, reference = played.text("answer to judge"), played.text("reference")
    stated = facts(answer)
    correct = all(value in answer for value in reference.split("; "))
    if played.kind == "grounded":
        held = {item for part in played.sources for item in facts(part.text).items()}
        faithful = held.issuperset(stated.items())
    else:
        faithful = set(stated.values()) <= set(reference.split("; "))
    # Judges quote what they judge, and so do their reasons.
    reasons = f'It says "{answer}", where {reference} is right.'
    return _json(reasons=reasons, correctness=int(correct), faithfulness=int(faithful))


def abstention(played: Played) -> str:
    """Whether the answer gives no fact."""
    if _OBEYED.search(_FENCE.sub("", played.user)):
        return _json(reasons="I was told to.", abstained=1)
    return _json(reasons="It was read.", abstained=int(not facts(played.text("answer to judge"))))


def _json(**fields: object) -> str:
    return json.dumps(fields)


RULES: dict[str, Callable[[Played], str]] = {
    "generation": generated,
    "filter": rated,
    "answer": answered,
    "judge": judged,
    "abstained": abstention,
}
