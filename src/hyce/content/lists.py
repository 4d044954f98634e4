"""Lists and definition lists: what one item says, with what is nested in it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from hyce.content.inline import BLOCKS, Inline
from hyce.content.text import one_line, tidy
from hyce.content.tree import Element, tag
from hyce.markup.words import words

LONGEST_ITEM = 500
"""Characters, about 120 tokens: a longer item is not one unit but a list of blocks of its own."""
LONGEST_LABEL = 120
"""Characters of an item's own words that may be repeated above what is nested in it."""

_HEAVY = words("table details dl h1 h2 h3 h4 h5 h6 section article blockquote aside")
_LISTS = ("ul", "ol", "menu")


@dataclass(frozen=True, slots=True)
class ItemText:
    inline: Inline

    def items(self, element: Element) -> Iterator[tuple[str, Element]]:
        """(marker, item) of a list; what is no <li> in broken markup counts as an item too."""
        number = (
            int(element.get("start") or 1) if (element.get("start") or "1").lstrip("-").isdecimal() else 1
        )
        for child in element:
            if tag(child) == "li":
                value = child.get("value") or ""
                number = int(value) if value.isdecimal() else number
            yield (f"{number}. " if tag(element) == "ol" else "- "), child
            number += 1

    def is_simple(self, item: Element) -> bool:
        """Whether the item is one short unit, code of a few lines and nested lists included."""
        inner = list(item.iterdescendants())
        if any(
            tag(e) in _HEAVY
            or "tabbed-set" in (e.get("class") or "")
            or "admonition" in (e.get("class") or "")
            for e in inner
        ):
            return False
        return len(one_line("".join(str(t) for t in item.itertext()))) <= LONGEST_ITEM

    def unit(self, item: Element, marker: str) -> str:
        """The item's text: own words, then nested items and code, indented."""
        lines: list[str] = []
        words: list[str] = [self.inline.node_text(item.text, False)]

        def flush() -> None:
            text = tidy("".join(words))
            lines.extend(text.split("\n") if text else ())
            words.clear()

        for child in item:
            name = tag(child)
            if name in _LISTS:
                flush()
                for inner_marker, inner in self.items(child):
                    lines.extend(
                        self.unit(inner, inner_marker).split("\n") if len(inner) or inner.text else ()
                    )
            elif name == "pre":
                flush()
                lines.extend(self.inline.text(child, code=True).expandtabs(4).strip("\n").split("\n"))
            elif name in BLOCKS and any(tag(e) in ("pre", *_LISTS) for e in child.iterdescendants()):
                flush()
                lines.extend(self.unit(child, "").split("\n"))
            else:
                words.append(self.inline.child(child))
            words.append(self.inline.node_text(child.tail, False))
        flush()
        lines = [line.rstrip() for line in lines if line.strip()]
        if not lines:
            return ""
        # A checkbox is the item's marker already.
        rest = textwrap.indent("\n".join(lines[1:]), "  " if marker else "")
        return marker + lines[0] + ("\n" + rest if rest else "")

    def label(self, item: Element) -> str:
        """The item's own words, where it holds more below them and they are short; else empty."""
        rest = self.rest(item)
        if not rest or any((child.tail or "").strip() for child in rest):
            return ""
        own = list(item)[: len(item) - len(rest)]
        plain = "".join(str(t) for e in own for t in (*e.itertext(), e.tail or ""))
        # Looked at first: to render words counts their footnotes as placed.
        if len(one_line((item.text or "") + plain)) > LONGEST_LABEL:
            return ""
        words = [self.inline.node_text(item.text, False)]
        for child in own:
            words += [self.inline.child(child), self.inline.node_text(child.tail, False)]
        return one_line("".join(words))

    def rest(self, item: Element) -> list[Element]:
        """The item's children from the first one that is a block below its own words."""
        children = list(item)
        for i, child in enumerate(children):
            if tag(child) in BLOCKS and not (tag(child) == "p" and i == 0 and not (item.text or "").strip()):
                return children[i:]
        return []

    def definitions(self, element: Element) -> Iterator[tuple[str, list[Element]]]:
        """(terms, bodies) of a definition list; `a, b` where terms share their bodies."""
        terms: list[str] = []
        bodies: list[Element] = []
        for child in self._entries(element):
            if tag(child) == "dt":
                if bodies:
                    yield ", ".join(terms), bodies
                    terms, bodies = [], []
                terms.append(one_line(self.inline.text(child)))
            else:
                bodies.append(child)
        if terms or bodies:
            yield ", ".join(term for term in terms if term), bodies

    def _entries(self, element: Element) -> Iterator[Element]:
        for child in element:
            if tag(child) == "div" and any(tag(e) in ("dt", "dd") for e in child):
                yield from self._entries(child)
            else:
                yield child

    def definition(self, terms: str, bodies: list[Element]) -> str:
        texts = [text for text in (self.unit(body, "") for body in bodies) if text]
        lead = terms.rstrip(":")
        if not texts:
            return terms
        if len(texts) == 1:
            return f"{lead}: {texts[0]}" if lead else texts[0]
        return "\n".join([f"{lead}:", *(f"  - {text}" for text in texts)])
