"""A half-closed client gets its response; a client that has left cancels its request."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.proxy.raw_http import plug, until
from tests.proxy.running_proxy import sightline
from tests.requirements import requirement
from tests.scripted.faults import Hang
from tests.scripted.provider import Provider

BODY = b'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}'


def post(version: bytes = b"HTTP/1.1", body: bytes = BODY, headers: bytes = b"") -> bytes:
    head = b"POST /v1/messages %b\r\nhost: 127.0.0.1\r\ncontent-length: %d\r\n%b\r\n"
    return head % (version, len(body), headers) + body


@pytest.mark.parametrize("version", [b"HTTP/1.1", b"HTTP/1.0"])
@pytest.mark.parametrize("count", [1, 3])
@requirement("http.half_closed")
def test_a_half_closed_client_gets_every_response(tmp_path: Path, version: bytes, count: int) -> None:
    count = count if version == b"HTTP/1.1" else 1
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy, plug(proxy.url) as connection:
        connection.sendall(post(version) * count)
        connection.shutdown(socket.SHUT_WR)
        said = until(connection, b"\0never")
        assert said.count(b"HTTP/1.1 200") == count
        assert said.rstrip().endswith((b"}", b"0"))
        assert len(provider.exchanges) == count


@requirement("http.half_closed")
def test_a_half_closed_client_gets_a_slow_response(tmp_path: Path) -> None:
    """It may get interim responses meanwhile: that is how one that left is found out."""
    hang = Hang()
    with Provider(faults=[hang]) as provider, sightline(tmp_path, provider.url) as proxy, plug(proxy.url) as connection:
        connection.sendall(post())
        connection.shutdown(socket.SHUT_WR)
        hang.reached.result(30)
        assert until(connection, b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        hang.release()
        said = until(connection, b"\0never")
        assert said.count(b"HTTP/1.1 200") == 1
        assert not provider.exchanges[0].abandoned


@requirement("http.half_closed")
def test_a_half_closed_client_gets_the_rest_of_its_response(tmp_path: Path) -> None:
    hang = Hang(after=2)
    streamed = BODY.replace(b'"m",', b'"m","stream":true,')
    with Provider(faults=[hang]) as provider, sightline(tmp_path, provider.url) as proxy, plug(proxy.url) as connection:
        connection.sendall(post(body=streamed))
        said = until(connection, b"content_block_start")
        hang.reached.result(30)
        connection.shutdown(socket.SHUT_WR)
        while not said.endswith(b"\r\n0"):  # a zero ahead of the size of the next chunk
            said += connection.recv(65536)
        hang.release()
        said += until(connection, b"\0never")
        assert b"message_stop" in unchunk(said.partition(b"\r\n\r\n")[2])
        assert not provider.exchanges[0].abandoned


def unchunk(data: bytes) -> bytes:
    found = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        found, data = found + data[: int(size, 16)], data[int(size, 16) + 2 :]
    return found


@pytest.mark.parametrize("after", [None, 2], ids=["before the answer", "amid the stream"])
@requirement("fault.leaves")
def test_a_closed_client_cancels_the_upstream_request(tmp_path: Path, after: int | None) -> None:
    """Its kernel has said nothing but that no more bytes will come."""
    hang = Hang(after=after)
    streamed = BODY.replace(b'"m",', b'"m","stream":true,')
    with Provider(faults=[hang]) as provider, sightline(tmp_path, provider.url) as proxy:
        with plug(proxy.url) as connection:
            connection.sendall(post(body=streamed))
            hang.reached.result(30)
            if after is not None:
                until(connection, b"content_block_start")
        assert provider.exchanges[0].abandoned


@pytest.mark.parametrize(
    "part",
    [b"POST /v1/messages HTTP/1.1\r\nhost: 127", post()[:-3], post(headers=b"expect: 100-continue\r\n")[: -len(BODY)]],
    ids=["in its head", "in its body", "before its body"],
)
@requirement("http.half_closed")
def test_an_incomplete_request_is_refused(tmp_path: Path, part: bytes) -> None:
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy, plug(proxy.url) as connection:
        connection.sendall(part)
        connection.shutdown(socket.SHUT_WR)
        said = until(connection, b"\0never").removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
        assert said.startswith(b"HTTP/1.1 400")
        assert b"ended before the request did" in said
        assert provider.exchanges == []


@requirement("http.half_closed")
def test_a_half_closed_idle_connection_is_closed(tmp_path: Path) -> None:
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        for sent in (b"", post()):
            with plug(proxy.url) as connection:
                connection.sendall(sent)
                if sent:
                    until(connection, b"}")
                connection.shutdown(socket.SHUT_WR)
                assert not until(connection, b"\0never")
