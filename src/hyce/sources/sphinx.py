"""Sphinx's conf.py, read by its syntax tree: nothing in it is executed."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hyce.sources.patterns import matches
from hyce.sources.site import Site, read_settings, text_of

_REPOSITORY_FILES = re.compile(
    r"(?:readme|contributing|changelog|changes|code_of_conduct|licen[sc]e|security|authors|history)(?:\.\w+)?$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Sphinx(Site):
    exclude: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = (".rst",)
    """Which files are sources; .md among them where a Markdown parser is loaded."""

    def left_out(self, path: Path) -> str:
        inner = self.inner(path)
        if inner is None:
            if path.parent in self.pages.parents and _REPOSITORY_FILES.match(path.name):
                return f"about the repository, not a page of the site that {self.file.name} builds"
            return ""
        if matches(inner, (*self.exclude, "_templates", "_build")):
            return f"left out by exclude_patterns of {self.file.name}"
        if path.suffix == ".md" and ".md" not in self.suffixes and _REPOSITORY_FILES.match(path.name):
            return f"about the repository, not a page of the site that {self.file.name} builds"
        return ""

    def address(self, path: Path) -> str | None:
        inner = self.inner(path)
        if not self.url or inner is None:
            return None
        stem, _, suffix = inner.rpartition(".")
        # Sphinx publishes what it renders; of other files it is not known where they end up.
        return self.url + quote(f"{stem}.html") if f".{suffix}" in (".rst", ".md", *self.suffixes) else None


def read(file: Path) -> Sphinx | None:
    found = _assignments(read_settings(file))
    # A conf.py can be anybody's: Sphinx's has one of these, or a page beside it.
    if not found.keys() & {"extensions", "html_theme", "project", "master_doc", "root_doc", "html_baseurl"}:
        return None
    url = text_of(found.get("html_baseurl"))
    suffix = found.get("source_suffix", (".rst",))
    suffixes = (
        [suffix]
        if isinstance(suffix, str)
        else [s for s in suffix if isinstance(s, str)]
        if isinstance(suffix, list | tuple | dict)
        else []
    )
    extensions = found.get("extensions")
    names = (
        [e for e in extensions if isinstance(e, str)]
        if isinstance(extensions, list | tuple)
        else ["myst_parser"]
    )
    if any(
        name in ("myst_parser", "myst_nb", "recommonmark", "m2r", "m2r2", "sphinx_mdinclude")
        for name in names
    ):
        suffixes.append(".md")
    return Sphinx(
        file=file,
        pages=file.parent.resolve(),
        url=url.rstrip("/") + "/" if url.startswith(("http://", "https://")) else "",
        before=text_of(found.get("rst_prolog")),
        after="\n\n".join(part for part in (text_of(found.get("rst_epilog")), _substitutions(found)) if part),
        exclude=tuple(p for p in _sequence(found.get("exclude_patterns")) if isinstance(p, str)),
        suffixes=tuple(suffixes),
    )


def _sequence(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _assignments(text: str) -> dict[str, Any]:
    """The literal values that a Python file gives to names at its top level."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found: dict[str, Any] = {}
    for node in tree.body:
        targets = (
            node.targets
            if isinstance(node, ast.Assign)
            else [node.target]
            if isinstance(node, ast.AnnAssign)
            else []
        )
        value = getattr(node, "value", None)
        for target in targets:
            if isinstance(target, ast.Name) and isinstance(value, ast.expr):
                try:
                    found[target.id] = ast.literal_eval(value)
                except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                    found.setdefault(target.id, None)
    return found


def _substitutions(found: Mapping[str, Any]) -> str:
    """What Sphinx defines by itself: |project|, |version| and |release|."""
    lines = [
        f".. |{name}| replace:: {found[name]}"
        for name in ("project", "version", "release")
        if isinstance(found.get(name), str) and found[name].strip() and "\n" not in found[name]
    ]
    return "\n".join(lines)
