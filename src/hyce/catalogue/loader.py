"""YAML files -> Command, by a strict schema. The files say what runs, so nothing in them passes unread.

    slurm.job:
      description: What it tells, in a user's words.
      questions: [what is my job 123 doing, ...]        # optional; with them it is found far better
      command: [scontrol, show, job, "{job_id}"]        # or [[...], [...]], joined by pipes
      parameters:
        job_id: {pattern: '\\d+', description: The job's number, find: ['job (\\d+)'], instead: slurm.my_jobs}
      scheduler: slurm
      timeout: 10                  # seconds
      max_bytes: 65536
      reuse: 15                    # seconds
      requires: [/etc/slurm]       # files or programs beside the command's own
      environment: [MODULEPATH]    # the user's variables that it needs
      isolation: [no_new_privs]
      may_leave_site: true
      also: [[sinfo, -h]]          # further commands, for a view that puts several outputs together
      view: slurm_gpus             # a function of hyce.views that makes the output readable
      diagnosis: [slurm.priority]  # entries that run beside it where the question asks why
      after_failure: [slurm.history]  # and where it asks why something failed
    slurm.usage: {disabled: true}  # in a site's folder: leaves a built-in entry out

An entry of a later folder replaces the one with the same id as a whole.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import yaml

from hyce.catalogue import IDENTITY, PLACEHOLDER
from hyce.errors import CatalogueError, ConfigError
from hyce.records import Command, Parameter, Pipeline
from hyce.trust import read_private, refuse_if_others_can_write
from hyce.views import VIEWS

ISOLATION = ("pid", "user", "mount", "tmp", "devices", "network", "no_new_privs")

MAX_FILE_BYTES = 1_000_000
_ID = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+")
_NAME = re.compile(r"[a-z][a-z_0-9]*")
_PROGRAM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*", re.IGNORECASE)

LAUNCHERS = re.compile(
    "sh|bash|dash|zsh|ksh|csh|tcsh|fish|busybox|env|xargs|sudo|su|doas|runuser|ssh|srun|nohup|setsid|timeout"
    r"|nice|eval|exec|python[\d.]*|perl|ruby|lua|tclsh|node|[gmn]?awk|sed|vim?|less|more|parallel|mpirun|mpiexec"
    "|pdsh|clush|stdbuf|taskset|numactl|chroot|unshare|nsenter|setpriv|prlimit|strace|watch|script|flock|ionice"
    "|chrt|time|man|pkexec|newgrp|sg|systemd-run|run-parts|start-stop-daemon|bwrap|docker|podman|apptainer"
    "|singularity"
    "|screen|tmux|expect|socat|gdb|make|git|tar|php|Rscript|R|julia|emacs|ed|ex|m4|[rm]bash|mksh"
)
"""Programs that run other programs or a program text; an entry's command is what it says it is."""

CHANGERS = re.compile(
    "scancel|sbatch|salloc|sbcast|scrontab|strigger|qsub|qdel|qalter|qhold|qrls|qmove|qmgr|qrun|qsig|qorder|qrerun"
    "|pbs_rsub|pbs_rdel|pbs_ralter|rm|rmdir|mv|cp|ln|dd|tee|touch|mkdir|truncate|shred|chmod|chown|chgrp|setfacl"
    "|kill|pkill|killall|crontab|at|batch|passwd|chsh|mail|sendmail|curl|wget|scp|rsync|sftp|reboot|shutdown"
    "|install|patch|split|wall|write|nc|ncat|telnet|ftp|renice|systemctl"
)
"""Programs that change or send something: hyce promises its users that it only looks."""

_FORBIDDEN_VARIABLE = re.compile(
    r"LD_.*|DYLD_.*|PYTHON.*|PERL.*|RUBY.*|NODE_.*|LUA_.*|BASH.*|ENV|IFS|PS4|SHELL.*|PATH|HOME|USER|LOGNAME"
    r"|GLIBC_TUNABLES|GCONV_PATH|LOCPATH|NLSPATH|MALLOC_.*|TMPDIR|TERMINFO.*|SLURM_CONF|PBS_CONF_FILE"
    r"|.*(TOKEN|SECRET|PASSW|JWT|API_?KEY|CREDENTIAL|PRIVATE).*|HYCE_.*",
    re.IGNORECASE,
)

