"""One client request: its context, the response that the client gets, and the end of its work on a disconnect.

The client gets the upstream's response as it arrives, or an error in the shape of its own wire (`ClientResponse`). A
client that asked for a stream gets keep-alives while nothing else can be sent (`RequestContext.keep_alive`). When the
client disconnects, the work for it is cancelled (`CancelOnDisconnect`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, runtime_checkable

import orjson

from sightline.dial import BrokenResponse, Exchange
from sightline.model.profile import RequestOrigin
from sightline.model.records import Receipt
from sightline.model.refusal import Refusal
from sightline.server import BODY_FOLLOWS, DirectConnection, Headers, Receive, Send
from sightline.surfaces.proxy.http_headers import (
    HEADERS_WITH_ADDRESS,
    ClientRequest,
    HeadRoute,
    LocationRewriter,
    drop_body_headers,
    filter_response_headers,
    has_lost_location,
)
from sightline.surfaces.proxy.routes import Route
from sightline.vision.vision_request import SeerActivity
from sightline.wire import WIRES, Wire
from sightline.wire.sse import StreamState, UpstreamBytes, UpstreamEvent, UpstreamFailure, UpstreamSilence, listen
from sightline.wire.tool_loop import StreamListener

T = TypeVar("T")

STREAM_TYPE = (b"content-type", b"text/event-stream")
STREAM_HEADERS = [STREAM_TYPE, (b"cache-control", b"no-cache")]
MAX_ERROR_BYTES = 64 * 1024  # bytes of an upstream's error that are read
_MAX_UNHEARD = 64 * 1024  # bytes of a stream that may be sent before they are listened to
_RETRY_AFTER = 2
_BAD_STATUS = Refusal("unavailable", "the upstream answered with an invalid HTTP status", "")
_UNSAFE_REDIRECT = Refusal(
    "invalid_input",
    "the upstream redirected to an address at which a Sightline proxy may listen; following it could send the"
    " request to another provider",
    "check the address of the upstream, which sightline doctor shows",
)


@dataclass(slots=True)
class LogEntry:
    """What the log says about one request."""

    route: Route | None = None  # None: it was refused, or answered by a page or a mounted application
    model: str = ""
    receipts: list[Receipt] = field(default_factory=list)
    status: int = 0  # 0: the client disconnected before it had one
    started_at: float = field(default_factory=time.perf_counter)
    activity: SeerActivity | None = None  # None: it is not reported

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.started_at


@runtime_checkable
class _Closable(Protocol):
    """A result of work that owns a connection."""

    def close(self) -> None: ...


class RequestContext:
    __slots__ = (
        "_caller",
        "_scope_of",
        "entry",
        "head",
        "involves_images",
        "keep_alive_after",
        "request",
        "response",
        "route",
        "wants_stream",
    )

    def __init__(
        self,
        request: ClientRequest,
        head: HeadRoute,
        response: ClientResponse,
        scope_of: Callable[[str], str],
        keep_alive_after: float,
        entry: LogEntry,
    ) -> None:
        """Start the context of a request; its stream gets keep-alives after `keep_alive_after` seconds of silence."""
        self.request = request
        self.head = head
        self.route = head.route
        self.response = response
        self.entry = entry
        entry.route = head.route
        self.keep_alive_after = keep_alive_after
        self.wants_stream = False  # the client asks for a stream; known once its body has been read
        self.involves_images = False  # it has images, or can get them; known then, too
        self._scope_of = scope_of
        self._caller: RequestOrigin | None = None

    @property
    def caller(self) -> RequestOrigin:
        """Who sent the request. Only requests of a wire have a caller: nothing is remembered of others."""
        if self._caller is None:
            route = self.route
            assert route.wire is not None
            scope = self._scope_of(self.head.credential)
            self._caller = RequestOrigin(route.upstream, route.wire.name, scope, self.head.seer_headers)
        return self._caller

    def get_scope(self) -> str:
        """Return the scope of the record to which the request belongs."""
        return self.caller.scope

    def keep_alive(self, work: Awaitable[T]) -> Awaitable[T]:
        """Return the result of `work`; send keep-alives meanwhile, every `keep_alive_after` seconds."""
        wire = self.route.wire
        needs_none = not self.wants_stream or wire is None or not wire.stream_format.keep_alive
        return work if needs_none else self._send_keep_alives(work)

    async def _send_keep_alives(self, work: Awaitable[T]) -> T:
        task = asyncio.ensure_future(work)
        try:
            while not (await asyncio.wait({task}, timeout=self.keep_alive_after))[0]:
                await self.response.send_keep_alive()
        except BaseException:
            task.add_done_callback(_close_result)
            task.cancel()
            raise
        return task.result()


def _close_result(task: asyncio.Future[Any]) -> None:
    """Close the connection of a response that arrived just as its client disconnected."""
    if not task.cancelled() and task.exception() is None and isinstance(found := task.result(), _Closable):
        found.close()


class CancelOnDisconnect:
    """A context that cancels the work inside when the client disconnects, and continues after it."""

    __slots__ = ("_after", "_direct", "_left", "_receive", "_watcher", "_worker")

    def __init__(
        self, receive: Receive, direct: DirectConnection | None = None, after: asyncio.Event | None = None
    ) -> None:
        """`after` is set once nothing else calls `receive`. Until then, its caller notices a disconnect."""
        worker = asyncio.current_task() if direct is None else direct.task
        assert worker is not None
        self._receive, self._direct, self._after, self._worker = receive, direct, after, worker
        self._left = False
        self._watcher: asyncio.Future[None] | None = None

    def __enter__(self) -> None:
        if (direct := self._direct) is None:
            self._watcher = asyncio.ensure_future(self._wait_for_disconnect())
            return
        direct.on_disconnect = self._cancel
        if direct.disconnected:
            self._cancel()

    def __exit__(self, kind: object, error: object, trace: object) -> bool:
        if self._direct is not None:
            self._direct.on_disconnect = None
        elif self._watcher is not None:
            self._watcher.cancel()
        is_ours = self._left and isinstance(error, asyncio.CancelledError)
        if is_ours:
            self._worker.uncancel()
        return is_ours

    def _cancel(self) -> None:
        self._left = True
        self._worker.cancel()

    async def _wait_for_disconnect(self) -> None:
        if self._after is not None:
            await self._after.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._cancel()


def is_event_stream(exchange: Exchange) -> bool:
    """Return whether a response is a stream of events that is not compressed."""
    kind = exchange.first_headers.get(b"content-type", b"")
    return kind.startswith(b"text/event-stream") and not exchange.get_header(b"content-encoding")


_STARTS = {wire.name: StreamState(wire.stream_format) for wire in WIRES}  # of streams


class ClientResponse:
    started = ended = False
    status = 0  # 0: the client disconnected before it had one
    _holds_head = False
    _between_legs = False  # two legs of an answer
    _unheard_bytes = 0  # sent and not yet listened to
    _listener: StreamListener | None = None

    def __init__(
        self,
        send: Send,
        wire: Wire,
        listens: bool = True,
        direct: DirectConnection | None = None,
        rewriter: LocationRewriter | None = None,
    ) -> None:
        """Start a response. With `listens`, streams are listened to, so that one that breaks off can be ended well."""
        self._send = send
        self._direct = direct
        self._rewriter = rewriter  # for the upstream's headers; None: there is no upstream
        self.wire = wire
        self._listening = _STARTS[wire.name] if listens else None
        self._unheard: list[bytes] = []  # these bytes

    async def relay(self, exchange: Exchange, listener: StreamListener | None = None) -> None:
        """Send a response as it arrives. If it breaks off, end it with the wire's error event, or without an end.

        A listener may drop parts of it. If the listener finds a call of one of our tools, the response stays open.
        """
        self._between_legs = False
        if self.started:
            await self._relay_late(exchange, listener)
            return
        if not 200 <= exchange.status < 600:
            await self.refuse(_BAD_STATUS)
            return
        if self._listening is not None and not is_event_stream(exchange):
            self._listening = None
        status, listening = exchange.status, self._listening is not None
        # The upstream's content-length doesn't include what may have to be added to a stream.
        names = exchange.first_headers
        headers = filter_response_headers(status, self._rewrite_headers(exchange), names, grows=listening)
        if 300 <= status < 400 and has_lost_location(exchange.headers, headers):
            await self.refuse(_UNSAFE_REDIRECT)
            return
        # A listener may drop all of what has come.
        await self._send_start(status, headers, at_once=listener is None and exchange.has_data)
        if listening:
            await self._relay_stream(exchange, listener)
        else:
            await self._relay_whole(exchange)

    async def hold_head(self, work: Awaitable[T]) -> T:
        """Return the result of `work`; send no head for a keep-alive meanwhile, because the response's may follow."""
        self._holds_head = True
        try:
            return await work
        finally:
            self._holds_head = False

    async def replace_body(self, exchange: Exchange, headers: Headers, body: bytes) -> None:
        """Send an upstream's response with another body, and with the headers that describe this body."""
        await self._start_with_headers(exchange, headers)
        await self._send_body(body, more=False)

    async def _start_with_headers(self, exchange: Exchange, headers: Headers) -> None:
        if not self.started:
            await self._send_start(exchange.status, [*drop_body_headers(self._rewrite_headers(exchange)), *headers])

    def _rewrite_headers(self, exchange: Exchange) -> Headers:
        if self._rewriter is None or HEADERS_WITH_ADDRESS.isdisjoint(exchange.first_headers):
            return exchange.headers
        return self._rewriter.rewrite(exchange.headers)

    async def relay_events(self, exchange: Exchange, events: bytes, listener: StreamListener) -> None:
        """Send a leg that came as one JSON answer as a part of a stream."""
        self._between_legs = False
        await self._start_with_headers(exchange, STREAM_HEADERS)
        for output in (listener.feed(events), listener.finish()):
            if output:
                await self._send_event(UpstreamBytes(output))

    def wait_for_next_leg(self) -> None:
        """Write the next keep-alives as between two legs of an answer."""
        self._between_legs = True

    async def send_keep_alive(self) -> None:
        """Send a keep-alive. If the response has not started, this starts it with status 200."""
        if not self.started and self._holds_head:
            return
        if not self.started:
            await self._send_start(200, STREAM_HEADERS)
        await self._send_event(UpstreamSilence(self._between_legs))

    async def finish(self, last: bytes) -> None:
        """End a response that was left open."""
        if last:
            await self._send_event(UpstreamBytes(last))
        await self._send_end()

    async def send_whole(self, kind: bytes, body: bytes) -> None:
        """Send an answer of our own, after any keep-alives."""
        if not self.started:
            await self._send_start(200, [(b"content-type", kind), (b"cache-control", b"no-cache")])
        await self._send_body(body, more=False)

    async def refuse(self, refusal: Refusal) -> None:
        """Send a refusal: permanent if the request or its route is wrong, temporary otherwise."""
        if refusal.code == "invalid_input":
            await self.send_error(400, describe_refusal(refusal))
        else:
            await self.send_error(503, describe_refusal(refusal), retry_after=_RETRY_AFTER)

    async def send_error(
        self, status: int, message: str, retry_after: int | None = None, headers: Sequence[tuple[bytes, bytes]] = ()
    ) -> None:
        """Send an error of our own."""
        if self.started and self._listening is None:  # an error can't be added: the response stays without an end
            return
        if self.started:
            await self._send_event(UpstreamFailure(message))
            await self._send_end()
            return
        shape = self.wire.permanent_error if retry_after is None else self.wire.temporary_error
        body = orjson.dumps(shape(message))
        head = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *headers]
        if retry_after is not None:
            head.append((b"retry-after", b"%d" % retry_after))
        await self._send_start(status, head)
        await self._send_body(body, more=False)

    async def _relay_late(self, exchange: Exchange, listener: StreamListener | None) -> None:
        """Relay into a stream that has started; a response that is not a stream is reported inside it as an error."""
        if exchange.status == 200 and is_event_stream(exchange):
            await self._relay_stream(exchange, listener)
            return
        try:
            text = await exchange.read(MAX_ERROR_BYTES)
        except BrokenResponse:
            text = b""
        await self.send_error(exchange.status, _read_error_message(text) or f"the upstream answered {exchange.status}")

    async def _relay_whole(self, exchange: Exchange) -> None:
        """Send a body that is no stream. If it breaks off, it gets no end, and the server closes the connection."""
        try:
            while (piece := await exchange.read_piece()) is not None:
                more = not exchange.fully_read
                await self._send_body(piece, more)
                if not more:
                    return
        except BrokenResponse:
            return
        await self._send_end()

    async def _relay_stream(self, exchange: Exchange, listener: StreamListener | None) -> None:
        """Send a stream. If it breaks off, it ends with the error event of its wire."""
        self._listener = listener
        try:
            while (piece := await exchange.read_piece()) is not None:
                if output := piece if listener is None else listener.feed(piece):
                    await self._send_event(UpstreamBytes(output))
                if self._direct is not None:
                    await exchange.hand_over(self._write_at_once)
            if listener is not None and (rest := listener.finish()):
                await self._send_event(UpstreamBytes(rest))
            if listener is not None and (listener.calls_ours or listener.earlier_legs):
                return
        except BrokenResponse as error:
            await self._send_event(UpstreamFailure(f"the upstream's response broke off: {error}"))
        await self._send_end()

    def _write_at_once(self, data: bytes) -> bool:
        """Write bytes now and listen to them later: they are sent as they came in any case."""
        if self._listener is not None and not (data := self._listener.feed(data)):
            return True
        self._unheard.append(data)
        self._unheard_bytes += len(data)
        if self._unheard_bytes > _MAX_UNHEARD:
            self._catch_up_listening()
        assert self._direct is not None
        return self._direct.write_body(data)

    def _catch_up_listening(self) -> None:
        assert self._listening is not None
        data, self._unheard, self._unheard_bytes = b"".join(self._unheard), [], 0
        self._listening, _ = listen(self._listening, UpstreamBytes(data))

    async def _send_event(self, event: UpstreamEvent) -> None:
        assert self._listening is not None
        if self._unheard:
            self._catch_up_listening()
        self._listening, words = listen(self._listening, event)
        if words:
            await self._send_body(words, more=True)

    def _send_start(self, status: int, headers: list[tuple[bytes, bytes]], *, at_once: bool = True) -> Awaitable[None]:
        self.started, self.status = True, status
        return self._send({"type": "http.response.start", "status": status, "headers": headers, BODY_FOLLOWS: at_once})

    def _send_body(self, data: bytes, more: bool) -> Awaitable[None]:
        self.ended = not more
        return self._send({"type": "http.response.body", "body": data, "more_body": more})

    def _send_end(self) -> Awaitable[None]:
        return self._send_body(b"", more=False)


def describe_refusal(refusal: Refusal) -> str:
    """Return a refusal as an error message that names Sightline."""
    return f"Sightline: {refusal}"


def _read_error_message(body: bytes) -> str:
    """Return the message in a provider's error, in any of the known shapes, or an empty text."""
    try:
        match orjson.loads(body):
            case {"error": {"message": str(message)}} | {"error": str(message)} | {"message": str(message)}:
                return message
            case _:
                return ""
    except orjson.JSONDecodeError:
        return ""
