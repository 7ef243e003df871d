"""The server on stdin and stdout: nothing but the protocol goes out, and every line that comes in is answered."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections import deque
from contextlib import redirect_stdout
from io import TextIOWrapper
from math import isfinite
from pathlib import Path
from typing import Any, BinaryIO, Self, TextIO

import anyio
import mcp_types as types
from mcp.server.stdio import stdio_server
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from sightline.model.fence import sound
from sightline.surfaces.mcp.clients import Terms
from sightline.surfaces.mcp.server import server

_MOST_MARKS = 1_000_000  # commas and opening brackets of a line: parsing takes 100 bytes of memory and more for each
_OVERSIZED = "\0"  # before the two ends of a line that was not parsed; no JSON begins like this
_ENDS = 2048  # letters of such a line that are kept, to find the id of the request
_id_in = re.compile(r'"id"\s*:\s*("[^"\\]*"|-?\d{1,18})\s*[,}]').search
_BAD_JSON = types.ErrorData(code=types.PARSE_ERROR, message="this line is no JSON (write one message in one line)")
_BAD_TEXT = types.ErrorData(
    code=types.PARSE_ERROR, message="a text on this line has half a surrogate pair in it (leave it out)"
)
_TOO_DEEP = types.ErrorData(
    code=types.PARSE_ERROR, message="this line has objects within objects too many times over (flatten them)"
)
_BATCH = types.ErrorData(
    code=types.INVALID_REQUEST, message="several messages at once are not taken (write one message in one line)"
)
_BAD_ID = types.ErrorData(
    code=types.INVALID_REQUEST, message="the id of a request is a text or a whole number (give it such an id)"
)
_TOO_MANY = types.ErrorData(
    code=types.INVALID_REQUEST, message=f"there are more than {_MOST_MARKS:,} JSON values on this line (send fewer)"
)
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
    stdin, stdout = _claimed()
    lines = _Lines(stdin, encoding="utf-8", errors="replace", newline="\n")
    async with stdio_server(anyio.wrap_file(lines), anyio.wrap_file(stdout)) as (read, write):
        with redirect_stdout(sys.stderr):
            try:
                await made.run(_Answered(lines, read, write), write, made.create_initialization_options())
            except asyncio.CancelledError:  # nobody reads what is written, and a line may never come
                os._exit(0)


def _claimed() -> tuple[BinaryIO, TextIO]:
    """The pipe, for the protocol alone: whoever else reads here finds nothing, and whoever prints does so to stderr."""
    sys.stdout.flush()
    stdin, stdout = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    with Path(os.devnull).open("r+b") as nothing:
        os.dup2(nothing.fileno(), 0)
        try:
            os.dup2(2, 1)
        except OSError:  # there is no stderr
            os.dup2(nothing.fileno(), 1)
    return stdin, stdout


class _Lines(TextIOWrapper):
    """What comes in, and of each line that was read what it was: the SDK hands on what it made of it."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.read_so_far: deque[str] = deque()

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
        line = super().readline(size)
        if len(line) > _MOST_MARKS and sum(map(line.count, (",", "[", "{"))) > _MOST_MARKS:
            self.read_so_far.append(_OVERSIZED + line[:_ENDS] + line[-_ENDS:])
            return "{}\n"  # no message: it takes the place of the line, which is not parsed
        self.read_so_far.append(line)
        return line


class _No(types.JSONRPCError):
    """To whoever waits under an id that is none, too."""

    id: str | int | float | None  # type: ignore[assignment]


class _Answered:
    """The lines that are messages. Of any other the client hears: the SDK would drop it, and the client wait."""

    def __init__(
        self, lines: _Lines, read: ReadStream[SessionMessage | Exception], write: WriteStream[SessionMessage]
    ) -> None:
        self._lines, self._read, self._write = lines.read_so_far, read, write

    async def receive(self) -> SessionMessage | Exception:
        while True:
            item = await self._read.receive()
            line = self._lines.popleft()
            error = _fault(item, line)
            if error is None and not isinstance(item, Exception):
                return item
            if error is not None:
                answer = _No(jsonrpc="2.0", id=_asked(line), error=error)
                await self._write.send(SessionMessage(answer))

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


def _fault(item: SessionMessage | Exception, line: str) -> types.ErrorData | None:
    """What is wrong with a line; None: nothing, or there is nothing on it."""
    if isinstance(item, SessionMessage):
        notice = isinstance(item.message, types.JSONRPCNotification) and '"id"' in line
        return _BAD_ID if notice and "id" in _object(line) else None
    if not isinstance(item, ValidationError) or line.startswith(_OVERSIZED):
        return _TOO_MANY if line.startswith(_OVERSIZED) else _BAD_MESSAGE
    found = item.errors(include_url=False, include_context=False, include_input=False)[0]
    if found["type"] != "json_invalid":
        return _BATCH if line.lstrip().startswith("[") else _BAD_MESSAGE
    if not line.strip():
        return None
    if "recursion" in found["msg"]:
        return _TOO_DEEP
    return _BAD_JSON if _loosely(line) is None else _BAD_TEXT


def _asked(line: str) -> str | float | None:
    """Which request a line was meant to be, as far as it can be read: whoever made it waits for its answer."""
    if line.startswith(_OVERSIZED):
        found = _id_in(line)
        return json.loads(found[1]) if found else None
    message = _object(line)
    value = message.get("id") if "method" in message else None
    if isinstance(value, str):
        return value if sound(value) == value else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) else None


def _object(line: str) -> dict[str, Any]:
    message = _loosely(line)
    return message if isinstance(message, dict) else {}


def _loosely(line: str) -> object:
    """JSON with texts that are no Unicode, such as a half of a surrogate pair, is some to whoever wrote it."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
