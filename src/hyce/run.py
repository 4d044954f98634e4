"""Command -> CommandOutput: one catalogue entry, run as this user, in layers that hold without each other.

The layers, by the names under which an output lists them:
    allow-list              only entries of the catalogue; the site's off switch; not as root
    argv                    no shell; each parameter matches its pattern and never splits an argument
    root-owned programs     from fixed folders that only root can change, never from the user's PATH
    scrubbed environment    a fixed set of variables, and those that the entry names
    time limit, output limit, process group    process.py
    resource limits         core files, open files and processor time, by prlimit
    no_new_privs            setuid programs have no effect, by setpriv; for entries that bear it

prlimit and setpriv (util-linux) stand for code between fork and exec, which is unsafe in a program with
threads. There is no limit on processes: Linux counts them per user, over all that the user runs on the
machine, so that a limit would be none, or would break an entry for whoever has a desktop session there.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import grp
import math
import os
import pwd
import re
import resource
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from hyce import process, programs
from hyce.catalogue import PLACEHOLDER
from hyce.config import Policy, Site
from hyce.errors import PolicyError
from hyce.programs import PROGRAM_DIRECTORIES
from hyce.records import Command, CommandOutput, Parameter, Pipeline, Status
from hyce.views import VIEWS, Viewer

MAX_VALUE = 200
"""Longest value of a parameter, in characters."""
_UNSAFE = re.compile(r"""[;&|<>$`"'\\(){}!*?~\s\x00-\x20\x7f-\xa0\u2028\u2029\ud800-\udfff]""")
_SEARCH_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"
_OPEN_FILES = 256
_NO_SITE = Site()
_NO_POLICY = Policy()


def site_folders(policy: Policy) -> tuple[Path, ...]:
    """The folders that the site adds to those that programs come from."""
    return tuple(Path(folder) for folder in policy.program_folders)


def available(
    command: Command,
    *,
    policy: Policy = _NO_POLICY,
    directories: Sequence[Path] = PROGRAM_DIRECTORIES,
    trusted_uid: int = 0,
) -> str | None:
    """None when all that the entry needs is on this machine, or else what is missing."""
    directories = (*site_folders(policy), *directories)
    stages = [stage for pipeline in (command.argv, *command.also) for stage in pipeline]
    names = [*(stage[0] for stage in stages), *(n for n in command.requires if not n.startswith("/"))]
    for name in names:
        found = programs.find(name, directories, trusted_uid)
        if isinstance(found, str):
            return found
    for path in command.requires:
        if path.startswith("/") and not Path(path).exists():
            return f"{path} doesn't exist on this machine"
    return None


def run(
    command: Command,
    params: Mapping[str, str],
    *,
    policy: Policy,
    site: Site = _NO_SITE,
    directories: Sequence[Path] = PROGRAM_DIRECTORIES,
    trusted_uid: int = 0,
) -> CommandOutput:
    """What the entry printed, or why it did not run. Never raises for what the program does.

    site: what the entry's view needs to know of the site.
    directories, trusted_uid: where programs may come from and who must own them; for tests.
    """
    try:
        _check_policy(policy)
        argv, *also = fill(command, params)
    except PolicyError as error:
        return _not_run(command, command.argv, "refused", str(error))
    missing = available(command, policy=policy, directories=directories, trusted_uid=trusted_uid)
    if missing:
        return _not_run(command, argv, "unavailable", missing)
    prefix, layers = _helpers(command)
    started = _now()
    try:
        finished = [
            _execute(command, pipeline, prefix, policy, directories, trusted_uid)
            for pipeline in (argv, *also)
        ]
    except OSError as error:
        return _not_run(command, argv, "unavailable", f"{argv[0][0]} can't be started: {error.strerror}")
    return _viewed(_output(command, argv, tuple(also), finished, layers, started), command, finished, site)


def _execute(  # noqa: PLR0917
    command: Command,
    pipeline: Pipeline,
    prefix: Sequence[str],
    policy: Policy,
    directories: Sequence[Path],
    trusted_uid: int,
) -> process.Finished:
    folders = (*site_folders(policy), *directories)
    files = [programs.find(stage[0], folders, trusted_uid) for stage in pipeline]
    if any(isinstance(file, str) for file in files):
        raise FileNotFoundError(errno.ENOENT, "it has just been removed")
    return process.execute(
        [[*prefix, str(file), *stage[1:]] for file, stage in zip(files, pipeline, strict=True)],
        environment=child_environment(command, policy),
        timeout=command.timeout,
        max_bytes=command.max_bytes,
    )


def _output(  # noqa: PLR0917
    command: Command,
    argv: Pipeline,
    also: tuple[Pipeline, ...],
    finished: Sequence[process.Finished],
    layers: tuple[str, ...],
    started: str,
) -> CommandOutput:
    """What ran as it ended: the entry's own command decides; what ran beside it adds to stderr only."""
    first = finished[0]
    limit = f"it had not ended after {command.timeout:g} seconds, and was ended" if first.timed_out else ""
    return CommandOutput(
        id=command.id,
        argv=argv,
        status="timeout" if first.timed_out else "failed" if first.exit_code else "ok",
        exit_code=first.exit_code,
        stdout=first.stdout.decode("utf-8", "replace"),
        stderr=b"".join(each.stderr for each in finished).decode("utf-8", "replace"),
        truncated=any(each.truncated for each in finished),
        seconds=sum(each.seconds for each in finished),
        layers=layers,
        started=started,
        reason=limit,
        also=also,
    )


def _viewed(
    output: CommandOutput, command: Command, finished: Sequence[process.Finished], site: Site
) -> CommandOutput:
    """The output as the entry's view has it; as printed where it has none, failed, or can't be read."""
    if not command.view or output.status != "ok":
        return output
    texts = [each.stdout.decode("utf-8", "replace") if each.exit_code == 0 else None for each in finished]
    groups = []
    for number in sorted({os.getgid(), *os.getgroups()}):
        with contextlib.suppress(KeyError):
            groups.append(grp.getgrgid(number).gr_name)
    viewer = Viewer(_identity(command)["me"], tuple(groups), site.gpu_nodes)
    try:
        return replace(output, stdout=VIEWS[command.view](texts, viewer))
    except ValueError as error:
        note = f"hyce: shown as printed, since it could not be read: {error}\n"
        return replace(output, stderr=output.stderr + note)


def fill(command: Command, params: Mapping[str, str]) -> tuple[Pipeline, ...]:
    """The entry's argv, then each of `also`, with every placeholder replaced inside its own argument.

    Raises PolicyError for a parameter that is missing, unknown, or not a plain value of its pattern.
    """
    known = {parameter.name: parameter for parameter in command.parameters}
    for name in params:
        if name not in known:
            wanted = ", ".join(known) or "none"
            raise PolicyError(f"{command.id} has no parameter {name!r}; its parameters are: {wanted}")
    values: dict[str, str] = _identity(command)
    for parameter in command.parameters:
        value = params.get(parameter.name, parameter.default)
        if value is None:
            raise PolicyError(
                f"{command.id} needs {parameter.name} ({parameter.description}); "
                f"give it as {parameter.name}=VALUE"
            )
        values[parameter.name] = check_value(command.id, parameter, value)
    return tuple(
        tuple(
            tuple(PLACEHOLDER.sub(lambda found: values[found[1]], part) for part in stage)
            for stage in pipeline
        )
        for pipeline in (command.argv, *command.also)
    )


def check_value(entry_id: str, parameter: Parameter, value: str) -> str:
    """The value. Raises PolicyError unless it is a plain one: the pattern is the rule, the rest holds even
    where a site's pattern is too wide."""
    place = f"{entry_id}: {parameter.name}={value[:60]!r}"
    if len(value) > MAX_VALUE:
        raise PolicyError(f"{place} is longer than {MAX_VALUE} characters; give the value alone")
    if value.startswith("-"):
        raise PolicyError(f"{place} is an option, not a value; expected: {parameter.description}")
    if _UNSAFE.search(value):
        raise PolicyError(f"{place} holds characters that no value has; expected: {parameter.description}")
    if ".." in value.split("/"):
        raise PolicyError(f"{place} leads out of its folder; give the path without `..`")
    if not re.fullmatch(parameter.pattern, value):
        raise PolicyError(f"{place} doesn't fit; expected: {parameter.description}")
    return value


def child_environment(command: Command, policy: Policy) -> dict[str, str]:
    """All that a program gets to see of the environment."""
    user = pwd.getpwuid(os.getuid())
    fixed = {
        "PATH": _SEARCH_PATH,
        "HOME": user.pw_dir,
        "USER": user.pw_name,
        "LOGNAME": user.pw_name,
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TERM": "dumb",
        "COLUMNS": "240",
    }
    if policy.slurm_conf:
        fixed["SLURM_CONF"] = policy.slurm_conf
    passed = {name: os.environ[name] for name in command.environment if name in os.environ}
    return passed | fixed


def _check_policy(policy: Policy) -> None:
    if not policy.commands:
        raise PolicyError("the site has switched commands off (policy.commands); ask its administrators")
    if os.getuid() != os.geteuid() or os.getgid() != os.getegid():
        raise PolicyError("hyce was started with another user's rights (setuid); start it as yourself")
    if os.geteuid() == 0 and not policy.root:
        raise PolicyError(
            "hyce runs as root, and commands don't run as root; start it as an ordinary user, "
            "or set policy.root = true in /etc/hyce/hyce.toml"
        )


def _identity(command: Command) -> dict[str, str]:
    """The process's own user as the password database has it. Raises PolicyError where it has none."""
    uid = os.getuid()
    try:
        user = pwd.getpwuid(uid)
    except KeyError as error:
        raise PolicyError(f"user id {uid} is in no password database; hyce can't tell who you are") from error
    values = {"me": user.pw_name, "uid": str(uid), "home": user.pw_dir}
    if user.pw_name.startswith("-") or not user.pw_dir.startswith("/"):
        raise PolicyError(f"user id {uid} has an unusable name or home directory; tell the administrators")
    stages = [stage for pipeline in (command.argv, *command.also) for stage in pipeline]
    if any("{cwd}" in part for stage in stages for part in stage):
        try:
            values["cwd"] = str(Path.cwd())
        except OSError as error:
            raise PolicyError("the current folder is gone; change to another one with cd") from error
    return values


def _helpers(command: Command) -> tuple[list[str], tuple[str, ...]]:
    """The programs that start each stage, and the names of all layers that hold with them."""
    prefix: list[str] = []
    layers = ["allow-list", "argv", "root-owned programs", "scrubbed environment"]
    layers += ["time limit", "output limit", "process group"]
    prlimit, setpriv = programs.find("prlimit"), programs.find("setpriv")
    if isinstance(prlimit, Path):
        files = _at_most(resource.RLIMIT_NOFILE, _OPEN_FILES)
        seconds = _at_most(resource.RLIMIT_CPU, math.ceil(command.timeout) + 1)
        prefix += [str(prlimit), "--core=0", f"--nofile={files}", f"--cpu={seconds}", "--"]
        layers.append("resource limits")
    if isinstance(setpriv, Path) and "no_new_privs" in command.isolation:
        prefix += [str(setpriv), "--no-new-privs", "--"]
        layers.append("no_new_privs")
    return prefix, tuple(layers)


def _at_most(limit: int, wanted: int) -> int:
    """What this process may lower the limit to; raising it above its own hard limit would fail."""
    hard = resource.getrlimit(limit)[1]
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


def _not_run(
    command: Command, argv: tuple[tuple[str, ...], ...], status: Status, reason: str
) -> CommandOutput:
    return CommandOutput(
        id=command.id,
        argv=argv,
        status=status,
        exit_code=None,
        stdout="",
        stderr="",
        truncated=False,
        seconds=0.0,
        layers=("allow-list", "argv"),
        started=_now(),
        reason=reason,
    )


def _now() -> str:
    return datetime.datetime.now().astimezone().isoformat(timespec="seconds")
