"""When pages were last changed: the dates of a git repository's commits.

The date is the author's: when the text was written. A rebase or a merge long afterwards makes no text newer,
though it renews the committer's date.

A repository's own configuration can name programs (signature checks, filters, monitors, transports). None of
them runs: only commands that need none are used, and what could start one is switched off all the same. git
refuses a repository of somebody else (safe.directory); so be it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hyce import process, programs
from hyce.programs import PROGRAM_DIRECTORIES

SECONDS = 60.0
MOST_BYTES = 100_000_000
"""Of one command's output. A log begins with the latest commits: what doesn't fit is old."""

_QUIET = (
    *("--no-pager", "--literal-pathspecs", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"),
    # A folder of documentation that looks like a bare repository is no repository.
    *("-c", "safe.bareRepository=explicit", "-c", "log.showSignature=false"),
    # Somebody's setting that would leave out what the first commit added.
    *("-c", "log.showRoot=true"),
)
_ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    # A partial clone would fetch what it lacks, by whatever its configuration names.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
}
_LOG = (
    *("log", "-z", "--format=%x00%x01%H %ad", "--date=short", "--name-status", "--find-renames=100%"),
    *("--relative", "--no-ext-diff", "--no-textconv", "--no-show-signature", "--no-color", "--no-notes"),
    *("--ignore-submodules=all", "--", "."),
)


@dataclass(frozen=True, slots=True)
class History:
    """What a repository tells of the files in a folder."""

    folder: Path
    dates: Mapping[str, str] = field(default_factory=dict)
    """YYYY-MM-DD of the last commit that changed the file, by its path in the folder."""
    blobs: Mapping[str, str] = field(default_factory=dict)
    """The object id of the file as it was committed."""
    note: str = ""
    """Why there are no dates, where the user can do something about it."""

    def date(self, path: Path, data: bytes) -> str | None:
        """When the file with these bytes was committed last.

        None for one that git doesn't know, and for one with uncommitted changes: it is newer than its commit,
        and nothing says by how much.
        """
        name = path.relative_to(self.folder).as_posix()
        committed = self.blobs.get(name, "")
        return self.dates.get(name) if committed and committed == _blob(data, len(committed)) else None


def read(folder: Path) -> History:
    """The history of the folder's files; empty without git, or where the folder is in no repository."""
    git = programs.find("git")
    if isinstance(git, str) or not _in_repository(folder):
        return History(folder)
    shallow = _run(git, folder, "rev-parse", "--git-path", "shallow")
    if shallow is None or shallow.exit_code != 0:
        return History(folder, note=_refusal(folder, shallow))
    log, tree = _run(git, folder, *_LOG), _run(git, folder, "ls-tree", "-r", "-z", "HEAD")
    if log is None or tree is None or tree.exit_code != 0 or tree.timed_out:
        return History(folder)  # no commit yet, or a damaged repository
    blobs = _blobs(tree.stdout)
    boundary = _boundary(folder / os.fsdecode(shallow.stdout.rstrip(b"\n")))
    # What an incomplete record at the end would say is left out.
    records = log.stdout if log.exit_code == 0 and not log.truncated else log.stdout.rpartition(b"\0")[0]
    return History(folder, _dates(records, frozenset(blobs), boundary), blobs)


def _in_repository(folder: Path) -> bool:
    """Whether there is a repository at all: looked at first, since most folders are in none."""
    for place in (folder, *folder.parents):
        try:
            if (place / ".git").exists():
                return True
        except OSError:
            return False
    return False


def _run(git: Path, folder: Path, *arguments: str) -> process.Finished | None:
    """What git says about the folder; None where it can't be started."""
    # The user's own settings count: they say which repositories of others are trusted.
    own = {name: os.environ[name] for name in ("HOME", "XDG_CONFIG_HOME") if name in os.environ}
    path = ":".join(map(str, PROGRAM_DIRECTORIES[:4]))
    argv = (str(git), "-C", str(folder), *_QUIET, *arguments)
    try:
        return process.execute(
            [argv],
            environment={**own, "PATH": path, **_ENVIRONMENT},
            timeout=SECONDS,
            max_bytes=MOST_BYTES,
        )
    except OSError:
        return None


def _refusal(folder: Path, answer: process.Finished | None) -> str:
    if answer is None or b"dubious ownership" not in answer.stderr:
        return ""
    return (
        "its pages get no dates from git: the repository belongs to somebody else; if you trust it, "
        f"run `git config --global --add safe.directory {folder}` with the folder that holds .git"
    )


def _boundary(file: Path) -> frozenset[str]:
    """Commits where a shallow clone ends: they seem to add every file, whenever that was changed."""
    try:
        with file.open("rb") as lines:
            return frozenset(lines.read(10_000_000).decode("ascii", "replace").split())
    except OSError:
        return frozenset()


def _blobs(listing: bytes) -> dict[str, str]:
    """Object ids by path, of `<mode> blob <id>\\t<path>` records."""
    blobs = {}
    for record in listing.split(b"\0"):
        facts, _, path = record.partition(b"\t")
        words = facts.decode("ascii", "replace").split()
        if len(words) == 3 and words[1] == "blob":
            blobs[os.fsdecode(path)] = words[2]
    return blobs


def _dates(log: bytes, files: frozenset[str], boundary: frozenset[str]) -> dict[str, str]:
    """The date of each file's last change, of a log that begins with the latest commit.

    A file that was only renamed is followed to its earlier name.
    """
    now = {name: name for name in files}  # today's name, by the name at the commit that is looked at
    dates: dict[str, str] = {}
    fields = iter(log.split(b"\0"))
    date, ignored = "", True
    for entry in fields:
        if entry.startswith(b"\x01"):
            commit, _, date = entry[1:].decode("ascii", "replace").partition(" ")
            ignored = commit in boundary
            continue
        status = entry.strip(b"\n")
        if not status:
            continue
        before = os.fsdecode(next(fields, b""))
        after = os.fsdecode(next(fields, b"")) if status[:1] in (b"R", b"C") else before
        if after not in now:
            continue
        name = now.pop(after)
        if status[:1] == b"R":
            now[before] = name
        elif not ignored:
            dates[name] = date
    return dates


def _blob(data: bytes, length: int) -> str:
    """The object id that git gives a file's bytes: SHA-1, or SHA-256 in newer repositories."""
    digest = hashlib.sha256() if length == 64 else hashlib.sha1(usedforsecurity=False)
    digest.update(b"blob %d\0" % len(data))
    digest.update(data)
    return digest.hexdigest()
