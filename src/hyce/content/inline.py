"""Running text: what an element's words are, as a reader sees them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from hyce.content.text import icons, one_line, says_something
from hyce.content.tree import Element, classes, tag
from hyce.markup.words import words

BLOCKS = words(
    "address article aside blockquote body center details dd div dl dt fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu ol optgroup option p pre "
    "section summary table tbody td tfoot th thead tr ul caption"
)
_CODE = words("code tt samp kbd pre var")
LONGEST_LINK = 100
"""Addresses with more characters are left out: they would crowd out a passage's words."""


@dataclass(slots=True)
class Inline:
    """Turns running text into words. One for a page: it knows the page's footnotes and address."""

    footnotes: Mapping[str, str] = field(default_factory=dict)
    """Short footnotes by id; they are put where the text refers to them."""
    host: str = ""
    """Links within the site lead nowhere that the citation doesn't: their address is left out."""
    explained: set[str] = field(default_factory=set)
    """Abbreviations whose meaning was given already."""
    placed: set[str] = field(default_factory=set)
    """Footnotes that were put into the text."""

    def text(self, element: Element, *, code: bool = False) -> str:
        """The words of the element's content; `\\n` where it has a forced line break."""
        code = code or tag(element) in _CODE
        parts = [self.node_text(element.text, code)]
        for child in element:
            parts.append(self.child(child, code=code))
            parts.append(self.node_text(child.tail, code))
        return "".join(parts)

    @staticmethod
    def node_text(text: str | None, code: bool) -> str:
        if not text:
            return ""
        return text if code else icons(re.sub(r"\s+", " ", text))

    def child(self, element: Element, *, code: bool = False) -> str:
        """The words that stand for the element itself within running text."""
        name = tag(element)
        if name == "br":
            return "\n"
        if name == "img":
            alt = one_line(element.get("alt") or "")
            if "emoji" in classes(element) or "twemoji" in classes(element):
                return alt
            return f" [image: {alt}] " if says_something(alt) else ""
        if name == "input":
            return "[x] " if element.get("checked") is not None else "[ ] "
        if name == "math":
            notes = element.xpath(".//*[local-name()='annotation']")
            if isinstance(notes, list) and notes and isinstance(notes[0], type(element)):
                return one_line("".join(str(t) for t in notes[0].itertext()))
        text = self._footnote(element)
        if text is None:
            text = self.text(element, code=code)
            text = self._marked(element, name, text)
        return f"\n{text}\n" if name in BLOCKS else text

    def _marked(self, element: Element, name: str, text: str) -> str:
        if name == "a":
            return self._link(element, text)
        if name == "sup" and re.fullmatch(r"-?\d+|[a-z]", text.strip()) and _before(element)[-1:].isalnum():
            return f"^{text.strip()}"
        if name == "abbr":
            title = one_line(element.get("title") or "")
            if title and text not in self.explained and title.lower() != text.lower():
                self.explained.add(text)
                return f"{text} ({title})"
        if name in ("del", "s", "strike") and text.strip():
            return f"~~{text}~~"
        if name == "span" and "classifier" in classes(element) and text.strip():
            return f" ({text.strip()})"
        if name == "q":
            return f'"{text}"'
        if name == "code" and text[:1].isalnum() and _before(element)[-1:].isalpha():
            # run`top`: the box around code keeps the two apart for the eye.
            return f" {text}"
        return text

    def _link(self, element: Element, text: str) -> str:
        href = (element.get("href") or "").strip()
        if href.lower().startswith("mailto:"):
            address = unquote(href[7:].split("?")[0])
            return text if not address or address.lower() in text.lower() else f"{text} <{address}>"
        if element.get("id") or element.get("name"):
            # A place that links lead to, such as a line of code.
            return text
        if not text.strip() and not len(element) and href:
            # [](#quota-limits) and [](quotas.md): the page's own tool would put the target's title here.
            return _slug_words(href)
        try:
            parts = urlsplit(href)
        except ValueError:
            return text
        if parts.scheme not in ("http", "https") or not text.strip() or len(href) > LONGEST_LINK:
            return text
        if parts.netloc.lower() == self.host or _same(href, text):
            return text
        return f"{text} <{href}>"

    def _footnote(self, element: Element) -> str | None:
        """What stands for a reference to a footnote; None where the element is no such reference."""
        if tag(element) != "a":
            return None
        href = element.get("href") or ""
        if not href.startswith("#") or not (
            {"footnote-ref", "footnote-reference", "citation-reference", "fn-ref"} & set(classes(element))
            or element.get("role") == "doc-noteref"
            or href[1:] in self.footnotes
        ):
            return None
        note = self.footnotes.get(href[1:])
        if note is None:
            return f"[{one_line(self.text(element)).strip('[]')}]"
        if href[1:] in self.placed:
            return ""
        self.placed.add(href[1:])
        return f" ({note.rstrip('.')})"


def _before(element: Element) -> str:
    previous = element.getprevious()
    if previous is not None:
        return previous.tail or ""
    parent = element.getparent()
    return (parent.text or "") if parent is not None else ""


def _same(href: str, text: str) -> bool:
    def bare(address: str) -> str:
        return re.sub(r"^https?://(?:www\.)?", "", address.strip().lower()).rstrip("/")

    return bare(href) in text.strip().lower() or bare(text) == bare(href)


def _slug_words(href: str) -> str:
    if re.match(r"[a-z][a-z0-9+.-]*:", href, re.IGNORECASE):
        return href
    path, _, fragment = href.partition("#")
    last = fragment or path.rstrip("/").rpartition("/")[2]
    return re.sub(r"[-_]+", " ", re.sub(r"\.(?:md|rst|html?)$", "", unquote(last))).strip()
