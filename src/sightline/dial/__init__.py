"""The outbound HTTP client: the one place that dials the addresses which the user or the client has chosen.

Bytes go through as they are: no redirect is followed, nothing is decompressed, no header is added but what HTTP
itself needs. Written by hand because it is most of what a request costs: a general client takes twice the time
of everything else together (see bench/).
"""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64encode
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from urllib.parse import SplitResult, unquote, urlsplit

from sightline.dial.exchange import Body, Buffer, Cut, Exchange, Header
from sightline.model.ports import Reply
from sightline.model.refusal import Refusal
from sightline.model.upstream import is_loopback

__all__ = ["Body", "Buffer", "Cut", "Dialler", "Exchange", "Header", "ProxyFor"]

_CONNECT_SECONDS = 8.0  # a client's stream is kept alive after ten: until then a fault has a status of its own
_IDLE_SECONDS = 30.0
_SILENCES = 4  # as often may the longest silence fit into an exchange
_MOST_IDLE = 64  # connections kept to one origin: more come only with a crowd, and a crowd has left when they rest
_LONGEST_KNOWN = 512  # of an address, for it to be remembered
_LARGEST_REPLY = 16 * 1024 * 1024
_AGAIN = "see whether it is up and its address is right, and repeat"

ProxyFor = Callable[[str, str], str | None]
"""The address of the proxy for a scheme and a host, if one is to be used."""


class Dialler:
    def __init__(self, proxy_for: ProxyFor = lambda scheme, host: None) -> None:
        self._proxy_for = proxy_for
        self._resting: defaultdict[tuple[str, str], list[Exchange]] = defaultdict(list)

    async def send(self, method: str, url: str, headers: Iterable[Header], body: Body) -> Exchange | Refusal:
        """Send a request and wait for the head of its answer; give the exchange back to `rest` when it is read.

        `headers` hold neither host nor the body's framing, except `transfer-encoding` for a body of unknown
        length, whose pieces must then be framed already.
        """
        where = _known(url) if len(url) <= _LONGEST_KNOWN else _parted(url)
        if isinstance(where, Refusal):
            return where
        try:
            verb = method.encode("ascii")
            head = _head(verb, where, headers, body)
            if isinstance(head, Refusal):
                return head
            # A kept connection may be closed just as it is taken up, so only what can be sent twice goes there.
            if isinstance(body, Sequence) and (kept := self._rested(where)) is not None:
                try:
                    return await _sent(kept, verb, head, body)
                except Cut:
                    if not kept.unheeded:
                        raise
            return await _sent(await self._dial(where), verb, head, body)
        except (Cut, OSError, ValueError) as error:
            return Refusal("unavailable", f"{_host(where)} did not answer: {_plain(error)}", _AGAIN)

    def rest(self, exchange: Exchange, url: str) -> None:
        """Keep a connection for the next request, if its answer was read to the end."""
        if exchange.reusable:
            exchange.rested_at = asyncio.get_running_loop().time()
            resting = self._resting[_origin(urlsplit(url))]
            resting.append(exchange)
            while len(resting) > _MOST_IDLE or resting[0].rested_at < exchange.rested_at - _IDLE_SECONDS:
                resting.pop(0).close()
        else:
            exchange.close()

    async def ask(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, seconds: float
    ) -> Reply | Refusal:
        """One whole exchange, bounded in size and time: so long nothing may come, and all may take a few times that."""
        pairs = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        try:
            async with asyncio.timeout(_SILENCES * seconds):
                async with asyncio.timeout(seconds):
                    exchange = await self.send(method, url, pairs, [body])
                if isinstance(exchange, Refusal):
                    return exchange
                try:
                    text = await exchange.read(_LARGEST_REPLY, seconds)
                finally:
                    self.rest(exchange, url)
        except (TimeoutError, Cut):
            return Refusal("unavailable", f"{_host(urlsplit(url))} did not answer to the end", _AGAIN)
        named = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in exchange.headers]
        return Reply(exchange.status, named, text)

    async def close(self) -> None:
        for exchanges in self._resting.values():
            for exchange in exchanges:
                exchange.close()
        self._resting.clear()

    def _rested(self, where: SplitResult) -> Exchange | None:
        resting = self._resting[_origin(where)]
        oldest = asyncio.get_running_loop().time() - _IDLE_SECONDS
        while resting:
            exchange = resting.pop()
            if not exchange.closed and exchange.rested_at > oldest:
                return exchange
            exchange.close()
        return None

    async def _dial(self, where: SplitResult) -> Exchange:
        host, port = where.hostname or "", where.port or _PORTS[where.scheme]
        secured = _trust() if where.scheme == "https" else None
        proxy = None if is_loopback(host) else self._proxy_for(where.scheme, host)
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(_CONNECT_SECONDS):
            if proxy is None:
                name = host if secured else None
                _, made = await loop.create_connection(Exchange, host, port, ssl=secured, server_hostname=name)
                return made
            return await _tunnel(loop, urlsplit(proxy), f"[{host}]" if ":" in host else host, port, secured)


