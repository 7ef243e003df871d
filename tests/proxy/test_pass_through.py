"""Everything that need not change passes through byte for byte."""

from __future__ import annotations

import gzip
import json
import zlib
from base64 import b64encode
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import brotli
import pytest
import zstandard

from tests.proxy.clients import image_block, pasted_message
from tests.proxy.raw_http import Got, exchange, plug, until
from tests.proxy.running_proxy import sightline
from tests.requirements import requirement
from tests.scripted.eye import describe_quadrants
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import Provider, deepseek

COLOURS = some_colours(21)
PICTURE = paint_quadrants(COLOURS)
ODD = (
    b' { "model" : "m", "model":"some-model",\r\n\t"messages":[ {"role":"user","content":"\\u00e9\\/ \\ud83d '
    b'"}],"n":1e400, "big":123456789012345678901234567890,"unknown":{"a":[null,{}]} , "stream" :false}\n'
)


def words_of(answer: Got) -> str:
    return str(json.loads(answer.body)["content"][0]["text"])


@requirement("law.1", "pass.identity", "body.unreadable")
@pytest.mark.parametrize(
    "body",
    [
        b'{"model":"some-model","messages":[{"role":"user","content":"hi"}]}',
        ODD,
        b"{broken",
        b"",
        b'"a string"',
        b"[" * 5000,
        b'{"messages": "\xff\xfe"}',
        b"\xef\xbb\xbf{}",
        json.dumps({"model": "m", "messages": [{"role": "user", "content": "A" * 20000}]}).encode(),
    ],
    ids=["plain", "odd", "broken", "empty", "string", "deep", "latin", "bom", "long run"],
)
def test_a_body_without_images_arrives_as_the_same_bytes(tmp_path: Path, body: bytes) -> None:
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        for path in ("/v1/messages?beta=true", "/v1/chat/completions"):
            exchange(proxy.url, path, body)
            assert provider.exchanges[-1].body == body


@requirement("law.1", "pass.identity")
def test_an_acceptable_image_leaves_the_body_unchanged(tmp_path: Path) -> None:
    body = json.dumps({"model": "m", "max_tokens": 9, "messages": pasted_message(PICTURE)}, indent=1).encode()
    with Provider() as provider, sightline(tmp_path, provider.url, env={"SIGHTLINE_REFERENCES": "off"}) as proxy:
        assert describe_quadrants(COLOURS) in words_of(exchange(proxy.url, "/v1/messages", body))
        assert provider.exchanges[0].body == body


@requirement("pass.routes")
def test_other_routes_methods_queries_and_headers_pass_through(tmp_path: Path) -> None:
    sent = [("user-agent", "one"), ("user-agent", "two"), ("anthropic-beta", "a,b"), ("x-odd", "1")]
    with Provider() as provider, sightline(tmp_path, provider.url, has_gemini=False) as proxy:
        for method in ("GET", "PUT", "DELETE", "PATCH", "POST", "OPTIONS", "HEAD"):
            answer = exchange(proxy.url, "/v1/files/a%2Fb?x=1&x=%20", b"{}" * (method != "HEAD"), method, sent)
            seen = provider.exchanges[-1]
            assert (seen.method, seen.target) == (method, b"/v1/files/a%2Fb?x=1&x=%20")
            assert seen.header("user-agent") == ["one", "two"]
            assert seen.header("anthropic-beta") == ["a,b"]
            assert answer.status == 200
            assert [v for k, v in answer.headers if k.lower() == "set-cookie"] == ["first=1", "second=2"]


@requirement("pass.routes")
def test_a_compressed_response_stays_compressed(tmp_path: Path) -> None:
    body = b'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}'
    with Provider(gzip=True) as provider, sightline(tmp_path, provider.url) as proxy:
        answer = exchange(proxy.url, "/v1/messages", body, headers=[("accept-encoding", "gzip")])
    assert json.loads(gzip.decompress(answer.body))["content"][0]["text"] == "I see no image."


PACKERS = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}


@pytest.mark.parametrize("packing", PACKERS)
@requirement("pass.packed")
def test_a_compressed_body_is_sent_unchanged_unless_edited(tmp_path: Path, packing: str) -> None:
    body = json.dumps({"model": "claude-opus-x", "max_tokens": 9, "messages": pasted_message(PICTURE)}).encode()
    packed = PACKERS[packing](body)
    headers = [("content-encoding", packing)]
    with (
        deepseek() as blind,
        Provider() as seeing,
        sightline(
            tmp_path,
            f"deepseek={blind.url}",
            f"anthropic={seeing.url}",
            env={"SIGHTLINE_REFERENCES": "off"},
        ) as proxy,
    ):
        exchange(proxy.url, "/u/anthropic/v1/messages", packed, headers=headers)
        assert seeing.exchanges[0].body == packed
        assert seeing.exchanges[0].header("content-encoding") == [packing]
        told = exchange(proxy.url, "/u/deepseek/v1/messages", packed, headers=headers)
        assert words_of(told).startswith("I was told: ")
        assert blind.exchanges[-1].header("content-encoding") == []


