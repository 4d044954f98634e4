"""\"And why is the second one waiting?\" -> a question about the job that an earlier answer showed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hyce.records import CommandOutput, Match, Turn

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_NUMBERS = {word: number for number, word in enumerate(_ORDINALS, 1)} | {"last": 0}
# What an ordinal must stand before to mean a job: "the first time" and "the last week" don't.
_OF_A_LIST = (
    r"(?:\s+(?:one|job|run|task|entry|of\s+(?:them|those|these|my\s+jobs))\b|(?=\s*(?:[?.!,]|$))"
    r"|(?=\s+(?:still\s+)?(?:waiting|pending|running|held|failing|not|start|begin|wait|finish|fail|crash)\b))"
)
_ORDINAL = re.compile(
    rf"\b(?:the|my)\s+(?:({'|'.join(_ORDINALS)}|last(?!\s+(?:job|run|task)\b))|(\d{{1,2}})(?:st|nd|rd|th)){_OF_A_LIST}",
    re.IGNORECASE,
)
_THAT_JOB = re.compile(r"\b(?:that|this|the\s+same)\s+(?:job|one|run)\b", re.IGNORECASE)
# "It" is a job where it does what jobs do. "Is it possible to run" and "how long does it take to run a"
# tell of none.
_IT = re.compile(
    r"\bit(?!\s+(?!going|about|supposed|likely|expected|due|set)[a-z]+\s+to\s+\w+\s+\w)"
    r"(?!\s+(?:(?:im)?possible|allowed|ok|okay|fine|safe|wise|better|best|good|bad|normal|necessary)\b)"
    r"(?=(?:\s+\w+){0,2}?\s+(?:wait|pend|run|start|fail|crash|us(?:e|ing)\b|end|finish|stop|kill|die|begin|held"
    r"|hold|stuck|take|took|need|write|wrote|ask))",
    re.IGNORECASE,
)
_JOB_ID = re.compile(r"\d{1,10}(?:_(?:\d{1,7}|\[[0-9,%-]{1,60}\])|\[\d{0,7}\])?(?:\.[A-Za-z][\w.-]{0,60})?")
_NAMES_A_JOB = re.compile(r"(?<![\w.])\d{4,10}\b")


@dataclass(frozen=True, slots=True)
class Reference:
    """A phrase of the question that stands for a job shown before."""

    question: str
    """The question with the job's number in place of the phrase."""
    phrase: str
    job: str


def resolve(question: str, turns: Sequence[Turn]) -> Reference | None:
    """The job of an earlier turn that the question means; None where it means none, or it can't be told.

    "The second one" counts in the latest list of jobs that was shown; "it" and "that job" are the latest
    one job that a turn was about.
    """
    if _NAMES_A_JOB.search(question):
        return None
    ordinal = _ORDINAL.search(question)
    if ordinal:
        number = _NUMBERS[ordinal[1].lower()] if ordinal[1] else int(ordinal[2])
        listed = next((turn.jobs for turn in reversed(turns) if len(turn.jobs) > 1), ())
        return _replaced(question, ordinal, listed[number - 1]) if number <= len(listed) and listed else None
    pronoun = _THAT_JOB.search(question) or _IT.search(question)
    latest = next((turn.jobs for turn in reversed(turns) if turn.jobs), ())
    return _replaced(question, pronoun, latest[0]) if pronoun and len(latest) == 1 else None


def jobs_shown(matches: Sequence[Match], outputs: Sequence[CommandOutput]) -> tuple[str, ...]:
    """The jobs that a turn was about: the one that the question names, or those that the commands list."""
    named = [match.params["job_id"] for match in matches if "job_id" in match.params]
    if named:
        return tuple(dict.fromkeys(named))
    # Only a scheduler's numbers are jobs: a list of processes begins with numbers too.
    answering = {match.command.id for match in matches if match.command.scheduler}
    lines = [line for output in outputs if output.id in answering for line in output.stdout.splitlines()]
    first = [line.split(maxsplit=1)[0] for line in lines if line.strip()]
    return tuple(dict.fromkeys(word for word in first if _JOB_ID.fullmatch(word)))


def _replaced(question: str, found: re.Match[str], job: str) -> Reference:
    return Reference(f"{question[: found.start()]}job {job}{question[found.end() :]}", found[0], job)
