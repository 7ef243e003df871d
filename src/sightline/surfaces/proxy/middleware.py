"""ASGI middleware around the proxy: who may use it, which pages it has, and which applications are mounted beside it.

Each function takes an application and returns one. They compose in any order; `refuse` says how an error of our own
looks to a client, in the shape of its wire or as plain JSON.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hmac import compare_digest
from typing import Protocol

from sightline.model.refusal import Refusal
from sightline.model.upstream import is_loopback
from sightline.server import App, Receive, Scope, Send
from sightline.surfaces.proxy.headers import TOKEN
from sightline.surfaces.proxy.response import describe_refusal
from sightline.surfaces.proxy.routes import Headers

Page = Callable[[], tuple[bytes, bytes]]
"""Returns a content type and a body."""

OWN_PATHS = b"/sightline/"  # no upstream gets a request for a path below it
_FOREIGN = Refusal("not_permitted", "only programs of this machine are served here", "call it by 127.0.0.1")
_NO_TOKEN = Refusal("not_permitted", "this proxy asks for a token", f"send it in the header {TOKEN.decode()}")
_NO_WEBSOCKET = "Sightline: this address answers HTTP requests, not websockets."


class Refuse(Protocol):
    def __call__(
        self, scope: Scope, send: Send, status: int, message: str, headers: Sequence[tuple[bytes, bytes]] = ()
    ) -> Awaitable[None]:
        """Answer a request with an error."""


def guard(app: App, token: str, refuse: Refuse) -> App:
    """Let in requests that have the token or, if it is empty, those of programs on this machine."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if refusal := check_access(scope["headers"], token):
            await refuse(scope, send, 403, describe_refusal(refusal))
        else:
            await app(scope, receive, send)

    return serve


def check_access(headers: Headers, token: str) -> Refusal | None:
    """Return why a request is not served, or None."""
    if token:
        given = next((value for name, value in headers if name == TOKEN), b"").removeprefix(b"Bearer ")
        return None if compare_digest(given, token.encode()) else _NO_TOKEN
    # A web page must not reach the user's upstreams through a name that it made point here.
    # A sandboxed page has the origin "null", which can be any page's.
    # A page's plain GET has no origin, but a browser says where it comes from.
    site = next((value for name, value in headers if name == b"sec-fetch-site"), b"")
    hosts = [value for name, value in headers if name == b"host" and value]
    origins = [value.partition(b"://")[2] for name, value in headers if name == b"origin"]
    if site in (b"cross-site", b"same-site") or len(hosts) > 1 or not all(map(_is_here, (*hosts, *origins))):
        return _FOREIGN
    return None


def _is_here(authority: bytes) -> bool:
    whole = authority.decode("latin-1").lower()
    name, _, port = whole.rpartition(":")
    return is_loopback(name if port.isdigit() else whole)


def refuse_websockets(app: App, refuse: Refuse) -> App:
    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "GET" and dict(reversed(scope["headers"])).get(b"upgrade", b"").lower() == b"websocket":
            await refuse(scope, send, 426, _NO_WEBSOCKET, [(b"upgrade", b"HTTP/1.1")])
        else:
            await app(scope, receive, send)

    return serve


def serve_pages(app: App, pages: Mapping[str, Page], greeting: bytes, refuse: Refuse) -> App:
    """Answer requests for our own pages, and refuse others below `OWN_PATHS`; a GET of `/` gets the greeting."""
    found = {path.encode(): page for path, page in pages.items()}
    absent = describe_refusal(Refusal("not_found", "there is no such page", f"known: {', '.join(pages)}"))

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        path: bytes = scope["raw_path"]
        if page := found.get(path):
            await _send_page(send, 200, *page())
        elif path == b"/" and scope["method"] == "GET":
            await _send_page(send, 200, b"text/plain; charset=utf-8", greeting)
        elif path.startswith(OWN_PATHS) or path == OWN_PATHS[:-1]:
            await refuse(scope, send, 404, absent)
        else:
            await app(scope, receive, send)

    return serve


def mount(app: App, mounts: Mapping[str, App]) -> App:
    """Pass requests for exactly these paths to other applications."""
    found = {path.encode(): each for path, each in mounts.items()}

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        await found.get(scope["raw_path"], app)(scope, receive, send)

    return serve


def serve_mounts(mounts: Mapping[str, App], token: str = "") -> App:
    """Serve other applications alone, guarded as the proxy is."""
    absent = Refusal("not_found", "there is nothing at this address", f"call {min(mounts, key=len)}")

    async def refuse_path(scope: Scope, receive: Receive, send: Send) -> None:
        await _send_json_error(scope, send, 404, describe_refusal(absent))

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
