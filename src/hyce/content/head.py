"""What a web page's head tells: title, date, language, whether it leads elsewhere."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hyce.content.text import one_line
from hyce.content.tree import Element, classes, tag
from hyce.markup.front import date_in, iso_date
from hyce.markup.words import words

_DATES = (
    "dcterms.modified", "article:modified_time", "og:updated_time", "last-modified", "revised",
    "date.modified", "revision_date", "date", "dc.date", "dcterms.date", "article:published_time",
)  # fmt: skip
_DATED = words("page-metadata lastupdated last-updated theme-last-updated")


@dataclass(frozen=True, slots=True)
class Head:
    title: str = ""
    date: str | None = None
    redirect: bool = False
    hidden: str = ""
    language: str = ""


def read(tree: Element) -> Head:
    """The head of a page; empty for a fragment. To be read before the tree is cleaned."""
    metas = {(e.get("name") or e.get("property") or e.get("http-equiv") or "").lower(): e.get("content") or ""
             for e in tree.iter("meta")}  # fmt: skip
    titles = [one_line("".join(str(t) for t in e.itertext())) for e in tree.iter("title") if _in_head(e)]
    date = next((d for d in (iso_date(metas.get(name)) for name in _DATES) if d), None)
    if date is None:
        times = [iso_date(e.get("datetime")) for e in tree.iter("time")]
        notes = [date_in(" ".join(str(t) for t in e.itertext())) for e in tree.iter() if _is_dated(e)]
        date = max((t for t in (*times, *notes) if t), default=None)
    return Head(
        title=_page_title(titles[0], tree) if titles else "",
        date=date,
        redirect="refresh" in metas and "url" in metas["refresh"].lower(),
        hidden="kept out of search" if "nosearch" in metas else "",
        language=str(tree.get("lang") or "") if tag(tree) == "html" else "",
    )


def names_page(tree: Element, content: Element) -> bool:
    """Whether the page's heading stands above its content: an h1 that <title> repeats."""
    inside = set(content.iter("h1"))
    titles = " ".join("".join(str(t) for t in e.itertext()) for e in tree.iter("title"))
    texts = (one_line("".join(str(t) for t in e.itertext())) for e in tree.iter("h1") if e not in inside)
    return any(text and one_line(titles).startswith(text) for text in texts)


def _in_head(element: Element) -> bool:
    parent = element.getparent()
    return parent is None or tag(parent) in ("head", "html", "body")


def _is_dated(element: Element) -> bool:
    """Whether it is the line in which a site builder says when the page was changed."""
    return any(name in _DATED or name.startswith("git-revision-date") for name in classes(element))


def _page_title(text: str, tree: Element) -> str:
    """`Quotas` of `Quotas - Kestrel User Guide`: the site's name comes last, in Confluence first."""
    if any(e.get("id") == "title-text" for e in tree.iter("span")):
        return text.partition(" : ")[2] or text
    parts = re.split(r"\s+[\u2014\u2013|\u00b7\u00bb-]\s+", text)
    return parts[0] if parts else text
