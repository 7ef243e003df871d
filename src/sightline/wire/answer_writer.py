"""Write answers in the format of a wire: Sightline's own answers, and complete answers converted to streams.

Some upstreams don't stream, but a client that asked for a stream can't read anything else. `convert_to_stream` keeps
all of the answer: text, reasoning, calls, usage, stop reason, and unknown fields. It checks the shapes that it relies
on, and returns None for others, so that the client then gets the upstream's own bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256

import orjson

from sightline.model.profile import WireName
from sightline.model.scene import Json
from sightline.model.value import value_class
from sightline.wire.json_tree import Block, parse_bounded_json
from sightline.wire.openai_responses import write_error as write_responses_error
from sightline.wire.sse import DONE, write_event

Events = Iterator[tuple[str, Block]]
"""The names and data of events."""


def convert_to_stream(wire: WireName, body: bytes | bytearray) -> bytes | None:
    """Return the events of an answer; None if this isn't a known answer of the wire."""
    try:
        return _STREAMERS[wire](parse_bounded_json(body))
    except (orjson.JSONDecodeError, orjson.JSONEncodeError, _UnknownShapeError):
        return None


class _UnknownShapeError(Exception):
    """The answer has an unknown shape."""


def _require_object(value: Json) -> Block:
    if isinstance(value, dict):
        return value
    raise _UnknownShapeError


def _require_objects(value: Json) -> list[Block]:
    if isinstance(value, list):
        return [_require_object(each) for each in value]
    raise _UnknownShapeError


def _require_text(value: Json) -> str:
    if isinstance(value, str):
        return value
    raise _UnknownShapeError


# Chat Completions


def _stream_chat(value: Json) -> bytes:
    answer = _require_object(value)
    if answer.get("error") and "choices" not in answer:
        return write_event("", answer)
    return b"".join(write_event("", chunk) for chunk in _split_chat(answer)) + DONE


def _split_chat(answer: Block) -> Iterator[Block]:
    """Yield chunks. The usage is in the last one that has a choice, where clients read it whether they asked or not."""
    choices = _require_objects(answer.get("choices"))
    usage = {"usage": answer["usage"]} if "usage" in answer else {}
    head = {key: value for key, value in answer.items() if key not in ("choices", "usage")}
    head["object"] = "chat.completion.chunk"
    for number, choice in enumerate(choices, 1):
        delta = _build_delta(_require_object(choice.get("message")))
        rest = {"index": number - 1, **{key: value for key, value in choice.items() if key != "message"}}
        yield {**head, "choices": [{**rest, "delta": delta, "finish_reason": None}]}
        end: Block = {"index": rest["index"], "delta": {}, "finish_reason": choice.get("finish_reason")}
        yield {**head, "choices": [end], **(usage if number == len(choices) else {})}
    if not choices:
        yield {**head, "choices": [], **usage}


def _build_delta(message: Block) -> Block:
    calls = message.get("tool_calls")
    if not calls:
        return {key: value for key, value in message.items() if key != "tool_calls"}
    return {**message, "tool_calls": [{"index": index, **call} for index, call in enumerate(_require_objects(calls))]}


# Messages

_END_KEYS = ("stop_reason", "stop_sequence", "stop_details", "container")  # known only at the end


def _stream_message(value: Json) -> bytes:
    answer = _require_object(value)
    if answer.get("type") == "error":
        return write_event("error", answer)
    if answer.get("type") != "message":
        raise _UnknownShapeError
    return b"".join(write_event(name, {"type": name, **data}) for name, data in _split_message(answer))


def _split_message(answer: Block) -> Events:
    end = {"stop_reason": None, "stop_sequence": None, **{key: answer[key] for key in _END_KEYS if key in answer}}
    yield "message_start", {"message": {**answer, "content": [], **dict.fromkeys(end)}}
    for index, block in enumerate(_require_objects(answer.get("content"))):
        start, deltas = _split_block(block)
        yield "content_block_start", {"index": index, "content_block": start}
        for delta in deltas:
            yield "content_block_delta", {"index": index, "delta": delta}
        yield "content_block_stop", {"index": index}
    yield "message_delta", {"delta": end, "usage": answer.get("usage") or {}}
    yield "message_stop", {}


