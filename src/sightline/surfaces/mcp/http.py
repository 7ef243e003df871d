"""The MCP server as an ASGI application at /mcp. The application around it listens, guards and stops."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from sightline.model.refusal import Refusal
from sightline.server import DIRECT_CONNECTION, DirectConnection, Message, Receive, Send
from sightline.server.asgi import ClientDisconnected, MemoryBudget, PartialBody, Reservation, read_body
from sightline.surfaces.mcp import ClientTerms
from sightline.surfaces.mcp.large_requests import LIFTED, MAX_REQUEST_BYTES, LiftedRequest, is_large, lift_request
from sightline.vision.concurrency import ComputeThread
from sightline.wire.json_tree import count_values

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

MAX_BYTES_WITHOUT_SESSION = 16 * 1024  # what a client says of itself in `initialize` is kept as long as its session
MAX_VALUES_WITHOUT_SESSION = 500  # a parsed value can take a hundred times its bytes
_LARGE_BYTES = 16 * 1024  # of a request or a response that must not stay in memory with its session
_RETRY_AFTER_SECONDS = 2
_SESSION = b"mcp-session-id"
_VERSION = b"mcp-protocol-version"
_CREDENTIALS = (b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key")
_INVALID_REQUEST = -32600
_INTERNAL_ERROR = -32603
_BAD_MESSAGE = {
    "code": -32600,
    "message": "this is not a JSON-RPC message (see https://www.jsonrpc.org/specification)",
}
_REMEDIES = {
    "missing session id": "send initialize first, then the mcp-session-id of its response with every request",
    "session not found": "send initialize again",
    "expired session id": "send initialize again",
    "has been terminated": "send initialize again",
    "not acceptable": "send accept: application/json, text/event-stream",
    "content-type": "send content-type: application/json",
    "method not allowed": "send POST",
    "params._meta": "send them, or initialize first as clients up to 2025-11-25 do",
}  # by words in the messages of the SDK
_REASONS = {405: "Method Not Allowed", 406: "Not Acceptable"}  # of errors that the SDK sends without a body
_NOT_INSTALLED = "MCP is not installed here (pip install 'sightline[mcp]')"
_TOO_LARGE = Refusal(
    "too_large", f"this request is larger than {MAX_REQUEST_BYTES >> 20} MB", "send less in one request"
)
_TOO_LARGE_WITHOUT_SESSION = Refusal(
    "too_large",
    f"a request without a session is at most {MAX_BYTES_WITHOUT_SESSION >> 10} KB",
    "send initialize first, then the mcp-session-id of its response with every request",
)
_TOO_MANY_WITHOUT_SESSION = replace(
    _TOO_LARGE_WITHOUT_SESSION,
    what=f"a request without a session has at most {MAX_VALUES_WITHOUT_SESSION} JSON values",
)
_UNKNOWN_SESSION = Refusal("not_found", "Session not found", "send initialize again")
_STATUSES = {"too_large": 413, "not_found": 404, "unavailable": 503}


SessionCaller = tuple[str, str]
"""The address and the credential from which a session was opened.

