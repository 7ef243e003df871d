"""What a client can list besides tools: images of the record as resources, and /vision-proxy verbs as prompts."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from functools import partial

import mcp_types as types
from mcp.shared.exceptions import MCPError

from sightline import api
from sightline.api import analysis
from sightline.api.failure import Failure
from sightline.api.session import NATIVE_FORMATS, ToolContext
from sightline.api.views import find_images
from sightline.commands import (
    ANSWER_PREFIX,
    NAME,
    VERBS,
    Argument,
    Command,
    Describe,
    Redescribe,
    format_usage,
)
from sightline.commands.execution import answer
from sightline.commands.grammar import parse_arguments, split_words
from sightline.model.fence import to_one_line
from sightline.model.image import ImageSummary
from sightline.model.refusal import Refusal
from sightline.model.scene import TOOLSET_NAME
from sightline.surfaces.mcp import ClientTerms
from sightline.surfaces.mcp.client_questions import Context
from sightline.surfaces.mcp.tool_service import (
    HostLimits,
    ToolService,
    adapt_remedy,
    find_host_limits,
    fit_to_host,
    report_progress,
)
from sightline.vision.background_loop import run_in_thread

URI_TEMPLATE = "sightline://sha256/{sha256}"
_URI = re.compile(r"sightline://sha256/([0-9a-f]{64})/?", re.IGNORECASE | re.ASCII)
_MAX_RESOURCES = 200  # older images are found by the template
_MAX_LISTED = 50  # images in the answer to `list`
_TOOL_OF_RESOURCES = "view_image"
_TOOL_OF_PROMPT: Mapping[str, str] = {"describe": "analyze_image", "redescribe": "analyze_image", "list": "list_images"}
"""The tools with the same function. If the user's toolset lacks them, the resources and prompts are not offered."""


