"""A whole answer as the stream that was asked for: some upstreams do not stream, and clients read nothing else.

All of it is kept: words, thoughts, calls, usage, the reason of its end, and fields that nobody here knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import orjson

from sightline.model.profile import WireName
from sightline.model.scene import Json
from sightline.wire.jsonsize import parse_bounded
from sightline.wire.replies import responses_event
from sightline.wire.sse import DONE, write_event

Object = dict[str, Json]
Events = Iterator[tuple[str, Object]]


def unrolled(wire: WireName, body: bytes | bytearray) -> bytes | None:
    """The events of an answer; None when it is none that this wire knows."""
    try:
        whole = parse_bounded(body)
        return _WIRES[wire](whole)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError, _Unknown):
        return None


class _Unknown(Exception):
    """A shape of which the stream is not known."""


def _object(value: Json) -> Object:
    if isinstance(value, dict):
        return value
    raise _Unknown


def _objects(value: Json) -> list[Object]:
    if isinstance(value, list):
        return [_object(each) for each in value]
    raise _Unknown


def _text(value: Json) -> str:
    if isinstance(value, str):
        return value
    raise _Unknown


def _is_error(whole: Object) -> bool:
    return bool(whole.get("error"))


# Chat Completions


def _chat(value: Json) -> bytes:
    whole = _object(value)
    if _is_error(whole) and "choices" not in whole:
        return write_event("", whole)
    return b"".join(write_event("", chunk) for chunk in _chat_chunks(whole)) + DONE


def _chat_chunks(whole: Object) -> Iterator[Object]:
    """The usage comes with the last end, where it is read by clients that asked for it and those that did not."""
    choices = _objects(whole.get("choices"))
    usage = {"usage": whole["usage"]} if "usage" in whole else {}
    head = {key: each for key, each in whole.items() if key not in ("choices", "usage")}
    head["object"] = "chat.completion.chunk"
    for number, choice in enumerate(choices, 1):
        delta = _delta(_object(choice.get("message")))
        rest = {"index": number - 1, **{key: each for key, each in choice.items() if key != "message"}}
        yield {**head, "choices": [{**rest, "delta": delta, "finish_reason": None}]}
        end: Object = {"index": rest["index"], "delta": {}, "finish_reason": choice.get("finish_reason")}
        yield {**head, "choices": [end], **(usage if number == len(choices) else {})}
    if not choices:
        yield {**head, "choices": [], **usage}


def _delta(message: Object) -> Object:
    calls = message.get("tool_calls")
    if not calls:
        return {key: each for key, each in message.items() if key != "tool_calls"}
    return {**message, "tool_calls": [{"index": number, **call} for number, call in enumerate(_objects(calls))]}


# Messages


def _messages(value: Json) -> bytes:
    whole = _object(value)
    if whole.get("type") == "error":
        return write_event("error", whole)
    if whole.get("type") != "message":
        raise _Unknown
    return b"".join(write_event(name, {"type": name, **data}) for name, data in _message_events(whole))


_ENDED = ("stop_reason", "stop_sequence", "stop_details", "container")  # known only at the end


def _message_events(whole: Object) -> Events:
    end = {"stop_reason": None, "stop_sequence": None, **{key: whole[key] for key in _ENDED if key in whole}}
    yield "message_start", {"message": {**whole, "content": [], **dict.fromkeys(end)}}
    for number, block in enumerate(_objects(whole.get("content"))):
        begun, deltas = _block(block)
        yield "content_block_start", {"index": number, "content_block": begun}
        for delta in deltas:
            yield "content_block_delta", {"index": number, "delta": delta}
        yield "content_block_stop", {"index": number}
    yield "message_delta", {"delta": end, "usage": whole.get("usage") or {}}
    yield "message_stop", {}


def _block(block: Object) -> tuple[Object, list[Object]]:
    """How a block begins, and what then comes; one of a kind that does not grow begins whole."""
    match block:
        case {"type": "text", "text": str(text)}:
            cited = block.get("citations")
            quotes: list[Object] = [{"type": "citations_delta", "citation": each} for each in _objects(cited or [])]
            empty: Object = {"citations": []} if cited else {}
            return {**block, "text": "", **empty}, [*quotes, {"type": "text_delta", "text": text}]
        case {"type": "thinking", "thinking": str(text)}:
            signature = _text(block.get("signature", ""))
            sealed: list[Object] = [{"type": "signature_delta", "signature": signature}] if signature else []
            return {**block, "thinking": "", "signature": ""}, [{"type": "thinking_delta", "thinking": text}, *sealed]
        case {"input": dict() as given}:
            return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": orjson.dumps(given).decode()}]
        case _:
            return block, []


# Responses

_ENDS = ("completed", "incomplete", "failed")


def _responses(value: Json) -> bytes:
    whole = _object(value)
    if "output" not in whole and _is_error(whole):
        error = whole["error"]
        return responses_event(_text(error["message"] if isinstance(error, dict) and "message" in error else error))
    if whole.get("status") not in _ENDS:
        raise _Unknown
    numbered = enumerate(_response_events(whole))
    return b"".join(write_event(name, {"type": name, "sequence_number": n, **data}) for n, (name, data) in numbered)


def _response_events(whole: Object) -> Events:
    running = {**whole, "status": "in_progress", "output": [], "usage": None, "error": None}
    yield "response.created", {"response": running}
    yield "response.in_progress", {"response": running}
    for number, item in enumerate(_objects(whole.get("output"))):
        yield from _item(item, {"item_id": item.get("id", f"item_{number}"), "output_index": number})
    yield f"response.{whole['status']}", {"response": whole}


def _item(item: Object, at: Object) -> Events:
    running: Object = {"status": "in_progress"} if "status" in item else {}
    begun, inside = _grown(item, at)
    yield "response.output_item.added", {"output_index": at["output_index"], "item": {**item, **begun, **running}}
    yield from inside
    yield "response.output_item.done", {"output_index": at["output_index"], "item": item}


def _grown(item: Object, at: Object) -> tuple[Object, Events]:
    """What of an item is empty at first, and the events that fill it."""
    match item:
        case {"type": "message", "content": list() as parts}:
            return {"content": []}, _parts("response.content_part", "content_index", _objects(parts), at)
        case {"type": "reasoning", "summary": list() as parts}:
            return {"summary": []}, _parts("response.reasoning_summary_part", "summary_index", _objects(parts), at)
        case {"type": "function_call", "arguments": str(given)}:
            done = {"arguments": given, "name": item.get("name", "")}
            return {"arguments": ""}, _filled("response.function_call_arguments", given, at, done)
        case {"type": "custom_tool_call", "input": str(given)}:
            return {"input": ""}, _filled("response.custom_tool_call_input", given, at, {"input": given})
        case _:
            return {}, iter(())


def _filled(name: str, words: str, at: Object, done: Object) -> Events:
    yield f"{name}.delta", {**at, "delta": words}
    yield f"{name}.done", {**at, **done}


_PARTS: Mapping[str, tuple[str, str]] = {  # of a part's type: the name of its events, and where its words stand
    "output_text": ("response.output_text", "text"),
    "refusal": ("response.refusal", "refusal"),
    "summary_text": ("response.reasoning_summary_text", "text"),
}


def _parts(name: str, index: str, parts: list[Object], at: Object) -> Events:
    for number, part in enumerate(parts):
        place: Object = {**at, index: number}
        events, key = _PARTS.get(_text(part.get("type")), ("", ""))
        if not events:
            yield f"{name}.added", {**place, "part": part}
        else:
            words = _text(part.get(key))
            noted: Object = {"annotations": []} if "annotations" in part else {}
            odds: Object = {"logprobs": part.get("logprobs") or []} if events == "response.output_text" else {}
            yield f"{name}.added", {**place, "part": {**part, key: "", **noted}}
            yield f"{events}.delta", {**place, "delta": words, **odds}
            yield from _notes(part, place)
            yield f"{events}.done", {**place, key: words, **odds}
        yield f"{name}.done", {**place, "part": part}


def _notes(part: Object, place: Object) -> Events:
    for number, note in enumerate(_objects(part.get("annotations") or [])):
        yield "response.output_text.annotation.added", {**place, "annotation_index": number, "annotation": note}


# Gemini


def _gemini(value: Json) -> bytes:
    """A whole answer is a stream of one chunk; a list is a stream already, in the other of its two shapes."""
    chunks = _objects(value if isinstance(value, list) else [value])
    if not chunks or not all(
        chunk.keys() & {"candidates", "promptFeedback", "usageMetadata", "error"} for chunk in chunks
    ):
        raise _Unknown
    return b"".join(write_event("", chunk, b"\r\n") for chunk in chunks)


_WIRES: Mapping[WireName, Callable[[Json], bytes]] = {
    "openai_chat": _chat,
    "anthropic": _messages,
    "openai_responses": _responses,
    "gemini": _gemini,
}
