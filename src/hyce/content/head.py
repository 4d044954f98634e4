"""What a web page's head tells: title, date, whether it leads elsewhere."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hyce.content.text import one_line
from hyce.content.tree import Element, tag
from hyce.markup.front import iso_date

_DATES = (
    "dcterms.modified", "article:modified_time", "og:updated_time", "last-modified", "revised",
    "date.modified", "revision_date", "date", "dc.date", "dcterms.date", "article:published_time",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Head:
    title: str = ""
    date: str | None = None
    redirect: bool = False
    hidden: str = ""


def read(tree: Element) -> Head:
    """The head of a page; empty for a fragment. To be read before the tree is cleaned."""
    metas = {(e.get("name") or e.get("property") or e.get("http-equiv") or "").lower(): e.get("content") or ""
             for e in tree.iter("meta")}  # fmt: skip
    titles = [one_line("".join(str(t) for t in e.itertext())) for e in tree.iter("title") if _in_head(e)]
    date = next((d for d in (iso_date(metas.get(name)) for name in _DATES) if d), None)
    if date is None:
        times = [iso_date(e.get("datetime")) for e in tree.iter("time")]
        date = max((t for t in times if t), default=None)
    return Head(
        title=_page_title(titles[0]) if titles else "",
        date=date,
        redirect="refresh" in metas and "url" in metas["refresh"].lower(),
        hidden="kept out of search" if "nosearch" in metas else "",
    )


def _in_head(element: Element) -> bool:
    parent = element.getparent()
    return parent is None or tag(parent) in ("head", "html", "body")


def _page_title(text: str) -> str:
    """`Quotas` of `Quotas - Kestrel User Guide`: the site's name comes last."""
    parts = re.split(r"\s+[\u2014\u2013|\u00b7\u00bb-]\s+", text)
    return parts[0] if parts else text
