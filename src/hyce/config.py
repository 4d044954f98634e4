"""One frozen Config, read once: command line > HYCE_* > the user's file > the site's file > default.

The site's [policy] is the exception: where /etc/hyce/hyce.toml exists, it is read from there alone and
nothing overrides it. `docs/settings.md` is generated from the field descriptions below.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import os
import tomllib
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from hyce.errors import ConfigError
from hyce.trust import read_private

SITE_FILE = Path("/etc/hyce/hyce.toml")


def setting(default: Any, doc: str) -> Any:
    """A dataclass field with its description."""
    return field(default=default, metadata={"doc": doc})


@dataclass(frozen=True, slots=True)
class Site:
    """The centre and the machine."""

    name: str = setting("", "The centre's name, as the language model is told it.")
    cluster: str = setting("", "The cluster that this machine belongs to; its pages are preferred.")
    clusters: tuple[str, ...] = setting(
        (), "All clusters of the centre by name, so that pages of the others are recognised."
    )
    scheduler: Literal["auto", "slurm", "pbs", "none"] = setting(
        "auto",
        "Whose commands are offered. auto: any batch system's that is installed here; none: no one's.",
    )
    help: str = setting("", "Where to get help from people; every answer ends with it.")
    gpu_nodes: tuple[str, ...] = setting(
        (),
        'For PBS: which Unix group may use which GPU nodes, as "group=pattern of node names", such as '
        '"physics=k09*"; the group * is everybody. Empty: everybody may use all.',
    )


@dataclass(frozen=True, slots=True)
class Index:
    """Where the index is and what it holds."""

    path: str = setting("", "Folder of the index. Default: $XDG_DATA_HOME/hyce/index.")
    token_vectors: bool = setting(
        True, "Store token vectors for late interaction (about 40 kB a passage on disk)."
    )
    max_page_mb: float = setting(10.0, "Larger pages are left out, and listed.")


@dataclass(frozen=True, slots=True)
class Passages:
    """How pages are cut into passages."""

    kind: Literal["structure", "paragraph"] = setting(
        "structure",
        "structure: along headings, lists, tables and code. paragraph: the text of <p> elements only, "
        "as the published HyCE code does, for comparison.",
    )
    size: int = setting(160, "Most tokens in a passage, heading path included.")


@dataclass(frozen=True, slots=True)
class Model:
    """The embedding model on this machine."""

    name: str = setting("all-MiniLM-L6-v2", "Name of a pulled model.")
    precision: Literal["int8", "fp32"] = setting(
        "int8", "int8 is faster and a quarter of the size; fp32 is exact."
    )
    folder: str = setting("", "Folder of the model files. Default: $XDG_DATA_HOME/hyce/models.")
    threads: int = setting(0, "Processor threads; 0 means as many as this process may use, at most 4.")


@dataclass(frozen=True, slots=True)
class Retrieval:
    """How passages are found."""

    dense: bool = setting(True, "Search by the meaning of the whole question.")
    lexical: bool = setting(True, "Search by its words (BM25).")
    vocabulary: bool = setting(
        True, 'Search also with the field\'s terms for what newcomers say ("graphics card": GPU).'
    )
    rerank: Literal["late", "none"] = setting(
        "late", "late: order the candidates by late interaction over token vectors. none: keep fused order."
    )
    candidates: int = setting(100, "Passages taken from each search before they are fused.")
    passages: int = setting(6, "Passages given to the model or shown.")


@dataclass(frozen=True, slots=True)
class Commands:
    """Which commands may answer."""

    enabled: bool = setting(True, "Run commands to answer questions.")
    matching: Literal["routed", "joint", "llm"] = setting(
        "routed",
        "routed: own ranking, with a decision to run none, one or several. joint: descriptions compete with "
        "passages for the places of retrieval.passages, as the published HyCE code has it. llm: the language "
        "model chooses among the nearest entries.",
    )
    most: int = setting(2, "Commands run for one question, at most.")
    threshold: float = setting(0.15, "Score from which a command is taken to answer a question, 0 to 1.")


@dataclass(frozen=True, slots=True)
class Llm:
    """The language model. Without base_url and model, answers are passages and command output."""

    base_url: str = setting("", "Address of an OpenAI-compatible endpoint, such as http://localhost:8000/v1.")
    model: str = setting("", "Model name as the endpoint knows it.")
    location: Literal["onsite", "outside"] = setting(
        "outside",
        "Whether the endpoint is the site's own. This machine's own addresses always are; an outside one "
        "needs the site's consent in [policy].",
    )
    api_key_env: str = setting("", "Name of the environment variable that holds the key.")
    api_key_file: str = setting("", "File that holds the key; only its owner may be able to read it.")
    timeout: float = setting(60.0, "Seconds without a sign of life before a request is given up.")
    retries: int = setting(3, "Further tries after a failed connection, a 429 or a 5xx, with back-off.")
    stream: bool = setting(True, "Show the answer while it is written.")
    chain_of_thought: bool = setting(False, "Ask for reasons first, as JSON; the answer alone is shown.")
    context_tokens: int = setting(8192, "The model's context limit; passages are cut to fit.")
    max_output_tokens: int = setting(4096, "Longest answer.")
    output_limit: Literal["max_tokens", "max_completion_tokens"] = setting(
        "max_tokens", "Name under which the endpoint takes the longest answer; newer models want the latter."
    )
    temperature: float = setting(
        0.0, "0 for answers that can be repeated; -1 leaves it out, for endpoints that refuse it."
    )
    seed: int = setting(0, "Seed sent with each request; -1 leaves it out, for endpoints that refuse it.")
    tokenizer: str = setting(
        "", "Path of the model's tokenizer.json, to measure tokens instead of estimating them."
    )


@dataclass(frozen=True, slots=True)
class Policy:
    """What the site allows. Read from /etc/hyce/hyce.toml alone when that exists."""

    commands: bool = setting(True, "The off switch: false, and no command runs for anybody.")
    root: bool = setting(False, "Whether commands may run when hyce is started as root.")
    sandbox: Literal["auto", "require", "off"] = setting(
        "auto",
        "bubblewrap around each command. auto: where it works here; require: nothing runs where it doesn't; "
        "off: never.",
    )
    rate_limit: int = setting(30, "Commands that one user may start within a minute; 0: no limit.")
    syslog: bool = setting(False, "Send each run to syslog too, without the question.")
    slurm_conf: str = setting("", "SLURM_CONF for Slurm's commands; the user's own variable never counts.")
    program_folders: tuple[str, ...] = setting(
        (), "Further folders that programs may come from, changeable by root only; searched first."
    )
    outside_endpoints: tuple[str, ...] = setting(
        (), "Consent: addresses of endpoints outside the site that questions and passages may be sent to."
    )
    onsite_endpoints: tuple[str, ...] = setting(
        (), "Addresses of the site's own endpoints. Where set, only these and this machine's own are onsite."
    )
    catalogue: tuple[str, ...] = setting(
        (), "Folders with the site's own command entries (YAML), writable by their owner only."
    )


@dataclass(frozen=True, slots=True)
class Config:
    """All settings. `origins` says where each value that is not a default comes from."""

    site: Site = field(default_factory=Site)
    index: Index = field(default_factory=Index)
    passages: Passages = field(default_factory=Passages)
    model: Model = field(default_factory=Model)
    retrieval: Retrieval = field(default_factory=Retrieval)
    commands: Commands = field(default_factory=Commands)
    llm: Llm = field(default_factory=Llm)
    policy: Policy = field(default_factory=Policy)
    origins: Mapping[str, str] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    """Settings that had no effect because the site's policy holds."""


