"""Path patterns as .gitignore files write them (MkDocs: exclude_docs, draft_docs) and as Sphinx does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache


def ignored(path: str, patterns: str) -> bool:
    """Whether the last of the patterns that fits the path (with forward slashes) excludes it.

    patterns: lines as in .gitignore; `!` takes back, a leading `/` anchors, a trailing `/` means a folder.
    """
    verdict = False
    for line in patterns.splitlines():
        pattern = line.strip()
        if not pattern or pattern.startswith("#"):
            continue
        negated = pattern.startswith("!")
        if _gitignore(pattern.removeprefix("!")).match(path):
            verdict = not negated
    return verdict


@lru_cache(maxsize=512)
def _gitignore(pattern: str) -> re.Pattern[str]:
    folder = pattern.endswith("/")
    body = pattern.strip("/")
    anchored = pattern.startswith("/") or "/" in body
    return re.compile(
        ("" if anchored else "(?:.*/)?") + _translate(body) + ("/.*" if folder else "(?:/.*)?") + r"\Z"
    )


def matches(path: str, patterns: Sequence[str]) -> bool:
    """Whether one of Sphinx's exclude_patterns fits the path or a folder above it."""
    parts = path.split("/")
    above = ["/".join(parts[: n + 1]) for n in range(len(parts))]
    return any(_glob(pattern.strip("/")).match(place) for pattern in patterns for place in above)


@lru_cache(maxsize=512)
def _glob(pattern: str) -> re.Pattern[str]:
    return re.compile(_translate(pattern) + r"\Z")


def _translate(pattern: str) -> str:
    """The regular expression of a glob in which `*` stays within a folder and `**` doesn't."""
    out, i = "", 0
    while i < len(pattern):
        if pattern.startswith("**/", i):
            out, i = out + "(?:.*/)?", i + 3
        elif pattern.startswith("**", i):
            out, i = out + ".*", i + 2
        elif pattern[i] == "*":
            out, i = out + "[^/]*", i + 1
        elif pattern[i] == "?":
            out, i = out + "[^/]", i + 1
        elif pattern[i] == "[" and "]" in pattern[i + 2 :]:
            end = pattern.index("]", i + 2)
            inside = pattern[i + 1 : end].replace("\\", "\\\\").replace("[", "\\[")
            out, i = out + "[" + ("^" + inside[1:] if inside[0] == "!" else inside) + "]", end + 1
        else:
            out, i = out + re.escape(pattern[i]), i + 1
    return out
