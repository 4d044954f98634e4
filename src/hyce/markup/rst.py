"""reStructuredText -> HTML with docutils, Sphinx's directives and roles included.

docutils reads no file, runs nothing and prints nothing here: `include` and its relatives are hyce's own and
stay below the page's root; what is unknown keeps its content.
"""

from __future__ import annotations

import re
import threading
from functools import lru_cache
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.core import publish_doctree
from docutils.frontend import get_default_settings
from docutils.parsers.rst import directives, roles
from docutils.writers import html5_polyglot

from hyce.markup import plain, rst_directives, rst_roles
from hyce.markup.includes import Place
from hyce.markup.placeholders import escape_placeholders
from hyce.markup.words import words
from hyce.records import Document

_SETTINGS: dict[str, Any] = {
    "report_level": 5,
    "halt_level": 5,
    "warning_stream": False,
    "file_insertion_enabled": False,
    "raw_enabled": True,
    "_disable_config": True,
    "doctitle_xform": False,
    "initial_header_level": "1",
    "sectsubtitle_xform": False,
    "docinfo_xform": True,
    "smart_quotes": False,
    "syntax_highlight": "none",
    "math_output": "LaTeX",
    "embed_stylesheet": False,
    "stylesheet_path": None,
    "stylesheet": None,
    "xml_declaration": False,
    "line_length_limit": 1_000_000,
    "toc_backlinks": False,
    "footnote_backlinks": True,
    "traceback": True,
    "input_encoding": "unicode",
    "output_encoding": "unicode",
    "id_prefix": "",
    "auto_id_prefix": "id",
}
_DIRECTIVE = re.compile(
    r"^[ \t]*(?:[-*+|] +)*\.\. (?:\|[^|\n]+\| )?((?:(?!_)\w)+(?:[-._+:](?:(?!_)\w)+)*) ?::", re.MULTILINE
)
_ROLE = re.compile(r":((?:(?!_)\w)+(?:[-._+:](?:(?!_)\w)+)*):`|`:((?:(?!_)\w)+(?:[-._+:](?:(?!_)\w)+)*):")

_PAGE_FIELDS = words(
    "date orphan nosearch nocomments tocdepth author authors version status copyright revision updated "
    "last_updated last-updated organization contact address abstract dedication tags description "
    "keywords html_theme.sidebar_secondary.remove html_theme.sidebar_primary.remove github_url hidden "
    "draft published title og:description category"
)

_lock = threading.RLock()
"""docutils keeps its directives and roles in one table for the process."""


def render(document: Document) -> str:
    """The page as an HTML fragment."""
    page = Path(document.source)
    folder = (page / document.path).parent if page.is_dir() else page.parent
    return to_html(document.text, Place(folder, Path(document.root)) if document.root else None)


def to_html(text: str, place: Place | None = None) -> str:
    """reStructuredText as an HTML fragment. place: where files that it includes are looked for."""
    if len(text) > plain.LONGEST_MARKUP:
        return plain.text_html(text)
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").expandtabs(8)
    with _lock:
        _register(text, place)
        try:
            return _html(text, place)
        except Exception:
            # A page that docutils can't take must not be lost, nor stop the others.
            return plain.text_html(text)


def _html(text: str, place: Place | None) -> str:
    tree = publish_doctree(text, settings_overrides={**_SETTINGS, "hyce_place": place, "hyce_text": text})
    _mend(tree)
    tree.settings = _writer_settings()
    translator = _Translator(tree)
    tree.walkabout(translator)
    return escape_placeholders("".join(translator.body))


@lru_cache(maxsize=1)
def _writer_settings() -> Any:
    settings = get_default_settings(html5_polyglot.Writer)
    for name, value in _SETTINGS.items():
        setattr(settings, name, value)
    return settings


