"""The tool loop: calls of Sightline's own tools, run inside a response without the client seeing them.

**Theory.** A model behind the proxy is offered a tool (`analyze_image`) beside the client's own. It answers in *legs*:
it writes until it calls our tool; the proxy runs the call and sends the request again with call and result appended;
and the model continues. The client gets one response. How a wire writes calls, results and streams is pure and in
`wire/tool_loop`. This package sends, runs, waits and stores, by these rules:

1. The upstream sees what a client that ran the tools itself would send. When a client sends back a response that had
   calls of our tools, the calls and results are first restored to their places (`ToolCalls.restore`).
2. Tools are offered only if they can't change what the client asked for: there is room in the list, the client leaves
   the choice to the model, and the upstream has not rejected them recently (`ToolCalls.offer`). Tools that were called
   before stay in the list, so that the list does not change.
3. A leg that calls only our tools is followed by another, up to `MAX_LEGS` in total. The last one is requested without
   a choice of tools, so that the model must finish.
4. A leg that also calls the client's tools ends the response. Our calls run meanwhile, and their results are restored
   when the client sends its next request (`ToolCalls.keep`).
5. Fail open: an upstream that rejects restored calls or tools gets the request without them (`own_body_fallback` has
   the rules), and a request that can't be given tools is sent without.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeGuard

import orjson

from sightline.dial import Exchange
from sightline.engine import Engine, Reading
from sightline.model.ports import ConversationStore
from sightline.model.profile import WireName
from sightline.model.records import Receipt
from sightline.model.refusal import Refusal
from sightline.model.value import value_class
from sightline.surfaces.proxy.bodies import (
    BodyReader,
    BufferedBody,
    is_json,
    read_whole,
    relay_response,
    run_in_thread_if_long,
)
from sightline.surfaces.proxy.request_context import RequestContext, is_event_stream
from sightline.surfaces.proxy.tool_loop.calls import (
    MAX_CALLS,
    MAX_LEGS,
    NOT_RESTORED,
    AnswerState,
    OwnTools,
    RestoredCalls,
    ToolCalls,
)
from sightline.surfaces.proxy.upstream_client import UpstreamClient
from sightline.wire.answer_writer import convert_to_stream
from sightline.wire.json_tree import Block, parse_bounded_json
from sightline.wire.tool_loop import Leg
from sightline.wire.tool_loop.leg import as_object, build_leg, forbid_calls

__all__ = ["MAX_CALLS", "MAX_LEGS", "NOT_RESTORED", "OwnTools", "SendResult", "ToolLoop", "may_call_tools"]

log = logging.getLogger("sightline")

_TOO_MANY_LEGS = f"Sightline: the model called image tools {MAX_LEGS} times in a row without finishing; ask again."
LEG_REJECTED = "the upstream returned {} for a later part of the answer, so the client's own request was sent"
_NO_NEXT_LEG = Refusal("unavailable", "the next part of the answer could not be requested", "ask again")
_CONTENT_KEYS: Mapping[WireName, str] = {
    "anthropic": "content",
    "openai_chat": "choices",
    "openai_responses": "output",
    "gemini": "candidates",
}


@value_class
class SendResult:
    """The response to a request, or why there is none."""

    outcome: Exchange | Refusal
    answer: AnswerState | None = None  # None: no tools were offered, so the response can be relayed as it is

    def close(self) -> None:
        if isinstance(self.outcome, Exchange):
            self.outcome.close()


class ToolLoop:
    def __init__(
        self,
        engine: Engine,
        conversations: ConversationStore,
        tools: OwnTools,
        upstream: UpstreamClient,
        reader: BodyReader,
    ) -> None:
        self.calls = ToolCalls(engine, conversations, tools)
        self.upstream = upstream
        self._offload = engine.offload
        self._reader = reader

    async def close(self) -> None:
        await self.calls.close()

    async def send(self, context: RequestContext, body: BufferedBody, reading: Reading) -> SendResult:
        """Restore earlier calls of our tools in a request, add our tools to its own, and send it."""
        restored = await self._try_restore(context, reading)
        if restored.body is not None and self.upstream.was_rejected(context, body.own):
            restored = RestoredCalls()
        more, with_more, answer = await self._offload(reading, self._add_tools, context, body, reading, restored)
        outcome = await self.upstream.send(context, more, with_more, body.own if more is body else None)
        if more is body or not _is_rejected(outcome):
            return SendResult(outcome, answer)
        self.upstream.release(outcome)  # perhaps it rejects our earlier calls
        again = replace(body, is_retry=True)
        nothing = RestoredCalls()
        more, with_more, answer = await self._offload(reading, self._add_tools, context, again, reading, nothing)
        outcome = await self.upstream.send(context, more, with_more, again.own)
        if isinstance(outcome, Exchange) and outcome.status < 400:
            self.calls.stop_restoring(restored)
            self.upstream.report(
                context, Receipt(context.route.upstream.name, reading.scene.model, notes=(NOT_RESTORED,))
            )
        return SendResult(outcome, answer)

    async def relay(self, context: RequestContext, answer: AnswerState, exchange: Exchange) -> None:
        """Send the client one response, however many legs it takes."""
        relay = _LegRelay(self, context, answer)
        streams = context.wants_stream or is_event_stream(exchange)
        usages = await (relay.relay_stream(exchange) if streams else relay.relay_whole(exchange))
        if usages is not None and (answer.legs or len(usages) > 1):
            notes = answer.describe_legs(usages)
            self.upstream.report(context, Receipt(context.route.upstream.name, answer.model, notes=notes))

    async def _try_restore(self, context: RequestContext, reading: Reading) -> RestoredCalls:
        try:
            return await self.calls.restore(reading, context.route, context.caller)
        except Exception:  # fail open
            log.exception("tool calls could not be restored; the request is sent without them")
            return RestoredCalls()

    def _add_tools(
        self, context: RequestContext, body: BufferedBody, reading: Reading, restored: RestoredCalls
    ) -> tuple[BufferedBody, Reading, AnswerState | None]:
        """Return a request with restored calls and our tools, and the state for its response if it has our tools."""
        route, caller, original, own = context.route, context.caller, reading, body.own
        try:
            again = None if restored.body is None else self._reader.read(route, restored.body)
            if restored.body is not None and again is not None:
                body, reading = BufferedBody(restored.body, rewritten=True), replace(again, notes=original.notes)
            reading = replace(reading, notes=(*reading.notes, *restored.notes)) if restored.notes else reading
            if route.streams_json_list and reading.scene.stream:  # which can't be listened to
                return body, reading, None
            reading, names = self.calls.offer(reading, route, caller, in_use=restored.body is not None)
        except Exception:  # fail open
            log.exception("tools could not be offered; the request is sent without them")
            return body, reading, None
        if not names or route.endpoint.counts_tokens:
            return body, reading, None
        return body, reading, AnswerState(route.api, names, reading, original, own, caller, original.scene.model)

    async def send_next(self, context: RequestContext, answer: AnswerState, leg: Leg) -> Exchange | Refusal:
        """Run the calls of a leg, and ask for the next one."""
        data = await self.calls.run(answer, leg)
        reading = await self._offload(answer.reading, self._reader.read, context.route, data)
        if reading is None:
            return _NO_NEXT_LEG
        more, _ = self.calls.offer(reading, context.route, answer.caller, in_use=True)
        body = BufferedBody(data, rewritten=True, is_retry=True)
        if not answer.is_last or not more.extra_edits:
            return await self.upstream.send(context, body, more)
        if not answer.loop.has_free_choice(reading.tree):  # now the model must call one of the client's tools
            return await self.upstream.send(context, body, reading)
        text_only = replace(more, extra_edits=(*more.extra_edits, forbid_calls(context.route.api, more.tree)))
        found = await self.upstream.send(context, body, text_only)
        if not _is_rejected(found):
            return found
        self.upstream.release(found)  # perhaps it knows no such choice
        return await self.upstream.send(context, body, more)


def may_call_tools(exchange: Exchange, answer: AnswerState) -> bool:
    """Return whether a response may call our tools: a stream, or JSON that names them or hasn't come as a whole."""
    if not is_json(exchange):
        return exchange.status == 200 and is_event_stream(exchange)
    is_readable = exchange.complete and b"content-encoding" not in exchange.first_headers
    return not is_readable or answer.names_tools(exchange.join_unread())


