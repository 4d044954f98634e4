"""The pages of a site one after the other: what each reply means for the index.

Replies are judged in the order in which pages were found, whichever came first, so that two runs over the
same site give the same.
"""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field

from hyce.errors import SourceError
from hyce.records import Document, Failure, Note, Unchanged
from hyce.sources.files import SHORTEST_TWIN
from hyce.sources.web_address import Address, joined
from hyce.sources.web_fetch import Reply
from hyce.sources.web_frontier import Frontier
from hyce.sources.web_page import Memo, Seen, date, kind, look
from hyce.sources.web_start import HOPS

Item = Document | Failure | Unchanged | Note
Ask = Callable[[Address, Mapping[str, str]], "Future[Reply]"]

DOWN = 10
"""So many pages in a row that fail by the site's own fault mean that it is down."""
CROWD = 3
"""So many pages of the index that lead to one other for a while, or have become the same: a login, or a word
of maintenance."""


@dataclass(slots=True)
class Crawl:
    """One run over a site. `memo` is only asked from the thread that reads the items."""

    source: str
    frontier: Frontier
    known: frozenset[str]
    """Paths of the pages that the index has."""
    memo: Callable[[str], Memo]
    """What was remembered of a page; an empty memo where it was read at another address."""
    trusted: Callable[[str], bool]
    """Whether a page that isn't there is gone, rather than left behind by a site that has moved."""
    kept: set[str] = field(default_factory=set)
    """Pages that the index holds after this run."""
    settled: set[str] = field(default_factory=set)
    """Pages that were looked at."""
    leads: dict[str, Address] = field(default_factory=dict)
    """Where the pages lead that only redirect."""
    passing: set[str] = field(default_factory=set)
    """Those of the index among them that lead there for a while (302, 303, 307)."""
    contents: dict[str, str] = field(default_factory=dict)
    """Digest of each page's content, and the first page that has it, by the other one."""
    owners: dict[str, str] = field(default_factory=dict)
    waiting: dict[str, list[Address]] = field(default_factory=dict)
    """Pages that are the same as one of the index that wasn't looked at yet, by its path."""
    alike: dict[str, list[str]] = field(default_factory=dict)
    """Pages of the index that have become the same as another one, by its path."""
    lost: set[str] = field(default_factory=set)
    """Pages that could not be read."""
    trouble: int = 0
    """Pages in a row that failed by the site's fault."""
    last: str = ""
    """Why the last of them did."""

    def remember(self) -> None:
        """Know the contents of the pages that the index has."""
        for path in sorted(self.known):
            page = self.frontier.scope.address(path)
            # One that is left out by now won't be looked at: no other may be left out for its sake.
            if page is not None and self.frontier.reason(page) is None:
                self._own(path, self.memo(path).content)

    def items(self, ask: Ask, at_once: int) -> Iterator[Item]:
        """Every page that the frontier holds, or comes to hold, then what the index has beyond it."""
        yield from self._drain(ask, at_once)
        for path in sorted(self.known - self.settled):
            address = self.frontier.scope.address(path)
            if address is not None:
                self.frontier.add(address)
        yield from self._drain(ask, at_once)
        yield from self._rest()

    def _drain(self, ask: Ask, at_once: int) -> Iterator[Item]:
        pending: deque[tuple[Address, int, Future[Reply]]] = deque()
        queue = self.frontier.queue
        while pending or (queue and self.trouble < DOWN):
            while queue and len(pending) < 2 * at_once and self.trouble < DOWN:
                address, hops = queue.popleft()
                path = self.frontier.scope.path(address)
                asked = self.memo(path).questions if path in self.known else {}
                pending.append((address, hops, ask(address, asked)))
            address, hops, future = pending.popleft()
            try:
                reply = future.result()
            except SourceError as error:
                reply = Reply(address, problem=str(error))
            yield from self.take(reply, hops)

    # -- one reply ---------------------------------------------------------------------------------------

    def take(self, reply: Reply, hops: int = 0) -> Iterator[Item]:
        """What a reply means for the index."""
        path = self.frontier.scope.path(reply.address)
        self.settled.add(path)
        self.trouble = self.trouble + 1 if reply.down else 0
        self.last = reply.problem if reply.down else self.last
        if path in self.kept:
            return  # another page has named it as its canonical address
        if reply.status == 200 and not reply.problem:
            yield from self._page(path, reply)
        elif reply.status == 304 and path in self.known:
            yield from self._as_before(path)
        elif reply.status in (301, 302, 303, 307, 308):
            yield from self._redirect(path, reply, hops)
        elif reply.status in (404, 410) and (path not in self.known or self.trusted(path)):
            yield self._gone(path, f"isn't there (the server answers {reply.status})")
        elif reply.status in (404, 410):
            yield self._failed(
                path, "isn't there since the site has moved; if it has for good, remove the source and add it"
            )
        elif reply.unwanted:
            yield self._gone(path, reply.problem)
        else:
            yield self._failed(path, reply.problem or f"the server answers {reply.status}")

    def _page(self, path: str, reply: Reply) -> Iterator[Item]:
        try:
            seen = look(reply)
        except SourceError as error:
            yield self._failed(path, str(error).removeprefix(f"{reply.address.path}: "))
            return
        if seen is None:
            yield self._failed(path, "is no text, whatever its Content-Type says")
            return
        if seen.noindex or seen.empty:  # whatever it counts as: that page may be found, and have text
            gone = seen.noindex or path not in self.known
            why = "asks not to be found" if seen.noindex else "has no text to read"
            yield (self._gone if gone else self._failed)(path, why)
            self._follow(seen)
            return
        address, own = reply.address, seen.canonical
        aside = own is not None and own != address and self.frontier.reason(own) is None
        if aside and own is not None:
            other = self.frontier.scope.path(own)
            yield self._gone(path, f"counts as {own}")
            if other in self.kept:
                self._follow(seen)
                return
            address, path = own, other
            self.settled.add(path)
        owner = self.owners.get(seen.content, path) if len(reply.body) >= SHORTEST_TWIN else path
        if owner != path:
            was = self.memo(path).content if path in self.known else ""
            self._own(path, "")
            if owner not in self.kept:
                self.waiting.setdefault(owner, []).append(reply.address)
            elif was not in ("", seen.content):
                self.alike.setdefault(owner, []).append(path)
            else:
                yield Failure(path, f"the same as {owner}, which is indexed", skipped=True)
            return  # its links, where they aren't the other's, are the same page's once more
        self._own(path, seen.content)
        self.kept.add(path)
        yield self._document(path, address, reply, seen, aside)
        self._follow(seen)

    def _document(self, path: str, address: Address, reply: Reply, seen: Seen, aside: bool) -> Document:
        scope = self.frontier.scope
        memo = Memo(
            scope.base,
            seen.content,
            # They belong to the address that was read.
            "" if aside or seen.dropped else reply.headers.get("etag", ""),
            "" if aside or seen.dropped else reply.headers.get("last-modified", ""),
            tuple(scope.path(link) for link in seen.links if scope.holds(link)),
        )
        told = "\0".join((seen.content, seen.media_type, str(address)))
        return Document(
            self.source,
            path,
            seen.media_type,
            seen.text,
            hashlib.sha256(told.encode()).hexdigest(),
            url=str(address),
            date=date(reply.headers),
            memo=memo.write(),
        )

    def _follow(self, seen: Seen) -> None:
        self.frontier.dropped += seen.dropped
        for link in seen.links:
            self.frontier.add(link)

    def _as_before(self, path: str) -> Iterator[Item]:
        memo = self.memo(path)
        self.kept.add(path)
        yield Unchanged(path)
        for link in memo.links:
            address = self.frontier.scope.address(link)
            if address is not None:
                self.frontier.add(address)

    def _redirect(self, path: str, reply: Reply, hops: int) -> Iterator[Item]:
        target = joined(reply.address, reply.headers.get("location", ""))
        if target is None or hops >= HOPS:
            yield self._failed(
                path, f"redirects more than {HOPS} times" if target else "redirects to no address"
            )
        elif self.frontier.scope.holds(target):
            if self.frontier.add(target, hops + 1) or self.frontier.reason(target) is not None:
                self.leads[path] = target
                if path in self.known and reply.status not in (301, 308):
                    self.passing.add(path)
                self._own(path, "")
            else:
                yield self._failed(path, f"leads to {target}, which is beyond the limit of web.pages")
        elif path in self.known:
            yield self._failed(path, f"leads out of the site, to {target}")
        else:
            yield self._gone(path, f"leads out of the site, to {target}")

    # -- what follows from it ----------------------------------------------------------------------------

    def _gone(self, path: str, reason: str) -> Failure:
        """The page isn't yielded as one: the index drops what it has of it."""
        self._own(path, "")
        return Failure(path, reason, skipped=True)

    def _failed(self, path: str, reason: str) -> Failure:
        """The index keeps what it has of the page."""
        (self.kept if path in self.known else self.lost).add(path)
        return Failure(path, reason, alone=True)

    def _own(self, path: str, content: str) -> None:
        """The page's content is this one now; empty where the page is no more."""
        before = self.contents.pop(path, "")
        if content:
            self.contents[path] = content
            self.owners.setdefault(content, path)
        if before != content:
            if self.owners.get(before) == path:
                del self.owners[before]
            for address in self.waiting.pop(path, []):
                self.frontier.again(address)

    def _rest(self) -> Iterator[Item]:
        """What is to be said when all was looked at: pages that only lead to others, and what wasn't read."""
        scope = self.frontier.scope
        crowds = Counter(self._end(path)[0] for path in self.passing)
        for path in self.leads:
            yield from self._led(path, crowds)
        for owner, paths in self.alike.items():
            for path in paths:
                if len(paths) >= CROWD:
                    why = f"has become the same as {owner}, as {len(paths) - 1} others have"
                    yield self._failed(path, f"{why}; if that is so for good, remove the source and add it")
                else:
                    yield Failure(path, f"the same as {owner}, which is indexed", skipped=True)
        for owner, addresses in self.waiting.items():
            for address in addresses:
                yield Failure(scope.path(address), f"the same as {owner}, which is indexed", skipped=True)
        unseen = sorted(self.known - self.settled)
        missed = 0
        for path in unseen:
            page = scope.address(path)
            if page is None or self.frontier.reason(page) is not None:
                continue  # a new setting or robots.txt leaves it out
            missed += 1
            self.kept.add(path)
            yield Unchanged(path)
        rest = max(len(self.frontier.queue), missed)
        if self.trouble >= DOWN:
            yield Failure(
                self.source,
                f"has stopped answering ({self.last}); {rest} pages or more were not looked at, and stay as "
                "they are; try again later",
                alone=True,
            )
        more = len(self.frontier.beyond) + self.frontier.dropped
        if more:
            yield Note(
                self.source,
                f"has {more} links beyond the {self.frontier.web.pages} pages that web.pages allows; raise "
                "it, or leave parts out with web.exclude",
            )
        yield from self.frontier.listed()

    def _led(self, path: str, crowds: Mapping[str, int]) -> Iterator[Item]:
        """A page that leads to another one: left out where that is in the index; kept where that failed, or
        where a crowd leads there for a while."""
        if path in self.kept:
            return
        place, target, circle = self._end(path)
        ends = place in self.kept or (place in self.settled and place not in self.lost)
        if circle:
            yield self._failed(path, "redirects in a circle")
        elif path in self.known and not ends:
            yield self._failed(path, f"leads to {target}, which could not be read")
        elif path in self.passing and crowds[place] >= CROWD:
            yield self._failed(path, f"leads to {target} for a while, as {crowds[place] - 1} others do")
        else:
            yield Failure(path, f"leads to {target}", skipped=True)

    def _end(self, path: str) -> tuple[str, Address, bool]:
        """(path of the page that a page leads to in the end, its address, whether it is a circle instead)."""
        passed, place, target = {path}, path, self.leads[path]
        for _ in range(HOPS + 1):
            target = self.leads[place]
            place = self.frontier.scope.path(target)
            if place in self.kept or place not in self.leads or place in passed:
                break
            passed.add(place)
        return place, target, place in passed


def unwanted(address: Address, headers: Mapping[str, str]) -> str:
    """Why a page with these headers is not read; empty where it is."""
    if kind(address, headers):
        return ""
    said = headers.get("content-type", "").partition(";")[0].strip()[:80]
    return f"is {said}, which hyce doesn't read"
