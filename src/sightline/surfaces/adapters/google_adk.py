"""Google's Agent Development Kit: a callback that prepares the images of each model request, and the tools.

    LlmAgent(model=…, tools=sightline_tools(), before_model_callback=prepare_request())

The session's events keep every content as it was: only the request is changed.
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from typing import Any

from sightline.api import Session
from sightline.surfaces.adapters import require_hook
from sightline.surfaces.adapters.message_preparation import (
    Destination,
    PerceptionTool,
    list_perception_tools,
    prepare_body,
    read_image_part,
)
from sightline.vision.background_loop import run_in_thread

with require_hook("google-adk"):
    from google.adk.models.llm_request import LlmRequest
    from google.adk.tools.base_tool import BaseTool
    from google.genai import types


def prepare_request(session: Session | None = None) -> Callable[..., Awaitable[None]]:
    """Return a `before_model_callback` for an agent.

    session: the settings and record to use; without one, the user's own.
    """

    async def prepare_contents(callback_context: Any, llm_request: LlmRequest) -> None:
        written = [each.model_dump(mode="json", by_alias=True, exclude_none=True) for each in llm_request.contents]
        destination = _find_destination(llm_request.model or "", callback_context)
        done = await run_in_thread(prepare_body, written, "gemini", destination, session)
        if done.changed:
            originals = {id(each): content for each, content in zip(written, llm_request.contents, strict=True)}
            llm_request.contents = [originals.get(id(each)) or types.Content.model_validate(each) for each in done.body]

    return prepare_contents


def sightline_tools(session: Session | None = None) -> list[BaseTool]:
    """Return the perception tools."""
    return [_FrameworkTool(tool) for tool in list_perception_tools(session)]


class _FrameworkTool(BaseTool):
    def __init__(self, tool: PerceptionTool) -> None:
        super().__init__(name=tool.name, description=tool.description)
        self._tool = tool

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=self._tool.parameters
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> dict[str, Any]:
        """Return the text of a result, and its image as a part, which the framework moves out of it."""
        result: dict[str, Any] = {}
        for part in await self._tool.run_async(**args):
            if (image := read_image_part(part)) is not None:
                result["image"] = types.Part.from_bytes(data=base64.b64decode(image[1]), mime_type=image[0])
            else:
                result["result"] = part["text"]
        return result


def _find_destination(name: str, context: Any) -> Destination:
    """Return where a model is, by its own address or its name: `PROVIDER/MODEL` of LiteLLM, otherwise of Gemini."""
    model = getattr(getattr(getattr(context, "_invocation_context", None), "agent", None), "model", None)
    arguments = getattr(model, "_additional_args", {})  # of LiteLLM
    address = arguments.get("api_base") or arguments.get("base_url") or getattr(model, "base_url", None)
    provider, slash, rest = name.partition("/")
    return Destination(rest, str(address or provider)) if slash else Destination(name, str(address or "gemini"))
