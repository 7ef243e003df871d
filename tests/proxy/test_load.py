"""Expensive bodies and answers are bounded, and other requests are served meanwhile."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import threading
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from sightline.engine import MAX_IMAGES, MAX_MESSAGES
from sightline.server import asgi
from sightline.surfaces.proxy import bodies as proxy_bodies
from tests.proxy.raw_http import Got, exchange, head, plug, until
from tests.proxy.running_proxy import Running, sightline
from tests.requirements import requirement
from tests.scripted.faults import Hang
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.server import Exchange, Reply, Server

PATH = "/v1/messages"
SMALL = b'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}'
JSON = (("content-type", "application/json"),)


def body_of(values: bytes) -> bytes:
    return b'{"model":"m","max_tokens":9,"messages":[%b]}' % values


def a_conversation(messages: int, *blocks: Any) -> bytes:
    said = [{"role": "assistant" if number % 2 else "user", "content": "a"} for number in range(messages)]
    last = [{"role": "user", "content": [*blocks, {"type": "text", "text": "what is it"}]}] if blocks else []
    return json.dumps({"model": "m", "max_tokens": 9, "messages": [*said, *last]}).encode()


def an_image(data: bytes) -> dict[str, Any]:
    source = {"type": "base64", "media_type": "image/png", "data": b64encode(data).decode()}
    return {"type": "image", "source": source}


class Upstream(Server):
    """Answers everything alike, and says when a body that is not `SMALL` has come."""

    def __init__(self, *replies: Reply) -> None:
        self.bodies: list[bytes] = []
        self.large = threading.Event()
        self._replies = list(replies)
        super().__init__(self._answered, lambda: False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def _answered(self, exchange: Exchange) -> Reply:
        if exchange.body == SMALL:
            return Reply(200, JSON, (b"{}",))
        self.bodies.append(exchange.body)
        self.large.set()
        return self._replies.pop(0) if self._replies else Reply(200, JSON, (b"{}",))


@contextmanager
def proxied(home: Path, *replies: Reply) -> Iterator[tuple[Running, Upstream]]:
    with Upstream(*replies) as upstream, sightline(home, upstream.url) as proxy:
        yield proxy, upstream


def served_meanwhile(proxy: Running, upstream: Upstream, body: bytes, headers: bytes = b"") -> int:
    """Return how many small requests are answered between the last byte of a body and its arrival at the upstream."""
    served = 0
    with plug(proxy.url) as connection, plug(proxy.url) as other:
        connection.sendall(head(PATH, len(body)).replace(b"\r\n\r\n", b"\r\n" + headers + b"\r\n") + body[:-1])
        assert exchange(proxy.url, PATH, SMALL).status == 200
        connection.sendall(body[-1:])
        while not upstream.large.is_set():
            other.sendall(head(PATH, len(SMALL)) + SMALL)
            assert until(other, b"{}").startswith(b"HTTP/1.1 200")
            served += 1
        assert until(connection, b"{}").startswith(b"HTTP/1.1 200")
    return served


@requirement("load.beside")
def test_small_requests_are_served_while_a_large_one_is_read(tmp_path: Path) -> None:
    large = a_conversation(99_000)
    with proxied(tmp_path) as (proxy, upstream):
        assert served_meanwhile(proxy, upstream, large) > 3
        assert not proxy.receipts, "and it was read"


MANY = {
    "numbers": b"1," * 3_000_000 + b"1",
    "objects": b'{"a":{}},' * 500_000 + b"1",
    "lists": b"[[],[]]," * 500_000 + b"1",
}


@pytest.mark.parametrize("values", MANY.values(), ids=MANY)
@requirement("load.values")
def test_a_body_with_too_many_values_is_forwarded_unread(tmp_path: Path, values: bytes) -> None:
    body = body_of(values)
    with proxied(tmp_path) as (proxy, upstream):
        assert exchange(proxy.url, PATH, body).status == 200
        assert upstream.bodies == [body]
        (note,) = proxy.receipts[-1].notes
        assert note.startswith("not read: ")
        assert "JSON values" in note


@pytest.mark.parametrize("unit", [b"\\n", b"\\u00e9", b"word "])
@requirement("load.text")
def test_a_body_with_too_much_text_is_forwarded_unread(tmp_path: Path, unit: bytes) -> None:
    body = body_of(b'{"role":"user","content":"%b"}' % (unit * (17 * 1024 * 1024 // len(unit))))
    with proxied(tmp_path) as (proxy, upstream):
        assert exchange(proxy.url, PATH, body).status == 200
        assert upstream.bodies == [body]
        (note,) = proxy.receipts[-1].notes
        assert note.startswith("not read: ")
        assert "16 MB of text" in note


@requirement("load.values", "load.beside")
def test_a_compressed_body_of_millions_of_values_blocks_no_one(tmp_path: Path) -> None:
    body = gzip.compress(body_of(b"1," * 7_800_000 + b"1"))
    assert len(body) < 16_000
    with proxied(tmp_path) as (proxy, upstream):
        before = resident()
        assert served_meanwhile(proxy, upstream, body, b"content-encoding: gzip\r\n") > 0
        assert upstream.bodies == [body]
        assert resident() - before < 160 * 1024 * 1024
        assert proxy.receipts[-1].notes[0].startswith("not read: ")


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


@requirement("load.images")
def test_a_body_with_too_many_images_is_forwarded_unread(tmp_path: Path) -> None:
    dot = json.dumps(an_image(paint_quadrants(some_colours(1), (2, 2)))).encode()
    content = b",".join([dot] * (MAX_IMAGES + 1))
    body = body_of(b'{"role":"user","content":[%b]}' % content)
    with proxied(tmp_path) as (proxy, upstream):
        assert exchange(proxy.url, PATH, body).status == 200
        assert upstream.bodies == [body]
        assert f"{MAX_IMAGES:,} images" in proxy.receipts[-1].notes[0]


@requirement("load.images")
def test_a_body_with_too_many_messages_is_forwarded_unread(tmp_path: Path) -> None:
    body = a_conversation(MAX_MESSAGES + 1)
    with proxied(tmp_path) as (proxy, upstream):
        assert exchange(proxy.url, PATH, body).status == 200
        assert upstream.bodies == [body]
        assert f"{MAX_MESSAGES:,} messages" in proxy.receipts[-1].notes[0]


def _schema(number: int) -> dict[str, Any]:
    fields = {f"field_{each}": {"type": "string", "description": "what, where: [a, b]"} for each in range(100)}
    return {"name": f"tool_{number}", "input_schema": {"type": "object", "properties": fields}}


@requirement("load.real")
def test_the_largest_real_bodies_are_read(tmp_path: Path) -> None:
    picture = paint_quadrants(some_colours(2))
    talk = json.loads(a_conversation(5_000, an_image(picture)))
    talk["tools"] = [_schema(number) for number in range(300)]
    code = "for (const [key, value] of Object.entries({a: [1, 2], b: {c: 3}})) { f(key, value); }\n" * 60_000
    talk["messages"][0]["content"] = code
    many = json.loads(a_conversation(512, *[an_image(picture + bytes(100_000)) for _ in range(200)]))
    with proxied(tmp_path) as (proxy, _):
        for body, images in ((talk, 1), (many, 200)):
            assert exchange(proxy.url, PATH, json.dumps(body).encode()).status == 200
            assert len(proxy.receipts[-1].sights) == images


@requirement("load.memory")
def test_large_requests_share_one_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy_bodies, "MAX_JSON_VALUES", 150_000)
    large, hang = a_conversation(30_000), Hang()
    with proxied(tmp_path, Reply(200, JSON, (b"{}",), fault=hang)) as (proxy, upstream):
        got: list[Got] = []
        waiting = threading.Thread(target=lambda: got.append(exchange(proxy.url, PATH, large)))
        waiting.start()
        hang.reached.result(60)
        assert exchange(proxy.url, PATH, large).status == 200
        assert "memory" in proxy.receipts[-1].notes[0]
        assert exchange(proxy.url, PATH, SMALL).status == 200
        hang.release()
        waiting.join(60)
        assert got[0].status == 200
        told = len(proxy.receipts)
        assert exchange(proxy.url, PATH, large).status == 200
        assert len(proxy.receipts) == told, "there is room again, and nothing to say of it"
        assert upstream.bodies == [large] * 3


@requirement("load.answers")
def test_an_answer_with_too_many_values_is_relayed_unchanged(tmp_path: Path) -> None:
    answer = b'{"type":"message","content":[%b]}' % (b"{}," * 300_000 + b"1")
    streaming = SMALL.replace(b'"m"', b'"m","stream":true')
    with proxied(tmp_path, Reply(200, JSON, (answer,))) as (proxy, _):
        got = exchange(proxy.url, PATH, streaming)
        assert (got.status, got.body == answer) == (200, True)


def chunked(url: str, body: bytes, headers: Sequence[tuple[str, str]] = ()) -> Got:
    """Send a body that does not announce its length."""
    pieces = (body[at : at + 100_000] for at in range(0, len(body), 100_000))
    framed = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    where = urlsplit(url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=60)
    try:
        connection.putrequest("POST", PATH)
        for name, value in (("transfer-encoding", "chunked"), *headers):
            connection.putheader(name, value)
        connection.endheaders(framed)
        answer = connection.getresponse()
        return Got(answer.status, answer.getheaders(), answer.read())
    finally:
        connection.close()


def long_body(size: int) -> bytes:
    return body_of(b'{"role":"user","content":"%b"}' % (b"word " * (size // 5)))


def assert_asked_to_retry(got: Got) -> None:
    assert got.status == 503
    assert int(dict(got.headers)["retry-after"]) > 0
    assert json.loads(got.body)["error"]["type"] == "api_error"


@requirement("load.bytes")
def test_a_large_body_without_memory_is_503(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi, "MAX_BUFFERED_BYTES", 5_000_000)
    large, hang = long_body(3_000_000), Hang()
    with proxied(tmp_path, Reply(200, JSON, (b"{}",), fault=hang)) as (proxy, upstream):
        got: list[Got] = []
        waiting = threading.Thread(target=lambda: got.append(exchange(proxy.url, PATH, large)))
        waiting.start()
        hang.reached.result(60)
        assert_asked_to_retry(exchange(proxy.url, PATH, large))
        assert_asked_to_retry(chunked(proxy.url, large))
        assert exchange(proxy.url, PATH, SMALL).status == 200
        assert chunked(proxy.url, SMALL).status == 200
        hang.release()
        waiting.join(60)
        assert got[0].status == 200
        assert exchange(proxy.url, PATH, large).status == 200, "there is room again"
        assert chunked(proxy.url, large).status == 200
        assert upstream.bodies == [large] * 3, "what was refused reached no upstream"


@requirement("load.bytes")
def test_a_decompressed_body_without_memory_is_forwarded_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asgi, "MAX_BUFFERED_BYTES", 2_500_000)
    packed = gzip.compress(long_body(3_000_000))
    with proxied(tmp_path) as (proxy, upstream):
        for send in (exchange_packed, chunked_packed):
            assert send(proxy.url, packed).status == 200
            assert upstream.bodies.pop() == packed
            assert "memory" in proxy.receipts.pop().notes[0]


def exchange_packed(url: str, packed: bytes) -> Got:
    return exchange(url, PATH, packed, headers=[("content-encoding", "gzip")])


def chunked_packed(url: str, packed: bytes) -> Got:
    return chunked(url, packed, [("content-encoding", "gzip")])


@requirement("load.bytes")
def test_small_bodies_have_a_reserve_and_all_memory_is_returned() -> None:
    memory = asgi.MemoryBudget(10_000_000)
    with memory.start_reservation() as large, memory.start_reservation() as small:
        assert large.add(10_000_000)
        assert not large.add(1)
        assert small.add(asgi.MAX_SMALL_BODY)
        assert not small.add(1), "it is small no more"
    assert memory.reserved == 0


@requirement("load.bytes")
def test_small_bodies_are_bounded_too() -> None:
    memory = asgi.MemoryBudget(10_000_000)
    admitted = 0
    while memory.start_reservation().add(asgi.MAX_SMALL_BODY):
        admitted += 1
    assert admitted == (10_000_000 + asgi.SMALL_BODY_RESERVE) // asgi.MAX_SMALL_BODY
