"""Addresses of pages: one form for each, and what lies within a site."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urljoin

from hyce.errors import SourceError

LONGEST = 2000
"""Characters; no page that a person links to has a longer address."""
DEEPEST = 20
"""Folders in an address; sites whose relative links lead ever deeper have more."""
PORTS = {"http": 80, "https": 443}
START, BARE = "/", "."
"""Paths of the start page within its site: with a slash at its end, and without."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_UNRESERVED = re.compile(r"%(2D|2E|3[0-9]|4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9AE])", re.IGNORECASE)
_BLANK = re.compile(r"[\t\n\r]")


@dataclass(frozen=True, slots=True)
class Address:
    """A page's address in its one form; str() writes it."""

    scheme: str
    host: str
    """In lower case and ASCII; an IPv6 address in brackets."""
    port: int
    path: str
    """Begins with a slash; without dot segments, doubled slashes and needless escapes."""
    query: str = ""

    def __str__(self) -> str:
        return self.origin + self.target

    @property
    def origin(self) -> str:
        port = "" if self.port == PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{self.host}{port}"

    @property
    def target(self) -> str:
        """Path and query."""
        return f"{self.path}?{self.query}" if self.query else self.path


def is_address(source: str) -> bool:
    """Whether a source is an address and no path."""
    return _SCHEME.match(source) is not None


def normal(text: str) -> Address | None:
    """The address in its one form, without its fragment; None for what isn't a page's on the web.

    A user name or password makes it none: they would be sent along, and shown.
    """
    from urllib3.exceptions import LocationParseError
    from urllib3.util import parse_url

    text = _BLANK.sub("", text.strip(" \f\t\n\r"))
    if len(text) > LONGEST or not _SCHEME.match(text):
        return None
    # A dot that is written as %2E is a dot for servers: decoded before dot segments are resolved.
    text = _UNRESERVED.sub(lambda found: chr(int(found[1], 16)), text)
    try:
        parts = parse_url(text)
    except (LocationParseError, ValueError):
        return None
    scheme, host = parts.scheme or "", (parts.host or "").rstrip(".")
    if scheme not in PORTS or not host or parts.auth is not None or "\\" in host:
        return None
    path = re.sub(r"/{2,}", "/", parts.path or "/")
    return Address(scheme, host, parts.port or PORTS[scheme], path, parts.query or "")


def joined(base: Address, href: str) -> Address | None:
    """Where a link on the page `base` leads; None where that isn't on the web."""
    try:
        return normal(urljoin(str(base), _BLANK.sub("", href.strip(" \f\t\n\r"))))
    except ValueError:
        return None


def start(source: str) -> Address:
    """The address of a source. Raises SourceError for one that hyce doesn't read."""
    address = normal(source)
    if address is None:
        shown = re.sub(r"//[^/@]*@", "//...@", source)[:120]
        raise SourceError(
            f"{shown}: not an address that hyce reads; write it as https://host/path, without user name "
            "and password"
        )
    return address


@dataclass(frozen=True, slots=True)
class Scope:
    """What belongs to a site: the pages below the folder of its start page."""

    home: Address
    """The start page."""
    folder: str
    """Path of the folder, without the slash at its end."""

    @property
    def base(self) -> str:
        """Address of the folder."""
        return f"{self.home.origin}{self.folder}/"

    def moved(self, home: Address) -> Scope:
        """What belongs to the site when its start page has turned out to be at `home`."""
        there = Scope(home, self.folder)
        return there if there.holds(home) else scope(home)

    def holds(self, address: Address) -> bool:
        """Whether the page belongs to the site; one with a query only where the start page has one."""
        same = (address.scheme, address.host, address.port) == (
            self.home.scheme,
            self.home.host,
            self.home.port,
        )
        inside = address.path == self.folder or address.path.startswith(f"{self.folder}/")
        return same and inside and (not address.query or bool(self.home.query))

    def path(self, address: Address) -> str:
        """The page's path within the site; each page has another one."""
        rest = address.target[len(self.folder) :]
        if rest.startswith("/"):
            return rest[1:] or START
        return BARE + rest

    def address(self, path: str) -> Address | None:
        """The page of a path; None for what is no path of this site."""
        if path == BARE or path.startswith(f"{BARE}?"):
            text = path.removeprefix(BARE)
        else:
            text = "/" if path == START else f"/{path}"
        found = normal(f"{self.home.origin}{self.folder}{text}")
        return found if found is not None and self.holds(found) else None


def scope(home: Address) -> Scope:
    """The site of a start page. `/docs/index.html` is a page in /docs, `/docs` a folder."""
    folder, _, name = home.path.rpartition("/")
    return Scope(home, f"{folder}/{name}" if name and "." not in name else folder)
