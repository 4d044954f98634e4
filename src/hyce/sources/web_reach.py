"""Which machines may be connected to: no address that a site names leads into the network around hyce."""

from __future__ import annotations

import ipaddress
import re
import socket
from typing import Literal

from hyce.errors import SourceError

Kind = Literal["global", "private", "loopback", "reserved"]

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_PRIVATE = tuple(
    ipaddress.ip_network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")
)
_WORLD = ipaddress.ip_network("2000::/3")
"""All of IPv6 that is given out; Python calls more of it global, such as fec0::1, which only sites use."""
_CARRIER = ipaddress.ip_network("100.64.0.0/10")
_LOCAL_NAMES = re.compile(r"(?:.+\.)?(?:localhost|local|localdomain|internal|intranet|lan|home\.arpa)")


def kind_of(address: str) -> Kind:
    """What sort of network an IP address is in. What is embedded in an IPv6 address decides.

    private: a site's own networks. reserved: link-local (where clouds keep their machines' secrets),
    multicast, unspecified and the like.
    """
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour
        if found in _NAT64:
            inner = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        if inner is not None:
            return kind_of(str(inner))
    if found.is_loopback:
        return "loopback"
    if found.version == 4 and found in _CARRIER:
        return "private"
    if any(found in network for network in _PRIVATE if network.version == found.version):
        return "private"
    world = found.is_global and not found.is_multicast and (found.version == 4 or found in _WORLD)
    return "global" if world else "reserved"


class Reach:
    """The machines that may be read, given the host that the user named."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._first: Kind | None = None

    @property
    def internal(self) -> bool:
        """Whether the host that the user named is in no global network, as far as it was connected to."""
        literal = _literal(self._host)
        return (kind_of(literal) if literal else self._first) not in ("global", None)

    def check_peer(self, host: str, address: str) -> None:
        """Raise SourceError unless the machine that `host` led to may be read. To be asked of the address
        that a connection has, before anything is sent: names lead elsewhere from one moment to the next."""
        kind = kind_of(address)
        if kind != "global" and not self._may_be(host, kind):
            raise SourceError(f"{host}: leads to {address}, an address of another network; nothing was sent")
        if host == self._host and self._first is None:
            self._first = kind

    def check_name(self, host: str) -> None:
        """Raise SourceError for a host that by its name alone may not be read: all that can be checked
        where a proxy connects to it."""
        literal = _literal(host)
        if host == self._host:
            return
        if literal is not None:
            inside = kind_of(literal) != "global"
        else:
            # 127.1 and 0x7f000001 are names to us and addresses to whoever resolves them.
            inside = "." not in host or re.fullmatch(r"[0-9]+|0[xX].*", host.rpartition(".")[2]) is not None
            inside = inside or _LOCAL_NAMES.fullmatch(host) is not None
        if inside:
            raise SourceError(f"{host}: a machine of another network; nothing was sent")

    def _may_be(self, host: str, kind: Kind) -> bool:
        """Whether the host that the user named may be in a network that isn't global."""
        if host != self._host:
            return False
        if _literal(host) is not None:
            return True
        if self._first is not None and self._first != kind:
            return False
        if kind == "loopback":
            return host in ("localhost", socket.gethostname().lower(), socket.getfqdn().lower())
        return kind == "private"


def _literal(host: str) -> str | None:
    """The IP address that a host is; None for a name."""
    try:
        return str(ipaddress.ip_address(host.strip("[]").partition("%")[0]))
    except ValueError:
        return None
