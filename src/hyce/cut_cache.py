"""Where a language model has cut: kept, so that it is asked for the same text once.

One small file for each window of a page, named by the sha256 of all that the reply depends on, and complete
or not there. It holds positions, no text.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

_MOST_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class CutCache:
    """A folder of kept replies. Where it can't be written, nothing is kept."""

    folder: Path

    def read(self, *given: str | int) -> object:
        """What is kept for this; None where nothing is, or nothing that can be read."""
        try:
            with self._file(given).open("rb") as file:
                return json.loads(file.read(_MOST_BYTES))
        except (OSError, ValueError, RecursionError):
            return None

    def write(self, reply: object, *given: str | int) -> None:
        """Keep a reply."""
        file = self._file(given)
        with contextlib.suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            descriptor, new = tempfile.mkstemp(prefix=".new-", dir=file.parent)
            try:
                with os.fdopen(descriptor, "w", encoding="ascii") as stream:
                    json.dump(reply, stream)
                Path(new).replace(file)
            except BaseException:
                Path(new).unlink(missing_ok=True)
                raise

    def _file(self, given: tuple[str | int, ...]) -> Path:
        digest = hashlib.sha256(json.dumps(given).encode("ascii")).hexdigest()
        return self.folder / digest[:2] / f"{digest}.json"
