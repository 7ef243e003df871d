"""The dialler for addresses that came from a model or a document: the public web over https, and nothing else.

A name is looked up once. Every address that it has must be public, and the connection goes to one of those very
addresses, with the name only in TLS and in `host`; so a name that changes its mind in between changes nothing. Each
redirect starts all over. No cookie, credential, or accept-encoding is sent, and nothing of the environment counts:
no proxy (it would look the name up again, out of our sight), no SSL_CERT_FILE.

Written on `ipaddress` and httptools after the design of ssrfguard (check, resolve once, connect to what was checked)
rather than on it: its core connects blocking sockets and its asynchronous half needs httpx, so that no more than its
table of networks would be shared. Ours is short because it is strict: of IPv6 only what is handed out publicly.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from socket import SOCK_STREAM
from urllib.parse import urljoin

import httptools

from sightline.model.refusal import Refusal
from sightline.net.address import NO_ADDRESS, NOT_PUBLIC, PORT, Internet, Target, admits, aim

__all__ = ["LARGEST", "WEB", "Fetched", "Internet", "Reach", "Resolver", "fetch", "look_up"]

LARGEST = 32 * 1024 * 1024
_SECONDS = 30.0
_REDIRECTS = 5
_CONNECT_SECONDS = 10.0
_TRIES = 4  # addresses of one name that are dialled
_LARGEST_HEAD = 128 * 1024
_PIECE = 64 * 1024
_ELSEWHERE = "see whether the address is right, or fetch it by other means and give the file"

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a name, all of them. Asked once for each step of a fetch."""


@dataclass(frozen=True, slots=True)
class Fetched:
    data: bytes = field(repr=False)
    url: str  # where the bytes were in the end


@dataclass(frozen=True, slots=True)
class Reach:
    """What may be dialled. No setting, file or request makes one: another than `WEB` is only for code, as in tests."""

    ports: frozenset[int] = frozenset({PORT})
    also: frozenset[Internet] = frozenset()  # admitted although they are not public
    trust: ssl.SSLContext | None = None  # instead of the system's authorities


WEB = Reach()


async def look_up(host: str, port: int) -> Sequence[str]:
    """What the system knows about a name."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


async def fetch(
    url: str, *, most: int = LARGEST, seconds: float = _SECONDS, resolve: Resolver = look_up, reach: Reach = WEB
) -> Fetched | Refusal:
    """What is at an address, by way of at most five redirects, within so many bytes and seconds in all."""
    try:
        async with asyncio.timeout(seconds):
            for _ in range(_REDIRECTS + 1):
                found = await _step(url, most, resolve, reach)
                if not isinstance(found, str):
                    return found
                url = found
    except TimeoutError:
        return Refusal("unavailable", "the web server took too long", "try again later, or save the file yourself")
    return Refusal("not_permitted", f"the address leads on more than {_REDIRECTS} times", "give the last one itself")


async def _step(url: str, most: int, resolve: Resolver, reach: Reach) -> Fetched | str | Refusal:
    """What is there, or the address that it leads on to."""
    target = aim(url, reach.ports)
    if isinstance(target, Refusal):
        return target
    addresses = await _admitted(target, resolve, reach)
    if isinstance(addresses, Refusal):
        return addresses
    connection = await _connected(target, addresses, reach)
    if isinstance(connection, Refusal):
        return connection
    reader, writer = connection
    try:
        writer.write(_question(target))
        return await _answer(reader, target, most)
    except (OSError, httptools.HttpParserError, httptools.HttpParserUpgrade):
        return Refusal("unavailable", f"{target.authority} did not answer in HTTP to the end", _ELSEWHERE)
    finally:
        writer.transport.abort()


async def _admitted(target: Target, resolve: Resolver, reach: Reach) -> Sequence[Internet] | Refusal:
    """The addresses to dial: those that the host has, if every one of them may be dialled."""
    try:
        found = [target.host] if target.literal else await resolve(target.host, target.port)
        known = [ip_address(each) for each in found]
    except (OSError, ValueError):  # a name that nobody knows; an answer that is no address
        known = []
    if not known:
        return Refusal("not_found", f"{target.host} has no address that is known here", "check the name")
    return known if all(admits(each, reach.also) for each in known) else NOT_PUBLIC


async def _connected(
    target: Target, addresses: Sequence[Internet], reach: Reach
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | Refusal:
    why = "it could not be reached"
    for address in addresses[:_TRIES]:
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                return await asyncio.open_connection(
                    str(address), target.port, ssl=reach.trust or _trust(), server_hostname=target.host
                )
        except ssl.SSLCertVerificationError as trouble:
            why = f"its certificate was not accepted ({trouble.verify_message})"
        except OSError:
            continue
    return Refusal("unavailable", f"{target.authority} did not answer: {why}", "check the address")


@cache
def _trust() -> ssl.SSLContext:
    """The authorities that the system was built with, whatever the environment names."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["http/1.1"])
    if sys.platform == "win32":
        for certificate, encoding, _ in ssl.enum_certificates("ROOT"):
            if encoding == "x509_asn":
                context.load_verify_locations(cadata=certificate)
        return context
    places = ssl.get_default_verify_paths()
    file, folder = Path(places.openssl_cafile), Path(places.openssl_capath)
    if file.is_file() or folder.is_dir():
        context.load_verify_locations(file if file.is_file() else None, folder if folder.is_dir() else None)
    return context


