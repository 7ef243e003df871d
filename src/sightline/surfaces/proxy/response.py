"""Responses: what is read of an upstream's before the client gets it, and what the client gets.

The client gets the upstream's response as it comes, or an error in the shape of its own wire. Two things are read
first: rejections, and whole responses where a stream was asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

import orjson

from sightline.dial import Cut, Exchange
from sightline.model.profile import WireName
from sightline.model.refusal import Refusal
from sightline.server import AT_ONCE, Line, Send
from sightline.surfaces.proxy.bodies import decompress
from sightline.surfaces.proxy.headers import (
    LocationRewriter,
    drop_body_headers,
    filter_response_headers,
    has_lost_location,
)
from sightline.surfaces.proxy.routes import Headers
from sightline.wire import Wire
from sightline.wire.jsonsize import MOST_OF_AN_ANSWER, SURELY_SMALL, count_marks
from sightline.wire.listen import Broken, Chunk, Event, Hearing, Opening, Rejected, Stalled, listen, opening
from sightline.wire.sse import begins_stream
from sightline.wire.tool_loop import StreamListener
from sightline.wire.unrolled import unrolled

P = ParamSpec("P")
T = TypeVar("T")

LARGEST_ERROR = 64 * 1024
_ERROR_SECONDS = 10.0
_LARGEST_WHOLE = 16 * 1024 * 1024
_TELLING = 8  # bytes by which a stream is told from anything else
STREAM = (b"content-type", b"text/event-stream")
_BROKEN = Refusal("unavailable", "the upstream's answer broke off", "repeat")
_UNKNOWN = Refusal(
    "invalid_input",
    "a stream was asked for, and the upstream answered something else",
    "see whether its address is right and leads to this API",
)
_MOST_WRITTEN = 64 * 1024  # so much of a stream may have gone out before it is listened to
_RETRY_AFTER = 2
_NO_STATUS = Refusal("unavailable", "the upstream answered with a status that is none", "")
_WITHHELD = Refusal(
    "invalid_input",
    "the upstream redirected to an address at which a Sightline proxy may listen; following it could send the"
    " request to another provider",
    "check the address of the upstream, which sightline doctor shows",
)
STREAM_HEADERS = [STREAM, (b"cache-control", b"no-cache")]


async def read_rejection(exchange: Exchange, patience: float) -> Rejected | None:
    """Return how an upstream rejects a request, by its status or at the beginning of a body with status 200."""
    if exchange.status >= 400:
        said = await exchange.peek(LARGEST_ERROR, _ERROR_SECONDS)
        return Rejected(exchange.status, said.decode("utf-8", "replace"))
    if exchange.status != 200:
        return None
    found: Opening | None = None

    def known(seen: bytes) -> bool:
        nonlocal found
        found = opening(seen)
        return found is not None

    await exchange.peek(LARGEST_ERROR, patience, known)
    return found if isinstance(found, Rejected) else None


def is_event_stream(exchange: Exchange) -> bool:
    """Return whether a response is a stream that can be listened to."""
    kind, packing = exchange.header(b"content-type"), exchange.header(b"content-encoding")
    return kind.startswith(b"text/event-stream") and not packing


def lacks_events(exchange: Exchange) -> bool:
    """Return whether a successful response does not say that it is a stream."""
    return exchange.status == 200 and not exchange.header(b"content-type").startswith(b"text/event-stream")


def is_json(exchange: Exchange) -> bool:
    """Return whether a response is a whole answer, whatever was asked for."""
    return exchange.status == 200 and exchange.header(b"content-type").startswith(b"application/json")


async def convert_to_events(exchange: Exchange, wire: WireName) -> bytes | Refusal | None:
    """Return a whole answer as events of its wire; None: it is a stream, or too long to tell, and can be relayed."""
    start = await exchange.peek(LARGEST_ERROR, None, enough=lambda seen: len(seen.lstrip()) >= _TELLING)
    if begins_stream(start):
        exchange.headers = [*(each for each in exchange.headers if each[0] != b"content-type"), STREAM]
        return None
    data = await read_whole(exchange)
    if not exchange.whole:
        return _BROKEN if exchange.closed else None
    if data is not None and begins_stream(data):
        return None
    if data is not None and await run_in_thread_if_long(data, _has_too_many_values, data):
        return None
    events = None if data is None else await run_in_thread_if_long(data, unrolled, wire, data)
    return _UNKNOWN if events is None else events


async def read_whole(exchange: Exchange) -> bytes | bytearray | None:
    """Return a whole body, decompressed; None: it is too long, or broken off. It can still be relayed."""
    body = await exchange.peek(_LARGEST_WHOLE, None)
    if not exchange.whole:  # too long, or broken off
        return None
    packing = exchange.header(b"content-encoding").decode("latin-1")
    if not packing:
        return body
    return await asyncio.to_thread(decompress, body, packing, _LARGEST_WHOLE)


async def run_in_thread_if_long(data: bytes | bytearray, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what `work` on an answer returns; work on a long one runs in a thread, so that the loop goes on."""
    if len(data) <= SURELY_SMALL:
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)


