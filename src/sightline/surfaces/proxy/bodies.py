"""Bodies of requests: buffered up to a bound, else streamed; decompressed and read for the engine. Bodies of responses.

A request body that can't be read, because it is too large or not JSON, is forwarded as it came.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
import zlib
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from io import BytesIO
from typing import ParamSpec, TypeVar

from sightline.dial import Exchange
from sightline.engine import Engine, Reading
from sightline.model.profile import WireName
from sightline.model.refusal import Refusal
from sightline.model.value import value_class
from sightline.server import DirectConnection, Receive
from sightline.server.asgi import MemoryBudget, PartialBody, Reservation, read_body, receive_piece
from sightline.surfaces.proxy.request_context import MAX_ERROR_BYTES, STREAM_HEADERS, STREAM_TYPE, RequestContext
from sightline.surfaces.proxy.routes import Route
from sightline.wire.answer_writer import convert_to_stream
from sightline.wire.json_tree import MAX_ANSWER_VALUES, SMALL_BYTES, count_marks
from sightline.wire.sse import begins_stream

log = logging.getLogger("sightline")

MAX_BODY_BYTES = 128 * 1024 * 1024
MAX_JSON_VALUES = 8_000_000  # of all large requests in progress; each value takes about 100 bytes
_MAX_DECOMPRESSING = 2  # bodies that are decompressed at a time
_MAX_COMPRESSION = 100  # a larger ratio is neither text nor images
_ALWAYS_DECOMPRESSED = 16 * 1024 * 1024  # bytes that any decompressed body may have
_REMEDY = "it is forwarded as it came"
_TOO_LARGE = Refusal("too_large", f"it is larger than {MAX_BODY_BYTES >> 20} MB", _REMEDY)
_NOT_DECOMPRESSED = Refusal("too_large", "it can't be decompressed, or is too large when decompressed", _REMEDY)
_NO_MEMORY = Refusal("unavailable", "other large requests use all the memory for reading", _REMEDY)


@value_class
class BufferedBody:
    """A whole body."""

    data: bytes | bytearray
    rewritten: bool = False  # it differs from what the client sent, and is not compressed
    is_retry: bool = False  # the client's request was sent before in another form
    original: BufferedBody | None = None  # as the client sent it, if PDFs were replaced in this one

    @property
    def own(self) -> BufferedBody:
        """The client's own body."""
        return self.original or self


@value_class
class StreamedBody:
    """A body that is too large to be read."""

    pieces: AsyncIterator[bytes]
    complete: asyncio.Event  # set when its last piece has been received


async def read_request_body(
    receive: Receive,
    length: int | None,
    max_bytes: int,
    direct: DirectConnection | None = None,
    memory: Reservation | None = None,
) -> BufferedBody | StreamedBody | Refusal:
    """Return a body, of `length` bytes if the request announces them, or a refusal if there is no memory for it now."""
    body = await read_body(receive, length, max_bytes, memory or MemoryBudget().start_reservation(), direct)
    if isinstance(body, PartialBody):
        complete = asyncio.Event()
        return StreamedBody(_stream_pieces(receive, body.data, length is None, complete), complete)
    return body if isinstance(body, Refusal) else BufferedBody(body)


async def _stream_pieces(
    receive: Receive, start: bytes, chunked: bool, complete: asyncio.Event
) -> AsyncIterator[bytes]:
    frame: Callable[[bytes], bytes] = _frame_chunk if chunked else bytes
    if start:
        yield frame(start)
    more = True
    while more:
        message = await receive_piece(receive)
        more = message.get("more_body", False)
        if not more:
            complete.set()
        if message["body"]:
            yield frame(message["body"])
    if chunked:
        yield b"0\r\n\r\n"


def _frame_chunk(piece: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(piece), piece)


def decompress(data: bytes | bytearray, encoding: str, max_bytes: int = MAX_BODY_BYTES) -> bytes | bytearray | None:
    """Return a decompressed body; None if its encoding is unknown, it is damaged, or it exceeds `max_bytes`."""
    decompress_with = _DECOMPRESS_BY_ENCODING.get(encoding.strip().lower())
    if decompress_with is None:
        return None
    try:
        return decompress_with(data, max_bytes)
    except Exception:  # noqa: BLE001  three libraries raise different errors; a damaged body is forwarded as it came
        return None


class Decompressor:
    """Decompression in threads, a few bodies at a time: a small body may become large."""

    def __init__(self) -> None:
        self._semaphore = asyncio.Semaphore(_MAX_DECOMPRESSING)

    async def decompress(self, data: bytes | bytearray, encoding: str) -> bytes | bytearray | None:
        if encoding.strip().lower() in _UNCOMPRESSED:
            return data
        async with self._semaphore:
            max_bytes = min(MAX_BODY_BYTES, max(_ALWAYS_DECOMPRESSED, _MAX_COMPRESSION * len(data)))
            return await asyncio.to_thread(decompress, data, encoding, max_bytes)


