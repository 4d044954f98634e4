"""A PDF file -> HTML with the number of each page, read in a process of its own.

The file may come from anywhere: a few kilobytes can unpack to gigabytes or lead in circles. So it is read by
a fresh interpreter with limits of time and memory, which can write nothing but its answer.
"""

from __future__ import annotations

import importlib.util
import os
import resource
import signal
import sys
import tempfile
from pathlib import Path

from hyce import process
from hyce.errors import SourceError

SECONDS = 300.0
"""Of processor time; twice as many on the clock."""
MOST_MEMORY = 1_500_000_000
"""Bytes of address space."""
MOST_PAGES = 1500
MOST_HTML = 20_000_000
"""Bytes of the answer."""

_REFUSED = 3
"""Exit code of the reader; what it printed says why."""
_TOO_MUCH_MEMORY = (
    f"needs more than {MOST_MEMORY / 1e9:.1f} GB of memory to be read; split it, or print it anew"
)
_BROKEN = "can't be read as a PDF file; print or export it anew"
_TOO_LONG = "takes too long to be read; split it, or print it anew"


def to_html(data: bytes, *, path: str, seconds: float = SECONDS) -> str:
    """The text as HTML: headings, paragraphs, lists, tables, code, and before each page's text a heading
    `page 12` with the anchor `page=12`, by which browsers open a PDF file at that page.

    path: what the file is called in an error. seconds: processor time that it may take.
    Raises SourceError without pdfplumber, and for a file that is encrypted, broken, has no text (a scan), or
    takes too much time or memory.
    """
    if importlib.util.find_spec("pdfplumber") is None:
        raise SourceError(f"{path}: PDF files are read with pdfplumber; run `pip install 'hyce[pdf]'`")
    with tempfile.NamedTemporaryFile(prefix="hyce-", suffix=".pdf") as file:
        file.write(data)
        file.flush()
        # -P: nothing is imported from the working directory, but all from where this process has it.
        modules = os.pathsep.join(place for place in sys.path if os.path.isabs(place))  # noqa: PTH117
        done = process.execute(
            [(sys.executable, "-P", "-m", "hyce.sources.pdf", file.name, f"{seconds:.0f}")],
            environment={"PYTHONPATH": modules, "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8"},
            timeout=2 * seconds,
            max_bytes=MOST_HTML + 1,
        )
    if done.exit_code == 0 and not done.truncated:
        return done.stdout.decode("utf-8", "replace")
    raise SourceError(f"{path}: {_reason(done)}")


def _reason(done: process.Finished) -> str:
    # SIGKILL: where the soft limit of processor time is the hard one, that is what comes.
    if done.timed_out or done.exit_code in (128 + signal.SIGXCPU, 128 + signal.SIGKILL):
        return _TOO_LONG
    if done.exit_code == _REFUSED:
        return done.stdout.decode("utf-8", "replace").strip()[:300]
    if done.truncated:
        return f"holds more than {MOST_HTML / 1e6:.0f} MB of text; split it"
    return _BROKEN


def main() -> int:
    """Print the HTML of the file named first; with exit code 3, why there is none."""
    seconds = int(sys.argv[2]) + 1
    for limit, most in (
        (resource.RLIMIT_AS, MOST_MEMORY),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        # A lower limit of the site's own stays.
        hard = resource.getrlimit(limit)[1]
        lowest = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(limit, (lowest, lowest))
    try:
        answer, code = _read(Path(sys.argv[1])), 0
    except SourceError as error:
        answer, code = str(error), _REFUSED
    except MemoryError:
        answer, code = _TOO_MUCH_MEMORY, _REFUSED
    except Exception as error:
        # The library wraps what it meets: a MemoryError deep down comes as another error's cause.
        answer, code = _TOO_MUCH_MEMORY if _is_memory(error) else _BROKEN, _REFUSED
    sys.stdout.buffer.write(answer.encode("utf-8", "replace"))
    return code


def _read(file: Path) -> str:
    import logging

    from hyce.sources.pdf_layout import read
    from hyce.sources.pdf_text import html

    logging.disable()
    return html(read(file, most_pages=MOST_PAGES))


def _is_memory(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, MemoryError):
            return True
        error = error.__cause__ or error.__context__
    return False


if __name__ == "__main__":
    sys.exit(main())
