"""One frozen Config, read once: command line > HYCE_* > the user's file > the site's file > default.

The site's [policy] is the exception: where /etc/hyce/hyce.toml exists, it is read from there alone and
nothing overrides it. `docs/settings.md` is generated from the field descriptions below.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import os
import sys
import tomllib
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from hyce.errors import ConfigError
from hyce.presets import PRESETS
from hyce.settings import (
    ROLES,
    Commands,
    Index,
    Llm,
    Model,
    Passages,
    Policy,
    Reranker,
    Retrieval,
    Role,
    Site,
    Web,
)
from hyce.trust import read_private

__all__ = [
    "Commands",
    "Config",
    "Index",
    "Llm",
    "Model",
    "Passages",
    "Policy",
    "Reranker",
    "Retrieval",
    "Role",
    "Site",
    "Web",
    "load",
]

SITE_FILE = Path("/etc/hyce/hyce.toml")


@dataclass(frozen=True, slots=True)
class Config:
    """All settings. `origins` says where each value that is not a default comes from."""

    preset: str = ""
    """Name of the preset whose values stand below the settings."""
    site: Site = field(default_factory=Site)
    index: Index = field(default_factory=Index)
    web: Web = field(default_factory=Web)
    passages: Passages = field(default_factory=Passages)
    model: Model = field(default_factory=Model)
    reranker: Reranker = field(default_factory=Reranker)
    retrieval: Retrieval = field(default_factory=Retrieval)
    commands: Commands = field(default_factory=Commands)
    llm: Llm = field(default_factory=Llm)
    roles: Mapping[str, Role] = field(default_factory=dict)
    """The roles that have settings of their own, by name."""
    policy: Policy = field(default_factory=Policy)
    origins: Mapping[str, str] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    """Settings that have no effect: because the site's policy holds, or for want of another one."""
    role: str = ""
    """The role as which `llm` stands here; empty for [llm] itself."""


def for_role(config: Config, role: str) -> Config:
    """The settings as the language model of a role (settings.ROLES) sees them: its own in place of [llm]'s.

    A key goes to the address that it was configured for and to no other.
    """
    own = config.roles.get(role)
    if own is None:
        return config
    names = ["model", "timeout", "context_tokens", "max_output_tokens"]
    if own.base_url:
        names += _ADDRESS
    elsewhere = bool(own.base_url)
    given = {name: getattr(own, name) for name in names}
    kept = {name: value for name, value in given.items() if value or (elsewhere and name.startswith("api_"))}
    if own.model:
        kept["tokenizer"] = ""  # another model's tokens; estimated ones are never too few
    return dataclasses.replace(config, llm=dataclasses.replace(config.llm, **kept), role=role)


_ADDRESS = ("base_url", "location", "api_key_env", "api_key_file")
"""Settings that belong to an address and are never taken from another one's section."""


def llm_setting(config: Config, name: str) -> str:
    """The setting by its name in the file: llm.timeout, or llm.answer.timeout where the role has its own."""
    own = config.roles.get(config.role)
    has_own = own is not None and getattr(own, "base_url" if name in _ADDRESS else name, None)
    return f"llm.{config.role}.{name}" if has_own else f"llm.{name}"


_SECTIONS = {
    name: hint
    for name, hint in typing.get_type_hints(Config).items()
    if name not in ("preset", "roles", "origins", "notices", "role")
}
SECTIONS: dict[str, type] = {
    **{name: hint for name, hint in _SECTIONS.items() if name != "policy"},
    **{f"llm.{role}": Role for role in ROLES},
    "policy": Policy,
}
"""Every section by its name in the file."""