def _decompress_deflate(data: bytes | bytearray, max_bytes: int) -> bytes | None:
    machine = zlib.decompressobj()
    out = machine.decompress(data, max_bytes)
    return out if machine.eof and not machine.unconsumed_tail else None


def _decompress_gzip(data: bytes | bytearray, max_bytes: int) -> bytes | None:
    with gzip.open(BytesIO(data)) as file:
        out = file.read(max_bytes + 1)
    return out if len(out) <= max_bytes else None


def _decompress_brotli(data: bytes | bytearray, max_bytes: int) -> bytes | None:
    import brotli

    machine = brotli.Decompressor()
    out: bytes = machine.process(bytes(data), output_buffer_limit=max_bytes)
    return out if machine.is_finished() else None


def _decompress_zstd(data: bytes | bytearray, max_bytes: int) -> bytes | None:
    import zstandard

    with zstandard.ZstdDecompressor().stream_reader(BytesIO(data)) as reader:
        out = reader.read(max_bytes + 1)
    return out if len(out) <= max_bytes else None


_UNCOMPRESSED = ("", "identity")
_DECOMPRESS_BY_ENCODING: dict[str, Callable[[bytes | bytearray, int], bytes | bytearray | None]] = {
    **dict.fromkeys(_UNCOMPRESSED, lambda data, max_bytes: data),
    "gzip": _decompress_gzip,
    "x-gzip": _decompress_gzip,
    "deflate": _decompress_deflate,
    "br": _decompress_brotli,
    "zstd": _decompress_zstd,
}


class BodyReader:
    """Reads request bodies for the engine. A body that it can't read is forwarded as it came."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._decompressor = Decompressor()
        self._json_values = 0  # held by the requests under way

    async def open(
        self, context: RequestContext, body: BufferedBody | StreamedBody, memory: Reservation
    ) -> Reading | Refusal | None:
        """Read a body; None if it has no wire, is signed or not JSON; a refusal if it is too large.

        Call `release` when the reading is no longer used.
        """
        head, route = context.head, context.route
        if route.wire is None or context.request.method != "POST" or head.is_signed:
            return None
        if isinstance(body, StreamedBody):
            return _TOO_LARGE
        encoding = head.content_encoding
        data = await self._decompress(body.data, encoding, memory) if encoding else body.data
        if isinstance(data, Refusal):
            return data
        try:
            reading = await self._engine.open(data, route.wire, context.get_scope)
        except Exception:  # fail open
            log.exception("a request could not be read; it is forwarded unchanged")
            return None
        return self._admit(route, reading) if isinstance(reading, Reading) else reading

    def _admit(self, route: Route, reading: Reading) -> Reading | Refusal:
        if values := reading.value_count:
            if self._json_values + values > MAX_JSON_VALUES:
                return _NO_MEMORY
            self._json_values += values
        return _apply_endpoint(route, reading)

    async def _decompress(
        self, data: bytes | bytearray, encoding: str, memory: Reservation
    ) -> bytes | bytearray | Refusal:
        decompressed = await self._decompressor.decompress(data, encoding)
        if decompressed is None:
            return _NOT_DECOMPRESSED
        return decompressed if memory.add(len(decompressed)) else _NO_MEMORY

    def release(self, reading: Reading) -> None:
        """Free the memory of a reading that is no longer used."""
        self._json_values -= reading.value_count

    async def reopen(self, route: Route, data: bytes, scope: str) -> Reading | None:
        """Read a large body that the proxy has written, in a thread; None if that isn't possible."""
        assert route.wire is not None
        try:
            reading = await self._engine.open(data, route.wire, lambda: scope)
            return _apply_endpoint(route, reading) if isinstance(reading, Reading) else None
        except Exception:  # fail open
            log.exception("a request could not be read; it is forwarded unchanged")
            return None

    def read(self, route: Route, data: bytes | bytearray) -> Reading | None:
        """Read a body that the proxy has written."""
        assert route.wire is not None
        try:
            reading = self._engine.read(data, route.wire)
            return None if reading is None else _apply_endpoint(route, reading)
        except Exception:  # fail open
            log.exception("a request could not be read; it is forwarded unchanged")
            return None


def _apply_endpoint(route: Route, reading: Reading) -> Reading:
    """Return a reading that includes what the path of its request says, such as the model."""
    scene = route.endpoint.apply_to(reading.scene)
    return reading if scene is reading.scene else replace(reading, scene=scene)


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
        exchange.replace_header(STREAM_TYPE)
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