_FIELDS: dict[str, tuple[type, ...]] = {
    "description": (str,),
    "questions": (list,),
    "command": (list,),
    "parameters": (dict,),
    "requires": (list,),
    "scheduler": (str,),
    "timeout": (int, float),
    "max_bytes": (int,),
    "reuse": (int, float),
    "environment": (list,),
    "isolation": (list,),
    "may_leave_site": (bool,),
    "also": (list,),
    "view": (str,),
    "diagnosis": (list,),
    "after_failure": (list,),
    "disabled": (bool,),
}
_REQUIRED = ("description", "command")
_PARAMETER_FIELDS: dict[str, tuple[type, ...]] = {
    "pattern": (str,),
    "description": (str,),
    "find": (list,),
    "default": (str,),
    "part": (str,),
    "instead": (str,),
}
_TYPE_NAMES = {str: "a text", list: "a list", dict: "a mapping", int: "a number", bool: "true or false"}
_LIMITS = {"timeout": (0.1, 120), "max_bytes": (1, 4_000_000), "reuse": (0, 86_400)}


class UniqueKeyLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Safe YAML in which a key that stands twice is an error instead of a silent replacement."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(None, None, f"{key!r} stands twice", node.start_mark)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        return mapping


def load_folders(folders: Sequence[Path], *, builtin: Path | None) -> dict[str, Command]:
    """The entries of all folders by id; a later folder replaces and disables entries of earlier ones.

    A single file stands for a folder that holds it alone.

    The built-in folder is part of the program: who could write there could change the program as well,
    and it often belongs to whoever installs software for everybody. Only the others are checked.
    """
    entries: dict[str, Command] = {}
    for folder in [*([builtin] if builtin else []), *folders]:
        if folder != builtin:
            _refuse_if_others_can_write(folder)
        found: dict[str, Command | None] = {}
        for file in _files(folder):
            for entry_id, entry in _read(file, trusted=folder == builtin).items():
                if entry_id in found:
                    raise _error(file, entry_id, "stands in two files of this folder; keep one")
                found[entry_id] = parse_entry(file, entry_id, entry)
        if folder == builtin:
            found = _with_questions(found, folder / "questions")
        for entry_id, command in found.items():
            if command is not None:
                entries[entry_id] = command
            elif entry_id not in entries:
                close = difflib.get_close_matches(entry_id, entries, n=1)
                hint = f"did you mean {close[0]}?" if close else "remove it"
                raise _error(folder, entry_id, f"disables an entry that doesn't exist; {hint}")
            else:
                del entries[entry_id]
    return entries


def _with_questions(found: Mapping[str, Command | None], folder: Path) -> dict[str, Command | None]:
    """The entries with the further questions of the built-in catalogue.

    They stand in files of their own, so that what runs can be read without them: a mapping from an id, or
    from several with spaces between, to a list of questions that each of those entries answers.
    """
    entries = dict(found)
    for file in _files(folder) if folder.is_dir() else ():
        for ids, questions in _read(file, trusted=True).items():
            for entry_id in str(ids).split():
                command = entries.get(entry_id)
                if command is None:
                    raise _error(file, entry_id, "is no entry; correct the id")
                texts = (*command.questions, *_texts(file, entry_id, "questions", questions))
                entries[entry_id] = replace(command, questions=tuple(dict.fromkeys(texts)))
    return entries


def load_texts(file: Path) -> tuple[str, ...]:
    """The texts of a YAML file that is one plain list."""
    data = _parse(file, trusted=True)
    if not isinstance(data, list) or not all(isinstance(text, str) for text in data):
        raise CatalogueError(f"{file}: is to be a list of texts")
    return tuple(data)


def _files(folder: Path) -> list[Path]:
    if folder.is_file():
        return [folder]
    return sorted(path for path in folder.iterdir() if path.suffix in (".yaml", ".yml"))


def _refuse_if_others_can_write(path: Path) -> None:
    if not path.exists():
        raise CatalogueError(f"{path}: doesn't exist; correct policy.catalogue in hyce.toml")
    try:
        refuse_if_others_can_write(path)
    except ConfigError as error:
        raise CatalogueError(str(error)) from error
    except OSError as error:
        raise CatalogueError(f"{path}: can't be read: {error.strerror}") from error