All programs on this machine without a credential are one caller: they share the loopback address.
"""

MAX_SESSIONS = 1000
_OPENING_REQUESTS = 1  # `notifications/initialized` belongs to the opening
MAX_SESSIONS_PER_CALLER = 250


@dataclass(slots=True)
class _Session:
    caller: SessionCaller
    requests: int = 0  # after the one that opened it
    active: int = 0

    @property
    def rank(self) -> tuple[bool, bool]:
        """The session with the lowest rank ends first."""
        return self.active > 0, self.requests > _OPENING_REQUESTS


class HttpSessions:
    """The open sessions, bounded for each caller and in total, so that no caller can lock out others.

    A new session is always accepted. If that is one too many, another one ends: its id is answered with 404, and its
    client has to initialize again. Of the sessions without an active request, one that was only opened and never used
    ends first, then the least recently used one.
    """

    def __init__(self, end: Callable[[str], Awaitable[None]]) -> None:
        """`end` ends a session at the server."""
        self._end = end
        self._open: OrderedDict[str, _Session] = OrderedDict()  # the least recently used one first

    def is_open(self, name: str) -> bool:
        """Return whether a session is open."""
        return name in self._open

    @contextlib.contextmanager
    def track_request(self, name: str) -> Iterator[None]:
        """Count a request of a session while it is active. An unknown session is ignored."""
        session = self._open.get(name)
        if session is None:
            yield
            return
        session.requests += 1
        session.active += 1
        self._open.move_to_end(name)
        try:
            yield
        finally:
            session.active -= 1

    def add(self, name: str, caller: SessionCaller) -> None:
        """Add a session that was opened, before its client learns its name."""
        self._open[name] = _Session(caller)

    async def end_excess(self, name: str, caller: SessionCaller) -> None:
        """End another session if this one is one too many."""
        own = [each for each, session in self._open.items() if session.caller == caller and each != name]
        if len(own) >= MAX_SESSIONS_PER_CALLER:
            await self._end_one(own)
        elif len(self._open) > MAX_SESSIONS:
            await self._end_one([each for each in self._open if each != name])

    def remove(self, name: str) -> None:
        """Remove a session that has ended."""
        self._open.pop(name, None)

    async def _end_one(self, names: list[str]) -> None:
        name = min(names, key=lambda each: self._open[each].rank)  # the first of several is the least recently used
        self.remove(name)
        await self._end(name)


class McpMount:
    """The application at /mcp. The SDK is imported with the first request that the guards let through."""

    def __init__(
        self,
        terms: ClientTerms,
        *,
        stateless: bool = False,
        offload: ComputeThread | None = None,
        memory: MemoryBudget | None = None,
    ) -> None:
        """`stateless`: another process may get the next request of a client."""
        self._terms, self._stateless = terms, stateless
        self._offload = offload or ComputeThread()
        self.memory = memory or MemoryBudget()  # of the bodies of active requests
        self._manager: asyncio.Future[StreamableHTTPSessionManager] | None = None
        self._task: asyncio.Task[None] | None = None
        self._sessions = HttpSessions(self._end)
        self._releases: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if find_spec("mcp") is None:
            await _send_error(send, 501, _INTERNAL_ERROR, _NOT_INSTALLED)
            return
        with self.memory.start_reservation() as memory, contextlib.suppress(ClientDisconnected):
            request = await self._read(scope, receive, memory)
            if isinstance(request, Refusal):
                await _send_refusal(send, request)
            else:
                await self._serve(scope, request, receive, send)

    async def _read(self, scope: dict[str, Any], receive: Receive, memory: Reservation) -> LiftedRequest | Refusal:
        """Return a request that is small enough for the SDK to parse on the event loop, or why it is refused."""
        too_large, max_bytes = self._find_size_limit(scope)
        length = _get_header(scope, b"content-length")
        line: DirectConnection | None = scope.get("extensions", {}).get(DIRECT_CONNECTION)
        body = await read_body(receive, int(length) if length.isdigit() else None, max_bytes, memory, line)
        if isinstance(body, Refusal):
            return body
        if isinstance(body, PartialBody) or len(body) > max_bytes:
            return too_large
        if max_bytes == MAX_BYTES_WITHOUT_SESSION and _has_many_values(body):
            return _UNKNOWN_SESSION if _get_header(scope, _SESSION) else _TOO_MANY_WITHOUT_SESSION
        if not is_large(body):
            return lift_request(body)
        return await self._offload.run("\n".join(_get_caller(scope)), lift_request, body)

    def _find_size_limit(self, scope: dict[str, Any]) -> tuple[Refusal, int]:
        """Return the refusal of a request that is too large, and how many bytes it may have."""
        session = _get_header(scope, _SESSION)
        if self._stateless or self._sessions.is_open(session) or _is_sessionless(scope):
            return _TOO_LARGE, MAX_REQUEST_BYTES
        return _UNKNOWN_SESSION if session else _TOO_LARGE_WITHOUT_SESSION, MAX_BYTES_WITHOUT_SESSION

    async def _serve(self, scope: dict[str, Any], request: LiftedRequest, receive: Receive, send: Send) -> None:
        manager = await self._get_manager()
        name, caller = _get_header(scope, _SESSION), _get_caller(scope)
        opened: list[str] = []

        def note_session(session: str) -> None:
            """Add the session that a response opens before its client learns of it."""
            if not name and session:
                self._sessions.add(session, caller)
                opened.append(session)

        response = _Response(send, note_session)
        scope[LIFTED] = request
        try:
            with self._sessions.track_request(name):
                await manager.handle_request(scope, _replay(request.body, receive), response)
        finally:
            del scope[LIFTED]  # the SDK keeps the scope
            if self._sessions.is_open(name) and max(request.size, response.size) > _LARGE_BYTES:
                self._start_release(name)
        if scope["method"] == "DELETE":
            self._sessions.remove(name)
        for session in opened:
            await self._sessions.end_excess(session, caller)

    def _start_release(self, session: str) -> None:
        """Release the last request and response of a session, also if the client has left.

        The SDK's loops keep them in local variables until the next ones come. A `ping` takes their place.
        """
        ping = json.dumps({"jsonrpc": "2.0", "id": f"sightline-{secrets.token_hex(8)}", "method": "ping"}).encode()
        task = asyncio.create_task(self._send_as_client("POST", session, ping))
        self._releases.add(task)
        task.add_done_callback(self._releases.discard)

    async def _end(self, session: str) -> None:
        """End a session as its client would."""
        await self._send_as_client("DELETE", session)

    async def _send_as_client(self, method: str, session: str, body: bytes = b"") -> None:
        """Send a request of a session to the SDK, and ignore the response."""
        manager = await self._get_manager()
        headers = [
            (_SESSION, session.encode("latin-1")),
            (b"accept", b"application/json, text/event-stream"),
            (b"content-type", b"application/json"),
        ]
        scope = {"type": "http", "method": method, "path": "/", "query_string": b"", "headers": headers}
        await manager.handle_request(scope, _replay(body, _wait_forever), _discard)

    async def _get_manager(self) -> StreamableHTTPSessionManager:
        if self._manager is None:
            self._manager = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._run(self._manager))
        return await asyncio.shield(self._manager)

    async def close(self) -> None:
        for release in self._releases:
            release.cancel()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self, ready: asyncio.Future[StreamableHTTPSessionManager]) -> None:
        """Run the session manager in a task of its own, because sessions belong to the task that opened them."""
        try:
            server = await asyncio.to_thread(import_module, "sightline.surfaces.mcp.server")
            managers = await asyncio.to_thread(import_module, "mcp.server.streamable_http_manager")
            manager = managers.StreamableHTTPSessionManager(
                app=server.build_server(self._terms),
                stateless=self._stateless,
                max_request_body_size=MAX_REQUEST_BYTES,
                max_sessions=None,  # the SDK would refuse new sessions; see `HttpSessions`
            )
            async with manager.run():
                ready.set_result(manager)
                await asyncio.Event().wait()
        except BaseException as error:
            if not ready.done():
                ready.set_exception(error if isinstance(error, Exception) else RuntimeError("the server is stopping"))
                self._manager = None
            raise


class _Response:
    """Sends a response with the fields that ASGI lets a message leave out, and errors in one line with a remedy."""

    def __init__(self, send: Send, note_session: Callable[[str], None]) -> None:
        """`note_session` is called with the session of a response before its head is sent."""
        self._send, self._note_session = send, note_session
        self._start: Message | None = None  # of an error, until its body comes
        self.size = 0  # bytes of the body

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            start = {"headers": [], **message}
            if start["status"] < 400:
                self._note_session(_get_header(start, _SESSION))
                await self._send(start)
            else:
                self._start = start
            return
        body_message = {"body": b"", "more_body": False, **message}
        self.size += len(body_message["body"])
        if self._start is not None:
            head, self._start = self._start, None
            words = body_message["body"] or _REASONS.get(head["status"], "").encode()
            body_message["body"] = body_message["body"] if body_message["more_body"] else _write_error(words)
            kept = [(name, value) for name, value in head["headers"] if name.lower() != b"content-length"]
            await self._send({**head, "headers": kept})
        await self._send(body_message)


def _write_error(body: bytes) -> bytes:
    """Return the body of an error in one line, with a remedy.

    If a request is no JSON-RPC message, the SDK writes several lines, with the code for bad parameters.
    """
    try:
        error_body = json.loads(body)
    except ValueError:
        return _add_remedy(body.decode(errors="replace")).encode()
    match error_body:
        case {"error": {"message": str(words)}} if "\n" in words:
            return json.dumps({**error_body, "error": _BAD_MESSAGE}).encode()
        case {"error": {"message": str(words)} as error}:
            return json.dumps({**error_body, "error": {**error, "message": _add_remedy(words)}}).encode()
    return body


def _add_remedy(words: str) -> str:
    remedy = next((remedy for sign, remedy in _REMEDIES.items() if sign in words.lower()), "")
    return f"{words} ({remedy})" if remedy else words


async def _send_refusal(send: Send, refusal: Refusal) -> None:
    status = _STATUSES[refusal.code]
    retry = [(b"retry-after", b"%d" % _RETRY_AFTER_SECONDS)] if status == 503 else []
    await _send_error(send, status, _INTERNAL_ERROR if status == 503 else _INVALID_REQUEST, str(refusal), retry)


async def _send_error(
    send: Send, status: int, code: int, message: str, headers: Sequence[tuple[bytes, bytes]] = ()
) -> None:
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
    start = [(b"content-type", b"application/json"), *headers]
    await send({"type": "http.response.start", "status": status, "headers": start})
    await send({"type": "http.response.body", "body": json.dumps(error).encode(), "more_body": False})


def _get_header(message: Message, name: bytes) -> str:
    """Return the first header of this name, or an empty text."""
    return next((value.decode("latin-1") for key, value in message["headers"] if key.lower() == name), "")


def _get_caller(scope: dict[str, Any]) -> SessionCaller:
    """Return the address and the credential of a request."""
    host = scope.get("client") or ("", 0)
    return str(host[0]), next(filter(None, (_get_header(scope, name) for name in _CREDENTIALS)), "")


def _has_many_values(body: bytes | bytearray) -> bool:
    """Return whether a request has too many values to open a session, which only an object can do."""
    limit = MAX_VALUES_WITHOUT_SESSION
    return body.lstrip().startswith(b"{") and count_values(body, limit) > limit


def _is_sessionless(scope: dict[str, Any]) -> bool:
    """Return whether a request has a protocol version without sessions."""
    from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

    version = _get_header(scope, _VERSION)
    return bool(version) and version not in HANDSHAKE_PROTOCOL_VERSIONS


def _replay(body: bytes | bytearray, receive: Receive) -> Receive:
    """Return a `receive` that gives the body once, and then what follows it. It does not keep the body."""
    bodies = [body]

    async def receive_again() -> Message:
        if not bodies:
            return await receive()
        return {"type": "http.request", "body": bytes(bodies.pop()), "more_body": False}

    return receive_again


async def _wait_forever() -> Message:
    await asyncio.Event().wait()
    return {"type": "http.disconnect"}


async def _discard(message: Message) -> None:
    """Ignore a response."""
