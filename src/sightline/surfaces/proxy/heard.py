"""Answers that must be looked into before the client gets them: rejections, and wholes where a stream was asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from sightline.dial import Exchange
from sightline.model.profile import WireName
from sightline.model.refusal import Refusal
from sightline.surfaces.proxy.bodies import unpacked
from sightline.wire.jsonsize import MOST_OF_AN_ANSWER, SURELY_SMALL, count_marks
from sightline.wire.listen import Opening, Rejected, opening
from sightline.wire.sse import begins_stream
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


async def rejection(exchange: Exchange, patience: float) -> Rejected | None:
    """The no of an upstream, by its status or at the beginning of a body that begins with 200."""
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


def is_stream(exchange: Exchange) -> bool:
    """A stream that can be listened to."""
    kind, packing = exchange.header(b"content-type"), exchange.header(b"content-encoding")
    return kind.startswith(b"text/event-stream") and not packing


def is_odd(exchange: Exchange) -> bool:
    """An answer that does not say that it is a stream, whatever was asked for."""
    return exchange.status == 200 and not exchange.header(b"content-type").startswith(b"text/event-stream")


def is_whole(exchange: Exchange) -> bool:
    """An answer in one piece, whatever was asked for."""
    return exchange.status == 200 and exchange.header(b"content-type").startswith(b"application/json")


async def as_events(exchange: Exchange, wire: WireName) -> bytes | Refusal | None:
    """An odd answer as the stream of its wire; None: it is a stream, or too long to tell, and can be passed on."""
    start = await exchange.peek(LARGEST_ERROR, None, enough=lambda seen: len(seen.lstrip()) >= _TELLING)
    if begins_stream(start):
        exchange.headers = [*(each for each in exchange.headers if each[0] != b"content-type"), STREAM]
        return None
    data = await whole_of(exchange)
    if not exchange.whole:
        return _BROKEN if exchange.closed else None
    if data is not None and begins_stream(data):
        return None
    if data is not None and await in_thread_if_long(data, _has_too_many_values, data):
        return None
    events = None if data is None else await in_thread_if_long(data, unrolled, wire, data)
    return _UNKNOWN if events is None else events


async def whole_of(exchange: Exchange) -> bytes | bytearray | None:
    """A whole answer, unpacked, if it is one that can be; it can still be passed on."""
    body = await exchange.peek(_LARGEST_WHOLE, None)
    if not exchange.whole:  # too long, or broken off
        return None
    packing = exchange.header(b"content-encoding").decode("latin-1")
    if not packing:
        return body
    return await asyncio.to_thread(unpacked, body, packing, _LARGEST_WHOLE)


async def in_thread_if_long(data: bytes | bytearray, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what `work` on an answer returns; on a long one it is done in a thread, and nobody is held up."""
    if len(data) <= SURELY_SMALL:
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)


def _has_too_many_values(data: bytes | bytearray) -> bool:
    return len(data) > SURELY_SMALL and count_marks(data, MOST_OF_AN_ANSWER) > MOST_OF_AN_ANSWER
