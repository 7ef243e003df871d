"""The proxy's middleware around a trivial application."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from sightline.server import App, Message, Receive, Scope, Send
from sightline.surfaces.proxy.middleware import guard, mount, refuse_websockets, serve_mounts, serve_pages

Headers = Sequence[tuple[bytes, bytes]]
HERE: Headers = [(b"host", b"127.0.0.1:8000")]


def answering(status: int) -> App:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": status, "headers": []})

    return app


async def refuse(scope: Scope, send: Send, status: int, message: str, headers: Headers = ()) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [*headers]})


def status_of(app: App, path: str = "/v1/messages", method: str = "POST", headers: Headers = HERE) -> int:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    async def run() -> None:
        await app({"type": "http", "method": method, "raw_path": path.encode(), "headers": [*headers]}, receive, send)

    asyncio.run(run())
    return int(sent[0]["status"])


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (HERE, 200),
        ([(b"host", b"localhost")], 200),
        ([(b"host", b"[::1]:80"), (b"origin", b"http://localhost:3000")], 200),
        ([(b"host", b"example.com")], 403),
        ([*HERE, *HERE], 403),
        ([*HERE, (b"origin", b"https://example.com")], 403),
        ([*HERE, (b"origin", b"null")], 403),
        ([*HERE, (b"sec-fetch-site", b"cross-site")], 403),
    ],
)
def test_only_local_programs_are_served_without_a_token(headers: Headers, expected: int) -> None:
    assert status_of(guard(answering(200), "", refuse), headers=headers) == expected


@pytest.mark.parametrize(
    ("given", "expected"), [(b"secret", 200), (b"Bearer secret", 200), (b"secret2", 403), (b"", 403), (b"\xff", 403)]
)
def test_the_host_does_not_matter_with_a_token(given: bytes, expected: int) -> None:
    headers = [(b"host", b"example.com"), (b"x-sightline-token", given)]
    assert status_of(guard(answering(200), "secret", refuse), headers=headers) == expected


def test_only_an_upgrade_to_a_websocket_is_refused() -> None:
    app = refuse_websockets(answering(200), refuse)
    assert status_of(app, method="GET", headers=[*HERE, (b"upgrade", b"WebSocket")]) == 426
    assert status_of(app, method="GET", headers=[*HERE, (b"upgrade", b"h2c")]) == 200
    assert status_of(app, method="POST", headers=[*HERE, (b"upgrade", b"websocket")]) == 200


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/sightline/health", 200),
        ("POST", "/sightline/health", 200),
        ("GET", "/", 200),
        ("POST", "/", 299),
        ("GET", "/sightline", 404),
        ("GET", "/sightline/other", 404),
        ("GET", "/sightlines", 299),
    ],
)
def test_pages_are_served_and_nothing_below_them_is_forwarded(method: str, path: str, expected: int) -> None:
    pages = {"/sightline/health": lambda: (200, b"text/plain", b"")}
    assert status_of(serve_pages(answering(299), pages, b"hello", refuse), path, method) == expected


def test_a_mounted_application_gets_exactly_its_path() -> None:
    app = mount(answering(299), {"/mcp": answering(201)})
    assert [status_of(app, path) for path in ("/mcp", "/mcp/", "/v1/messages")] == [201, 299, 299]


def test_mounts_without_a_proxy_are_guarded() -> None:
    app = serve_mounts({"/mcp": answering(201)})
    assert [status_of(app, path) for path in ("/mcp", "/v1/messages")] == [201, 404]
    assert status_of(app, "/mcp", headers=[(b"host", b"example.com")]) == 403
