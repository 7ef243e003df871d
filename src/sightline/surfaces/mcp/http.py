"""The server at an address of an ASGI application that has its own way of listening, guarding and ending."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from sightline.model.refusal import Refusal
from sightline.server import LINE, Line, Message, Receive, Send
from sightline.server.bodies import Beginning, ClientDisconnected, MemoryBudget, Reservation, read_body
from sightline.surfaces.mcp.clients import Terms
from sightline.surfaces.mcp.large_requests import LIFTED, MOST_BYTES, LiftedRequest, is_large, lift_request
from sightline.surfaces.mcp.sessions import Caller, Sessions
from sightline.vision.fairness import Offload
from sightline.wire.jsonsize import count_values

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

MOST_WITHOUT_SESSION = 64 * 1024  # bytes: what `initialize` says of a client is kept as long as its session
MOST_VALUES_WITHOUT_SESSION = 500  # a value can take a hundred times the bytes that it is written with
_RETRY_AFTER_SECONDS = 2
_SESSION = b"mcp-session-id"
_VERSION = b"mcp-protocol-version"
_CREDENTIALS = (b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key")
_INVALID_REQUEST = -32600
_INTERNAL_ERROR = -32603
_BAD_MESSAGE = {
    "code": -32600,
    "message": "this is no JSON-RPC message (see https://www.jsonrpc.org/specification)",
}
_REMEDIES = {
    "missing session id": "send initialize first, and the mcp-session-id of its answer with every request",
    "session not found": "send initialize again",
    "expired session id": "send initialize again",
    "has been terminated": "send initialize again",
    "not acceptable": "send accept: application/json, text/event-stream",
    "content-type": "send content-type: application/json",
    "method not allowed": "send POST",
    "params._meta": "send them, or initialize first as clients up to 2025-11-25 do",
}  # to words of the SDK
_REASONS = {405: "Method Not Allowed", 406: "Not Acceptable"}  # of errors that the SDK sends without a body
_NOT_INSTALLED = "MCP is not installed here (pip install 'sightline[mcp]')"
_TOO_LARGE = Refusal("too_large", f"this request is larger than {MOST_BYTES >> 20} MB", "send less in one request")
_TOO_LARGE_WITHOUT_SESSION = Refusal(
    "too_large",
    f"a request without a session is at most {MOST_WITHOUT_SESSION >> 10} KB",
    "send initialize first, and the mcp-session-id of its answer with every request",
)
_TOO_MANY_WITHOUT_SESSION = replace(
    _TOO_LARGE_WITHOUT_SESSION,
    what=f"a request without a session has at most {MOST_VALUES_WITHOUT_SESSION} JSON values",
)
_UNKNOWN_SESSION = Refusal("not_found", "Session not found", "send initialize again")
_STATUSES = {"too_large": 413, "not_found": 404, "unavailable": 503}


class Mount:
    """The application at /mcp. Everything of MCP is loaded with the first request that its guards have let in."""

    def __init__(
        self,
        terms: Terms,
        *,
        stateless: bool = False,
        offload: Offload | None = None,
        memory: MemoryBudget | None = None,
    ) -> None:
        """`stateless`: the next request of a client may meet another process."""
        self._terms, self._stateless = terms, stateless
        self._offload = offload or Offload()
        self.memory = memory or MemoryBudget()  # of the bodies under way
        self._manager: asyncio.Future[StreamableHTTPSessionManager] | None = None
        self._task: asyncio.Task[None] | None = None
        self._sessions = Sessions(self._end)

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if find_spec("mcp") is None:
            await _send_error(send, 501, _INTERNAL_ERROR, _NOT_INSTALLED)
            return
        with self.memory.open() as memory, contextlib.suppress(ClientDisconnected):
            request = await self._read(scope, receive, memory)
            if isinstance(request, Refusal):
                await _send_refusal(send, request)
            else:
                scope[LIFTED] = request
                await self._serve(scope, _replay(request.body, receive), send)

    async def _read(self, scope: dict[str, Any], receive: Receive, memory: Reservation) -> LiftedRequest | Refusal:
        """Return a request that the SDK can parse on the event loop, or why there is none."""
        too_large, most = self._bound(scope)
        length = _header(scope, b"content-length")
        line: Line | None = scope.get("extensions", {}).get(LINE)
        body = await read_body(receive, int(length) if length.isdigit() else None, most, memory, line)
        if isinstance(body, Refusal):
            return body
        if isinstance(body, Beginning) or len(body) > most:
            return too_large
        if most == MOST_WITHOUT_SESSION and _has_many_values(body):
            return _UNKNOWN_SESSION if _header(scope, _SESSION) else _TOO_MANY_WITHOUT_SESSION
        if not is_large(body):
            return lift_request(body)
        return await self._offload.run("\n".join(_caller(scope)), lift_request, body)

    def _bound(self, scope: dict[str, Any]) -> tuple[Refusal, int]:
        """Return how many bytes a request may have, and the refusal of more."""
        session = _header(scope, _SESSION)
        if self._stateless or self._sessions.knows(session) or _is_sessionless(scope):
            return _TOO_LARGE, MOST_BYTES
        return _UNKNOWN_SESSION if session else _TOO_LARGE_WITHOUT_SESSION, MOST_WITHOUT_SESSION

    async def _serve(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        manager = await self._managing()
        name, caller = _header(scope, _SESSION), _caller(scope)
        opened: list[str] = []

        def note_session(session: str) -> None:
            """Add the session that the response opens before its client hears of it."""
            if not name and session:
                self._sessions.add(session, caller)
                opened.append(session)

        response = _Response(send, note_session)
        with self._sessions.using(name):
            await manager.handle_request(scope, receive, response)
        if scope["method"] == "DELETE":
            self._sessions.forget(name)
        for session in opened:
            await self._sessions.end_excess(session, caller)

    async def _end(self, session: str) -> None:
        """End a session as its client would."""
        manager = await self._managing()
        headers = [(_SESSION, session.encode("latin-1")), (b"accept", b"application/json, text/event-stream")]
        scope = {"type": "http", "method": "DELETE", "path": "/", "query_string": b"", "headers": headers}
        await manager.handle_request(scope, _receive_nothing, _discard)

    async def _managing(self) -> StreamableHTTPSessionManager:
        if self._manager is None:
            self._manager = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._run(self._manager))
        return await asyncio.shield(self._manager)

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self, ready: asyncio.Future[StreamableHTTPSessionManager]) -> None:
        """As long as the application lives: sessions belong to the task that opened them."""
        try:
            made = await asyncio.to_thread(import_module, "sightline.surfaces.mcp.server")
            managers = await asyncio.to_thread(import_module, "mcp.server.streamable_http_manager")
            manager = managers.StreamableHTTPSessionManager(
                app=made.server(self._terms),
                stateless=self._stateless,
                max_request_body_size=MOST_BYTES,
                max_sessions=None,  # it would turn newcomers away: see `sessions`
            )
            async with manager.run():
                ready.set_result(manager)
                await asyncio.Event().wait()
        except BaseException as trouble:
            if not ready.done():
                ready.set_exception(trouble if isinstance(trouble, Exception) else RuntimeError("it ends"))
                self._manager = None
            raise


class _Response:
    """Sends a response with all that ASGI lets a message leave out, and errors in one line with what to do."""

    def __init__(self, send: Send, note_session: Callable[[str], None]) -> None:
        """`note_session` is called with the session of a response before its head is sent."""
        self._send, self._note_session = send, note_session
        self._start: Message | None = None  # of an error, until its body is there

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            start = {"headers": [], **message}
            if start["status"] < 400:
                self._note_session(_header(start, _SESSION))
                await self._send(start)
            else:
                self._start = start
            return
        whole = {"body": b"", "more_body": False, **message}
        if self._start is not None:
            begun, self._start = self._start, None
            words = whole["body"] or _REASONS.get(begun["status"], "").encode()
            whole["body"] = whole["body"] if whole["more_body"] else _write_error(words)
            kept = [(name, value) for name, value in begun["headers"] if name.lower() != b"content-length"]
            await self._send({**begun, "headers": kept})
        await self._send(whole)


def _write_error(body: bytes) -> bytes:
    """Return the body of an error in one line, with what to do.

    For a body that is no message the SDK writes several lines, with the code for bad parameters.
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