class Catalog:
    """Everything that one server offers: `tools`, resources and prompts."""

    def __init__(self, terms: ClientTerms) -> None:
        self.tools = ToolService(terms)

    async def list_resources(self, ctx: Context, params: object) -> types.ListResourcesResult:
        """List the newest images. An older one can still be read by its sha256."""
        context = await self.tools.open_context(ctx)
        if _explain_missing_tool(context, _TOOL_OF_RESOURCES):
            return types.ListResourcesResult(resources=[])
        images = await asyncio.to_thread(find_images, context, _MAX_RESOURCES)
        return types.ListResourcesResult(resources=[_build_resource(each, find_host_limits(ctx)) for each in images])

    async def list_templates(self, ctx: Context, params: object) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            uri_template=URI_TEMPLATE, name="image", title="An image that was seen before", mime_type="image/*"
        )
        is_missing = _explain_missing_tool(await self.tools.open_context(ctx), _TOOL_OF_RESOURCES)
        return types.ListResourceTemplatesResult(resource_templates=[] if is_missing else [template])

    async def read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        """Return the image in a size that the client's model accepts, with facts about the original."""
        sha256 = parse_uri(params.uri)
        if sha256 is None:
            what = "this is not the address of an image (write sightline://sha256/ and 64 hex digits)"
            raise _build_resource_error(params.uri, what)
        context = fit_to_host(await self.tools.open_context(ctx), find_host_limits(ctx))
        if missing := _explain_missing_tool(context, _TOOL_OF_RESOURCES):
            raise _build_resource_error(params.uri, missing)
        view = await report_progress(
            ctx, "reading", api.view.aio(f"sha256:{sha256}", session=api.Session.from_context(context))
        )
        if isinstance(view, Failure):
            raise _build_resource_error(params.uri, adapt_remedy(view).message)
        blob = types.BlobResourceContents(
            uri=params.uri,
            mime_type=view.pixels.mime,
            blob=view.pixels.base64,
            _meta={"sightline/image": view.as_dict()},
        )
        return types.ReadResourceResult(contents=[blob])

    async def list_prompts(self, ctx: Context, params: object) -> types.ListPromptsResult:
        context = await self.tools.open_context(ctx)
        names = [name for name in VERBS if not _explain_missing_tool(context, _TOOL_OF_PROMPT.get(name, ""))]
        return types.ListPromptsResult(prompts=[_build_prompt(name) for name in names])

    async def get_prompt(
        self, ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        """Return the answer to a command as a message of the user.

        Some hosts let a model use prompts, so a command that would change settings is not executed.
        """
        command = read_prompt(params.name, params.arguments or {})
        if isinstance(command, Refusal):
            raise MCPError(code=types.INVALID_PARAMS, message=str(command))
        context = await self.tools.open_context(ctx)
        if missing := _explain_missing_tool(context, _TOOL_OF_PROMPT.get(params.name, "")):
            raise MCPError(code=types.INVALID_PARAMS, message=missing)
        if isinstance(command, Redescribe):
            command = command.as_describe()
        if isinstance(command, Describe):
            find_provider = partial(_find_missing_consent, command)
            prepared = await self.tools.prepare_context(ctx, params, context, command.images, find_provider)
            if isinstance(prepared, types.InputRequiredResult):
                return prepared
            if isinstance(prepared, Refusal):
                raise MCPError(code=types.INTERNAL_ERROR, message=str(prepared))
            text = await report_progress(ctx, params.name, _describe_images(command, prepared))
        else:
            text = await run_in_thread(_answer_command, command, context)
        message = types.PromptMessage(role="user", content=types.TextContent(text=text))
        return types.GetPromptResult(description=f"{NAME} {params.name}", messages=[message])


def _explain_missing_tool(context: ToolContext, tool: str) -> str:
    """Return why something is not offered because the toolset lacks `tool`; empty if it has the tool."""
    if not tool or context.toolset & {TOOLSET_NAME, tool}:
        return ""
    toolset = ",".join([*sorted(context.toolset), tool])
    what, remedy = "the user's setting `toolset` does not allow this", f"run: sightline config set toolset {toolset}"
    return str(Refusal("not_permitted", what, remedy).for_model())


# Resources


def format_uri(sha256: str) -> str:
    return URI_TEMPLATE.format(sha256=sha256)


def parse_uri(uri: str) -> str | None:
    """Return the sha256 in the URI of an image, or None if it is not such a URI."""
    match = _URI.fullmatch(uri)
    return match[1].lower() if match else None


def format_title(image: ImageSummary) -> str:
    """Return the title of an image for people to read: its file name or hash, its type and its size."""
    name = to_one_line(re.split(r"[/\\]", image.path)[-1]) or f"sha256:{image.sha256[:12]}"
    return f"{name} ({image.mime}, {image.size})"


def _build_resource(image: ImageSummary, limits: HostLimits) -> types.Resource:
    """Return an image as a resource. Its type and size are given only if it is served unchanged."""
    fits = max(image.size.width, image.size.height) <= limits.edge and 4 * -(-image.bytes // 3) <= limits.encoded
    is_unchanged = image.mime in NATIVE_FORMATS and fits
    return types.Resource(
        uri=format_uri(image.sha256),
        name=f"sha256:{image.sha256[:12]}",
        title=format_title(image),
        mime_type=image.mime if is_unchanged else None,
        size=image.bytes if is_unchanged else None,
    )


def _build_resource_error(uri: str, message: str) -> MCPError:
    return MCPError(code=types.INVALID_PARAMS, message=message, data={"uri": uri[:200]})


# Prompts


def list_arguments(verb: str) -> list[tuple[Argument, str]]:
    """Return the arguments of a prompt, each with its description. Prompts have no flags."""
    return [
        (argument, argument.help + ("; separate several by spaces" if argument.repeatable else ""))
        for argument in VERBS[verb].arguments
        if argument.kind != "flag"
    ]


def read_prompt(verb: str, values: Mapping[str, str]) -> Command | Refusal:
    """Return the command for a prompt with these arguments."""
    if verb not in VERBS:
        return Refusal("not_found", f"there is no prompt {verb!r:.60}", f"use one of {', '.join(VERBS)}")
    arguments = [argument for argument, _ in list_arguments(verb)]
    if unknown := sorted(values.keys() - {argument.name for argument in arguments}):
        return Refusal("invalid_input", f"{verb} has no argument {unknown[0]!r:.60}", f"usage: {format_usage(verb)}")
    parsed: dict[str, object] = {}
    for argument in arguments:
        text = values.get(argument.name, "").strip()
        if not text and argument.required:
            return Refusal("invalid_input", f"{verb} needs {argument.name}", f"usage: {format_usage(verb)}")
        words = split_words(text) if argument.repeatable else text
        if isinstance(words, Refusal):
            return words
        parsed[argument.name] = words or None
    return parse_arguments(verb, parsed)


def _build_prompt(verb: str) -> types.Prompt:
    arguments = [
        types.PromptArgument(name=argument.name, description=description, required=argument.required)
        for argument, description in list_arguments(verb)
    ]
    return types.Prompt(name=verb, title=f"{NAME} {verb}", description=VERBS[verb].summary, arguments=arguments)


def _find_missing_consent(command: Describe, context: ToolContext) -> str:
    question = analysis.check_command(context, command.images, **command.options)
    return analysis.find_missing_consent(context, question)


async def _describe_images(command: Describe, context: ToolContext) -> str:
    """Return a description in a fence, so that the model doesn't take text in an image for its user's words."""
    result = await run_in_thread(analysis.describe, context, command.images, **command.options)
    return (
        f"{ANSWER_PREFIX} {adapt_remedy(result).message}"
        if isinstance(result, Failure)
        else f"{ANSWER_PREFIX}\n{result.fence}"
    )


def _answer_command(command: Command, context: ToolContext) -> str:
    images = [f"sha256:{each.sha256} {to_one_line(each.path)}".rstrip() for each in find_images(context, _MAX_LISTED)]
    return answer(command, context, images)
