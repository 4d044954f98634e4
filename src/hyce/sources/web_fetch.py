"""One page over HTTP: at a polite pace, bounded in size and time, from the site's own machines only.

No cookies, no credentials, no settings of the environment, no redirect followed: what a reply leads to is
for the caller to judge.
"""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection

from hyce.config import Web
from hyce.errors import EndpointError, SourceError
from hyce.retry import PassingError, broken_connection, repeated, retry_after
from hyce.sources.web_address import Address
from hyce.sources.web_reach import Reach

AGENT = "hyce"
"""The name that robots.txt may speak to."""
PATIENCE = 6
"""A page may take so many times web.timeout, however steadily it trickles."""
_STEP = 65536
_KEPT = ("content-type", "location", "etag", "last-modified", "date", "x-robots-tag", "retry-after")
_ENCODINGS = ("", "identity", "gzip", "x-gzip", "deflate")

Sleep = Callable[[float], object]


class StoppedError(Exception):
    """The run has ended while a request was waiting."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What asking for a page led to."""

    address: Address
    status: int = 0
    """0 where there was no answer that can be used; `problem` says why."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Those that matter, with names in lower case."""
    body: bytes = b""
    """Decompressed. Read for status 200 only."""
    problem: str = ""
    down: bool = False
    """Whether the site rather than the page seems to be in trouble."""
    unwanted: bool = False
    """Whether it is of a kind that hyce doesn't read; then `problem` says which."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What may be read of a reply."""

    bytes: int
    wanted: Callable[[Address, Mapping[str, str]], str] = lambda _address, _headers: ""
    """Why a page with these headers isn't read; empty where it is."""


class Pace:
    """When the next request may go out, for all connections to a site together."""

    def __init__(self, interval: float, sleep: Sleep | None = None) -> None:
        self.interval = interval
        """Seconds between the beginnings of two requests."""
        self.stop = threading.Event()
        """Set when the run has ended: whoever waits goes on at once."""
        self.sleep = sleep or self.stop.wait
        self._lock = threading.Lock()
        self._next = 0.0

    def wait(self) -> None:
        with self._lock:
            now = time.monotonic()
            start = max(now, self._next)
            self._next = start + self.interval
        if start > now:
            self.sleep(start - now)

    def hold(self, seconds: float) -> None:
        """Nothing goes out for so long."""
        with self._lock:
            self._next = max(self._next, time.monotonic() + seconds)