SECTIONS: dict[str, type] = {
    name: hint for name, hint in typing.get_type_hints(Config).items() if name not in ("origins", "notices")
}


def load(
    file: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    site_file: Path = SITE_FILE,
) -> Config:
    """All settings, merged.

    file: the user's hyce.toml in place of $XDG_CONFIG_HOME/hyce/hyce.toml; it must exist when named.
    overrides: settings of the command line, as {"section.key": value}; they win.
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
    for origin, settings, may_set_policy in layers:
        for key, value in settings.items():
            _check(key, value, origin)
            # Who may call an address the site's own decides what leaves the site.
            is_policy = key.startswith("policy.") or (key == "llm.location" and value == "onsite")
            if is_policy and not may_set_policy:
                notices.append(f"{key} in {origin} has no effect: {site_file} holds the site's policy")
                continue
            values[key] = value
            origins[key] = origin
    elsewhere = origins.get("llm.base_url", str(site_file))
    if site_governs and values.get("llm.location") == "onsite" and elsewhere != str(site_file):
        # The site said it of its own address, not of this one.
        values["llm.location"] = "outside"
        notices.append(f"llm.location in {site_file} has no effect on llm.base_url in {elsewhere}")
    sections: dict[str, Any] = {}
    for name, section in SECTIONS.items():
        given = {key: values[f"{name}.{key}"] for key in _keys(section) if f"{name}.{key}" in values}
        sections[name] = section(**{key: _frozen(value) for key, value in given.items()})
    if not (sections["retrieval"].dense or sections["retrieval"].lexical):
        raise ConfigError("retrieval.dense and retrieval.lexical are both false; one of them must search")
    return Config(**sections, origins=types.MappingProxyType(origins), notices=tuple(notices))


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


def index_folder(config: Config) -> Path:
    """Where the index is, or will be."""
    return expanded(config.index.path) if config.index.path else data_folder() / "index"


def models_folder(config: Config) -> Path:
    """Where the model files are, or will be."""
    return expanded(config.model.folder) if config.model.folder else data_folder() / "models"


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
    return [f"{name}.{key}" for name, section in SECTIONS.items() for key in _keys(section)]


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
        if not isinstance(section, dict):
            raise ConfigError(f"{path}: `{name}` stands outside a section; write it below [section]")
        settings.update({f"{name}.{key}": value for key, value in section.items()})
    return settings


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
    section, _, name = key.partition(".")
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
    "passages.size": 32,
    "model.threads": 0,
    "retrieval.candidates": 1,
    "retrieval.passages": 1,
    "commands.most": 1,
    "policy.rate_limit": 0,
    "llm.timeout": 0.1,
    "llm.retries": 0,
    "llm.context_tokens": 1024,
    "llm.max_output_tokens": 16,
}


def _suggest(word: str, words: list[str]) -> str:
    close = difflib.get_close_matches(word, words, n=1)
    return f"; did you mean {close[0]}?" if close else "; `hyce init` writes them all"


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
