"""The face that speaks Anthropic Messages: strict about requests, exact about frames."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from tests.scripted.talk import Asked, Json, No, Picture, Said, pieces

PART = "image"
PRELUDE: tuple[bytes, ...] = (b'event: ping\ndata: {"type": "ping"}\n\n',)
_TAGS = "'document', 'image', 'search_result', 'text', 'thinking', 'tool_result', 'tool_use'"
_FOREIGN = frozenset({"image_url", "input_image", "input_text", "input_file", "media", "image-data", "file-data"})
_MOST_CACHE_POINTS = 4


def read(body: Json, *, counting: bool = False, lenient: bool = False) -> Asked | No:
    """The request as a model meets it, or the first rule of the wire that it breaks."""
    messages = body.get("messages")
    if not isinstance(body.get("model"), str):
        return No(400, "model: Field required")
    if not isinstance(messages, list) or not messages or not all(isinstance(one, dict) for one in messages):
        return No(400, "messages: at least one message is required")
    if not counting and not isinstance(body.get("max_tokens"), int):
        return No(400, "max_tokens: Field required")
    broken = _broken_message(messages) or _broken_pairing(messages) or _too_many_cache_points(body)
    return broken or Asked(
        model=body["model"],
        stream=body.get("stream") is True,
        wants_usage=True,
        pictures=tuple(_pictures(messages)),
        words=tuple(_words(messages)),
        tools=frozenset(str(tool.get("name")) for tool in body.get("tools") or ()),
        steps=sum(bool(_ids(message, "tool_use")) for message in messages),
    )


def _content(holder: Json) -> list[Any]:
    content = holder.get("content")
    return [{"type": "text", "text": content}] if content and isinstance(content, str) else list(content or ())


def _blocks(messages: list[Json], role: str = "user") -> Iterator[tuple[str, Json]]:
    """Every block of a role with its address, those inside tool results included."""
    for number, message in enumerate(messages):
        for at, block in enumerate(_content(message)):
            if message.get("role") != role:
                continue
            yield f"messages.{number}.content.{at}", block
            if block.get("type") == "tool_result":
                for inside, inner in enumerate(_content(block)):
                    yield f"messages.{number}.content.{at}.tool_result.content.{inside}", inner


def _broken_message(messages: list[Json]) -> No | None:
    for number, message in enumerate(messages):
        if message.get("role") not in {"user", "assistant", "system"}:
            return No(400, f"messages.{number}.role: Input should be 'user' or 'assistant'")
        if not isinstance(message.get("content"), (str, list)):
            return No(400, f"messages.{number}.content: Input should be a valid list")
        if not message["content"] and number < len(messages) - 1:
            return No(400, f"messages.{number}: all messages must have non-empty content")
        if not all(isinstance(block, dict) for block in _content(message)):
            return No(400, f"messages.{number}.content: Input should be a valid dictionary")
    if messages[0]["role"] == "assistant":
        return No(400, 'messages: first message must use the "user" role')
    return next(filter(None, (_broken_block(where, block) for where, block in _blocks(messages))), None) or next(
        (
            No(400, f"{where}: blocks of type image are not permitted in assistant messages")
            for where, block in _blocks(messages, "assistant")
            if block.get("type") == PART
        ),
        None,
    )


def _broken_block(where: str, block: Json) -> No | None:
    kind = block.get("type")
    if kind in _FOREIGN:
        return No(
            400,
            f"{where}: Input tag '{kind}' found using 'type' does not match any of the expected tags: " + _TAGS,
        )
    if kind == "text" and not isinstance(block.get("text"), str):
        return No(400, f"{where}.text.text: Input should be a valid string")
    if kind == "text" and not block["text"]:
        return No(400, "messages: text content blocks must be non-empty")
    if kind == PART:
        source = block.get("source")
        if not isinstance(source, dict) or source.get("type") not in {"base64", "url", "file"}:
            return No(400, f"{where}.image.source: Field required")
        if source["type"] != "base64":
            return No(400, "Unable to download the file. Please verify the URL and try again.")
        if not isinstance(source.get("data"), str):
            return No(400, f"{where}.image.source.base64.data: Field required")
    return None


def _ids(message: Json, kind: str) -> list[str]:
    key = "id" if kind == "tool_use" else "tool_use_id"
    return [str(block.get(key)) for block in _content(message) if block.get("type") == kind]


def _leading_results(message: Json) -> set[str]:
    """Tool results count only where they must stand: before anything else in the message."""
    found = set()
    for block in _content(message):
        if block.get("type") != "tool_result":
            break
        found.add(str(block.get("tool_use_id")))
    return found


def _broken_pairing(messages: list[Json]) -> No | None:
    turns = [(number, message) for number, message in enumerate(messages) if message["role"] != "system"]
    called: set[str] = set()
    for place, (number, message) in enumerate(turns):
        for strange in (one for one in _ids(message, "tool_result") if one not in called):
            return No(
                400,
                f"messages.{number}.content.0: unexpected `tool_use_id` found in `tool_result` blocks: "
                f"{strange}. Each `tool_result` block must have a corresponding `tool_use` block in the "
                "previous message.",
            )
        called = set(_ids(message, "tool_use"))
        answered = _leading_results(turns[place + 1][1]) if place + 1 < len(turns) else set()
        if missing := sorted(called - answered):
            return No(
                400,
                f"messages.{number}: `tool_use` ids were found without `tool_result` blocks immediately "
                f"after: {', '.join(missing)}. Each `tool_use` block must have a corresponding "
                "`tool_result` block in the next message.",
            )
    return None


def _too_many_cache_points(body: Json) -> No | None:
    system = body.get("system")
    blocks = [
        *(system if isinstance(system, list) else ()),
        *(body.get("tools") or ()),
        *(block for role in ("user", "assistant", "system") for _, block in _blocks(body["messages"], role)),
    ]
    found = sum(isinstance(block, dict) and bool(block.get("cache_control")) for block in blocks)
    if found <= _MOST_CACHE_POINTS:
        return None
    return No(400, f"A maximum of 4 blocks with cache_control may be provided. Found {found}.")


def _pictures(messages: list[Json]) -> Iterator[Picture]:
    for where, block in _blocks(messages):
        if block.get("type") == PART:
            source = block["source"]
            place, of_tool = f"{where}.image.source.base64", "tool_result" in where
            yield Picture(place, str(source.get("media_type")), source["data"], of_tool)


def _words(messages: list[Json]) -> Iterator[str]:
    return (block["text"] for _, block in _blocks(messages) if block.get("type") == "text")


def index(picture: Picture) -> int:
    """The number of the message that a picture stands in."""
    return int(picture.where.split(".")[1])


def error(no: No) -> Json:
    """A refusal in this wire's shape."""
    return no.shape or {
        "type": "error",
        "error": {"type": no.kind, "message": no.message},
        "request_id": "req_011CscriptedRequest",
    }


