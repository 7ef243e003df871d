"""Answers that must be looked into before the client gets them: rejections, and wholes where a stream was asked for."""

from __future__ import annotations

from sightline.dial import Exchange
from sightline.model.profile import WireName
from sightline.surfaces.proxy.bodies import unpacked
from sightline.wire.opening import Opening, Rejected, opening
from sightline.wire.unrolled import unrolled

LARGEST_ERROR = 64 * 1024
_ERROR_SECONDS = 10.0
_LARGEST_WHOLE = 16 * 1024 * 1024


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


def is_whole(exchange: Exchange) -> bool:
    """An answer in one piece, whatever was asked for."""
    return exchange.status == 200 and exchange.header(b"content-type").startswith(b"application/json")


async def as_events(exchange: Exchange, wire: WireName) -> bytes | None:
    """A whole answer as the stream of its wire; None: it is none that could be, and can still be passed on."""
    data = await whole_of(exchange)
    return None if data is None else unrolled(wire, data)


async def whole_of(exchange: Exchange) -> bytes | bytearray | None:
    """A whole answer, unpacked, if it is one that can be; it can still be passed on."""
    body = await exchange.peek(_LARGEST_WHOLE, None)
    if not exchange.whole:  # too long, or broken off
        return None
    return unpacked(body, exchange.header(b"content-encoding").decode("latin-1"), _LARGEST_WHOLE)
