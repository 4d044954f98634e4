"""Documentation from a web site -> Documents, page by page.

What was indexed stays unless the site says that it is gone: see web_crawl.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from hyce.config import Config
from hyce.errors import SourceError
from hyce.records import Note
from hyce.sources import web_address, web_sitemap, web_start
from hyce.sources.web_address import Address, Scope
from hyce.sources.web_crawl import Crawl, Item, unwanted
from hyce.sources.web_crew import Crew
from hyce.sources.web_fetch import Limits, Line, Pace, Sleep
from hyce.sources.web_frontier import Frontier
from hyce.sources.web_page import Memo, read_memo
from hyce.sources.web_reach import Reach
from hyce.sources.web_robots import LONGEST_PAUSE
from hyce.sources.web_start import Site


class Known(Protocol):
    """What the index has of the site already; see sources/read.py."""

    def paths(self, source: str) -> Sequence[str]: ...

    def memo(self, source: str, path: str) -> str: ...


def read(source: str, config: Config, known: Known, sleep: Sleep | None = None) -> Iterator[Item]:
    """Every page below the folder of an address: those that sitemaps name, that pages link to, and that the
    index has.

    source: the address; Document.source is its one form. sleep: pauses in place of waiting (for tests).
    A page that was read before and hasn't changed is Unchanged. Raises SourceError, before the first page,
    where the site can't be read: robots.txt, a redirect, or neither its start page nor a sitemap.
    """
    start = web_address.start(source)
    reach, pace = Reach(start.host.strip("[]")), Pace(1 / config.web.rate, sleep)

    def line_to(address: Address) -> Line:
        return Line(address, config.web, reach, pace)

    key = str(start)
    paths = frozenset(known.paths(key))
    limits = Limits(int(config.index.max_page_mb * 1e6), unwanted)

    def questions(scope: Scope, address: Address) -> Mapping[str, str]:
        path = scope.path(address)
        memo = read_memo(known.memo(key, path)) if path in paths else Memo()
        return memo.questions if memo.base == scope.base else {}

    site = web_start.find(start, reach, limits, line_to, questions)
    crawl = _crawl(key, site, config, known, paths)
    pace.interval = max(pace.interval, min(site.robots.pause, LONGEST_PAUSE))
    if site.robots.pause > LONGEST_PAUSE:
        asked = f"asks for {site.robots.pause:g} s between two requests; hyce waits {LONGEST_PAUSE:g} s"
        yield Note("robots.txt", asked)
    lines = [line_to(site.scope.home) for _ in range(config.web.at_once)]
    crew = Crew(lines, limits, pace)
    try:
        _add_sitemaps(site, crawl.frontier, lines[0], key)
        crawl.remember()
        yield from crawl.take(site.reply)
        yield from crawl.items(crew.ask, config.web.at_once)
    finally:
        crew.close()


def _crawl(key: str, site: Site, config: Config, known: Known, paths: frozenset[str]) -> Crawl:
    scope = site.scope

    def memo(path: str) -> Memo:
        found = read_memo(known.memo(key, path))
        return found if found.base == scope.base else Memo(content=found.content)

    def trusted(path: str) -> bool:
        return site.for_good or read_memo(known.memo(key, path)).base in ("", scope.base)

    frontier = Frontier(scope, config.web, site.robots)
    frontier.taken.add(site.reply.address)
    return Crawl(key, frontier, paths, memo, trusted)


def _add_sitemaps(site: Site, frontier: Frontier, line: Line, key: str) -> None:
    """Take the pages of the sitemaps. Raises SourceError where there are none and no start page either."""
    found = web_sitemap.fetch(
        site.scope, site.robots.sitemaps, frontier.web.pages, line.get, site.robots.allows
    )
    for address in found.pages:
        frontier.add(address)
    reply = site.reply
    if (reply.status not in (200, 304) or reply.problem) and not found.pages:
        why = reply.problem or f"the server answers {reply.status}"
        raise SourceError(
            f"{reply.address}: {why}, and no sitemap was found; nothing was changed; check the address, or "
            f"try again later (`hyce index --remove {key}` forgets it)"
        )