def error_event(no: No) -> bytes:
    """A refusal in the middle of a stream."""
    return _event({"type": "error", "error": {"type": no.kind, "message": no.message}})


def count(asked: Asked) -> Json:
    """The answer of count_tokens."""
    return {"input_tokens": asked.tokens}


def _blocks_said(asked: Asked, said: Said) -> list[Json]:
    calls = [
        {
            "type": "tool_use",
            "id": f"toolu_01scripted{asked.steps:02}{number:02}",
            "name": call.name,
            "input": dict(call.arguments),
        }
        for number, call in enumerate(said.calls)
    ]
    return ([{"type": "text", "text": said.text}] if said.text else []) + calls


def _message(asked: Asked, said: Said) -> Json:
    return {
        "id": "msg_01" + hashlib.sha256(said.text.encode()).hexdigest()[:22],
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": _blocks_said(asked, said),
        "stop_reason": "tool_use" if said.calls else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": asked.tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": said.tokens,
        },
    }


def whole(asked: Asked, said: Said) -> Json:
    """The answer to a request without `stream`."""
    return _message(asked, said)


def events(asked: Asked, said: Said) -> list[bytes]:
    """The answer as server-sent events, framed as the real provider frames them."""
    message = _message(asked, said)
    usage = {**message["usage"], "output_tokens": 1}
    opening = {**message, "content": [], "stop_reason": None, "usage": usage}
    out = [_event({"type": "message_start", "message": opening})]
    for at, block in enumerate(message["content"]):
        out += [_event(event) for event in _block_events(at, block)]
        if at == 0:
            out.insert(2, _event({"type": "ping"}))
    closing = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    out.append(_event({"type": "message_delta", "delta": closing, "usage": {"output_tokens": said.tokens}}))
    return [*out, _event({"type": "message_stop"})]


def _block_events(at: int, block: Json) -> Iterator[Json]:
    if block["type"] == "text":
        empty: Json = {"type": "text", "text": ""}
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
    else:
        empty = {**block, "input": {}}
        parts = ["", *pieces(json.dumps(block["input"], ensure_ascii=False))]
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in parts]
    yield {"type": "content_block_start", "index": at, "content_block": empty}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": at, "delta": delta}
    yield {"type": "content_block_stop", "index": at}


def _event(data: Json) -> bytes:
    return f"event: {data['type']}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()
