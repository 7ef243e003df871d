"""Reads the body of a request whole, within a bound and within the memory that all bodies may take.

A body that has to be read whole reserves its bytes before it is read, and gives them back when its request is done.
Without room for it, the request is refused and can be sent again: waiting would last as long as the slowest request
under way. A part is set aside for small bodies, so that large ones do not keep them out.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from sightline.model.refusal import Refusal
from sightline.server.asgi import Line, Message, Receive

MOST_HELD = 1024 * 1024 * 1024  # bytes of all bodies that are in memory at a time
MOST_SMALL = 1024 * 1024  # bytes: a body that is no longer is small
SET_ASIDE = 128 * 1024 * 1024  # bytes beyond `MOST_HELD`, for small bodies
NO_ROOM = Refusal("unavailable", "other large requests take all the memory for request bodies", "send it again later")


class MemoryBudget:
    """The bytes that all requests of a process have reserved."""

    __slots__ = ("held", "most")

    def __init__(self, most: int | None = None) -> None:
        self.most = MOST_HELD if most is None else most
        self.held = 0

    def open(self) -> Reservation:
        """Return the reservation of one request, which is empty; leave it as a context to give everything back."""
        return Reservation(self)


class Reservation:
    """The bytes that one request has reserved."""

    __slots__ = ("_budget", "_size")

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._size = 0

    def add(self, size: int) -> bool:
        """Reserve `size` bytes more, or return false if there is no room for them."""
        budget = self._budget
        most = budget.most + SET_ASIDE if self._size + size <= MOST_SMALL else budget.most
        if budget.held + size > most:
            return False
        self._size += size
        budget.held += size
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._budget.held -= self._size
        self._size = 0


def allocate(length: int) -> bytearray:
    """Return `length` bytes of unspecified content, to be written over.

    Filling them with zeros first would cost as much as copying the body, and would commit the memory for a
    length that a client has only announced.
    """
    made: bytearray = _from_string_and_size(None, length)
    return made


_from_string_and_size = ctypes.pythonapi.PyByteArray_FromStringAndSize
_from_string_and_size.restype = ctypes.py_object
_from_string_and_size.argtypes = (ctypes.c_char_p, ctypes.c_ssize_t)


class ClientDisconnected(Exception):
    """The client left before its request was complete."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """What was read of a body that is longer than its bound; the rest is still to be received."""

    data: bytes


async def read_body(
    receive: Receive, length: int | None, most: int, memory: Reservation, line: Line | None = None
) -> bytes | bytearray | Beginning | Refusal:
    """Return a body of `length` bytes, if it announces them; a refusal means that there is no memory for it now."""
    if length is not None:
        if length > most:
            return Beginning(b"")
        if not memory.add(length):
            return NO_ROOM
        if line is None:
            return await _gather(receive, most)
        if (data := await line.whole(length)) is not None:
            return data
        raise ClientDisconnected
    return await _gather(receive, most, memory)


async def _gather(
    receive: Receive, most: int, memory: Reservation | None = None
) -> bytes | bytearray | Beginning | Refusal:
    """Read a body piece by piece; `memory` is what its bytes are still to be reserved in."""
    data = bytearray()
    more = True
    while more:
        if len(data) > most:
            return Beginning(bytes(data))
        message = await receive_body(receive)
        piece: bytes = message["body"]
        more = message.get("more_body", False)
        if memory is not None and not memory.add(len(piece)):
            return NO_ROOM
        if not data and not more:
            return piece
        data += piece
    return data


async def receive_body(receive: Receive) -> Message:
    """Return the next message with a piece of the body."""
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientDisconnected
    return message
