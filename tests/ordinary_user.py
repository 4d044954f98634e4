"""run(), called in a process of an ordinary user: of this one, or, as root, of nobody."""

from __future__ import annotations

import os
import pickle
import pwd
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyce.records import Command, CommandOutput

MOST_PROCESSES = 3000
"""A hard limit around all of it, so that a fork bomb that gets away leaves the machine usable."""

_SCRIPT = """
import pickle, resource, sys
from hyce.run import run
calls = pickle.load(sys.stdin.buffer)
sys.path.append(sys.argv[1])
from ordinary_user import become
most, user, *groups = map(int, sys.argv[2:])
become(user, groups)
resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
outputs = [run(command, {}, **keywords) for command, keywords in calls]
sys.stdout.buffer.write(pickle.dumps(outputs))
"""


@dataclass(frozen=True)
class Call:
    command: Command
    keywords: dict[str, Any]


def uid() -> int:
    return pwd.getpwnam("nobody").pw_uid if os.getuid() == 0 else os.getuid()


def interpreter() -> str:
    """A Python that every user can run, also in a sandbox that hides /tmp: the one behind this environment,
    or the system's."""
    for path in (Path(sys.executable).resolve(), Path("/usr/bin/python3").resolve()):
        if path.exists() and all(folder.stat().st_mode & 0o001 for folder in path.parents):
            return str(path)
    raise AssertionError("there is no Python that other users can run; install Debian's python3")


def become(user: int, groups: Sequence[int] = ()) -> None:
    """Go on as this user, for good; the first group is the user's own. Only root can become another one.

    Interpreter and modules may lie where no other user can look (/root): what is needed is imported before.
    """
    if os.getuid() != user:
        os.setgroups(groups)
        os.setgid(groups[0] if groups else user)
        os.setuid(user)


def run_all(calls: Sequence[Call], timeout: float = 100) -> list[CommandOutput]:
    """What each call led to. As root the user has groups beside its own, as users of a cluster have."""
    groups = (pwd.getpwnam("nobody").pw_gid, 0, 100)
    arguments = [str(Path(__file__).parent), *map(str, (MOST_PROCESSES, uid(), *groups))]
    ended = subprocess.run(
        [sys.executable, "-c", _SCRIPT, *arguments],
        input=pickle.dumps([(call.command, call.keywords) for call in calls]),
        capture_output=True,
        cwd="/",
        timeout=timeout,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr.decode()
    outputs: list[CommandOutput] = pickle.loads(ended.stdout)
    return outputs
