"""The MCP server of the SDK, for both eras of the protocol, and its loop on stdin and stdout.

A handshake imports nothing heavy: the tools are imported with the first request that needs them. Only the protocol is
written to stdout, and every malformed line is answered.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import signal
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import replace
from importlib import import_module
from io import TextIOWrapper
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self, TextIO, TypeVar

import anyio
import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.stdio import stdio_server
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from pydantic import ValidationError
from pydantic_core import from_json

from sightline import __version__
from sightline.model.fence import replace_surrogates, to_one_line
from sightline.model.refusal import Refusal
from sightline.surfaces.mcp import ClientTerms

if TYPE_CHECKING:
    from sightline.surfaces.mcp.catalog import Catalog

log = logging.getLogger("sightline")

Context = ServerRequestContext[Any, Any]
P = TypeVar("P")
R = TypeVar("R")
_QUESTION_SECONDS = 3600.0  # a person answers
_INTERNAL_ERROR = "internal error of Sightline (try the call once more, or do it another way)"
_PLAIN_MESSAGES = {
    "Invalid request parameters": "this connection is not initialized (send initialize first)",
    "Invalid or expired requestState": "this requestState does not belong to a question that was asked here recently"
    " (send the call again without requestState)",
}  # by those of the SDK
_NOT_AN_OBJECT = Refusal(
    "invalid_input",
    "the arguments of a call must be one object",
    'write them as the schema of the tool says, such as {"path": "shot.png"}',
)
_MAX_PLACE = 100  # characters
_INSTRUCTIONS = (
    "Sightline lets you see images. view_image shows you an image file, if you can see images. If you can't, or if you"
    " need more detail, analyze_image answers a question about one or several images, or about parts of them, in words."
    " Name an image by its path, or by the sha256:… that a result or a note beside a pasted image gives."
)


class _Endpoints:
    """The endpoints of the server. What they need is imported in a thread with the first request."""

    def __init__(self, terms: ClientTerms) -> None:
        self._terms = terms
        self._lock = asyncio.Lock()
        self._catalog: Catalog | None = None

    async def _load(self) -> Catalog:
        async with self._lock:
            if self._catalog is None:
                module = await asyncio.to_thread(import_module, "sightline.surfaces.mcp.catalog")
                self._catalog = module.Catalog(self._terms)
        return self._catalog

    def defer(
        self, choose: Callable[[Catalog], Callable[[Context, P], Awaitable[R]]]
    ) -> Callable[[Context, P], Awaitable[R]]:
        """Return an endpoint that calls the method which `choose` finds in the catalog."""

        async def endpoint(ctx: Context, params: P) -> R:
            return await choose(await self._load())(ctx, params)

        return endpoint

    async def call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        try:
            return await (await self._load()).tools.call_tool(ctx, params)
        except MCPError:
            raise
        except Exception:  # the outermost edge: the model learns that it failed, and the log has the traceback
            log.exception("a call of %s failed", params.name)
            return types.CallToolResult(content=[types.TextContent(text=_INTERNAL_ERROR)], is_error=True)


async def _refuse_second_initialize(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Refuse to initialize a connection twice, because calls under way rely on what was negotiated."""
    if ctx.method == "initialize" and ctx.session.client_params is not None:
        raise MCPError(types.INVALID_REQUEST, "this connection is already initialized (open another one)")
    return await call_next(ctx)


async def _normalize_request(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Accept arguments that are written as a JSON text, restore lifted base64, and explain malformed requests.

    Malformed arguments of a call are reported in its result, which the model reads; other errors are the client's.
    """
    arguments = (ctx.params or {}).get("arguments")
    if isinstance(arguments, str):
        ctx = replace(ctx, params={**(ctx.params or {}), "arguments": parse_arguments(arguments)})
    if ctx.request is not None:  # it came over HTTP
        ctx = _restore_base64(ctx, ctx.request.scope)
    try:
        return await call_next(ctx)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        if ctx.method == "tools/call" and first["loc"][-1:] == ("arguments",):
            return types.CallToolResult(content=[types.TextContent(text=str(_NOT_AN_OBJECT))], is_error=True)
        place = to_one_line(".".join(map(str, first["loc"])))[:_MAX_PLACE]
        remedy = f"see https://modelcontextprotocol.io/specification for {ctx.method}"
        message = f"{ctx.method} has invalid parameters: {place}: {first['msg']} ({remedy})"
        raise MCPError(types.INVALID_PARAMS, message) from None
    except MCPError as error:
        message = _PLAIN_MESSAGES.get(error.error.message, error.error.message)
        raise MCPError(error.error.code, message, error.error.data) from None


def _restore_base64(ctx: Context, scope: Mapping[str, Any]) -> Context:
    from sightline.surfaces.mcp.large_requests import LIFTED, LiftedRequest, restore  # not for the handshake on stdio

    lifted: LiftedRequest | None = scope.get(LIFTED)
    return replace(ctx, params=restore(ctx.params, lifted)) if lifted is not None and lifted.texts else ctx


def parse_arguments(text: str) -> object:
    """Return the JSON object in a text, or the text itself if it is none."""
    try:
        found = from_json(text, allow_inf_nan=False) if text.strip() else {}
    except ValueError:
        return text
    return found if isinstance(found, dict) else text


def build_server(terms: ClientTerms) -> Server[Any]:
    endpoints = _Endpoints(terms)
    server: Server[Any] = Server(
        "sightline",
        version=__version__,
        title="Sightline",
        instructions=_INSTRUCTIONS,
        on_list_tools=endpoints.defer(lambda catalog: catalog.tools.list_tools),
        on_call_tool=endpoints.call_tool,
        on_list_resources=endpoints.defer(lambda catalog: catalog.list_resources),
        on_list_resource_templates=endpoints.defer(lambda catalog: catalog.list_templates),
        on_read_resource=endpoints.defer(lambda catalog: catalog.read_resource),
        on_list_prompts=endpoints.defer(lambda catalog: catalog.list_prompts),
        on_get_prompt=endpoints.defer(lambda catalog: catalog.get_prompt),
    )
    server.add_notification_handler(
        "notifications/roots/list_changed",
        types.NotificationParams,
        endpoints.defer(lambda catalog: catalog.tools.forget_roots),
    )
    sealed = RequestStateBoundary(RequestStateSecurity.ephemeral(ttl=_QUESTION_SECONDS), default_audience="sightline")
    server.middleware += [_normalize_request, _refuse_second_initialize, sealed]
    return server


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
