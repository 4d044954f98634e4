"""Markdown -> HTML, as MkDocs Material sites render it."""

from __future__ import annotations

import html
import re
import threading
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import ReferenceInlineProcessor

from hyce.markup import front, indent, myst, plain
from hyce.markup.placeholders import escape_placeholders
from hyce.markup.snippets import Snippets, unescape
from hyce.records import Document

_EXTENSIONS = [
    "abbr", "admonition", "attr_list", "def_list", "footnotes", "md_in_html", "sane_lists", "tables", "toc",
    "pymdownx.superfences", "pymdownx.tabbed", "pymdownx.details", "pymdownx.tasklist", "pymdownx.highlight",
    "pymdownx.inlinehilite", "pymdownx.critic", "pymdownx.mark", "pymdownx.keys", "pymdownx.caret",
    "pymdownx.tilde", "pymdownx.emoji", "pymdownx.blocks.admonition", "pymdownx.blocks.details",
    "pymdownx.blocks.tab", "pymdownx.blocks.caption", "pymdownx.blocks.definition", "pymdownx.blocks.html",
]  # fmt: skip

_local = threading.local()
_MARKDOWN_IN_HTML = re.compile(r"<\w[^<>]{0,500}\bmarkdown\b")
MOST_IN_HTML = 1000
"""Elements with Markdown in them in one page; the converter's time grows with the square of their number."""
LONGEST_PARAGRAPH = 10_000
"""Characters; a longer one is no prose, and its markup is not read."""


class _Unresolved(ReferenceInlineProcessor):
    """`[text][ref-storage]` whose target another tool knows (autorefs): its text."""

    def handleMatch(self, m: re.Match[str], data: str) -> Any:  # type: ignore[override]  # noqa: N802
        text, index, handled = self.getText(data, m.end(0))
        if not handled or (m.start(0) and (data[m.start(0) - 1].isalnum() or data[m.start(0) - 1] in "]_)")):
            return None, None, None
        target = re.compile(r" ?\[([A-Za-z][\w.:/ -]*)?\]").match(data, index)
        if (
            target is None
            or not text.strip()
            or (target.group(1) and not re.search(r"[-_.:]|\w{3}", target.group(1)))
        ):
            return None, None, None
        element = Element("span")
        element.text = text
        return element, m.start(0), target.end(0)


class _AsDocumentation(Extension):
    def extendMarkdown(self, md: markdown.Markdown) -> None:  # noqa: N802  (Markdown's name)
        md.inlinePatterns.register(_Unresolved(r"\[", md), "unresolved", 119)


def _converter() -> markdown.Markdown:
    """This thread's converter, as new: making one costs more than a page."""
    if not hasattr(_local, "converter"):
        from pymdownx.emoji import gemoji, to_alt

        _local.converter = markdown.Markdown(
            extensions=[*_EXTENSIONS, _AsDocumentation()],
            extension_configs={
                "pymdownx.highlight": {"use_pygments": False, "auto_title": False},
                "pymdownx.tabbed": {"alternate_style": True},
                "pymdownx.caret": {"superscript": False},
                "pymdownx.tilde": {"subscript": False},
                "pymdownx.critic": {"mode": "accept"},
                "pymdownx.emoji": {"emoji_index": gemoji, "emoji_generator": to_alt},
                "pymdownx.blocks.tab": {"alternate_style": True},
                "toc": {"toc_depth": "1-6"},
            },
        )
    converter: markdown.Markdown = _local.converter
    converter.reset()
    return converter


def render(document: Document) -> str:
    """The page as an HTML fragment, its front matter left out and its snippets expanded."""
    _, text = front.split(document.text)
    if document.root is not None:
        text = _snippets(document, Path(document.root)).expand(text)
    return to_html(unescape(text), document)


def to_html(text: str, document: Document | None = None) -> str:
    """Markdown text as HTML; text that trips the converter, or is endless, becomes plain paragraphs."""
    if len(text) > plain.LONGEST_MARKUP or len(_MARKDOWN_IN_HTML.findall(text)) > MOST_IN_HTML:
        return plain.text_html(text)
    try:
        text = myst.to_markdown(text, document)
        return escape_placeholders(_converter().convert(_tame(indent.normalise(text))))
    except Exception:
        # A page that trips an extension must not be lost, nor stop the others.
        del _local.converter
        return plain.text_html(text)


def _tame(text: str) -> str:
    """The text with the markup of endless paragraphs shown as it stands: the converter's time would grow
    with the square of their length."""
    if len(text) < LONGEST_PARAGRAPH:
        return text
    # Pictures within the text are long, and nothing to read.
    parts = re.split(r"(\n[ \t]*\n)", re.sub(r"data:[\w/+.-]+;base64,[\w+/=]*", "data:,", text))
    fenced = False
    for i, part in enumerate(parts):
        fences = len(re.findall(r"^[ \t]*(?:`{3,}|~{3,})", part, re.MULTILINE))
        if len(part) >= LONGEST_PARAGRAPH and not fenced and not fences:
            # Cells and items are paragraphs of their own.
            inner = part.split("\n") if re.match(r"\s*(?:[|>*+-]|\d+\.)|[^\n]*\|", part) else [part]
            parts[i] = "\n".join(_literal(each) if len(each) >= LONGEST_PARAGRAPH else each for each in inner)
        fenced ^= bool(fences % 2)
    return "".join(parts)


def _literal(text: str) -> str:
    """A paragraph of its characters as they are; raw HTML, which is no paragraph, stays as it is."""
    if re.match(r"\s*</?(?:table|div|details|pre|ul|ol|dl|section|p)\b", text):
        return text
    return f"<p>{html.escape(text.strip())}</p>"


def _snippets(document: Document, root: Path) -> Snippets:
    page = Path(document.source)
    folder = (page / document.path).parent if page.is_dir() else page.parent
    return Snippets((root, folder, page if page.is_dir() else page.parent), root)
