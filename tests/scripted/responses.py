"""The face that speaks OpenAI Responses: strict about requests, exact about frames."""

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

from tests.scripted.talk import Asked, Json, No, Picture, Said, pieces

PART = "input_image"
PRELUDE: tuple[bytes, ...] = (
    b'event: response.created\ndata: {"type": "response.created", "sequence_number": 0, "response": {}}\n\n',
)
_ROLES = ("assistant", "system", "developer", "user")
_SAID = frozenset({"output_text", "refusal"})
_GIVEN = frozenset({"input_text", PART, "input_file", "input_audio"})
_RESULT = frozenset({"input_text", PART, "input_file"})
_DETAILS = ("low", "high", "auto", "original")
_CALLS = {"function_call_output": "function_call", "custom_tool_call_output": "custom_tool_call"}
_ITEMS = frozenset(
    """message function_call function_call_output custom_tool_call custom_tool_call_output reasoning item_reference
    additional_tools computer_call computer_call_output web_search_call local_shell_call local_shell_call_output
    compaction""".split()
)
_DATA_URL = re.compile(r"data:(?P<media_type>[^;,]*);base64,(?P<base64>.*)", re.DOTALL)


def read(body: Json, *, counting: bool = False, lenient: bool = False) -> Asked | No:
    """The request as a model meets it, or the first rule of the wire that it breaks."""
    given = body.get("input")
    if not isinstance(body.get("model"), str):
        return No(400, "Missing required parameter: 'model'.", code="missing_required_parameter")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    if not isinstance(items, list) or not items or not all(isinstance(one, dict) for one in items):
        return No(400, "Missing required parameter: 'input'.", code="missing_required_parameter")
    broken = next(filter(None, (_broken_item(f"input[{n}]", one) for n, one in enumerate(items))), None)
    broken = broken or _broken_pairing(items, partial=bool(body.get("previous_response_id")))
    return broken or Asked(
        model=body["model"],
        stream=body.get("stream") is True,
        wants_usage=True,
        pictures=tuple(_pictures(items)),
        words=tuple(_words(items)),
        tools=frozenset(_tools(body, items)),
        steps=sum(_kind(one) in _CALLS.values() and _opens(items, n) for n, one in enumerate(items)),
    )


def _kind(item: Json) -> str:
    return str(item.get("type") or ("message" if "role" in item else None))


def _opens(items: list[Json], number: int) -> bool:
    """Is this the first of the calls that were made together?"""
    return number == 0 or _kind(items[number - 1]) not in _CALLS.values()


def _tools(body: Json, items: list[Json]) -> Iterator[str]:
    more = [tool for one in items if _kind(one) == "additional_tools" for tool in one.get("tools") or ()]
    for tool in [*(body.get("tools") or ()), *more]:
        yield str(tool.get("name"))
        if tool.get("type") == "namespace":  # its tools are called by both names
            yield from (f"{tool.get('name')}.{inner.get('name')}" for inner in tool.get("tools") or ())


def _named(tool: str) -> Json:
    namespace, _, name = tool.rpartition(".")
    return {"name": name, "namespace": namespace} if namespace else {"name": name}


def _parts(item: Json) -> list[Any]:
    """The parts of a message or of a tool's output."""
    content = item.get("output" if _kind(item) in _CALLS else "content")
    return [{"type": "input_text", "text": content}] if isinstance(content, str) else list(content or ())


def _broken_item(where: str, item: Json) -> No | None:
    kind = _kind(item)
    if kind not in _ITEMS:
        known = ", ".join(map(repr, sorted(_ITEMS)))
        return No(400, f"Invalid value: '{kind}'. Supported values are: {known}.", code="invalid_value")
    if kind == "message":
        return _broken_message(where, item)
    if kind in _CALLS.values():
        argument = "arguments" if kind == "function_call" else "input"
        missing = next((key for key in ("call_id", "name", argument) if not isinstance(item.get(key), str)), None)
        return No(400, f"Missing required parameter: '{where}.{missing}'.") if missing else None
    if kind in _CALLS:
        output = item.get("output")
        if not isinstance(output, (str, list)):
            return No(400, f"Invalid type for '{where}.output': expected one of a string or an array of objects.")
        return None if isinstance(output, str) else _broken_parts(f"{where}.output", output, _RESULT)
    if kind == "computer_call_output":
        shot = item.get("output")
        if not isinstance(shot, dict) or shot.get("type") != "computer_screenshot":
            return No(400, f"Invalid value for '{where}.output': expected a computer_screenshot.")
        return _broken_image(f"{where}.output", shot)
    return None