@requirement("pass.packed")
def test_a_decompression_bomb_is_forwarded_unread(tmp_path: Path) -> None:
    bomb = gzip.compress(b" " * (129 * 1024 * 1024), 1)
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        exchange(proxy.url, "/v1/messages", bomb, headers=[("content-encoding", "gzip")])
        assert provider.exchanges[0].body == bomb


@requirement("pass.signed")
def test_a_signed_body_is_not_edited(tmp_path: Path) -> None:
    body = json.dumps({"model": "claude-opus-x", "max_tokens": 9, "messages": pasted_message(PICTURE)}).encode()
    signed = [("authorization", "AWS4-HMAC-SHA256 Credential=x")]
    with deepseek() as provider, sightline(tmp_path, f"deepseek={provider.url}") as proxy:
        assert exchange(proxy.url, "/u/deepseek/v1/messages", body, headers=signed).status == 400
        assert provider.exchanges[0].body == body


@requirement("law.1")
def test_everything_around_a_described_image_is_unchanged(tmp_path: Path) -> None:
    block = image_block(PICTURE) | {"cache_control": {"type": "ephemeral"}}
    mark = json.dumps(block).encode()
    before = b'{"model":"claude-opus-x" , "max_tokens":9,"messages":[{"role":"user","content":[ '
    after = b' ,{"text":"caf\\u00e9 \\/","type":"text","odd":1.50e3}]}],\n"metadata":{"user_id":"x"}}'
    with deepseek() as provider, sightline(tmp_path, f"deepseek={provider.url}") as proxy:
        exchange(proxy.url, "/u/deepseek/v1/messages", before + mark + after)
        sent = provider.exchanges[-1].body
    assert sent.startswith(before)
    assert sent.endswith(after)
    assert json.loads(sent)["messages"][0]["content"][0]["cache_control"] == {"type": "ephemeral"}


@requirement("pass.large")
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_of_200_megabytes_is_streamed_unchanged(tmp_path: Path, chunked: bool) -> None:
    import hashlib
    import http.client
    from urllib.parse import urlsplit

    piece = b64encode(bytes(range(256)) * 3072)
    pieces = 200
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        where = urlsplit(proxy.url)
        connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=120)
        headers = {} if chunked else {"content-length": str(len(piece) * pieces)}
        connection.request("POST", "/v1/messages", (piece for _ in range(pieces)), headers, encode_chunked=chunked)
        connection.getresponse().read()
        connection.close()
        arrived = provider.exchanges[0].body
    whole = hashlib.sha256()
    for _ in range(pieces):
        whole.update(piece)
    assert hashlib.sha256(arrived).digest() == whole.digest()


@requirement("route.unknown")
def test_an_unknown_upstream_is_one_clear_error(tmp_path: Path) -> None:
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        answer = exchange(proxy.url, "/u/nope/v1/messages", b"{}")
    assert answer.status == 400
    said = json.loads(answer.body)
    assert said["type"] == "error", "in the words of the wire that was asked for"
    assert "'nope'" in said["error"]["message"]


@requirement("route.inside")
@pytest.mark.parametrize(
    "target",
    [
        "/u/work/../../x",
        "/u/work/%2e%2e/v1/messages",
        "/u/work/..;/v1/messages",
        "/u/work/v1%2f..%2f../messages",
        "/u/work/..\\..\\v1/messages",
        "http://127.0.0.1/u/work/../x",
        "/u/work/../sightline/metrics",
        "/u/work/../mcp",
    ],
)
def test_a_path_out_of_its_upstream_is_refused(tmp_path: Path, target: str) -> None:
    with Provider() as provider:
        own = {"work": {"baseUrl": f"{provider.url}/team", "apiKey": "the-configured-key"}}
        with sightline(tmp_path, env={"SIGHTLINE_UPSTREAMS": json.dumps(own)}) as proxy, plug(proxy.url) as connection:
            lines = (f"POST {target} HTTP/1.1", "host: 127.0.0.1", "anthropic-version: 1", "connection: close")
            connection.sendall("\r\n".join([*lines, "content-length: 2", "", "{}"]).encode())
            head, _, body = until(connection, b"\0never").partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 ")
        assert json.loads(body)["type"] == "error", "in the error shape of the wire that was asked for"
        assert not provider.exchanges


