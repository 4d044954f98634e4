"""The figures that a gate compares with, in a file that is meant to be committed beside the gate's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyce.errors import StoreError, UsageError
from hyce.index.manifest import write_json

FORMAT = 1
AGAIN = "look at the figures and store them with `hyce evaluate gate FILE --save-baseline`"


@dataclass(frozen=True, slots=True)
class Baseline:
    """The figures that were stored."""

    questions: Mapping[str, str]
    """By section, the digest of what was asked."""
    figures: Mapping[tuple[str, str, str], float]
    """By section, group and name."""


def read_baseline(file: Path) -> Baseline:
    """The stored figures. Raises UsageError where there are none yet, StoreError where they can't be read."""
    try:
        data = json.loads(file.read_bytes())
        if data["format"] != FORMAT:
            raise StoreError(f"{file}: the baseline of another version of hyce; {AGAIN}")
        figures = {
            (section, group, name): _number(value)
            for section, groups in data["figures"].items()
            for group, figures in groups.items()
            for name, value in figures.items()
        }
        return Baseline({str(key): str(value) for key, value in data["questions"].items()}, figures)
    except FileNotFoundError as error:
        raise UsageError(f"{file}: there is no baseline yet; {AGAIN}") from error
    except OSError as error:
        raise StoreError(f"{file}: can't be read ({error.strerror}); check its permissions") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StoreError(f"{file}: damaged ({error}); {AGAIN}") from error


def check_comparable(file: Path, stored: Baseline, section: str, questions: str) -> None:
    """Raise StoreError where a section's figures were stored for other questions. questions: their digest."""
    if stored.questions.get(section, questions) != questions:
        raise StoreError(
            f"{file}: made from other questions than those of [{section}] now, or asked otherwise; {AGAIN}"
        )


def write_baseline(file: Path, figures: Baseline) -> None:
    """Store the figures, whole or not at all. Raises StoreError."""
    sections: dict[str, dict[str, dict[str, float]]] = {}
    for (section, group, name), value in figures.figures.items():
        sections.setdefault(section, {}).setdefault(group, {})[name] = round(value, 6)
    try:
        write_json(file, {"format": FORMAT, "questions": dict(figures.questions), "figures": sections})
    except OSError as error:
        raise StoreError(f"{file}: can't be written ({error.strerror}); check its folder") from error


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError(f"{value!r} is no number from 0 to 1")
    return float(value)
