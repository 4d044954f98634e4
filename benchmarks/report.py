"""What every benchmark writes: results/<name>.md for people and results/<name>.json for programs."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("hyce", "numpy", "onnxruntime", "tokenizers")

Cell = str | int | float


def write(
    name: str,
    title: str,
    rows: Sequence[Mapping[str, Cell]],
    notes: Sequence[str] = (),
    versions: Mapping[str, str] | None = None,
) -> Path:
    """Write the table `rows`, columns in the order of the first row, with machine and versions.

    versions: further packages that were measured, by name. Returns the path of the Markdown file.
    """
    used = _versions() | dict(versions or {})
    about = {"date": datetime.now(UTC).date().isoformat(), "machine": machine(), "versions": used}
    columns = list(rows[0])
    lines = [f"# {title}", "", "| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(_text(row.get(column, "")) for column in columns) + " |" for row in rows]
    lines += ["", *(f"- {note}" for note in notes), ""]
    lines += [f"{about['date']}, {about['machine']}.", ", ".join(f"{k} {v}" for k, v in used.items()) + "."]
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.md"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    data = {"title": title, **about, "notes": list(notes), "rows": [dict(row) for row in rows]}
    path.with_suffix(".json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return path


def machine() -> str:
    """Processor, usable cores, memory, system and Python in one line."""
    processor = platform.machine()
    flags = ""
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            processor = line.partition(":")[2].strip()
        if line.startswith("flags"):
            flags = ", ".join(flag for flag in ("avx2", "avx512f", "avx512_vnni", "avx_vnni") if flag in line)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = len(os.sched_getaffinity(0))
    return (
        f"{processor} ({flags or platform.machine()}), {cores} cores, {memory:.0f} GiB, "
        f"{platform.system()}, Python {platform.python_version()}"
    )


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _text(cell: Cell) -> str:
    return f"{cell:.4g}" if isinstance(cell, float) and abs(cell) >= 1 else str(cell)
