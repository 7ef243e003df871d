"""What a client is served: tools, images of the record, and the verbs of /vision-proxy; each on the library's own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import mcp_types as types
from mcp.shared.exceptions import MCPError

from sightline import api
from sightline.api import analysis, toolset
from sightline.api.results import Refused
from sightline.api.session import NATIVE, Door
from sightline.api.views import images_of
from sightline.commands import NAME, VERBS
from sightline.commands.answer import answer
from sightline.commands.values import Command, Describe, Redescribe
from sightline.model.fence import one_line
from sightline.model.image import Kept, Target
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.model.toolset import TOOLSET
from sightline.sources import reference
from sightline.sources.file import outside
from sightline.surfaces.mcp import catalog
from sightline.surfaces.mcp.asking import (
    Asked,
    Context,
    Needs,
    agreed,
    answers,
    attended,
    can_elicit,
    has_roots,
    is_modern,
    nowhere,
    opened,
)
from sightline.surfaces.mcp.catalog import SAME_TOOLS, list_arguments, read_prompt
from sightline.surfaces.mcp.clients import Client, Terms, client, within
from sightline.vision.bridge import run_in_thread
from sightline.vision.fairness import FairSemaphore
from sightline.vision.lru_cache import LruCache

_ELSEWHERE = ": call read_file for that"
_LISTED = 200  # resources; older ones are found by their template
_REMEMBERED = 1024  # answers
_CALLS_AT_ONCE = 48  # of all clients
_FOR_GOOD = "? `sightline consent no {}` takes it back."
_MEANWHILE = " {}? `sightline consent yes {}` in a shell agrees for good."
_NAME = 100  # letters of a client's name
_SAID = 50  # images of a list that somebody reads
_SHOWS = "view_image"  # what a resource does, too
_TOOLS: Mapping[str, str] = {
    "view_image": "See an image",
    "analyze_image": "Ask about images",
    "list_images": "List images",
    "vision_analyze": "Ask about an image or a PDF",
    "video_analyze": "Ask about a video",
}  # a host reads and edits texts itself

T = TypeVar("T")
Caller = tuple[str, str, str]


def _nobody(door: Door) -> str:
    return ""


class Service:
    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._declined: LruCache[bool] = LruCache(_REMEMBERED)  # who said no to whom is not asked with every call
        self._agreed: LruCache[bool] = LruCache(_REMEMBERED)  # who said yes to whom, for itself
        self._asking: LruCache[asyncio.Lock] = LruCache(_REMEMBERED)  # who is being asked
        self._turns = FairSemaphore(_CALLS_AT_ONCE)
        self._roots: tuple[Path, ...] | None = None  # None: not asked yet

    def roots_changed(self) -> None:
        self._roots = None

    async def tools(self, ctx: Context) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_tool(entry) for entry in _offers(await self._door(ctx)).values()])

    async def call(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        door, limits = await self._door(ctx), _client(ctx)
        given: Mapping[str, Any] = params.arguments or {}
        offers = _offers(door)
        tool = next((each for each in toolset.TOOLS if each.name == params.name and each.name in offers), None)
        if tool is None:
            return _result(_no_such_tool(offers, params.name), limits, offers)
        awaited = partial(toolset.awaited, name=params.name, arguments=given) if tool.asks else _nobody
        ready = await self._ready(ctx, params, door, _paths(given.get(tool.over)), awaited)
        if isinstance(ready, types.InputRequiredResult):
            return ready
        if isinstance(ready, Refusal):
            return types.CallToolResult(content=[types.TextContent(text=str(ready))], is_error=True)
        work = partial(api.call.aio, params.name, given, through=_fitting(ready, limits))
        return _result(await attended(ctx, params.name, self._in_turn(door, work)), limits, offers)

    async def _in_turn(self, door: Door, work: Callable[[], Awaitable[T]]) -> T:
        """Do the work when it is the caller's turn: the threads for it are shared by all."""
        async with self._turns.turn(door.scope):
            return await work()

    async def resources(self, ctx: Context) -> types.ListResourcesResult:
        """The newest; each is there for who knows its sha256, also one that is not listed."""
        door = await self._door(ctx)
        found = [] if _lacks(door, _SHOWS) else await asyncio.to_thread(images_of, door, _LISTED)
        return types.ListResourcesResult(resources=[_resource(kept, _client(ctx)) for kept in found])

    async def templates(self, ctx: Context) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            uri_template=catalog.TEMPLATE, name="image", title="An image that was seen before", mime_type="image/*"
        )
        listed = [] if _lacks(await self._door(ctx), _SHOWS) else [template]
        return types.ListResourceTemplatesResult(resource_templates=listed)

    async def resource(self, ctx: Context, address: str) -> types.ReadResourceResult:
        """The image as the client's model can take it, and beside it which one that is."""
        sha256 = catalog.sha256_of(address)
        if sha256 is None:
            raise _missing(address, "that is no address of an image (write sightline://sha256/ and 64 hex digits)")
        door = _fitting(await self._door(ctx), _client(ctx))
        if no := _lacks(door, _SHOWS):
            raise _missing(address, no)
        seen = await attended(ctx, "reading", api.view.aio(f"sha256:{sha256}", through=door))
        if isinstance(seen, Refused):
            raise _missing(address, seen.message)
        blob = types.BlobResourceContents(
            uri=address,
            mime_type=seen.pixels.mime,
            blob=seen.pixels.base64,
            _meta={"sightline/image": seen.as_dict()},
        )
        return types.ReadResourceResult(contents=[blob])

    async def prompts(self, ctx: Context) -> types.ListPromptsResult:
        door, listed = await self._door(ctx), []
        for name, verb in VERBS.items():
            if _lacks(door, SAME_TOOLS.get(name, "")):
                continue
            arguments = [
                types.PromptArgument(name=argument.name, description=description, required=argument.required)
                for argument, description in list_arguments(name)
            ]
            prompt = types.Prompt(name=name, title=f"{NAME} {name}", description=verb.summary, arguments=arguments)
            listed.append(prompt)
        return types.ListPromptsResult(prompts=listed)

    async def prompt(
        self, ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        """What the command answers, as the user's words. Some hosts let a model take a prompt: it can look and ask,
        and of the user's settings it changes nothing."""
        asked = read_prompt(params.name, params.arguments or {})
        if isinstance(asked, Refusal):
            raise MCPError(code=types.INVALID_PARAMS, message=str(asked))
        door = await self._door(ctx)
        if no := _lacks(door, SAME_TOOLS.get(params.name, "")):
            raise MCPError(code=types.INVALID_PARAMS, message=no)
        if isinstance(asked, Redescribe):
            asked = asked.as_describe()
        if isinstance(asked, Describe):
            ready = await self._ready(ctx, params, door, asked.images, partial(_awaited, asked))
            if isinstance(ready, types.InputRequiredResult):
                return ready
            if isinstance(ready, Refusal):
                raise MCPError(code=types.INTERNAL_ERROR, message=str(ready))
            said = await attended(ctx, params.name, _described(asked, ready))
        else:
            said = await run_in_thread(_said, asked, door)
        message = types.PromptMessage(role="user", content=types.TextContent(text=said))
        return types.GetPromptResult(description=f"{NAME} {params.name}", messages=[message])

    async def _door(self, ctx: Context, roots: tuple[Path, ...] | None = None) -> Door:
        """As the settings are now; in a thread, because files are read for it."""
        headers = dict(ctx.request.headers) if ctx.request is not None else {}
        door = await asyncio.to_thread(self._terms.door, headers)
        return opened(door, roots or self._roots or ()) if self._terms.roots else door

    async def _ready(
        self, ctx: Context, params: Asked, door: Door, paths: Iterable[str], awaited: Callable[[Door], str]
    ) -> Door | types.InputRequiredResult | Refusal:
        """The door with what the client and its user have to add: folders first, and consent if all depends on that.

        `awaited` is whom the user has to agree to. A refusal: the user has agreed, and that could not be written.
        """
        roots = self._wants_roots(ctx, door, paths)
        named = await answers(ctx, params, Needs(roots=roots))
        if isinstance(named, types.InputRequiredResult):
            return named
        if named.roots is not None:
            if not is_modern(ctx):  # a later call need not ask; the client says when they change
                self._roots = named.roots
            door = await self._door(ctx, named.roots)
        if not await self._unasked(ctx, door, awaited):
            return door
        caller = _caller(ctx, door)
        async with self._asking.get(caller) or self._asking.put(caller, asyncio.Lock()):  # calls come in parallel
            provider = await self._unasked(ctx, door, awaited)
            if provider and (*caller, provider) not in self._agreed:
                lasts = self._lasts(caller, door, provider)
                said = await answers(ctx, params, Needs(provider, roots and is_modern(ctx), caller, lasts))
                if isinstance(said, types.InputRequiredResult):
                    return said
                if not said.agreed:
                    self._declined.put((*caller, provider), value=True)
                    return door
                if no := await self._keep(caller, door, provider):
                    return replace(
                        no, what=f"nothing was sent to {provider}: the consent could not be written: {no.what}"
                    )
        return door if door.owner or not provider else replace(door, record=agreed(door.record, provider))

    def _lasts(self, caller: Caller, door: Door, provider: str) -> str:
        if door.owner:
            return _FOR_GOOD.format(provider)
        how_long = "for this client, until Sightline ends" if self._is_told_apart(caller) else "for this one call"
        return _MEANWHILE.format(f"({how_long})", provider)

    async def _keep(self, caller: Caller, door: Door, provider: str) -> Refusal | None:
        """The owner's word counts for good and everywhere. Anybody may have found an open port: theirs counts for
        themselves, and for the one call where the next one may be somebody else's."""
        if door.owner:
            return await asyncio.to_thread(door.record.policy.set_consent, provider, given=True)
        if self._is_told_apart(caller):
            self._agreed.put((*caller, provider), value=True)
        return None

    def _is_told_apart(self, caller: Caller) -> bool:
        scope, _, session = caller
        return bool(session) or scope != self._terms.anybody()

    async def _unasked(self, ctx: Context, door: Door, awaited: Callable[[Door], str]) -> str:
        """Whom the user has to be asked about; empty: nobody, or there is no way to ask."""
        if not self._terms.consents or not can_elicit(ctx):
            return ""
        provider = await run_in_thread(awaited, door)
        return "" if (*_caller(ctx, door), provider) in self._declined else provider

    def _wants_roots(self, ctx: Context, door: Door, paths: Iterable[str]) -> bool:
        if not self._terms.roots or self._roots is not None or not has_roots(ctx):
            return False
        return nowhere() or any(_is_path(each) and outside(each, door.policy) for each in paths)


def _client(ctx: Context) -> Client:
    told = ctx.session.client_params
    return client(told.client_info.name if told else "")


def _fitting(door: Door, limits: Client) -> Door:
    """Images as the client, and whatever model is behind it, takes them."""
    return replace(door, target=Target(NATIVE, encoded_bytes=limits.encoded, edge=limits.edge))


def _tool(entry: Mapping[str, Any]) -> types.Tool:
    name = str(entry["name"])
    asks = any(tool.name == name and tool.asks for tool in toolset.TOOLS)
    hints = types.ToolAnnotations(read_only_hint=True, open_world_hint=asks)
    return types.Tool(
        name=name,
        title=_TOOLS[name],
        description=entry["description"].replace(_ELSEWHERE, ""),
        input_schema=entry["parameters"],
        annotations=hints,
        _meta={"anthropic/maxResultSizeChars": 500_000},  # pixels are no text to be put into a file
    )


def _resource(kept: Kept, limits: Client) -> types.Resource:
    """Kind and length only where it is read as it was found: what is made smaller has others."""
    fits = max(kept.size.width, kept.size.height) <= limits.edge and 4 * -(-kept.bytes // 3) <= limits.encoded
    is_itself = kept.mime in NATIVE and fits
    return types.Resource(
        uri=catalog.uri(kept.sha256),
        name=f"sha256:{kept.sha256[:12]}",
        title=catalog.title(kept),
        mime_type=kept.mime if is_itself else None,
        size=kept.bytes if is_itself else None,
    )


def _result(outcome: toolset.Outcome, limits: Client, offers: Collection[str]) -> types.CallToolResult:
    """Words first, then pixels; nothing structured: hosts drop the content beside it, or send it twice."""
    failed = isinstance(outcome, Refused)
    content: list[types.ContentBlock] = [_block(each) for each in within(outcome.content(), limits, offers)]
    return types.CallToolResult(content=content, is_error=failed)


def _block(block: Json) -> types.TextContent | types.ImageContent:
    match block:
        case {"type": "image", "data": str(data), "mimeType": str(mime)}:
            return types.ImageContent(data=data, mime_type=mime)
        case {"text": str(text)}:
            return types.TextContent(text=text)
    raise AssertionError("a result of ours has words and images")


def _offers(door: Door) -> dict[str, Mapping[str, Any]]:
    """The tools that a host is offered, in their order."""
    entries = {str(entry["name"]): entry for entry in api.tools(through=door)}
    return {name: entries[name] for name in _TOOLS if name in entries}


def _no_such_tool(offers: Iterable[str], name: str) -> Refused:
    refusal = Refusal("not_permitted", f"there is no tool {name!r:.60} here", ", ".join(offers))
    return Refused(refusal)


def _lacks(door: Door, tool: str) -> str:
    """Why what does the same as a tool is not there for a host whose user does not have that tool in the toolset."""
    if not tool or door.toolset & {TOOLSET, tool}:
        return ""
    wider = ",".join([*sorted(door.toolset), tool])
    return f"the setting toolset has no {tool} (the user runs: sightline config set toolset {wider})"


def _paths(given: object) -> tuple[str, ...]:
    listed = given if isinstance(given, list) else [given]
    return tuple(each for each in listed if isinstance(each, str))


def _is_path(text: str) -> bool:
    return isinstance(reference.parse(text), reference.Named)


def _caller(ctx: Context, door: Door) -> Caller:
    """As far as callers can be told apart: by credential, by name, and by session where the era has some."""
    told = ctx.session.client_params
    session = ctx.request.headers.get("mcp-session-id", "") if ctx.request is not None else ""
    return door.scope, told.client_info.name[:_NAME] if told else "", session


def _awaited(asked: Describe, door: Door) -> str:
    crops = dict(asked.crops)
    asking = analysis.check_command(
        door, asked.images, question=asked.question, crops=crops, model=asked.model, save=asked.save
    )
    return analysis.find_unagreed(door, asking)


async def _described(asked: Describe, door: Door) -> str:
    """In a fence: a model reads it as the user's words, and what stands in an image is nobody's words."""
    found = await api.describe.aio(
        asked.images,
        question=asked.question,
        crops=dict(asked.crops),
        model=asked.model,
        save=asked.save,
        through=door,
    )
    return found.message if isinstance(found, Refused) else found.fence


def _said(command: Command, door: Door) -> str:
    """Without the name at the beginning of a line: a proxy of ours would take the message for a command."""
    listed = [f"sha256:{kept.sha256} {one_line(kept.path)}".rstrip() for kept in images_of(door, _SAID)]
    lines = answer(command, door, listed).splitlines()
    return "\n".join(["Sightline:", *(line.removeprefix(f"{NAME} ") for line in lines)])


def _missing(address: str, why: str) -> MCPError:
    return MCPError(code=types.INVALID_PARAMS, message=why, data={"uri": address[:200]})
