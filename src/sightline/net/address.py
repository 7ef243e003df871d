"""Which addresses may be dialled: what an address tells by itself, and where it leads. Pure.

Ours is a table of its own, because `ipaddress.is_global` answers another question and answers it differently from one
version of Python to the next: an address that NAT64 carries to 127.0.0.1 is global, and so is a multicast group.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import SplitResult, quote, urlsplit

from sightline.model.refusal import Refusal

PORT = 443
_LONGEST_URL = 8192

Internet = IPv4Address | IPv6Address

NO_ADDRESS = Refusal("invalid_input", "that is no web address", "give one that begins with https://")
NOT_PUBLIC = Refusal("not_permitted", "the address does not lead to the public web", "give a public https address")
_NO_HOST = Refusal(
    "not_permitted", "the host of the address is no full name", "write the name in plain letters (xn-- where needed)"
)

_ODD = re.compile(r"[\x00-\x20\x7f\\\ud800-\udfff]")  # urlsplit drops some of these, and others read them as a slash
_AUTHORITY = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9_.-]+))(?::([0-9]{1,5}))?", re.IGNORECASE | re.ASCII)
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
# At least two labels: one alone is a name of the local network. A last label that begins with a digit is an old way
# to write a number (0x7f.1, 0177.0.0.1, 2130706433), and an empty one makes another spelling of the same name.
_NAME = re.compile(rf"(?=.{{1,253}}$)(?:{_LABEL}\.)+(?![0-9]){_LABEL}", re.ASCII)
_SAFE = "/%:@!$&'()*+,;=~-._"
_METADATA_NAMES = frozenset(
    """metadata.google.internal metadata.goog metadata.azure.com metadata.azure.internal metadata.aws.amazon.com
    instance-data.ec2.internal metadata.tencentyun.com metadata.platformequinix.com""".split()
)


@dataclass(frozen=True, slots=True)
class Target:
    """A place that may be dialled as far as its address tells."""

    host: str
    port: int
    path: str
    literal: bool  # the host is an address, no name

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORT else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        return f"https://{self.authority}{self.path}"


def aim(url: str, ports: frozenset[int] = frozenset({PORT})) -> Target | Refusal:
    """What can be told from the address alone, before anybody is asked."""
    parts = _parted(url)
    if isinstance(parts, Refusal):
        return parts
    match = _AUTHORITY.fullmatch(parts.netloc)
    host = _host(match[1], match[2]) if match else None
    if match is None or host is None:
        return _NO_HOST
    port = int(match[3] or PORT)
    if port not in ports:
        return Refusal("not_permitted", f"port {port} is not dialled", "give an address on the usual port of https")
    if host in _METADATA_NAMES:
        return NOT_PUBLIC
    path = quote(parts.path or "/", safe=_SAFE) + (f"?{quote(parts.query, safe=_SAFE + '?')}" if parts.query else "")
    return Target(str(host), port, path, not isinstance(host, str))


def _parted(url: str) -> SplitResult | Refusal:
    if len(url) > _LONGEST_URL or _ODD.search(url):
        return NO_ADDRESS
    try:
        parts = urlsplit(url)
    except ValueError:
        return NO_ADDRESS
    if parts.scheme != "https":
        return Refusal("not_permitted", "only https addresses are read", "give one that begins with https://")
    if "@" in parts.netloc:
        return Refusal("not_permitted", "the address holds credentials", "give it without them")
    return parts


def _host(sixth: str | None, other: str | None) -> Internet | str | None:
    """A literal address in its one true spelling, or a full name in lower case."""
    try:
        return IPv6Address(sixth) if sixth is not None else IPv4Address(other)
    except ValueError:
        name = (other or "").lower()
        return name if _NAME.fullmatch(name) else None


_RESERVED = tuple(
    map(
        ip_network,
        """0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
        192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4
        2001::/23 2001:db8::/32 2002::/16 3fff::/20""".split(),  # Teredo is in 2001::/23, 6to4 is 2002::/16
    )
)
_GLOBAL = ip_network("2000::/3")  # all of IPv6 that is handed out for the public web
_TRANSLATED = ip_network("64:ff9b::/96")  # NAT64: leads to the IPv4 address in its last bits
_METADATA = frozenset(
    map(
        ip_address,
        """169.254.169.254 169.254.170.2 169.254.0.23 100.100.100.200 168.63.129.16 192.0.0.192
        fd00:ec2::254""".split(),
    )
)


def admits(address: Internet, also: frozenset[Internet] = frozenset()) -> bool:
    """Does a packet to this address end on the public web, or at one of the others? At a metadata service: never."""
    address = _plain(address)
    if address in _METADATA:
        return False
    if address in also:
        return True
    if isinstance(address, IPv6Address) and (address not in _GLOBAL or address.scope_id):
        return False
    return not any(address in network for network in _RESERVED)


def _plain(address: Internet) -> Internet:
    """The IPv4 address that an IPv6 one may be a way of writing."""
    if isinstance(address, IPv4Address):
        return address
    if address in _TRANSLATED:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address
