"""Command -> CommandOutput: one catalogue entry, run as this user, in layers that hold without each other.

The layers, by the names under which an output lists them:
    allow-list              only entries of the catalogue; the site's off switch; not as root
    argv                    no shell; each parameter matches its pattern and never splits an argument
                            (parameters.py)
    root-owned programs     from fixed folders that only root can change, never from the user's PATH
                            (programs.py)
    scrubbed environment    a fixed set of variables, and those that the entry names
    time limit, output limit, process group
                            what hangs, floods or stays behind is ended (process.py)
    resource limits         core files, open files and processor time (layers.py, as the next two)
    process limit           processes and threads, beyond those that the user has already
    no_new_privs            setuid programs have no effect; for entries that bear it
    sandbox (...)           bubblewrap with what stands in the brackets; for entries that bear it (sandbox.py)
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import grp
import os
import pwd
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from hyce import layers, process, programs
from hyce.config import Policy, Site
from hyce.errors import PolicyError
from hyce.layers import Start
from hyce.parameters import fill, identity
from hyce.programs import PROGRAM_DIRECTORIES
from hyce.records import Command, CommandOutput, Pipeline, Status
from hyce.views import VIEWS, Viewer

_SEARCH_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"
_NO_SITE = Site()
_NO_POLICY = Policy()
_UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""What a view may raise for an output of another shape: a missing column, numbers or nesting without end."""


def site_folders(policy: Policy) -> tuple[Path, ...]:
    """The folders that the site adds to those that programs come from."""
    return tuple(Path(folder) for folder in policy.program_folders if folder.startswith("/"))


def available(
    command: Command,
    *,
    policy: Policy = _NO_POLICY,
    directories: Sequence[Path] = PROGRAM_DIRECTORIES,
    trusted_uid: int = 0,
) -> str | None:
    """None when all that the entry needs is on this machine, or else what is missing."""
    directories = (*site_folders(policy), *directories)
    names = [*(stage[0] for stage in command.stages), *(n for n in command.requires if not n.startswith("/"))]
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
    helpers: Sequence[Path] = PROGRAM_DIRECTORIES,
) -> CommandOutput:
    """What the entry printed, or why it did not run. Never raises for what the program does.

    site: what the entry's view needs to know of the site.
    directories, trusted_uid: where programs may come from and who must own them; for tests.
    helpers: likewise for prlimit, setpriv and bwrap.
    """
    try:
        _check_policy(policy)
        argv, *also = fill(command, params)
    except PolicyError as error:
        return not_run(command, command.argv, "refused", str(error))
    missing = available(command, policy=policy, directories=directories, trusted_uid=trusted_uid)
    if missing:
        return not_run(command, argv, "unavailable", missing)
    folders = (*site_folders(policy), *directories)
    try:
        start = layers.around(command, policy, folders, directories=helpers, trusted_uid=trusted_uid)
    except PolicyError as error:
        return not_run(command, argv, "refused", str(error))
    started = iso_now()
    try:
        finished = [_execute(command, argv, start, policy, folders, trusted_uid)]
        if finished[0].exit_code != 0:
            # A scheduler that doesn't answer isn't asked again, and without the first there is no view.
            also = []
        finished += [_execute(command, each, start, policy, folders, trusted_uid) for each in also]
    except OSError as error:
        return not_run(command, argv, "unavailable", f"{argv[0][0]} can't be started: {error.strerror}")
    output = _output(command, argv, tuple(also), finished, start.layers, started)
    return _viewed(output, command, finished, site)


def _execute(  # noqa: PLR0917
    command: Command,
    pipeline: Pipeline,
    start: Start,
    policy: Policy,
    folders: Sequence[Path],
    trusted_uid: int,
) -> process.Finished:
    files = [programs.find(stage[0], folders, trusted_uid) for stage in pipeline]
    if any(isinstance(file, str) for file in files):
        raise FileNotFoundError(errno.ENOENT, "it has just been removed")
    return process.execute(
        [[*start.prefix, str(file), *stage[1:]] for file, stage in zip(files, pipeline, strict=True)],
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
    viewer = Viewer(identity(command)["me"], tuple(groups), site.gpu_nodes)
    try:
        return replace(output, stdout=VIEWS[command.view](texts, viewer))
    except _UNREADABLE as error:
        why = error if isinstance(error, ValueError) else f"it has another shape than expected ({error!r})"
        note = f"hyce: shown as printed, since it could not be read: {why}\n"
        return replace(output, stderr=output.stderr + note)


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


def not_run(
    command: Command, argv: Pipeline, status: Status, reason: str, also: tuple[Pipeline, ...] = ()
) -> CommandOutput:
    """The output of an entry that did not run."""
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
        started=iso_now(),
        reason=reason,
        also=also,
    )


def iso_now() -> str:
    """The time, as ISO 8601 with the offset from UTC."""
    return datetime.datetime.now().astimezone().isoformat(timespec="seconds")
