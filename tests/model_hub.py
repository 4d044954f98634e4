"""A small model hub on 127.0.0.1: the two requests by which huggingface_hub lists and fetches files."""

from __future__ import annotations

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any

REVISION = "1234567890abcdef1234567890abcdef12345678"


class ModelHub:
    """Serves the files of `folders`, by repository. A context manager; `asked` has the paths asked for."""

    def __init__(self, folders: dict[str, Path]) -> None:
        self.folders = folders
        self.asked: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.address = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> ModelHub:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def fetched(self) -> set[str]:
        """Names of the files whose content was sent."""
        return {path.partition(f"/resolve/{REVISION}/")[2] for path in self.asked if "/resolve/" in path}

    def _listing(self, repository: str) -> dict[str, Any]:
        folder = self.folders[repository]
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        return {
            "id": repository,
            "sha": REVISION,
            "siblings": [
                {"rfilename": str(path.relative_to(folder)), "size": path.stat().st_size} for path in files
            ],
        }

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self) -> None:
                self.answer(send=False)

            def do_GET(self) -> None:
                self.answer(send=True)

            def answer(self, *, send: bool) -> None:
                path = self.path.partition("?")[0]
                if send:
                    hub.asked.append(path)
                if path.startswith("/api/models/"):
                    repository = path.removeprefix("/api/models/").removesuffix("/revision/main")
                    if repository in hub.folders:
                        self.reply(200, json.dumps(hub._listing(repository)).encode(), send)
                        return
                repository, _, name = path[1:].partition(f"/resolve/{REVISION}/")
                folder = hub.folders.get(repository)
                if folder and name and (folder / name).is_file():
                    self.reply(200, (folder / name).read_bytes(), send)
                else:
                    self.reply(404, b"", send, error="RepoNotFound")

            def reply(self, status: int, body: bytes, send: bool, error: str = "") -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("ETag", f'"{hashlib.sha1(body).hexdigest()}"')
                self.send_header("X-Repo-Commit", REVISION)
                self.send_header("Content-Type", "application/json")
                if error:
                    self.send_header("X-Error-Code", error)
                self.end_headers()
                if send:
                    self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
                pass

        return Handler