class Line:
    """A connection to a site, for one thread. `cut` may be called from any."""

    def __init__(self, site: Address, web: Web, reach: Reach, pace: Pace) -> None:
        """Raises SourceError where the site or the proxy may not be asked."""
        self._web, self._reach, self._pace = web, reach, pace
        self._host = site.host.strip("[]")
        self._socket: socket.socket | None = None
        self._late = False
        reach.check_name(self._host)
        self._absolute = bool(web.proxy) and site.scheme == "http"
        self._pool = _pool(site, web, self)

    def get(self, address: Address, limits: Limits, headers: Mapping[str, str] | None = None) -> Reply:
        """The page, or why there is none; tried again where that may help.

        Raises SourceError where the site leads to a machine that may not be read, StoppedError.
        """

        def failed(reason: str, _remedy: str) -> EndpointError:
            return EndpointError(reason)

        try:
            return repeated(
                lambda: self._once(address, limits, headers or {}), self._web.retries, failed, self._pause
            )
        except EndpointError as error:
            return Reply(address, problem=str(error), down=True)

    def cut(self) -> None:
        """End what is under way at once; its reader gets an error."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._pool.close()
        if self._socket is not None:
            self._socket.close()

    def connected(self, connection: socket.socket) -> None:
        """Called for each new connection, before anything is sent. Raises SourceError where it leads to a
        machine that may not be read, StoppedError."""
        if not self._web.proxy:
            self._reach.check_peer(self._host, connection.getpeername()[0])
        if self._socket is not None:
            self._socket.close()
        # A handle of its own: TLS takes the connection's object over, and a closed reply lets go of it.
        self._socket = connection.dup()
        if self._pace.stop.is_set():  # `cut` may have come before there was anything to cut
            raise StoppedError

    def _pause(self, seconds: float) -> None:
        self._pace.sleep(seconds)

    def _once(self, address: Address, limits: Limits, headers: Mapping[str, str]) -> Reply:
        self._pace.wait()
        if self._pace.stop.is_set():
            raise StoppedError
        self._late = False
        allowed = PATIENCE * self._web.timeout
        timer = threading.Timer(allowed, self._too_late)
        timer.daemon = True
        timer.start()
        late = Reply(address, problem=f"took longer than {allowed:g} s", down=True)
        try:
            reply = self._answer(address, limits, headers)
            if self._pace.stop.is_set():
                raise StoppedError
            # A connection that was cut looks like a page that has ended.
            return late if self._late else reply
        except urllib3.exceptions.DecodeError:
            return Reply(address, problem="its compressed content is broken")
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            if self._pace.stop.is_set():
                raise StoppedError from error
            if self._late:
                return late
            reason = broken_connection(error)
            if isinstance(error, urllib3.exceptions.SSLError):
                return Reply(address, problem=reason, down=True)
            raise PassingError(reason, "") from error
        finally:
            timer.cancel()

    def _too_late(self) -> None:
        self._late = True
        self.cut()

    def _answer(self, address: Address, limits: Limits, headers: Mapping[str, str]) -> Reply:
        sent = {
            "User-Agent": f"{AGENT}/{version('hyce')} (documentation index)",
            "Accept": "text/html, application/xhtml+xml, text/markdown, text/plain, application/pdf",
            "Accept-Encoding": "gzip, deflate",
            **headers,
        }
        if self._absolute:
            sent["Host"] = address.origin.partition("://")[2]
        response = self._pool.urlopen(
            "GET",
            str(address) if self._absolute else address.target,
            headers=sent,
            redirect=False,
            retries=False,
            assert_same_host=False,
            preload_content=False,
        )
        try:
            return self._read(address, response, limits)
        finally:
            response.close()
            response.release_conn()

    def _read(self, address: Address, response: urllib3.BaseHTTPResponse, limits: Limits) -> Reply:
        # In one line: a folded header would be sent back as it is, or break a line that is shown.
        kept = {
            name: re.sub(r"\s*[\r\n]\s*", " ", response.headers[name])[:4000]
            for name in _KEPT
            if name in response.headers
        }
        if response.status == 429 or response.status >= 500:
            wait = retry_after(kept)
            if wait:
                self._pace.hold(min(wait, 60.0))
            raise PassingError(f"the server answers {response.status}", "", wait)
        if response.status != 200:
            return Reply(address, response.status, kept)
        reason = limits.wanted(address, kept)
        if reason:
            return Reply(address, 200, kept, problem=reason, unwanted=True)
        encoding = response.headers.get("content-encoding", "").strip().lower()
        if encoding not in _ENCODINGS:
            return Reply(address, problem=f"is compressed with {encoding[:40]!r}, which wasn't asked for")
        most = f"{limits.bytes / 1e6:.1f} MB at most"
        length = response.headers.get("content-length", "")
        if length.isdecimal() and len(length) < 20 and int(length) > limits.bytes:
            return Reply(address, problem=f"too large ({int(length) / 1e6:.1f} MB, {most})")
        body = bytearray()
        # Decompressed in steps of this size: nothing unpacks to more than was allowed for.
        for piece in response.stream(_STEP):
            body += piece
            if len(body) > limits.bytes:
                return Reply(address, problem=f"too large ({most})")
        return Reply(address, 200, kept, bytes(body))


class _Guard:
    """Shows its line every new connection."""

    def __init__(self, *args: Any, line: Line, **options: Any) -> None:
        super().__init__(*args, **options)
        self._line = line

    def _new_conn(self) -> socket.socket:
        made: socket.socket = super()._new_conn()  # type: ignore[misc]
        try:
            self._line.connected(made)
        except BaseException:
            made.close()
            raise
        return made


class _Plain(_Guard, HTTPConnection):
    pass


class _Secure(_Guard, HTTPSConnection):
    pass


def _pool(site: Address, web: Web, line: Line) -> urllib3.HTTPConnectionPool:
    """urllib3's connection to the site, directly or by the proxy, that shows itself to `line`."""
    timeout = urllib3.Timeout(connect=web.timeout, read=web.timeout)
    options: dict[str, Any] = {"maxsize": 1, "timeout": timeout, "retries": False}
    pool: urllib3.HTTPConnectionPool
    if web.proxy:
        proxy = urllib3.util.parse_url(web.proxy)
        if proxy.scheme not in ("http", "https") or not proxy.host or proxy.auth is not None:
            raise SourceError("web.proxy: not an address such as http://proxy:3128 without a password")
        pool = urllib3.ProxyManager(web.proxy, **options).connection_from_host(
            site.host, site.port, site.scheme
        )
        pool.ConnectionCls = _Secure if pool.scheme == "https" else _Plain
    elif site.scheme == "https":
        pool = urllib3.HTTPSConnectionPool(site.host, site.port, **options)
        pool.ConnectionCls = _Secure
    else:
        pool = urllib3.HTTPConnectionPool(site.host, site.port, **options)
        pool.ConnectionCls = _Plain
    pool.conn_kw["line"] = line
    return pool
