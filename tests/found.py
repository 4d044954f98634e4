"""Passages, commands and output for tests of the stages behind them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from hyce.records import Command, CommandOutput, Hit, Match, Passage

HITS = (
    Hit(
        1, 2.0, Passage(1, "/docs", "jobs.md", "https://docs/jobs#a", "Jobs", ("Jobs",), "Use sbatch.", None)
    ),
    Hit(2, 1.0, Passage(2, "/docs", "gpu.md", None, "GPUs", ("GPUs",), "Use --gres.", "2026-01-02")),
)


def match(name: str, *, may_leave: bool = False, scheduler: Literal["slurm", "pbs"] | None = None) -> Match:
    command = Command(name, f"Tells {name}.", (), ((name,),), may_leave_site=may_leave, scheduler=scheduler)
    return Match(command, {}, 0.9)


def output(name: str, stdout: str = "42 PENDING", **changes: Any) -> CommandOutput:
    ran = CommandOutput(
        id=name,
        argv=((name,),),
        status="ok",
        exit_code=0,
        stdout=stdout,
        stderr="",
        truncated=False,
        seconds=0.02,
        layers=(),
        started="2026-11-21T07:00:00+00:00",
    )
    return replace(ran, **changes)
