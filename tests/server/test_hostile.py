"""Hostile requests and connections: false framing, endless or stalled input, and a thousand abandoned connections."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import socket
import time
from pathlib import Path

import pytest

from sightline.server.protocol import MAX_QUEUED, HttpProtocol
from tests.proxy.raw_http import exchange, plug, until
from tests.proxy.running_proxy import sightline
from tests.requirements import requirement
from tests.scripted.faults import Hang
from tests.scripted.provider import Provider

HIDDEN = b"POST /v1/hidden HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 2\r\n\r\n{}"
BODY = b'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}'


def post(*lines: bytes, body: bytes = BODY) -> bytes:
    return b"\r\n".join([b"POST /v1/messages HTTP/1.1", b"host: 127.0.0.1", *lines, b"", body])


LENGTH = b"content-length: %d" % len(BODY)
SMUGGLED = {
    "two lengths": post(LENGTH, b"content-length: 5"),
    "a length and chunks": post(LENGTH, b"transfer-encoding: chunked", body=b"0\r\n\r\n" + HIDDEN),
    "chunks twice": post(b"transfer-encoding: chunked", b"transfer-encoding: identity", body=b"0\r\n\r\n" + HIDDEN),
    "chunks in disguise": post(b"transfer-encoding: xchunked", LENGTH),
    "a space before the colon": post(b"content-length : 5", LENGTH),
    "a folded header": post(b"x-a: b", b"  transfer-encoding: chunked", LENGTH),
    "a bare line feed": b"POST /v1/messages HTTP/1.1\nhost: 127.0.0.1\ncontent-length: 2\n\n{}",
    "a null in a header": post(b"x-a: b\x00c", LENGTH),
    "a return in a header": post(b"x-a: b\rtransfer-encoding: chunked", LENGTH),
    "a negative length": post(b"content-length: -1"),
    "a length with a sign": post(b"content-length: +2"),
    "no host but a body": b"POST /v1/messages HTTP/1.1\r\ncontent-length: zero\r\n\r\n",
    "a chunk of no size": post(b"transfer-encoding: chunked", body=b"zz\r\n{}\r\n0\r\n\r\n"),
}


@pytest.mark.parametrize("how", SMUGGLED)
@requirement("http.smuggling")
def test_a_request_with_false_framing_hides_no_other(tmp_path: Path, how: str) -> None:
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        with plug(proxy.url) as connection:
            connection.sendall(SMUGGLED[how])
            connection.shutdown(socket.SHUT_WR)
            said = until(connection, b"\0never")
        assert not said or said.startswith(b"HTTP/1.1 400")
        assert said.count(b"HTTP/1.1") <= 1
        assert not [one.path for one in provider.exchanges if "hidden" in one.path]
        assert exchange(proxy.url, "/v1/messages", BODY).status == 200


@pytest.mark.parametrize(
    "line", [b"x-%d: " + b"y" * 8000 + b"\r\n", b"%d" + b"y" * 8000], ids=["headers", "one header"]
)
@requirement("http.head_bound")
def test_an_endless_head_is_cut_off(tmp_path: Path, line: bytes) -> None:
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        with plug(proxy.url) as connection:
            connection.sendall(b"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\nx-first: ")
            sent = 0
            with contextlib.suppress(OSError):
                for number in range(2000):
                    connection.sendall(line % number)
                    sent += 1
        assert sent < 2000
        assert not provider.exchanges
        assert exchange(proxy.url, "/v1/messages", BODY).status == 200


@requirement("http.slow")
def test_a_missing_head_ends_the_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HttpProtocol, "head_seconds", 0.2)
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        for begun in (b"", b"POST /v1/messages HTTP/1.1\r\nhost: 127"):
            with plug(proxy.url) as connection:
                connection.sendall(begun)
                with contextlib.suppress(ConnectionResetError):
                    assert connection.recv(1) == b""
        assert exchange(proxy.url, "/v1/messages", BODY).status == 200


@requirement("http.slow")
def test_a_stalled_body_ends_the_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HttpProtocol, "body_seconds", 0.2)
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        long = post(b"content-length: 9000000", body=bytes(1_000_000))
        for begun in (post(LENGTH, body=BODY[:9]), post(b"transfer-encoding: chunked", body=b"9\r\n123"), long):
            with plug(proxy.url) as connection:
                connection.sendall(begun)
                with contextlib.suppress(ConnectionResetError):
                    assert connection.recv(1) == b""
        assert not provider.exchanges
        assert exchange(proxy.url, "/v1/messages", BODY).status == 200


@requirement("http.slow")
def test_a_client_is_not_timed_out_while_its_body_is_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for an upstream that reads no further, and not the other way round."""
    monkeypatch.setattr(HttpProtocol, "body_seconds", 0.3)
    size = 300 * 1024 * 1024
    with socket.create_server(("127.0.0.1", 0)) as upstream:
        address = f"http://127.0.0.1:{upstream.getsockname()[1]}"
        with sightline(tmp_path, address) as proxy, plug(proxy.url) as connection:
            connection.sendall(post(b"content-length: %d" % size, body=b"{"))
            there, _ = upstream.accept()
            with there:
                connection.settimeout(1.0)
                with contextlib.suppress(TimeoutError):  # until nobody takes any more
                    while True:
                        connection.send(bytes(1024 * 1024))
                there.sendall(b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno")
                assert until(connection, b"\r\n\r\nno").startswith(b"HTTP/1.1 413")


@requirement("http.announced")
def test_an_announced_length_takes_no_memory(tmp_path: Path) -> None:
    announced = post(b"content-length: 134217728", body=b"{")
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        exchange(proxy.url, "/v1/messages", BODY)
        before = resident()
        with contextlib.ExitStack() as stack:
            for _ in range(10):
                stack.enter_context(plug(proxy.url)).sendall(announced)
            assert exchange(proxy.url, "/v1/messages", BODY).status == 200
            assert resident() - before < 128 * 1024 * 1024


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


@requirement("fault.leaves")
def test_a_disconnect_cancels_the_first_of_two_requests(tmp_path: Path) -> None:
    hang = Hang()
    with Provider(faults=[hang]) as provider, sightline(tmp_path, provider.url) as proxy:
        before = proxy.tasks()
        with plug(proxy.url) as connection:
            connection.sendall(post(LENGTH) + post(LENGTH))
            hang.reached.result(30)
        for _ in range(1000):
            if proxy.tasks() <= before:
                break
            time.sleep(0.01)
        assert proxy.tasks() <= before, "nobody waits for an answer any more"
        assert len(provider.exchanges) == 1
        hang.release()


@requirement("http.pipelined")
def test_pipelined_requests_are_answered_in_order(tmp_path: Path) -> None:
    many = 2 * MAX_QUEUED
    bodies = [BODY.replace(b'"hi"', b'"hi %d"' % number) for number in range(many)]
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy, plug(proxy.url) as connection:
        connection.sendall(b"".join(post(b"content-length: %d" % len(body), body=body) for body in bodies))
        said = b""
        while said.count(b"HTTP/1.1 200") < many:
            said += until(connection, b"}")
        assert [one.body for one in provider.exchanges] == bodies


@requirement("http.trailers")
def test_a_trailer_is_not_a_header(tmp_path: Path) -> None:
    chunks = b"%x\r\n%b\r\n0\r\nauthorization: Bearer other\r\n\r\n" % (len(BODY), BODY)
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        with plug(proxy.url) as connection:
            connection.sendall(post(b"transfer-encoding: chunked", b"trailer: authorization", body=chunks))
            until(connection, b"}")
        assert [one.header("authorization") for one in provider.exchanges] == [[]]


RESTING = 2 * 64 + 8
"""Files of connections that may rest between the proxy and its upstream: both ends are of this process."""


def open_files() -> int:
    gc.collect()
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@requirement("http.abandoned")
async def test_a_thousand_abandoned_connections_leave_nothing_behind(tmp_path: Path) -> None:
    """At each point of a request: before it, amid its head, amid its body, before and amid its answer."""
    whole = post(LENGTH)
    points = [b"", whole[:30], whole[:-20], whole, whole + whole[:40]]
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        port = int(proxy.url.rpartition(":")[2])
        assert exchange(proxy.url, "/v1/messages", BODY).status == 200
        before = open_files()
        for _ in range(5):
            writers = []
            for number in range(200):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(points[number % len(points)])
                writers.append(writer)
            for writer in writers:
                writer.transport.abort()
            await asyncio.gather(*(writer.wait_closed() for writer in writers), return_exceptions=True)
            assert exchange(proxy.url, "/v1/messages", BODY).status == 200
        for _ in range(200):
            if open_files() <= before + RESTING:
                break
            assert exchange(proxy.url, "/v1/messages", BODY).status == 200  # time passes for the proxy too
        assert open_files() <= before + RESTING


@requirement("http.slow")
def test_slow_clients_do_not_keep_others_waiting(tmp_path: Path) -> None:
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        slow = [socket.create_connection(("127.0.0.1", int(proxy.url.rpartition(":")[2]))) for _ in range(100)]
        try:
            for connection in slow:
                connection.sendall(b"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-le")
            assert exchange(proxy.url, "/v1/messages", BODY).status == 200
        finally:
            for connection in slow:
                connection.close()