def _split_block(block: Block) -> tuple[Block, list[Block]]:
    """Return a block as it starts, and its deltas. A block of any other type starts complete."""
    match block:
        case {"type": "text", "text": str(text)}:
            citations = _require_objects(block.get("citations") or [])
            empty: Block = {"citations": []} if citations else {}
            deltas: list[Block] = [{"type": "citations_delta", "citation": citation} for citation in citations]
            return {**block, "text": "", **empty}, [*deltas, {"type": "text_delta", "text": text}]
        case {"type": "thinking", "thinking": str(text)}:
            signature = _require_text(block.get("signature", ""))
            signature_deltas: list[Block] = [{"type": "signature_delta", "signature": signature}] if signature else []
            return {**block, "thinking": "", "signature": ""}, [
                {"type": "thinking_delta", "thinking": text},
                *signature_deltas,
            ]
        case {"input": dict() as arguments}:
            return {**block, "input": {}}, [
                {"type": "input_json_delta", "partial_json": orjson.dumps(arguments).decode()}
            ]
        case _:
            return block, []


# Responses

_END_STATUSES = ("completed", "incomplete", "failed")


def _stream_response(value: Json) -> bytes:
    answer = _require_object(value)
    if "output" not in answer and (error := answer.get("error")):
        message = error["message"] if isinstance(error, dict) and "message" in error else error
        return write_responses_error(_require_text(message))
    if answer.get("status") not in _END_STATUSES:
        raise _UnknownShapeError
    return b"".join(write_event(name, data) for name, data in _split_response(answer))


def _split_response(answer: Block) -> Events:
    for number, (name, data) in enumerate(_list_response_events(answer)):
        yield name, {"type": name, "sequence_number": number, **data}


def _list_response_events(answer: Block) -> Events:
    running = {**answer, "status": "in_progress", "output": [], "usage": None, "error": None}
    yield "response.created", {"response": running}
    yield "response.in_progress", {"response": running}
    for index, item in enumerate(_require_objects(answer.get("output"))):
        yield from _split_item(item, {"item_id": item.get("id", f"item_{index}"), "output_index": index})
    yield f"response.{answer['status']}", {"response": answer}


def _split_item(item: Block, position: Block) -> Events:
    running: Block = {"status": "in_progress"} if "status" in item else {}
    empty, events = _split_item_content(item, position)
    yield "response.output_item.added", {"output_index": position["output_index"], "item": {**item, **empty, **running}}
    yield from events
    yield "response.output_item.done", {"output_index": position["output_index"], "item": item}


def _split_item_content(item: Block, position: Block) -> tuple[Block, Events]:
    """Return the fields of an item that are empty when it is added, and the events that fill them."""
    match item:
        case {"type": "message", "content": list() as content}:
            parts = _require_objects(content)
            return {"content": []}, _split_parts("response.content_part", "content_index", parts, position)
        case {"type": "reasoning", "summary": list() as summary}:
            parts = _require_objects(summary)
            return {"summary": []}, _split_parts("response.reasoning_summary_part", "summary_index", parts, position)
        case {"type": "function_call", "arguments": str(arguments)}:
            done = {"arguments": arguments, "name": item.get("name", "")}
            return {"arguments": ""}, _split_text("response.function_call_arguments", arguments, position, done)
        case {"type": "custom_tool_call", "input": str(arguments)}:
            return {"input": ""}, _split_text(
                "response.custom_tool_call_input", arguments, position, {"input": arguments}
            )
        case _:
            return {}, iter(())


def _split_text(name: str, text: str, position: Block, done: Block) -> Events:
    yield f"{name}.delta", {**position, "delta": text}
    yield f"{name}.done", {**position, **done}


_PART_EVENTS: Mapping[str, tuple[str, str]] = {  # by the type of a part: the prefix of its events, and the text's key
    "output_text": ("response.output_text", "text"),
    "refusal": ("response.refusal", "refusal"),
    "summary_text": ("response.reasoning_summary_text", "text"),
}


def _split_parts(name: str, index_key: str, parts: list[Block], position: Block) -> Events:
    for index, part in enumerate(parts):
        part_position: Block = {**position, index_key: index}
        prefix, key = _PART_EVENTS.get(_require_text(part.get("type")), ("", ""))
        if not prefix:
            yield f"{name}.added", {**part_position, "part": part}
        else:
            text = _require_text(part.get(key))
            empty: Block = {"annotations": []} if "annotations" in part else {}
            extra: Block = {"logprobs": part.get("logprobs") or []} if prefix == "response.output_text" else {}
            yield f"{name}.added", {**part_position, "part": {**part, key: "", **empty}}
            yield f"{prefix}.delta", {**part_position, "delta": text, **extra}
            yield from _split_annotations(part, part_position)
            yield f"{prefix}.done", {**part_position, key: text, **extra}
        yield f"{name}.done", {**part_position, "part": part}


