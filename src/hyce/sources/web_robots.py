"""What a site's robots.txt allows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from protego import Protego

from hyce.errors import SourceError
from hyce.sources.web_address import Address, joined
from hyce.sources.web_fetch import AGENT, Limits, Reply

LONGEST_PAUSE = 10.0
"""Seconds between two requests, at most, whatever the site asks for."""
_BYTES = 500_000
_HOPS = 5

Get = Callable[[Address, Limits], Reply]


@dataclass(frozen=True, slots=True)
class Robots:
    """A site's rules for hyce."""

    rules: Protego
    sitemaps: tuple[str, ...] = ()
    pause: float = 0.0
    """Seconds that it asks for between two requests."""

    def allows(self, address: Address) -> bool:
        return bool(self.rules.can_fetch(str(address), AGENT))


def fetch(site: Address, get: Get) -> Robots:
    """The rules of the site; where it has no robots.txt, all is allowed (RFC 9309).

    Raises SourceError when it can't be had: the site may not be read then.
    """
    address = Address(site.scheme, site.host, site.port, "/robots.txt")
    for _ in range(_HOPS):
        reply = get(address, Limits(_BYTES))
        target = joined(address, reply.headers["location"]) if "location" in reply.headers else None
        if reply.status // 100 != 3 or target is None or target.origin != site.origin:
            break
        address = target
    if reply.status == 0:
        raise SourceError(
            f"{address}: {reply.problem}; without it a site may not be read: try again later, "
            "or check the address and web.proxy"
        )
    if reply.status != 200:
        return Robots(Protego.parse(""))
    rules = Protego.parse(reply.body.decode("utf-8", "replace").removeprefix("\ufeff"))
    return Robots(rules, tuple(rules.sitemaps)[:20], float(rules.crawl_delay(AGENT) or 0.0))
