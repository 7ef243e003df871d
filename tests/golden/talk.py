"""Who speaks in a request, who calls and who answers, read without the codecs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sightline.model.labels import BRIDGE_TEXT, is_label
from sightline.wire import Wire

Line = tuple[str, str]
"""A role or the kind of an item, and the id of a call."""


def lines(body: Any, wire: Wire) -> list[Line]:
    """A request, line by line: "call" and "result" with their ids, else the one who speaks."""
    return [line for message in body[wire.messages_key] for line in _lines(message)]


def lines_but_moved(body: Any, wire: Wire) -> list[Line]:
    """Without the messages that hold nothing but images moved out of results, and what leads them."""
    return [line for message in body[wire.messages_key] for line in _lines(message) if not _is_moved(message)]


def _is_moved(message: Any) -> bool:
    if message.get("role") == "assistant":
        return bool(message.get("content") == BRIDGE_TEXT)
    parts = message.get("content", message.get("parts"))
    if message.get("role") != "user" or not isinstance(parts, list):
        return False
    texts = [part["text"] for part in parts if isinstance(part, dict) and "text" in part]
    return bool(texts) and all(is_label(text) for text in texts) and len(list(_lines(message))) == 1


def _lines(message: Any) -> Iterator[Line]:
    role = message.get("role") or message.get("type", "")
    if message.get("type") in ("function_call", "custom_tool_call"):
        yield "call", message["call_id"]
    elif message.get("type") in ("function_call_output", "custom_tool_call_output"):
        yield "result", message["call_id"]
    elif role == "tool":
        yield "result", message["tool_call_id"]
    else:
        yield role, ""
    yield from (("call", call["id"]) for call in message.get("tool_calls") or [])
    parts = message.get("content", message.get("parts"))
    for part in parts if isinstance(parts, list) else []:
        yield from _parts(part)


def _parts(part: Any) -> Iterator[Line]:
    match part:
        case {"type": "tool_use", "id": str(name)}:
            yield "call", name
        case {"type": "tool_result", "tool_use_id": str(name)}:
            yield "result", name
        case {"functionCall": made} | {"function_call": made}:
            yield "call", made.get("id", made["name"])
        case {"functionResponse": made} | {"function_response": made}:
            yield "result", made.get("id", made["name"])


def faults(body: Any, wire: Wire) -> Iterator[str]:
    """What a strict provider would refuse: a call without a result, or somebody who speaks in between."""
    open_calls: list[str] = []
    for message in body[wire.messages_key]:
        for kind, call in _lines(message):
            if kind == "call":
                open_calls.append(call)
            elif kind == "result" and call in open_calls:
                open_calls.remove(call)
            elif kind == "result":
                yield f"the result of {call} answers nobody"
            elif open_calls and not _answers(message):
                yield f"{kind} speaks before {open_calls} are answered"
                open_calls.clear()
    if open_calls:
        yield f"nobody answers {open_calls}"


def _answers(message: Any) -> bool:
    """Does somebody speak only to hand over results, or to make a further call?"""
    return any(kind in ("result", "call") for kind, _ in _lines(message)) or message.get("type") == "reasoning"
