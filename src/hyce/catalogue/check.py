"""A catalogue that loads -> what is to be mended in it, and what is worth knowing.

The loader refuses what breaks the schema. Here is looked for what loads and doesn't work: a reference to
nowhere, a parameter that no question fills, a pattern that hangs, two entries that say the same.
"""

from __future__ import annotations

import itertools
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hyce.catalogue import BUILTIN
from hyce.config import Policy
from hyce.embed import Embedder
from hyce.parameters import MAX_VALUE
from hyce.records import Command, Parameter, command_line
from hyce.run import available
from hyce.values import find

ALIKE = 0.8
"""Similarity from which two descriptions are too alike. The nearest two of the built-in catalogue, which tell
the nodes of PBS and their GPUs, have 0.77; the same thing said in other words has 0.5 to 0.75, and shows in
the questions that one entry takes from the other."""
SLOW = 0.05
"""Seconds that no search for a pattern may take: a question is searched for all of them."""

_LENGTHS = (8, 12, 16, 20, 24, 28, 50, 100, 200, 400, 800, 1600)
"""Of the inputs that patterns are tried on. Where the time doubles with each character, it shows at 28."""
_FILLERS = ("a", "A", "0", "_", "-", ".", "/", " ", "a ", "0,", "a0", "a.", "a-", "/a")
_ENDS = ("", "!", "\n")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about an entry."""

    entry: str
    kind: str
    """reference, parameter, pattern, program, alike, command, or question."""
    text: str
    remedy: str
    must_mend: bool
    """False: worth knowing, nothing more."""


def is_builtin(command: Command) -> bool:
    """Whether the entry came with hyce: a site can't mend that one, only replace or disable it."""
    return command.origin.startswith(f"{BUILTIN}/")


def findings(
    entries: Mapping[str, Command],
    *,
    policy: Policy,
    embedder: Embedder,
    misrouted: Iterable[tuple[str, str, str]],
    known: Mapping[str, Command],
) -> list[Finding]:
    """All that there is to say, entry by entry.

    misrouted: (entry, question, where it leads), as hyce.match finds them. known: the built-in catalogue, so
    that a reference to an entry that the site has disabled is known from one to nowhere.
    """
    commands = tuple(entries.values())
    found = [
        *(finding for command in commands for finding in references(command, entries, known)),
        *(finding for command in commands for finding in parameters(command)),
        *slow_patterns(commands),
        *missing_programs(commands, policy),
        *same_commands(commands),
        *alike(commands, embedder),
        *wrong_questions(entries, misrouted),
    ]
    order = {entry_id: position for position, entry_id in enumerate(entries)}
    return sorted(found, key=lambda finding: order[finding.entry])


def references(
    command: Command, entries: Mapping[str, Command], known: Mapping[str, Command]
) -> Iterator[Finding]:
    """Ids of other entries that the entry names and that don't exist."""
    named = [("diagnosis", entry_id) for entry_id in command.diagnosis]
    named += [("after_failure", entry_id) for entry_id in command.after_failure]
    named += [("instead", parameter.instead) for parameter in command.parameters if parameter.instead]
    for field, entry_id in named:
        if entry_id not in entries:
            yield Finding(
                command.id,
                "reference",
                f"`{field}` names {entry_id}, which {'is disabled' if entry_id in known else 'is no entry'}",
                "correct the id, or remove it",
                must_mend=entry_id not in known,
            )


def parameters(command: Command) -> Iterator[Finding]:
    """Parameters that questions don't fill."""
    for parameter in command.parameters:
        if not parameter.find:
            yield Finding(
                command.id,
                "parameter",
                f"{parameter.name} has no `find`: no question fills it",
                f"add `find`; without it, only `hyce run {command.id} {parameter.name}=...` does",
                must_mend=False,
            )
        elif command.questions and not any(find(command, parameter, text) for text in command.questions):
            yield Finding(
                command.id,
                "parameter",
                f"none of its questions fills {parameter.name}{_refused_value(command, parameter)}",
                "correct `find` or `pattern`, or add a question that holds a value",
                must_mend=not is_builtin(command),
            )


def _refused_value(command: Command, parameter: Parameter) -> str:
    """What `find` takes from the questions and `pattern` refuses."""
    for pattern, question in itertools.product(parameter.find, command.questions):
        if found := re.search(pattern, question):
            value = found[1] if found.re.groups else found[0]
            return f": `find` takes {value!r}, which its `pattern` refuses"
    return ""