def load(
    file: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    site_file: Path = SITE_FILE,
    above: tuple[str, Mapping[str, Any]] | None = None,
) -> Config:
    """All settings, merged.

    file: the user's hyce.toml in place of $XDG_CONFIG_HOME/hyce/hyce.toml; it must exist when named.
    overrides: settings of the command line, as {"section.key": value}; they win.
    above: further ones that stand above the command line's, after what they are called in messages.
    Raises ConfigError for an unknown key, a wrong type, broken TOML, or a file that others can write.
    """
    environ = os.environ if environ is None else environ
    if file is not None and not file.exists():
        raise ConfigError(f"{file}: no such settings file; `hyce init` writes one")
    user_file = file or config_folder(environ) / "hyce.toml"
    site_governs = _is_there(site_file)
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    notices: list[str] = []
    layers: list[tuple[str, dict[str, Any], bool]] = []
    if site_governs:
        layers.append((str(site_file), _read_toml(site_file), True))
    if user_file.exists() and user_file != site_file:
        layers.append((str(user_file), _read_toml(user_file), not site_governs))
    layers.append(("environment", _read_environment(environ), not site_governs))
    layers.append(("command line", dict(overrides or {}), not site_governs))
    layers += [(above[0], dict(above[1]), not site_governs)] if above else []
    for origin, settings, may_set_policy in layers:
        for key, value in with_preset(settings, origin).items():
            _check(key, value, origin)
            # Who may call an address the site's own decides what leaves the site.
            is_policy = key.startswith("policy.") or (key.endswith(".location") and value == "onsite")
            if is_policy and not may_set_policy:
                notices.append(f"{key} in {origin} has no effect: {site_file} holds the site's policy")
                continue
            values[key] = value
            origins[key] = origin
    if site_governs:
        notices += _distrust_locations(values, origins, str(site_file))
    sections: dict[str, Any] = {}
    roles: dict[str, Role] = {}
    for name, section in SECTIONS.items():
        given = {key: values[f"{name}.{key}"] for key in _keys(section) if f"{name}.{key}" in values}
        made = section(**{key: _frozen(value) for key, value in given.items()})
        if section is not Role:
            sections[name] = made
        elif given:
            roles[name.removeprefix("llm.")] = made
            if not made.base_url:
                notices += [
                    f"{name}.{key} has no effect without {name}.base_url"
                    for key in _ADDRESS
                    if given.get(key, getattr(Role(), key)) != getattr(Role(), key)
                ]
    if not (sections["retrieval"].dense or sections["retrieval"].lexical):
        raise ConfigError("retrieval.dense and retrieval.lexical are both false; one of them must search")
    sections |= {"preset": values.get("preset", ""), "roles": types.MappingProxyType(roles)}
    return Config(**sections, origins=types.MappingProxyType(origins), notices=tuple(notices))


def with_preset(settings: Mapping[str, Any], origin: str) -> dict[str, Any]:
    """The layer's settings, with those of the preset that it names where it says nothing itself."""
    name = settings.get("preset")
    if not name:
        return dict(settings)
    if not isinstance(name, str) or name not in PRESETS:
        raise ConfigError(f"{origin}: no such preset: {name!r}; there are {', '.join(PRESETS)}")
    return {**PRESETS[name].settings, **settings}


def _distrust_locations(values: dict[str, Any], origins: Mapping[str, str], site_file: str) -> list[str]:
    """What the site said of its own address doesn't hold for another one that somebody set; the notices."""
    notices = []
    for key in [key for key, value in values.items() if key.endswith(".location") and value == "onsite"]:
        address = f"{key.removesuffix('location')}base_url"
        elsewhere = origins.get(address, site_file)
        if elsewhere != site_file:
            values[key] = "outside"
            notices.append(f"{key} in {site_file} has no effect on {address} in {elsewhere}")
    return notices


def checked(tables: Mapping[str, Any], origin: str) -> dict[str, Any]:
    """{"section.key": value} of nested tables. Raises ConfigError for a setting that there is not, or of
    another type."""
    settings = {
        key: value
        for name, section in tables.items()
        for key, value in (_flat(name, section) if isinstance(section, dict) else {name: section}).items()
    }
    for key, value in settings.items():
        _check(key, value, origin)
    return settings