def _split_annotations(part: Block, part_position: Block) -> Events:
    for index, annotation in enumerate(_require_objects(part.get("annotations") or [])):
        yield (
            "response.output_text.annotation.added",
            {**part_position, "annotation_index": index, "annotation": annotation},
        )


# Gemini

_ANSWER_KEYS = {"candidates", "promptFeedback", "usageMetadata", "error"}


def _stream_gemini(value: Json) -> bytes:
    """Write one chunk. A list is a stream already, in the other of the wire's two forms."""
    chunks = _require_objects(value if isinstance(value, list) else [value])
    if not chunks or not all(chunk.keys() & _ANSWER_KEYS for chunk in chunks):
        raise _UnknownShapeError
    return b"".join(write_event("", chunk, b"\r\n") for chunk in chunks)


_STREAMERS: Mapping[WireName, Callable[[Json], bytes]] = {
    "openai_chat": _stream_chat,
    "anthropic": _stream_message,
    "openai_responses": _stream_response,
    "gemini": _stream_gemini,
}


# Sightline's own answers, such as those to a command

JSON, EVENTS = b"application/json", b"text/event-stream"


@value_class
class OwnAnswer:
    """A text that a client gets instead of a model's answer."""

    text: str
    model: str

    @property
    def id(self) -> str:
        return sha256(self.text.encode("utf-8", "replace")).hexdigest()[:24]


def write_answer(wire: WireName, answer: OwnAnswer, *, stream: bool, as_list: bool = False) -> tuple[bytes, bytes]:
    """Return the content type and the body. `as_list`: Gemini's stream as one JSON list, which some clients ask for."""
    build, build_events = _BUILDERS[wire]
    if not stream:
        return JSON, orjson.dumps(build(answer))
    if as_list:
        return JSON, orjson.dumps([data for _, data in build_events(answer)])
    events = [write_event(name, data) for name, data in build_events(answer)]
    return EVENTS, b"".join(events) + (DONE if wire == "openai_chat" else b"")


_CHAT_USAGE: Json = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


def _build_chat(answer: OwnAnswer) -> Block:
    message: Json = {"role": "assistant", "content": answer.text, "refusal": None}
    choice: Json = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    return {**_build_chat_head(answer, "chat.completion"), "choices": [choice], "usage": _CHAT_USAGE}


def _build_chat_events(answer: OwnAnswer) -> Events:
    head = _build_chat_head(answer, "chat.completion.chunk")
    deltas: list[tuple[Block, Json]] = [({"role": "assistant", "content": answer.text}, None), ({}, "stop")]
    for delta, end in deltas:
        yield "", {**head, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": end}]}
    yield "", {**head, "choices": [], "usage": _CHAT_USAGE}


def _build_chat_head(answer: OwnAnswer, kind: str) -> Block:
    return {"id": f"chatcmpl-{answer.id}", "object": kind, "created": 0, "model": answer.model}


def _build_message(answer: OwnAnswer) -> Block:
    return {
        "id": f"msg_{answer.id}",
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": [{"type": "text", "text": answer.text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }


def _build_message_events(answer: OwnAnswer) -> Events:
    for name, data in _split_message(_build_message(answer)):
        usage: Block = {"usage": {"output_tokens": 0}} if name == "message_delta" else {}
        yield name, {"type": name, **data, **usage}


def _build_response(answer: OwnAnswer) -> Block:
    item: Json = {
        "id": f"msg_{answer.id}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": answer.text, "annotations": []}],
    }
    usage: Json = {
        "input_tokens": 0,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 0,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 0,
    }
    return {
        "id": f"resp_{answer.id}",
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": answer.model,
        "output": [item],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage,
    }


def _build_gemini(answer: OwnAnswer) -> Block:
    content: Json = {"role": "model", "parts": [{"text": answer.text}]}
    usage: Json = {"promptTokenCount": 0, "candidatesTokenCount": 0, "totalTokenCount": 0}
    candidate: Json = {"content": content, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": answer.model, "responseId": answer.id}


_BUILDERS: Mapping[WireName, tuple[Callable[[OwnAnswer], Block], Callable[[OwnAnswer], Events]]] = {
    "openai_chat": (_build_chat, _build_chat_events),
    "anthropic": (_build_message, _build_message_events),
    "openai_responses": (_build_response, lambda answer: _split_response(_build_response(answer))),
    "gemini": (_build_gemini, lambda answer: iter([("", _build_gemini(answer))])),
}