@requirement("route.loopback")
@pytest.mark.parametrize(
    "header",
    [
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
        ("host", "evil.example"),
        ("host", "evil.example:80"),
        ("Host", "127.0.0.1"),
    ],
)
def test_a_web_page_cannot_use_the_proxy(tmp_path: Path, header: tuple[str, str]) -> None:
    import socket

    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        port = int(proxy.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            name, value = header
            host = "" if name == "host" else f"host: 127.0.0.1:{port}\r\n"
            connection.sendall(f"GET /v1/models HTTP/1.1\r\n{host}{name}: {value}\r\n\r\n".encode())
            assert connection.recv(65536).startswith(b"HTTP/1.1 400")
        assert provider.exchanges == []


@requirement("route.loopback")
def test_each_request_of_a_connection_is_checked(tmp_path: Path) -> None:
    body = b'{"model":"m","messages":[]}'
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        connection = HTTPConnection("127.0.0.1", int(proxy.url.rpartition(":")[2]), timeout=30)
        with closing(connection):
            for key in ("one", "one", "two"):
                connection.request("POST", "/v1/messages", body, {"x-api-key": key})
                connection.getresponse().read()
            connection.request("POST", "/v1/messages", body, {"x-api-key": "two", "origin": "https://evil.example"})
            assert connection.getresponse().status == 400
        assert [dict(each.headers)[b"x-api-key"] for each in provider.exchanges] == [b"one", b"one", b"two"]


@requirement("route.loopback")
@pytest.mark.parametrize("host", ["LOCALHOST", "LocalHost:1", "127.0.0.1", "[::1]:9"])
def test_any_name_of_this_machine_is_accepted(tmp_path: Path, host: str) -> None:
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy, plug(proxy.url) as connection:
        connection.sendall(f"GET /sightline/health HTTP/1.1\r\nhost: {host}\r\n\r\n".encode())
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")


@requirement("route.websocket")
def test_a_websocket_gets_426(tmp_path: Path) -> None:
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        headers = [("connection", "Upgrade"), ("upgrade", "websocket")]
        got = exchange(proxy.url, "/v1/responses", b"", "GET", headers)
        assert (got.status, ("upgrade", "HTTP/1.1") in got.headers) == (426, True)


@requirement("route.health")
def test_the_health_page_answers(tmp_path: Path) -> None:
    with sightline(tmp_path) as proxy:
        assert exchange(proxy.url, "/sightline/health", method="GET").body == b'{"ok":true}'


@requirement("route.ready", "law.9")
def test_a_proxy_whose_record_cannot_be_used_is_not_ready_but_serves(tmp_path: Path) -> None:
    with sightline(tmp_path) as proxy:
        assert exchange(proxy.url, "/sightline/ready", method="GET").body == b'{"ready": true}'
    harmed = tmp_path / "harmed"
    (harmed / "record" / "record.sqlite").mkdir(parents=True)
    with Provider() as provider, sightline(harmed, provider.url) as proxy:
        got = exchange(proxy.url, "/sightline/ready", method="GET")
        assert (got.status, json.loads(got.body)["ready"]) == (503, False)
        assert str(harmed) in json.loads(got.body)["message"]
        assert exchange(proxy.url, "/sightline/health", method="GET").status == 200
        body = b'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}'
        assert exchange(proxy.url, "/v1/messages", body).status == 200


@requirement("route.own")
def test_own_paths_never_reach_an_upstream(tmp_path: Path) -> None:
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        top = exchange(proxy.url, "/", method="GET")
        assert (top.status, dict(top.headers)["content-type"]) == (200, "text/plain; charset=utf-8")
        assert (b"sightline setup AGENT" in top.body, top.body.count(b"\n")) == (True, 1)
        for path in ("/sightline/nope", "/sightline/health/more"):
            for method in ("GET", "POST"):
                got = exchange(proxy.url, path, b"{}" if method == "POST" else b"", method)
                assert (got.status, b"/sightline/" in got.body) == (404, True)
        for path, status in (("/sightline", 307), ("/sightline/", 200)):
            assert exchange(proxy.url, path, b"", "GET").status == status
        assert provider.exchanges == []
        exchange(proxy.url, "/", b"{}")
        exchange(proxy.url, "/sightlines", method="GET")
        assert [each.path for each in provider.exchanges] == ["/", "/sightlines"], "and all else does"


@requirement("upstream.key")
def test_an_upstream_key_replaces_the_clients_key(tmp_path: Path) -> None:
    with deepseek(key="sk-own") as provider:
        own = {"deepseek": {"baseUrl": provider.url, "apiKey": "sk-own"}}
        (tmp_path / "vision-proxy.json").write_text(json.dumps({"upstreams": own}))
        (tmp_path / "vision-proxy.json").chmod(0o600)
        with sightline(tmp_path, env={"SIGHTLINE_UPSTREAMS": ""}) as proxy:
            body = {"model": "claude-opus-x", "max_tokens": 9, "messages": pasted_message(PICTURE)}
            sent = [("x-api-key", "sk-client"), ("authorization", "Bearer sk-client")]
            answer = exchange(proxy.url, "/u/deepseek/v1/messages", json.dumps(body).encode(), headers=sent)
        assert words_of(answer).startswith("I was told: ")
        assert not any(b"sk-client" in value for one in provider.exchanges for _, value in one.headers)