def _header(message: Message, name: bytes) -> str:
    """Return the first header of this name, or nothing."""
    return next((value.decode("latin-1") for key, value in message["headers"] if key.lower() == name), "")


def _caller(scope: dict[str, Any]) -> Caller:
    """Return who opens a session, as far as a request tells."""
    host = scope.get("client") or ("", 0)
    return str(host[0]), next(filter(None, (_header(scope, name) for name in _CREDENTIALS)), "")


def _has_many_values(body: bytes | bytearray) -> bool:
    """Return whether a request has too many values to open a session. What is no object opens none."""
    most = MOST_VALUES_WITHOUT_SESSION
    return body.lstrip().startswith(b"{") and count_values(body, most) > most


def _is_sessionless(scope: dict[str, Any]) -> bool:
    """Return whether a request is of a version of the protocol that has no sessions."""
    from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

    version = _header(scope, _VERSION)
    return bool(version) and version not in HANDSHAKE_PROTOCOL_VERSIONS


def _replay(body: bytes | bytearray, receive: Receive) -> Receive:
    """Return a `receive` that gives the body once, and then what comes after it."""
    given = False

    async def receive_again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": bytes(body), "more_body": False}

    return receive_again


async def _receive_nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _discard(message: Message) -> None:
    """Ignore a response."""