def _broken_message(where: str, item: Json) -> No | None:
    role, content = item.get("role"), item.get("content")
    if role not in _ROLES:
        return No(400, f"Invalid value: '{role}'. Supported values are: {', '.join(map(repr, _ROLES))}.")
    if isinstance(content, str):
        return None
    if not isinstance(content, list):
        return No(400, f"Invalid type for '{where}.content': expected one of an array of objects or string.")
    return _broken_parts(f"{where}.content", content, _SAID if role == "assistant" else _GIVEN)


def _broken_parts(where: str, parts: list[Any], allowed: frozenset[str]) -> No | None:
    for at, part in enumerate(parts):
        place = f"{where}[{at}]"
        if not isinstance(part, dict):
            found = "null" if part is None else type(part).__name__
            return No(400, f"Invalid type for '{place}': expected an object, but got {found} instead.")
        if part.get("type") not in allowed:
            known = ", ".join(map(repr, sorted(allowed)))
            return No(400, f"Invalid value: '{part.get('type')}'. Supported values are: {known}.", code="invalid_value")
        if part["type"] in {"input_text", "output_text"} and not isinstance(part.get("text"), str):
            return No(400, f"Missing required parameter: '{place}.text'.")
        if part["type"] == PART and (broken := _broken_image(place, part)):
            return broken
    return None


def _broken_image(where: str, part: Json) -> No | None:
    url = part.get("image_url")
    if part.get("detail") not in (None, *_DETAILS):
        known = ", ".join(map(repr, _DETAILS))
        return No(400, f"Invalid value: '{part['detail']}'. Supported values are: {known}.", code="invalid_value")
    if url is None and isinstance(part.get("file_id"), str):
        return No(400, f"File '{part['file_id']}' not found.")
    if not isinstance(url, str):
        found = "an object" if isinstance(url, dict) else "null"
        return No(400, f"Invalid type for '{where}.image_url': expected a string, but got {found} instead.")
    if not url.startswith("data:"):
        return No(400, f"Error while downloading {url[:200]}.", code="invalid_value")
    if not _DATA_URL.match(url):
        return No(400, f"Invalid '{where}.image_url'. Expected a base64-encoded data URL.", code="invalid_value")
    return None


def _broken_pairing(items: list[Json], *, partial: bool) -> No | None:
    """Every output answers a call that stands before it, once, in its own kind; every call is answered."""
    waiting: dict[str, str] = {}
    for item in items:
        kind, name = _kind(item), str(item.get("call_id"))
        if kind in _CALLS.values():
            waiting[name] = kind
        elif kind in _CALLS:
            if waiting.get(name) != _CALLS[kind] and not partial:
                what = "function call" if kind == "function_call_output" else "custom tool call"
                return No(400, f"No tool call found for {what} output with call_id {name}.")
            waiting.pop(name, None)
    unanswered = next(iter(waiting), None)
    return No(400, f"No tool output found for function call {unanswered}.") if unanswered else None


def _pictures(items: list[Json]) -> Iterator[Picture]:
    for number, item in enumerate(items):
        key = "output" if _kind(item) in _CALLS else "content"
        for at, part in enumerate(_parts(item)):
            if part.get("type") == PART and (url := _DATA_URL.match(part["image_url"])):
                where = f"input[{number}].{key}[{at}].image_url"
                yield Picture(where, url["media_type"], url["base64"], of_tool=key == "output")
        shot = item.get("output") if _kind(item) == "computer_call_output" else None
        if shot and (url := _DATA_URL.match(shot["image_url"])):
            where = f"input[{number}].output.image_url"
            yield Picture(where, url["media_type"], url["base64"], of_tool=True)


