"""Which pages of a site are still to be read, each once, and which are left out and why."""

from __future__ import annotations

import fnmatch
import mimetypes
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from hyce.config import Web
from hyce.records import Failure
from hyce.sources.files import SKIPPED_FILES
from hyce.sources.web_address import DEEPEST, Address, Scope
from hyce.sources.web_robots import Robots

_BUILDERS = ("_sources", "_static", "_modules", "_images", "_downloads")
_NO_PAGES = ("image", "audio", "video", "font")
_FILES = (".zip", ".gz", ".tgz", ".bz2", ".xz", ".tar", ".7z", ".css", ".js", ".map", ".xml", ".json", ".whl")
_COUNTED = 100_000
"""Addresses beyond the limit that are told apart; more are only many."""
_TYPES = mimetypes.MimeTypes()


@dataclass(slots=True)
class _LeftOut:
    count: int = 0
    example: str = ""


@dataclass(slots=True)
class Frontier:
    """The pages to read, in the order in which they were found."""

    scope: Scope
    web: Web
    robots: Robots
    queue: deque[tuple[Address, int]] = field(default_factory=deque)
    """Each page with the number of redirects that led to it."""
    taken: set[Address] = field(default_factory=set)
    """What is, or was, in the queue."""
    beyond: set[int] = field(default_factory=set)
    """Hashes of the addresses that came after the limit."""
    dropped: int = 0
    """Links of pages that have too many."""
    left: dict[str, _LeftOut] = field(default_factory=dict)
    refused: set[Address] = field(default_factory=set)

    def add(self, address: Address, hops: int = 0) -> bool:
        """Whether the page will be read, or was; each is taken once, those that a redirect leads to first."""
        if address in self.taken:
            return True
        if address in self.refused:
            return False
        reason = self.reason(address)
        if reason is not None:
            if reason:
                self._leave_out(address, reason)
            return False
        if len(self.taken) >= self.web.pages:
            if len(self.beyond) < _COUNTED:
                self.beyond.add(hash(address))
            return False
        self.taken.add(address)
        if hops:
            self.queue.appendleft((address, hops))
        else:
            self.queue.append((address, 0))
        return True

    def again(self, address: Address) -> None:
        """Read a page once more."""
        self.queue.append((address, 0))

    def reason(self, address: Address) -> str | None:
        """Why the page is left out; empty for one of another site, None for one that isn't left out."""
        if not self.scope.holds(address):
            plain = Address(address.scheme, address.host, address.port, address.path)
            return "has a query" if address.query and self.scope.holds(plain) else ""
        folders = address.path.lower().split("/")[:-1]
        name = address.path.lower().rpartition("/")[2]
        kind = _TYPES.guess_type(name)[0] or ""
        if any(fnmatch.fnmatchcase(address.path, pattern) for pattern in self.web.exclude):
            return "is among those of web.exclude"
        if name in SKIPPED_FILES or any(folder in _BUILDERS for folder in folders):
            return "is a builder's own page"
        if kind.partition("/")[0] in _NO_PAGES or name.endswith(_FILES):
            return "is no page by its name"
        if len(folders) > DEEPEST:
            return f"lies more than {DEEPEST} folders deep"
        if not self.robots.allows(address):
            return "is what robots.txt asks not to read"
        return None

    def listed(self) -> Iterator[Failure]:
        """What was left out, a line for each reason."""
        for reason, left in self.left.items():
            more = f", and {left.count - 1} more" if left.count > 1 else ""
            yield Failure(left.example, f"{reason}{more}", skipped=True)

    def _leave_out(self, address: Address, reason: str) -> None:
        if len(self.refused) < _COUNTED:
            self.refused.add(address)
        left = self.left.setdefault(reason, _LeftOut())
        left.count += 1
        left.example = left.example or str(address)
