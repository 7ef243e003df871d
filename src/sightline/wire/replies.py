"""Sightline's own errors and answers in each wire's shape, as a body or inside a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256

import orjson

from sightline.model.profile import WireName
from sightline.model.scene import Json
from sightline.wire.sse import DONE, write_event

Fault = Callable[[str], Json]
"""A wire's own shape for an error with this message."""


def anthropic(kind: str) -> Fault:
    return lambda message: {"type": "error", "error": {"type": kind, "message": message}}


def openai(kind: str) -> Fault:
    # The message comes first: some agents show the raw body.
    return lambda message: {"error": {"message": message, "type": kind, "param": None, "code": "sightline"}}


def google(code: int, status: str) -> Fault:
    return lambda message: {"error": {"code": code, "message": message, "status": status}}


def anthropic_event(message: str) -> bytes:
    return write_event("error", anthropic("api_error")(message))


def openai_event(message: str) -> bytes:
    return write_event("", openai("server_error")(message))


def responses_event(message: str) -> bytes:
    """Said twice: OpenAI's own SDK raises whatever has an `error`, and others read only the end of a response."""
    said = {"code": "server_error", "message": message, "param": None}
    error: Json = {"type": "error", **said, "sequence_number": 0, "error": {"type": "server_error", **said}}
    failed: Json = {
        "id": "resp_sightline",
        "object": "response",
        "created_at": 0,
        "status": "failed",
        "error": {"code": "server_error", "message": message},
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": "",
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": None,
    }
    end: Json = {"type": "response.failed", "sequence_number": 1, "response": failed}
    return write_event("error", error) + write_event("response.failed", end)


def google_event(message: str) -> bytes:
    """Bare, as Google itself breaks into its streams: one of its SDKs takes it for an error only without `data:`.

    Another counts braces to find its end, so those of the message are escaped.
    """
    before, _, after = orjson.dumps(google(503, "UNAVAILABLE")("")).partition(b'""')
    quoted = orjson.dumps(message).replace(b"{", rb"\u007b").replace(b"}", rb"\u007d")
    return before + quoted + after + b"\n\n"


JSON, EVENTS = b"application/json", b"text/event-stream"


@dataclass(frozen=True, slots=True)
class Saying:
    """Words for a client that asked a model."""

    text: str
    model: str

    @property
    def id(self) -> str:
        return sha256(self.text.encode("utf-8", "replace")).hexdigest()[:24]


def said(wire: WireName, saying: Saying, *, stream: bool, listed: bool = False) -> tuple[bytes, bytes]:
    """The content type and the body. `listed`: Gemini's stream as one JSON list, as some clients ask for it."""
    whole, events = _SHAPES[wire]
    if not stream:
        return JSON, orjson.dumps(whole(saying))
    if listed:
        return JSON, orjson.dumps([data for _, data in events(saying)])
    parts = [write_event(name, data) for name, data in events(saying)]
    return EVENTS, b"".join(parts) + (DONE if wire == "openai_chat" else b"")


Events = Iterator[tuple[str, Json]]


def _chat(saying: Saying) -> Json:
    message: Json = {"role": "assistant", "content": saying.text, "refusal": None}
    choice: Json = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    return {**_chat_head(saying, "chat.completion"), "choices": [choice], "usage": _chat_usage()}


def _chat_events(saying: Saying) -> Events:
    for delta, end in (({"role": "assistant", "content": saying.text}, None), ({}, "stop")):
        choice: Json = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": end}  # type: ignore[dict-item]
        yield "", {**_chat_head(saying, "chat.completion.chunk"), "choices": [choice]}
    yield "", {**_chat_head(saying, "chat.completion.chunk"), "choices": [], "usage": _chat_usage()}


def _chat_head(saying: Saying, kind: str) -> dict[str, Json]:
    return {"id": f"chatcmpl-{saying.id}", "object": kind, "created": 0, "model": saying.model}


def _chat_usage() -> Json:
    return {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


def _message(saying: Saying) -> dict[str, Json]:
    return {
        "id": f"msg_{saying.id}",
        "type": "message",
        "role": "assistant",
        "model": saying.model,
        "content": [{"type": "text", "text": saying.text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }


def _message_events(saying: Saying) -> Events:
    begun: Json = {**_message(saying), "content": [], "stop_reason": None}
    yield "message_start", {"type": "message_start", "message": begun}
    empty: Json = {"type": "text", "text": ""}
    yield "content_block_start", {"type": "content_block_start", "index": 0, "content_block": empty}
    words: Json = {"type": "text_delta", "text": saying.text}
    yield "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": words}
    yield "content_block_stop", {"type": "content_block_stop", "index": 0}
    end: Json = {"stop_reason": "end_turn", "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": end, "usage": {"output_tokens": 0}}
    yield "message_stop", {"type": "message_stop"}


def _response(saying: Saying) -> dict[str, Json]:
    usage: Json = {
        "input_tokens": 0,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 0,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 0,
    }
    return {
        "id": f"resp_{saying.id}",
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": saying.model,
        "output": [_item(saying)],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage,
    }


def _item(saying: Saying) -> dict[str, Json]:
    return {
        "id": f"msg_{saying.id}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [_part(saying.text)],
    }


def _part(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": []}


def _response_events(saying: Saying) -> Events:
    item = _item(saying)
    at: dict[str, Json] = {"item_id": f"msg_{saying.id}", "output_index": 0, "content_index": 0}
    running: Json = {**_response(saying), "status": "in_progress", "output": [], "usage": None}
    empty: Json = {**item, "status": "in_progress", "content": []}
    steps: list[tuple[str, dict[str, Json]]] = [
        ("response.created", {"response": running}),
        ("response.in_progress", {"response": running}),
        ("response.output_item.added", {"output_index": 0, "item": empty}),
        ("response.content_part.added", {**at, "part": _part("")}),
        ("response.output_text.delta", {**at, "delta": saying.text, "logprobs": []}),
        ("response.output_text.done", {**at, "text": saying.text, "logprobs": []}),
        ("response.content_part.done", {**at, "part": _part(saying.text)}),
        ("response.output_item.done", {"output_index": 0, "item": item}),
        ("response.completed", {"response": _response(saying)}),
    ]
    for number, (name, said) in enumerate(steps):
        yield name, {"type": name, "sequence_number": number, **said}


def _gemini(saying: Saying) -> Json:
    content: Json = {"role": "model", "parts": [{"text": saying.text}]}
    usage: Json = {"promptTokenCount": 0, "candidatesTokenCount": 0, "totalTokenCount": 0}
    candidate: Json = {"content": content, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": saying.model, "responseId": saying.id}


def _gemini_events(saying: Saying) -> Events:
    yield "", _gemini(saying)


_SHAPES: Mapping[WireName, tuple[Callable[[Saying], Json], Callable[[Saying], Events]]] = {
    "openai_chat": (_chat, _chat_events),
    "anthropic": (_message, _message_events),
    "openai_responses": (_response, _response_events),
    "gemini": (_gemini, _gemini_events),
}
