"""Front matter: what a page says about itself above its text."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hyce.markup.words import words
from hyce.records import Document

_YAML = re.compile(r"\A\s*---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*$\n?", re.DOTALL | re.MULTILINE)
_META = re.compile(r"[ ]{0,3}([A-Za-z0-9_-]+):[ \t]*(.*)")
# MkDocs takes any `Word: text` for meta-data. A first line such as `Note: ...` is text to a reader.
_KEYS = words(
    "title template description author authors date updated revision revision_date last_updated "
    "last_modified lastmod modified created summary tags keywords hide search status icon draft "
    "published hidden redirect redirect_to redirect_from subtitle category categories layout slug "
    "weight order nav_order parent"
)
_DATE_KEYS = ("revision_date", "last_updated", "updated", "last_modified", "lastmod", "modified", "date")
_FORMATS = (
    "%Y/%m/%d",
    "%d %B %Y",
    "%d %b %Y",
    "%B %d, %Y",
    "%b %d, %Y",
    "%B %d %Y",
    "%d.%m.%Y",
    "%d/%m/%Y",
    "%d-%b-%Y",
    "%Y%m%d",
)


@dataclass(frozen=True, slots=True)
class Facts:
    title: str = ""
    date: str | None = None
    hidden: str = ""
    """Why the page is not to be found; empty where it is."""


def facts(document: Document) -> Facts:
    """What the page's own text says about it, for any media type."""
    if document.media_type == "text/x-rst":
        return _rst_facts(document.text)
    if document.media_type not in ("text/markdown", "text/html"):
        return Facts()
    meta, _ = split(document.text)
    return Facts(_text(meta.get("title")), _date(meta), _hidden(meta))


def split(text: str) -> tuple[Mapping[str, Any], str]:
    """(meta-data with keys in lower case, the text below it): YAML between `---`, or MkDocs' bare lines."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    match = _YAML.match(text)
    if match:
        data = _yaml(match.group(1))
        if data is not None:
            return data, text[match.end() :]
        return {}, text
    return _bare(text)


def _yaml(text: str) -> Mapping[str, Any] | None:
    from hyce.markup.plainyaml import PlainLoader, YAMLError, yaml_load

    try:
        data = yaml_load(text, PlainLoader)
    except (YAMLError, ValueError, RecursionError):
        # Broken YAML: the simple lines of it can still be read.
        found = [_META.fullmatch(line) for line in text.split("\n")]
        data = {m.group(1): m.group(2).strip(" \"'") for m in found if m} or None
    if data is None and not text.strip():
        return {}
    return {str(key).lower(): value for key, value in data.items()} if isinstance(data, dict) else None


def _bare(text: str) -> tuple[Mapping[str, Any], str]:
    lines = text.lstrip("\n").split("\n")
    meta: dict[str, Any] = {}
    last = ""
    for i, line in enumerate(lines):
        match = _META.fullmatch(line)
        if match and (meta or match.group(1).lower() in _KEYS):
            last = match.group(1).lower()
            meta[last] = match.group(2).strip(" \"'")
        elif meta and line.startswith("    ") and line.strip():
            meta[last] = f"{meta[last]} {line.strip()}".strip()
        else:
            return (meta, "\n".join(lines[i:])) if meta else ({}, text)
    return meta, ""


def _rst_facts(text: str) -> Facts:
    """The field list at the top, or right below the title; Sphinx's file-wide meta-data."""
    fields = {}
    lines = text.replace("\r\n", "\n").split("\n")[:60]
    for i, line in enumerate(lines):
        match = re.fullmatch(r":([\w -]+):[ \t]*(.*)", line)
        if match:
            fields[match.group(1).lower()] = match.group(2).strip()
        elif not _above_text(line, lines[i + 1] if i + 1 < len(lines) else ""):
            break
    date = next((iso_date(fields[key]) for key in _DATE_KEYS if key in fields), None)
    hidden = "kept out of search (:nosearch:)" if "nosearch" in fields else ""
    return Facts("", date, hidden or _hidden(fields))


def _above_text(line: str, following: str) -> bool:
    """Whether the line of reStructuredText is still above the page's text: empty, a comment, a title."""
    underline = re.compile(r"([=\-`:'\"~^_*+#<>.])\1*\s*")
    return bool(
        not line.strip()
        or line.startswith((".. ", "  "))
        or underline.fullmatch(line)
        or underline.fullmatch(following)
    )


def _hidden(meta: Mapping[str, Any]) -> str:
    search = meta.get("search")
    if isinstance(search, dict) and _true(search.get("exclude")):
        return "kept out of search (search.exclude)"
    if _true(meta.get("draft")):
        return "a draft"
    if "published" in meta and _false(meta["published"]):
        return "not published"
    if _true(meta.get("hidden")):
        return "hidden"
    if any(meta.get(key) for key in ("redirect", "redirect_to", "redirect_url")):
        return "only leads to another page"
    return ""


def _true(value: Any) -> bool:
    return value is True or (isinstance(value, str) and value.strip().lower() in ("true", "yes", "on", "1"))


def _false(value: Any) -> bool:
    return value is False or (isinstance(value, str) and value.strip().lower() in ("false", "no", "off", "0"))


def _text(value: Any) -> str:
    return " ".join(str(value).split()) if isinstance(value, str | int | float) else ""


def _date(meta: Mapping[str, Any]) -> str | None:
    for key in _DATE_KEYS:
        value = meta.get(key)
        if isinstance(value, dict):
            value = value.get("updated") or value.get("created")
        date = iso_date(value)
        if date:
            return date
    return None


def iso_date(value: Any) -> str | None:
    """YYYY-MM-DD of a date, a time stamp or a text that holds one date; None for anything else."""
    if isinstance(value, datetime.datetime):
        return value.date().isoformat()
    if isinstance(value, datetime.date):
        return value.isoformat()
    if not isinstance(value, str):
        return None
    text = " ".join(value.replace("$Date:", "").strip(" $").split())
    match = re.match(r"(\d{4}-\d{2}-\d{2})(?!\d)", text)
    candidates = [("%Y-%m-%d", match.group(1))] if match else [(form, text) for form in _FORMATS]
    for form, candidate in candidates:
        try:
            return datetime.datetime.strptime(candidate, form).replace(tzinfo=datetime.UTC).date().isoformat()
        except ValueError:
            continue
    return None


def date_in(text: str) -> str | None:
    """The last date in a text such as `Last updated on Mar 5, 2024 by NN`."""
    found = re.findall(
        r"\d{4}-\d\d-\d\d|[A-Z][a-z]+ \d{1,2}, \d{4}|\d{1,2} [A-Z][a-z]+ \d{4}", " ".join(text.split())
    )
    return next((date for date in map(iso_date, reversed(found)) if date), None)
