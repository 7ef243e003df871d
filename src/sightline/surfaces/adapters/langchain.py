"""LangChain and LangGraph: a middleware that prepares the images of each model call, and the tools.

    create_agent(model, tools=[*sightline_tools()], middleware=[SightlineMiddleware()])

The agent's state keeps every message as it was: only what the model is called with is changed.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from sightline.api import Session
from sightline.surfaces.adapters import require_hook
from sightline.surfaces.adapters.message_preparation import (
    ChatMessage,
    Destination,
    PreparedMessage,
    image_part,
    list_perception_tools,
    prepare_messages,
    prepare_messages_async,
)

with require_hook("langchain") as require:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
    from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
    from langchain_core.tools import BaseTool, StructuredTool

    require(AgentMiddleware, "awrap_model_call")

# Where the models of LangChain keep their addresses, besides the client of OpenAI's.
_ADDRESSES = (
    "openai_api_base",
    "anthropic_api_url",
    "groq_api_base",
    "xai_api_base",
    "api_base",
    "endpoint",
    "base_url",
)
_ROLES = {"human": "user", "ai": "assistant", "tool": "tool", "system": "system"}


class SightlineMiddleware(AgentMiddleware):
    """Shows, fits, retires or describes images on their way to the model, as its profile asks.

    session: the settings and record to use; without one, the user's own.
    """

    def __init__(self, session: Session | None = None) -> None:
        super().__init__()
        self._session = session

    def wrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]) -> ModelResponse:
        written = [(message, _write_message(message)) for message in request.messages]
        done = prepare_messages(written, _find_destination(request.model), self._session)
        return handler(_apply(request, done))

    async def awrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[ModelResponse]]
    ) -> ModelResponse:
        written = [(message, _write_message(message)) for message in request.messages]
        done = await prepare_messages_async(written, _find_destination(request.model), self._session)
        return await handler(_apply(request, done))


def sightline_tools(session: Session | None = None) -> list[BaseTool]:
    """Return the perception tools. Their results hold images as content blocks, which the middleware moves."""
    return [
        StructuredTool.from_function(
            func=tool.run,
            coroutine=tool.run_async,
            name=tool.name,
            description=tool.description,
            args_schema=tool.parameters,
        )
        for tool in list_perception_tools(session)
    ]


def _find_destination(model: Any) -> Destination:
    """Return where a chat model sends its requests. Its address, if it has one of its own, says more than its name.

    A model that only the configuration of a run names reports nothing.
    """
    report = getattr(model, "_get_ls_params", dict)  # what every integration reports to tracers, documented for it
    known: dict[str, Any] = report()
    holders = [(getattr(model, "root_client", None), "base_url"), *((model, name) for name in _ADDRESSES)]
    address = next((value for holder, name in holders if (value := getattr(holder, name, None))), "")
    names = {"google_genai": "gemini", "google_vertexai": "gemini"}
    provider = known.get("ls_provider", "")
    return Destination(str(known.get("ls_model_name", "")), str(address or names.get(provider, provider)))


def _write_message(message: BaseMessage) -> ChatMessage:
    kind = message.type.removesuffix("MessageChunk").lower()  # of a stream: AIMessageChunk
    written: ChatMessage = {"role": _ROLES.get(kind, "user"), "content": _write_content(message.content)}
    if isinstance(message, ToolMessage):
        written["tool_call_id"] = message.tool_call_id
    if isinstance(message, AIMessage) and message.tool_calls:
        written["tool_calls"] = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": json.dumps(call["args"])},
            }
            for call in message.tool_calls
        ]
    return written


def _write_content(content: str | list[Any]) -> str | list[Any]:
    return content if isinstance(content, str) else [_write_part(part) for part in content]


def _write_part(part: Any) -> Any:
    """Return a content block with its image where Chat Completions has it. Other blocks are returned as they are."""
    match part:
        case str():
            return {"type": "text", "text": part}
        case {"type": "image", "base64": str(data)} | {"type": "image", "source_type": "base64", "data": str(data)}:
            return image_part(data, part.get("mime_type") or "image/png")
        case {"type": "image", "source": {"type": "base64", "data": str(data), "media_type": str(mime)}}:
            return image_part(data, mime)
        case {"type": "image", "url": str(url)}:
            return {"type": "image_url", "image_url": {"url": url}}
        case {"type": "image_url", "image_url": str(url)}:
            return {"type": "image_url", "image_url": {"url": url}}
        case _:
            return part


def _apply(request: ModelRequest, prepared: Sequence[PreparedMessage[BaseMessage]] | None) -> ModelRequest:
    return request if prepared is None else request.override(messages=[_build_message(each) for each in prepared])


def _build_message(prepared: PreparedMessage[BaseMessage]) -> BaseMessage:
    if prepared.original is None:
        return (AIMessage if prepared.role == "assistant" else HumanMessage)(content=prepared.content)
    return prepared.original.model_copy(update={"content": prepared.content}) if prepared.changed else prepared.original
