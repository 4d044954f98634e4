"""One manual page -> HTML, by groff, which is wherever man is.

groff lays the page out on a line that is so long that each paragraph is one line; what must keep its lines is
moved far to the right. The layout then tells what is what (man_layout.py). A page is a program for groff: it
runs in groff's safer mode, and the requests that read other files are gone before the page is read.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import os
import re
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from hyce import process, programs
from hyce.errors import SourceError
from hyce.markup.front import iso_date
from hyce.programs import PROGRAM_DIRECTORIES
from hyce.sources import man_layout
from hyce.sources.encoding import decode
from hyce.sources.man_layout import KEPT, LINE

RENDERED = ("application/pdf", "text/troff")
"""Media types whose pages become HTML where they are read."""
SECONDS = 30.0
MOST_BYTES = 50_000_000
"""Of a page's layout, most of which is space."""

_FILE = re.compile(r"(?P<name>.+)\.(?P<section>[1-9][a-z]{0,6})(?P<packed>\.(?:gz|xz|bz2))?")
_BEGINS = re.compile(r"^[.'][ \t]*(?P<macro>TH|Dd)[ \t]+(?P<arguments>\S[^\n]*)", re.MULTILINE)
_ALIAS = re.compile(r"\A(?:[.']?\\\"[^\n]*\n|\s)*[.']so[ \t]+(?P<target>[^\s\"]+)[ \t]*(?:\n|\Z)")
_UNPACK: dict[str, Callable[[IO[bytes]], io.BufferedIOBase]] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file),
    ".xz": lzma.LZMAFile,
    ".bz2": bz2.BZ2File,
}
_ARGUMENT = re.compile(r'"((?:[^"]|"")*)"|(\S+)')

_PRELUDE = rf"""
.rn nf hyce*nf
.rn fi hyce*fi
.de nf
.  hyce*nf
.  if '\\n[.ev]'0' .po {KEPT}n
..
.de fi
.  hyce*fi
.  if '\\n[.ev]'0' .po 0
..
.am TH
.  nr an-tag-sep 2n
..
.nh
.na
.ss 12 0
.rm so mso cf trf nx rd pso sy open opena pi hpf hpfa soquiet msoquiet
"""
"""Read after the macros and before the page: layout as above, two spaces at least behind a term, no
hyphenation, no justification, one space between sentences, and none of the requests that read a file or run
a program."""


class NotOne(SourceError):  # noqa: N818  (what it is, not what went wrong)
    """The file is named as manual pages are, but is none, or only leads to another one."""


def is_named_like_one(path: Path) -> bool:
    """Whether the file is called as manual pages are: `sbatch.1`, `fork.2.gz`; libraries are not."""
    return _FILE.fullmatch(path.name) is not None and ".so." not in path.name


def title(path: str) -> str:
    """`sbatch(1)` of `man1/sbatch.1.gz`."""
    name = PurePosixPath(path).name
    match = _FILE.fullmatch(name)
    return f"{match['name']}({match['section']})" if match else name


def alias(text: str) -> str | None:
    """The page, such as `man1/sbatch.1`, that this one only leads to."""
    match = _ALIAS.match(text[:4096])
    return match["target"] if match else None


def unpacked(data: bytes, path: str, *, max_bytes: int) -> str:
    """The page's source; at most max_bytes are unpacked.

    Raises SourceError for more, and for what is broken or no text.
    """
    unpack = _UNPACK.get(PurePosixPath(path).suffix)
    plain = data
    if unpack is not None:
        try:
            with unpack(io.BytesIO(data)) as file:
                plain = file.read(max_bytes + 1)
        except (OSError, EOFError, zlib.error, lzma.LZMAError, MemoryError) as error:
            raise SourceError(f"{path}: can't be unpacked ({error}); pack it anew") from error
    if len(plain) > max_bytes:
        raise SourceError(f"{path}: too large (more than {max_bytes / 1e6:.1f} MB); raise index.max_page_mb")
    text = decode(plain)
    if text is None:
        raise NotOne(f"{path}: no manual page, though it is called like one")
    return text


def to_html(
    data: bytes,
    *,
    path: str,
    max_bytes: int,
    seconds: float = SECONDS,
    directories: tuple[Path, ...] = PROGRAM_DIRECTORIES,
) -> str:
    """The page as HTML: sections, options with what they do, examples; its day where it says one.

    data: the file's bytes. path: its name, such as man1/sbatch.1.gz.
    Raises NotOne for what is no page of its own, SourceError without groff, and for a page that can't be
    read or gives no text in time.
    """
    text = unpacked(data, path, max_bytes=max_bytes)
    target = alias(text)
    if target is not None:
        raise NotOne(f"{path}: only leads to {target}")
    begin = _BEGINS.search(text[:65536])
    if begin is None:
        raise NotOne(f"{path}: no manual page, though it is called like one")
    macros = "doc" if begin["macro"] == "Dd" else "an-old"
    layout = _layout(text, path, macros, seconds, directories)
    html = man_layout.to_html(layout, title(path))
    if not html:
        raise SourceError(f"{path}: groff finds no text in it; mend the page or remove it")
    day = _day(begin["macro"], begin["arguments"][:500])
    return f'<meta name="date" content="{day}">\n{html}' if day else html


def _layout(text: str, path: str, macros: str, seconds: float, directories: tuple[Path, ...]) -> str:
    """What groff prints for the page."""
    groff = programs.find("groff", directories)
    if isinstance(groff, str):
        raise SourceError(f"{path}: {groff}; install groff-base (or groff), by which man shows its pages")
    with _files(text) as (prelude, page):
        registers = (f"-rLL={LINE}n", f"-rLT={LINE}n", "-rHY=0", "-rcR=1", "-rIN=7n", "-rSN=3n")
        # -S: safer mode; -t: tables, the only preprocessor; -P-c: bold letters are struck twice.
        argv = (str(groff), "-S", "-Kutf8", "-t", "-m", macros, "-Tutf8", "-P-c", *registers, prelude, page)
        try:
            done = process.execute(
                [argv],
                environment={"PATH": os.pathsep.join(map(str, directories)), "LC_ALL": "C.UTF-8"},
                timeout=seconds,
                max_bytes=MOST_BYTES,
            )
        except OSError as error:
            raise SourceError(f"{path}: groff can't be started ({error.strerror}); mend it") from error
    if done.timed_out or done.truncated:
        limit = f"{seconds:.0f} s" if done.timed_out else f"{MOST_BYTES / 1e6:.0f} MB"
        raise SourceError(f"{path}: groff needs more than {limit} for it; mend the page or remove it")
    return done.stdout.decode("utf-8", "replace")


@contextlib.contextmanager
def _files(text: str) -> Iterator[tuple[str, str]]:
    with tempfile.TemporaryDirectory(prefix="hyce-man-") as folder:
        prelude, page = Path(folder, "prelude"), Path(folder, "page")
        prelude.write_text(_PRELUDE, encoding="ascii")
        page.write_text(text, encoding="utf-8", errors="replace")
        yield str(prelude), str(page)


def _day(macro: str, arguments: str) -> str | None:
    """YYYY-MM-DD in the page's .TH or .Dd line; None where it says a month only, or nothing."""
    if macro == "Dd":
        return iso_date(arguments.replace("$Mdocdate:", "").strip(" $"))
    words = [quoted or plain for quoted, plain in _ARGUMENT.findall(arguments)]
    return next((day for day in map(iso_date, words[2:]) if day), None)
