"""Manual pages by their names, `man:sbatch,srun` -> Documents. man says where they are."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hyce import process, programs
from hyce.errors import SourceError
from hyce.programs import PROGRAM_DIRECTORIES
from hyce.records import Document, Failure, Unchanged
from hyce.sources import man_page
from hyce.sources.files import RENDERING

if TYPE_CHECKING:
    from hyce.sources.read import Item, Known

SCHEME = "man:"
SECONDS = 30.0
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+:@-]{0,100}")
_SECTION = re.compile(r"[1-9n][A-Za-z0-9]{0,10}")
_MOST_ALIASES = 5
_PACKED = ("", ".gz", ".xz", ".bz2")


def key(source: str) -> str:
    """The source in one form: `man:sbatch(1),srun` of `man:srun, 1/sbatch`."""
    names = (word.strip() for word in source.removeprefix(SCHEME).split(","))
    return SCHEME + ",".join(sorted({_plain(name) for name in names if name}))


def _plain(name: str) -> str:
    section, slash, rest = name.partition("/")
    return f"{rest}({section})" if slash and _SECTION.fullmatch(section) else name


def read(
    source: str,
    *,
    max_page_bytes: int,
    known: Known | None = None,
    directories: tuple[Path, ...] = PROGRAM_DIRECTORIES,
) -> Iterator[Item]:
    """Every page named, as it is read; a Failure for a name without a page.

    Raises SourceError, before the first page, where man isn't installed or there is none of the pages.
    """
    normal = key(source)
    names = [name for name in normal.removeprefix(SCHEME).split(",") if name]
    if not names:
        raise SourceError(f"{source}: names no manual page; write man:sbatch,srun")
    man = programs.find("man", directories)
    if isinstance(man, str):
        raise SourceError(f"{normal}: {man}; install man-db, or index a folder of manual pages")
    found = {name: find(name, man, directories) for name in names}
    if not any(found.values()):
        raise SourceError(f"{normal}: man finds none of these pages; check their names, or set MANPATH")
    return _pages(normal, found, max_page_bytes, known)


def find(name: str, man: Path, directories: tuple[Path, ...] = PROGRAM_DIRECTORIES) -> Path | None:
    """The file of the page `sbatch` or `sbatch(1)`, as the program man finds it; None where there is none."""
    called, _, section = name.removesuffix(")").partition("(")
    if not _NAME.fullmatch(called) or (section and not _SECTION.fullmatch(section)):
        return None
    # Where pages lie is the user's business; which programs look for them isn't.
    own = {"MANPATH": os.environ["MANPATH"]} if os.environ.get("MANPATH") else {}
    path = os.pathsep.join(map(str, directories))
    argv = (str(man), "-w", *(("-s", section) if section else ()), called)
    try:
        answer = process.execute(
            [argv],
            environment={"PATH": path, "LC_ALL": "C", "HOME": "/", **own},
            timeout=SECONDS,
            max_bytes=100_000,
        )
    except OSError as error:
        raise SourceError(f"man:{name}: {man} can't be started ({error.strerror}); mend it") from error
    lines = os.fsdecode(answer.stdout).splitlines()
    return Path(lines[0]) if lines and answer.exit_code == 0 else None


def _pages(source: str, found: dict[str, Path | None], max_bytes: int, known: Known | None) -> Iterator[Item]:
    seen: set[str] = set()
    for name, file in found.items():
        if file is None:
            yield Failure(name, "man finds no page of this name; check it, or set MANPATH")
            continue
        try:
            page, data = _resolved(file, max_bytes)
            path = _path(page)
            if path in seen:
                yield Failure(name, f"the same page as {path}", skipped=True)
                continue
            seen.add(path)
            yield _page(source, page, data, max_bytes, known)
        except SourceError as error:
            yield Failure(_path(file), str(error).removeprefix(f"{file}: "))


def _page(source: str, file: Path, data: bytes, max_bytes: int, known: Known | None) -> Document | Unchanged:
    path = _path(file)
    facts = f"{hashlib.sha256(data).hexdigest()}\0text/troff\0{RENDERING}\0{path}"
    digest = hashlib.sha256(facts.encode("utf-8", "replace")).hexdigest()
    if known is not None and known.memo(source, path) == digest:
        return Unchanged(path)
    text = man_page.to_html(data, path=str(file), max_bytes=max_bytes)
    return Document(source, path, "text/troff", text, digest, memo=digest)


def _path(file: Path) -> str:
    """`man1/sbatch.1` of `/usr/share/man/man1/sbatch.1.gz`."""
    name = file.name.removesuffix(file.suffix) if file.suffix in _PACKED else file.name
    return f"{file.parent.name}/{name}"


def _resolved(file: Path, max_bytes: int) -> tuple[Path, bytes]:
    """(the file that holds the page, its bytes), where the one named only leads to another (`.so`).

    Raises SourceError for one that can't be read, or that leads out of its hierarchy of pages.
    """
    top = file.resolve().parent.parent
    if not file.resolve().parent.name.startswith("man"):
        # man has followed a page's `.so` out of the folders for such pages.
        raise SourceError(f"{file}: lies in no folder of manual pages; install the page anew")
    for _ in range(_MOST_ALIASES):
        try:
            with file.open("rb") as opened:
                data = opened.read(max_bytes + 1)
        except OSError as error:
            raise SourceError(f"{file}: can't be read ({error.strerror}); check its permissions") from error
        target = man_page.alias(man_page.unpacked(data, str(file), max_bytes=max_bytes))
        if target is None:
            return file, data
        found = next((place for place in _places(top, target) if place.is_file()), None)
        if found is None or not found.resolve().is_relative_to(top):
            raise SourceError(f"{file}: only leads to {target}, which isn't beside it; install that page")
        file = found
    raise SourceError(f"{file}: leads to other pages in a circle; install the page anew")


def _places(top: Path, target: str) -> Iterator[Path]:
    return (top / f"{target}{suffix}" for suffix in _PACKED)
