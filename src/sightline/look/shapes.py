"""Which codec a body is meant for: by its name, or by the shape of what stands in it."""

from __future__ import annotations

from collections.abc import Mapping

from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.wire import WIRES
from sightline.wire.codec import Codec
from sightline.wire.contents import CONTENTS
from sightline.wire.shape import at, entries

_ALL: tuple[Codec, ...] = (*WIRES, *CONTENTS)
CODECS: Mapping[str, Codec] = {each.name: each for each in _ALL}

# The parts of a message that only one shape has.
_PARTS: Mapping[str, str] = {
    **dict.fromkeys(("tool-call", "tool-result", "file"), "model_message"),
    **dict.fromkeys(("tool_use", "tool_result", "thinking", "redacted_thinking"), "anthropic"),
    **dict.fromkeys(("input_text", "input_image", "input_file", "output_text"), "openai_responses"),
    **dict.fromkeys(("image_url", "input_audio"), "openai_chat"),
}


def codec(name: str | None, body: object) -> Codec | Refusal:
    """The one of this name; without a name, the one whose shape the body has."""
    if name is None and isinstance(body, bytes | bytearray):
        return Refusal(
            "invalid_input", "bytes are not looked into to find their wire", f"name one of {', '.join(CODECS)}"
        )
    found = CODECS.get(recognised(body) if name is None else name)
    if found is None:
        return Refusal("invalid_input", f"there is no wire {name!r:.60}", f"one of {', '.join(CODECS)}")
    return found


def recognised(body: object) -> str:
    """Messages that nothing tells apart are those of Chat Completions."""
    for key, name in (("contents", "gemini"), ("input", "openai_responses"), ("prompt", "acp"), ("content", "mcp")):
        if isinstance(body, dict) and isinstance(body.get(key), list):
            return name
    held = body.get("messages") if isinstance(body, dict) else body
    signs = (sign for _, message in entries(held) if (sign := _sign(message)) is not None)  # type: ignore[arg-type]
    return next(signs, "openai_chat")


def _sign(message: dict[str, Json]) -> str | None:
    if isinstance(message.get("parts"), list):
        return "gemini"
    if isinstance(message.get("type"), str):
        return "openai_responses"
    if "tool_calls" in message or "tool_call_id" in message:
        return "openai_chat"
    for _, part in entries(message.get("content")):
        kind = part.get("type")
        if kind == "image":
            return "anthropic" if isinstance(at(part, "source"), dict) else "model_message"
        if isinstance(kind, str) and kind in _PARTS:
            return _PARTS[kind]
    return None
