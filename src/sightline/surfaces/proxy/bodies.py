"""Request bodies: held in memory up to a bound, else passed along as they come; packed ones unpacked to be read."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from sightline.model.refusal import Refusal
from sightline.server import Line, asgi
from sightline.server.bodies import Beginning, MemoryBudget, Reservation, read_body, receive_body

Message = asgi.Message
Receive = asgi.Receive
Send = asgi.Send

LARGEST = 128 * 1024 * 1024
_AT_ONCE = 2
_TIGHTEST = 100  # times
_ALWAYS = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Held:
    """A whole body."""

    data: bytes | bytearray
    remade: bool = False  # it is not what the client sent, nor packed as that was
    again: bool = False  # something was sent for the client's request before


@dataclass(frozen=True, slots=True)
class Flowing:
    """A body that is too large to be looked at."""

    pieces: AsyncIterator[bytes]
    over: asyncio.Event  # its last piece has come


async def taken(
    receive: Receive, length: int | None, most: int, line: Line | None = None, memory: Reservation | None = None
) -> Held | Flowing | Refusal:
    """The body of a request of `length` bytes, if it announces one; a refusal if there is no memory for it now."""
    body = await read_body(receive, length, most, memory or MemoryBudget().open(), line)
    if isinstance(body, Beginning):
        return _flowing(receive, body.data, chunked=length is None)
    return body if isinstance(body, Refusal) else Held(body)


def _flowing(receive: Receive, start: bytes, chunked: bool) -> Flowing:
    over = asyncio.Event()
    return Flowing(_flow(receive, start, chunked, over), over)


async def _flow(receive: Receive, start: bytes, chunked: bool, over: asyncio.Event) -> AsyncIterator[bytes]:
    framed: Callable[[bytes], bytes] = _framed if chunked else bytes
    if start:
        yield framed(start)
    more = True
    while more:
        message = await receive_body(receive)
        more = message.get("more_body", False)
        if not more:
            over.set()
        if message["body"]:
            yield framed(message["body"])
    if chunked:
        yield b"0\r\n\r\n"


def _framed(piece: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(piece), piece)


def unpacked(data: bytes | bytearray, encoding: str, most: int = LARGEST) -> bytes | bytearray | None:
    """A body without its content-encoding; None when it cannot be had within the bound."""
    unpack = _UNPACK.get(encoding.strip().lower())
    if unpack is None:
        return None
    try:
        return unpack(data, most)
    except Exception:  # noqa: BLE001  three libraries, each with errors of its own; a broken body goes on as it came
        return None


class Unpacking:
    """Bodies unpacked beside everything else that goes on, a few at a time: what is small may hold much."""

    def __init__(self) -> None:
        self._turn = asyncio.Semaphore(_AT_ONCE)

    async def of(self, data: bytes | bytearray, encoding: str) -> bytes | bytearray | None:
        if encoding.strip().lower() in _PLAIN:
            return data
        async with self._turn:
            return await asyncio.to_thread(unpacked, data, encoding, _bound(len(data)))


def _bound(packed: int) -> int:
    """How much may be in a body of so many bytes; nobody's words and images can be packed more tightly."""
    return min(LARGEST, max(_ALWAYS, _TIGHTEST * packed))


def _plain(data: bytes | bytearray, most: int) -> bytes | bytearray:
    return data


def _zlib(window: int) -> Callable[[bytes | bytearray, int], bytes | None]:
    def unpack(data: bytes | bytearray, most: int) -> bytes | None:
        machine = zlib.decompressobj(window)
        out = machine.decompress(data, most)
        return out if machine.eof and not machine.unconsumed_tail else None

    return unpack


def _gzip(data: bytes | bytearray, most: int) -> bytes | None:
    with gzip.open(_reader(data)) as file:
        out = file.read(most + 1)
    return out if len(out) <= most else None


def _reader(data: bytes | bytearray) -> Any:
    from io import BytesIO

    return BytesIO(data)


def _brotli(data: bytes | bytearray, most: int) -> bytes | None:
    import brotli

    machine = brotli.Decompressor()
    out: bytes = machine.process(bytes(data), output_buffer_limit=most)
    return out if machine.is_finished() else None


def _zstd(data: bytes | bytearray, most: int) -> bytes | None:
    import zstandard

    with zstandard.ZstdDecompressor().stream_reader(_reader(data)) as reader:
        out = reader.read(most + 1)
    return out if len(out) <= most else None


_PLAIN = ("", "identity")
_UNPACK: dict[str, Callable[[bytes | bytearray, int], bytes | bytearray | None]] = {
    **dict.fromkeys(_PLAIN, _plain),
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _zlib(zlib.MAX_WBITS),
    "br": _brotli,
    "zstd": _zstd,
}
