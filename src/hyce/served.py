"""JSON over HTTP: what the embedder and the reranker at an endpoint have in common.

Variables for proxies and .netrc have no effect, redirects aren't followed, and compressed answers aren't
asked for and count as unreadable: nothing unpacks to more than was allowed for.
"""

from __future__ import annotations

import json
import queue
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from hyce.completion import UnreadableError
from hyce.config import Config
from hyce.endpoint import api_key, location, parse_address
from hyce.errors import ConfigError, EndpointError
from hyce.privacy import neutral
from hyce.retry import PassingError, broken_connection, quoted, repeated, retry_after

if TYPE_CHECKING:
    import urllib3

AT_ONCE = 4
"""Requests to one endpoint at the same time."""
CHARACTERS = 200_000
"""Most characters of text in one request; servers refuse bodies of more than about 2 MB."""
MOST_BYTES = 1_000_000
"""An answer may have so many bytes, and more for each text that was sent."""
LONGEST_ANSWER = 10
"""An answer may take so many times the section's timeout, however steadily it trickles."""

A = TypeVar("A")
T = TypeVar("T")

_TOO_MANY = re.compile(r"(?i)batch|payload|too many (?:inputs|texts|documents|passages)")
_TOO_LONG = re.compile(r"(?i)too long|context length|input length|tokens\b|token (?:size|limit)")
_KIND = {"model": "kind", "reranker": "form"}
_WHAT = {"model": "an embedding model", "reranker": "a reranker"}
_SHORTEN = {
    "model": "lower model.max_tokens, or set model.tokenizer to measure instead of estimating",
    "reranker": "lower passages.size and index again",
}