def config_folder(environ: Mapping[str, str] | None = None) -> Path:
    """$XDG_CONFIG_HOME/hyce, or ~/.config/hyce."""
    return _xdg("XDG_CONFIG_HOME", ".config", environ)


def data_folder(environ: Mapping[str, str] | None = None) -> Path:
    """$XDG_DATA_HOME/hyce, or ~/.local/share/hyce."""
    return _xdg("XDG_DATA_HOME", ".local/share", environ)


def cache_folder(environ: Mapping[str, str] | None = None) -> Path:
    """$XDG_CACHE_HOME/hyce, or ~/.cache/hyce: what can be made again."""
    return _xdg("XDG_CACHE_HOME", ".cache", environ)


def state_folder(environ: Mapping[str, str] | None = None) -> Path:
    """$XDG_STATE_HOME/hyce, or ~/.local/state/hyce: what ran, for whom, and what it printed a moment ago."""
    return _xdg("XDG_STATE_HOME", ".local/state", environ)


def expanded(path: str) -> Path:
    """The path with ~ replaced. Raises ConfigError where it names a user that isn't there."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise ConfigError(f"{path}: no such user; write the path without ~") from error


def index_folder(config: Config, *, writing: bool = False) -> Path:
    """Where the index is; writing: where one will be made or changed.

    Without a setting: the user's own, else the one that was installed with the program for all users. Who
    may write that one changes it for all, as long as they have none of their own.
    """
    return _place(config.index.path, "index", "current", writing)


def models_folder(config: Config, name: str = "", *, writing: bool = False) -> Path:
    """The folder with the model's (default: the embedding model's); writing: where it will be put.

    The rule is that of index_folder, for each model by itself.
    """
    name = name or config.model.name
    return _place(config.model.folder, "models", f"{name}/model.json", writing)


def models_folders(config: Config) -> list[Path]:
    """All folders that may hold models, the one that counts first."""
    if config.model.folder:
        return [expanded(config.model.folder)]
    return [data_folder() / "models", program_folder() / "models"]


def program_folder() -> Path:
    """Where models and an index are that were installed with the program, for all its users."""
    return Path(sys.prefix) / "share" / "hyce"


def _place(setting: str, kind: str, holds: str, writing: bool) -> Path:
    """The folder of a kind. holds: the file by which it is known to have what is looked for."""
    if setting:
        return expanded(setting)
    own, shared = data_folder() / kind, program_folder() / kind
    if os.access(own / holds, os.R_OK):
        return own
    usable = os.access(program_folder(), os.W_OK) if writing else os.access(shared / holds, os.R_OK)
    return shared if usable else own


def _is_there(path: Path) -> bool:
    """Whether the file exists, be it unreadable or a link to nowhere: no policy of a site must be missed."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        pass
    return True


def _xdg(variable: str, fallback: str, environ: Mapping[str, str] | None) -> Path:
    value = (os.environ if environ is None else environ).get(variable, "")
    # The XDG specification: a relative path is to be ignored.
    return (Path(value) if value.startswith("/") else Path.home() / fallback) / "hyce"


def _keys(section: type) -> tuple[str, ...]:
    return tuple(f.name for f in dataclasses.fields(section))


def _all_keys() -> list[str]:
    return ["preset", *(f"{name}.{key}" for name, section in SECTIONS.items() for key in _keys(section))]


def _read_toml(path: Path) -> dict[str, Any]:
    """{"section.key": value} of one settings file."""
    try:
        data = tomllib.loads(read_private(path))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}; mend that line") from error
    except OSError as error:
        raise ConfigError(f"{path}: can't be read: {error.strerror}; check its permissions") from error
    settings: dict[str, Any] = {}
    for name, section in data.items():
        if name == "preset":
            settings[name] = section
        elif not isinstance(section, dict):
            raise ConfigError(f"{path}: `{name}` stands outside a section; write it below [section]")
        else:
            settings.update(_flat(name, section))
    return settings