async def _sent(exchange: Exchange, verb: bytes, head: bytes, body: Body) -> Exchange:
    try:
        await exchange.send(verb, head, body)
    except BaseException:  # a caller who is cancelled leaves no connection behind
        exchange.close()
        raise
    return exchange


_PORTS = {"http": 80, "https": 443}


def _parted(url: str) -> SplitResult | Refusal:
    try:
        parts = urlsplit(url)
        if parts.scheme in _PORTS and parts.hostname:
            return parts
    except ValueError:
        pass
    return Refusal("invalid_input", "the upstream's address is no http:// or https:// address", "mend its baseUrl")


_known = lru_cache(maxsize=64)(_parted)  # the same few all day


def _host(where: SplitResult) -> str:
    """Without the login that an address may hold."""
    return where.netloc.rpartition("@")[2]


def _origin(where: SplitResult) -> tuple[str, str]:
    return where.scheme, where.netloc


def _head(method: bytes, where: SplitResult, headers: Iterable[Header], body: Body) -> bytes | Refusal:
    path = (where.path or "/") + (f"?{where.query}" if where.query else "")
    lines = [b"%b %b HTTP/1.1\r\nhost: %b\r\n" % (method, path.encode("latin-1"), _host(where).encode("ascii"))]
    lines += [b"%b: %b\r\n" % header for header in headers]
    if isinstance(body, Sequence) and ((length := sum(map(len, body))) or method in (b"POST", b"PUT", b"PATCH")):
        lines.append(b"content-length: %d\r\n" % length)
    lines.append(b"\r\n")
    head = b"".join(lines)
    # One guard for all that stands here: what it holds came in queries, files and settings, too.
    breaks = len(lines) + 1
    if head.count(b"\n") != breaks or head.count(b"\r") != breaks or b"\0" in head:
        return Refusal("invalid_input", f"a header for {_host(where)} would hold a line break", "mend its key")
    return head


@cache
def _trust() -> ssl.SSLContext:
    """The system's certificates, or those that SSL_CERT_FILE and SSL_CERT_DIR name."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


async def _tunnel(
    loop: asyncio.AbstractEventLoop, proxy: SplitResult, host: str, port: int, secured: ssl.SSLContext | None
) -> Exchange:
    """A connection through a proxy, which sees the name of the host and nothing more."""
    head = f"CONNECT {host}:{port} HTTP/1.1\r\nhost: {host}:{port}\r\n"
    if proxy.username is not None:
        pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
        head += f"proxy-authorization: Basic {b64encode(pair.encode()).decode()}\r\n"
    _, made = await loop.create_connection(Exchange, proxy.hostname or "", proxy.port or _PORTS.get(proxy.scheme, 80))
    await _sent(made, b"CONNECT", f"{head}\r\n".encode("latin-1"), ())
    try:
        if made.status != 200:
            raise Cut("the proxy of the environment refused the connection")
        return made if secured is None else await made.secured(secured, host.strip("[]"))
    except BaseException:
        made.close()
        raise


def _plain(error: Exception) -> str:
    """An error in a few words; the words that make agents retry for minutes are not among them."""
    match error:
        case ConnectionRefusedError():
            return "nothing listens there"
        case ssl.SSLCertVerificationError():
            return f"its certificate was not accepted ({error.verify_message})"
        case TimeoutError():
            return "it could not be reached"
        case OSError() if error.strerror:
            return error.strerror.lower()
        case _:
            return str(error) or type(error).__name__
