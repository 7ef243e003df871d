"""The HTTP client for addresses that the user or the client has configured.

Bytes pass through unchanged: no redirect is followed, nothing is decompressed, and only the headers that HTTP itself
needs are added. It is our own because it is most of what a request costs: a general client takes twice the time of
everything else together (see bench/).
"""

from __future__ import annotations

import asyncio
import ssl
import time
from base64 import b64encode
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import field
from functools import cache
from typing import cast
from urllib.parse import SplitResult, unquote, urlsplit

from sightline.dial.exchange import Body, BrokenResponse, Buffer, EndlessResponse, Exchange, Header, Origin, is_whole
from sightline.model.ports import HttpReply
from sightline.model.profile import is_loopback
from sightline.model.refusal import Refusal
from sightline.model.value import value_class

__all__ = [
    "Body",
    "BrokenResponse",
    "Buffer",
    "EndlessResponse",
    "Exchange",
    "FindProxy",
    "Header",
    "HttpClient",
    "WrittenHead",
    "is_whole",
    "write_head",
]

_CONNECT_SECONDS = 8.0  # less than the ten after which a stream gets keep-alives: an error can still have its status
_IDLE_SECONDS = 30.0
_TOTAL_TO_SILENCE = 4  # the total time of a request, in multiples of the longest silence
_MAX_IDLE = 64  # idle connections to one origin
_MAX_REPLY_BYTES = 16 * 1024 * 1024
_METHODS_WITH_BODY = (b"POST", b"PUT", b"PATCH")  # whose requests have a length even if there is no body
_REMEDY = "check that it is running and that its address is right, then try again"

FindProxy = Callable[[str, str], str | None]
"""Returns the address of the proxy to use for a scheme and a host, or None."""


class HttpClient:
    def __init__(self, find_proxy: FindProxy = lambda scheme, host: None) -> None:
        self._find_proxy = find_proxy
        self._idle: defaultdict[Origin, list[Exchange]] = defaultdict(list)

    def send(self, method: str, url: str, headers: Iterable[Header], body: Body) -> Awaitable[Exchange | Refusal]:
        """Send a request whose head is used once."""
        return self.send_request(write_head(method, url, headers), body)

    async def send_request(self, head: WrittenHead | Refusal, body: Body) -> Exchange | Refusal:
        """Send a request and wait for the head of its response; pass the exchange to `release` once it is read."""
        if isinstance(head, Refusal):
            return head
        try:
            # An idle connection may be closed just as it is reused: use one only if the body can be sent again.
            if not is_whole(body):
                exchange = await self._connect(head)
                pieces = cast("AsyncIterator[bytes]", body)
                return await exchange.send(head.method, head.lines + b"\r\n", (), pieces)
            lines = head.end_with_length(sum(map(len, body)))
            if (idle := self._take_idle(head.origin)) is not None:
                try:
                    return await idle.send(head.method, lines, body)
                except BrokenResponse:
                    if not idle.can_retry:
                        raise
            exchange = await self._connect(head)
            return await exchange.send(head.method, lines, body)
        except (BrokenResponse, OSError, ValueError) as error:
            return _describe_failure(head.address, error)

    def release(self, exchange: Exchange) -> None:
        """Keep a connection for the next request if its response was read completely; else close it."""
        if not exchange.reusable:
            exchange.close()
            return
        exchange.idle_since = now = time.monotonic()
        idle = self._idle[exchange.origin]
        idle.append(exchange)
        while len(idle) > _MAX_IDLE or idle[0].idle_since < now - _IDLE_SECONDS:
            idle.pop(0).close()

    async def ask(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, seconds: float
    ) -> HttpReply | Refusal:
        """Send a request and return its whole reply; `seconds` bounds each silence, and 4 times that the total."""
        pairs = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        try:
            async with asyncio.timeout(_TOTAL_TO_SILENCE * seconds):
                async with asyncio.timeout(seconds):
                    exchange = await self.send(method, url, pairs, [body])
                if isinstance(exchange, Refusal):
                    return exchange
                try:
                    text = await exchange.read(_MAX_REPLY_BYTES, seconds)
                finally:
                    self.release(exchange)
        except (TimeoutError, BrokenResponse):
            return Refusal("unavailable", f"{_get_host(urlsplit(url))} did not send a complete response", _REMEDY)
        received = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in exchange.headers]
        return HttpReply(exchange.status, received, text)

    async def close(self) -> None:
        for exchanges in self._idle.values():
            for exchange in exchanges:
                exchange.close()
        self._idle.clear()

    def _take_idle(self, origin: Origin) -> Exchange | None:
        idle = self._idle[origin]
        while idle:
            exchange = idle.pop()
            if not exchange.closed and exchange.idle_since > time.monotonic() - _IDLE_SECONDS:
                return exchange
            exchange.close()
        return None

    async def _connect(self, head: WrittenHead) -> Exchange:
        exchange = await self._open_connection(head.address)
        exchange.origin = head.origin
        return exchange

    async def _open_connection(self, address: SplitResult) -> Exchange:
        host, port = address.hostname or "", address.port or _DEFAULT_PORTS[address.scheme]
        tls = _load_tls_context() if address.scheme == "https" else None
        proxy = None if is_loopback(host) else self._find_proxy(address.scheme, host)
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(_CONNECT_SECONDS):
            if proxy is None:
                name = host if tls else None
                _, exchange = await loop.create_connection(Exchange, host, port, ssl=tls, server_hostname=name)
                return exchange
            return await _open_tunnel(loop, urlsplit(proxy), f"[{host}]" if ":" in host else host, port, tls)


