"""Offer the tools of the registry to a model, in the shape that its API takes, and run the calls that it makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sightline.api.failure import INTERNAL_ERROR, Failure, never_raise
from sightline.api.session import ToolContext
from sightline.api.tool_registry import TOOLS, Tool, ToolResult
from sightline.api.tool_results import Wire, check_wire
from sightline.model.refusal import Refusal
from sightline.model.scene import TOOLSET_NAME, Json


def list_tools(context: ToolContext) -> list[dict[str, Json]]:
    """Return the tools that the setting `toolset` offers, by their own names or by that of the whole set."""
    network, render = context.network is not None, context.renderers is not None
    return [tool.as_dict(network=network, render=render) for tool in _list_offered(context).values()]


# How each API takes a tool.
_FORMATS: Mapping[Wire, Callable[[dict[str, Json]], dict[str, Json]]] = {
    "anthropic": lambda tool: {**_describe(tool), "input_schema": tool["parameters"]},
    "gemini": lambda tool: {**_describe(tool), "parametersJsonSchema": tool["parameters"]},
    "mcp": lambda tool: {
        **_describe(tool),
        "inputSchema": tool["parameters"],
        "annotations": {"readOnlyHint": tool["name"] != "edit_file"},
    },
    **dict.fromkeys(
        ("openai", "openai_chat"),
        lambda tool: {"type": "function", "function": {**_describe(tool), "parameters": tool["parameters"]}},
    ),
    "openai_responses": lambda tool: {
        "type": "function",
        **_describe(tool),
        "parameters": tool["parameters"],
        "strict": False,
    },
}


def _describe(tool: dict[str, Json]) -> dict[str, Json]:
    return {"name": tool["name"], "description": tool["description"]}


def format_tools(tools: list[dict[str, Json]], wire: Wire) -> list[dict[str, Json]]:
    """Return tools in the shape that an API takes. For Gemini, that is one tool that declares all the functions."""
    written = [_FORMATS[check_wire(wire)](tool) for tool in tools]
    return [{"functionDeclarations": [*written]}] if wire == "gemini" else written


@never_raise(Failure(INTERNAL_ERROR))
def call_tool(context: ToolContext, name: object, arguments: object) -> ToolResult:
    """Run a model's call. Only a tool that is offered can be called."""
    tool = _list_offered(context).get(name) if isinstance(name, str) else None
    if tool is None:
        return Failure(
            Refusal("not_permitted", f"there is no tool {name!r:.60}", "call one of the tools that are offered")
        )
    given = _check_arguments(tool, arguments)
    if isinstance(given, Refusal):
        named = arguments if isinstance(arguments, Mapping) else {}
        return tool.refuse_arguments(context, named, given) if tool.refuse_arguments else tool.refuse(given)
    return never_raise(tool.refuse(INTERNAL_ERROR))(tool.run)(context, **given)


def find_missing_consent(context: ToolContext, name: str, arguments: object) -> str:
    """Return the provider that needs only the user's consent to answer; empty: none does, or the call fails anyway."""
    tool = _list_offered(context).get(name)
    given = None if tool is None else _check_arguments(tool, arguments)
    if tool is None or tool.find_missing_consent is None or not isinstance(given, dict):
        return ""
    return never_raise("")(tool.find_missing_consent)(context, **given)


def _check_arguments(tool: Tool, arguments: object) -> dict[str, object] | Refusal:
    if not isinstance(arguments, Mapping):
        return Refusal("invalid_input", "the arguments must be an object", "follow the schema of the tool")
    given = {str(argument): value for argument, value in arguments.items() if value is not None}
    remedy = "follow the schema of the tool"
    if unknown := given.keys() - tool.properties.keys():
        return Refusal("invalid_input", f"{tool.name} has no argument {min(unknown)!r:.60}", remedy)
    if missing := set(tool.required) - given.keys():
        return Refusal("invalid_input", f"the argument {min(missing)!r} of {tool.name} is missing", remedy)
    return given


def _list_offered(context: ToolContext) -> dict[str, Tool]:
    named = (
        tool
        for tool in TOOLS
        if context.toolset & {TOOLSET_NAME, tool.name} and (context.can_edit or "write" not in tool.capabilities)
    )
    return {tool.name: tool for tool in named if not tool.asks_model or _may_ask(context, tool)}


def _may_ask(context: ToolContext, tool: Tool) -> bool:
    """Return whether the user lets models ask about images."""
    settings = context.settings
    if settings is None or tool.is_always_offered:
        return settings is not None
    return settings.mode != "off" and settings.tool != "off"
