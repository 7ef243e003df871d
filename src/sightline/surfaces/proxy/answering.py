"""One visible answer out of as many legs as the model needs: each is relayed, its calls of ours are answered, and the
next one is asked for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

import orjson

from sightline.dial import Exchange
from sightline.model.profile import WireName
from sightline.model.refusal import Refusal
from sightline.surfaces.proxy.asides import MOST_LEGS, Aside, Asides
from sightline.surfaces.proxy.heard import as_events, in_thread_if_long, is_stream, is_whole
from sightline.surfaces.proxy.reply import Reply
from sightline.wire.jsonsize import parse_bounded
from sightline.wire.tool_loop import Leg
from sightline.wire.tool_loop.leg import Block, leg, mapping
from sightline.wire.unrolled import unrolled

_TOO_MANY = f"Sightline: the model asked for images in {MOST_LEGS} answers in a row and came to no end."

_SAYS: Mapping[WireName, str] = {
    "anthropic": "content",
    "openai_chat": "choices",
    "openai_responses": "output",
    "gemini": "candidates",
}


@dataclass(slots=True)
class Answering:
    asides: Asides
    aside: Aside
    reply: Reply
    ask: Callable[[Callable[[], Awaitable[bytes]]], Awaitable[Exchange | Refusal]]  # for the next leg
    read: Callable[[Exchange], Awaitable[bytes | bytearray | None]]  # all of a whole answer, unpacked
    rest: Callable[[Exchange], None]  # an exchange that is over

    async def run(self, exchange: Exchange) -> list[Block] | None:
        """What each leg has used, where there were several; None: it was an answer like any other."""
        return await (self._stream(exchange) if self.aside.streams or is_stream(exchange) else self._whole(exchange))

    async def _stream(self, exchange: Exchange) -> list[Block] | None:
        listener = self.aside.loop.listener(self.aside.names)
        while True:
            try:
                events = None if is_stream(exchange) else await self._events(exchange, first=not listener.earlier_legs)
                if events is not None:
                    await self.reply.heard(exchange, events, listener)
                elif listener.earlier_legs or is_stream(exchange):
                    await self.reply.relay(exchange, listener)
                else:
                    await self._as_it_is(exchange)
                    return None
            finally:
                self.rest(exchange)
            if self.reply.ended:
                return listener.usages if listener.earlier_legs else None
            if not listener.goes_on:
                if not listener.failed:
                    await self.asides.done(self.aside, listener.leg(), beside=listener.calls_ours)
                await self.reply.finished(listener.ending)
                return listener.usages
            following = await self._next(listener.leg())
            if following is None:
                return listener.usages
            listener.begin_next_leg()
            exchange = following

    async def _events(self, exchange: Exchange, *, first: bool) -> bytes | None:
        """The events of a leg that came in one piece, though a stream was asked for; None: it goes on as it is."""
        data = await self.read(exchange) if is_whole(exchange) else None
        if data is None or (first and not self._names(data)):
            return None
        return await in_thread_if_long(data, _unrolled, self.aside.wire, data)

    def _names(self, data: bytes | bytearray) -> bool:
        """Is a tool of ours named in an answer?"""
        return any(f'"{name}"'.encode() in data for name in self.aside.names)

    async def _next(self, asked: Leg) -> Exchange | None:
        """The next leg; None: there is none, and the client has been told."""
        if self.aside.is_last:
            await self.reply.refused(400, _TOO_MANY)
            return None

        async def body() -> bytes:
            await self.asides.answer(self.aside, asked)
            return await self.asides.next_body(self.aside)

        self.reply.waits()
        found = await self.ask(body)
        if isinstance(found, Refusal):
            await self.reply.no(found)
            return None
        return found

    async def _whole(self, exchange: Exchange) -> list[Block] | None:
        answers: list[Block] = []
        while True:
            try:
                answer = await self._read(exchange, answers[-1] if answers else None)
                if answer is None:
                    await self._as_it_is(exchange)
                    return None
                answers.append(answer)
                said = leg(self.aside.loop.said(answer), self.aside.loop.reads, self.aside.names)
                asks = bool(said.asks) and self.aside.loop.calls(answer)
                if not asks or said.calls:
                    await self.asides.done(self.aside, said, beside=asks)
                    await self._joined(exchange, answers)
                    return [mapping(each.get("usage", each.get("usageMetadata"))) for each in answers]
            finally:
                self.rest(exchange)
            following = await self._next(said)
            if following is None:
                return None
            exchange = following

    async def _as_it_is(self, exchange: Exchange) -> None:
        """An answer in which nothing is ours."""
        events = await as_events(exchange, self.aside.wire) if self.aside.streams and is_whole(exchange) else None
        if isinstance(events, Refusal):
            await self.reply.no(events)
        elif events is not None:
            await self.reply.unrolled(exchange, events)
        else:
            await self.reply.relay(exchange)

    async def _read(self, exchange: Exchange, before: Block | None) -> Block | None:
        """A whole answer in which something is ours, or that comes behind one; None: it goes on as it is."""
        data = await self.read(exchange) if exchange.status == 200 else None
        if data is None or (before is None and not self._names(data)):
            return None
        if before is None or not is_stream(exchange):
            return await in_thread_if_long(data, _answer, self.aside.wire, data)
        listener = self.aside.loop.listener(self.aside.names)
        listener.begin_next_leg()
        listener.feed(bytes(data))
        listener.finish()
        return None if listener.failed else listener.whole(before)

    async def _joined(self, exchange: Exchange, answers: Sequence[Block]) -> None:
        try:
            body = orjson.dumps(self.aside.loop.whole(answers, self.aside.names))
        except TypeError:  # so deep that it can be read, and not be written
            await self.reply.relay(exchange)
            return
        await self.reply.joined(exchange, body)


def _unrolled(wire: WireName, data: bytes | bytearray) -> bytes | None:
    """Return the events of a whole answer of a wire; None: it is none, or an error."""
    return None if _answer(wire, data) is None else unrolled(wire, data)


def _answer(wire: WireName, data: bytes | bytearray) -> Block | None:
    """A whole answer of a wire; None: it is none, or an error."""
    try:
        answer = parse_bounded(data)
    except orjson.JSONDecodeError:
        return None
    return answer if isinstance(answer, dict) and isinstance(answer.get(_SAYS[wire]), list) else None
