"""A chat client for any OpenAI-compatible endpoint: a provider's, a gateway, or a server on this machine.

Built on the `openai` package, which reads a dozen environment variables and adds headers that describe
this machine: neither has an effect here. What comes back is read piece by piece, as gateways send web
pages, half streams and wrong content types.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from hyce.completion import Completion, UnreadableError, WrittenAnswer, read_body, read_event
from hyce.config import Config, for_role, llm_setting
from hyce.endpoint import Location, api_key, location, parse_address
from hyce.errors import EndpointError
from hyce.privacy import neutral
from hyce.retry import PassingError, broken_connection, quoted, repeated, retry_after

if TYPE_CHECKING:
    from openai import OpenAI

    from hyce.records import Message

MOST_BYTES = 8_000_000
"""A reply that is longer is not read to its end."""

# The last is read by the library itself, when the reply is there.
_HEADERS = {
    "host",
    "connection",
    "content-type",
    "content-length",
    "accept-encoding",
    "x-stainless-raw-response",
}
_OPTIONAL = (
    "max_completion_tokens",
    "max_tokens",
    "temperature",
    "seed",
    "stream_options",
    "response_format",
)


class LanguageModel(Protocol):
    """A model that replies to messages: a ChatClient, or what keeps a record of one."""

    @property
    def location(self) -> Location: ...

    @property
    def config(self) -> Config:
        """With its own settings as [llm]."""
        ...

    def complete(
        self,
        messages: Sequence[Message],
        *,
        on_text: Callable[[str], None] | None = None,
        schema: Mapping[str, Any] | None = None,
    ) -> Completion:
        """What the model writes. Raises EndpointError."""
        ...

    def error(self, reason: str, remedy: str) -> EndpointError:
        """The error to raise where a reply can't be used."""
        ...

    def close(self) -> None:
        """Ends the connection."""


