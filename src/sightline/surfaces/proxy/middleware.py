"""ASGI middleware around the proxy: access control, the proxy's own pages, and mounted applications.

Each function takes an application and returns one. They compose in any order. None waits for anything itself: each
returns what the next application returns, which saves a coroutine per layer and request. `send_error` writes
an error in the format that the client expects: that of its wire, or plain JSON.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hmac import compare_digest
from typing import Protocol

from sightline.model.profile import is_loopback
from sightline.model.refusal import Refusal
from sightline.server import App, Headers, Receive, Scope, Send
from sightline.surfaces.proxy.http_headers import TOKEN_HEADER
from sightline.surfaces.proxy.request_context import describe_refusal

Page = Callable[[], tuple[int, bytes, bytes]]
"""Returns a status, a content type and a body."""

OWN_PATHS = b"/sightline/"  # no upstream gets a request for a path below it
_NOT_LOCAL = Refusal("not_permitted", "only programs on this machine are served", "send requests to 127.0.0.1")
_NO_TOKEN = Refusal("not_permitted", "this proxy requires a token", f"send it in the header {TOKEN_HEADER.decode()}")
_ABOUT_SENDER = frozenset({b"host", b"origin", b"sec-fetch-site"})
_NO_WEBSOCKET = "Sightline: this address answers HTTP requests, not websockets."


class SendError(Protocol):
    def __call__(
        self, scope: Scope, send: Send, status: int, message: str, headers: Sequence[tuple[bytes, bytes]] = ()
    ) -> Awaitable[None]:
        """Answer a request with an error."""


def guard(app: App, token: str, send_error: SendError) -> App:
    """Serve only requests that have the token or, if it is empty, that come from programs on this machine."""

    def serve(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] != "http":
            return _do_nothing()
        if refusal := check_access(scope["headers"], token):
            return send_error(scope, send, 403, describe_refusal(refusal))
        return app(scope, receive, send)

    return serve


async def _do_nothing() -> None:
    """Leave a request alone."""


def check_access(headers: Headers, token: str) -> Refusal | None:
    """Return why a request is not served, or None."""
    if token:
        given = next((value for name, value in headers if name == TOKEN_HEADER), b"").removeprefix(b"Bearer ")
        return None if compare_digest(given, token.encode()) else _NO_TOKEN
    # A web page must not reach the user's upstreams through a name that resolves to this machine. A sandboxed page has
    # the origin "null", which can be any page. A page's plain GET has no origin, but the browser sends sec-fetch-site.
    about_sender = [header for header in headers if header[0] in _ABOUT_SENDER]
    site = next((value for name, value in about_sender if name == b"sec-fetch-site"), b"")
    hosts = [value for name, value in about_sender if name == b"host" and value]
    origins = [value.partition(b"://")[2] for name, value in about_sender if name == b"origin"]
    if site in (b"cross-site", b"same-site") or len(hosts) > 1 or not all(map(_is_local_authority, (*hosts, *origins))):
        return _NOT_LOCAL
    return None


def _is_local_authority(authority: bytes) -> bool:
    text = authority.decode("latin-1").lower()
    name, _, port = text.rpartition(":")
    return is_loopback(name if port.isdigit() else text)


def refuse_websockets(app: App, send_error: SendError) -> App:
    def serve(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["method"] == "GET" and dict(reversed(scope["headers"])).get(b"upgrade", b"").lower() == b"websocket":
            return send_error(scope, send, 426, _NO_WEBSOCKET, [(b"upgrade", b"HTTP/1.1")])
        return app(scope, receive, send)

    return serve


def serve_pages(
    app: App, pages: Mapping[str, Page], greeting: bytes, send_error: SendError, inspector: App | None = None
) -> App:
    """Serve the proxy's own pages, the greeting at `/`, and the inspector at all other paths below `OWN_PATHS`."""
    pages_by_path = {path.encode(): page for path, page in pages.items()}
    not_found = describe_refusal(Refusal("not_found", "there is no such page", f"known: {', '.join(pages)}"))

    def serve(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        path: bytes = scope["raw_path"]
        if page := pages_by_path.get(path):
            return _send_page(send, *page())
        if path == b"/" and scope["method"] == "GET":
            return _send_page(send, 200, b"text/plain; charset=utf-8", greeting)
        if path.startswith(OWN_PATHS) or path == OWN_PATHS[:-1]:
            return inspector(scope, receive, send) if inspector else send_error(scope, send, 404, not_found)
        return app(scope, receive, send)

    return serve


def mount(app: App, mounts: Mapping[str, App]) -> App:
    """Serve exactly these paths with other applications."""
    apps_by_path = {path.encode(): mounted for path, mounted in mounts.items()}

    def serve(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        return apps_by_path.get(scope["raw_path"], app)(scope, receive, send)

    return serve


def serve_mounts(mounts: Mapping[str, App], token: str = "") -> App:
    """Serve only mounted applications, with the proxy's access control."""
    not_found = Refusal("not_found", "there is nothing at this address", f"call {min(mounts, key=len)}")

    async def refuse_path(scope: Scope, receive: Receive, send: Send) -> None:
        await _send_json_error(scope, send, 404, describe_refusal(not_found))

    return guard(mount(refuse_path, mounts), token, _send_json_error)


async def _send_json_error(
    scope: Scope, send: Send, status: int, message: str, headers: Sequence[tuple[bytes, bytes]] = ()
) -> None:
    await _send_page(send, status, b"application/json", json.dumps({"error": {"message": message}}).encode(), headers)


async def _send_page(
    send: Send, status: int, content_type: bytes, body: bytes, headers: Sequence[tuple[bytes, bytes]] = ()
) -> None:
    head = [(b"content-type", content_type), *headers]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body, "more_body": False})
