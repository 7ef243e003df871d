"""The face that speaks OpenAI Chat Completions: strict about requests, exact about frames."""

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

from tests.scripted.talk import Asked, Json, No, Picture, Said, pieces

PART = "image_url"
PRELUDE: tuple[bytes, ...] = (b": SCRIPTED PROCESSING\n\n",)
_ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_PARTS = frozenset({"text", PART, "input_audio", "file", "refusal", "audio"})
_DATA_URL = re.compile(r"data:(?P<media_type>[^;,]*);base64,(?P<base64>.*)", re.DOTALL)


def read(body: Json, *, counting: bool = False, lenient: bool = False) -> Asked | No:
    """The request as a model meets it, or the first rule of the wire that it breaks."""
    messages = body.get("messages")
    if not isinstance(body.get("model"), str):
        return No(400, "you must provide a model parameter")
    if not isinstance(messages, list) or not messages or not all(isinstance(one, dict) for one in messages):
        return No(400, "Invalid 'messages': empty array. Expected an array with minimum length 1.")
    broken = _broken_message(messages, lenient=lenient) or _broken_pairing(messages)
    if broken:
        return broken
    options = body.get("stream_options")
    return Asked(
        model=body["model"],
        stream=body.get("stream") is True,
        wants_usage=isinstance(options, dict) and options.get("include_usage") is True,
        pictures=tuple(_pictures(messages)),
        words=tuple(_words(messages)),
        tools=frozenset(str(tool.get("function", {}).get("name")) for tool in body.get("tools") or ()),
        steps=sum(bool(message.get("tool_calls")) for message in messages),
    )


def _content(message: Json) -> list[Any]:
    content = message.get("content")
    return [{"type": "text", "text": content}] if content and isinstance(content, str) else list(content or ())


def _broken_message(messages: list[Json], *, lenient: bool) -> No | None:
    for number, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        if role not in _ROLES:
            return No(400, f"Invalid value: '{role}'. Supported values are: {', '.join(map(repr, _ROLES))}.")
        if not isinstance(content, (str, list)) and role != "assistant":
            return No(400, f"Invalid value for 'content': expected a string, got {json.dumps(content)}.")
        for at, part in enumerate(_content(message)):
            broken = _broken_part(f"messages[{number}].content[{at}]", part)
            if broken:
                return broken
            if part["type"] == PART and role != "user" and not (lenient and role == "tool"):
                return No(
                    400,
                    f"Invalid 'messages[{number}]'. Image URLs are only allowed for messages with role "
                    f"'user', but this message with role '{role}' contains an image URL.",
                    code="invalid_value",
                )
    return None


def _broken_part(where: str, part: object) -> No | None:
    if not isinstance(part, dict):
        found = "null" if part is None else type(part).__name__
        return No(400, f"Invalid type for '{where}': expected an object, but got {found} instead.")
    kind = part.get("type")
    if kind not in _PARTS:
        return No(400, f"Invalid value: '{kind}'. Supported values are: {', '.join(sorted(_PARTS))}.")
    if kind == "text" and not isinstance(part.get("text"), str):
        return No(400, f"Missing required parameter: '{where}.text'.")
    if kind != PART:
        return None
    image = part.get(PART)
    if not isinstance(image, dict) or not isinstance(image.get("url"), str):
        return No(400, f"Invalid type for '{where}.{PART}': expected an object with a url.")
    if not image["url"].startswith("data:"):
        return No(400, f"Failed to download image from {image['url'][:200]}.", code="invalid_image_url")
    if not _DATA_URL.match(image["url"]):
        return No(400, f"Invalid '{where}.{PART}'. Expected a base64-encoded data URL.", code="invalid_value")
    return None


def _broken_pairing(messages: list[Json]) -> No | None:
    """Each call is answered by a tool message in the run that directly follows; nothing else stands in it."""
    waiting: list[str] = []
    for number, message in enumerate([*messages, {"role": "end"}]):
        if message["role"] == "tool":
            if message.get("tool_call_id") not in waiting:
                return No(
                    400,
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding "
                    f"message with 'tool_calls' (messages.[{number}].role).",
                )
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            return No(
                400,
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                "'tool_call_id'. The following tool_call_ids did not have response messages: " + ", ".join(waiting),
            )
        waiting = [str(call.get("id")) for call in message.get("tool_calls") or ()]
    return None


