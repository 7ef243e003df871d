"""Answers tool calls of MCP clients with the library's own tools, within the limits of each host."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Collection, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import mcp_types as types

from sightline.api.failure import Failure
from sightline.api.session import NATIVE_FORMATS, ToolContext
from sightline.api.tool_registry import TOOLS, ToolResult, call_tool, find_missing_consent, list_tools
from sightline.model.image import ImageTarget
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.sources import PathReference, parse_file_url, parse_reference
from sightline.sources.files import is_outside
from sightline.surfaces.mcp import ClientTerms
from sightline.surfaces.mcp.client_questions import (
    CallParams,
    ClientQuestions,
    ConsentQuestions,
    Context,
    FindProvider,
    ask_client,
    is_modern,
)
from sightline.vision.background_loop import run_in_thread
from sightline.vision.concurrency import FairSemaphore

T = TypeVar("T")
_MAX_CALLS = 48  # at a time, of all clients
_MAX_ROOTS = 64
_PROGRESS_SECONDS = 1.0
_TOOL_TITLES: Mapping[str, str] = {
    "view_image": "See an image",
    "analyze_image": "Ask about images",
    "list_images": "List images",
    "vision_analyze": "Ask about an image or a PDF",
    "video_analyze": "Ask about a video",
}  # hosts have tools of their own to read and edit text
_READ_FILE = ": call read_file for that"  # in a description, for hosts that have our read_file
_REMEDIES: Mapping[str, str] = {"call read_file": "read it as text with a tool of your own"}
"""Remedies that name a tool which MCP hosts are not offered, and what to tell their models instead."""


class ToolService:
    def __init__(self, terms: ClientTerms) -> None:
        self._terms = terms
        self._consents = ConsentQuestions(terms)
        self._calls = FairSemaphore(_MAX_CALLS)
        self._roots: tuple[Path, ...] | None = None  # None: not asked yet

    async def forget_roots(self, ctx: Context, params: object) -> None:
        """Ask for the client's folders again when they are needed: they have changed."""
        self._roots = None

    async def list_tools(self, ctx: Context, params: object) -> types.ListToolsResult:
        offers = _list_offers(await self.open_context(ctx))
        return types.ListToolsResult(tools=[_build_tool(entry) for entry in offers.values()])

    async def call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        context, limits = await self.open_context(ctx), find_host_limits(ctx)
        arguments: Mapping[str, Any] = params.arguments or {}
        offers = _list_offers(context)
        tool = next((each for each in TOOLS if each.name == params.name and each.name in offers), None)
        if tool is None:
            return _build_result(_refuse_unknown_tool(offers, params.name), limits, offers)
        find_provider = partial(find_missing_consent, name=params.name, arguments=arguments)
        paths = _list_texts(arguments.get(tool.main_argument))
        prepared = await self.prepare_context(ctx, params, context, paths, find_provider if tool.asks_model else None)
        if isinstance(prepared, types.InputRequiredResult):
            return prepared
        if isinstance(prepared, Refusal):
            return types.CallToolResult(content=[types.TextContent(text=str(prepared.for_model()))], is_error=True)
        async with self._calls.take_turn(context.scope):
            call = run_in_thread(call_tool, fit_to_host(prepared, limits), params.name, arguments)
            return _build_result(await report_progress(ctx, params.name, call), limits, offers)

    async def open_context(self, ctx: Context, roots: tuple[Path, ...] | None = None) -> ToolContext:
        """Return what the client may use by the current settings. Reads files, so it runs in a thread."""
        headers = dict(ctx.request.headers) if ctx.request is not None else {}
        context = await asyncio.to_thread(self._terms.open_context, headers)
        return _add_client_roots(context, roots or self._roots or ()) if self._terms.reads_roots else context

    async def prepare_context(
        self,
        ctx: Context,
        params: CallParams,
        context: ToolContext,
        paths: Iterable[str],
        find_provider: FindProvider | None,
    ) -> ToolContext | types.InputRequiredResult | Refusal:
        """Return the context with what only the client and its user can add: folders first, then consent.

        `find_provider` is None for calls that ask no model. A refusal means that the user has agreed and that this
        could not be written.
        """
        wants_roots = self._wants_roots(ctx, context, paths)
        if wants_roots:
            answers = await ask_client(ctx, params, ClientQuestions(wants_roots=True))
            if isinstance(answers, types.InputRequiredResult):
                return answers
            if answers.roots is not None:
                roots = tuple(resolve_roots(answers.roots))
                if not is_modern(ctx):  # no later call has to ask, because the client says when they change
                    self._roots = roots
                context = await self.open_context(ctx, roots)
        if find_provider is None:
            return context
        return await self._consents.ask(ctx, params, context, find_provider, with_roots=wants_roots)

    def _wants_roots(self, ctx: Context, context: ToolContext, paths: Iterable[str]) -> bool:
        declared = ctx.session.client_capabilities
        if not self._terms.reads_roots or self._roots is not None or declared is None or declared.roots is None:
            return False
        if not (is_modern(ctx) or ctx.session.can_send_request):
            return False
        names = [each for each in paths if isinstance(parse_reference(each), PathReference)]
        return _is_started_nowhere() or any(is_outside(each, context.policy) for each in names)


