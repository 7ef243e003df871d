"""What an application sees of the server: the types of ASGI, direct access to a connection, and whole request bodies.

**Memory.** A body that has to be read whole reserves its bytes before it is read and returns them when its request is
done. Without room for it, the request is refused and can be sent again: waiting would take as long as the slowest
request in progress. A part of the memory is reserved for small bodies, so that large ones do not keep them out.
"""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Awaitable, Callable, MutableMapping
from types import TracebackType
from typing import Any, Protocol, Self

from sightline.model.refusal import Refusal
from sightline.model.value import value_class

Scope = dict[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

DIRECT_CONNECTION = "sightline.direct_connection"
"""The key of the `DirectConnection` among a scope's extensions. Other servers don't set it."""

HEAD_NOTES = "sightline.head_notes"
"""The key of a dict in a scope, in which an application keeps what it has found out about the head of a request.

Requests on one connection share it while their heads differ in nothing but the content-length, as those of most clients
do: a head that was checked once isn't checked again. Other servers don't set it.
"""

BODY_FOLLOWS = "sightline.body_follows"
"""A key of `http.response.start`: the first bytes of the body follow before the event loop runs anything else."""

MAX_BUFFERED_BYTES = 1024 * 1024 * 1024  # of all bodies that are in memory at a time
MAX_SMALL_BODY = 1024 * 1024  # bytes: a body that is no longer is small
SMALL_BODY_RESERVE = 128 * 1024 * 1024  # bytes beyond `MAX_BUFFERED_BYTES`, for small bodies
NO_MEMORY = Refusal(
    "unavailable", "other large requests use all the memory for request bodies", "send the request again later"
)


class DirectConnection(Protocol):
    """The connection of one request, used without a message per piece of a body and without a task that waits."""

    task: asyncio.Task[Any]  # in which the application runs
    disconnected: bool
    on_disconnect: Callable[[], None] | None

    async def read_body(self, length: int) -> bytes | bytearray | None:
        """Return the body of a request whose content-length is `length`, or None if the client disconnected."""

    def write_body(self, data: bytes) -> bool:
        """Write bytes of a response body that has started; return false if the next ones have to wait for room."""


class MemoryBudget:
    """The bytes that all requests of a process have reserved."""

    __slots__ = ("max_bytes", "reserved")

    def __init__(self, max_bytes: int | None = None) -> None:
        self.max_bytes = MAX_BUFFERED_BYTES if max_bytes is None else max_bytes
        self.reserved = 0

    def start_reservation(self) -> Reservation:
        """Return an empty reservation for one request; leaving it as a context returns all its bytes."""
        return Reservation(self)


class Reservation:
    """The bytes that one request has reserved."""

    __slots__ = ("_budget", "_size")

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._size = 0

    def add(self, size: int) -> bool:
        """Reserve `size` bytes more, or return false if there is no room for them."""
        budget, own = self._budget, self._size + size
        reserved = budget.reserved + size
        if reserved > budget.max_bytes and (own > MAX_SMALL_BODY or reserved > budget.max_bytes + SMALL_BODY_RESERVE):
            return False
        self._size, budget.reserved = own, reserved
        return True

    def release(self) -> None:
        """Return all bytes."""
        self._budget.reserved -= self._size
        self._size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class ClientDisconnected(Exception):
    """The client disconnected before its request was complete."""


@value_class
class PartialBody:
    """The beginning of a body that is longer than its bound; the rest is still to be received."""

    data: bytes


async def read_body(
    receive: Receive, length: int | None, max_bytes: int, memory: Reservation, direct: DirectConnection | None = None
) -> bytes | bytearray | PartialBody | Refusal:
    """Return a whole body, of `length` bytes if the request announces them; a refusal if there is no memory for it."""
    if length is not None:
        if length > max_bytes:
            return PartialBody(b"")
        if not memory.add(length):
            return NO_MEMORY
        if direct is None:
            return await _gather_pieces(receive, max_bytes)
        if (data := await direct.read_body(length)) is not None:
            return data
        raise ClientDisconnected
    return await _gather_pieces(receive, max_bytes, memory)


async def _gather_pieces(
    receive: Receive, max_bytes: int, memory: Reservation | None = None
) -> bytes | bytearray | PartialBody | Refusal:
    """Read a body piece by piece, and reserve each piece in `memory`; None if all of it is reserved already."""
    data = bytearray()
    more = True
    while more:
        if len(data) > max_bytes:
            return PartialBody(bytes(data))
        message = await receive_piece(receive)
        piece: bytes = message["body"]
        more = message.get("more_body", False)
        if memory is not None and not memory.add(len(piece)):
            return NO_MEMORY
        if not data and not more:
            return piece
        data += piece
    return data


async def receive_piece(receive: Receive) -> Message:
    """Return the next message with a piece of the body."""
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientDisconnected
    return message


def allocate_buffer(length: int) -> bytearray:
    """Return `length` bytes of unspecified content, to be overwritten.

    Zeroing them would cost as much as copying the body, and would commit memory for a length that a client has only
    announced.
    """
    allocated: bytearray = _from_string_and_size(None, length)
    return allocated


_from_string_and_size = ctypes.pythonapi.PyByteArray_FromStringAndSize
_from_string_and_size.restype = ctypes.py_object
_from_string_and_size.argtypes = (ctypes.c_char_p, ctypes.c_ssize_t)
