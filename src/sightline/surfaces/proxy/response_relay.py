"""Responses of the upstream, as the client gets them: a whole answer becomes events where a stream was asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from sightline.dial import Exchange
from sightline.model.profile import WireName
from sightline.model.refusal import Refusal
from sightline.surfaces.proxy.request_bodies import decompress
from sightline.surfaces.proxy.request_context import MAX_ERROR_BYTES, STREAM_HEADERS, STREAM_TYPE, RequestContext
from sightline.wire.answer_writer import convert_to_stream
from sightline.wire.json_tree import MAX_ANSWER_VALUES, SMALL_BYTES, count_marks
from sightline.wire.sse import begins_stream

P = ParamSpec("P")
T = TypeVar("T")

_MAX_ANSWER_BYTES = 16 * 1024 * 1024
_STREAM_PREFIX_BYTES = 8  # enough to recognize a stream
_BROKEN_OFF = Refusal("unavailable", "the upstream's response broke off", "try again")
_NOT_A_STREAM = Refusal(
    "invalid_input",
    "the request asked for a stream, but the upstream's response is not one",
    "check that the upstream's address is right and serves this API",
)


async def relay_response(context: RequestContext, exchange: Exchange) -> None:
    """Send the client an upstream's response.

    A client that asked for a stream loops over events: it gets a whole answer as the events of its wire.
    """
    events: bytes | Refusal | None = None
    if context.wants_stream and _lacks_events(exchange) and not context.route.streams_json_list:
        events = await context.keep_alive(_convert_to_events(exchange, context.route.api))
    if isinstance(events, Refusal):
        await context.response.refuse(events)
    elif events is not None:
        await context.response.replace_body(exchange, STREAM_HEADERS, events)
    else:
        await context.response.relay(exchange)


def _lacks_events(exchange: Exchange) -> bool:
    """Return whether a successful response does not declare itself a stream."""
    return exchange.status == 200 and not exchange.get_header(b"content-type").startswith(b"text/event-stream")


def is_json(exchange: Exchange) -> bool:
    """Return whether a response is one JSON answer."""
    return exchange.status == 200 and exchange.get_header(b"content-type").startswith(b"application/json")


async def _convert_to_events(exchange: Exchange, wire: WireName) -> bytes | Refusal | None:
    """Return a JSON answer as events of its wire; None: it is a stream or too long to be read, and can be relayed."""
    start = await exchange.peek(
        MAX_ERROR_BYTES, None, is_enough=lambda seen: len(seen.lstrip()) >= _STREAM_PREFIX_BYTES
    )
    if begins_stream(start):
        exchange.headers = [*(each for each in exchange.headers if each[0] != b"content-type"), STREAM_TYPE]
        return None
    data = await read_whole(exchange)
    if not exchange.complete:
        return _BROKEN_OFF if exchange.closed else None
    if data is not None and begins_stream(data):
        return None
    if data is not None and await run_in_thread_if_long(data, _has_too_many_values, data):
        return None
    events = None if data is None else await run_in_thread_if_long(data, convert_to_stream, wire, data)
    return _NOT_A_STREAM if events is None else events


async def read_whole(exchange: Exchange) -> bytes | bytearray | None:
    """Return a whole body, decompressed; None if it is too long or broken off. The exchange can still be relayed."""
    body = await exchange.peek(_MAX_ANSWER_BYTES, None)
    if not exchange.complete:  # too long, or broken off
        return None
    encoding = exchange.get_header(b"content-encoding").decode("latin-1")
    if not encoding:
        return body
    return await asyncio.to_thread(decompress, body, encoding, _MAX_ANSWER_BYTES)


async def run_in_thread_if_long(
    data: bytes | bytearray, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
) -> T:
    """Return the result of `work` on an answer; work on a long answer runs in a thread."""
    if len(data) <= SMALL_BYTES:
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)


def _has_too_many_values(data: bytes | bytearray) -> bool:
    return len(data) > SMALL_BYTES and count_marks(data, MAX_ANSWER_VALUES) > MAX_ANSWER_VALUES