def _words(items: list[Json]) -> Iterator[str]:
    for item in items:
        if item.get("role") == "user" or _kind(item) in _CALLS:
            yield from (part["text"] for part in _parts(item) if part.get("type") == "input_text")


def index(picture: Picture) -> int:
    """The number of the item that a picture stands in."""
    return int(picture.where[len("input[") :].partition("]")[0])


def error(no: No) -> Json:
    """A refusal in this wire's shape."""
    return no.shape or {"error": {"message": no.message, "type": no.kind, "param": None, "code": no.code}}


def error_event(no: No) -> bytes:
    """A refusal in the middle of a stream."""
    return _event({"type": "error", "code": no.kind, "message": no.message, "param": None, "sequence_number": 99})


def _items_said(asked: Asked, said: Said) -> list[Json]:
    text = {"type": "output_text", "text": said.text, "annotations": [], "logprobs": []}
    message: Json = {
        "id": f"msg_scripted_{len(asked.words)}",
        "type": "message",
        "status": "completed",
        "role": "assistant",
    }
    calls = [
        {
            "id": f"fc_scripted_{asked.steps:02}_{number:02}",
            "type": "function_call",
            "status": "completed",
            "call_id": f"call_scripted_{asked.steps:02}_{number:02}",
            **_named(call.name),
            "arguments": json.dumps(call.arguments, ensure_ascii=False),
        }
        for number, call in enumerate(said.calls)
    ]
    return [{**message, "content": [text]}] * bool(said.text) + calls


def whole(asked: Asked, said: Said) -> Json:
    """The answer to a request without `stream`."""
    usage = {
        "input_tokens": asked.tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": said.tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": asked.tokens + said.tokens,
    }
    return {
        "id": "resp_" + hashlib.sha256(f"{asked.steps} {len(asked.words)} {said.text}".encode()).hexdigest()[:24],
        "object": "response",
        "created_at": 1_760_000_000,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": asked.model,
        "output": _items_said(asked, said),
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": usage,
    }


def events(asked: Asked, said: Said) -> list[bytes]:
    """The answer as server-sent events, framed as the real provider frames them."""
    response = whole(asked, said)
    opening = {**response, "status": "in_progress", "output": [], "usage": None}
    told: list[Json] = [{"type": f"response.{kind}", "response": opening} for kind in ("created", "in_progress")]
    for at, item in enumerate(response["output"]):
        told += _item_events(at, item)
    told.append({"type": "response.completed", "response": response})
    return [_event({**event, "sequence_number": number}) for number, event in enumerate(told)]


def _item_events(at: int, item: Json) -> Iterator[Json]:
    place = {"output_index": at, "item_id": item["id"]}
    empty: Json = {"content": []} if item["type"] == "message" else {"arguments": ""}
    begun = {**item, "status": "in_progress", **empty}
    yield {"type": "response.output_item.added", "output_index": at, "item": begun}
    if item["type"] == "message":
        part = item["content"][0]
        inside = {**place, "content_index": 0}
        yield {"type": "response.content_part.added", **inside, "part": {**part, "text": ""}}
        for piece in pieces(part["text"]):
            yield {"type": "response.output_text.delta", **inside, "delta": piece, "logprobs": []}
        yield {"type": "response.output_text.done", **inside, "text": part["text"], "logprobs": []}
        yield {"type": "response.content_part.done", **inside, "part": part}
    else:
        for piece in pieces(item["arguments"]):
            yield {"type": "response.function_call_arguments.delta", **place, "delta": piece}
        done = {"arguments": item["arguments"], "name": item["name"]}
        yield {"type": "response.function_call_arguments.done", **place, **done}
    yield {"type": "response.output_item.done", "output_index": at, "item": item}


def _event(data: Json) -> bytes:
    return f"event: {data['type']}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()
