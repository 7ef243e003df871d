"""No tool may be called any more: how each wire asks for words alone, with the list of tools as it is."""

from __future__ import annotations

from sightline.model.edit import Edit, Insert, Replace
from sightline.model.profile import WireName
from sightline.model.scene import Json
from sightline.wire.loop.leg import mapping


def no_choice(wire: WireName, tree: Json) -> Edit:
    """The last leg of an answer is one that answers."""
    body = mapping(tree if isinstance(tree, dict) else None)
    if wire == "gemini":
        key = "tool_config" if "tool_config" in body else "toolConfig"
        config = mapping(body.get(key))
        inner = "function_calling_config" if "function_calling_config" in config else "functionCallingConfig"
        return _set(body, key, {**config, inner: {"mode": "NONE"}})
    return _set(body, "tool_choice", {"type": "none"} if wire == "anthropic" else "none")


def _set(body: dict[str, Json], key: str, value: Json) -> Edit:
    return (Replace if key in body else Insert)((key,), value)
