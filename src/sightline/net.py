"""The guarded HTTP client for addresses from a model or a document: the public web over https, and nothing else.

`parse_web_address` checks what an address says by itself. Then the name is resolved once. Every IP address that it has
must be public, and the connection goes to one of those checked addresses, with the name only in TLS and in `host`: so a
name that resolves differently the next time doesn't matter. Each redirect is checked in the same way. No cookie,
credential or accept-encoding is sent, and the environment is ignored: no proxy (it would resolve the name again,
unchecked), no SSL_CERT_FILE.

The connection is opened here and passed to the HTTP exchange of `dial`. Checking, resolving once and connecting to the
checked address follows the design of ssrfguard, whose core uses blocking sockets and whose asynchronous half needs
httpx; so only its table of networks could be shared. The table is explicit because `ipaddress.is_global` answers
a different question, and differently in each version of Python: an address that NAT64 translates to 127.0.0.1 is
global, and so is a multicast group. Of IPv6 only the publicly assigned range is allowed.

`fetch_web_file` is what the rest of Sightline calls: it fetches only where settings or a host's code allow it.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path
from socket import SOCK_STREAM
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit

from sightline.dial import BrokenResponse, EndlessResponse, Exchange
from sightline.model.fence import to_one_line
from sightline.model.refusal import Refusal
from sightline.model.value import value_class

HTTPS_PORT = 443
MAX_FETCH_BYTES = 32 * 1024 * 1024
_SECONDS = 30.0
_MAX_REDIRECTS = 5
_CONNECT_SECONDS = 10.0
_MAX_TRIES = 4  # IP addresses of one name that are tried
_MAX_URL_LENGTH = 8192
_REMEDY = "check the address, or download the file yourself and give its path"

IpAddress = IPv4Address | IPv6Address
Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns all IP addresses of a name. Called once for each redirect of a fetch."""

NOT_AN_ADDRESS = Refusal("invalid_input", "that is not a web address", "give one that starts with https://")
NOT_PUBLIC = Refusal("not_permitted", "the address is not on the public web", "give a public https address")
_BAD_HOST = Refusal(
    "not_permitted",
    "the host in the address is not a full domain name",
    "write the full name in ASCII letters (xn-- where needed)",
)


@value_class
class FetchedFile:
    data: bytes = field(repr=False)
    url: str  # after redirects


@dataclass(frozen=True, slots=True)  # a permission stays what it is
class FetchPolicy:
    """What may be fetched. No setting, file or request creates one: only code does, as in tests."""

    ports: frozenset[int] = frozenset({HTTPS_PORT})
    extra_addresses: frozenset[IpAddress] = frozenset()  # allowed although they are not public
    tls_context: ssl.SSLContext | None = None  # instead of the system's certificates


PUBLIC_WEB = FetchPolicy()


