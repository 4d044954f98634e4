"""What a fetched page tells: its text, its links, whether it may be kept, and what it is known by."""

from __future__ import annotations

import email.utils
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath

from lxml import etree

from hyce.content import head
from hyce.content.tree import Element, clean, load
from hyce.content.widgets import label_panels
from hyce.sources.encoding import decode
from hyce.sources.web_address import LONGEST, Address, joined
from hyce.sources.web_fetch import AGENT, Reply

KINDS = {
    "text/html": "text/html",
    "application/xhtml+xml": "text/html",
    "text/markdown": "text/markdown",
    "text/x-markdown": "text/markdown",
    "text/plain": "text/plain",
    "application/pdf": "application/pdf",
}
"""Media types that are read, and the name that each has in hyce."""
_SUFFIXES = {
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".txt": "text/plain",
    ".pdf": "application/pdf",
}
MOST_LINKS = 20_000
"""Links taken of one page; the rest is counted."""
MEMO = 200_000
"""Characters in a memo. A page with more links is read anew each time."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A page as it was looked at."""

    media_type: str
    text: str
    content: str
    """sha256 (hex) of what a reader sees, whatever stands around it and at which address."""
    links: tuple[Address, ...] = ()
    dropped: int = 0
    """Links beyond MOST_LINKS."""
    canonical: Address | None = None
    noindex: bool = False
    empty: bool = False
    """Whether a reader sees no text at all, as where a program would have to run first."""


@dataclass(frozen=True, slots=True)
class Memo:
    """What is remembered of a page until its next visit, as Document.memo."""

    base: str = ""
    """Address of the site's folder when the page was read."""
    content: str = ""
    etag: str = ""
    modified: str = ""
    links: tuple[str, ...] = ()
    """Paths within the site."""

    def write(self) -> str:
        """As text; without what would let the next run not read the page, where it is too long."""
        text = json.dumps(asdict(self), ensure_ascii=True, separators=(",", ":"))
        return text if len(text) <= MEMO else Memo(self.base, self.content).write()

    @property
    def questions(self) -> dict[str, str]:
        """The headers that ask whether the page has changed."""
        found = {"If-None-Match": self.etag, "If-Modified-Since": self.modified}
        return {name: value for name, value in found.items() if value}


def read_memo(text: str) -> Memo:
    """The memo that `write` gave; an empty one for anything else."""
    try:
        found = json.loads(text)
        base, content, etag, modified = (str(found[name]) for name in ("base", "content", "etag", "modified"))
        return Memo(base, content, etag, modified, tuple(str(link) for link in found["links"]))
    except (ValueError, KeyError, TypeError):
        return Memo()


def kind(address: Address, headers: Mapping[str, str]) -> str:
    """The page's media type in hyce; empty for what hyce doesn't read."""
    said = headers.get("content-type", "").partition(";")[0].strip().lower()
    suffix = PurePosixPath(address.path).suffix.lower()
    if said in ("", "text/plain"):
        return _SUFFIXES.get(suffix, "text/plain" if said else "text/html")
    return KINDS.get(said, "")


def look(reply: Reply) -> Seen | None:
    """What the page tells; None for what is no text although its media type says so."""
    media_type = kind(reply.address, reply.headers)
    refused, blind = _rules(reply.headers.get("x-robots-tag", ""))
    if media_type == "application/pdf":
        from hyce.sources.pdf import to_html

        shown = to_html(reply.body, path=reply.address.path)
        # Not of its bytes: a file that is made anew each night holds its hour.
        content = hashlib.sha256(shown.encode()).hexdigest()
        return Seen(media_type, shown, content, noindex=refused)
    text = _text(reply, html=media_type == "text/html")
    if text is None:
        return None
    if media_type != "text/html":
        content = hashlib.sha256(text.encode()).hexdigest()
        return Seen(media_type, text, content, noindex=refused, empty=not text.strip())
    tree = load(text)
    for meta in tree.iter("meta"):
        if (meta.get("name") or "").lower() in ("robots", AGENT):
            hidden, dead_end = _rules(meta.get("content") or "")
            refused, blind = refused or hidden, blind or dead_end
    links, dropped, canonical = _links(tree, reply.address, blind)
    content, empty = _content(tree, reply.address)
    return Seen(media_type, text, content, links, dropped, canonical, refused, empty)


