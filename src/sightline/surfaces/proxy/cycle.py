"""A request and its answer on a connection, as the application takes and gives them."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from uvicorn._types import HTTPScope
from uvicorn.protocols.http import httptools_impl
from uvicorn.protocols.http.flow_control import FlowControl

from sightline.surfaces.proxy.bodies import Message, unwritten
from sightline.surfaces.proxy.line import AT_ONCE, LINE

App = Callable[..., Coroutine[Any, Any, None]]

# Bodies of megabytes are the rule here: what has not come yet of one is read straight into its place. Of one that only
# flows through, to ask a client to wait at every 64 KiB costs more than to take a megabyte.
_STRAIGHT = 64 * 1024
_UNREAD = 1024 * 1024
_sound = re.compile(rb"(?:[^\x00-\x20\x7f()<>@,;:\\\[\]={}\"]+: [^\x00-\x08\x0a-\x1f\x7f]*\r\n)*").fullmatch


class Link(Protocol):
    """What a cycle needs of its connection."""

    transport: asyncio.Transport
    flow: FlowControl
    tasks: set[asyncio.Task[None]]
    serving: Cycle | None  # what is being answered; others may wait behind it

    def on_response_complete(self) -> None: ...

    def fill(self, place: memoryview) -> None:
        """The rest of a body, as long as its head has announced, goes to this place and past the parser."""


class Cycle(httptools_impl.RequestResponseCycle):
    """A request and its answer, at less cost than what it replaces.

    Pieces of a body are handed on as they came, and a head goes out together with the first bytes behind it, if
    they are there.
    """

    def __init__(self, connection: Link, scope: HTTPScope, *, expects: bool, keep_alive: bool) -> None:
        self.connection, self.scope = connection, scope
        self.transport, self.flow = connection.transport, connection.flow
        self.message_event = asyncio.Event()
        self.on_response = connection.on_response_complete
        self.disconnected = self.response_started = self.response_complete = False
        self.keep_alive, self.waiting_for_100_continue, self.more_body = keep_alive, expects, True
        self.chunked_encoding, self.expected_content_length = None, 0
        self.pieces: list[bytes] = []
        self.unread, self.most = 0, _STRAIGHT  # bytes; until the application says what it wants of the rest
        self.leaving: Callable[[], None] | None = None
        self._head = b""

    async def run_asgi(self, app: App) -> None:  # type: ignore[override]
        self.scope["extensions"] = {LINE: self}  # type: ignore[dict-item]
        try:
            with contextlib.suppress(BaseException):  # the application has said what there is to say of it
                await app(self.scope, self.receive, self.send)
            self._put(b"")
            if not self.response_started and not self.disconnected:
                await self.send_500_response()
            elif not self.response_complete and not self.disconnected:
                self.transport.close()
        finally:
            del self.scope["extensions"]  # a circle that only the collector would find
            self.leaving = None
            self.on_response = _nothing
            if self.connection.serving is self:
                self.connection.serving = None
            self.connection.tasks.discard(asyncio.current_task())
            del self.connection  # which holds this cycle: another circle

    async def receive(self) -> Message:  # type: ignore[override]
        self._go_on()
        if not self.disconnected and not self.response_complete:
            self.most = _UNREAD
            self.flow.resume_reading()
            await self._more()
        if self.disconnected or self.response_complete:
            return {"type": "http.disconnect"}
        pieces, self.pieces, self.unread = self.pieces, [], 0
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return {"type": "http.request", "body": body, "more_body": self.more_body}

    async def whole(self, length: int) -> bytes | bytearray | None:
        """The whole body, of which so many bytes are announced; None: the client has left."""
        self._go_on()
        if self.more_body and length - self.unread >= _STRAIGHT and not self.disconnected:
            return await self._filled(length)
        self.most = length + 1  # it is wanted to its end
        self.flow.resume_reading()
        while self.more_body and not self.disconnected:
            await self._more()
        pieces, self.pieces, self.unread = self.pieces, [], 0
        return None if self.disconnected else pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def _filled(self, length: int) -> bytearray | None:
        data = unwritten(length)
        with memoryview(data) as view:
            begun = b"".join(self.pieces)
            view[: len(begun)] = begun
            self.pieces, self.unread = [], 0
            self.connection.fill(view[len(begun) :])
            while self.more_body and not self.disconnected:
                await self._more()
        return None if self.disconnected else data

    def _go_on(self) -> None:
        if self.waiting_for_100_continue and not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.waiting_for_100_continue = False

    async def _more(self) -> None:
        await self.message_event.wait()
        self.message_event.clear()

    async def send(self, message: Message) -> None:  # type: ignore[override]
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        if not self.response_started:
            self._begin(message["status"], message["headers"])
            if not message.get(AT_ONCE):
                asyncio.get_running_loop().call_soon(self._put, b"")
            return
        more = message["more_body"]
        self._put(self._framed(message["body"], more=more))
        if not more:
            self._end()

    def write(self, data: bytes) -> bool:
        """Bytes of a body, at once; false: no more of them until there is room."""
        if self.chunked_encoding and data and not self._head and not self.disconnected:  # as nearly always
            self.transport.write(b"%x\r\n%b\r\n" % (len(data), data))
        elif not self.disconnected:
            self._put(self._framed(data, more=True))
        return not self.flow.write_paused

    def _begin(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self.response_started = True
        self.waiting_for_100_continue = False
        lines = b"".join([b"%b: %b\r\n" % header for header in headers])
        if not _sound(lines) or lines.count(b"\n") != len(headers):
            raise RuntimeError("a header that is none")
        length = next((value for name, value in headers if name == b"content-length"), None)
        if length is not None:
            self.expected_content_length = int(length)
        elif self.scope["method"] != "HEAD" and status not in (204, 304):
            self.chunked_encoding = True
            lines += b"transfer-encoding: chunked\r\n"
        if not self.keep_alive:
            lines += b"connection: close\r\n"
        self._head = b"%b%b\r\n" % (httptools_impl.STATUS_LINE[status], lines)

    def _framed(self, data: bytes, *, more: bool) -> bytes:
        if self.scope["method"] == "HEAD":
            self.expected_content_length = 0
            return b""
        if self.chunked_encoding:
            framed = b"%x\r\n%b\r\n" % (len(data), data) if data else b""
            return framed if more else framed + b"0\r\n\r\n"
        if len(data) > self.expected_content_length:
            raise RuntimeError("more than the head has announced")
        self.expected_content_length -= len(data)
        return data

    def _put(self, data: bytes) -> None:
        """Behind the head, if that is still here."""
        if self._head:
            data, self._head = self._head + data, b""
        if data and not self.disconnected:
            self.transport.write(data)

    def left(self) -> None:
        """Called when the client has left."""
        self.disconnected = not self.response_complete
        self.message_event.set()
        if self.leaving is not None:
            self.leaving()

    def _end(self) -> None:
        if self.expected_content_length:
            raise RuntimeError("less than the head has announced")
        self.response_complete = True
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()


def _nothing() -> None:
    """Stands for `on_response` once the cycle has let go of its connection."""
