"""The server at an address of an ASGI application that has its own way of listening, guarding and ending."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from sightline.surfaces.mcp.clients import Terms
from sightline.surfaces.mcp.sessions import Caller, Sessions
from sightline.wire.jsonsize import count_marks

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_LARGEST = 64 * 1024 * 1024  # of a request: a file may come as base64
MOST_MARKS = 100_000  # commas and opening brackets of a request: while it is parsed, everybody else waits
_SESSION = b"mcp-session-id"
_CREDENTIALS = (b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key")
_TOO_MANY_VALUES = {
    "jsonrpc": "2.0",
    "id": None,
    "error": {"code": -32600, "message": f"there are more than {MOST_MARKS:,} JSON values in this request"},
}
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
_WORDLESS = {405: "Method Not Allowed", 406: "Not Acceptable"}
_ABSENT = {
    "jsonrpc": "2.0",
    "id": None,
    "error": {"code": -32603, "message": "MCP is not installed here (pip install 'sightline[mcp]')"},
}


class Mount:
    """Everything of MCP is loaded with the first request. Whoever may not come was turned away before."""

    def __init__(self, terms: Terms, *, stateless: bool = False) -> None:
        """`stateless`: the next request of a client may meet another process."""
        self._terms, self._stateless = terms, stateless
        self._manager: asyncio.Future[StreamableHTTPSessionManager] | None = None
        self._task: asyncio.Task[None] | None = None
        self._sessions = Sessions(self._end)

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if find_spec("mcp") is None:
            await _refuse(send, 501, _ABSENT)
            return
        messages = await _received(receive)
        if sum(count_marks(message.get("body", b""), MOST_MARKS) for message in messages) > MOST_MARKS:
            await _refuse(send, 413, _TOO_MANY_VALUES)
            return
        await self._serve(scope, _replay(messages, receive), _Told(send))

    async def _serve(self, scope: dict[str, Any], receive: Receive, told: _Told) -> None:
        manager = await self._managing()
        name = _header(scope, _SESSION)
        with self._sessions.using(name):
            await manager.handle_request(scope, receive, told)
        if scope["method"] == "DELETE":
            self._sessions.forget(name)
        elif not name and told.session:
            await self._sessions.admit(told.session, _caller(scope))

    async def _end(self, session: str) -> None:
        """End a session as its client would."""
        manager = await self._managing()
        headers = [(_SESSION, session.encode("latin-1")), (b"accept", b"application/json, text/event-stream")]
        scope = {"type": "http", "method": "DELETE", "path": "/", "query_string": b"", "headers": headers}
        await manager.handle_request(scope, _nothing, _unheard)

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
                max_request_body_size=_LARGEST,
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


class _Told:
    """What goes to a client: with all that a message may leave out, and a no in one line."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None  # of a no, until its words are there
        self.session = ""  # that was used or opened

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            start = {"headers": [], **message}
            if start["status"] < 400:
                self.session = _header(start, _SESSION)
                await self._send(start)
            else:
                self._start = start
            return
        whole = {"body": b"", "more_body": False, **message}
        if self._start is not None:
            begun, self._start = self._start, None
            words = whole["body"] or _WORDLESS.get(begun["status"], "").encode()
            whole["body"] = whole["body"] if whole["more_body"] else _in_a_line(words)
            kept = [(name, value) for name, value in begun["headers"] if name.lower() != b"content-length"]
            await self._send({**begun, "headers": kept})
        await self._send(whole)


def _in_a_line(body: bytes) -> bytes:
    """With what to do. What is no message is told in several lines by the SDK, and as if it had bad parameters."""
    try:
        told = json.loads(body)
    except ValueError:
        return _remedied(body.decode(errors="replace")).encode()
    match told:
        case {"error": {"message": str(words)}} if "\n" in words:
            return json.dumps({**told, "error": _BAD_MESSAGE}).encode()
        case {"error": {"message": str(words)} as error}:
            return json.dumps({**told, "error": {**error, "message": _remedied(words)}}).encode()
    return body


def _remedied(words: str) -> str:
    remedy = next((remedy for sign, remedy in _REMEDIES.items() if sign in words.lower()), "")
    return f"{words} ({remedy})" if remedy else words


async def _refuse(send: Send, status: int, told: dict[str, Any]) -> None:
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(told).encode(), "more_body": False})


def _header(message: Message, name: bytes) -> str:
    """Return the first header of this name, or nothing."""
    return next((value.decode("latin-1") for key, value in message["headers"] if key.lower() == name), "")


def _caller(scope: dict[str, Any]) -> Caller:
    """Return who opens a session, as far as a request tells."""
    host = scope.get("client") or ("", 0)
    return str(host[0]), next(filter(None, (_header(scope, name) for name in _CREDENTIALS)), "")


async def _received(receive: Receive) -> list[Message]:
    """Return the messages of a request up to its end, or until they are more than a request may be."""
    messages, size = [await receive()], 0
    while messages[-1].get("more_body") and size <= _LARGEST:
        size += len(messages[-1]["body"])
        messages.append(await receive())
    return messages


def _replay(messages: list[Message], receive: Receive) -> Receive:
    """Give messages that were received once more, and then those that come after them."""
    left = deque(messages)

    async def again() -> Message:
        return left.popleft() if left else await receive()

    return again


async def _nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _unheard(message: Message) -> None:
    """Take an answer that nobody waits for."""