async def resolve_name(host: str, port: int) -> Sequence[str]:
    """Return the IP addresses of a name, from the system's resolver."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


async def fetch(
    url: str,
    *,
    max_bytes: int = MAX_FETCH_BYTES,
    seconds: float = _SECONDS,
    resolve: Resolver = resolve_name,
    policy: FetchPolicy = PUBLIC_WEB,
) -> FetchedFile | Refusal:
    """Return the file at an address, after at most five redirects; `most` bytes and `seconds` bound all of it."""
    try:
        async with asyncio.timeout(seconds):
            for _ in range(_MAX_REDIRECTS + 1):
                outcome = await _fetch_once(url, max_bytes, resolve, policy)
                if not isinstance(outcome, str):
                    return outcome
                url = outcome
    except TimeoutError:
        return Refusal("unavailable", "the web server took too long", "try again later, or download the file yourself")
    return Refusal("not_permitted", f"the address redirects more than {_MAX_REDIRECTS} times", "give the final address")


async def _fetch_once(url: str, max_bytes: int, resolve: Resolver, policy: FetchPolicy) -> FetchedFile | str | Refusal:
    """Return the file at an address, or the address that it redirects to."""
    target = parse_web_address(url, policy.ports)
    if isinstance(target, Refusal):
        return target
    addresses = await _find_addresses(target, resolve, policy)
    if isinstance(addresses, Refusal):
        return addresses
    exchange = await _connect(target, addresses, policy)
    if isinstance(exchange, Refusal):
        return exchange
    try:
        await exchange.send(b"GET", _build_head(target), ())
        return _check_response_head(exchange, target, max_bytes) or await _read_body(exchange, target, max_bytes)
    except (BrokenResponse, OSError):
        return Refusal("unavailable", f"{target.authority} did not send a complete HTTP response", _REMEDY)
    finally:
        exchange.close()


# Addresses. Pure: nothing here resolves a name.

_AMBIGUOUS = re.compile(r"[\x00-\x20\x7f\\\ud800-\udfff]")  # urlsplit drops some, and some clients read a slash
_AUTHORITY = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9_.-]+))(?::([0-9]{1,5}))?", re.IGNORECASE | re.ASCII)
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
# At least two labels: a single one is a name of the local network. A last label that starts with a digit is an old way
# to write a number (0x7f.1, 0177.0.0.1, 2130706433), and an empty one is another spelling of the same name.
_NAME = re.compile(rf"(?=.{{1,253}}$)(?:{_LABEL}\.)+(?![0-9]){_LABEL}", re.ASCII)
_UNQUOTED = "/%:@!$&'()*+,;=~-._"
_METADATA_NAMES = frozenset(
    """metadata.google.internal metadata.goog metadata.azure.com metadata.azure.internal metadata.aws.amazon.com
    instance-data.ec2.internal metadata.tencentyun.com metadata.platformequinix.com""".split()
)
_RESERVED = tuple(
    map(
        ip_network,
        """0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
        192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4
        2001::/23 2001:db8::/32 2002::/16 3fff::/20""".split(),  # Teredo is in 2001::/23, 6to4 is 2002::/16
    )
)
_PUBLIC_IPV6 = ip_network("2000::/3")  # the part of IPv6 that is assigned for the public web
_NAT64 = ip_network("64:ff9b::/96")  # leads to the IPv4 address in its last bits
_METADATA_ADDRESSES = frozenset(
    map(
        ip_address,
        """169.254.169.254 169.254.170.2 169.254.0.23 100.100.100.200 168.63.129.16 192.0.0.192
        fd00:ec2::254""".split(),
    )
)


@value_class
class WebAddress:
    """An https address that is allowed as far as it can be judged without resolving its name."""

    host: str
    port: int
    path: str
    is_ip: bool  # the host is an IP address, not a name

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == HTTPS_PORT else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        return f"https://{self.authority}{self.path}"


def parse_web_address(url: str, ports: frozenset[int] = frozenset({HTTPS_PORT})) -> WebAddress | Refusal:
    """Return the parts of an https address, or a refusal if the address alone shows that it is not allowed."""
    parts = _split_https_url(url)
    if isinstance(parts, Refusal):
        return parts
    match = _AUTHORITY.fullmatch(parts.netloc)
    host = _parse_host(match[1], match[2]) if match else None
    if match is None or host is None:
        return _BAD_HOST
    port = int(match[3] or HTTPS_PORT)
    if port not in ports:
        return Refusal("not_permitted", f"port {port} is not allowed", "give an address on the default port of https")
    if host in _METADATA_NAMES:
        return NOT_PUBLIC
    query = f"?{quote(parts.query, safe=_UNQUOTED + '?')}" if parts.query else ""
    return WebAddress(str(host), port, quote(parts.path or "/", safe=_UNQUOTED) + query, not isinstance(host, str))


def _split_https_url(url: str) -> SplitResult | Refusal:
    if len(url) > _MAX_URL_LENGTH or _AMBIGUOUS.search(url):
        return NOT_AN_ADDRESS
    try:
        parts = urlsplit(url)
    except ValueError:
        return NOT_AN_ADDRESS
    if parts.scheme != "https":
        return Refusal("not_permitted", "only https addresses are fetched", "give one that starts with https://")
    if "@" in parts.netloc:
        return Refusal("not_permitted", "the address contains credentials", "give it without them")
    return parts


def _parse_host(ipv6: str | None, name_or_ipv4: str | None) -> IpAddress | str | None:
    """Return an IP address, a full name in lower case, or None if it is neither."""
    try:
        return IPv6Address(ipv6) if ipv6 is not None else IPv4Address(name_or_ipv4)
    except ValueError:
        name = (name_or_ipv4 or "").lower()
        return name if _NAME.fullmatch(name) else None


def is_allowed_address(address: IpAddress, extra_addresses: frozenset[IpAddress] = frozenset()) -> bool:
    """Return whether an address is on the public web or among the extra ones; false for any metadata service."""
    address = _unwrap_ipv4(address)
    if address in _METADATA_ADDRESSES:
        return False
    if address in extra_addresses:
        return True
    if isinstance(address, IPv6Address) and (address not in _PUBLIC_IPV6 or address.scope_id):
        return False
    return not any(address in network for network in _RESERVED)


def _unwrap_ipv4(address: IpAddress) -> IpAddress:
    """Return the IPv4 address that an IPv6 address contains, if it does."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address


# The connection and the response.


async def _find_addresses(target: WebAddress, resolve: Resolver, policy: FetchPolicy) -> Sequence[IpAddress] | Refusal:
    """Return the IP addresses of a host, or a refusal unless every one of them is allowed."""
    try:
        found = [target.host] if target.is_ip else await resolve(target.host, target.port)
        addresses = [ip_address(each) for each in found]
    except (OSError, ValueError):  # the name is unknown, or the resolver returned something else than an address
        addresses = []
    if not addresses:
        return Refusal("not_found", f"the name {target.host} can't be resolved", "check the name")
    return addresses if all(is_allowed_address(each, policy.extra_addresses) for each in addresses) else NOT_PUBLIC


