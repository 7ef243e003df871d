"""Builds the MCP server of the SDK, for both eras of the protocol.

A handshake imports nothing heavy: the tools are imported with the first request that needs them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError
from pydantic_core import from_json

from sightline import __version__
from sightline.model.fence import to_one_line
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
