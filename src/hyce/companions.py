"""A question why -> the entries that help to explain, beside those that answer it.

"Why is job 48213 waiting?" wants the job, and what it waits for: priority, reservations, limits. "Why did it
fail?" wants how it ended and what it used. Which entries these are, each entry says itself (`diagnosis`,
`after_failure`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from hyce import values
from hyce.records import Command, Match

MOST = 4
"""Each companion is a further call of the scheduler."""

_WHY = re.compile(
    r"\bwhy\b|\breasons?\b|\bhow\s+come\b|\bwhat\s+for\b|\bwhat(?:\s+is|'?s|\s+was|\s+went)\s+wrong\b"
    r"|\bwhat\s+(?:has\s+|have\s+)?happened\b|\bwhat\s+(?:keeps|holds|blocks|stops|prevents)\b.*\b(?:job|run)"
    r"|\bwhat\s+(?:made|killed|caused)\b|\bcauses?\b|\bproblem\b|\bexplain\b|\bexplanation\b",
    re.IGNORECASE,
)
_START = r"(?:start|run|begin|launch|progress|move|gets?\s+going|gets?\s+scheduled)\w{0,4}\b"
_HINDERED = re.compile(
    rf"(?:n't|\bnot|\bnever|\bcannot|\brefuses?\s+to|\bfail(?:s|ing)?\s+to)\s+(?:\w+\s+)?{_START}"
    r"|\bstuck\b|\bnothing\s+happens\b|\b(?:takes?|taking)\s+so\s+long\b"
    r"|\bstill\s+(?:not|no|waiting|pending|queued|held|in\s+the\s+queue)\b",
    re.IGNORECASE,
)
_WAITS = re.compile(
    r"\b(?:waiting|waits?|pending|queued|held|on\s+hold|in\s+the\s+queue|delayed|PD)\b", re.IGNORECASE
)
_ENDED = re.compile(
    r"\b(?:fail(?:s|ed|ing|ure)?|crash(?:es|ed|ing)?|killed|dies|died|dead|abort(?:s|ed)?|terminated|cancel+ed"
    r"|broke|broken\s+off|disappeared|vanished|stopped|ended|timed?\s*out|ran\s+out\s+of|out\s+of\s+memory|oom"
    r"|exit\s+(?:code|status)|errors?|segfault(?:s|ed)?|preempted|thrown\s+out|kicked\s+out|gone)\b"
    r"|\b(?:TIMEOUT|OUT_OF_MEMORY|NODE_FAIL|CANCELLED|FAILED|PREEMPTED)\b",
    re.IGNORECASE,
)


def supporting(
    question: str,
    matches: Sequence[Match],
    catalogue: Mapping[str, Command],
    offered: Callable[[Command], bool],
) -> tuple[Match, ...]:
    """The companions that run beside the matches: () unless the question asks why, or tells of trouble.

    They get the values of the entry that they accompany. One that needs a value which the question doesn't
    hold is left out, as is one that can't run here (offered) or that runs anyway.
    """
    hindered = bool(_HINDERED.search(question))
    ended = not (hindered or _WAITS.search(question)) and bool(_ENDED.search(question))
    if not (hindered or ended or _WHY.search(question)):
        return ()
    found: dict[str, Match] = {}
    for match in matches:
        for entry_id in match.command.after_failure if ended else match.command.diagnosis:
            command = catalogue.get(entry_id)
            params = _params(command, match, question) if command and offered(command) else None
            if command and params is not None:
                found.setdefault(entry_id, Match(command, params, match.score))
    for match in matches:
        found.pop(match.command.id, None)
    return tuple(found.values())[:MOST]


def _params(command: Command, match: Match, question: str) -> dict[str, str] | None:
    """The values of its parameters, from the matched entry or the question; None where one is missing."""
    params: dict[str, str] = {}
    for parameter in command.parameters:
        value = match.params.get(parameter.name) or values.find(command, parameter, question)
        if value is not None:
            params[parameter.name] = value
        elif parameter.default is None:
            return None
    return params