class JsonClient:
    """Asks one endpoint. Raises PolicyError or ConfigError when made, before anything is sent."""

    def __init__(
        self,
        config: Config,
        section: Literal["model", "reranker"],
        paths: Sequence[str],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """section: whose settings hold. paths: below the address, unless that ends with one of them."""
        said = getattr(config, section)
        if not said.base_url:
            raise ConfigError(f"{section}.base_url is not set; write the endpoint's address there")
        self.location = location(config, section)
        self.address = str(parse_address(said.base_url, f"{section}.base_url"))
        whole = self.address.endswith(tuple(f"/{path}" for path in paths))
        self._url = self.address if whole else f"{self.address}/{paths[0]}"
        self._section = section
        self._name, self._timeout, self._retries = said.name, said.timeout, said.retries
        self._key = api_key(config, section=section)
        self._sleep = sleep
        self._lock = threading.Lock()
        self._manager: urllib3.PoolManager | None = None

    def post(self, body: Mapping[str, Any], read: Callable[[Any], T], most_bytes: int) -> T:
        """What `read` makes of the endpoint's answer to this body; it raises UnreadableError.

        A failed connection, 408, 429 and 5xx are tried again. Raises EndpointError.
        """
        # A lone surrogate (half of a character, from broken input) can't be sent as UTF-8.
        data = json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
        return repeated(lambda: self._answer(data, read, most_bytes), self._retries, self.error, self._sleep)

    def error(self, reason: str, remedy: str) -> EndpointError:
        """The error to raise: the address, the model, what failed there, and what to do."""
        return EndpointError(f"{self.address}, model {neutral(self._name)}: {reason}; {remedy}")

    def unusable(self, reason: str) -> EndpointError:
        """The error for an answer that no such endpoint gives."""
        names = f"{self._section}.base_url, {self._section}.{_KIND[self._section]}"
        return self.error(self._quoted(reason), f"check {names} and {self._section}.name")

    def _answer(self, data: bytes, read: Callable[[Any], T], most_bytes: int) -> T:
        from urllib3 import exceptions

        try:
            status, headers, raw = self._exchange(data, most_bytes)
        except exceptions.NewConnectionError as error:
            raise self._unreached(broken_connection(error)) from None
        except exceptions.ConnectTimeoutError:
            raise self._unreached("no connection in time") from None
        except exceptions.ReadTimeoutError:
            remedy = f"raise {self._section}.timeout, or ask again later"
            raise self.error(f"no sign of life for {self._timeout:g} s", remedy) from None
        except exceptions.SSLError as error:
            remedy = "check the server's certificate, and that this machine knows who signed it"
            raise self.error(broken_connection(error), remedy) from None
        except exceptions.HTTPError as error:
            raise PassingError(
                broken_connection(error), "check that the server runs, then ask again"
            ) from None
        except UnreadableError as error:
            raise self.unusable(str(error)) from None
        if status != 200:
            raise self._status_error(status, headers, raw)
        try:
            return read(_json(raw, headers.get("content-type", "")))
        except UnreadableError as error:
            raise self.unusable(str(error)) from None

    def _exchange(self, data: bytes, most_bytes: int) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and body of one request's answer."""
        headers = {
            "content-type": "application/json",
            "accept": "application/json",
            "accept-encoding": "identity",
            "user-agent": "hyce",
        }
        if self._key != "none":
            headers["authorization"] = f"Bearer {self._key}"
        response = self._connections().request(
            "POST",
            self._url,
            body=data,
            headers=headers,
            retries=False,
            redirect=False,
            preload_content=False,
        )
        until = time.monotonic() + LONGEST_ANSWER * self._timeout
        body = bytearray()
        try:
            while piece := response.read1(65536, decode_content=False):
                body += piece
                if len(body) > most_bytes:
                    raise UnreadableError(f"sent more than {most_bytes / 1e6:.0f} MB")
                if time.monotonic() > until:
                    raise UnreadableError(f"was still answering after {LONGEST_ANSWER * self._timeout:g} s")
        finally:
            response.close()
        return response.status, response.headers, bytes(body)

    def _connections(self) -> urllib3.PoolManager:
        with self._lock:
            if self._manager is None:
                import ssl

                import urllib3

                # The machine's certificates, so that a site's own authority counts.
                context = ssl.create_default_context() if self._url.startswith("https:") else None
                patience = urllib3.Timeout(connect=min(self._timeout, 10.0), read=self._timeout)
                self._manager = urllib3.PoolManager(maxsize=AT_ONCE, timeout=patience, ssl_context=context)
            return self._manager

    def _unreached(self, reason: str) -> PassingError:
        return PassingError(reason, f"check {self._section}.base_url, and that the server runs")

    def _status_error(self, status: int, headers: Mapping[str, str], raw: bytes) -> Exception:
        section = self._section
        said = self._quoted(_said(raw))
        if status in (408, 429) or status >= 500:
            reason = "too many requests (429)" if status == 429 else f"the server failed ({status}): {said}"
            return PassingError(reason, "ask again later", retry_after(headers))
        if status in (401, 403):
            # The server's own words may hold parts of the key.
            keys = f"{section}.api_key_env or {section}.api_key_file"
            if self._key == "none":
                return self.error(f"a key is wanted ({status})", f"set {keys}")
            return self.error(f"the key was refused ({status})", f"check {keys}")
        if 300 <= status < 400:
            return self.error(
                f"answered with a redirect ({status}), which is not followed",
                f"set {section}.base_url to the final address",
            )
        return self.error(f"refused the request ({status}): {said}", self._remedy(status, said))

    def _remedy(self, status: int, said: str) -> str:
        section = self._section
        if status == 413 or (status in (400, 422) and _TOO_MANY.search(said)):
            return f"lower {section}.batch"
        if status in (400, 422) and _TOO_LONG.search(said):
            return _SHORTEN[section]
        if status == 404:
            return f"check {section}.base_url, {section}.{_KIND[section]} and {section}.name"
        if status == 424:
            return f"check that it serves {_WHAT[section]}"
        return f"check [{section}] in hyce.toml"

    def _quoted(self, text: str) -> str:
        return quoted(text, self._key)


def at_once(call: Callable[[A], T], items: Sequence[A]) -> list[T]:
    """call() of each item, in their order, at most AT_ONCE at the same time; the first error ends it.

    Not concurrent.futures: who presses Ctrl-C, or meets an error, would wait for the requests under way.
    """
    if len(items) == 1:
        return [call(items[0])]
    places = iter(range(len(items)))
    outcomes: queue.SimpleQueue[tuple[int, T] | BaseException] = queue.SimpleQueue()
    lock, ended = threading.Lock(), threading.Event()

    def work() -> None:
        while not ended.is_set():
            with lock:
                place = next(places, None)
            if place is None:
                return
            try:
                outcomes.put((place, call(items[place])))
            except BaseException as error:
                outcomes.put(error)

    for _ in range(min(AT_ONCE, len(items))):
        threading.Thread(target=work, daemon=True).start()
    results: dict[int, T] = {}
    try:
        for _ in items:
            outcome = outcomes.get()
            if isinstance(outcome, BaseException):
                raise outcome
            results[outcome[0]] = outcome[1]
    finally:
        ended.set()
    return [results[place] for place in range(len(items))]


def batches(texts: Sequence[str], most: int) -> Iterator[list[str]]:
    """The texts in their order, at most `most` together, with CHARACTERS at most unless it is one text."""
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and (len(batch) == most or size + len(text) > CHARACTERS):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch


def _json(raw: bytes, kind: str) -> Any:
    """The document. Raises UnreadableError for anything that isn't JSON in the strict sense."""
    if "html" in kind.lower():
        raise UnreadableError(f"answered with a web page ({kind})")
    try:
        return json.loads(raw, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise UnreadableError("answered with something else than JSON") from None


def _no_number(name: str) -> float:
    raise UnreadableError(f"sent {name} in place of a number")


def _said(raw: bytes) -> str:
    """The endpoint's own words in an error."""
    try:
        details = json.loads(raw)
    except (ValueError, RecursionError):
        return raw[:2000].decode("utf-8", "replace")
    while isinstance(details, dict):
        inner = next((details[name] for name in ("error", "message", "detail") if details.get(name)), None)
        if inner is None:
            break
        details = inner
    return details if isinstance(details, str) else json.dumps(details)[:2000]
