"""The OpenAI Agents SDK: a filter that prepares the images of each model call, and the tools.

    Runner.run(agent, task, run_config=RunConfig(call_model_input_filter=prepare_input()))

The SDK leaves images of tools out of Chat Completions; here they are moved to where the model sees them. What the SDK
keeps of a run is not changed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from sightline.api import Session
from sightline.api.body_preparation import hoist
from sightline.surfaces.adapters import require_hook
from sightline.surfaces.adapters.message_preparation import (
    Destination,
    PerceptionTool,
    list_perception_tools,
    prepare_body,
    read_image_part,
)
from sightline.vision.background_loop import run_in_thread

with require_hook("openai-agents"):
    from agents import FunctionTool, Model, MultiProvider, OpenAIResponsesModel, ToolOutputImage, ToolOutputText
    from agents.run import CallModelData, ModelInputData

_InputFilter = Callable[["CallModelData[Any]"], Awaitable["ModelInputData"]]


def prepare_input(session: Session | None = None) -> _InputFilter:
    """Return a `call_model_input_filter` for a `RunConfig`.

    session: the settings and record to use; without one, the user's own.
    """

    async def filter_input(call: CallModelData[Any]) -> ModelInputData:
        model, data = _resolve_model(call.agent.model), call.model_data
        items = await run_in_thread(_prepare_items, data.input, _find_destination(model), session)
        # Only the Responses API takes images in the results of tools.
        keeps = isinstance(model, OpenAIResponsesModel)
        return ModelInputData(
            input=items if keeps else hoist(items, wire="openai_responses"), instructions=data.instructions
        )

    return filter_input


def sightline_tools(session: Session | None = None) -> list[FunctionTool]:
    """Return the perception tools as function tools."""
    return [
        FunctionTool(
            name=tool.name,
            description=tool.description,
            params_json_schema=tool.parameters,
            on_invoke_tool=_make_call(tool),
            strict_json_schema=False,
        )
        for tool in list_perception_tools(session)
    ]


def _make_call(tool: PerceptionTool) -> Callable[[Any, str], Awaitable[Any]]:
    async def invoke(_context: Any, arguments: str) -> Any:
        parts = await tool.run_json(arguments)
        return [
            ToolOutputText(text=part["text"])
            if read_image_part(part) is None
            else ToolOutputImage(image_url=part["image_url"]["url"])
            for part in parts
        ]

    return invoke


def _prepare_items(items: list[Any], destination: Destination, session: Session | None) -> list[Any]:
    prepared: list[Any] = prepare_body(items, "openai_responses", destination, session).body
    return prepared


def _resolve_model(model: str | Model | None) -> str | Model | None:
    """Return the model that a name means, as the SDK finds it: with its default client and API."""
    if isinstance(model, Model):
        return model
    try:
        return MultiProvider().get_model(model)
    except Exception:  # noqa: BLE001, the SDK does the same, and says what is missing
        return model


def _find_destination(model: str | Model | None) -> Destination:
    """Return where a model is: its name, and the address of its client, or else the provider in its name."""
    if not isinstance(model, Model):
        return Destination(model or "")
    name = str(getattr(model, "model", ""))
    if (client := getattr(model, "_client", None)) is not None:
        return Destination(name, str(client.base_url))
    provider, slash, rest = name.partition("/")  # as LiteLLM names its models
    address = getattr(model, "base_url", None) or (provider if slash else "")
    return Destination(rest if slash else name, str(address))