async def _connect(target: WebAddress, addresses: Sequence[IpAddress], policy: FetchPolicy) -> Exchange | Refusal:
    """Open a connection to the first of the checked addresses that accepts one."""
    loop, reason = asyncio.get_running_loop(), "it could not be reached"
    for address in addresses[:_MAX_TRIES]:
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                context = policy.tls_context or _load_tls_context()
                _, exchange = await loop.create_connection(
                    Exchange, str(address), target.port, ssl=context, server_hostname=target.host
                )
                return exchange
        except ssl.SSLCertVerificationError as error:
            reason = f"its certificate was not accepted ({error.verify_message})"
        except OSError:
            continue
    return Refusal("unavailable", f"the request to {target.authority} failed: {reason}", "check the address")


@cache
def _load_tls_context() -> ssl.SSLContext:
    """Return a context with the certificates that the system was built with, whatever the environment says."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["http/1.1"])
    if sys.platform == "win32":
        for certificate, encoding, _ in ssl.enum_certificates("ROOT"):
            if encoding == "x509_asn":
                context.load_verify_locations(cadata=certificate)
        return context
    paths = ssl.get_default_verify_paths()
    file, folder = Path(paths.openssl_cafile), Path(paths.openssl_capath)
    if file.is_file() or folder.is_dir():
        context.load_verify_locations(file if file.is_file() else None, folder if folder.is_dir() else None)
    return context


def _build_head(target: WebAddress) -> bytes:
    lines = (
        f"GET {target.path} HTTP/1.1",
        f"host: {target.authority}",
        "user-agent: sightline",
        "accept: image/*, video/*, application/pdf, */*;q=0.5",
        "connection: close",
    )
    return "\r\n".join((*lines, "", "")).encode("ascii")


def _check_response_head(exchange: Exchange, target: WebAddress, max_bytes: int) -> str | Refusal | None:
    """Return the address to go on to, a refusal, or None if the body can be read."""
    status, location = exchange.status, exchange.get_header(b"location")
    if status in (301, 302, 303, 307, 308) and location:
        try:
            return urljoin(target.url, location.decode("utf-8"))
        except ValueError:
            return NOT_AN_ADDRESS
    if status in (404, 410):
        return Refusal("not_found", f"{target.authority} has nothing at that address", "check the address")
    if status != 200:
        return Refusal("unavailable", f"{target.authority} answered with status {status}", "check the address")
    if exchange.get_header(b"content-encoding").lower() not in (b"", b"identity"):
        return Refusal("unavailable", f"{target.authority} compressed its response without being asked to", _REMEDY)
    length = exchange.get_header(b"content-length")
    return _refuse_size(max_bytes) if length.isdigit() and int(length) > max_bytes else None


async def _read_body(exchange: Exchange, target: WebAddress, max_bytes: int) -> FetchedFile | Refusal:
    """Return the whole body, or a refusal if it is too large or breaks off."""
    try:
        body = await exchange.read(max_bytes + 1)
    except EndlessResponse:
        return _refuse_size(max_bytes)
    except BrokenResponse:
        return Refusal("unavailable", f"the response of {target.authority} broke off", "try again later")
    return FetchedFile(body, target.url) if len(body) <= max_bytes else _refuse_size(max_bytes)


def _refuse_size(max_bytes: int) -> Refusal:
    amount = f"{max_bytes >> 20} MiB" if max_bytes >= 1 << 20 else f"{max_bytes} bytes"
    return Refusal("too_large", f"the file at that address is larger than {amount}", "give a smaller one")


@dataclass(frozen=True, slots=True)
class WebGrant:
    """The permission to fetch. Only code can set another resolver or policy; the settings cannot."""

    resolve: Resolver = resolve_name
    reach: FetchPolicy = PUBLIC_WEB


@value_class
class WebFile:
    data: bytes = field(repr=False)
    url: str  # after redirects
    name: str  # the last part of its path; may be empty


async def fetch_web_file(url: str, grant: WebGrant | None, *, max_bytes: int = MAX_FETCH_BYTES) -> WebFile | Refusal:
    """Fetch a file. Without a grant, refuse: no name is looked up and no connection is made."""
    if grant is None:
        return _refuse_address(to_one_line(url)[:200])
    fetched = await fetch(url, max_bytes=max_bytes, resolve=grant.resolve, policy=grant.reach)
    if isinstance(fetched, Refusal):
        return fetched
    return WebFile(fetched.data, fetched.url, unquote(urlsplit(fetched.url).path).rpartition("/")[2])


def _refuse_address(url: str) -> Refusal:
    if url[:8].lower().startswith(("http://", "https://")):
        return Refusal(
            "not_permitted",
            "web addresses are not fetched while the setting network is off",
            "download it and view the file, or run: sightline config set network on",
        )
    return Refusal("not_permitted", f"addresses that begin with {url.split(':')[0]}: are not supported", "give a path")
