"""The inspector: pages in the browser that show what was done to the images of each conversation.

It reads receipts and the record. It changes nothing but consents and settings, after a confirmation.

- `Inspector`, here, is the ASGI application below /sightline/: it checks each request, and serves the files in `static`
  and the API for the pages.
- `changes` opens the pages to the user alone, by a link that works once and then a cookie, and makes their changes.
- `queries` answers what the pages ask about conversations, images and settings, as JSON, and makes pictures in workers.
- `export` writes one conversation as a single HTML file.

Every request but those for the files and the first one with a ticket needs the cookie of a session. A change is a POST
with JSON, from a page of the same origin, with the token of its session in a header. No GET changes anything.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from hmac import compare_digest
from http.cookies import CookieError, SimpleCookie
from importlib.resources import files
from urllib.parse import parse_qs

from sightline.model.profile import is_loopback
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.server import DIRECT_CONNECTION, Receive, Scope, Send
from sightline.server.asgi import ClientDisconnected, MemoryBudget, PartialBody, read_body
from sightline.surfaces.inspector.changes import COOKIE, SESSION_SECONDS, Changes, InspectorAccess, compute_form_token
from sightline.surfaces.inspector.queries import MAX_SENT_EDGE, THUMBNAIL_EDGE, PictureMaker, Queries, SentImage

log = logging.getLogger("sightline")

PATH = "/sightline/"
_API = f"{PATH}api/"
FORM_HEADER = b"x-sightline-form"
SCRIPTS = ("dom.js", "charts.js", "image.js", "conversation.js", "try.js", "settings.js", "inspector.js")
STATIC = {
    "": (("inspector.html",), b"text/html; charset=utf-8"),
    "icon.svg": (("icon.svg",), b"image/svg+xml"),
    "inspector.css": (("inspector.css",), b"text/css; charset=utf-8"),
    "scripts.js": (SCRIPTS, b"text/javascript; charset=utf-8"),  # one request is faster than seven
}
"""The files of the pages, each of one or more in the package, and their types."""
_CONTENT_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self';"
    b" base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
_SECURITY_HEADERS = [
    (b"content-security-policy", _CONTENT_POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
_NO_STORE = (b"cache-control", b"no-store")  # a browser keeps no copy of what `forget` deletes
_MAX_BODY = 96 * 1024 * 1024  # two images in base64
_MAX_TICKET = 4096
_MAX_FIELDS = 16  # of a query
_POLL_SECONDS = 1.0
_STATUSES = {"not_found": 404, "not_permitted": 403, "too_large": 413, "unavailable": 503}
_match_image = re.compile(r"image/([0-9a-f]{64})(?:/(file|thumb|sent|pieces))?").fullmatch
_NO_SESSION = Refusal("not_permitted", "this page needs a session", "run: sightline inspect")
_OTHER_ORIGIN = Refusal("not_permitted", "only pages of this address may do that", "run: sightline inspect")
_NOT_FOUND = Refusal("not_found", "there is no such page", f"open {PATH}")
_BAD_REQUEST = Refusal("invalid_input", "the request is not a JSON object", "reload the page")
_TOO_LARGE = Refusal("too_large", "the images are too large", "send smaller ones")


@dataclass(frozen=True, slots=True)
class InspectorRequest:
    method: str
    path: str  # below the API
    query: Mapping[str, str]
    headers: Mapping[bytes, bytes]
    session: str  # the token in its cookie; empty: none

    def get_number(self, name: str) -> int:
        text = self.query.get(name, "")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0


Reply = tuple[int, bytes, bytes, Sequence[tuple[bytes, bytes]]]
"""Status, content type, body and further headers."""


class Inspector:
    def __init__(self, access: InspectorAccess, queries: Queries, pictures: PictureMaker, changes: Changes) -> None:
        self._access = access
        self._queries = queries
        self._pictures = pictures
        self._changes = changes
        self._memory = MemoryBudget(2 * _MAX_BODY)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["raw_path"].decode("latin-1")
        request = _read_request(scope, path)
        try:
            if path == f"{_API}events" and self._refuse(request) is None:
                await self._send_events(receive, send)
                return
            status, kind, body, headers = await self._answer(scope, receive, request, path)
        except ClientDisconnected:
            return
        except Exception:  # the outermost edge
            log.exception("the inspector could not answer")
            status, kind, body, headers = _write_refusal(
                Refusal("unavailable", "this page failed because of a bug in Sightline", "see the log of the server")
            )
        head = [(b"content-type", kind), (b"content-length", str(len(body)).encode()), *_SECURITY_HEADERS, *headers]
        await send({"type": "http.response.start", "status": status, "headers": head})
        await send({"type": "http.response.body", "body": b"" if request.method == "HEAD" else body})

    async def _answer(self, scope: Scope, receive: Receive, request: InspectorRequest, path: str) -> Reply:
        if not _is_local_host(request.headers):
            return _write_refusal(_OTHER_ORIGIN)
        if not path.startswith(_API):
            return _answer_static(request.method, path)
        if request.path.startswith("ticket/"):
            return _write_json({"known": self._access.has_ticket(request.path.removeprefix("ticket/"))})
        if refusal := self._refuse(request):
            return _write_refusal(refusal)
        return await (self._post(scope, receive, request) if request.method == "POST" else self._get(request))

    def _refuse(self, request: InspectorRequest) -> Refusal | None:
        """Return why a request to the API is not answered."""
        is_post = request.method == "POST"
        if not _is_local_host(request.headers) or _is_from_elsewhere(request.headers):
            return _OTHER_ORIGIN
        if is_post and not _has_same_origin(request.headers):
            return _OTHER_ORIGIN
        if is_post and request.path == "session":
            return None
        if not is_post and request.method != "GET":
            return _NOT_FOUND
        if not self._access.is_open(request.session):
            return _NO_SESSION
        expected = compute_form_token(request.session).encode()
        is_allowed = not is_post or compare_digest(request.headers.get(FORM_HEADER, b""), expected)
        return None if is_allowed else _OTHER_ORIGIN

    async def _get(self, request: InspectorRequest) -> Reply:
        if image := _match_image(request.path):
            return await self._get_image(request, *image.groups())
        offset, after, name = request.get_number("offset"), request.get_number("after"), request.query.get("id", "")
        queries: Mapping[str, Callable[[], dict[str, Json] | Refusal]] = {
            "session": lambda: {"form": compute_form_token(request.session)},
            "conversations": partial(self._queries.list_conversations, offset),
            "conversation": partial(self._queries.read_conversation, name, after),
            "images": partial(self._queries.list_images, name, request.get_number("request"), offset),
            "newest": self._queries.find_newest,
            "usage": self._queries.sum_usage,
            "settings": self._queries.list_settings,
        }
        query = queries.get(request.path)
        found = _NOT_FOUND if query is None else await asyncio.to_thread(query)
        return _write_refusal(found) if isinstance(found, Refusal) else _write_json(found)

    async def _get_image(self, request: InspectorRequest, sha256: str, form: str | None) -> Reply:
        if form is None:
            return _write_json(await asyncio.to_thread(self._queries.read_image, sha256))
        if form == "pieces":
            return _write_json({"pieces": await self._pictures.find_pieces(sha256, request.query.get("view", ""))})
        if form == "sent":
            return await self._get_sent_picture(request, sha256)
        thumb = form == "thumb"
        made = await (self._pictures.scale(sha256, THUMBNAIL_EDGE) if thumb else self._pictures.read(sha256))
        return _write_refusal(made) if isinstance(made, Refusal) else (200, made[0].encode(), made[1], [_NO_STORE])

    async def _get_sent_picture(self, request: InspectorRequest, sha256: str) -> Reply:
        """Answer with an image as it was sent; a header says whether these are the very bytes."""
        size = tuple(min(max(request.get_number(name), 1), MAX_SENT_EDGE) for name in ("width", "height"))
        sent = SentImage(request.query.get("sha256", ""), (size[0], size[1]), request.get_number("bytes"))
        made = await self._pictures.make_sent_picture(sha256, sent)
        if isinstance(made, Refusal):
            return _write_refusal(made)
        (mime, data), is_exact = made
        return 200, mime.encode(), data, [_NO_STORE, (b"x-sightline-exact", b"yes" if is_exact else b"no")]

    async def _post(self, scope: Scope, receive: Receive, request: InspectorRequest) -> Reply:
        given = await self._read_object(scope, receive, request)
        if isinstance(given, Refusal):
            return _write_refusal(given)
        if request.path == "session":
            return await asyncio.to_thread(self._open_session, given)
        work = self._changes.find(request.path)
        done = _NOT_FOUND if work is None else await asyncio.to_thread(work, given)
        return _write_refusal(done) if isinstance(done, Refusal) else _write_json(done)

    def _open_session(self, given: Mapping[str, Json]) -> Reply:
        session = self._access.redeem(str(given.get("ticket", "")))
        if session is None:
            what = "this link has been used, or is older than five minutes"
            return _write_refusal(Refusal("not_permitted", what, "run: sightline inspect"))
        attributes = f"Path={PATH}; HttpOnly; SameSite=Strict; Max-Age={SESSION_SECONDS:.0f}"
        reply = _write_json({"form": compute_form_token(session)})
        return (*reply[:3], [*reply[3], (b"set-cookie", f"{COOKIE}={session}; {attributes}".encode())])

    async def _read_object(
        self, scope: Scope, receive: Receive, request: InspectorRequest
    ) -> dict[str, Json] | Refusal:
        if not request.headers.get(b"content-type", b"").startswith(b"application/json"):
            return _BAD_REQUEST
        length = request.headers.get(b"content-length", b"")
        size = int(length) if length.isdigit() else None
        direct = scope.get("extensions", {}).get(DIRECT_CONNECTION)
        with self._memory.start_reservation() as memory:
            max_bytes = _MAX_TICKET if request.path == "session" else _MAX_BODY  # a ticket is sent without a session
            data = await read_body(receive, size, max_bytes, memory, direct)
            if isinstance(data, PartialBody):
                return _TOO_LARGE
            if isinstance(data, Refusal):
                return data
            try:
                value = await asyncio.to_thread(json.loads, data)
            except (ValueError, RecursionError):
                return _BAD_REQUEST
        return value if isinstance(value, dict) else _BAD_REQUEST

    async def _send_events(self, receive: Receive, send: Send) -> None:
        """Send an event for each new request, until the page is closed; the record is asked once a second."""
        head = [(b"content-type", b"text/event-stream"), _NO_STORE, *_SECURITY_HEADERS]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        gone = asyncio.ensure_future(_wait_for_disconnect(receive))
        try:
            last: Json = None
            while not gone.done():
                newest = await asyncio.to_thread(self._queries.find_newest)
                event = f"data: {json.dumps(newest)}\n\n" if newest["id"] != last else ": nothing new\n\n"
                last = newest["id"]
                await send({"type": "http.response.body", "body": event.encode(), "more_body": True})
                await asyncio.wait({gone}, timeout=_POLL_SECONDS)
        finally:
            gone.cancel()


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _read_request(scope: Scope, path: str) -> InspectorRequest:
    headers: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        headers[name] = b"; ".join((headers[name], value)) if name == b"cookie" and name in headers else value
    fields = scope["query_string"].decode("latin-1").split("&", _MAX_FIELDS)[:_MAX_FIELDS]
    parsed = parse_qs("&".join(fields))
    query = {name: values[-1] for name, values in parsed.items()}
    try:
        cookies = SimpleCookie(headers.get(b"cookie", b"").decode("latin-1"))
    except CookieError:
        cookies = SimpleCookie()
    session = cookies[COOKIE].value if COOKIE in cookies else ""
    return InspectorRequest(scope["method"], path.removeprefix(_API), query, headers, session)


def _is_local_host(headers: Mapping[bytes, bytes]) -> bool:
    host = headers.get(b"host", b"").decode("latin-1").lower()
    name, _, port = host.rpartition(":")
    return is_loopback(name if port.isdigit() else host)


def _has_same_origin(headers: Mapping[bytes, bytes]) -> bool:
    host = headers.get(b"host", b"")
    return bool(host) and headers.get(b"origin", b"") in (b"http://" + host, b"https://" + host)


def _is_from_elsewhere(headers: Mapping[bytes, bytes]) -> bool:
    """Return whether the browser says that a page of another origin sent a request, such as one of another port."""
    return headers.get(b"sec-fetch-site", b"") in (b"cross-site", b"same-site")


def _answer_static(method: str, path: str) -> Reply:
    if path == PATH.rstrip("/"):  # the links of the page are relative to the folder
        return 307, b"text/plain", b"", [(b"location", PATH.encode())]
    static = STATIC.get(path.removeprefix(PATH))
    if static is None or method not in ("GET", "HEAD"):
        return _write_refusal(_NOT_FOUND)
    return 200, static[1], read_static(*static[0]), [_NO_STORE]


@cache
def read_static(*names: str) -> bytes:
    """Return files of the pages, one after the other."""
    folder = files("sightline.surfaces.inspector") / "static"
    return b"\n".join((folder / name).read_bytes() for name in names)


def _write_json(value: Mapping[str, Json], status: int = 200) -> Reply:
    return status, b"application/json", json.dumps(value).encode(), [_NO_STORE]


def _write_refusal(refusal: Refusal) -> Reply:
    return _write_json({"error": {"code": refusal.code, "message": str(refusal)}}, _STATUSES.get(refusal.code, 400))


def serve_inspector(inspector: Inspector) -> Callable[[Scope, Receive, Send], Awaitable[None]]:
    """Return an application that serves the inspector alone; `/` leads to it."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if scope["raw_path"] == b"/":
            head = [(b"location", PATH.encode()), (b"content-length", b"0")]
            await send({"type": "http.response.start", "status": 307, "headers": head})
            await send({"type": "http.response.body", "body": b""})
            return
        await inspector(scope, receive, send)

    return serve
