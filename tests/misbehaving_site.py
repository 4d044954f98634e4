"""A web site on loopback whose pages answer as they are told, well or badly, and that notes every request."""

from __future__ import annotations

import gzip
import socket
import struct
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any


@dataclass(frozen=True)
class Request:
    """What came in."""

    path: str
    headers: dict[str, str]
    """Names in lower case."""


Step = Callable[["Exchange"], None]


class Site:
    """A server. `pages` holds for each path (with its query) the steps of its requests; the last one stays.
    What isn't there is 404."""

    def __init__(self, pages: dict[str, Step | Sequence[Step]] | None = None) -> None:
        self.pages: dict[str, Step | Sequence[Step]] = dict(pages or {})
        self.requests: list[Request] = []
        self.ended = threading.Event()
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), Exchange)
        self._server.site = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def asked(self) -> list[str]:
        """The paths that were asked for, in order."""
        return [request.path for request in self.requests]

    def take(self, request: Request) -> Step:
        with self._lock:
            self.requests.append(request)
            steps = self.pages.get(request.path, missing)
            if callable(steps):
                return steps
            self.pages[request.path] = steps[1:] if len(steps) > 1 else steps
            return steps[0]

    def __enter__(self) -> Site:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.ended.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    site: Site

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Silent: a client that hangs up is part of the tests."""


class Exchange(BaseHTTPRequestHandler):
    """One request and its reply; connections are kept, as servers do."""

    protocol_version = "HTTP/1.1"
    server: _Server
    request_seen: Request

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.request_seen = Request(self.path, headers)
        self.server.site.take(self.request_seen)(self)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (the base class names it)
        """Silent."""

    def send(self, status: int, body: bytes = b"", **headers: str) -> None:
        """An underscore in a header's name stands for a hyphen."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.send_response(status)
        for name, value in {"content-length": str(len(body)), **named}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def begin(self, **headers: str) -> None:
        """A reply without an end: what follows is written as it is, and then the connection ends."""
        self.close_connection = True
        self.send_response(200)
        for name, value in {"content-type": "text/html", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()


def html(title: str, *links: str, text: str = "", head: str = "") -> bytes:
    """A page of its own, with links in its menu."""
    body = text or f"What there is to know of {title.lower()}, told at some length on this page."
    menu = "".join(f'<a href="{link}">{link}</a> ' for link in links)
    return (
        f"<html><head><title>{title}</title>{head}</head><body><nav>{menu}</nav>"
        f"<main><h1>{title}</h1><p>{body}</p></main></body></html>"
    ).encode()


def sends(body: bytes | str, status: int = 200, **headers: str) -> Step:
    data = body.encode() if isinstance(body, str) else body
    kind = headers.pop("content_type", "text/html")
    return lambda exchange: exchange.send(status, data, content_type=kind, **headers)


def page(title: str, *links: str, text: str = "", head: str = "", **headers: Any) -> Step:
    return sends(html(title, *links, text=text, head=head), **headers)


def tagged(etag: str, body: bytes) -> Step:
    """A page with an ETag: 304 for who has it already."""

    def step(exchange: Exchange) -> None:
        if exchange.request_seen.headers.get("if-none-match") == etag:
            exchange.send(304, etag=etag)
        else:
            exchange.send(200, body, content_type="text/html", etag=etag)

    return step


def leads(to: str, status: int = 302) -> Step:
    return lambda exchange: exchange.send(status, location=to)


def fails(status: int, **headers: Any) -> Step:
    return lambda exchange: exchange.send(status, **headers)


def missing(exchange: Exchange) -> None:
    exchange.send(404)


def resets(exchange: Exchange) -> None:
    """Breaks the connection off in the midst of an answer."""
    exchange.begin(content_length="1000")
    exchange.wfile.write(b"<html>")
    exchange.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def trickles(exchange: Exchange) -> None:
    """A page that never ends, a few bytes at a time."""
    exchange.begin()
    while not exchange.server.site.ended.wait(0.02):
        exchange.wfile.write(b"<p>more")


def trickles_headers(exchange: Exchange) -> None:
    """Headers that never end."""
    exchange.close_connection = True
    exchange.wfile.write(b"HTTP/1.1 200 OK\r\n")
    while not exchange.server.site.ended.wait(0.02):
        exchange.wfile.write(b"x")


def floods(exchange: Exchange) -> None:
    """A page that never ends, as fast as it can be read."""
    exchange.begin()
    while not exchange.server.site.ended.is_set():
        exchange.wfile.write(b"<p>more</p>" * 10_000)


def stays_silent(exchange: Exchange) -> None:
    exchange.close_connection = True
    exchange.server.site.ended.wait(60)


def bomb(exchange: Exchange) -> None:
    """A hundred megabytes in a hundred kilobytes, in pieces whose number isn't told."""
    exchange.begin(content_encoding="gzip")
    exchange.wfile.write(gzip.compress(b"<p>" + b"a" * 100_000_000))


def sitemap(*addresses: str, index: bool = False) -> bytes:
    outer, inner = ("sitemapindex", "sitemap") if index else ("urlset", "url")
    entries = "".join(f"<{inner}><loc>{address}</loc></{inner}>" for address in addresses)
    return f'<?xml version="1.0"?><{outer} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</{outer}>'.encode()