async def report_progress(ctx: Context, what: str, work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine, and tell the client every second how long it takes."""
    task, started = asyncio.ensure_future(work), time.monotonic()
    try:
        while not (await asyncio.wait({task}, timeout=_PROGRESS_SECONDS))[0]:
            seconds = time.monotonic() - started
            await ctx.session.report_progress(round(seconds, 1), message=f"{what}: {seconds:.0f} s")
    except BaseException:
        task.cancel()
        raise
    return task.result()


def _build_tool(entry: Mapping[str, Any]) -> types.Tool:
    name = str(entry["name"])
    asks_model = any(tool.name == name and tool.asks_model for tool in TOOLS)
    return types.Tool(
        name=name,
        title=_TOOL_TITLES[name],
        description=entry["description"].replace(_READ_FILE, ""),
        input_schema=entry["parameters"],
        annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=asks_model),
        _meta={"anthropic/maxResultSizeChars": 500_000},  # or Claude Code would save images to a file as text
    )


def _list_offers(context: ToolContext) -> dict[str, Mapping[str, Any]]:
    """Return the tools that a host is offered, in their order."""
    entries = {str(entry["name"]): entry for entry in list_tools(context)}
    return {name: entries[name] for name in _TOOL_TITLES if name in entries}


def _refuse_unknown_tool(offers: Collection[str], name: str) -> Failure:
    remedy = f"call one of {', '.join(offers)}" if offers else "no tool is offered by the user's setting `toolset`"
    return Failure(Refusal("not_permitted", f"there is no tool {name!r:.60} here", remedy))


def _build_result(result: ToolResult, limits: HostLimits, offers: Collection[str]) -> types.CallToolResult:
    """Return text first, then images. Nothing structured: hosts drop the content beside it, or send both."""
    if isinstance(result, Failure):
        result = adapt_remedy(result)
    content: list[types.ContentBlock] = [_build_block(each) for each in fit_result(result.content(), limits, offers)]
    return types.CallToolResult(content=content, is_error=isinstance(result, Failure))


def adapt_remedy(failure: Failure) -> Failure:
    """Return a failure whose remedy a model can follow with the tools that MCP hosts are offered."""
    refusal = failure.refusal.for_model()
    return replace(failure, refusal=replace(refusal, remedy=_REMEDIES.get(refusal.remedy, refusal.remedy)))


def _build_block(block: Json) -> types.TextContent | types.ImageContent:
    match block:
        case {"type": "image", "data": str(data), "mimeType": str(mime)}:
            return types.ImageContent(data=data, mime_type=mime)
        case {"text": str(text)}:
            return types.TextContent(text=text)
    raise AssertionError("results have only text and images")


def _list_texts(value: object) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    return tuple(each for each in values if isinstance(each, str))


# The folders of a client


def _add_client_roots(context: ToolContext, roots: Iterable[Path]) -> ToolContext:
    """Return the context with the client's folders.

    Hosts start a server in any folder. So a whole disk or home folder is not taken for the working folder, unless the
    settings allow it.
    """
    allowed = tuple(_resolve_links(folder) for folder in (context.settings.fs_reach if context.settings else ()))
    usable = [folder for folder in context.policy.roots if folder in allowed or not _is_too_wide(folder)]
    named = [folder for folder in roots if not _is_too_wide(folder)]
    working = usable[:1] if usable[:1] == list(context.policy.roots[:1]) else []
    folders = tuple(dict.fromkeys((*working, *named, *usable)))
    listed = context.listed_folders
    if listed is not None:
        listed = (*(each for each in listed if not _is_too_wide(each)), *named)
    return replace(context, policy=replace(context.policy, roots=folders), listed_folders=listed)


def _is_started_nowhere() -> bool:
    """Return whether the host has started this process in a folder that is no project's."""
    try:
        return _is_too_wide(Path.cwd())
    except OSError:  # the folder was removed
        return True


def resolve_roots(uris: Iterable[str]) -> Iterator[Path]:
    """Yield the folders that `file:` addresses name, if they exist."""
    for uri, _ in zip(uris, range(_MAX_ROOTS), strict=False):
        try:
            path = parse_file_url(uri)
            folder = _resolve_links(Path(path)) if path else None
            if folder is not None and folder.is_dir():
                yield folder
        except (OSError, ValueError):
            continue


def _is_too_wide(folder: Path) -> bool:
    """Return whether a folder is a whole disk, a home folder, or contains home folders."""
    home = _resolve_links(Path(os.path.expanduser("~")))  # noqa: PTH111, unlike Path.home() it never raises
    real = _resolve_links(folder)
    return real == Path(real.anchor) or home.is_relative_to(real)


def _resolve_links(path: Path) -> Path:
    return Path(os.path.realpath(path))


# The limits of a host


@dataclass(frozen=True, slots=True)
class HostLimits:
    """What one host accepts in a tool result. The defaults are what every known provider accepts."""

    images: int = 15  # 0: the host would show images to its model as text
    tokens: int = 25_000
    image_tokens: int = 1_600  # that an image counts
    edge: int = 2_000  # pixels: Anthropic's limit in conversations with more than 20 images
    encoded: int = 5_000_000  # characters of base64: the lowest limit of a vision provider (Bedrock, Vertex)


DEFAULT_LIMITS = HostLimits()
_LIMITS_BY_NAME: Mapping[str, HostLimits] = {
    # MAX_MCP_OUTPUT_TOKENS is 25,000 and an image counts as 1,600; anything above is cut or recompressed (2.1.312).
    "claude-code": DEFAULT_LIMITS,
    # Base64 is counted as text (google-gemini/gemini-cli#17923).
    "gemini-cli": HostLimits(encoded=524_288),
    # The model gets the result as JSON text, with the base64 of the images in it (3.0.65).
    "@cline/core": HostLimits(images=0),
}
_CHARACTERS_PER_TOKEN = 4  # as hosts count
_CUT = " [cut off here]"
_NO_IMAGES = "[this host does not pass images in tool results to its model: {}]"
_ASK_INSTEAD: Mapping[str, str] = {
    "analyze_image": "ask analyze_image about it, by its path or its sha256",
    "vision_analyze": "ask vision_analyze about it, by its path",
}  # the best first
_NOTHING_OFFERED = "the user's setting `toolset` includes no tool that answers in words"


def find_host_limits(ctx: Context) -> HostLimits:
    known = ctx.session.client_params
    return find_limits(known.client_info.name if known else "")


def find_limits(name: str) -> HostLimits:
    """Return the limits of a host by the beginning of its name, to which some append a name of the user's."""
    return next((known for start, known in _LIMITS_BY_NAME.items() if name.startswith(start)), DEFAULT_LIMITS)


def fit_to_host(context: ToolContext, limits: HostLimits) -> ToolContext:
    """Return the context with images in a size that the host and its model accept."""
    return replace(context, target=ImageTarget(NATIVE_FORMATS, encoded_bytes=limits.encoded, edge=limits.edge))


def fit_result(content: list[Json], limits: HostLimits, offers: Collection[str] = tuple(_ASK_INSTEAD)) -> list[Json]:
    """Return as much of a result as the host accepts: text gets up to half of it, images the rest.

    A note says what was left out. `offers`: the names of the tools that the host is offered.
    """
    room = limits.tokens * _CHARACTERS_PER_TOKEN // 2
    texts: list[Json] = []
    for text in (_get_text(block) for block in content if not _is_image(block)):
        texts.append({"type": "text", "text": text if len(text) <= room else text[: max(0, room - len(_CUT))] + _CUT})
        room = max(0, room - len(text))
    tokens = limits.tokens - sum(len(_get_text(block)) for block in texts) // _CHARACTERS_PER_TOKEN
    images = [block for block in content if _is_image(block)]
    shown = images[: max(0, min(limits.images, tokens // limits.image_tokens))]
    if len(shown) == len(images):
        return [*texts, *shown]
    note = f"[{len(images) - len(shown)} more images did not fit into this result]"
    if not limits.images:
        note = _NO_IMAGES.format(
            next((hint for tool, hint in _ASK_INSTEAD.items() if tool in offers), _NOTHING_OFFERED)
        )
    return [*texts, {"type": "text", "text": note}, *shown]


def _is_image(block: Json) -> bool:
    return isinstance(block, dict) and block.get("type") == "image"


def _get_text(block: Json) -> str:
    return str(block.get("text", "")) if isinstance(block, dict) else ""
