"""Footnotes: taken from the page's end, to be put where the text refers to them."""

from __future__ import annotations

from hyce.content.inline import Inline
from hyce.content.text import one_line
from hyce.content.tree import Element, classes, remove, tag

LONGEST = 200
"""Characters of a footnote that is put into the running text; a longer one ends the section."""


def take_footnotes(content: Element) -> tuple[dict[str, str], dict[str, str]]:
    """({id: text} of the short footnotes, {number: text} of the long ones), removed from the tree."""
    short: dict[str, str] = {}
    long: dict[str, str] = {}
    inline = Inline()
    for element in [e for e in content.iter() if _is_footnote(e)]:
        ident = element.get("id") or ""
        for label in [e for e in element if tag(e) == "span" and "label" in classes(e)]:
            remove(label)
        for back in [e for e in element.iter() if _is_back_link(e)]:
            remove(back)
        text = one_line(inline.text(element))
        if not text or not ident:
            continue
        if len(text) <= LONGEST:
            short[ident] = text
        else:
            long[_number(content, ident, ident.rpartition(":")[2])] = text
        remove(element)
    for box in [
        e for e in content.iter() if _is_footnote_box(e) and not "".join(str(t) for t in e.itertext()).strip()
    ]:
        remove(box)
    return short, long


def _is_footnote(element: Element) -> bool:
    if (
        element.get("role") in ("doc-footnote", "doc-endnote", "doc-biblioentry")
        and tag(element) != "section"
    ):
        return True
    if tag(element) != "li":
        return False
    box = element.getparent()
    if box is not None and "references" in classes(box):
        return True
    holder = box.getparent() if box is not None else None
    return holder is not None and bool({"footnote", "footnotes"} & set(classes(holder)))


def _is_footnote_box(element: Element) -> bool:
    return bool({"footnote", "footnotes", "footnote-list", "citation-list"} & set(classes(element)))


def _is_back_link(element: Element) -> bool:
    return tag(element) == "a" and (
        element.get("role") == "doc-backlink" or "footnote-backref" in classes(element)
    )


def _number(content: Element, ident: str, fallback: str) -> str:
    for link in content.iter("a"):
        if link.get("href") == f"#{ident}":
            return one_line("".join(str(t) for t in link.itertext())).strip("[]") or fallback
    return fallback