def date(headers: Mapping[str, str]) -> str | None:
    """The day of the last change (YYYY-MM-DD) by Last-Modified; None where that is no more than the moment
    of the answer, as of pages that a program makes."""
    changed, now = (_moment(headers.get(name, "")) for name in ("last-modified", "date"))
    now = now or datetime.now(UTC)
    if changed is None or changed > now - timedelta(days=1) or changed.year < 1991:
        return None
    return changed.date().isoformat()


def _moment(text: str) -> datetime | None:
    try:
        found = email.utils.parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _text(reply: Reply, *, html: bool) -> str | None:
    said = re.search(
        r"charset\s*=\s*[\"']?([\w:.-]{2,40})", reply.headers.get("content-type", ""), re.IGNORECASE
    )
    declared = said[1] if said else ""
    if re.fullmatch(r"iso-8859-1|latin-?1|windows-1252|(?:us-)?ascii", declared, re.IGNORECASE):
        # Servers say so of all pages alike. What reads as UTF-8 is UTF-8: that happens by no accident.
        try:
            reply.body.decode("utf-8")
            declared = "utf-8"
        except UnicodeDecodeError:
            pass
    return decode(reply.body, html=html, declared=declared)


def _rules(text: str) -> tuple[bool, bool]:
    """(noindex, nofollow) in a robots meta element or an X-Robots-Tag, of rules for everybody or for hyce."""
    found: set[str] = set()
    robot = ""
    for part in text.lower().split(","):
        name, colon, rest = part.partition(":")
        if colon and not name.strip().startswith(("max-", "unavailable_after")):
            robot, part = name.strip(), rest  # noqa: PLW2901 - what follows a robot's name is for it alone
        if robot in ("", AGENT):
            found.add(part.strip())
    return bool(found & {"noindex", "none"}), bool(found & {"nofollow", "none"})


def _links(tree: Element, address: Address, blind: bool) -> tuple[tuple[Address, ...], int, Address | None]:
    """(where the page leads, how many more links there are, the address that it names as its own)."""
    base = next((joined(address, e.get("href") or "") for e in tree.iter("base") if e.get("href")), None)
    base = base or address
    canonical = None
    links: dict[Address, None] = {}
    dropped = 0
    for element in tree.iter("a", "area", "link", "meta"):
        href, rel = element.get("href") or "", (element.get("rel") or "").lower().split()
        if element.tag == "meta":
            found = re.search(r"url\s*=\s*['\"]?([^'\"]+)", element.get("content") or "", re.IGNORECASE)
            refreshes = (element.get("http-equiv") or "").lower() == "refresh"
            href = found[1] if found and refreshes else ""
        elif element.tag == "link":
            if "canonical" in rel and canonical is None:
                canonical = joined(base, href)
            continue
        if blind or "nofollow" in rel or not href or len(href) > LONGEST:
            continue
        if len(links) == MOST_LINKS:
            dropped += 1
            continue
        target = joined(base, href)
        if target is not None:
            links[target] = None
    return tuple(links), dropped, canonical


def _content(tree: Element, address: Address) -> tuple[str, bool]:
    """(sha256 of the page's own content, whether that is empty).

    A token or a menu around it that changes makes no new page, nor do links from another folder.
    """
    facts = head.read(tree)
    label_panels(tree)
    content = clean(tree, whole_page=True)
    for element in content.iter("a", "img"):
        name = "href" if element.tag == "a" else "src"
        link = element.get(name) or "#"
        if not link.startswith("#"):
            element.set(name, str(joined(address, link)))
    shown = etree.tostring(content, encoding="unicode", with_tail=False)
    told = (facts.title, facts.date or "", facts.hidden, str(facts.redirect), shown)
    empty = not facts.redirect and not "".join(str(text) for text in content.itertext()).strip()
    return hashlib.sha256("\0".join(told).encode("utf-8", "replace")).hexdigest(), empty
