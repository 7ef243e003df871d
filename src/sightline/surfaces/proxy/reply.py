"""What the client gets: the upstream's answer as it comes, or an error in the client's own words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import orjson

from sightline.dial import Cut, Exchange
from sightline.model.refusal import Refusal
from sightline.server import AT_ONCE, Line
from sightline.surfaces.proxy.bodies import Send
from sightline.surfaces.proxy.headers import backward, retold
from sightline.surfaces.proxy.heard import LARGEST_ERROR, STREAM, is_stream
from sightline.surfaces.proxy.redirects import LocationRewriter, has_lost_location
from sightline.surfaces.proxy.routes import Headers
from sightline.wire import Wire
from sightline.wire.listen import Broken, Chunk, Event, Hearing, Stalled, listen
from sightline.wire.tool_loop import StreamListener

_UNHEARD = 64 * 1024  # so much of a stream may have gone out before it is listened to
_RETRY_AFTER = 2
_NO_STATUS = Refusal("unavailable", "the upstream answered with a status that is none", "")
_WITHHELD = Refusal(
    "invalid_input",
    "the upstream redirected to an address at which a Sightline proxy may listen; following it could send the"
    " request to another provider",
    "check the address of the upstream, which sightline doctor shows",
)
_STREAM_HEADERS = [STREAM, (b"cache-control", b"no-cache")]


class Reply:
    def __init__(
        self,
        send: Send,
        wire: Wire,
        heard: bool = True,
        line: Line | None = None,
        rewriter: LocationRewriter | None = None,
    ) -> None:
        """`heard`: streams of this wire are listened to; else they are only passed on."""
        self._send = send
        self._line = line
        self._rewriter = rewriter  # of the upstream's headers; None: there is no upstream
        self.wire = wire
        self._hearing = Hearing(wire.voice) if heard else None
        self._unheard: list[bytes] = []
        self._owed = 0  # bytes of them
        self.begun = False
        self._held = False
        self._listener: StreamListener | None = None
        self.status = 0  # 0: the client left before it had one
        self.ended = False
        self._between = False  # two legs of an answer

    async def relay(self, exchange: Exchange, listener: StreamListener | None = None) -> None:
        """Pass an answer on as it comes; one that breaks off ends as its wire says, or without an end.

        With an listener, what it leaves out is left out, and where it hears a call of ours the answer stays open.
        """
        self._between = False
        if self.begun:
            await self._relay_late(exchange, listener)
            return
        if not 200 <= exchange.status < 600:
            await self.no(_NO_STATUS)
            return
        if not is_stream(exchange):
            self._hearing = None
        at_once = exchange.ready and listener is None  # of which a listener may leave out all
        # What may have to be added to a stream is in no length that its upstream has told.
        headers = backward(exchange.status, self._rewrite_headers(exchange.headers), grows=self._hearing is not None)
        if 300 <= exchange.status < 400 and has_lost_location(exchange.headers, headers):
            await self.no(_WITHHELD)
            return
        await self._start(exchange.status, headers, at_once=at_once)
        await self._pour(exchange, listener if self._hearing else None)

    @contextmanager
    def holding(self) -> Iterator[None]:
        """While the head of an answer is here and waits: no other is sent ahead of it."""
        self._held = True
        try:
            yield
        finally:
            self._held = False

    async def unrolled(self, exchange: Exchange, events: bytes) -> None:
        """An upstream's whole answer, as the stream that was asked for."""
        await self._rewritten(exchange, _STREAM_HEADERS, events)

    async def joined(self, exchange: Exchange, body: bytes) -> None:
        """Several whole answers of an upstream as one."""
        await self._rewritten(exchange, [(b"content-type", b"application/json")], body)

    async def _rewritten(self, exchange: Exchange, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        if not self.begun:
            await self._start(exchange.status, [*retold(self._rewrite_headers(exchange.headers)), *headers])
        await self._body(body, more=False)

    def _rewrite_headers(self, headers: Headers) -> Headers:
        return headers if self._rewriter is None else self._rewriter.rewrite(headers)

    async def heard(self, exchange: Exchange, events: bytes, listener: StreamListener) -> None:
        """A leg that came in one piece, in a stream."""
        self._between = False
        if not self.begun:
            await self._start(exchange.status, [*retold(self._rewrite_headers(exchange.headers)), *_STREAM_HEADERS])
        for heard in (listener.feed(events), listener.finish()):
            if heard:
                await self._say(Chunk(heard))

    def waits(self) -> None:
        """One leg of an answer is over, and the next one is not there yet."""
        self._between = True

    async def stalled(self) -> None:
        """Keep a client alive whose stream has not begun: from here on, its status is 200."""
        if not self.begun and self._held:
            return
        if not self.begun:
            await self._start(200, _STREAM_HEADERS)
        await self._say(Stalled(self._between))

    async def finished(self, last: bytes) -> None:
        """The end of an answer that was left open."""
        if last:
            await self._say(Chunk(last))
        await self._end()

    async def say(self, kind: bytes, body: bytes) -> None:
        """An answer of our own, behind the keep-alives if there were any."""
        if not self.begun:
            await self._start(200, [(b"content-type", kind), (b"cache-control", b"no-cache")])
        await self._body(body, more=False)

    async def no(self, refusal: Refusal) -> None:
        """A refusal: what is wrong with the request or its way stays so, all else may pass."""
        if refusal.code == "invalid_input":
            await self.refused(400, words(refusal))
        else:
            await self.refused(503, words(refusal), retry_after=_RETRY_AFTER)

    async def refused(
        self, status: int, message: str, retry_after: int | None = None, headers: Sequence[tuple[bytes, bytes]] = ()
    ) -> None:
        """An error of our own."""
        if self.begun and self._hearing is None:  # no words fit into what has begun: it stays without an end
            return
        if self.begun:
            await self._say(Broken(message))
            await self._end()
            return
        shape = self.wire.permanent if retry_after is None else self.wire.passing
        body = orjson.dumps(shape(message))
        told = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *headers]
        if retry_after is not None:
            told.append((b"retry-after", b"%d" % retry_after))
        await self._start(status, told)
        await self._body(body, more=False)

    async def _relay_late(self, exchange: Exchange, listener: StreamListener | None) -> None:
        """The stream has begun already: an answer that is no stream can only be told inside it."""
        if exchange.status == 200 and is_stream(exchange):
            await self._pour(exchange, listener)
            return
        try:
            text = await exchange.read(LARGEST_ERROR)
        except Cut:
            text = b""
        await self.refused(exchange.status, _message(text) or f"the upstream answered {exchange.status}")

    async def _pour(self, exchange: Exchange, listener: StreamListener | None) -> None:
        self._listener = listener
        try:
            if self._hearing is None:
                while (piece := await exchange.piece()) is not None:
                    await self._body(piece, more=not exchange.drained)
                    if exchange.drained:
                        return
            else:
                while (piece := await exchange.piece()) is not None:
                    if heard := piece if listener is None else listener.feed(piece):
                        await self._say(Chunk(heard))
                    if self._line is not None:
                        await exchange.hand(self._pass)
                if listener is not None and (rest := listener.finish()):
                    await self._say(Chunk(rest))
                if listener is not None and (listener.calls_ours or listener.earlier_legs):
                    return
        except Cut as cut:
            # Without words for it, the answer stays without an end, and the server closes the connection.
            if self._hearing is None:
                return
            await self._say(Broken(f"the upstream's answer broke off: {cut}"))
        await self._end()

    def _pass(self, data: bytes) -> bool:
        """On at once, and listened to later: the words of an upstream go out as they came, whatever they are."""
        assert self._line is not None
        heard = data if self._listener is None else self._listener.feed(data)
        if not heard:
            return True
        self._unheard.append(heard)
        self._owed += len(heard)
        if self._owed > _UNHEARD:
            self._catch_up()
        return self._line.write(heard)

    def _catch_up(self) -> None:
        assert self._hearing is not None
        data, self._unheard, self._owed = b"".join(self._unheard), [], 0
        self._hearing, _ = listen(self._hearing, Chunk(data))

    async def _say(self, event: Event) -> None:
        assert self._hearing is not None
        if self._unheard:
            self._catch_up()
        self._hearing, words = listen(self._hearing, event)
        if words:
            await self._body(words, more=True)

    async def _start(self, status: int, headers: list[tuple[bytes, bytes]], *, at_once: bool = True) -> None:
        self.begun, self.status = True, status
        await self._send({"type": "http.response.start", "status": status, "headers": headers, AT_ONCE: at_once})

    async def _body(self, data: bytes, more: bool) -> None:
        self.ended = not more
        await self._send({"type": "http.response.body", "body": data, "more_body": more})

    async def _end(self) -> None:
        await self._body(b"", more=False)


def words(refusal: Refusal) -> str:
    """A refusal as an error message; it says whose it is."""
    return f"Sightline: {refusal}"


def _message(body: bytes) -> str:
    """The words in a provider's error, whichever shape it has."""
    try:
        match orjson.loads(body):
            case {"error": {"message": str(message)}} | {"error": str(message)} | {"message": str(message)}:
                return message
            case _:
                return ""
    except orjson.JSONDecodeError:
        return ""
