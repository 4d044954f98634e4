"""The commented hyce.toml that `hyce init` writes, and the settings page of the documentation."""

from __future__ import annotations

import dataclasses
import json
import textwrap
import typing
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from hyce.config import SECTIONS
from hyce.presets import PRESETS
from hyce.settings import ROLES, Role
from hyce.surroundings import Surroundings


def render(found: Surroundings) -> str:
    """The text of a hyce.toml: every setting with its meaning, commented out unless it was found here."""
    values: dict[str, Any] = {}
    if found.scheduler != "none":
        values["site.scheduler"] = found.scheduler
    if found.cluster:
        values["site.cluster"] = found.cluster
    lines = [
        "# Settings of hyce. A line with a leading # shows the default; remove the # to change it.",
        f"# Found here: batch system {found.scheduler}, modules {found.modules or 'none'}, "
        f"Lustre {', '.join(found.lustre) or 'none'}, GPUs {'yes' if found.gpus else 'none'}.",
        "",
        *_comment(f"Several settings at once: one of {', '.join(PRESETS)}."),
        '# preset = ""',
    ]
    for name, section in SECTIONS.items():
        lines += ["", *_comment(_purpose(name, section)), f"[{name}]"]
        # A role's settings are explained once.
        explained = section is not Role or name == f"llm.{next(iter(ROLES))}"
        lines += _keys(name, section, values, explained=explained)
    return "\n".join(lines) + "\n"


def settings_page() -> str:
    """docs/settings.md: every setting with its type and default."""
    lines = [
        "# Settings",
        "",
        "Generated from the code by `python -m hyce.settings_file`.",
        "",
        "A setting is taken from the first of these that has it: the command line, an environment variable",
        "(`HYCE_LLM_BASE_URL` for `base_url` in `[llm]`; lists are separated by commas), the user's",
        "`$XDG_CONFIG_HOME/hyce/hyce.toml`, the site's `/etc/hyce/hyce.toml`, the default. The site's",
        "`[policy]` is the exception: where `/etc/hyce/hyce.toml` exists, it is read from there alone, and",
        "nothing overrides it.",
        "A file that others can write is refused, and so is a key that isn't listed here.",
        "",
        "## Presets",
        "",
        '`preset = "NAME"` above the first section, `HYCE_PRESET` or `--preset NAME` sets several at once.',
        "What is written in the same place beside it wins, and so does a place that comes before it.",
    ]
    for name, preset in PRESETS.items():
        lines += ["", f"`{name}`: {preset.description}", "", "```toml"]
        lines += [f"{key} = {_toml(value)}" for key, value in preset.settings.items()]
        lines += ["```"]
    for name, section in SECTIONS.items():
        if section is Role and name != f"llm.{next(iter(ROLES))}":
            continue
        title = ", ".join(f"[llm.{role}]" for role in ROLES) if section is Role else f"[{name}]"
        lines += ["", f"## {title}", ""]
        if section is Role:
            lines += [f"- `[llm.{role}]`: the model that {does}." for role, does in ROLES.items()] + [""]
        lines += [section.__doc__ or "", ""]
        lines += ["| setting | type | default | meaning |", "| --- | --- | --- | --- |"]
        hints = typing.get_type_hints(section)
        for key in dataclasses.fields(section):
            kind = _type_name(hints[key.name]).replace("|", "\\|")
            lines.append(f"| `{key.name}` | {kind} | `{_toml(key.default)}` | {key.metadata['doc']} |")
    return "\n".join(lines) + "\n"


def _purpose(name: str, section: type) -> str:
    role = name.removeprefix("llm.")
    what = f"The model that {ROLES[role]}. " if section is Role else ""
    return what + (section.__doc__ or "")


def _keys(name: str, section: type, values: Mapping[str, Any], *, explained: bool) -> Iterator[str]:
    for key in dataclasses.fields(section):
        if explained:
            yield from _comment(key.metadata["doc"])
        chosen = values.get(f"{name}.{key.name}")
        if chosen is None:
            yield f"# {key.name} = {_toml(key.default)}"
        else:
            yield f"{key.name} = {_toml(chosen)}"


def _comment(text: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(text, 100)]


def _toml(value: Any) -> str:
    # TOML's basic strings, numbers, booleans and arrays of them are written as JSON writes them.
    return json.dumps(list(value) if isinstance(value, tuple) else value)


def _type_name(hint: Any) -> str:
    if typing.get_origin(hint) is Literal:
        return " | ".join(typing.get_args(hint))
    if typing.get_origin(hint) is tuple:
        return "list of texts"
    return {bool: "true | false", int: "whole number", float: "number", str: "text"}[hint]


if __name__ == "__main__":
    print(settings_page(), end="")
