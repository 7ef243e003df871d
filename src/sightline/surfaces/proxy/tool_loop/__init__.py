"""The tool loop: calls of Sightline's own tools, answered inside a conversation that the client doesn't see them in.

The theory. A model behind the proxy is offered a tool (`analyze_image`) beside the client's own. It answers in *legs*:
it speaks until it calls our tool, the proxy runs the call and sends the request again with call and result behind it,
and the model goes on. The client gets one response. What a wire says about calls, results and streams is pure and in
`wire/tool_loop`; here is what sends, runs, waits and remembers, under these rules:

1. The upstream sees what a client would send that ran the tools itself. What a client sends back of a response with
   calls of ours in it is first restored: the calls and results go back to where they stood (`ToolCalls.restore`).
2. Tools are offered only where they can't change what is asked: there is room in the list, the client leaves the
   choice to the model, and the upstream has not rejected them lately (`ToolCalls.offer`). What was called before
   stays in the list, so that the list is what it was.
3. A leg that calls only our tools is followed by another, at most `MOST_LEGS` in all. The last one is asked for
   without a choice of tools, so that the model must come to an end.
4. A leg that calls the client's tools as well ends the response. Our calls run meanwhile, and their results are
   restored when the client returns (`ToolCalls.keep`).
5. Fail open: an upstream that rejects restored calls or tools gets the request without them, and a request that can't
   be given tools goes on without.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

import orjson

from sightline.dial import Exchange
from sightline.engine import Engine, Reading
from sightline.model.ports import ConversationStore
from sightline.model.profile import WireName
from sightline.model.receipt import Receipt
from sightline.model.refusal import Refusal
from sightline.surfaces.proxy.bodies import BodyReader, BufferedBody
from sightline.surfaces.proxy.context import RequestContext
from sightline.surfaces.proxy.response import is_event_stream, is_json, read_whole, run_in_thread_if_long
from sightline.surfaces.proxy.tool_loop.calls import (
    MOST_CALLS,
    MOST_LEGS,
    NOT_RESTORED,
    LoopedAnswer,
    RestoredCalls,
    ToolCalls,
    Tools,
)
from sightline.surfaces.proxy.upstream import UpstreamClient
from sightline.wire.jsonsize import parse_bounded
from sightline.wire.tool_loop import Leg
from sightline.wire.tool_loop.leg import Block, leg, mapping, no_choice
from sightline.wire.unrolled import unrolled

__all__ = ["MOST_CALLS", "MOST_LEGS", "NOT_RESTORED", "Sent", "ToolLoop", "Tools"]

log = logging.getLogger("sightline")

_TOO_MANY_LEGS = f"Sightline: the model asked for images in {MOST_LEGS} answers in a row and came to no end."
_NO_NEXT_LEG = Refusal("unavailable", "the next part of the answer could not be asked for", "ask again")
_CONTENT: Mapping[WireName, str] = {
    "anthropic": "content",
    "openai_chat": "choices",
    "openai_responses": "output",
    "gemini": "candidates",
}


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of a request that was sent."""

    outcome: Exchange | Refusal
    answer: LoopedAnswer | None = None  # None: no tools were offered, so the response can be relayed as it is

    def close(self) -> None:
        if isinstance(self.outcome, Exchange):
            self.outcome.close()