def _has_too_many_values(data: bytes | bytearray) -> bool:
    return len(data) > SURELY_SMALL and count_marks(data, MOST_OF_AN_ANSWER) > MOST_OF_AN_ANSWER


class ClientResponse:
    def __init__(
        self,
        send: Send,
        wire: Wire,
        listens: bool = True,
        line: Line | None = None,
        rewriter: LocationRewriter | None = None,
    ) -> None:
        """`listens`: streams of this wire are listened to; else they are only passed on."""
        self._send = send
        self._line = line
        self._rewriter = rewriter  # of the upstream's headers; None: there is no upstream
        self.wire = wire
        self._listening = Hearing(wire.voice) if listens else None
        self._written: list[bytes] = []  # and not yet listened to
        self._written_bytes = 0
        self.begun = False
        self._head_held = False
        self._listener: StreamListener | None = None
        self.status = 0  # 0: the client left before it had one
        self.ended = False
        self._between_legs = False  # two legs of an answer

    async def relay(self, exchange: Exchange, listener: StreamListener | None = None) -> None:
        """Send a response as it comes; one that breaks off ends as its wire says, or without an end.

        With a listener, what it leaves out is left out, and where it finds a call of ours the response stays open.
        """
        self._between_legs = False
        if self.begun:
            await self._relay_late(exchange, listener)
            return
        if not 200 <= exchange.status < 600:
            await self.refuse(_NO_STATUS)
            return
        if not is_event_stream(exchange):
            self._listening = None
        at_once = exchange.ready and listener is None  # of which a listener may leave out all
        # What may have to be added to a stream is in no length that its upstream has told.
        headers = filter_response_headers(
            exchange.status, self._rewrite_headers(exchange.headers), grows=self._listening is not None
        )
        if 300 <= exchange.status < 400 and has_lost_location(exchange.headers, headers):
            await self.refuse(_WITHHELD)
            return
        await self._send_start(exchange.status, headers, at_once=at_once)
        await self._relay_body(exchange, listener if self._listening else None)

    @contextmanager
    def hold_head(self) -> Iterator[None]:
        """While the head of a response waits to be sent, send no other ahead of it."""
        self._head_held = True
        try:
            yield
        finally:
            self._head_held = False

    async def replace_body(self, exchange: Exchange, headers: Headers, body: bytes) -> None:
        """Send the response of an upstream with another body, which these headers describe."""
        await self._send_start_rewritten(exchange, headers)
        await self._send_body(body, more=False)

    async def _send_start_rewritten(self, exchange: Exchange, headers: Headers) -> None:
        if not self.begun:
            await self._send_start(
                exchange.status, [*drop_body_headers(self._rewrite_headers(exchange.headers)), *headers]
            )

    def _rewrite_headers(self, headers: Headers) -> Headers:
        return headers if self._rewriter is None else self._rewriter.rewrite(headers)

    async def relay_events(self, exchange: Exchange, events: bytes, listener: StreamListener) -> None:
        """Send a leg that came whole as a part of a stream."""
        self._between_legs = False
        await self._send_start_rewritten(exchange, STREAM_HEADERS)
        for heard in (listener.feed(events), listener.finish()):
            if heard:
                await self._send_event(Chunk(heard))

    def start_waiting(self) -> None:
        """Say in the next keep-alive that it stands between two legs of an answer."""
        self._between_legs = True

    async def send_keep_alive(self) -> None:
        """Keep a client alive whose stream has not begun: from here on, its status is 200."""
        if not self.begun and self._head_held:
            return
        if not self.begun:
            await self._send_start(200, STREAM_HEADERS)
        await self._send_event(Stalled(self._between_legs))

    async def finish(self, last: bytes) -> None:
        """End a response that was left open."""
        if last:
            await self._send_event(Chunk(last))
        await self._send_end()

    async def send_whole(self, kind: bytes, body: bytes) -> None:
        """Send an answer of our own, behind the keep-alives if there were any."""
        if not self.begun:
            await self._send_start(200, [(b"content-type", kind), (b"cache-control", b"no-cache")])
        await self._send_body(body, more=False)

    async def refuse(self, refusal: Refusal) -> None:
        """Send a refusal: what is wrong with the request or its route is permanent, anything else may pass."""
        if refusal.code == "invalid_input":
            await self.send_error(400, describe_refusal(refusal))
        else:
            await self.send_error(503, describe_refusal(refusal), retry_after=_RETRY_AFTER)

    async def send_error(
        self, status: int, message: str, retry_after: int | None = None, headers: Sequence[tuple[bytes, bytes]] = ()
    ) -> None:
        """Send an error of our own."""
        if self.begun and self._listening is None:  # nothing fits into what has begun: it stays without an end
            return
        if self.begun:
            await self._send_event(Broken(message))
            await self._send_end()
            return
        shape = self.wire.permanent if retry_after is None else self.wire.passing
        body = orjson.dumps(shape(message))
        told = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *headers]
        if retry_after is not None:
            told.append((b"retry-after", b"%d" % retry_after))
        await self._send_start(status, told)
        await self._send_body(body, more=False)

    async def _relay_late(self, exchange: Exchange, listener: StreamListener | None) -> None:
        """Relay into a stream that has begun: a response that is no stream can only be reported inside it."""
        if exchange.status == 200 and is_event_stream(exchange):
            await self._relay_body(exchange, listener)
            return
        try:
            text = await exchange.read(LARGEST_ERROR)
        except Cut:
            text = b""
        await self.send_error(exchange.status, _read_message(text) or f"the upstream answered {exchange.status}")

    async def _relay_body(self, exchange: Exchange, listener: StreamListener | None) -> None:
        self._listener = listener
        try:
            if self._listening is None:
                while (piece := await exchange.piece()) is not None:
                    await self._send_body(piece, more=not exchange.drained)
                    if exchange.drained:
                        return
            else:
                while (piece := await exchange.piece()) is not None:
                    if heard := piece if listener is None else listener.feed(piece):
                        await self._send_event(Chunk(heard))
                    if self._line is not None:
                        await exchange.hand(self._write_at_once)
                if listener is not None and (rest := listener.finish()):
                    await self._send_event(Chunk(rest))
                if listener is not None and (listener.calls_ours or listener.earlier_legs):
                    return
        except Cut as cut:
            # Where the wire has no error event, the response has no end, and the server closes the connection.
            if self._listening is None:
                return
            await self._send_event(Broken(f"the upstream's answer broke off: {cut}"))
        await self._send_end()

    def _write_at_once(self, data: bytes) -> bool:
        """Write bytes at once, and listen to them later: an upstream's bytes go out as they came, whatever they are."""
        assert self._line is not None
        heard = data if self._listener is None else self._listener.feed(data)
        if not heard:
            return True
        self._written.append(heard)
        self._written_bytes += len(heard)
        if self._written_bytes > _MOST_WRITTEN:
            self._listen_to_written()
        return self._line.write(heard)

    def _listen_to_written(self) -> None:
        assert self._listening is not None
        data, self._written, self._written_bytes = b"".join(self._written), [], 0
        self._listening, _ = listen(self._listening, Chunk(data))

    async def _send_event(self, event: Event) -> None:
        assert self._listening is not None
        if self._written:
            self._listen_to_written()
        self._listening, words = listen(self._listening, event)
        if words:
            await self._send_body(words, more=True)

    async def _send_start(self, status: int, headers: list[tuple[bytes, bytes]], *, at_once: bool = True) -> None:
        self.begun, self.status = True, status
        await self._send({"type": "http.response.start", "status": status, "headers": headers, AT_ONCE: at_once})

    async def _send_body(self, data: bytes, more: bool) -> None:
        self.ended = not more
        await self._send({"type": "http.response.body", "body": data, "more_body": more})

    async def _send_end(self) -> None:
        await self._send_body(b"", more=False)


def describe_refusal(refusal: Refusal) -> str:
    """Return a refusal as an error message, which says that it comes from Sightline."""
    return f"Sightline: {refusal}"


def _read_message(body: bytes) -> str:
    """Return the message in a provider's error, whichever shape it has, or an empty text."""
    try:
        match orjson.loads(body):
            case {"error": {"message": str(message)}} | {"error": str(message)} | {"message": str(message)}:
                return message
            case _:
                return ""
    except orjson.JSONDecodeError:
        return ""
