"""Pydantic AI: a capability that prepares the images of each model request and brings the tools.

    Agent(model, capabilities=[Sightline()])

The history of a run keeps every message as it was: only the request is changed.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from sightline.api import Session
from sightline.surfaces.adapters import require_hook
from sightline.surfaces.adapters.message_preparation import (
    ChatMessage,
    ChatPart,
    Destination,
    PerceptionTool,
    PreparedMessage,
    image_part,
    list_perception_tools,
    prepare_messages_async,
    read_image_part,
    text_part,
)

with require_hook("pydantic-ai-slim") as require:
    from pydantic_ai import BinaryContent, ImageUrl, Tool
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolReturnPart, UserPromptPart
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.toolsets import FunctionToolset

    require(AbstractCapability, "before_model_request")

_Place = tuple[int, int]  # of a part: the index of its message, and its own
_DATA = "_sightline_data"  # the key of a text that was data of the framework: the text, and the data
_PROVIDERS = {"google": "gemini", "google-gla": "gemini", "google-vertex": "gemini"}


class Sightline(AbstractCapability[Any]):
    """Shows, fits, retires or describes images on their way to the model, as its profile asks; and offers the tools.

    session: the settings and record to use; without one, the user's own.
    tools: whether the agent gets the perception tools.
    """

    def __init__(self, session: Session | None = None, *, tools: bool = True) -> None:
        self._session = session
        self._tools = tools

    def get_toolset(self) -> FunctionToolset[Any] | None:
        return FunctionToolset(sightline_tools(self._session)) if self._tools else None

    async def before_model_request(self, ctx: Any, request_context: ModelRequestContext) -> ModelRequestContext:
        messages = request_context.messages
        destination = _find_destination(request_context.model)
        prepared = await prepare_messages_async(list(_write_parts(messages)), destination, self._session)
        return request_context if prepared is None else replace(request_context, messages=_apply(messages, prepared))


def sightline_tools(session: Session | None = None) -> list[Tool[Any]]:
    """Return the perception tools."""
    return [
        Tool.from_schema(partial(_run, tool), tool.name, tool.description, tool.parameters)
        for tool in list_perception_tools(session)
    ]


async def _run(tool: PerceptionTool, /, **arguments: Any) -> list[Any]:
    return [_read_part(part) for part in await tool.run_async(**arguments)]


def _find_destination(model: Any) -> Destination:
    system = str(getattr(model, "system", ""))
    return Destination(model.model_name, str(getattr(model, "base_url", "") or _PROVIDERS.get(system, system)))


def _write_parts(messages: list[ModelMessage]) -> Iterator[tuple[_Place, ChatMessage]]:
    """Write the parts that may hold images, and the calls that their results belong to."""
    for number, message in enumerate(messages):
        if isinstance(message, ModelResponse):
            yield (number, -1), _write_response(message)
            continue
        for index, part in enumerate(message.parts):
            if isinstance(part, UserPromptPart):
                yield (number, index), {"role": "user", "content": _write_content(part.content)}
            elif isinstance(part, ToolReturnPart):
                content = _write_result(part)
                yield (number, index), {"role": "tool", "tool_call_id": part.tool_call_id, "content": content}


def _write_response(message: ModelResponse) -> ChatMessage:
    calls = [
        {
            "id": call.tool_call_id,
            "type": "function",
            "function": {"name": call.tool_name, "arguments": call.args_as_json_str()},
        }
        for call in message.tool_calls
    ]
    return {"role": "assistant", "content": message.text or "", **({"tool_calls": calls} if calls else {})}


def _write_content(content: Any) -> Any:
    if isinstance(content, str):
        return content
    items = content if isinstance(content, list | tuple) else [content]
    return [_write_item(item) for item in items]


def _write_result(part: ToolReturnPart) -> Any:
    """Return a tool's result. Data in it is written as the text that the model gets, in which an image may be."""
    if isinstance(part.content, str):
        return part.content
    written = zip(part.content_items(), part.content_items(mode="str", wrap_if_error=False), strict=True)
    return [
        {**text_part(text), _DATA: (text, item)} if isinstance(text, str) and text is not item else _write_item(item)
        for item, text in written
    ]


def _write_item(item: Any) -> ChatPart:
    """Return an item of a content as a part. What is neither text nor an image is only held in its place."""
    if isinstance(item, str):
        return text_part(item)
    if isinstance(item, BinaryContent) and item.is_image:
        return image_part(item.data, item.media_type)
    if isinstance(item, ImageUrl):
        return {"type": "image_url", "image_url": {"url": item.url}}
    return {"type": "other", "item": item}


def _read_part(part: ChatPart) -> Any:
    if part.get("type") == "other":
        return part["item"]
    text, data = part.get(_DATA, (None, None))
    if text is not None and text == part.get("text"):
        return data
    image = read_image_part(part)
    if image is not None:
        return BinaryContent(data=base64.b64decode(image[1]), media_type=image[0])
    return ImageUrl(url=part["image_url"]["url"]) if "image_url" in part else part["text"]


def _apply(messages: list[ModelMessage], prepared: list[PreparedMessage[_Place]]) -> list[ModelMessage]:
    """Return copies of the messages that have changed, with added parts after the one before them."""
    changed = {each.original: _read_content(each) for each in prepared if each.original is not None and each.changed}
    added: dict[_Place, list[Any]] = {}
    last: _Place = (0, -1)
    for each in prepared:
        if each.original is not None:
            last = each.original
        elif each.role == "user":
            added.setdefault(last, []).append(UserPromptPart(content=[_read_part(part) for part in each.parts]))
    numbers = {place[0] for place in (*changed, *added)}
    return [
        _rebuild(number, message, changed, added) if number in numbers else message
        for number, message in enumerate(messages)
    ]


def _rebuild(
    number: int, message: ModelMessage, changed: dict[_Place, Any], added: dict[_Place, list[Any]]
) -> ModelMessage:
    if not isinstance(message, ModelRequest):
        return message
    parts: list[Any] = []
    for index, part in enumerate(message.parts):
        place = (number, index)
        parts.append(replace(part, content=changed[place]) if place in changed else part)
        parts += added.get(place, [])
    return replace(message, parts=parts)


def _read_content(prepared: PreparedMessage[_Place]) -> Any:
    items = [_read_part(part) for part in prepared.parts]
    return items[0] if len(items) == 1 and isinstance(items[0], str) else items
