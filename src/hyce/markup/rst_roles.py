"""Interpreted text roles of Sphinx and its extensions: the text that a reader sees."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from docutils import nodes, utils
from docutils.parsers.rst import roles

from hyce.markup.words import words

_DOCUTILS = words(
    "abbreviation acronym code emphasis literal math pep pep-reference rfc rfc-reference strong sub "
    "subscript sup superscript title title-reference t raw"
)
_ICON = re.compile(r"(?:octicon|fa[srbl]?|fab|fa-\w+|material-\w+|icon)$")
_LITERAL = words("command program option envvar file samp kbd makevar regexp mailheader mimetype newsgroup")
_EXPLICIT = re.compile(r"^(.+?)\s*<([^<>]*)>$", re.DOTALL)

Found = tuple[list[nodes.Node], list[nodes.system_message]]
Role = Callable[..., Found]


def named(name: str) -> Role:
    """The role of that name: docutils' own, or one that gives its text."""
    if name in _DOCUTILS:
        found: Any = roles._role_registry.get(_canonical(name))  # type: ignore[attr-defined]
        if found is not None:
            role: Role = found
            return role
    if _ICON.match(name):
        return _nothing
    return _text


def _canonical(name: str) -> str:
    short = {"sub": "subscript", "sup": "superscript", "title": "title-reference", "t": "title-reference",
             "pep": "pep-reference", "rfc": "rfc-reference"}  # fmt: skip
    return short.get(name, name)


def _nothing(*_: Any, **__: Any) -> Found:
    return [], []


def _text(name: str, rawtext: str, text: str, *rest: Any, **_: Any) -> Found:
    words = shown(name.lower(), utils.unescape(text), rest[1])
    node = nodes.literal if name.lower().rpartition(":")[2] in _LITERAL else nodes.inline
    return [node(rawtext, words)], []


def shown(name: str, text: str, inliner: Any = None) -> str:
    """What a reader sees of `:name:`text``."""
    kind = name.rpartition(":")[2]
    explicit = _EXPLICIT.match(text)
    if explicit and kind not in ("kbd", "file", "samp", "command", "program", "option", "code"):
        return explicit[1]
    if kind in ("menuselection", "guilabel"):
        return re.sub(r"&(?=\w)", "", text).replace("-->", "\u2192")
    if kind in ("file", "samp"):
        return re.sub(r"[{}]", "", text)
    if kind == "ref" and inliner is not None:
        return _section_title(text, inliner) or re.sub(r"[-_]+", " ", text)
    if kind in ("doc", "download") or (kind == "any" and "/" in text):
        return text.rstrip("/").rpartition("/")[2] if kind == "doc" else text
    if text.startswith("~"):
        return text[1:].rpartition(".")[2]
    return text.removeprefix("!")


def _section_title(label: str, inliner: Any) -> str:
    """The title below `.. _label:` in the same page."""
    text = getattr(inliner.document.settings, "hyce_text", "")
    match = re.search(
        rf"^\.\. _`?{re.escape(label)}`?:[ \t]*\n(?:\s*\.\. _[^\n]*:[ \t]*\n)*\s*"
        r"(?:([=\-`:'\"~^_*+#<>.])\1{2,}\n)?[ \t]*(\S[^\n]*)\n"
        r"([=\-`:'\"~^_*+#<>.])\3{2,}[ \t]*$",
        text,
        re.MULTILINE | re.IGNORECASE,
    )
    return match[2].strip() if match else ""
