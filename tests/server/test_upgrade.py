"""An Upgrade is ignored: the request is read to its end, whatever its framing."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.proxy.raw_http import plug
from tests.proxy.running_proxy import sightline
from tests.requirements import requirement
from tests.server.recorder import recording_upstream

BODY = b'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}'
assert len(BODY) == 8 + 0x40
SECOND = b'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"again"}]}'
LINE = b"POST /v1/messages HTTP/1.1"


def post(*headers: bytes, body: bytes) -> bytes:
    return b"\r\n".join([LINE, b"host: 127.0.0.1", *headers, b"", body])


H2C = (b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA")
UPGRADES = {
    "h2c": H2C,
    "websocket": (b"connection: upgrade", b"upgrade: websocket", b"sec-websocket-version: 13"),
    "tls": (b"connection: keep-alive, UPGRADE", b"upgrade: TLS/1.0"),
    "after the length": (b"content-length: %d" % len(BODY), *H2C),
}
FRAMINGS = {
    "content-length": (b"content-length: %d" % len(BODY), BODY),
    "chunked": (
        b"transfer-encoding: chunked",
        b"9\r\n%b\r\n%x\r\n%b\r\n0\r\n\r\n" % (BODY[:9], len(BODY) - 9, BODY[9:]),
    ),
    "chunked with a trailer": (b"transfer-encoding: chunked", b"%x\r\n%b\r\n0\r\nx-a: b\r\n\r\n" % (len(BODY), BODY)),
}


def whole(request: bytes) -> Iterator[bytes]:
    yield request


def byte_by_byte(request: bytes) -> Iterator[bytes]:
    for at in range(len(request)):
        yield request[at : at + 1]


def body_later(request: bytes) -> Iterator[bytes]:
    head, end, body = request.partition(b"\r\n\r\n")
    yield head + end
    yield body[:5]
    yield body[5:]


SEGMENTS = {"whole": whole, "byte by byte": byte_by_byte, "body later": body_later}


def send(connection: socket.socket, segments: Iterable[bytes]) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for segment in segments:
        connection.sendall(segment)


def answers(connection: socket.socket, count: int) -> bytes:
    said = b""
    while said.count(b"\r\n\r\n{}") < count and (piece := connection.recv(65536)):
        said += piece
    return said


@pytest.mark.parametrize("segments", SEGMENTS)
@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("upgrade", UPGRADES)
@requirement("http.upgrade", "http.smuggling")
def test_a_request_that_offers_an_upgrade_keeps_its_body(
    tmp_path: Path, upgrade: str, framing: str, segments: str
) -> None:
    """And the request behind it is the next one."""
    header, body = FRAMINGS[framing]
    offered = tuple(each for each in UPGRADES[upgrade] if b"length" not in each)
    headers = (header, *offered) if upgrade == "after the length" else (*offered, header)
    second = post(b"content-length: %d" % len(SECOND), body=SECOND)
    with recording_upstream() as upstream, sightline(tmp_path, upstream.url) as proxy:
        with plug(proxy.url) as connection:
            send(connection, SEGMENTS[segments](post(*headers, body=body)))
            send(connection, SEGMENTS[segments](second))
            said = answers(connection, 2)
        assert said.count(b"HTTP/1.1 200") == said.count(b"HTTP/1.1") == 2
        assert upstream.summaries == [(LINE, BODY), (LINE, SECOND)]
        assert not any(one.header(b"upgrade") or one.header(b"connection") for one in upstream.requests)


@requirement("http.upgrade")
def test_a_request_without_a_body_that_offers_an_upgrade_is_answered(tmp_path: Path) -> None:
    request = b"GET /v1/models HTTP/1.1\r\nhost: 127.0.0.1\r\n" + b"\r\n".join(H2C) + b"\r\n\r\n"
    with recording_upstream() as upstream, sightline(tmp_path, upstream.url) as proxy:
        with plug(proxy.url) as connection:
            connection.sendall(request + request)
            answers(connection, 2)
        assert upstream.summaries == [(b"GET /v1/models HTTP/1.1", b"")] * 2


@requirement("http.upgrade")
def test_a_long_body_with_an_upgrade_is_complete(tmp_path: Path) -> None:
    """Long enough to be read past the parser."""
    body = b'{"model":"m","messages":[{"role":"user","content":"%b"}]}' % (b"word " * 200_000)
    second = post(b"content-length: %d" % len(SECOND), body=SECOND)
    with recording_upstream() as upstream, sightline(tmp_path, upstream.url) as proxy:
        with plug(proxy.url) as connection:
            connection.sendall(post(*H2C, b"content-length: %d" % len(body), body=body) + second)
            answers(connection, 2)
        assert upstream.summaries == [(LINE, body), (LINE, SECOND)]


@requirement("http.upgrade")
def test_connect_is_refused_and_the_connection_closed(tmp_path: Path) -> None:
    behind = post(b"content-length: %d" % len(BODY), body=BODY)
    with recording_upstream() as upstream, sightline(tmp_path, upstream.url) as proxy:
        with plug(proxy.url) as connection:
            connection.sendall(b"CONNECT api.example.com:443 HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n" + behind)
            said = answers(connection, 9)
        assert said.startswith(b"HTTP/1.1 400")
        assert said.count(b"HTTP/1.1") == 1
        assert b"CONNECT" in said
        assert upstream.requests == []
