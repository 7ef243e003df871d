"""smolagents: a model that prepares the images of each call of another model, and the tools.

    ToolCallingAgent(tools=sightline_tools(), model=SightlineModel(OpenAIModel("gpt-5.4")))

A smolagents agent stores tool results as text, all those of a step in one. The tools here return the text of a view,
with a stamp that only this record can make; on its way to the model, the image is put beside it again. So no text of
another tool can show a stored image. The agent's memory is not changed.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hmac import compare_digest
from io import BytesIO
from typing import Any

from sightline.api import Session, recall
from sightline.surfaces.adapters import require_hook
from sightline.surfaces.adapters.message_preparation import (
    ChatPart,
    Destination,
    PerceptionTool,
    PreparedMessage,
    image_part,
    list_perception_tools,
    prepare_messages,
    read_image_part,
    text_part,
)

with require_hook("smolagents") as require:
    from smolagents import Model, Tool
    from smolagents.models import ChatMessage, MessageRole

    require(Model, "generate")

_VIEW = '{"ok": true,'  # how the text of a view begins
_STAMP = "stamp"  # the key in the text of a view that shows that a tool of ours has written it
_STAMP_LENGTH = 16  # hexadecimal digits
_DECODER = json.JSONDecoder()


class SightlineModel(Model):
    """A model whose images are shown, fitted, retired or described on their way to it, as its profile asks.

    model: the model to call.
    session: the settings and record to use; without one, the user's own.
    """

    def __init__(self, model: Model, session: Session | None = None) -> None:
        if not isinstance(model, Model):
            raise TypeError("model must be a model of smolagents, for example OpenAIModel(…)")
        super().__init__(model_id=model.model_id)
        self._model = model
        self._session = session

    def __getattr__(self, name: str) -> Any:
        if name == "generate_stream" and hasattr(self._model, name):
            return self._generate_stream
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._model, name)

    def generate(self, messages: list[ChatMessage], *args: Any, **kwargs: Any) -> ChatMessage:
        return self._model.generate(self._prepare(messages), *args, **kwargs)

    def _generate_stream(self, messages: list[ChatMessage], *args: Any, **kwargs: Any) -> Iterator[Any]:
        yield from self._model.generate_stream(self._prepare(messages), *args, **kwargs)

    def _prepare(self, messages: Sequence[ChatMessage | dict[str, Any]]) -> list[ChatMessage]:
        listed = [ChatMessage.from_dict(each) if isinstance(each, dict) else each for each in messages]
        shown = [self._show_views(message) for message in listed]
        written = [(message, _write_message(message)) for message in shown]
        destination = Destination(self._model.model_id or "", str(_find_address(self._model)))
        prepared = prepare_messages(written, destination, self._session)
        return shown if prepared is None else [_build_message(each) for each in prepared]

    def _show_views(self, message: ChatMessage) -> ChatMessage:
        """Return a tool's response with the images of the views in its text."""
        if message.role != MessageRole.TOOL_RESPONSE or not isinstance(message.content, list):
            return message
        parts: list[ChatPart] = []
        for part in message.content:
            parts.append(part)
            for result in _find_views(part.get("text", "")):
                is_ours = compare_digest(
                    str(result.pop(_STAMP, "")).encode(), _make_stamp(result, self._session).encode()
                )
                if is_ours and (view := recall(result, session=self._session)):
                    parts.append(_read_part(image_part(view.pixels.data, view.pixels.mime)))
        return replace(message, content=parts) if len(parts) > len(message.content) else message


def sightline_tools(session: Session | None = None) -> list[Tool]:
    """Return the perception tools. Give them to an agent whose model is a `SightlineModel`."""
    return [_FrameworkTool(tool) for tool in list_perception_tools(session)]


class _FrameworkTool(Tool):
    output_type = "string"
    skip_forward_signature_validation = True  # its arguments are those of its JSON Schema

    def __init__(self, tool: PerceptionTool) -> None:
        self.name, self.description = tool.name, tool.description
        required = tool.parameters.get("required", [])
        self.inputs = {
            name: {
                "type": schema.get("type", "any"),
                "description": schema.get("description", name),
                **({} if name in required else {"nullable": True}),
            }
            for name, schema in tool.parameters["properties"].items()
        }
        super().__init__()
        self._tool = tool

    def forward(self, /, **arguments: Any) -> str:
        given = {name: value for name, value in arguments.items() if value is not None}
        texts = (part["text"] for part in self._tool.run(**given) if part["type"] == "text")
        return "\n".join(_stamp(text, self._tool.session) for text in texts)


def _stamp(text: str, session: Session) -> str:
    """Return the text of a view with its stamp; another text is returned as it is."""
    result = next(_find_views(text), None) if text.startswith(_VIEW) else None
    return text if result is None else json.dumps({**result, _STAMP: _make_stamp(result, session)}, ensure_ascii=False)


def _make_stamp(result: dict[str, Any], session: Session | None) -> str:
    record = (session or Session()).tool_context.record
    return record.compute_scope(f"a view: {json.dumps(result, sort_keys=True)}")[:_STAMP_LENGTH]


def _find_views(text: str) -> Iterator[dict[str, Any]]:
    """Return the results of views in a text."""
    start = text.find(_VIEW)
    while start >= 0:
        try:
            found, end = _DECODER.raw_decode(text, start)
        except ValueError:
            found, end = {}, start + 1
        if "shown" in found:
            yield found
        start = text.find(_VIEW, end)


def _find_address(model: Any) -> str:
    return getattr(model, "client_kwargs", {}).get("base_url") or getattr(model, "api_base", None) or ""


def _write_message(message: ChatMessage) -> dict[str, Any]:
    role = "assistant" if message.role in (MessageRole.ASSISTANT, MessageRole.TOOL_CALL) else "user"
    is_system = message.role == MessageRole.SYSTEM
    content = message.content
    parts = content if isinstance(content, str | None) else [_write_part(part) for part in content]
    return {"role": "system" if is_system else role, "content": parts}


def _write_part(part: ChatPart) -> ChatPart:
    if part.get("type") != "image":
        return part
    out = BytesIO()
    part["image"].save(out, "PNG")
    return image_part(out.getvalue(), "image/png")


def _read_part(part: ChatPart) -> ChatPart:
    """Return a part as smolagents has it: an image as one of Pillow."""
    image = read_image_part(part)
    if image is None:
        return part
    from PIL import Image

    return {"type": "image", "image": Image.open(BytesIO(base64.b64decode(image[1])))}


def _build_message(prepared: PreparedMessage[ChatMessage]) -> ChatMessage:
    if prepared.original is not None and not prepared.changed:
        return prepared.original
    parts = [_read_part(part) for part in prepared.parts]
    if all(part["type"] == "text" for part in parts):  # a model that takes only text reads only the first part
        parts = [text_part("\n".join(part["text"] for part in parts))]
    if prepared.original is None:
        return ChatMessage(role=MessageRole(prepared.role), content=parts)
    return replace(prepared.original, content=parts)
