"""The server as the SDK runs it, in both eras of the protocol. Who shakes hands loads nothing that looks."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError
from pydantic_core import from_json

from sightline import __version__
from sightline.model.fence import one_line
from sightline.model.refusal import Refusal
from sightline.surfaces.mcp.clients import Terms
from sightline.surfaces.mcp.large_requests import LIFTED, LiftedRequest, restore

if TYPE_CHECKING:
    from sightline.surfaces.mcp.service import Service

log = logging.getLogger("sightline")

Context = ServerRequestContext[Any, Any]
_ANSWERED_WITHIN = 3600.0  # seconds: a person answers
_FAULT = "Sightline itself failed over this call (try it once more, or another way)"
_PLAINLY = {
    "Invalid request parameters": "nobody has shaken hands on this connection (send initialize first)",
    "Invalid or expired requestState": "this requestState is of no question that was asked here of late"
    " (send the call again without requestState)",
}  # what the SDK says
_NO_OBJECT = Refusal(
    "invalid_input",
    "the arguments of a call are one object, and these are none",
    'write them as the schema of the tool says, such as {"path": "shot.png"}',
)
_WHERE = 100  # letters
_INSTRUCTIONS = (
    "Sightline gives you eyes. view_image shows an image file to you, if you see images. If you do not, or need more"
    " than you see, analyze_image asks somebody who sees about one or several images or parts of them, and answers in"
    " words. Images go by their path or by the sha256:… that a result or a note beside a pasted image gives."
)


class _Door:
    """The handlers; what they need is loaded with the first request that needs it, aside of the event loop."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._service: Service | None = None
        self._loading = asyncio.Lock()

    async def service(self) -> Service:
        async with self._loading:
            if self._service is None:
                module = await asyncio.to_thread(import_module, "sightline.surfaces.mcp.service")
                self._service = module.Service(self._terms)
        return self._service

    async def tools(self, ctx: Context, params: Any) -> types.ListToolsResult:
        return await (await self.service()).tools(ctx)

    async def call(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        try:
            return await (await self.service()).call(ctx, params)
        except MCPError:
            raise
        except Exception:  # the outermost edge: the model is told, and the words of a fault are nobody's business
            log.exception("a call of %s could not be served", params.name)
            return types.CallToolResult(content=[types.TextContent(text=_FAULT)], is_error=True)

    async def resources(self, ctx: Context, params: Any) -> types.ListResourcesResult:
        return await (await self.service()).resources(ctx)

    async def templates(self, ctx: Context, params: Any) -> types.ListResourceTemplatesResult:
        return await (await self.service()).templates(ctx)

    async def resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        return await (await self.service()).resource(ctx, params.uri)

    async def prompts(self, ctx: Context, params: Any) -> types.ListPromptsResult:
        return await (await self.service()).prompts(ctx)

    async def prompt(
        self, ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        return await (await self.service()).prompt(ctx, params)

    async def roots_changed(self, ctx: Context, params: Any) -> None:
        (await self.service()).roots_changed()


async def _once(ctx: Context, call_next: CallNext) -> HandlerResult:
    """A connection shakes hands once: what was agreed on then, answers under way rely on."""
    if ctx.method == "initialize" and ctx.session.client_params is not None:
        raise MCPError(types.INVALID_REQUEST, "this connection is initialized already (open another one)")
    return await call_next(ctx)


async def _shaped(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Models write an object as its text: that is taken. Of all else that has a wrong shape it is told what, where and
    what to do: a call's arguments are a model's, who reads results; the rest is the client's."""
    given = (ctx.params or {}).get("arguments")
    if isinstance(given, str):
        ctx = replace(ctx, params={**(ctx.params or {}), "arguments": unwrapped(given)})
    lifted: LiftedRequest | None = ctx.request.scope.get(LIFTED) if ctx.request is not None else None
    if lifted is not None and lifted.texts:
        ctx = replace(ctx, params=restore(ctx.params, lifted))
    try:
        return await call_next(ctx)
    except ValidationError as trouble:
        found = trouble.errors(include_url=False, include_context=False, include_input=False)[0]
        if ctx.method == "tools/call" and found["loc"][-1:] == ("arguments",):
            return types.CallToolResult(content=[types.TextContent(text=str(_NO_OBJECT))], is_error=True)
        where = one_line(".".join(map(str, found["loc"])))[:_WHERE]
        what = f"{ctx.method} is not as it should be: {where}: {found['msg']}"
        remedy = f"https://modelcontextprotocol.io/specification says how {ctx.method} is called"
        raise MCPError(types.INVALID_PARAMS, f"{what} ({remedy})") from None
    except MCPError as no:
        raise MCPError(no.error.code, _PLAINLY.get(no.error.message, no.error.message), no.error.data) from None


def unwrapped(text: str) -> object:
    """The object that a text is; any other text as it is."""
    try:
        found = from_json(text, allow_inf_nan=False) if text.strip() else {}
    except ValueError:
        return text
    return found if isinstance(found, dict) else text


def server(terms: Terms) -> Server[Any]:
    door = _Door(terms)
    made: Server[Any] = Server(
        "sightline",
        version=__version__,
        title="Sightline",
        instructions=_INSTRUCTIONS,
        on_list_tools=door.tools,
        on_call_tool=door.call,
        on_list_resources=door.resources,
        on_list_resource_templates=door.templates,
        on_read_resource=door.resource,
        on_list_prompts=door.prompts,
        on_get_prompt=door.prompt,
    )
    made.add_notification_handler("notifications/roots/list_changed", types.NotificationParams, door.roots_changed)
    sealed = RequestStateBoundary(RequestStateSecurity.ephemeral(ttl=_ANSWERED_WITHIN), default_audience="sightline")
    made.middleware += [_shaped, _once, sealed]
    return made
