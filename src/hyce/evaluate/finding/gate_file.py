"""A gate's file -> what it asks for.

[retrieval]
questions = ["questions.jsonl"]        # relative to this file
"recall@500w" = 0.80                   # at least; any figure of `hyce evaluate retrieval`

[retrieval.kinds.factoid]
"mrr@10" = 0.60

[routing]
questions = ["commands.jsonl"]
assume_available = true                # also scheduler = "slurm" or "pbs"
first = 0.90

[run]
folder = "a-run"
variant = "+cot"
lost = 0.02                            # answers that may have no verdict, at most this share
eval_score = 0.75

[baseline]
file = "baseline.json"
tolerance = 0.02
"""

from __future__ import annotations

import difflib
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hyce.errors import UsageError
from hyce.evaluate.finding import retrieval, routing
from hyce.evaluate.finding.measured import ALL

RETRIEVAL, ROUTING, RUN, BASELINE, KINDS = "retrieval", "routing", "run", "baseline", "kinds"
RUN_FIGURES = ("eval_score", "correctness", "faithfulness", "abstained")

FIGURES = {RETRIEVAL: retrieval.FIGURES, ROUTING: routing.FIGURES, RUN: RUN_FIGURES}
"""What there may be a threshold for."""
MAIN = {RETRIEVAL: retrieval.MAIN, ROUTING: routing.MAIN, RUN: RUN_FIGURES[:3]}
"""What is compared with a baseline also without a threshold."""
_KEYS: Mapping[str, Mapping[str, type]] = {
    RETRIEVAL: {"questions": list, "k": int},
    ROUTING: {"questions": list, "scheduler": str, "assume_available": bool},
    RUN: {"folder": str, "variant": str, "lost": float},
    BASELINE: {"file": str, "tolerance": float},
}
_NEEDED = {
    RETRIEVAL: ("questions",),
    ROUTING: ("questions",),
    RUN: ("folder", "variant"),
    BASELINE: ("file",),
}
_WHAT = {list: "a list of files", int: "a whole number from 1", str: "a text", bool: "true or false"}

TOLERANCE = 0.02
LOST = 0.02
"""Share of a run's answers that may have no verdict: they are in no figure, and may be the bad ones."""


@dataclass(frozen=True, slots=True)
class Section:
    """What is measured, and how good it has to be."""

    name: str
    settings: Mapping[str, Any]
    thresholds: Mapping[tuple[str, str], float]
    """By group (ALL, or a kind) and figure."""


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate's file, read."""

    file: Path
    sections: tuple[Section, ...]
    baseline: Path | None = None
    tolerance: float = TOLERANCE

    def paths(self, section: Section) -> list[Path]:
        """The question files of a section."""
        return [self.file.parent / name for name in section.settings["questions"]]


@dataclass(slots=True)
class _Read:
    """A section while it is read."""

    settings: dict[str, Any] = field(default_factory=dict)
    thresholds: dict[tuple[str, str], float] = field(default_factory=dict)


def read_gate(file: Path) -> Gate:
    """What a gate's file asks for. Raises UsageError that names what is wrong."""
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{file}: can't be read ({error.strerror}); name a gate's file") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: not UTF-8; save it as such") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        hint = 'names with @ stand in quotes: "recall@500w" = 0.8'
        raise UsageError(f"{file}: not valid TOML: {error}; {hint}") from error
    for name, content in data.items():
        if name not in _KEYS:
            raise UsageError(f"{file}: no such section: {name}{suggest(name, list(_KEYS))}")
        if not isinstance(content, dict):
            raise UsageError(f"{file}: {name} is no section; write [{name}]")
    read = {name: _section(file, name, content) for name, content in data.items()}
    stored = read.pop(BASELINE, _Read()).settings
    sections = tuple(Section(name, each.settings, each.thresholds) for name, each in read.items())
    baseline = file.parent / stored["file"] if stored else None
    for section in sections:
        if not section.thresholds and baseline is None:
            raise UsageError(
                f"{file}: [{section.name}] checks nothing; give a figure its least value, such as "
                f'"{MAIN[section.name][0]}" = 0.8, or add a [baseline]'
            )
    if not sections:
        raise UsageError(f"{file}: checks nothing; add [retrieval], [routing] or [run]")
    return Gate(file, sections, baseline, stored.get("tolerance", TOLERANCE))


def _section(file: Path, name: str, content: Mapping[str, Any]) -> _Read:
    place = f"{file}: [{name}]"
    read = _Read()
    figures = FIGURES.get(name, ())
    for key, value in content.items():
        if key in _KEYS[name]:
            read.settings[key] = _setting(place, key, value, _KEYS[name][key])
        elif key == KINDS and figures:
            read.thresholds |= _kinds(place, value, figures)
        elif key in figures:
            read.thresholds[ALL, key] = _fraction(place, key, value)
        else:
            known = [*_KEYS[name], *figures, *([KINDS] if figures else [])]
            raise UsageError(f"{place}: no such figure or setting: {key}{suggest(key, known)}")
    for key in _NEEDED[name]:
        if not read.settings.get(key):
            raise UsageError(f"{place}: has no {key}; add it")
    return read


def _kinds(place: str, content: Any, figures: Sequence[str]) -> dict[tuple[str, str], float]:
    """The thresholds of [section.kinds.KIND]."""
    thresholds = {}
    for kind, least in content.items() if isinstance(content, dict) else [(KINDS, None)]:
        if not isinstance(least, dict) or not least:
            raise UsageError(f"{place}: {kind} holds no figures; write them below [SECTION.{KINDS}.KIND]")
        for key, value in least.items():
            if key not in figures:
                raise UsageError(f"{place}: {kind}: no such figure: {key}{suggest(key, figures)}")
            thresholds[kind, key] = _fraction(f"{place}: {kind}", key, value)
    return thresholds


def _setting(place: str, key: str, value: Any, wanted: type) -> Any:
    if wanted is float:
        return _fraction(place, key, value)
    right = isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool))
    if wanted is list:
        right = right and all(isinstance(each, str) for each in value)
    if wanted is int:
        right = right and value >= 1
    if not right:
        raise UsageError(f"{place}: {key} is {_WHAT[wanted]}, not {value!r}")
    if key == "scheduler" and value not in ("slurm", "pbs"):
        raise UsageError(f"{place}: scheduler is slurm or pbs, not {value!r}")
    return value


def _fraction(place: str, key: str, value: Any) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not number or not 0 <= value <= 1:
        raise UsageError(f"{place}: {key} is a number from 0 to 1, not {value!r}")
    return float(value)


def suggest(word: str, known: Sequence[str]) -> str:
    """The end of a message about an unknown word: the one that was meant, or all there are."""
    close = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {close[0]}?" if close else f"; there are {', '.join(known)}"