_DEFAULT_PORTS = {"http": 80, "https": 443}


@value_class
class WrittenHead:
    """The head of requests to one address that differ in the length of their bodies only."""

    method: bytes
    address: SplitResult
    origin: Origin
    lines: bytes = field(repr=False)  # without the length of the body and the empty line that ends the head

    def end_with_length(self, length: int) -> bytes:
        """Return the whole head of a request whose body has this length."""
        if length or self.method in _METHODS_WITH_BODY:
            return b"%bcontent-length: %d\r\n\r\n" % (self.lines, length)
        return self.lines + b"\r\n"


def write_head(method: str, url: str, headers: Iterable[Header]) -> WrittenHead | Refusal:
    """Return the head of a request, or a refusal if its address or a header can't be sent.

    `headers` have neither host nor the body's framing, except `transfer-encoding` or `content-length` for a body that
    is streamed, whose pieces must then be framed already.
    """
    address = _split_url(url)
    if isinstance(address, Refusal):
        return address
    try:
        verb = method.encode("ascii")
        path = (address.path or "/") + (f"?{address.query}" if address.query else "")
        first = b"%b %b HTTP/1.1\r\nhost: %b\r\n" % (
            verb, path.encode("latin-1"), _get_host(address).encode("ascii")
        )  # fmt: skip
    except ValueError as error:
        return _describe_failure(address, error)
    fields = [name + b": " + value + b"\r\n" for name, value in headers]
    lines = b"".join([first, *fields])
    # Parts of the head come from queries, files and settings: none of them may add a line.
    breaks = len(fields) + 2
    if lines.count(b"\n") != breaks or lines.count(b"\r") != breaks or lines.find(b"\0") >= 0:
        return Refusal(
            "invalid_input", f"a header for {_get_host(address)} contains a line break", "correct its key or address"
        )
    return WrittenHead(verb, address, (address.scheme, address.netloc), lines)


def _split_url(url: str) -> SplitResult | Refusal:
    try:
        parts = urlsplit(url)
        if parts.scheme in _DEFAULT_PORTS and parts.hostname:
            return parts
    except ValueError:
        pass
    return Refusal(
        "invalid_input", "the upstream's address does not start with http:// or https://", "correct its baseUrl"
    )


def _get_host(address: SplitResult) -> str:
    """Return host and port, without the user name and password that an address may have."""
    return address.netloc.rpartition("@")[2]


@cache
def _load_tls_context() -> ssl.SSLContext:
    """Return a context with the system's certificates, or those that SSL_CERT_FILE and SSL_CERT_DIR name."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


async def _open_tunnel(
    loop: asyncio.AbstractEventLoop, proxy: SplitResult, host: str, port: int, tls: ssl.SSLContext | None
) -> Exchange:
    """Return a connection through a proxy, which sees only the name of the host."""
    head = f"CONNECT {host}:{port} HTTP/1.1\r\nhost: {host}:{port}\r\n"
    if proxy.username is not None:
        pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
        head += f"proxy-authorization: Basic {b64encode(pair.encode()).decode()}\r\n"
    _, exchange = await loop.create_connection(
        Exchange, proxy.hostname or "", proxy.port or _DEFAULT_PORTS.get(proxy.scheme, 80)
    )
    await exchange.send(b"CONNECT", f"{head}\r\n".encode("latin-1"), ())
    try:
        if exchange.status != 200:
            raise BrokenResponse("the HTTP proxy of this machine refused the connection")
        return exchange if tls is None else await exchange.start_tls(tls, host.strip("[]"))
    except BaseException:
        exchange.close()
        raise


def _describe_failure(address: SplitResult, error: Exception) -> Refusal:
    return Refusal("unavailable", f"the request to {_get_host(address)} failed: {_explain_error(error)}", _REMEDY)


def _explain_error(error: Exception) -> str:
    """Return an error in a few words, without those that make agents retry for minutes."""
    match error:
        case ConnectionRefusedError():
            return "nothing is listening there"
        case ssl.SSLCertVerificationError():
            return f"its certificate was not accepted ({error.verify_message})"
        case TimeoutError():
            return "it could not be reached"
        case OSError() if error.strerror:
            return error.strerror.lower()
        case _:
            return str(error) or type(error).__name__
