"""What this machine has: batch system, modules, Lustre, GPUs. Reads files only, runs nothing."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hyce.programs import PROGRAM_DIRECTORIES


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What was found."""

    scheduler: Literal["slurm", "pbs", "none"]
    cluster: str
    """Slurm's ClusterName, or empty."""
    modules: str
    """lmod, environment-modules, or empty."""
    lustre: tuple[str, ...]
    """Mount points of Lustre file systems."""
    gpus: bool


def look_around(root: Path = Path("/")) -> Surroundings:
    """What is found below `root` (another one than / is for tests)."""
    scheduler: Literal["slurm", "pbs", "none"] = "none"
    if _program("squeue", root):
        scheduler = "slurm"
    elif _program("qstat", root):
        scheduler = "pbs"
    return Surroundings(
        scheduler=scheduler,
        cluster=_cluster_name(root),
        modules=_modules(root),
        lustre=_lustre_mounts(root),
        gpus=any((root / "dev").glob("nvidia[0-9]*")),
    )


def _program(name: str, root: Path) -> bool:
    """Whether it is where hyce would run it from."""
    files = (root / folder.relative_to("/") / name for folder in PROGRAM_DIRECTORIES)
    return any(file.is_file() and os.access(file, os.X_OK) for file in files)


def _cluster_name(root: Path) -> str:
    for place in ("etc/slurm/slurm.conf", "etc/slurm-llnl/slurm.conf"):
        try:
            text = (root / place).read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        found = re.search(r"^\s*ClusterName\s*=\s*([\w.-]+)", text, re.IGNORECASE | re.MULTILINE)
        if found:
            return found[1]
    return ""


def _modules(root: Path) -> str:
    if any((root / place).exists() for place in ("usr/share/lmod", "opt/apps/lmod")):
        return "lmod"
    return "environment-modules" if (root / "usr/share/modules/init").exists() else ""


def _lustre_mounts(root: Path) -> tuple[str, ...]:
    try:
        lines = (root / "proc/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ()
    fields = [line.split() for line in lines]
    return tuple(field[1] for field in fields if len(field) > 2 and field[2] == "lustre")