class ToolLoop:
    def __init__(
        self,
        engine: Engine,
        conversations: ConversationStore,
        tools: Tools,
        upstream: UpstreamClient,
        reader: BodyReader,
    ) -> None:
        self.calls = ToolCalls(engine, conversations, tools, upstream.rejects_tools)
        self.upstream = upstream
        self._offload = engine.offload
        self._reader = reader

    async def close(self) -> None:
        await self.calls.close()

    async def send(self, context: RequestContext, body: BufferedBody, reading: Reading) -> Sent:
        """Send a request with our tools, and with earlier calls of them where they stood."""
        restored = await self._restore(context, reading)
        more, with_more, answer = await self._offload(reading, self._add_tools, context, body, reading, restored)
        outcome = await self.upstream.send(context, more, with_more)
        if more is body or not _is_rejected(outcome):
            return Sent(outcome, answer)
        self.upstream.release(outcome, context)  # perhaps it rejects our earlier calls
        again = replace(body, repeated=True)
        nothing = RestoredCalls()
        more, with_more, answer = await self._offload(reading, self._add_tools, context, again, reading, nothing)
        outcome = await self.upstream.send(context, more, with_more)
        if isinstance(outcome, Exchange) and outcome.status < 400:
            self.calls.stop_restoring(restored)
            self.upstream.report(
                context, Receipt(context.route.upstream.name, reading.scene.model, notes=(NOT_RESTORED,))
            )
        return Sent(outcome, answer)

    async def relay(self, context: RequestContext, answer: LoopedAnswer, exchange: Exchange) -> None:
        """Send the client one response, however many legs it takes."""
        relay = _LegRelay(self, context, answer)
        streams = context.streams or is_event_stream(exchange)
        usages = await (relay.relay_stream(exchange) if streams else relay.relay_whole(exchange))
        if usages is not None and (answer.legs or len(usages) > 1):
            notes = answer.describe_legs(usages)
            self.upstream.report(context, Receipt(context.route.upstream.name, answer.model, notes=notes))

    async def _restore(self, context: RequestContext, reading: Reading) -> RestoredCalls:
        try:
            return await self.calls.restore(reading, context.route, context.caller)
        except Exception:  # fail open
            log.exception("what was looked up could not be put back; a request goes on without")
            return RestoredCalls()

    def _add_tools(
        self, context: RequestContext, body: BufferedBody, reading: Reading, restored: RestoredCalls
    ) -> tuple[BufferedBody, Reading, LoopedAnswer | None]:
        """Return a request with restored calls and our tools, and what its response is relayed with if it has tools."""
        route, caller, asked = context.route, context.caller, reading
        try:
            again = None if restored.body is None else self._reader.read(route, restored.body)
            if restored.body is not None and again is not None:
                body, reading = BufferedBody(restored.body, rewritten=True), again
            reading = replace(reading, notes=restored.notes) if restored.notes else reading
            if route.streams_json_list and reading.scene.stream:  # which can't be listened to
                return body, reading, None
            reading, names = self.calls.offer(reading, route, caller, known=restored.body is not None)
        except Exception:  # fail open
            log.exception("a request could not be given tools; it goes on without")
            return body, reading, None
        if not names or route.endpoint.counts:
            return body, reading, None
        return body, reading, LoopedAnswer(route.api, names, reading, asked, caller, asked.scene.model)

    async def send_next(self, context: RequestContext, answer: LoopedAnswer, asked: Leg) -> Exchange | Refusal:
        """Run the calls of a leg, and ask for the next one."""
        data = await self.calls.run(answer, asked)
        reading = await self._offload(answer.reading, self._reader.read, context.route, data)
        if reading is None:
            return _NO_NEXT_LEG
        more, _ = self.calls.offer(reading, context.route, answer.caller, known=True)
        body = BufferedBody(data, rewritten=True, repeated=True)
        if not answer.is_last or not more.added:
            return await self.upstream.send(context, body, more)
        if not answer.loop.is_free(reading.tree):  # now the model must call one of the client's tools
            return await self.upstream.send(context, body, reading)
        text_only = replace(more, added=(*more.added, no_choice(context.route.api, more.tree)))
        found = await self.upstream.send(context, body, text_only)
        if not _is_rejected(found):
            return found
        self.upstream.release(found, context)  # perhaps it knows no such choice
        return await self.upstream.send(context, body, more)


def _is_rejected(outcome: Exchange | Refusal) -> TypeGuard[Exchange]:
    """Return whether an upstream objects to the request itself."""
    return isinstance(outcome, Exchange) and outcome.status in (400, 422)


