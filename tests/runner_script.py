"""Runs of the test entry by a process of its own, each output a line of JSON.

python runner_script.py STATE_FOLDER PROGRAM_FOLDER {"reuse": 0, "timeout": 20, "value": "a", ...}
"""

from __future__ import annotations

import json
import os
import resource
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ordinary_user import become

from hyce.config import Config, Policy
from hyce.records import Command, Parameter
from hyce.runner import Runner


def entry(reuse: float = 0.0, timeout: float = 60.0, **others: Any) -> Command:
    """An entry that starts `tool` with one value."""
    value = Parameter("value", r"\w+", "a word", default="x")
    fields: dict[str, Any] = {"parameters": (value,), **others}
    return Command(
        "test.entry", "A test.", (), (("tool", "{value}"),), reuse=reuse, timeout=timeout, **fields
    )


def runner(folder: Path, programs: Path, policy: Policy | None = None, **others: Any) -> Runner:
    """A runner for a state folder and a folder of stub programs."""
    config = Config(policy=policy or Policy(root=True))
    owner = programs.stat().st_uid
    return Runner(config, folder=folder, directories=[programs], trusted_uid=owner, **others)


def main() -> None:
    options = json.loads(sys.argv[3])
    become(options.get("user", os.getuid()))
    if "file_size" in options:
        resource.setrlimit(resource.RLIMIT_FSIZE, (options["file_size"],) * 2)
    policy = Policy(root=True, rate_limit=options.get("rate_limit", 30))
    run = runner(
        Path(sys.argv[1]), Path(sys.argv[2]), policy, report=lambda text: print(text, file=sys.stderr)
    )
    command = entry(options.get("reuse", 0.0), options.get("timeout", 60.0))
    for _ in range(options.get("times", 1)):
        output = run.run(command, {"value": options.get("value", "x")}, options.get("question", ""))
        print(json.dumps(asdict(output) | {"pid": os.getpid()}), flush=True)


if __name__ == "__main__":
    main()
