"""Request bodies: buffered up to a bound, else streamed; decompressed and read for the engine.

What can't be read, because it is too large or no JSON, is forwarded as it came.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
import zlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from io import BytesIO

from sightline.engine import Engine, Reading
from sightline.model.refusal import Refusal
from sightline.server import Line, Receive
from sightline.server.bodies import Beginning, MemoryBudget, Reservation, read_body, receive_body
from sightline.surfaces.proxy.commands import remove_commands
from sightline.surfaces.proxy.headers import Request
from sightline.surfaces.proxy.routes import Route
from sightline.wire import Wire

log = logging.getLogger("sightline")

LARGEST = 128 * 1024 * 1024
MOST_VALUES_HELD = 8_000_000  # JSON values of all the large requests under way: each takes about 100 bytes
_AT_ONCE = 2  # bodies that are decompressed at a time
_MOST_RATIO = 100  # texts and images can't be compressed further
_ALWAYS = 16 * 1024 * 1024  # bytes that any body may have when decompressed
_REMEDY = "it is forwarded as it came"
_TOO_LONG = Refusal("too_large", f"it has more than {LARGEST >> 20} MB", _REMEDY)
_NOT_DECOMPRESSED = Refusal("too_large", "its content-encoding is unknown, broken, or unpacks to too much", _REMEDY)
_NO_ROOM = Refusal("unavailable", "other large requests take all the memory that reading may take", _REMEDY)

ScopeOf = Callable[[], str]
"""Returns the scope of the record that a request belongs to; only large requests need it."""


@dataclass(frozen=True, slots=True)
class BufferedBody:
    """A whole body."""

    data: bytes | bytearray
    rewritten: bool = False  # it is not what the client sent, nor compressed
    repeated: bool = False  # something was sent for the client's request before


@dataclass(frozen=True, slots=True)
class StreamedBody:
    """A body that is too large to be read."""

    pieces: AsyncIterator[bytes]
    complete: asyncio.Event  # set when its last piece has come


async def read_request_body(
    receive: Receive, length: int | None, most: int, line: Line | None = None, memory: Reservation | None = None
) -> BufferedBody | StreamedBody | Refusal:
    """Return a body of `length` bytes, if it announces them, or a refusal if there is no memory for it now."""
    body = await read_body(receive, length, most, memory or MemoryBudget().open(), line)
    if isinstance(body, Beginning):
        complete = asyncio.Event()
        return StreamedBody(_stream(receive, body.data, length is None, complete), complete)
    return body if isinstance(body, Refusal) else BufferedBody(body)


async def _stream(receive: Receive, start: bytes, chunked: bool, complete: asyncio.Event) -> AsyncIterator[bytes]:
    frame: Callable[[bytes], bytes] = _frame_chunk if chunked else bytes
    if start:
        yield frame(start)
    more = True
    while more:
        message = await receive_body(receive)
        more = message.get("more_body", False)
        if not more:
            complete.set()
        if message["body"]:
            yield frame(message["body"])
    if chunked:
        yield b"0\r\n\r\n"


def _frame_chunk(piece: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(piece), piece)


def decompress(data: bytes | bytearray, encoding: str, most: int = LARGEST) -> bytes | bytearray | None:
    """Return a body without its content-encoding; None: it is unknown or broken, or the result exceeds the bound."""
    decompress_with = _DECOMPRESS.get(encoding.strip().lower())
    if decompress_with is None:
        return None
    try:
        return decompress_with(data, most)
    except Exception:  # noqa: BLE001  three libraries, each with errors of its own; a broken body goes on as it came
        return None


class Decompressor:
    """Decompresses bodies in threads, a few at a time: a small body may hold much."""

    def __init__(self) -> None:
        self._semaphore = asyncio.Semaphore(_AT_ONCE)

    async def decompress(self, data: bytes | bytearray, encoding: str) -> bytes | bytearray | None:
        if encoding.strip().lower() in _PLAIN:
            return data
        async with self._semaphore:
            most = min(LARGEST, max(_ALWAYS, _MOST_RATIO * len(data)))
            return await asyncio.to_thread(decompress, data, encoding, most)


def _keep(data: bytes | bytearray, most: int) -> bytes | bytearray:
    return data


def _zlib(window: int) -> Callable[[bytes | bytearray, int], bytes | None]:
    def decompress_with(data: bytes | bytearray, most: int) -> bytes | None:
        machine = zlib.decompressobj(window)
        out = machine.decompress(data, most)
        return out if machine.eof and not machine.unconsumed_tail else None

    return decompress_with


def _gzip(data: bytes | bytearray, most: int) -> bytes | None:
    with gzip.open(BytesIO(data)) as file:
        out = file.read(most + 1)
    return out if len(out) <= most else None


def _brotli(data: bytes | bytearray, most: int) -> bytes | None:
    import brotli

    machine = brotli.Decompressor()
    out: bytes = machine.process(bytes(data), output_buffer_limit=most)
    return out if machine.is_finished() else None


def _zstd(data: bytes | bytearray, most: int) -> bytes | None:
    import zstandard

    with zstandard.ZstdDecompressor().stream_reader(BytesIO(data)) as reader:
        out = reader.read(most + 1)
    return out if len(out) <= most else None


_PLAIN = ("", "identity")
_DECOMPRESS: dict[str, Callable[[bytes | bytearray, int], bytes | bytearray | None]] = {
    **dict.fromkeys(_PLAIN, _keep),
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _zlib(zlib.MAX_WBITS),
    "br": _brotli,
    "zstd": _zstd,
}


class BodyReader:
    """Reads request bodies for the engine; what it can't read is forwarded as it came."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._decompressor = Decompressor()
        self._values = 0  # held by the requests under way

    async def open(
        self, request: Request, route: Route, body: BufferedBody | StreamedBody, memory: Reservation, scope: ScopeOf
    ) -> Reading | Refusal | None:
        """Read a body; None: it is no request of a wire, or signed, or no JSON. A refusal: it is too large to be read.

        Give a reading back with `release`.
        """
        signed = request.header(b"authorization").startswith("AWS4-HMAC-SHA256")
        if route.wire is None or request.method != "POST" or signed:
            return None
        if isinstance(body, StreamedBody):
            return _TOO_LONG
        if not (encoding := request.header(b"content-encoding")):
            return await self._open(route, route.wire, body.data, scope)
        data = await self._decompressor.decompress(body.data, encoding)
        if data is None:
            return _NOT_DECOMPRESSED
        return await self._open(route, route.wire, data, scope) if memory.add(len(data)) else _NO_ROOM

    async def _open(
        self, route: Route, wire: Wire, data: bytes | bytearray, scope: ScopeOf
    ) -> Reading | Refusal | None:
        try:
            reading = await self._engine.open(data, wire, scope)
        except Exception:  # fail open
            log.exception("a request could not be read; it goes on untouched")
            return None
        if not isinstance(reading, Reading):
            return reading
        if self._values + reading.values > MOST_VALUES_HELD:
            return _NO_ROOM
        self._values += reading.values
        return _apply_endpoint(route, reading)

    def release(self, reading: Reading) -> None:
        """Give back a reading that is no longer used, so that others may be read."""
        self._values -= reading.values

    def read(self, route: Route, data: bytes | bytearray) -> Reading | None:
        """Read a body that was written here."""
        assert route.wire is not None
        try:
            reading = self._engine.read(data, route.wire)
            return None if reading is None else _apply_endpoint(route, reading)
        except Exception:  # fail open
            log.exception("a request could not be read; it goes on untouched")
            return None

    def cut_commands(self, route: Route, body: BufferedBody, reading: Reading) -> tuple[BufferedBody, Reading | None]:
        """Return a request without the commands that were answered here, which the model must not see."""
        try:
            rest = remove_commands(reading, route)
        except Exception:  # fail open
            log.exception("commands could not be cut; the request goes on with them")
            rest = None
        return (body, reading) if rest is None else (BufferedBody(rest, rewritten=True), self.read(route, rest))


def _apply_endpoint(route: Route, reading: Reading) -> Reading:
    """Return a reading with what the path of its request says about it."""
    scene = route.endpoint.of(reading.scene)
    return reading if scene is reading.scene else replace(reading, scene=scene)