def slow_patterns(
    commands: Iterable[Command], clock: Callable[[], float] = time.perf_counter
) -> Iterator[Finding]:
    """Patterns that take long for some texts: whoever asks such a question would wait for ever."""
    tried: dict[tuple[str, bool], str | None] = {}
    for command in commands:
        for parameter in command.parameters:
            for key in ((parameter.pattern, True), *((pattern, False) for pattern in parameter.find)):
                if key not in tried:
                    tried[key] = slow_for(key[0], whole=key[1], clock=clock)
                if tried[key] is not None:
                    yield Finding(
                        command.id,
                        "pattern",
                        f"{parameter.name}: {key[0]!r} takes too long for texts such as {tried[key]!r}",
                        "let no repetition stand within another, and bound each: {1,20} in place of +",
                        must_mend=True,
                    )


def slow_for(pattern: str, *, whole: bool, clock: Callable[[], float] = time.perf_counter) -> str | None:
    """The beginning of a text for which the pattern takes longer than SLOW; None where none is known.

    whole: it has to match a whole value, which is short; else it is searched in a question.
    The texts grow, so that a pattern whose time explodes is met before it takes minutes.
    """
    compiled = re.compile(pattern)
    attempt = compiled.fullmatch if whole else compiled.search
    words = dict.fromkeys(re.findall(r"(?<!\\)[A-Za-z]{2,}", pattern))
    starts = ["", *(f"{word} " for word in words), *words]
    for length in [length for length in _LENGTHS if length <= MAX_VALUE or not whole]:
        for start, filler, end in itertools.product(starts[:12], _FILLERS, _ENDS):
            text = f"{start}{filler * length}{end}"
            # Twice, since anything may take long once on a busy machine.
            if _seconds(attempt, text, clock) > SLOW and _seconds(attempt, text, clock) > SLOW:
                return text[:40]
    return None


def _seconds(attempt: Callable[[str], object], text: str, clock: Callable[[], float]) -> float:
    begun = clock()
    attempt(text)
    return clock() - begun


def missing_programs(commands: Iterable[Command], policy: Policy) -> Iterator[Finding]:
    """Entries that can't run on this machine."""
    for command in commands:
        if reason := available(command, policy=policy):
            yield Finding(
                command.id, "program", f"can't run here: {reason}", "install it where it is wanted", False
            )


def same_commands(commands: Sequence[Command]) -> Iterator[Finding]:
    """Entries that run what an earlier one runs."""
    earlier: dict[tuple[object, ...], str] = {}
    for command in sorted(commands, key=lambda each: not is_builtin(each)):
        first = earlier.setdefault((command.argv, command.also), command.id)
        if first != command.id:
            yield Finding(
                command.id,
                "command",
                f"runs the same as {first}: {command_line(command.argv, command.also)}",
                "keep one of the two; `disabled: true` leaves out a built-in one",
                must_mend=False,
            )


def alike(commands: Sequence[Command], embedder: Embedder) -> Iterator[Finding]:
    """Pairs whose descriptions are so near to each other that either may be taken for a question."""
    if not commands:
        return
    vectors = np.stack([each.vector for each in embedder.embed([c.description for c in commands])])
    similarity = vectors @ vectors.T
    for first, second in itertools.combinations(range(len(commands)), 2):
        pair = sorted((commands[first], commands[second]), key=lambda command: not is_builtin(command))
        if similarity[first, second] >= ALIKE and _compete(*pair):
            yield Finding(
                pair[1].id,
                "alike",
                f"its description is too much like that of {pair[0].id}: {similarity[first, second]:.2f}",
                "say what sets it apart, or keep one of the two",
                must_mend=not is_builtin(pair[1]),
            )


def _compete(first: Command, second: Command) -> bool:
    """Whether both may be offered for one question: a machine has one batch system."""
    return None in (first.scheduler, second.scheduler) or first.scheduler == second.scheduler


def wrong_questions(
    entries: Mapping[str, Command], misrouted: Iterable[tuple[str, str, str]]
) -> Iterator[Finding]:
    """Example questions that lead elsewhere: a site's own, and those of others that a site's entry takes.

    Of the built-in entries' thousands, a few lead to another built-in one; that is no fault of the site's.
    """
    taken: Counter[tuple[str, str]] = Counter()
    for entry_id, question, leads_to in misrouted:
        own, other = entries[entry_id], entries.get(leads_to)
        if is_builtin(own) and other is not None and not is_builtin(other):
            taken[other.id, entry_id] += 1
            continue
        yield Finding(
            entry_id,
            "question",
            f"its question {question!r} leads to {leads_to}",
            "reword one of the two",
            must_mend=not is_builtin(own),
        )
    for (entry_id, victim), count in taken.items():
        yield Finding(
            entry_id,
            "question",
            f"it takes {count} of the questions of {victim} ({len(entries[victim].questions)} in all)",
            f"describe it more narrowly, or disable {victim}",
            must_mend=True,
        )