def _pictures(messages: list[Json]) -> Iterator[Picture]:
    for number, message in enumerate(messages):
        for at, part in enumerate(_content(message)):
            if part["type"] == PART and (url := _DATA_URL.match(part[PART]["url"])):
                where, of_tool = f"messages[{number}].content[{at}].{PART}", message["role"] == "tool"
                yield Picture(where, url["media_type"], url["base64"], of_tool)


def _words(messages: list[Json]) -> Iterator[str]:
    for message in messages:
        if message["role"] in {"user", "tool"}:
            yield from (part["text"] for part in _content(message) if part["type"] == "text")


def index(picture: Picture) -> int:
    """The number of the message that a picture stands in."""
    return int(picture.where[len("messages[") :].partition("]")[0])


def error(no: No) -> Json:
    """A refusal in this wire's shape."""
    return no.shape or {"error": {"message": no.message, "type": no.kind, "param": None, "code": no.code or no.kind}}


def error_event(no: No) -> bytes:
    """A refusal in the middle of a stream."""
    return _data({"error": {"message": no.message, "type": no.kind, "code": None}})


def _calls(asked: Asked, said: Said) -> list[Json]:
    return [
        {
            "id": f"call_scripted_{asked.steps:02}_{number:02}",
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
        }
        for number, call in enumerate(said.calls)
    ]


def _frame(kind: str, asked: Asked, said: Said) -> Json:
    return {
        "id": "chatcmpl-" + hashlib.sha256(said.text.encode()).hexdigest()[:24],
        "object": kind,
        "created": 1_760_000_000,
        "model": asked.model,
        "system_fingerprint": "fp_scripted",
    }


def _usage(asked: Asked, said: Said) -> Json:
    total = asked.tokens + said.tokens
    return {"prompt_tokens": asked.tokens, "completion_tokens": said.tokens, "total_tokens": total}


def whole(asked: Asked, said: Said) -> Json:
    """The answer to a request without `stream`."""
    message: Json = {"role": "assistant", "content": said.text or None, "refusal": None}
    if said.calls:
        message["tool_calls"] = _calls(asked, said)
    reason = "tool_calls" if said.calls else "stop"
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
    return {
        **_frame("chat.completion", asked, said), "choices": [choice], "usage": _usage(asked, said)
    }  # fmt: skip


def events(asked: Asked, said: Said) -> list[bytes]:
    """The answer as server-sent events, framed as the real provider frames them."""
    frame = _frame("chat.completion.chunk", asked, said)
    usage: Json = {"usage": None} if asked.wants_usage else {}
    deltas = [{"role": "assistant", "content": None if said.calls else "", "refusal": None}]
    deltas += [{"content": piece} for piece in pieces(said.text)]
    deltas += list(_call_deltas(asked, said))
    reasons = [None] * len(deltas) + ["tool_calls" if said.calls else "stop"]
    out = [
        _data({**frame, "choices": [{"index": 0, "delta": d, "logprobs": None, "finish_reason": why}], **usage})
        for d, why in zip([*deltas, {}], reasons, strict=True)
    ]
    if asked.wants_usage:
        out.append(_data({**frame, "choices": [], "usage": _usage(asked, said)}))
    return [*out, b"data: [DONE]\n\n"]


def _call_deltas(asked: Asked, said: Said) -> Iterator[Json]:
    for number, call in enumerate(_calls(asked, said)):
        arguments = call["function"]["arguments"]
        opening = {**call, "function": {**call["function"], "arguments": ""}}
        yield {"tool_calls": [{"index": number, **opening}]}
        for piece in pieces(arguments):
            yield {"tool_calls": [{"index": number, "function": {"arguments": piece}}]}


def _data(chunk: Json) -> bytes:
    return f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n".encode()