def _register(text: str, place: Place | None) -> None:
    """Make every directive and role known that the text, or a file it includes, may use."""
    texts = [text, *(place.texts(text) if place else ())]
    for each in texts:
        for match in _DIRECTIVE.finditer(each):
            name = match[1].lower()
            directives.register_directive(name, rst_directives.named(name))
        for match in _ROLE.finditer(each):
            name = (match[1] or match[2]).lower()
            role: Any = rst_roles.named(name)
            roles.register_local_role(name, role)


def _mend(tree: nodes.document) -> None:
    """Turn what docutils complained about into the text it stands for."""
    for problem in list(tree.findall(nodes.problematic)):
        problem.parent.replace(problem, nodes.Text(_plain(problem.astext())))
    for message in list(tree.findall(nodes.system_message)):
        kept: list[nodes.Node] = []
        # Errors took the text that they quote out of the page; warnings left it in.
        for block in message.findall(nodes.literal_block) if message["level"] >= 3 else ():
            kept += rst_directives.salvaged(block.astext())
        if message.parent is not None:
            message.parent.replace(message, kept)
    for name in (nodes.docinfo, nodes.generated, nodes.comment, nodes.meta, nodes.decoration, nodes.pending):
        for node in list(tree.findall(name)):
            if node.parent is not None:
                node.parent.remove(node)
    _drop_page_fields(tree)
    for section in tree.findall(nodes.section):
        # An id that docutils made up (id3) where the author gave one.
        section["ids"].sort(key=lambda ident: bool(re.fullmatch(r"id\d+", ident)))


def _drop_page_fields(tree: nodes.document) -> None:
    """Sphinx takes the field list at the top, above or below the title, for meta-data of the page."""
    places = [tree, *(child for child in tree.children if isinstance(child, nodes.section))][:2]
    for place in places:
        own = [
            c
            for c in place.children
            if not isinstance(c, nodes.title | nodes.target | nodes.comment | nodes.substitution_definition)
        ]
        if own and isinstance(own[0], nodes.field_list):
            names = {
                field[0].astext().lower() for field in own[0].children if isinstance(field, nodes.Element)
            }
            if names <= _PAGE_FIELDS:
                place.remove(own[0])


def _plain(source: str) -> str:
    """The text of markup that leads nowhere: `text <x>`_, ref_, |name|, :role:`text`."""
    match = re.fullmatch(r"(?::[\w.:+-]+:)?`(.*?)(?:\s*<[^>]*>)?`_{0,2}", source, re.DOTALL)
    if match:
        return match[1]
    match = re.fullmatch(r"\|(.+)\|_{0,2}", source)
    if match:
        return match[1]
    return re.sub(r"(?<=\w)__?$", "", source)


class _Translator(html5_polyglot.HTMLTranslator):
    """The body alone, with headings from h1 on."""

    def visit_tab_label(self, node: nodes.Element) -> None:
        self.body.append(self.starttag(node, "div", "", CLASS="hyce-tab-label"))

    def depart_tab_label(self, _node: nodes.Element) -> None:
        self.body.append("</div>\n")

    def visit_image(self, node: nodes.Element) -> None:
        # The file itself is of no use, and must not be looked at.
        self.body.append(self.emptytag(node, "img", "", alt=node.get("alt", ""), src=""))

    def depart_image(self, node: nodes.Element) -> None:
        """Nothing is left open."""

    def visit_math(self, node: nodes.Element) -> None:
        self.body.append(self.starttag(node, "span", ""))
        self.body.append(self.encode(node.astext()))
        self.body.append("</span>")
        raise nodes.SkipNode

    def visit_math_block(self, node: nodes.Element) -> None:
        self.body.append(self.starttag(node, "p", ""))
        self.body.append(self.encode(node.astext()))
        self.body.append("</p>\n")
        raise nodes.SkipNode

    def unknown_visit(self, node: nodes.Node) -> None:
        pass

    def unknown_departure(self, node: nodes.Node) -> None:
        pass
