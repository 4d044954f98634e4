"""run(), called in a process of an ordinary user: of this one, or, as root, of nobody."""

from __future__ import annotations

import os
import pickle
import pwd
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hyce.records import Command, CommandOutput

MOST_PROCESSES = 3000
"""A hard limit around all of it, so that a fork bomb that gets away leaves the machine usable."""

_SCRIPT = """
import pickle, resource, sys
most = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
from hyce.run import run
outputs = [run(command, {}, **keywords) for command, keywords in pickle.load(sys.stdin.buffer)]
sys.stdout.buffer.write(pickle.dumps(outputs))
"""


@dataclass(frozen=True)
class Call:
    command: Command
    keywords: dict[str, Any]


def uid() -> int:
    return pwd.getpwnam("nobody").pw_uid if os.getuid() == 0 else os.getuid()


def run_all(calls: Sequence[Call], timeout: float = 100) -> list[CommandOutput]:
    """What each call led to. As root the user has groups beside its own, as users of a cluster have."""
    other: dict[str, Any] = {}
    if os.getuid() == 0:
        group = pwd.getpwnam("nobody").pw_gid
        other = {"user": uid(), "group": group, "extra_groups": [group, 0, 100]}
    ended = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(MOST_PROCESSES)],
        input=pickle.dumps([(call.command, call.keywords) for call in calls]),
        capture_output=True,
        cwd="/",
        timeout=timeout,
        check=False,
        **other,
    )
    assert ended.returncode == 0, ended.stderr.decode()
    outputs: list[CommandOutput] = pickle.loads(ended.stdout)
    return outputs
