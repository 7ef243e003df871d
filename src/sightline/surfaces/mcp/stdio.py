"""The server on stdin and stdout: nothing but the protocol goes out, and every line that comes in is answered."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import redirect_stdout
from typing import Self

import anyio
import mcp_types as types
from mcp.server.stdio import stdio_server
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from sightline.surfaces.mcp.server import server
from sightline.surfaces.mcp.terms import Terms

_BAD_JSON = types.ErrorData(code=types.PARSE_ERROR, message="this line is no JSON (write one message in one line)")
_BAD_MESSAGE = types.ErrorData(
    code=types.INVALID_REQUEST, message="this line is no JSON-RPC message (see https://www.jsonrpc.org/specification)"
)


def serve(terms: Terms) -> None:
    """Until the client closes its end."""
    # A thread that waits for a line cannot be told to stop; what is kept is whole at any moment, and workers leave
    # with their parent.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    anyio.run(_serve, terms)


async def _serve(terms: Terms) -> None:
    made = server(terms)
    async with stdio_server() as (read, write):
        sys.stdout.flush()  # by now that is stderr, also for whatever was printed before
        with redirect_stdout(sys.stderr):
            try:
                await made.run(_Answered(read, write), write, made.create_initialization_options())
            except asyncio.CancelledError:  # nobody reads what is written, and a line may never come
                os._exit(0)


class _Answered:
    """The lines that are messages. Of any other the client hears: the SDK would drop it, and the client wait."""

    def __init__(self, read: ReadStream[SessionMessage | Exception], write: WriteStream[SessionMessage]) -> None:
        self._read, self._write = read, write

    async def receive(self) -> SessionMessage | Exception:
        while isinstance(item := await self._read.receive(), Exception):
            if (error := _fault(item)) is not None:
                answer = types.JSONRPCError(jsonrpc="2.0", id=None, error=error)
                await self._write.send(SessionMessage(answer))
        return item

    async def aclose(self) -> None:
        await self._read.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _fault(trouble: Exception) -> types.ErrorData | None:
    """What is wrong with a line; None: there is nothing on it."""
    if not isinstance(trouble, ValidationError):
        return _BAD_MESSAGE
    found = trouble.errors(include_url=False, include_context=False)[0]
    if found["type"] != "json_invalid":
        return _BAD_MESSAGE
    return _BAD_JSON if str(found["input"]).strip() else None
