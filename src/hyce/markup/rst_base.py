"""What all of hyce's directives have in common: every option is taken, the title is told from content."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive, directives
from docutils.statemachine import StringList

from hyce.markup.includes import Place


class AnyOptions(dict[str, Callable[[str], Any]]):
    """Takes every option; an unknown one must not cost the content."""

    def __missing__(self, key: str) -> Callable[[str], Any]:
        return directives.unchanged

    def __contains__(self, key: object) -> bool:
        return True

    def __bool__(self) -> bool:
        return True


class Base(Directive):
    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[Any] = AnyOptions()

    def title(self) -> str:
        """The argument; empty where the text below the directive was taken for it."""
        text = self.arguments[0] if self.arguments else ""
        return "" if self._is_content(text) else " ".join(text.split())

    def _is_content(self, text: str) -> bool:
        return bool(text) and self.block_text.split("\n", 1)[0].rstrip().endswith("::")

    def body(self) -> StringList:
        """The content, with the text that docutils took for an argument."""
        text = self.arguments[0] if self.arguments else ""
        if self._is_content(text):
            return StringList(
                [*text.split("\n"), "", *self.content], source=self.content.source(0) if self.content else ""
            )
        return self.content

    def parsed(self) -> list[nodes.Node]:
        holder = nodes.Element()
        self.state.nested_parse(self.body(), self.content_offset, holder, match_titles=True)
        return list(holder.children)

    def inline(self, text: str) -> list[nodes.Node]:
        found, messages = self.state.inline_text(text, self.lineno)
        return [*found, *messages]

    def place(self) -> Place | None:
        """Where files are looked for: in the folder of the file that names them."""
        place: Place | None = getattr(self.state.document.settings, "hyce_place", None)
        source = self.state.document.current_source
        if place is None or not source or not Path(source).is_absolute():
            return place
        return place.within(Path(source).parent)


def box(title: list[nodes.Node], kind: str, body: list[nodes.Node]) -> nodes.Element:
    """An admonition as the parser of HTML knows it."""
    label = [nodes.paragraph("", "", *title, classes=["hyce-title"])] if title else []
    return nodes.container("", *label, *body, classes=["admonition", *kind.split()])


def captioned(text: str, caption: str) -> list[nodes.Node]:
    block = nodes.literal_block(text, text)
    if not caption:
        return [block]
    label = nodes.paragraph("", caption, classes=["code-block-caption"])
    return [nodes.container("", label, block)]