def _is_rejected(outcome: Exchange | Refusal) -> TypeGuard[Exchange]:
    """Return whether an upstream rejects the request itself."""
    return isinstance(outcome, Exchange) and outcome.status in (400, 422)


@value_class
class _LegRelay:
    """Relays the legs of one answer. Both methods return the usage of each leg, or None without calls of our tools."""

    loop: ToolLoop
    context: RequestContext
    answer: AnswerState

    async def relay_stream(self, exchange: Exchange) -> list[Block] | None:
        answer, response = self.answer, self.context.response
        listener = answer.loop.build_listener(answer.tool_names)
        while True:
            try:
                streams = is_event_stream(exchange)
                events = None if streams else await self._read_events(exchange, first=not listener.earlier_legs)
                if events is not None:
                    await response.relay_events(exchange, events, listener)
                elif listener.earlier_legs or streams:
                    await response.relay(exchange, listener)
                else:
                    await relay_response(self.context, exchange)
                    return None
            finally:
                self.loop.upstream.release(exchange)
            if response.ended:
                return listener.usages if listener.earlier_legs else None
            if not listener.continues:
                if not listener.failed:
                    await self.loop.calls.keep(answer, listener.build_leg(), calls_ours=listener.calls_ours)
                await response.finish(listener.ending)
                return listener.usages
            following = await self._request_next(listener.build_leg())
            if following is None:
                return listener.usages
            listener.begin_next_leg()
            exchange = following

    async def relay_whole(self, exchange: Exchange) -> list[Block] | None:
        loop = self.answer.loop
        answers: list[Block] = []
        while True:
            try:
                found = await self._read_answer(exchange, answers[-1] if answers else None)
                if found is None:
                    await relay_response(self.context, exchange)
                    return None
                answers.append(found)
                leg = build_leg(loop.list_blocks(found), loop.classify_block, self.answer.tool_names)
                asks = bool(leg.own_calls) and loop.stopped_for_calls(found)
                if not asks or leg.client_calls:
                    await self.loop.calls.keep(self.answer, leg, calls_ours=asks)
                    await self._send_merged_answer(exchange, answers)
                    return [as_object(each.get("usage", each.get("usageMetadata"))) for each in answers]
            finally:
                self.loop.upstream.release(exchange)
            following = await self._request_next(leg)
            if following is None:
                return None
            if _is_rejected(following):
                await self._start_over(following)
                return None
            exchange = following

    async def _request_next(self, leg: Leg) -> Exchange | None:
        """Return the next leg; None if there is none, and the client has got an error."""
        response = self.context.response
        if self.answer.is_last:
            await response.send_error(400, _TOO_MANY_LEGS)
            return None
        response.wait_for_next_leg()
        found = await self.context.keep_alive(self.loop.send_next(self.context, self.answer, leg))
        if isinstance(found, Refusal):
            await response.refuse(found)
            return None
        if _is_rejected(found):
            self.loop.upstream.engine.withhold_tools(self.answer.caller, self.answer.model)
        return found

    async def _start_over(self, rejected: Exchange) -> None:
        """Answer with the client's own request, after a later leg was rejected and nothing has been sent yet."""
        upstream = self.loop.upstream
        upstream.release(rejected)
        note = LEG_REJECTED.format(rejected.status)
        upstream.report(self.context, Receipt(self.context.route.upstream.name, self.answer.model, notes=(note,)))
        found = await upstream.send_own(self.context, self.answer.own_body)
        if isinstance(found, Refusal):
            await self.context.response.refuse(found)
            return
        try:
            await relay_response(self.context, found)
        finally:
            upstream.release(found)

    async def _read_events(self, exchange: Exchange, *, first: bool) -> bytes | None:
        """Return the events of a leg that came as JSON instead of a stream; None if it is to be relayed unchanged."""
        data = await self.context.keep_alive(read_whole(exchange)) if is_json(exchange) else None
        if data is None or (first and not self.answer.names_tools(data)):
            return None
        return await run_in_thread_if_long(data, _convert_answer_to_events, self.answer.wire, data)

    async def _read_answer(self, exchange: Exchange, before: Block | None) -> Block | None:
        """Return an answer that calls our tools or follows one that does; None if it is to be relayed unchanged."""
        data = await self.context.keep_alive(read_whole(exchange)) if exchange.status == 200 else None
        if data is None or (before is None and not self.answer.names_tools(data)):
            return None
        if before is None or not is_event_stream(exchange):
            return await run_in_thread_if_long(data, _parse_answer, self.answer.wire, data)
        listener = self.answer.loop.build_listener(self.answer.tool_names)
        listener.begin_next_leg()
        listener.feed(bytes(data))
        listener.finish()
        return None if listener.failed else listener.build_body(before)

    async def _send_merged_answer(self, exchange: Exchange, answers: Sequence[Block]) -> None:
        try:
            body = orjson.dumps(self.answer.loop.join_answers(answers, self.answer.tool_names))
        except TypeError:  # nested so deeply that it can be read, but not written
            await self.context.response.relay(exchange)
            return
        await self.context.response.replace_body(exchange, [(b"content-type", b"application/json")], body)


def _convert_answer_to_events(wire: WireName, data: bytes | bytearray) -> bytes | None:
    """Return the events of a JSON answer of a wire; None if it is an error or something else."""
    return None if _parse_answer(wire, data) is None else convert_to_stream(wire, data)


def _parse_answer(wire: WireName, data: bytes | bytearray) -> Block | None:
    """Return a JSON answer of a wire; None if it is an error or something else."""
    try:
        answer = parse_bounded_json(data)
    except orjson.JSONDecodeError:
        return None
    return answer if isinstance(answer, dict) and isinstance(answer.get(_CONTENT_KEYS[wire]), list) else None