def _parse(file: Path, *, trusted: bool) -> Any:
    """The file's data. trusted: it is part of the program; others are refused when others can write them."""
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            raise CatalogueError(f"{file}: larger than {MAX_FILE_BYTES} bytes; split it")
        text = file.read_text(encoding="utf-8") if trusted else read_private(file)
        return yaml.load(text, Loader=UniqueKeyLoader)  # noqa: S506 - a safe one
    except ConfigError as error:
        raise CatalogueError(str(error)) from error
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise CatalogueError(f"{file}: not valid YAML: {reason}; mend that line") from error
    except OSError as error:
        raise CatalogueError(f"{file}: can't be read: {error.strerror}") from error


def _read(file: Path, *, trusted: bool) -> Mapping[Any, Any]:
    data = _parse(file, trusted=trusted)
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise CatalogueError(f"{file}: is to be a mapping from entry ids to entries")
    return data


def _error(file: Path, entry_id: object, reason: str) -> CatalogueError:
    return CatalogueError(f"{file}: {entry_id}: {reason}")


def parse_entry(file: Path, entry_id: Any, entry: Any) -> Command | None:
    """The entry as a Command, or None where it disables one."""
    if not isinstance(entry_id, str) or not _ID.fullmatch(entry_id):
        raise _error(
            file, entry_id, "an id is made of lower-case words joined by dots, such as slurm.my_jobs"
        )
    _check_fields(file, entry_id, entry, _FIELDS)
    if entry.get("disabled") is True:
        if len(entry) > 1:
            raise _error(file, entry_id, "`disabled: true` stands alone; remove the other keys")
        return None
    for name in _REQUIRED:
        if not entry.get(name):
            raise _error(file, entry_id, f"`{name}` is missing; every entry needs {', '.join(_REQUIRED)}")
    for name, (least, most) in _LIMITS.items():
        if name in entry and not least <= entry[name] <= most:
            raise _error(file, entry_id, f"`{name}` is between {least} and {most}, not {entry[name]}")
    argv = _argv(file, entry_id, entry["command"])
    parameters = _parameters(file, entry_id, entry.get("parameters", {}))
    view, also = _view(file, entry_id, entry)
    stages = (*argv, *(stage for pipeline in also for stage in pipeline))
    _check_placeholders(file, entry_id, stages, parameters)
    environment = _texts(file, entry_id, "environment", entry.get("environment", []))
    for variable in environment:
        if not _VARIABLE.fullmatch(variable) or _FORBIDDEN_VARIABLE.fullmatch(variable):
            raise _error(file, entry_id, f"the variable {variable} is never passed on; remove it")
    return Command(
        id=entry_id,
        description=" ".join(entry["description"].split()),
        questions=_texts(file, entry_id, "questions", entry.get("questions", [])),
        argv=argv,
        parameters=parameters,
        requires=_requires(file, entry_id, entry.get("requires", [])),
        scheduler=_scheduler(file, entry_id, entry.get("scheduler")),
        timeout=float(entry.get("timeout", 10.0)),
        max_bytes=entry.get("max_bytes", 65536),
        reuse=float(entry.get("reuse", 0.0)),
        environment=environment,
        isolation=_isolation(file, entry_id, entry.get("isolation", [])),
        may_leave_site=entry.get("may_leave_site", False),
        also=also,
        view=view,
        diagnosis=_texts(file, entry_id, "diagnosis", entry.get("diagnosis", [])),
        after_failure=_texts(file, entry_id, "after_failure", entry.get("after_failure", [])),
        origin=str(file),
    )


def _check_fields(file: Path, where: str, entry: Any, fields: Mapping[str, tuple[type, ...]]) -> None:
    """Raise unless `entry` is a mapping whose keys are all known and whose values have their types."""
    if not isinstance(entry, dict):
        raise _error(file, where, f"is to be a mapping with {', '.join(fields)}")
    for key, value in entry.items():
        if key not in fields:
            close = difflib.get_close_matches(str(key), fields, n=1)
            hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(fields)}"
            raise _error(file, where, f"unknown key `{key}`; {hint}")
        # bool is a subclass of int, yet `timeout: true` is a mistake.
        if type(value) not in fields[key]:
            raise _error(
                file, where, f"`{key}` is to be {_TYPE_NAMES[fields[key][0]]}, not {value!r}; correct it"
            )


def _texts(file: Path, where: str, key: str, values: Any) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) and value for value in values):
        raise _error(file, where, f"`{key}` is to be a list of texts; put numbers and yes/no in quotes")
    return tuple(values)