class ChatClient:
    """Asks one endpoint, for any number of threads.

    Raises PolicyError or ConfigError when made, before anything is sent.
    """

    def __init__(
        self,
        config: Config,
        *,
        sleep: Callable[[float], None] = time.sleep,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.location = location(config)
        self.address = str(parse_address(config.llm.base_url, llm_setting(config, "base_url")))
        self.model = config.llm.model
        self.config = config
        self._key = api_key(config, environ)
        self._sleep = sleep
        self._client: OpenAI | None = None
        self._lock = threading.Lock()
        self._refused: set[str] = set()

    def __enter__(self) -> ChatClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def complete(
        self,
        messages: Sequence[Message],
        *,
        on_text: Callable[[str], None] | None = None,
        schema: Mapping[str, Any] | None = None,
    ) -> Completion:
        """What the model writes. on_text gets each piece as it comes. schema: the JSON schema that the
        endpoint is asked to hold the model to; one that can't is not asked again.

        A failed connection, 408, 429 and 5xx are tried again, unless text has come already: then it is
        kept, and a notice says that it breaks off. Raises EndpointError.
        """
        return repeated(
            lambda: self._adapting(messages, on_text, schema),
            self.config.llm.retries,
            self.error,
            self._sleep,
        )

    def _adapting(
        self,
        messages: Sequence[Message],
        on_text: Callable[[str], None] | None,
        schema: Mapping[str, Any] | None,
    ) -> Completion:
        """One try, repeated without the parameter that the endpoint says it doesn't take."""
        import openai

        refusals: set[str] = set()  # of this request: others may be under way in other threads
        while True:
            body = request_body(self.config, messages, self._refused, schema)
            try:
                return self._send(body, on_text)
            except openai.APIStatusError as error:
                refused = _refused_parameter(error, body)
                if refused is None or refused in refusals:
                    raise self._status_error(error) from None
                refusals.add(refused)
                self._refused.add(refused)
            except openai.APITimeoutError as error:
                raise self._silent(error) from None
            except openai.APIConnectionError as error:
                raise PassingError(
                    broken_connection(error), f"check {self._named('base_url')}, and that the server runs"
                ) from None
            except openai.OpenAIError as error:
                raise self.error(self._quoted(str(error)), "check [llm] in hyce.toml") from None

    def _send(self, body: dict[str, Any], on_text: Callable[[str], None] | None) -> Completion:
        written = WrittenAnswer(on_text or (lambda _: None))
        client = self._connect()
        # What the library's older versions don't know by name goes as it is.
        named = {name: value for name, value in body.items() if name in ("model", "messages", "stream")}
        others = {name: value for name, value in body.items() if name not in named}
        transport_errors = tuple(sys.modules[n].HTTPError for n in ("httpx2", "httpx") if n in sys.modules)
        try:
            with client.chat.completions.with_streaming_response.create(
                **named, extra_body=others
            ) as response:
                kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
                if "html" in kind:
                    raise UnreadableError(f"answered with a web page ({kind})")
                pieces = _capped(response.iter_bytes())
                if kind == "text/event-stream":
                    for line in _lines(pieces):
                        if read_event(line, written):
                            break
                else:
                    read_body(b"".join(pieces), kind, written)
        except transport_errors as error:
            if not written.text:
                if "Timeout" in type(error).__name__:
                    raise self._silent(error) from None
                raise PassingError(
                    broken_connection(error), "check that the server runs, then ask again"
                ) from None
            written.broken = True
        except UnreadableError as error:
            if not written.text:
                raise self.error(
                    self._quoted(str(error)),
                    f"{self._named('base_url')} must be the address of an OpenAI-compatible API (it usually "
                    "ends in /v1)",
                ) from None
            written.broken = True
        if not written.text.strip():
            raise self.error(
                f"the answer was empty (finish reason: {self._quoted(written.finish_reason or 'none')})",
                f"raise {self._named('max_output_tokens')} if the model thinks for long, or use another "
                "model",
            )
        return written.completion(self.model)

    def _connect(self) -> OpenAI:
        with self._lock:
            return self._connected()

    def _connected(self) -> OpenAI:
        if self._client is None:
            import ssl

            from openai import DefaultHttpxClient, OpenAI, Timeout

            patience = Timeout(self.config.llm.timeout, connect=min(self.config.llm.timeout, 10.0))
            http = DefaultHttpxClient(
                follow_redirects=False,
                trust_env=False,
                timeout=patience,
                # The machine's certificates, so that a site's own authority counts.
                verify=ssl.create_default_context(),
                event_hooks={"request": [self._only_our_headers]},
            )
            self._client = OpenAI(
                base_url=self.address, api_key=self._key, timeout=patience, max_retries=0, http_client=http
            )
        return self._client

    def _only_our_headers(self, request: Any) -> None:
        """The last gate before the network: none but these, whatever the library or its variables add."""
        for name in list(request.headers):
            if name.lower() not in _HEADERS:
                del request.headers[name]
        request.headers["accept"] = "text/event-stream, application/json"
        request.headers["user-agent"] = "hyce"
        request.headers["authorization"] = f"Bearer {self._key}"

    def _status_error(self, error: Any) -> Exception:
        status = error.status_code
        said = self._quoted(_said(error))
        if status in (408, 429) or status >= 500:
            reason = "too many requests (429)" if status == 429 else f"the server failed ({status}): {said}"
            return PassingError(reason, "ask again later", retry_after(error.response.headers))
        if status in (401, 403):
            # The server's own words may hold parts of the key.
            keys = f"{self._named('api_key_env')} or {self._named('api_key_file')}"
            return self.error(f"the key was refused ({status})", f"check {keys}")
        if 300 <= status < 400:
            return self.error(
                f"answered with a redirect ({status}), which is not followed",
                f"set {self._named('base_url')} to the final address",
            )
        remedies = {
            404: f"check {self._named('base_url')} (it usually ends in /v1) and {self._named('model')}",
            413: f"lower {self._named('context_tokens')}",
            400: f"check {self._named('model')}; lower {self._named('context_tokens')} or "
            f"{self._named('max_output_tokens')} if it is too long",
        }
        return self.error(
            f"refused the request ({status}): {said}", remedies.get(status, "check [llm] in hyce.toml")
        )

    def _silent(self, error: Exception) -> PassingError | EndpointError:
        if "Connect" in type(error).__name__ or "Connect" in type(error.__cause__).__name__:
            remedy = f"check {self._named('base_url')}, and that the server runs"
            return PassingError("no connection in time", remedy)
        return self.error(
            f"no sign of life for {self.config.llm.timeout:g} s",
            f"raise {self._named('timeout')}, or ask again later",
        )

    def _named(self, setting: str) -> str:
        return llm_setting(self.config, setting)

    def error(self, reason: str, remedy: str) -> EndpointError:
        """The error to raise: the address, the model, what failed there, and what to do."""
        model = f", model {neutral(self.model)}" if self.model else ""
        return EndpointError(f"{self.address}{model}: {reason}; {remedy}")

    def _quoted(self, text: str) -> str:
        """What the endpoint said, in one line, without keys."""
        return quoted(text, self._key)


def client_for(config: Config, role: str) -> ChatClient | None:
    """A client for the model of a role (settings.ROLES); None where none is configured.

    Raises PolicyError or ConfigError before anything is sent.
    """
    own = for_role(config, role)
    return ChatClient(own) if own.llm.base_url and own.llm.model else None


def output_tokens(config: Config) -> int:
    """The longest answer, in tokens: llm.max_output_tokens, less where the context is small, so that a prompt
    of 4096 tokens, or three quarters of the context, has room beside it."""
    context = config.llm.context_tokens
    return min(config.llm.max_output_tokens, max(context // 4, context - 4096))


def request_body(
    config: Config, messages: Sequence[Message], refused: set[str], schema: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """What is sent. `refused` names parameters that the endpoint doesn't take."""
    llm = config.llm
    limits = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
    limit: str = limits[llm.output_limit] if llm.output_limit in refused else llm.output_limit
    body: dict[str, Any] = {
        "model": llm.model,
        "messages": list(messages),
        limit: output_tokens(config),
    }
    if llm.temperature >= 0:
        body["temperature"] = llm.temperature
    if llm.seed >= 0:
        body["seed"] = llm.seed
    if schema is not None:
        form = {"name": "reply", "schema": dict(schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": form}
    if llm.stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return {name: value for name, value in body.items() if name == limit or name not in refused}


def _refused_parameter(error: Any, body: Mapping[str, Any]) -> str | None:
    """The optional parameter that a 400 or 422 complains of, when leaving it out may help."""
    if error.status_code not in (400, 422):
        return None
    said = _said(error)
    if any(words in said.lower() for words in ("context length", "context window", "too large", "too long")):
        return None
    details = error.body if isinstance(error.body, dict) else {}
    if details.get("param") in _OPTIONAL and details["param"] in body:
        return str(details["param"])
    for name in _OPTIONAL:
        if name in said and name in body:
            return name
    return None


def _said(error: Any) -> str:
    """The endpoint's own words in an error."""
    details = error.body
    if isinstance(details, dict) and isinstance(details.get("message"), str):
        return str(details["message"])
    return str(details if details is not None else error.message)


def _capped(pieces: Iterator[bytes]) -> Iterator[bytes]:
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > MOST_BYTES:
            raise UnreadableError(f"sent more than {MOST_BYTES // 1_000_000} MB")
        yield piece


def _lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
    if rest:
        yield rest
