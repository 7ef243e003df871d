"""RFC 9112, case by case: a request is read exactly as it says, or gets one 400 and its connection is closed.

Every refused request is followed by another one, which must never be served.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sightline.server import Message, Receive, Send
from tests.proxy.raw_http import exchange, plug, until
from tests.proxy.running_proxy import sightline
from tests.requirements import requirement
from tests.server.recorder import recording_upstream
from tests.server.serving import served

HIDDEN = b"POST /hidden HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 2\r\n\r\n{}"
LINE = b"POST /v1/messages HTTP/1.1"
HOST = b"host: 127.0.0.1"
CHUNKED = b"transfer-encoding: chunked"


def request(*headers: bytes, line: bytes = LINE, body: bytes = b"", host: bytes = HOST) -> bytes:
    return b"\r\n".join([line, *([host] if host else []), *headers, b"", body])


def chunks(text: bytes) -> bytes:
    return request(CHUNKED, body=text)


def target(text: bytes, method: bytes = b"GET") -> bytes:
    return request(line=b"%b %b HTTP/1.1" % (method, text))


REFUSED = {
    # Where a body ends (section 6).
    "a length, then chunks": request(b"content-length: 5", CHUNKED, body=b"0\r\n\r\n"),
    "chunks, then a length": request(CHUNKED, b"content-length: 5", body=b"0\r\n\r\n"),
    "a length of zero and chunks": request(b"content-length: 0", CHUNKED, body=b"0\r\n\r\n"),
    "two lengths that differ": request(b"content-length: 2", b"content-length: 0", body=b"{}"),
    "two lengths that agree": request(b"content-length: 2", b"content-length: 2", body=b"{}"),
    "a list of lengths": request(b"content-length: 2, 2", body=b"{}"),
    "a list of lengths that differ": request(b"content-length: 0, 2", body=b"{}"),
    "a length with a plus": request(b"content-length: +2", body=b"{}"),
    "a length with a minus": request(b"content-length: -2", body=b"{}"),
    "a length in hexadecimal": request(b"content-length: 0x2", body=b"{}"),
    "a length with a space in it": request(b"content-length: 2 0", body=b"{}"),
    "a length with a fraction": request(b"content-length: 2.0", body=b"{}"),
    "a length with an underscore": request(b"content-length: 1_0", body=b"{}"),
    "a length that is empty": request(b"content-length:", body=b"{}"),
    "a length beyond 64 bits": request(b"content-length: 99999999999999999999", body=b"{}"),
    "an unknown coding": request(b"transfer-encoding: xchunked", body=b"0\r\n\r\n"),
    "identity": request(b"transfer-encoding: identity", body=b"0\r\n\r\n"),
    "gzip, then chunked": request(b"transfer-encoding: gzip, chunked", body=b"0\r\n\r\n"),
    "gzip, then chunked, in two headers": request(b"transfer-encoding: gzip", CHUNKED, body=b"0\r\n\r\n"),
    "chunked, then gzip": request(b"transfer-encoding: chunked, gzip", body=b"0\r\n\r\n"),
    "chunked, then identity": request(CHUNKED, b"transfer-encoding: identity", body=b"0\r\n\r\n"),
    "chunked twice": request(b"transfer-encoding: chunked, chunked", body=b"0\r\n\r\n"),
    "chunked in two headers": request(CHUNKED, CHUNKED, body=b"0\r\n\r\n"),
    "chunked in quotes": request(b'transfer-encoding: "chunked"', body=b"0\r\n\r\n"),
    "chunked with a parameter": request(b"transfer-encoding: chunked;q=1", body=b"0\r\n\r\n"),
    "chunked behind a vertical tab": request(b"transfer-encoding: \x0bchunked", body=b"0\r\n\r\n"),
    "chunked behind a comma": request(b"transfer-encoding: ,chunked", body=b"0\r\n\r\n"),
    "chunked in a folded line": request(b"transfer-encoding:", b" chunked", body=b"0\r\n\r\n"),
    "no coding at all": request(b"transfer-encoding:", body=b"0\r\n\r\n"),
    "chunked in HTTP/1.0": request(CHUNKED, line=b"POST / HTTP/1.0", body=b"0\r\n\r\n"),
    # Chunks (section 7.1).
    "a chunk size beyond 64 bits": chunks(b"10000000000000002\r\n{}\r\n0\r\n\r\n"),
    "a chunk size that is empty": chunks(b"\r\n{}\r\n0\r\n\r\n"),
    "a chunk size with a minus": chunks(b"-2\r\n{}\r\n0\r\n\r\n"),
    "a chunk size with 0x": chunks(b"0x2\r\n{}\r\n0\r\n\r\n"),
    "a chunk size behind a space": chunks(b" 2\r\n{}\r\n0\r\n\r\n"),
    "a chunk size before a space": chunks(b"2 \r\n{}\r\n0\r\n\r\n"),
    "a chunk size before a tab": chunks(b"2\t;a\r\n{}\r\n0\r\n\r\n"),
    "a chunk size with a bare line feed": chunks(b"2\n{}\r\n0\r\n\r\n"),
    "a chunk size with a bare return": chunks(b"2\r{}\r\n0\r\n\r\n"),
    "a chunk extension with a line feed": chunks(b"2;a\nb\r\n{}\r\n0\r\n\r\n"),
    "a chunk extension with a return": chunks(b"2;a\rb\r\n{}\r\n0\r\n\r\n"),
    "a chunk extension with a null": chunks(b"2;a\0b\r\n{}\r\n0\r\n\r\n"),
    "a chunk extension without an end": chunks(b"2;" + b"a" * 1_500_000),
    "many small chunks with long extensions": chunks((b"1;" + b"a" * 2000 + b"\r\nx\r\n") * 700),
    "trailers without an end": chunks(b"0\r\n" + b"x-a: b\r\n" * 150_000),
    "a chunk that is longer than its size": chunks(b"2\r\n{}x\r\n0\r\n\r\n"),
    "a chunk without its end": chunks(b"2\r\n{}0\r\n\r\n"),
    "a chunk that ends in a bare line feed": chunks(b"2\r\n{}\n0\r\n\r\n"),
    "a last chunk that ends in bare line feeds": chunks(b"2\r\n{}\r\n0\n\n"),
    "a length in the trailers": chunks(b"0\r\ncontent-length: 70\r\n\r\n"),
    "a coding in the trailers": chunks(b"0\r\ntransfer-encoding: chunked\r\n\r\n"),
    "a trailer that is no header": chunks(b"0\r\nx y: z\r\n\r\n"),
    # Fields (section 5).
    "a bare line feed in the head": b"POST / HTTP/1.1\nhost: 127.0.0.1\n\n",
    "a bare line feed after the request line": b"POST / HTTP/1.1\nhost: 127.0.0.1\r\n\r\n",
    "a bare line feed after a header": b"POST / HTTP/1.1\r\nhost: 127.0.0.1\nx: y\r\n\r\n",
    "a bare line feed at the end of the head": b"POST / HTTP/1.1\r\nhost: 127.0.0.1\r\n\n",
    "a bare return in a value": request(b"x-a: b\rtransfer-encoding: chunked"),
    "a return before the end of a line": request(b"x-a: b\r"),
    "a folded value": request(b"x-a: b", b" c"),
    "a folded value with a tab": request(b"x-a: b", b"\tc"),
    "a space before the first header": request(host=b" host: 127.0.0.1"),
    "a space before the colon": request(b"content-length : 2", body=b"{}"),
    "a tab before the colon": request(b"content-length\t: 2", body=b"{}"),
    "a header without a colon": request(b"content-length"),
    "a header without a name": request(b": 2"),
    "a name with a bracket": request(b"x(a): b"),
    "a name with a control character": request(b"x\x01: b"),
    "a name with a null": request(b"content-length\0: 2"),
    "a name outside of ASCII": request(b"x\xe9: b"),
    "a value with a null": request(b"x-a: b\0c"),
    "a value with a control character": request(b"x-a: b\x01c"),
    "a value with a delete character": request(b"x-a: b\x7fc"),
    "more than a thousand headers": request(*(b"x-%d: y" % number for number in range(1001))),
    "a head that is too large": request(*(b"x-%d: %b" % (number, b"y" * 4000) for number in range(300))),
    "a header that is too large": request(b"x-a: " + b"y" * 1_000_000),
    # Hosts (section 3.2).
    "no host": request(host=b""),
    "two hosts": request(b"Host: 127.0.0.1"),
    "two hosts that differ": request(b"Host: evil.example"),
    "a host with a space": request(host=b"host: 127.0.0.1 evil.example"),
    "a host with a path": request(host=b"host: 127.0.0.1/evil"),
    "a host with a user": request(host=b"host: 127.0.0.1@evil.example"),
    "a host outside of ASCII": request(host=b"host: 127.0.0.1\xe9"),
    "two hosts in HTTP/1.0": request(b"Host: evil.example", line=b"POST / HTTP/1.0"),
    # Request lines (section 3).
    "a method that is unknown": request(line=b"FETCH / HTTP/1.1"),
    "a method in lower case": request(line=b"post / HTTP/1.1"),
    "a method with a control character": request(line=b"PO\x01ST / HTTP/1.1"),
    "a method with a colon": request(line=b"PO:ST / HTTP/1.1"),
    "a space before the method": request(line=b" POST / HTTP/1.1"),
    "CONNECT to an authority": target(b"api.example.com:443", b"CONNECT"),
    "CONNECT to a path": target(b"/", b"CONNECT"),
    "a target that is an authority": target(b"127.0.0.1:80"),
    "a target that is a name": target(b"messages"),
    "a target that is missing": request(line=b"GET HTTP/1.1"),
    "an asterisk for GET": target(b"*"),
    "a target with a space": target(b"/a b"),
    "a target with a tab": target(b"/a\tb"),
    "a target with a form feed": target(b"/a\x0cb"),
    "a target with a null": target(b"/a\0b"),
    "a target with a delete character": target(b"/a\x7fb"),
    "a target outside of ASCII": target(b"/a\xe9"),
    "a query outside of ASCII": target(b"/a?\xe9"),
    "a target with a fragment": target(b"/a#b"),
    "an absolute target of another scheme": target(b"ftp://127.0.0.1/a"),
    "an absolute target without a host": target(b"http:///a"),
    "an absolute target with a user": target(b"http://user:word@127.0.0.1/a"),
    "HTTP/0.9": b"GET /\r\n\r\n",
    "HTTP/0.9 by its name": b"GET / HTTP/0.9\r\n\r\n",
    "HTTP/1.2": request(line=b"GET / HTTP/1.2"),
    "HTTP/2.0": request(line=b"GET / HTTP/2.0"),
    "HTTP/3": request(line=b"GET / HTTP/3"),
    "HTTP/11": request(line=b"GET / HTTP/11"),
    "http/1.1 in lower case": request(line=b"GET / http/1.1"),
    "a version before a space": request(line=b"GET / HTTP/1.1 "),
    "another protocol": request(line=b"GET / GOPHER/1.1"),
    "the preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a TLS handshake": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "no HTTP": b"\r\n\r\nHELO there\r\n\r\n",
}

POSTED = (b"POST", b"/v1/messages", b"", b"{}")
Got = tuple[bytes, bytes, bytes, bytes]

READ: dict[str, tuple[bytes, list[Got]]] = {
    "a length": (request(b"content-length: 2", body=b"{}"), [POSTED]),
    "a length with zeros ahead": (request(b"content-length: 0002", body=b"{}"), [POSTED]),
    "a length with space around it": (request(b"content-length: \t2\t ", body=b"{}"), [POSTED]),
    "a name in other letters": (request(b"CoNtEnT-LeNgTh:2", body=b"{}"), [POSTED]),
    "chunks": (chunks(b"1\r\n{\r\n1\r\n}\r\n0\r\n\r\n"), [POSTED]),
    "chunks by another case": (request(b"Transfer-Encoding: CHUNKED ", body=b"2\r\n{}\r\n0\r\n\r\n"), [POSTED]),
    "a chunk size with zeros ahead": (chunks(b"0002\r\n{}\r\n000\r\n\r\n"), [POSTED]),
    "chunk extensions": (chunks(b'2;a=b;c="d;e"\r\n{}\r\n0;f\r\n\r\n'), [POSTED]),
    "trailers": (chunks(b"2\r\n{}\r\n0\r\nhost: evil.example\r\nx: y\r\n\r\n"), [POSTED]),
    "an upgrade in the trailers": (
        chunks(b"2\r\n{}\r\n0\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n") + request(),
        [POSTED, (b"POST", b"/v1/messages", b"", b"")],
    ),
    "neither length nor chunks": (request() * 2, [(b"POST", b"/v1/messages", b"", b"")] * 2),
    "an empty host": (request(b"content-length: 2", host=b"host:", body=b"{}"), [POSTED]),
    "a host with space behind it": (request(b"content-length: 2", host=b"host: a:80 ", body=b"{}"), [POSTED]),
    "a host in brackets": (request(b"content-length: 2", host=b"host: [::1]:80", body=b"{}"), [POSTED]),
    "a value outside of ASCII": (request(b"x-a: \xe9", b"content-length: 2", body=b"{}"), [POSTED]),
    "empty lines ahead": (b"\r\n\r\n" + request(b"content-length: 2", body=b"{}"), [POSTED]),
    "an empty line between": (request(b"content-length: 2", body=b"{}\r\n") * 2, [POSTED, POSTED]),
    "a query": (target(b"/a%20b?c=%2F&d?e"), [(b"GET", b"/a%20b", b"c=%2F&d?e", b"")]),
    "characters that clients do not escape": (target(b'/a[0]|{b}"^`\\<>'), [(b"GET", b'/a[0]|{b}"^`\\<>', b"", b"")]),
    "an asterisk for OPTIONS": (target(b"*", b"OPTIONS"), [(b"OPTIONS", b"*", b"", b"")]),
    "an absolute target": (target(b"HTTP://127.0.0.1:80/a?b"), [(b"GET", b"/a", b"b", b"")]),
    "an absolute target without a path": (target(b"http://127.0.0.1?b"), [(b"GET", b"/", b"b", b"")]),
    "HTTP/1.0": (request(b"content-length: 2", line=b"POST /v1/messages HTTP/1.0", body=b"{}"), [POSTED]),
    "HTTP/1.0 without a host": (
        request(b"content-length: 2", line=b"POST /v1/messages HTTP/1.0", host=b"", body=b"{}"),
        [POSTED],
    ),
    "pipelined requests": (
        request(b"content-length: 2", body=b"{}") + chunks(b"2\r\n{}\r\n0\r\n\r\n") + target(b"/a"),
        [POSTED, POSTED, (b"GET", b"/a", b"", b"")],
    ),
    "nothing is read behind a request that closes": (
        request(b"connection: close", b"content-length: 2", body=b"{}") + HIDDEN,
        [POSTED],
    ),
    "nothing is read behind HTTP/1.0": (
        request(b"connection: keep-alive", b"content-length: 2", line=b"POST /v1/messages HTTP/1.0", body=b"{}")
        + HIDDEN,
        [POSTED],
    ),
}

SEGMENTED = {"in one segment": 1, "in many segments": 400}


@dataclass
class Recording:
    """An application that keeps every request it has read to its end."""

    requests: list[Got] = field(default_factory=list)
    hosts: list[bytes] = field(default_factory=list)

    async def __call__(self, scope: dict[str, object], receive: Receive, send: Send) -> None:
        body = b""
        while True:
            message: Message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message["body"]
            if not message["more_body"]:
                break
        method, path, query = scope["method"], scope["raw_path"], scope["query_string"]
        assert isinstance(method, str)
        assert isinstance(path, bytes)
        assert isinstance(query, bytes)
        self.requests.append((method.encode(), path, query, body))
        self.hosts += [value for name, value in scope["headers"] if name == b"host"]  # type: ignore[attr-defined]
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})


def split(sent: bytes, count: int) -> Iterator[bytes]:
    size = -(-len(sent) // count)
    return (sent[at : at + size] for at in range(0, len(sent), size))


async def converse(port: int, sent: bytes, count: int) -> bytes:
    """Send in so many segments, each read before the next is sent, then stop sending, and return what came back."""
    loop = asyncio.get_running_loop()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            for segment in split(sent, count):
                await loop.sock_sendall(connection, segment)
                for _ in range(3):
                    await asyncio.sleep(0)
            connection.shutdown(socket.SHUT_WR)
        except OSError:  # it was closed already
            pass
        said = b""
        try:
            while piece := await loop.sock_recv(connection, 65536):
                said += piece
        except ConnectionResetError:
            pass
        return said


REFUSAL = re.compile(
    rb"HTTP/1\.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: \d+\r\n"
    rb"connection: close\r\n\r\nSightline: bad request: [^\r\n]{10,100}\n"
)


@pytest.mark.parametrize("count", SEGMENTED.values(), ids=SEGMENTED)
@pytest.mark.parametrize("case", REFUSED)
@requirement("http.rfc9112", "http.smuggling")
async def test_a_request_that_the_rfc_forbids_is_refused(case: str, count: int) -> None:
    app = Recording()
    async with served(app) as port:
        said = await converse(port, REFUSED[case] + HIDDEN, count)
    assert REFUSAL.fullmatch(said), said
    assert app.requests == []


@pytest.mark.parametrize("count", SEGMENTED.values(), ids=SEGMENTED)
@pytest.mark.parametrize("case", READ)
@requirement("http.rfc9112")
async def test_a_request_that_the_rfc_allows_is_accepted(case: str, count: int) -> None:
    sent, expected = READ[case]
    app = Recording()
    async with served(app) as port:
        said = await converse(port, sent, count)
    assert app.requests == expected
    assert said.count(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n") == said.count(b"HTTP/1.1") == len(expected)
    if "HTTP/1.0" in case or "closes" in case:
        assert b"connection: close" in said


@requirement("http.rfc9112")
async def test_the_host_of_an_absolute_target_replaces_the_header() -> None:
    app = Recording()
    async with served(app) as port:
        await converse(port, target(b"http://evil.example:80/a"), 1)
    assert app.hosts == [b"evil.example:80"]


@requirement("http.rfc9112")
async def test_a_400_follows_the_responses_that_are_due() -> None:
    app = Recording()
    async with served(app) as port:
        said = await converse(port, request() * 3 + request(b"bad header") + HIDDEN, 1)
    assert re.findall(rb"HTTP/1\.1 (\d+)", said) == [b"200", b"200", b"200", b"400"]
    assert len(app.requests) == 3


@requirement("http.rfc9112", "http.smuggling")
def test_a_refused_request_does_not_reach_an_upstream(tmp_path: Path) -> None:
    """Through the whole proxy, to a real socket that keeps what it gets."""
    with recording_upstream() as upstream, sightline(tmp_path, upstream.url) as proxy:
        for case, sent in REFUSED.items():
            with plug(proxy.url) as connection:
                try:
                    connection.sendall(sent + HIDDEN)
                    connection.shutdown(socket.SHUT_WR)
                    said = until(connection, b"\0never")
                except OSError:
                    said = b""  # it went on sending, and was cut off
                assert REFUSAL.fullmatch(said) or (not said and len(sent) > 1_000_000), (case, said)
        assert upstream.requests == []
        assert exchange(proxy.url, "/v1/messages", b"{}").status == 200
        assert upstream.summaries == [(LINE, b"{}")]
