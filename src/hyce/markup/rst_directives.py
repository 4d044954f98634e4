"""Directives of Sphinx and its extensions for docutils: what a reader sees of them."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import import_module

from docutils import nodes
from docutils.parsers.rst import Directive, directives
from docutils.statemachine import StringList

from hyce.markup.rst_base import AnyOptions, Base, box, captioned
from hyce.markup.rst_files import Include, LiteralInclude
from hyce.markup.rst_tables import CsvTable, Described, Glossary, ListTable
from hyce.markup.words import words

_DROPPED = words(
    "toctree contents sectnum section-numbering autosummary index highlight tabularcolumns "
    "currentmodule module py:module py:currentmodule sectionauthor codeauthor moduleauthor target-notes "
    "meta default-domain tags automodule autoclass autofunction automethod autodata doxygenfile "
    "doxygenclass doxygenfunction raw-latex youtube vimeo video iframe disqus update header footer "
    "nbgallery bibliography testsetup testcleanup date sphinx-needs post postlist minigallery title"
)
_NOTES = words("note warning attention caution danger error hint important tip seealso todo")
_CODE = words(
    "code code-block sourcecode code-cell console prompt command-output program-output mermaid graphviz "
    "plot doctest testcode testoutput uml plantuml jinja parsed-literal terminal ipython runblock "
    "jupyter-execute runcmd shell bash"
)
_VERSIONS = {
    "versionadded": "New in version",
    "versionchanged": "Changed in version",
    "deprecated": "Deprecated since version",
    "versionremoved": "Removed in version",
    "deprecated-removed": "Deprecated since version",
}
_TAB_SETS = words("tabs tab-set tab-set-code tabset")
_TABS = words("tab group-tab tab-item tabbed code-tab")
_FOLDED = words("dropdown collapse toggle details admonition-folded spoiler")
_CARDS = words("grid-item-card card grid-item panels panel")
_OWN = words(
    "table math epigraph highlights pull-quote compound container topic sidebar rubric "
    "replace unicode class role default-role line-block block-quote restructuredtext-test-directive"
)
_DESCRIBED = words(
    "function class method data exception attribute option cmdoption envvar confval describe object "
    "program macro type struct variable var"
)


def named(name: str) -> type[Directive]:
    """The directive of that name; for an unknown one, one that keeps title and content."""
    if name in _OWN:
        return _own(name)
    kind = name.rpartition(":")[2]
    for names, directive in _KINDS:
        if name in names:
            return directive
    if (":" in name and kind in _DESCRIBED) or name in (
        "option",
        "cmdoption",
        "envvar",
        "confval",
        "describe",
    ):
        return Described
    return Generic


@lru_cache(maxsize=64)
def _own(name: str) -> type[Directive]:
    """docutils' directive, taking every option: an unknown one must not cost the content."""
    module, name_of_class = directives._directive_registry[name]  # type: ignore[attr-defined]
    own: type[Directive] = getattr(import_module(f"docutils.parsers.rst.directives.{module}"), name_of_class)
    options = AnyOptions(own.option_spec or {})
    return type(own.__name__, (own,), {"option_spec": options})


class Generic(Base):
    """Title, then content."""

    def run(self) -> list[nodes.Node]:
        title = self.title()
        lead: list[nodes.Node] = (
            [nodes.paragraph("", "", *self.inline(title))] if title and self.shows(title) else []
        )
        return [*lead, *self.parsed()]

    @staticmethod
    def shows(title: str) -> bool:
        """Whether the argument is words, and not a number of columns or a file."""
        return not re.fullmatch(r"[\d\s:|.-]+|\S*[/\\]\S*|\S+\.\w{2,4}", title)


class Content(Base):
    """Content alone: the argument only arranges it."""

    def run(self) -> list[nodes.Node]:
        return self.parsed()


class Dropped(Base):
    def run(self) -> list[nodes.Node]:
        return []


class Only(Base):
    """`only` keeps what a web page shows."""

    def run(self) -> list[nodes.Node]:
        expression = self.title()
        if re.fullmatch(r"\s*(?:latex|man|text|epub|latexpdf|pdf|not html)\s*", expression):
            return []
        return self.parsed()


class Note(Base):
    """A note without a title of its own: all of it is content, from the directive's first line on."""

    optional_arguments = 0

    def run(self) -> list[nodes.Node]:
        name = self.name.lower()
        title = {"seealso": "See also", "todo": "To do"}.get(name, name.capitalize())
        return [box([nodes.Text(title)], name, self.parsed())]


class Admonition(Base):
    def run(self) -> list[nodes.Node]:
        return [box(self.inline(self.title()), str(self.options.get("class") or ""), self.parsed())]


class Folded(Base):
    def run(self) -> list[nodes.Node]:
        title = self.title() or " ".join(str(self.options.get("label") or "").split())
        return [box(self.inline(title), "details", self.parsed())]


class Card(Base):
    def run(self) -> list[nodes.Node]:
        title = self.title()
        lead: list[nodes.Node] = []
        if title and Generic.shows(title):
            lead = [nodes.paragraph("", "", nodes.strong("", "", *self.inline(title)))]
        return [*lead, *self.parsed()]

    def body(self) -> StringList:
        # sphinx-design parts a card's header and footer off with ^^^ and +++.
        lines = ["" if re.fullmatch(r"\s*(?:\^{3,}|\+{3,})\s*", line) else line for line in super().body()]
        return StringList(lines, source="")


