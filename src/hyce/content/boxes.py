"""Labelled boxes: tabs, admonitions and collapsed parts, in the markup of the usual site builders."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hyce.content.inline import Inline
from hyce.content.text import one_line, visible
from hyce.content.tree import Element, classes, tag
from hyce.markup.words import words

_TAB_SETS = words("tabbed-set sd-tab-set tab-set hyce-tabs")
_TAB_LABELS = words("sd-tab-label tab-label hyce-tab-label")
_ADMONITIONS = words(
    "admonition theme-admonition starlight-aside confluence-information-macro expand-container alert"
)
_TITLES = words("admonition-title hyce-title starlight-aside__title expand-control")
_WARNINGS = words("warning caution danger error important attention critical")
_PLAIN = words(
    "admonition docutils container dropdown sd-dropdown toggle details inline end left right alert "
    "collapsible"
)
_STYLE = re.compile(r"^(?:theme-admonition|starlight-aside-|confluence-information-macro|alert-?)-")
"""What stands before a box's kind in the names that themes give it."""


@dataclass(frozen=True, slots=True)
class Label:
    """What is written above a box."""

    text: str
    is_tab: bool = False
    is_note: bool = False
    colon: bool = False

    @property
    def line(self) -> str:
        if (
            self.text
            and (self.is_tab or self.is_note or self.colon)
            and self.text[-1] not in ".:?!\u2026"
            and ": " not in self.text
        ):
            return f"{self.text}:"
        return self.text


def heads(context: list[Label]) -> str:
    """The labels as lines, outermost first; tabs within tabs on one line: `Merlin > GPU:`."""
    lines: list[str] = []
    previous: Label | None = None
    for label in context:
        if not label.text:
            continue
        if label.is_tab and previous is not None and previous.is_tab:
            lines[-1] = f"{lines[-1].rstrip(':')} > {label.line}"
        else:
            lines.append(label.line)
        previous = label
    return "\n".join(lines)


def is_box(element: Element) -> bool:
    name, names = tag(element), set(classes(element))
    return bool(name == "details" or names & _TAB_SETS or _is_admonition(names))


def _is_admonition(names: set[str]) -> bool:
    return bool(_ADMONITIONS & names)


def parts(element: Element, inline: Inline) -> Iterator[tuple[Label, list[Element]]]:
    """(label, elements it stands above) for each tab, or for the one admonition."""
    if set(classes(element)) & _TAB_SETS:
        yield from _tabs(element, inline)
    else:
        yield _admonition(element, inline)


def _tabs(element: Element, inline: Inline) -> Iterator[tuple[Label, list[Element]]]:
    labels = [e for e in element if "tabbed-labels" in classes(e)]
    contents = [e for e in element if "tabbed-content" in classes(e)]
    if labels and contents:
        names = [e for e in labels[0].iter() if tag(e) == "label"]
        blocks = [e for e in contents[0] if "tabbed-block" in classes(e)]
        for i, block in enumerate(blocks):
            yield _tab(names[i] if i < len(names) else None, inline), [block]
        return
    label: Label = Label("", is_tab=True)
    for child in element:
        if tag(child) == "label" or _TAB_LABELS & set(classes(child)):
            label = _tab(child, inline)
        elif tag(child) != "input":
            yield label, [child]


def _tab(element: Element | None, inline: Inline) -> Label:
    text = one_line(visible(inline.text(element))) if element is not None else ""
    return Label(text, is_tab=True)


def _admonition(element: Element, inline: Inline) -> tuple[Label, list[Element]]:
    title = next((e for e in element if _is_title(e, element)), None)
    text = ""
    if title is not None:
        text = one_line(visible(inline.text(title)))
        # The text behind the title belongs to the box.
        tail, parent = title.tail, title.getparent()
        before = title.getprevious()
        if tail and before is not None:
            before.tail = (before.tail or "") + tail
        elif tail:
            element.text = (element.text or "") + tail
        if parent is not None:
            parent.remove(title)
    return Label(_named(_kind(element), text), is_note=True), [element]


def _is_title(element: Element, parent: Element) -> bool:
    names = classes(element)
    return bool(
        tag(element) == "summary"
        or _TITLES & set(names)
        or ("title" in names and "confluence-information-macro" in classes(parent))
        or any("admonitionHeading" in name for name in names)
    )


def _kind(element: Element) -> str:
    for name in classes(element):
        kind = _STYLE.sub("", name)
        if kind not in _PLAIN and not kind.startswith(
            ("admonition", "theme-", "sd-", "starlight", "alert", "is-", "md-", "confluence", "expand")
        ):
            return kind.lower()
    return ""


def _named(kind: str, title: str) -> str:
    """`Warning: Scratch is purged`; the kind alone or the title alone where one says the other."""
    words = kind.replace("-", " ").replace("_", " ")
    if not title:
        return words.capitalize() if kind in _WARNINGS else ""
    if title == words:
        return words.capitalize()
    if not words or title.lower().replace(" ", "").startswith(words.replace(" ", "")):
        return title
    return f"{words.capitalize()}: {title}"
