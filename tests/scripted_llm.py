"""An OpenAI-compatible endpoint on loopback that answers as it is told and records what it was sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self, cast


@dataclass(frozen=True)
class Request:
    """What came in."""

    path: str
    headers: dict[str, str]
    """Names in lower case."""
    raw: bytes

    @property
    def body(self) -> dict[str, Any]:
        return cast(dict[str, Any], json.loads(self.raw))

    @property
    def prompt(self) -> str:
        """All messages, one below the other."""
        return "\n".join(message["content"] for message in self.body["messages"])

    @property
    def everything(self) -> str:
        """Path, headers and body, to look for what must not be there."""
        return f"{self.path}\n{self.headers}\n{self.raw.decode('utf-8')}"


Step = Callable[["_Exchange"], None]


class ScriptedLlm:
    """A server; each request takes the next step of the script, and the last step stays."""

    def __init__(self, *steps: Step) -> None:
        self._steps = list(steps)
        self._lock = threading.Lock()
        self.requests: list[Request] = []
        self.ended = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Exchange)
        self._server.script = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def url(self) -> str:
        return f"{self.origin}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.ended.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def take(self, request: Request) -> Step:
        with self._lock:
            self.requests.append(request)
            return self._steps.pop(0) if len(self._steps) > 1 else self._steps[0]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    script: ScriptedLlm

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Silent: a client that hangs up is part of the tests."""


class _Exchange(BaseHTTPRequestHandler):
    """One request and its reply. Connections are not kept: each reply ends with its connection."""

    server: _Server
    request_seen: Request

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.request_seen = Request(self.path, headers, raw)
        self.server.script.take(self.request_seen)(self)

    def do_GET(self) -> None:
        self.do_POST()

    def do_CONNECT(self) -> None:
        self.do_POST()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (the base class names it)
        """Silent."""

    def send(self, status: int, kind: str, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        if kind:
            self.send_header("content-type", kind)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def says(*pieces: str, finish: str | None = "stop", usage: tuple[int, int] | None = None) -> Step:
    """An answer, as a stream of these pieces when the request asks for one."""

    def step(exchange: _Exchange) -> None:
        counts = {"prompt_tokens": usage[0], "completion_tokens": usage[1]} if usage else None
        if exchange.request_seen.body.get("stream"):
            exchange.send(200, "text/event-stream", events(pieces, finish, counts))
            return
        choice = {"message": {"role": "assistant", "content": "".join(pieces)}, "finish_reason": finish}
        document = {"model": "scripted", "choices": [choice], "usage": counts}
        exchange.send(200, "application/json", json.dumps(document).encode())

    return step


def events(pieces: Sequence[str], finish: str | None, usage: dict[str, int] | None = None) -> bytes:
    """A stream of server-sent events."""
    documents: list[dict[str, Any]] = [
        {"model": "scripted", "choices": [{"delta": {"content": piece}, "finish_reason": None}]}
        for piece in pieces
    ]
    documents.append({"model": "scripted", "choices": [{"delta": {}, "finish_reason": finish}]})
    if usage:
        documents.append({"model": "scripted", "choices": [], "usage": usage})
    lines = [f"data: {json.dumps(document)}\n\n" for document in documents]
    return b": keep-alive\n\n" + "".join([*lines, "data: [DONE]\n\n"]).encode()


def sends(status: int, body: str | bytes, kind: str = "application/json", **headers: str) -> Step:
    """These bytes. An underscore in a header's name stands for a hyphen."""
    data = body.encode() if isinstance(body, str) else body
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda exchange: exchange.send(status, kind, data, named)


def fails(status: int, message: str, param: str | None = None, **headers: str) -> Step:
    """An error as such endpoints report it."""
    return sends(status, json.dumps({"error": {"message": message, "param": param}}), **headers)


def breaks(*pieces: str) -> Step:
    """A stream whose connection ends after these pieces."""
    lines = [f"data: {json.dumps({'choices': [{'delta': {'content': p}}]})}\n\n" for p in pieces]
    return sends(200, "".join(lines), "text/event-stream", content_length="100000")


def hangs_up(exchange: _Exchange) -> None:
    """Closes the connection without a word."""
    exchange.close_connection = True


def trickles(*pieces: str, pause: float) -> Step:
    """A stream with a pause in seconds before each of its lines."""

    def step(exchange: _Exchange) -> None:
        exchange.send(200, "text/event-stream", b"")
        for line in events(pieces, "stop").splitlines(keepends=True):
            if line.strip():
                exchange.server.script.ended.wait(pause)
            exchange.wfile.write(line)

    return step


def stays_silent(exchange: _Exchange) -> None:
    """Sends nothing for as long as the server lives."""
    exchange.server.script.ended.wait(60)