@dataclass(frozen=True, slots=True)
class _LegRelay:
    """Relays the legs of one answer: what each used is returned; None: it was an answer like any other."""

    loop: ToolLoop
    context: RequestContext
    answer: LoopedAnswer

    async def relay_stream(self, exchange: Exchange) -> list[Block] | None:
        answer, response = self.answer, self.context.response
        listener = answer.loop.listener(answer.names)
        while True:
            try:
                streams = is_event_stream(exchange)
                events = None if streams else await self._read_events(exchange, first=not listener.earlier_legs)
                if events is not None:
                    await response.relay_events(exchange, events, listener)
                elif listener.earlier_legs or streams:
                    await response.relay(exchange, listener)
                else:
                    await self.context.relay(exchange)
                    return None
            finally:
                self.loop.upstream.release(exchange, self.context)
            if response.ended:
                return listener.usages if listener.earlier_legs else None
            if not listener.goes_on:
                if not listener.failed:
                    await self.loop.calls.keep(answer, listener.leg(), beside=listener.calls_ours)
                await response.finish(listener.ending)
                return listener.usages
            following = await self._ask_for_next(listener.leg())
            if following is None:
                return listener.usages
            listener.begin_next_leg()
            exchange = following

    async def relay_whole(self, exchange: Exchange) -> list[Block] | None:
        loop, answers = self.answer.loop, list[Block]()
        while True:
            try:
                found = await self._read_answer(exchange, answers[-1] if answers else None)
                if found is None:
                    await self.context.relay(exchange)
                    return None
                answers.append(found)
                said = leg(loop.said(found), loop.reads, self.answer.names)
                asks = bool(said.asks) and loop.calls(found)
                if not asks or said.calls:
                    await self.loop.calls.keep(self.answer, said, beside=asks)
                    await self._send_joined(exchange, answers)
                    return [mapping(each.get("usage", each.get("usageMetadata"))) for each in answers]
            finally:
                self.loop.upstream.release(exchange, self.context)
            following = await self._ask_for_next(said)
            if following is None:
                return None
            exchange = following

    async def _ask_for_next(self, asked: Leg) -> Exchange | None:
        """Return the next leg; None: there is none, and the client has been told why."""
        response = self.context.response
        if self.answer.is_last:
            await response.send_error(400, _TOO_MANY_LEGS)
            return None
        response.start_waiting()
        found = await self.context.keep_alive(self.loop.send_next(self.context, self.answer, asked))
        if isinstance(found, Refusal):
            await response.refuse(found)
            return None
        return found

    async def _read_events(self, exchange: Exchange, *, first: bool) -> bytes | None:
        """Return the events of a leg that came whole, though a stream was asked for; None: it is relayed as it is."""
        data = await self.context.keep_alive(read_whole(exchange)) if is_json(exchange) else None
        if data is None or (first and not self._names_our_tools(data)):
            return None
        return await run_in_thread_if_long(data, _convert_answer, self.answer.wire, data)

    async def _read_answer(self, exchange: Exchange, before: Block | None) -> Block | None:
        """Return a whole answer in which something is ours, or that follows one; None: it is relayed as it is."""
        data = await self.context.keep_alive(read_whole(exchange)) if exchange.status == 200 else None
        if data is None or (before is None and not self._names_our_tools(data)):
            return None
        if before is None or not is_event_stream(exchange):
            return await run_in_thread_if_long(data, _parse_answer, self.answer.wire, data)
        listener = self.answer.loop.listener(self.answer.names)
        listener.begin_next_leg()
        listener.feed(bytes(data))
        listener.finish()
        return None if listener.failed else listener.whole(before)

    def _names_our_tools(self, data: bytes | bytearray) -> bool:
        return any(f'"{name}"'.encode() in data for name in self.answer.names)

    async def _send_joined(self, exchange: Exchange, answers: Sequence[Block]) -> None:
        try:
            body = orjson.dumps(self.answer.loop.whole(answers, self.answer.names))
        except TypeError:  # nested so deeply that it can be read, but not written
            await self.context.response.relay(exchange)
            return
        await self.context.response.replace_body(exchange, [(b"content-type", b"application/json")], body)


def _convert_answer(wire: WireName, data: bytes | bytearray) -> bytes | None:
    """Return the events of a whole answer of a wire; None: it is none, or an error."""
    return None if _parse_answer(wire, data) is None else unrolled(wire, data)


def _parse_answer(wire: WireName, data: bytes | bytearray) -> Block | None:
    """Return a whole answer of a wire; None: it is none, or an error."""
    try:
        answer = parse_bounded(data)
    except orjson.JSONDecodeError:
        return None
    return answer if isinstance(answer, dict) and isinstance(answer.get(_CONTENT[wire]), list) else None
