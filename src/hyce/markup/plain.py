"""Plain text and job scripts as HTML."""

from __future__ import annotations

import html
import re
from pathlib import PurePosixPath

LONGEST_MARKUP = 2_000_000
"""Characters of Markdown or reStructuredText that are converted, which takes up to 15 s and 600 MB; a longer
page was written by a program, and is read as plain text."""


def text_html(text: str) -> str:
    """Paragraphs where empty lines part the text; indented or aligned parts stay as they are."""
    parts = []
    for part in re.split(r"\n[ \t]*\n", text.replace("\r\n", "\n").expandtabs(8)):
        lines = part.strip("\n").split("\n")
        if not part.strip():
            continue
        aligned = len(lines) > 1 and all(
            re.search(r"^\s{2,}|\S\s{3,}\S|^[-*+|]\s|^\d+[.)]\s", line) for line in lines
        )
        body = html.escape("\n".join(lines), quote=False)
        parts.append(f"<pre>{body}</pre>" if aligned else f"<p>{body}</p>")
    return "\n".join(parts)


def script_html(text: str, path: str) -> str:
    """One page with the file's name for a title and the script as its code."""
    name = html.escape(PurePosixPath(path).name, quote=False)
    return f"<h1>{name}</h1>\n<pre>{html.escape(text, quote=False)}</pre>"
