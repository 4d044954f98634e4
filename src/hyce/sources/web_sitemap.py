"""A site's sitemaps -> addresses of its pages."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lxml import etree

from hyce.sources.web_address import Address, Scope, joined
from hyce.sources.web_fetch import Limits, Reply

FILES = 50
"""Sitemaps read, at most."""
_BYTES = 20_000_000

Get = Callable[[Address, Limits], Reply]


@dataclass(frozen=True, slots=True)
class Sitemaps:
    """What the sitemaps led to."""

    pages: tuple[Address, ...]
    """Pages of the site, in their order."""
    found: bool
    """Whether there was any."""


def fetch(
    scope: Scope, listed: Sequence[str], most: int, get: Get, allows: Callable[[Address], bool]
) -> Sitemaps:
    """The pages that sitemaps name: those of robots.txt, of the site's folder, and of its host.

    listed: addresses in robots.txt. most: pages taken, at most. Only the site's own host is asked.
    """
    wanted = [joined(scope.home, text) for text in (*listed, f"{scope.base}sitemap.xml", "/sitemap.xml")]
    queue = [address for address in wanted if address is not None]
    asked: set[Address] = set()
    pages: dict[Address, None] = {}
    found = False
    while queue and len(asked) < FILES and len(pages) < most:
        address = queue.pop(0)
        if address in asked or address.origin != scope.home.origin or not allows(address):
            continue
        asked.add(address)
        reply = get(address, Limits(_BYTES))
        if reply.status // 100 == 3 and "location" in reply.headers:
            target = joined(address, reply.headers["location"])
            queue[:0] = [target] if target is not None else []
        if reply.status != 200 or reply.unwanted:
            continue
        for kind, text in _entries(_unpacked(reply.body)):
            entry = joined(address, text)
            if entry is None:
                continue
            found = True
            if kind == "sitemap":
                if entry.origin == scope.home.origin and len(queue) < FILES:
                    queue.append(entry)
            elif scope.holds(entry) and len(pages) < most:
                pages[entry] = None
    return Sitemaps(tuple(pages), found)


def _unpacked(data: bytes) -> bytes:
    """What a .gz holds, as far as is allowed for."""
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        with gzip.open(io.BytesIO(data)) as file:
            return file.read(_BYTES)
    except (OSError, EOFError, zlib.error):
        return b""


def _entries(data: bytes) -> Iterator[tuple[str, str]]:
    """("url" or "sitemap", address) of each entry; a broken file gives those before the break."""
    events = etree.iterparse(
        io.BytesIO(data),
        events=("end",),
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        for _, element in events:
            parent = element.getparent()
            if parent is None:
                continue
            if etree.QName(element).localname == "loc" and element.text:
                yield etree.QName(parent).localname, element.text
            # What has been read goes, whatever its name: an empty element takes thirty times its bytes.
            element.clear()
            while element.getprevious() is not None:
                del parent[0]
    except etree.XMLSyntaxError:
        return