def _flat(name: str, section: Mapping[str, Any]) -> dict[str, Any]:
    """{"section.key": value} of a section and those within it."""
    found: dict[str, Any] = {}
    for key, value in section.items():
        found.update(_flat(f"{name}.{key}", value) if isinstance(value, dict) else {f"{name}.{key}": value})
    return found


def _read_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """HYCE_LLM_BASE_URL=... as {"llm.base_url": ...}. Other HYCE_ names are refused: a typing error
    in a setting must not pass unseen."""
    by_variable = {f"HYCE_{key.replace('.', '_').upper()}": key for key in _all_keys()}
    settings: dict[str, Any] = {}
    for variable, text in environ.items():
        if not variable.startswith("HYCE_"):
            continue
        key = by_variable.get(variable)
        if key is None:
            raise ConfigError(f"{variable}: no such setting{_suggest(variable, list(by_variable))}")
        settings[key] = _from_text(key, text)
    return settings


def _type(key: str) -> Any:
    section, _, name = key.rpartition(".")
    if not section:
        return str
    return typing.get_type_hints(SECTIONS[section])[name]


def _from_text(key: str, text: str) -> Any:
    wanted = _type(key)
    if wanted is bool:
        return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}.get(
            text.lower(), text
        )
    if wanted in (int, float):
        try:
            return wanted(text)
        except ValueError:
            return text
    if typing.get_origin(wanted) is tuple:
        return [item for item in text.split(",") if item]
    return text


def _check(key: str, value: Any, origin: str) -> None:
    """Raise ConfigError unless `key` exists and `value` is of its type."""
    if key not in _all_keys():
        raise ConfigError(f"{origin}: no such setting: {key}{_suggest(key, _all_keys())}")
    wanted = _type(key)
    choices = typing.get_args(wanted) if typing.get_origin(wanted) is Literal else ()
    if choices:
        if value not in choices:
            raise ConfigError(f"{origin}: {key} is one of {', '.join(choices)}, not {value!r}")
    elif typing.get_origin(wanted) is tuple:
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
            raise ConfigError(f"{origin}: {key} is a list of texts, not {value!r}")
    elif wanted is float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ConfigError(f"{origin}: {key} is a number, not {value!r}")
    elif not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        name = {bool: "true or false", int: "a whole number", str: "a text"}[wanted]
        raise ConfigError(f"{origin}: {key} is {name}, not {value!r}")
    smallest = _SMALLEST.get(key)
    if smallest is not None and value < smallest:
        raise ConfigError(f"{origin}: {key} is at least {smallest}, not {value!r}")


_SMALLEST = {
    "index.max_page_mb": 0,
    "web.rate": 0.01,
    "web.at_once": 1,
    "web.pages": 1,
    "web.timeout": 0.1,
    "web.retries": 0,
    "passages.size": 32,
    "model.threads": 0,
    "model.timeout": 0.1,
    "model.retries": 0,
    "model.batch": 1,
    "model.max_tokens": 16,
    "reranker.timeout": 0.1,
    "reranker.retries": 0,
    "reranker.batch": 1,
    "retrieval.candidates": 1,
    "retrieval.passages": 1,
    "retrieval.wordings": 2,
    "retrieval.rounds": 1,
    "commands.most": 1,
    "policy.rate_limit": 0,
    "llm.timeout": 0.1,
    "llm.retries": 0,
    "llm.context_tokens": 1024,
    "llm.max_output_tokens": 16,
    **{
        f"llm.{role}.{key}": 0 for role in ROLES for key in ("timeout", "context_tokens", "max_output_tokens")
    },
}


def _suggest(word: str, words: list[str]) -> str:
    close = difflib.get_close_matches(word, words, n=1)
    return f"; did you mean {close[0]}?" if close else "; `hyce init` writes them all"


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
