"""The MCP server on stdin and stdout. Only the protocol is written to stdout, and every malformed line is answered."""

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

from sightline.model.fence import replace_surrogates
from sightline.surfaces.mcp import ClientTerms
from sightline.surfaces.mcp.server import build_server

_MAX_MARKS = 1_000_000  # commas and opening brackets of a line: parsing takes at least 100 bytes of memory for each
_OVERSIZED = "\0"  # marks the two ends of a line that was not parsed; no JSON begins with it
_END_LENGTH = 2048  # characters of each end, to find the id of the request
_id_in = re.compile(r'"id"\s*:\s*("[^"\\]*"|-?\d{1,18})\s*[,}]').search
_BAD_JSON = types.ErrorData(code=types.PARSE_ERROR, message="this line is not JSON (write one message per line)")
_BAD_TEXT = types.ErrorData(code=types.PARSE_ERROR, message="a string on this line has a lone surrogate (leave it out)")
_TOO_DEEP = types.ErrorData(code=types.PARSE_ERROR, message="this line has too many nested objects (flatten them)")
_BATCH = types.ErrorData(
    code=types.INVALID_REQUEST, message="batches of messages are not supported (write one message per line)"
)
_BAD_ID = types.ErrorData(
    code=types.INVALID_REQUEST, message="the id of this request is invalid (use a text or a whole number)"
)
_TOO_MANY = types.ErrorData(
    code=types.INVALID_REQUEST, message=f"there are more than {_MAX_MARKS:,} JSON values on this line (send fewer)"
)
_BAD_MESSAGE = types.ErrorData(
    code=types.INVALID_REQUEST,
    message="this line is not a JSON-RPC message (see https://www.jsonrpc.org/specification)",
)


def serve_stdio(terms: ClientTerms) -> None:
    """Serve until the client closes its end."""
    # A thread that waits for a line can't be stopped, so an interrupt ends the process at once. That is safe: the
    # record is consistent at any time, and workers end with their parent.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    anyio.run(_serve, terms)


async def _serve(terms: ClientTerms) -> None:
    server = build_server(terms)
    stdin, stdout = _claim_stdio()
    lines = _LineReader(stdin, encoding="utf-8", errors="replace", newline="\n")
    async with stdio_server(anyio.wrap_file(lines), anyio.wrap_file(stdout)) as (read, write):
        with redirect_stdout(sys.stderr):
            try:
                await server.run(_CheckedMessages(lines, read, write), write, server.create_initialization_options())
            except asyncio.CancelledError:  # the client has gone, and the thread that reads may never get a line
                os._exit(0)


def _claim_stdio() -> tuple[BinaryIO, TextIO]:
    """Take stdin and stdout for the protocol alone: other code reads nothing there, and prints to stderr."""
    sys.stdout.flush()
    stdin, stdout = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    with Path(os.devnull).open("r+b") as null:
        os.dup2(null.fileno(), 0)
        try:
            os.dup2(2, 1)
        except OSError:  # there is no stderr
            os.dup2(null.fileno(), 1)
    return stdin, stdout


class _LineReader(TextIOWrapper):
    """Reads lines, and keeps each of them until it is checked: the SDK passes on only what it parsed."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.unchecked_lines: deque[str] = deque()

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
        line = super().readline(size)
        if len(line) > _MAX_MARKS and sum(map(line.count, (",", "[", "{"))) > _MAX_MARKS:
            self.unchecked_lines.append(_OVERSIZED + line[:_END_LENGTH] + line[-_END_LENGTH:])
            return "{}\n"  # parsed in the place of the line, and no message either
        self.unchecked_lines.append(line)
        return line


class _ErrorResponse(types.JSONRPCError):
    """An error response, also to a request whose id is invalid."""

    id: str | int | float | None  # type: ignore[assignment]


class _CheckedMessages:
    """The messages of the client. A line that is none is answered with an error, which the SDK would not do."""

    def __init__(
        self, lines: _LineReader, read: ReadStream[SessionMessage | Exception], write: WriteStream[SessionMessage]
    ) -> None:
        self._lines, self._read, self._write = lines.unchecked_lines, read, write

    async def receive(self) -> SessionMessage | Exception:
        while True:
            item = await self._read.receive()
            line = self._lines.popleft()
            error = _find_fault(item, line)
            if error is None and not isinstance(item, Exception):
                return item
            if error is not None:
                answer = _ErrorResponse(jsonrpc="2.0", id=_find_request_id(line), error=error)
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


def _find_fault(item: SessionMessage | Exception, line: str) -> types.ErrorData | None:
    """Return what is wrong with a line; None: nothing, or it is blank."""
    if isinstance(item, SessionMessage):
        is_notification = isinstance(item.message, types.JSONRPCNotification) and '"id"' in line
        return _BAD_ID if is_notification and "id" in _parse_object(line) else None
    if not isinstance(item, ValidationError) or line.startswith(_OVERSIZED):
        return _TOO_MANY if line.startswith(_OVERSIZED) else _BAD_MESSAGE
    found = item.errors(include_url=False, include_context=False, include_input=False)[0]
    if found["type"] != "json_invalid":
        return _BATCH if line.lstrip().startswith("[") else _BAD_MESSAGE
    if not line.strip():
        return None
    if "recursion" in found["msg"]:
        return _TOO_DEEP
    return _BAD_JSON if _parse_loosely(line) is None else _BAD_TEXT


def _find_request_id(line: str) -> str | float | None:
    """Return the id of the request that a malformed line was meant to be, as far as it can be read."""
    if line.startswith(_OVERSIZED):
        found = _id_in(line)
        return json.loads(found[1]) if found else None
    message = _parse_object(line)
    value = message.get("id") if "method" in message else None
    if isinstance(value, str):
        return value if replace_surrogates(value) == value else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) else None


def _parse_object(line: str) -> dict[str, Any]:
    message = _parse_loosely(line)
    return message if isinstance(message, dict) else {}


def _parse_loosely(line: str) -> object:
    """Parse JSON that may have invalid Unicode in it, such as a lone surrogate; None: it is no JSON."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
