"""The dialler for addresses that came from a model or a document: the public web over https, and nothing else.

A name is looked up once. Every address that it has must be public, and the connection goes to one of those very
addresses, with the name only in TLS and in `host`; so a name that changes its mind in between changes nothing. Each
redirect starts all over. No cookie, credential, or accept-encoding is sent, and nothing of the environment counts:
no proxy (it would look the name up again, out of our sight), no SSL_CERT_FILE.

The connection is opened here and handed to the HTTP exchange of `dial`. Checking, resolving once and connecting to
what was checked follows the design of ssrfguard, whose core uses blocking sockets and whose asynchronous half needs
httpx; so only its table of networks could be shared. Of IPv6 only the publicly assigned ranges are allowed.
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

from sightline.dial.exchange import Cut, Endless, Exchange
from sightline.model.refusal import Refusal
from sightline.net.address import NO_ADDRESS, NOT_PUBLIC, PORT, Internet, Target, admits, aim

__all__ = ["LARGEST", "WEB", "Fetched", "Internet", "Reach", "Resolver", "fetch", "look_up"]

LARGEST = 32 * 1024 * 1024
_SECONDS = 30.0
_REDIRECTS = 5
_CONNECT_SECONDS = 10.0
_TRIES = 4  # addresses of one name that are dialled
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
    """Return what is at an address, or the address that it redirects to."""
    target = aim(url, reach.ports)
    if isinstance(target, Refusal):
        return target
    addresses = await _admitted(target, resolve, reach)
    if isinstance(addresses, Refusal):
        return addresses
    exchange = await _connect(target, addresses, reach)
    if isinstance(exchange, Refusal):
        return exchange
    try:
        await exchange.send(b"GET", _write_head(target), ())
        return _judge_head(exchange, target, most) or await _read_body(exchange, target, most)
    except (Cut, OSError):
        return Refusal("unavailable", f"{target.authority} did not answer in HTTP to the end", _ELSEWHERE)
    finally:
        exchange.close()


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


async def _connect(target: Target, addresses: Sequence[Internet], reach: Reach) -> Exchange | Refusal:
    """Open a connection to the first of the checked addresses that takes one."""
    loop, why = asyncio.get_running_loop(), "it could not be reached"
    for address in addresses[:_TRIES]:
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                trust = reach.trust or _trust()
                _, exchange = await loop.create_connection(
                    Exchange, str(address), target.port, ssl=trust, server_hostname=target.host
                )
                return exchange
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


def _write_head(target: Target) -> bytes:
    lines = (
        f"GET {target.path} HTTP/1.1",
        f"host: {target.authority}",
        "user-agent: sightline",
        "accept: image/*, video/*, application/pdf, */*;q=0.5",
        "connection: close",
    )
    return "\r\n".join((*lines, "", "")).encode("ascii")


def _judge_head(exchange: Exchange, target: Target, most: int) -> str | Refusal | None:
    """Return the address to go on to, a refusal, or None where the body is to be read."""
    status, location = exchange.status, exchange.header(b"location")
    if status in (301, 302, 303, 307, 308) and location:
        try:
            return urljoin(target.url, location.decode("utf-8"))
        except ValueError:
            return NO_ADDRESS
    if status in (404, 410):
        return Refusal("not_found", f"there is nothing at that address of {target.authority}", "check the address")
    if status != 200:
        return Refusal("unavailable", f"{target.authority} answered with status {status}", "check the address")
    if exchange.header(b"content-encoding").lower() not in (b"", b"identity"):
        return Refusal("unavailable", f"{target.authority} packed its answer although nobody asked it to", _ELSEWHERE)
    length = exchange.header(b"content-length")
    return _too_large(most) if length.isdigit() and int(length) > most else None


async def _read_body(exchange: Exchange, target: Target, most: int) -> Fetched | Refusal:
    """Read the whole body, or refuse one that is larger than allowed or breaks off."""
    try:
        body = await exchange.read(most + 1)
    except Endless:
        return _too_large(most)
    except Cut:
        return Refusal("unavailable", f"{target.authority} broke off in the middle", "try again later")
    return Fetched(body, target.url) if len(body) <= most else _too_large(most)


def _too_large(most: int) -> Refusal:
    amount = f"{most >> 20} MiB" if most >= 1 << 20 else f"{most} bytes"
    return Refusal("too_large", f"what is at that address is larger than {amount}", "give a smaller one")
