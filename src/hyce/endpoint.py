"""Where a served model is: its address, its key, and whether the site allows it.

An endpoint's settings have the same names in each section that has one: [llm], [model] and [reranker].

Addresses are compared by their parts, never as text: `https://good.example.evil.com` and
`https://good.example@evil.com` both begin like `https://good.example`.
"""

from __future__ import annotations

import ipaddress
import os
import re
import stat
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hyce.config import SITE_FILE, Config, llm_setting
from hyce.errors import ConfigError, PolicyError

Location = Literal["onsite", "outside"]

_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?")
# What remains of RFC 3986 when escapes, queries, fragments, users and parameters are left out.
_PATH = re.compile(r"(/[A-Za-z0-9._~!$'()*+,=:-]*)*")


@dataclass(frozen=True, slots=True)
class Address:
    """An endpoint's address in its parts; str() writes it again from them."""

    scheme: str
    host: str
    port: int
    path: str
    """Without a slash at its end; empty for the root."""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.path}"

    @property
    def loopback(self) -> bool:
        """Whether it is this machine: 127.0.0.0/8, ::1 or localhost."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def below(self, entry: Address) -> bool:
        """Whether it is `entry` or a path under it."""
        if (self.scheme, self.host, self.port) != (entry.scheme, entry.host, entry.port):
            return False
        return f"{self.path}/".startswith(f"{entry.path}/")


def parse_address(text: str, setting: str) -> Address:
    """The address in `text`, which is the value of `setting`.

    Raises ConfigError for anything but http(s)://host[:port][/path]. A user name, an escape, a dot
    segment, a query or a fragment is refused: two readers could take it for two addresses.
    """
    wanted = f"write it as https://host/path, not {_printable(text)!r}"
    try:
        parts = urllib.parse.urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise ConfigError(f"{setting}: not an address; {wanted}") from error
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ConfigError(f"{setting}: not an http or https address; {wanted}")
    # urlsplit drops tabs and line breaks silently: the text is looked at as well.
    if re.search(r"[\s\\@?#%;\x00-\x20\x7f]", text) or not _PATH.fullmatch(parts.path):
        raise ConfigError(f"{setting}: the address holds more than scheme, host, port and path; {wanted}")
    path = parts.path.rstrip("/")
    if any(segment in ("", ".", "..") for segment in path.split("/")[1:]):
        raise ConfigError(f"{setting}: the path holds an empty or a dot segment; {wanted}")
    if not _is_host(parts.hostname):
        raise ConfigError(f"{setting}: not a host name in ASCII, nor an IP address; {wanted}")
    return Address(parts.scheme, parts.hostname, _PORTS[parts.scheme] if port is None else port, path)


Section = Literal["llm", "model", "reranker"]


def location(config: Config, section: Section = "llm") -> Location:
    """Where what is sent to the section's endpoint ends up.

    Raises PolicyError when the site doesn't allow it, ConfigError when an address can't be read.
    [policy] outside_endpoints wins over onsite_endpoints and over loopback: a gateway on this
    machine may lead out of the site.
    """
    said, named = getattr(config, section), _named(config, section)
    address = parse_address(said.base_url, f"{named}.base_url")
    policy = config.policy
    if _below_any(address, policy.outside_endpoints, "policy.outside_endpoints"):
        return "outside"
    if address.loopback or _below_any(address, policy.onsite_endpoints, "policy.onsite_endpoints"):
        return "onsite"
    file = str(SITE_FILE) if SITE_FILE.exists() else "hyce.toml"
    if policy.outside_endpoints or policy.onsite_endpoints:
        raise PolicyError(
            f"{named}.base_url: {address} is not among the endpoints that the site allows, nothing was sent; "
            "use one of them, or have it added to onsite_endpoints or outside_endpoints in [policy] of "
            f"{file}"
        )
    if said.location == "onsite":
        return "onsite"
    raise PolicyError(
        f"{named}.base_url: {address} is outside the site, which has not consented to it, nothing was "
        f'sent; consent is outside_endpoints = ["{address}"] in [policy] of {file}; if the endpoint is the '
        f'site\'s own, set location = "onsite" in [{named}]'
    )


def api_key(config: Config, environ: Mapping[str, str] | None = None, section: Section = "llm") -> str:
    """The key for the section's endpoint; "none" where no key is configured, as many local servers need none.

    Raises ConfigError when the variable or the file that is configured holds no usable key, or when
    others can read the file.
    """
    said, named = getattr(config, section), _named(config, section)
    variable, file = said.api_key_env, said.api_key_file
    if variable:
        key = (os.environ if environ is None else environ).get(variable, "").strip()
        if not key and not file:
            raise ConfigError(
                f"{named}.api_key_env: the variable {variable} is not set; export it, or use "
                f"{named}.api_key_file"
            )
        if key:
            return _usable(key, f"the variable {variable}", named)
    if file:
        path = Path(file).expanduser()
        return _usable(_read_private(path, named).strip(), str(path), named)
    return "none"


def _named(config: Config, section: Section) -> str:
    """The section by its name in the file: llm.answer where the address is that role's own."""
    return llm_setting(config, "base_url").removesuffix(".base_url") if section == "llm" else section


def _below_any(address: Address, entries: tuple[str, ...], setting: str) -> bool:
    # All are read: a broken entry is reported even where an earlier one matches.
    addresses = [parse_address(entry, setting) for entry in entries]
    return any(address.below(entry) for entry in addresses)


def _is_host(name: str) -> bool:
    try:
        return bool(ipaddress.ip_address(name))
    except ValueError:
        return _HOST.fullmatch(name) is not None and ".." not in name


def _read_private(path: Path, section: str) -> str:
    """The file's text. Its state is looked at through the open file, so that it can't change between."""
    try:
        # Without O_NONBLOCK, opening a named pipe would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise ConfigError(
            f"{section}.api_key_file: {path} can't be read: {error.strerror}; write the key to it, with "
            "mode 600"
        ) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError(f"{section}.api_key_file: {path} is no ordinary file; write the key to one")
        if status.st_mode & 0o077:
            raise ConfigError(
                f"{section}.api_key_file: others can read or write {path}; run `chmod 600 {path}`, and "
                "replace the key if others may have read it"
            )
        if status.st_uid not in (0, os.getuid()):
            raise ConfigError(
                f"{section}.api_key_file: {path} belongs to another user; use a file of your own"
            )
        return os.read(descriptor, 65536).decode("utf-8", "replace")
    finally:
        os.close(descriptor)


def _usable(key: str, origin: str, section: str) -> str:
    if not key:
        raise ConfigError(f"{section}.api_key_file: {origin} is empty; write the key to it")
    if not re.fullmatch(r"[\x21-\x7e]+", key):
        raise ConfigError(
            f"the key in {origin} holds spaces or other characters that no key has; store it alone"
        )
    return key


def _printable(text: str) -> str:
    """The address without a password that it may hold, cut to a line."""
    return re.sub(r"//[^/]*@", "//...@", text)[:120]
