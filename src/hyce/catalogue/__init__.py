"""The commands that may answer questions, as data. Nothing outside this catalogue ever runs."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hyce.config import Config
from hyce.errors import UsageError
from hyce.records import Command

PLACEHOLDER = re.compile(r"\{([a-z][a-z_0-9]*)\}")
"""`{name}` in an argument: a parameter, or one of IDENTITY."""

IDENTITY = ("me", "uid", "home", "cwd")
"""Placeholders that are filled from the process itself, never from a question or the environment."""

BUILTIN = Path(__file__).parent


class Catalogue(Mapping[str, Command]):
    """Entries by their id, in the order of their files."""

    def __init__(self, entries: Mapping[str, Command]) -> None:
        self._entries = dict(entries)

    def __getitem__(self, entry_id: str) -> Command:
        return self._entries[entry_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def require(self, entry_id: str) -> Command:
        """The entry. Raises UsageError, with what comes closest, when there is none of this id."""
        if entry_id not in self._entries:
            close = difflib.get_close_matches(entry_id, self._entries, n=1)
            hint = f"did you mean {close[0]}?" if close else "`hyce commands list` shows them all"
            raise UsageError(f"{entry_id!r} is no entry of the catalogue; {hint}")
        return self._entries[entry_id]


def load(folders: Sequence[Path] = (), *, builtin: bool = True) -> Catalogue:
    """All entries by id: the built-in ones, then those of each folder, which may replace or disable them.

    Raises CatalogueError, with the file and the entry, for whatever doesn't follow the schema and for
    files or folders that others can write.
    """
    from hyce.catalogue.loader import load_folders

    return Catalogue(load_folders(folders, builtin=BUILTIN if builtin else None))


def load_for(config: Config) -> Catalogue:
    """The built-in entries with those of the site's folders."""
    return load([Path(folder).expanduser() for folder in config.policy.catalogue])


def documentation_questions() -> tuple[str, ...]:
    """Questions of the kind that only documentation answers, close as they are to an entry's own."""
    from hyce.catalogue.loader import load_texts

    return load_texts(BUILTIN / "quiet" / "documentation.yaml")