class Version(Base):
    def run(self) -> list[nodes.Node]:
        version, _, words = self.title().partition(" ")
        lead = f"{_VERSIONS[self.name.lower()]} {version}"
        text = f"{lead}: {words}" if words else f"{lead}."
        return [nodes.paragraph("", "", *self.inline(text)), *self.parsed()]


class tab_label(nodes.General, nodes.TextElement):  # noqa: N801  (docutils names nodes so)
    """The name of the tab whose content follows."""


class TabSet(Base):
    def run(self) -> list[nodes.Node]:
        return [nodes.container("", *self.parsed(), classes=["hyce-tabs"])]


class Tab(Base):
    """One tab: its label and content, in a set of its own where no set is around it."""

    def run(self) -> list[nodes.Node]:
        title = self.title()
        if self.name.lower() == "code-tab":
            language, _, words = title.partition(" ")
            label = words or language
            text = "\n".join(self.body())
            body: list[nodes.Node] = [nodes.literal_block(text, text)]
        else:
            label, body = re.sub(r"^\s*:\w+:\s*", "", title), self.parsed()
        parts: list[nodes.Node] = [tab_label("", "", *self.inline(label)), nodes.container("", *body)]
        return [nodes.container("", *parts, classes=["hyce-tabs"])]


class Code(Base):
    def run(self) -> list[nodes.Node]:
        lines = list(self.content)
        if self._is_content(self.arguments[0] if self.arguments else ""):
            lines = list(self.body())
        elif self.name.lower() in ("command-output", "program-output"):
            # The output would come from running the command, which hyce doesn't do.
            lines = [self.title()]
        elif self.name.lower() == "prompt":
            words = self.title().split(None, 1)
            prompt = words[1] if len(words) > 1 else "$"
            lines = [
                f"{prompt} {line}" if line.strip() and "auto" not in self.options.get("prompts", "") else line
                for line in lines
            ]
        return captioned(
            "\n".join(lines),
            str(self.options.get("caption") or self.options.get("name") or "")
            if self.options.get("caption")
            else "",
        )


class ParsedLiteral(Base):
    def run(self) -> list[nodes.Node]:
        text = "\n".join(self.body())
        return [nodes.literal_block(text, "", *self.inline(text))]


class Raw(Base):
    """Raw HTML passes on to the parser of HTML; other formats are for other media."""

    def run(self) -> list[nodes.Node]:
        if "html" not in self.title().lower().split() or "file" in self.options or "url" in self.options:
            return []
        text = "\n".join(self.content)
        return [nodes.raw("", text, format="html")]


class Image(Base):
    """What the alternative text and the caption say; the file itself is not looked at."""

    def run(self) -> list[nodes.Node]:
        alt = " ".join(str(self.options.get("alt") or "").split())
        return [nodes.image("", uri="", alt=alt), *self.parsed()]


class Centered(Base):
    def run(self) -> list[nodes.Node]:
        return [nodes.paragraph("", "", nodes.strong("", "", *self.inline(self.title()))), *self.parsed()]


class Button(Base):
    """A button that leads elsewhere: its words, and the address for a link."""

    def run(self) -> list[nodes.Node]:
        words = [*self.parsed()]
        target = self.title()
        if self.name.lower() == "button-link" and target:
            text = " ".join(node.astext() for node in words) or target
            return [nodes.paragraph("", "", nodes.reference("", text, refuri=target))]
        return words or ([nodes.paragraph("", target)] if target else [])


_KINDS: tuple[tuple[frozenset[str], type[Directive]], ...] = (
    (_DROPPED, Dropped),
    (_NOTES, Note),
    (frozenset({"admonition"}), Admonition),
    (frozenset({"image", "figure", "subfigure", "thumbnail"}), Image),
    (_FOLDED, Folded),
    (_CARDS, Card),
    (frozenset({"parsed-literal"}), ParsedLiteral),
    (_CODE, Code),
    (frozenset(_VERSIONS), Version),
    (_TAB_SETS, TabSet),
    (_TABS, Tab),
    (frozenset({"literalinclude"}), LiteralInclude),
    (frozenset({"include"}), Include),
    (frozenset({"raw"}), Raw),
    (frozenset({"csv-table"}), CsvTable),
    (frozenset({"list-table", "flat-table"}), ListTable),
    (frozenset({"glossary"}), Glossary),
    (frozenset({"only", "ifconfig"}), Only),
    (frozenset({"centered"}), Centered),
    (frozenset({"button-link", "button-ref"}), Button),
    (
        words("grid card-carousel hlist div tab-content cssclass rst-class productionlist"),
        Content,
    ),
)


def salvaged(text: str) -> list[nodes.Node]:
    """The words of a directive that docutils refused, as paragraphs."""
    lines = [re.sub(r"^\s*\.\. [\w:+.-]+ ?::\s*", "", line) for line in text.split("\n")]
    lines = [
        line for line in lines if not re.fullmatch(r"\s*:[\w-]+:.*|\s*([=\-`:'\"~^_*+#<>.])\1{2,}\s*", line)
    ]
    parts = re.split(r"\n\s*\n", "\n".join(lines))
    return [nodes.paragraph("", " ".join(part.split())) for part in parts if part.strip()]
