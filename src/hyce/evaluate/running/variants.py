"""Variants of the settings, which answer the same questions: one TOML file, each building on an earlier one.

title = "..."                     above the table of results
passes = 3                        how often each question is answered; --passes wins
judge = "grounded"                or "paper"; --judge wins

[[variant]]
name = "baseline"
description = "..."
preset = "paper"                  its values stand below the settings beside it
[variant.settings]
commands.run = false              as in hyce.toml

[[variant]]
name = "+hyce"
inherits = "baseline"             all of that one's settings, below its own
settings.commands.run = true
"""

from __future__ import annotations

import tomllib
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyce.config import checked, with_preset
from hyce.errors import ConfigError, UsageError
from hyce.evaluate.records import Mode
from hyce.trust import read_private

FOLDER = Path(__file__).with_name("variants")
SHIPPED = ("paper", "local")

_KEYS = ("name", "description", "inherits", "preset", "settings")
_OF_ALL = ("llm.judge.", "llm.second_judge.", "llm.generation.", "llm.filter.")
"""Roles of the evaluation itself: variants that are judged by different judges can't be compared."""
_ADDRESS = {"location": "outside", "api_key_env": "", "api_key_file": ""}
"""What belongs to an address: said beside it, or as it is by default. Never another address's."""


@dataclass(frozen=True, slots=True)
class Variant:
    """Settings under which the questions are answered."""

    name: str
    description: str
    settings: Mapping[str, Any]
    """All that it sets, by "section.key": the preset's and the inherited ones too."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A variants file, read."""

    title: str
    passes: int
    judge: Mode
    variants: tuple[Variant, ...]


def read_variants(name_or_path: str) -> Plan:
    """The plan of a shipped file (paper, local) or of one's own.

    Raises UsageError for what is wrong in it, ConfigError where others can write it: it may name endpoints.
    """
    shipped = name_or_path in SHIPPED
    file = FOLDER / f"{name_or_path}.toml" if shipped else Path(name_or_path)
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8") if shipped else read_private(file))
    except OSError as error:
        known = " or ".join(SHIPPED)
        raise UsageError(f"{file}: can't be read ({error.strerror}); name a file, or {known}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{file}: not valid TOML: {error}; mend that line") from error
    return _plan(tables, str(file))


def _plan(tables: Mapping[str, Any], file: str) -> Plan:
    unknown = sorted(set(tables) - {"title", "passes", "judge", "variant"})
    if unknown:
        raise UsageError(f"{file}: no such key: {unknown[0]}; there are title, passes, judge and [[variant]]")
    title, passes, judge = tables.get("title", ""), tables.get("passes", 3), tables.get("judge", "grounded")
    if not isinstance(title, str):
        raise UsageError(f"{file}: title is a text, not {title!r}")
    if type(passes) is not int or passes < 1:
        raise UsageError(f"{file}: passes is a whole number from 1, not {passes!r}")
    if judge not in typing.get_args(Mode):
        raise UsageError(f"{file}: judge is one of {', '.join(typing.get_args(Mode))}, not {judge!r}")
    given = tables.get("variant")
    if not isinstance(given, list) or not given:
        raise UsageError(f"{file}: holds no variant; each begins with [[variant]] and has a name")
    found: dict[str, Variant] = {}
    for table in given:
        variant = _variant(table, found, file)
        found[variant.name] = variant
    return Plan(title, passes, judge, tuple(found.values()))


def _variant(table: Any, earlier: Mapping[str, Variant], file: str) -> Variant:
    """A variant with all that it inherits."""
    name = table.get("name") if isinstance(table, dict) else None
    if not isinstance(name, str) or not name.strip():
        raise UsageError(f"{file}: variant {len(earlier) + 1} has no name; each needs one of its own")
    origin = f"{file}, variant {name}"
    if name in earlier:
        raise UsageError(f"{file}: two variants are called {name}; give each a name of its own")
    unknown = sorted(set(table) - set(_KEYS))
    if unknown:
        raise UsageError(f"{origin}: no such key: {unknown[0]}; there are {', '.join(_KEYS)}")
    for key in ("description", "inherits", "preset"):
        if not isinstance(table.get(key, ""), str):
            raise UsageError(f"{origin}: {key} is a text, not {table[key]!r}")
    inherits = table.get("inherits", "")
    if inherits and inherits not in earlier:
        known = ", ".join(earlier) or "none"
        raise UsageError(f"{origin}: inherits {inherits!r}, which is no earlier variant; those are: {known}")
    inherited = earlier[inherits].settings if inherits else {}
    settings = {**inherited, **_settings(table, origin)}
    return Variant(name, " ".join(table.get("description", "").split()), settings)


def _settings(table: Mapping[str, Any], origin: str) -> dict[str, Any]:
    """What it says itself, with its preset's values and what goes with an address or a model."""
    tables = table.get("settings", {})
    if not isinstance(tables, dict):
        raise UsageError(f"{origin}: settings is a table of sections, not {tables!r}")
    try:
        own = checked(tables, origin)
        own = with_preset({**own, "preset": table["preset"]} if table.get("preset") else own, origin)
    except ConfigError as error:
        raise UsageError(str(error)) from error
    for key in own:
        if key.startswith("policy."):
            raise UsageError(f"{origin}: {key} is the site's to say; it can't differ between variants")
        if key.startswith(_OF_ALL):
            raise UsageError(f"{origin}: {key} holds for all variants alike; set it in hyce.toml")
    beside: dict[str, Any] = {}
    for key in own:
        section, _, name = key.rpartition(".")
        if name == "base_url":
            beside |= {f"{section}.{each}": value for each, value in _ADDRESS.items()}
        if key in ("llm.model", "llm.base_url"):
            beside["llm.tokenizer"] = ""
        if key in ("model.name", "model.base_url"):
            beside["model.tokenizer"] = ""
    return {**beside, **own}