def _question(target: Target) -> bytes:
    lines = (
        f"GET {target.path} HTTP/1.1",
        f"host: {target.authority}",
        "user-agent: sightline",
        "accept: image/*, video/*, application/pdf, */*;q=0.5",
        "connection: close",
    )
    return "\r\n".join((*lines, "", "")).encode("ascii")


class _Answer:
    """What the parser has understood so far."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self.body = bytearray()
        self.whole = False
        self.heard = 0  # bytes, of whatever kind
        self.parser = httptools.HttpResponseParser(self)

    @property
    def framed(self) -> bool:
        return b"content-length" in self.headers or b"transfer-encoding" in self.headers

    def feed(self, piece: bytes) -> None:
        self.heard += len(piece)
        self.parser.feed_data(piece)

    def exceeds(self, most: int) -> bool:
        """Larger than asked for, or more of it beside its body (trailers, extensions of chunks) than can be meant."""
        beside = self.heard - len(self.body)
        return len(self.body) > most or (not self.whole and beside > _LARGEST_HEAD + len(self.body))

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.status:  # what comes behind the body is nothing to us
            self.headers.setdefault(name.lower(), value)

    def on_headers_complete(self) -> None:
        status = self.parser.get_status_code()
        if not self.status and status >= 200:
            self.status = status

    def on_body(self, body: bytes) -> None:
        if not self.whole:  # a second answer was not asked for
            self.body += body

    def on_message_complete(self) -> None:
        if self.status:
            self.whole = True
        else:  # an interim answer; the real one follows
            self.headers.clear()


async def _answer(reader: asyncio.StreamReader, target: Target, most: int) -> Fetched | str | Refusal:
    answer = _Answer()
    while not answer.status:
        piece = await reader.read(_PIECE)
        if not piece or answer.heard + len(piece) > _LARGEST_HEAD:
            return Refusal("unavailable", f"{target.authority} did not answer in HTTP", _ELSEWHERE)
        answer.feed(piece)
    onward = _judged(answer, target, most)
    if onward is not None:
        return onward
    while not answer.whole and not answer.exceeds(most) and (piece := await reader.read(_PIECE)):
        answer.feed(piece)
    if answer.exceeds(most):
        return _too_large(most)
    if answer.framed and not answer.whole:
        return Refusal("unavailable", f"{target.authority} broke off in the middle", "try again later")
    return Fetched(bytes(answer.body), target.url)


def _judged(answer: _Answer, target: Target, most: int) -> str | Refusal | None:
    """What the head of an answer decides: an address to go on to, a refusal, or to read on."""
    location = answer.headers.get(b"location")
    if answer.status in (301, 302, 303, 307, 308) and location is not None:
        try:
            return urljoin(target.url, location.decode("utf-8"))
        except ValueError:
            return NO_ADDRESS
    if answer.status in (404, 410):
        return Refusal("not_found", f"there is nothing at that address of {target.authority}", "check the address")
    if answer.status != 200:
        return Refusal("unavailable", f"{target.authority} answered with status {answer.status}", "check the address")
    if answer.headers.get(b"content-encoding", b"identity").lower() != b"identity":
        return Refusal("unavailable", f"{target.authority} packed its answer although nobody asked it to", _ELSEWHERE)
    length = answer.headers.get(b"content-length", b"0")
    return _too_large(most) if length.isdigit() and int(length) > most else None


def _too_large(most: int) -> Refusal:
    amount = f"{most >> 20} MiB" if most >= 1 << 20 else f"{most} bytes"
    return Refusal("too_large", f"what is at that address is larger than {amount}", "give a smaller one")