def _view(file: Path, where: str, entry: Mapping[str, Any]) -> tuple[str, tuple[Pipeline, ...]]:
    """The entry's view and the further commands that it needs."""
    view = entry.get("view", "")
    if view and view not in VIEWS:
        raise _error(file, where, f"there is no view {view!r}; known are {', '.join(VIEWS)}")
    further = entry.get("also", [])
    if further and not view:
        raise _error(file, where, "`also` needs a `view` that puts the outputs together; name one")
    if not all(isinstance(command, list) for command in further):
        raise _error(file, where, "`also` is to be a list of commands, each a list; put it in brackets")
    return view, tuple(_argv(file, where, command) for command in further)


def _argv(file: Path, where: str, command: list[Any]) -> Pipeline:
    stages = command if all(isinstance(stage, list) for stage in command) else [command]
    argv = tuple(_texts(file, where, "command", stage) for stage in stages)
    for stage in argv:
        if not stage:
            raise _error(file, where, "`command` holds an empty list; remove it")
        if reason := why_not_allowed(stage[0]):
            raise _error(file, where, reason)
    if any("\0" in part for stage in argv for part in stage):
        raise _error(file, where, "`command` holds a NUL character; remove it")
    return argv


def why_not_allowed(program: str) -> str | None:
    """Why no entry may run this program, with what to do; None where one may."""
    if not _PROGRAM.fullmatch(program):
        return f"{program!r} is no program name; write it without folder and placeholder"
    if LAUNCHERS.fullmatch(program):
        return f"{program} can run anything; name the program itself"
    if CHANGERS.fullmatch(program):
        return f"{program} changes or sends something; entries only look things up"
    return None


def _parameters(file: Path, where: str, parameters: Mapping[Any, Any]) -> tuple[Parameter, ...]:
    return tuple(_parameter(file, where, name, entry) for name, entry in parameters.items())


def _parameter(file: Path, where: str, name: Any, entry: Any) -> Parameter:
    place = f"{where}: parameter {name}"
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in IDENTITY:
        raise _error(file, place, f"a name is lower-case and not one of {', '.join(IDENTITY)}")
    _check_fields(file, place, entry, _PARAMETER_FIELDS)
    for key in ("pattern", "description"):
        if not entry.get(key):
            raise _error(file, place, f"`{key}` is missing; every parameter needs pattern and description")
    find = _texts(file, place, "find", entry.get("find", []))
    pattern, *_ = (_regex(file, place, text) for text in (entry["pattern"], *find))
    default = entry.get("default")
    if default is not None and not pattern.fullmatch(default):
        raise _error(file, place, f"the default {default!r} doesn't match the pattern; correct one of them")
    part = entry.get("part", "")
    _regex(file, place, part)
    instead = entry.get("instead", "")
    return Parameter(name, entry["pattern"], entry["description"], find, default, part, instead)


def _regex(file: Path, where: str, text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise _error(file, where, f"{text!r} is no regular expression: {error}; correct it") from error


def _check_placeholders(file: Path, where: str, argv: Pipeline, parameters: tuple[Parameter, ...]) -> None:
    used = set(_placeholders(argv)) - set(IDENTITY)
    declared = {parameter.name for parameter in parameters}
    for name in sorted(used - declared):
        raise _error(file, where, f"{{{name}}} stands in the command but not in `parameters`; declare it")
    for name in sorted(declared - used):
        raise _error(file, where, f"the parameter {name} doesn't stand in the command; use or remove it")


def _placeholders(argv: tuple[tuple[str, ...], ...]) -> Iterator[str]:
    for stage in argv:
        for part in stage:
            yield from PLACEHOLDER.findall(part)


def _requires(file: Path, where: str, values: Any) -> tuple[str, ...]:
    requires = _texts(file, where, "requires", values)
    for name in requires:
        if not name.startswith("/") and not _PROGRAM.fullmatch(name):
            raise _error(
                file, where, f"`requires` holds {name!r}: write a program's name or an absolute path"
            )
    return requires


def _scheduler(file: Path, where: str, value: str | None) -> Literal["slurm", "pbs"] | None:
    if value in ("slurm", "pbs", None):
        return value  # type: ignore[return-value]
    raise _error(file, where, f"`scheduler` is slurm or pbs, not {value!r}; leave it out for neither")


def _isolation(file: Path, where: str, values: Any) -> tuple[str, ...]:
    isolation = _texts(file, where, "isolation", values)
    for name in isolation:
        if name not in ISOLATION:
            raise _error(file, where, f"`isolation` knows {', '.join(ISOLATION)}, not {name!r}; correct it")
    return isolation
