"""Where a site is: its start page, wherever that has moved to, and what may be read there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hyce.errors import SourceError
from hyce.sources import web_robots
from hyce.sources.web_address import PORTS, Address, Scope, joined, scope
from hyce.sources.web_fetch import Limits, Line, Reply
from hyce.sources.web_reach import Reach
from hyce.sources.web_robots import Robots

HOPS = 5
"""Redirects followed from one page, at most."""


@dataclass(frozen=True, slots=True)
class Site:
    """A site as its start page has it."""

    scope: Scope
    robots: Robots
    reply: Reply
    """Of the start page."""
    for_good: bool
    """Whether all redirects on the way said that they are permanent; so too where there was none."""


def find(
    start: Address,
    reach: Reach,
    limits: Limits,
    line_to: Callable[[Address], Line],
    questions: Callable[[Scope, Address], Mapping[str, str]],
) -> Site:
    """The site that the address leads to.

    questions: headers to ask for a page with, when it was read before. Raises SourceError where robots.txt
    forbids the site, can't be had, or the way leads in a circle or to a machine that may not be read.
    """
    at, address, for_good = scope(start), start, True
    lines: dict[str, Line] = {}
    rules: dict[str, Robots] = {}
    try:
        for _ in range(HOPS + 1):
            if address.origin not in lines:
                lines[address.origin] = line_to(address)
            line = lines[address.origin]
            try:
                robots = rules.get(address.origin) or web_robots.fetch(address, line.get)
                rules[address.origin] = robots
                if not robots.allows(address):
                    raise SourceError(
                        f"{address}: the site's robots.txt asks hyce not to read it; ask its owner to allow "
                        "the agent hyce, or index the files that the site is made from"
                    )
                reply = line.get(address, limits, questions(at, address))
            except SourceError as error:
                raise (
                    error if address == start else SourceError(f"{start} leads elsewhere: {error}")
                ) from error
            target = joined(address, reply.headers["location"]) if "location" in reply.headers else None
            if reply.status not in (301, 302, 303, 307, 308) or target is None:
                return Site(at, robots, reply, for_good)
            _check_move(start, address, target, reach)
            for_good = for_good and reply.status in (301, 308)
            at, address = at.moved(target), target
    finally:
        for line in lines.values():
            line.close()
    raise SourceError(f"{start}: redirects in a circle, or more than {HOPS} times; check the address")


def _check_move(start: Address, old: Address, new: Address, reach: Reach) -> None:
    """Raise SourceError where a start page may not lead: within the network around hyce, to another
    machine or service. That other machines are in no such network is checked when they are connected to."""
    try:
        reach.check_name(new.host.strip("[]"))
        defaults = (old.port, new.port) == (PORTS[old.scheme], PORTS[new.scheme])
        if new.host == old.host and reach.internal and new.port != old.port and not defaults:
            raise SourceError(f"{new.host}: another service of a machine in this network")
    except SourceError as error:
        raise SourceError(
            f"{start} leads to {new.origin}, which was not asked: {error}; if that is the site, name it "
            "as the source"
        ) from error
