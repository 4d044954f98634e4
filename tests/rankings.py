"""Questions, and what was found or chosen for them, made by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hyce.records import Hit, Passage


class Silent:
    """Shows nothing."""

    def update(self, done: int, total: int | None, detail: str) -> None:
        """Nothing is shown."""


def hits(*found: tuple[str, str], similarity: float = 0.5, source: str = "/docs") -> tuple[Hit, ...]:
    """A ranking of (path, text), best first; scores go down by 1 to 0."""
    return tuple(
        Hit(rank, float(len(found) - rank), Passage(rank, source, path, None, "", (), text, None), similarity)
        for rank, (path, text) in enumerate(found, 1)
    )


def written(file: Path, rows: Sequence[Mapping[str, Any]]) -> str:
    """The path of a file with these rows as JSON Lines."""
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return str(file)
