"""Reads the body of a request whole, within a bound and within the memory that all bodies may take."""

from __future__ import annotations

from dataclasses import dataclass

from sightline.model.refusal import Refusal
from sightline.server.asgi import Line, Message, Receive
from sightline.server.budget import Reservation
from sightline.server.buffers import allocate

NO_ROOM = Refusal("unavailable", "other large requests take all the memory for request bodies", "send it again later")


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
    if length is not None and length > most:
        return Beginning(b"")
    if length is not None and not memory.add(length):
        return NO_ROOM
    if length is not None and line is not None:
        if (data := await line.whole(length)) is None:
            raise ClientDisconnected
        return data
    message = await receive_body(receive)
    if length is None:
        return await _gather(receive, message, most, memory)
    return await _fill(receive, message, length) if message.get("more_body") else message["body"]


async def receive_body(receive: Receive) -> Message:
    """Return the next message with a piece of the body."""
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientDisconnected
    return message


async def _fill(receive: Receive, message: Message, length: int) -> bytearray:
    """Read into one buffer of the right size: pieces kept side by side cost more in page faults than in copying."""
    data = allocate(length)
    at = 0
    with memoryview(data) as view:
        while True:
            piece = message["body"]
            view[at : at + len(piece)] = piece
            at += len(piece)
            if not message.get("more_body"):
                return data
            message = await receive_body(receive)


async def _gather(
    receive: Receive, message: Message, most: int, memory: Reservation
) -> bytes | bytearray | Beginning | Refusal:
    """Read a body that does not announce its length."""
    if not memory.add(len(message["body"])):
        return NO_ROOM
    if not message.get("more_body"):
        body: bytes = message["body"]
        return body
    data = bytearray(message["body"])
    while message.get("more_body"):
        if len(data) > most:
            return Beginning(bytes(data))
        message = await receive_body(receive)
        if not memory.add(len(message["body"])):
            return NO_ROOM
        data += message["body"]
    return data
