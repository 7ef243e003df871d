"""A model that calls tools of the proxy's own, on each of the four wires: what it answers, what a client makes of it,
and what a client that ran those tools itself would send."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.scripted.server import Exchange, Reply, Server

Json = dict[str, Any]
OURS = ("analyze_image", "view_image")
ITEMS = {"anthropic": "messages", "openai_chat": "messages", "openai_responses": "input", "gemini": "contents"}
WIRES = tuple(ITEMS)


@dataclass(frozen=True)
class Call:
    id: str
    name: str
    given: Json

    @property
    def ours(self) -> bool:
        return self.name in OURS


@dataclass(frozen=True)
class Leg:
    text: str = ""
    calls: tuple[Call, ...] = ()
    thought: str = ""
    used: int = 7

    @property
    def visible(self) -> Leg:
        return Leg(self.text, tuple(call for call in self.calls if not call.ours), self.thought, self.used)

    @property
    def asks(self) -> tuple[Call, ...]:
        return tuple(call for call in self.calls if call.ours)


# What a model says, as a whole answer and as events.


def answer(wire: str, leg: Leg, name: str) -> Json:
    if wire == "anthropic":
        stop = "tool_use" if leg.calls else "end_turn"
        usage = {"input_tokens": 100 + leg.used, "cache_read_input_tokens": leg.used, "output_tokens": leg.used}
        whole = {"id": f"msg_{name}", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}
        return {**whole, "content": said(wire, leg)[0]["content"], "stop_reason": stop, "usage": usage}
    if wire == "openai_chat":
        usage = {"prompt_tokens": 100 + leg.used, "completion_tokens": leg.used, "total_tokens": 100 + 2 * leg.used}
        choice = {"index": 0, "message": said(wire, leg)[0], "finish_reason": "tool_calls" if leg.calls else "stop"}
        head = {"id": f"chatcmpl-{name}", "object": "chat.completion", "created": 1, "model": "m"}
        return {**head, "choices": [choice], "usage": usage}
    if wire == "openai_responses":
        usage = {"input_tokens": 100 + leg.used, "output_tokens": leg.used, "total_tokens": 100 + 2 * leg.used}
        head = {"id": f"resp_{name}", "object": "response", "created_at": 1, "status": "completed", "model": "m"}
        return {**head, "output": said(wire, leg), "usage": usage, "tools": [], "parallel_tool_calls": True}
    usage = {
        "promptTokenCount": 100 + leg.used,
        "candidatesTokenCount": leg.used,
        "totalTokenCount": 100 + 2 * leg.used,
    }
    candidate = {"content": said(wire, leg)[0], "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m", "responseId": f"r_{name}"}


def _event(kind: str, data: Json) -> bytes:
    return (f"event: {kind}\n" if kind else "").encode() + b"data: " + json.dumps(data).encode() + b"\n\n"


def events(wire: str, leg: Leg, name: str) -> list[bytes]:
    return list(_EVENTS[wire](leg, answer(wire, leg, name)))


def _halves(text: str) -> Iterator[str]:
    """Words come in pieces."""
    yield text[: len(text) // 2]
    yield text[len(text) // 2 :]


def _messages(leg: Leg, whole: Json) -> Iterator[bytes]:
    usage = {**whole["usage"], "output_tokens": 1}
    begun = {**whole, "content": [], "stop_reason": None, "usage": usage}
    yield _event("message_start", {"type": "message_start", "message": begun})
    yield _event("ping", {"type": "ping"})
    for index, block in enumerate(whole["content"]):
        kinds = {"text": ("text", "text_delta"), "thinking": ("thinking", "thinking_delta")}
        key, delta = kinds.get(block["type"], ("input", "input_json_delta"))
        empty = {**block, key: {} if key == "input" else "", **({"signature": ""} if key == "thinking" else {})}
        yield _event("content_block_start", {"type": "content_block_start", "index": index, "content_block": empty})
        for piece in _halves(json.dumps(block["input"]) if key == "input" else block[key]):
            grown = {"type": delta, "partial_json" if key == "input" else key: piece}
            yield _event("content_block_delta", {"type": "content_block_delta", "index": index, "delta": grown})
        if key == "thinking":
            sealed = {"type": "signature_delta", "signature": block["signature"]}
            yield _event("content_block_delta", {"type": "content_block_delta", "index": index, "delta": sealed})
        yield _event("content_block_stop", {"type": "content_block_stop", "index": index})
    end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    last = {"output_tokens": whole["usage"]["output_tokens"]}
    yield _event("message_delta", {"type": "message_delta", "delta": end, "usage": last})
    yield _event("message_stop", {"type": "message_stop"})


def _chat(leg: Leg, whole: Json) -> Iterator[bytes]:
    message, head = whole["choices"][0]["message"], {"id": whole["id"], "object": "chat.completion.chunk"}
    head |= {"created": 1, "model": "m"}

    def chunk(delta: Json, end: str | None = None) -> bytes:
        return _event("", {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": end}]})

    yield chunk({"role": "assistant", "content": ""})
    for key in ("reasoning_content", "content"):
        for piece in _halves(message.get(key) or ""):
            if piece:
                yield chunk({key: piece})
    for index, call in enumerate(message.get("tool_calls", ())):
        function = call["function"]
        begun = {"index": index, "id": call["id"], "type": "function"}
        yield chunk({"tool_calls": [{**begun, "function": {"name": function["name"], "arguments": ""}}]})
        for piece in _halves(function["arguments"]):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, whole["choices"][0]["finish_reason"])
    yield _event("", {**head, "choices": [], "usage": whole["usage"]})
    yield b"data: [DONE]\n\n"


def _responses(leg: Leg, whole: Json) -> Iterator[bytes]:
    number = 0

    def one(kind: str, **data: Any) -> bytes:
        nonlocal number
        number += 1
        return _event(kind, {"type": kind, "sequence_number": number - 1, **data})

    running = {**whole, "status": "in_progress", "output": [], "usage": None}
    yield one("response.created", response=running)
    yield one("response.in_progress", response=running)
    for index, item in enumerate(whole["output"]):
        at = {"item_id": item["id"], "output_index": index}
        empties: dict[str, Json] = {"message": {"content": []}, "function_call": {"arguments": ""}}
        empty = empties.get(item["type"], {})
        yield one("response.output_item.added", output_index=index, item={**item, **empty})
        if item["type"] == "message":
            part = {"type": "output_text", "text": "", "annotations": []}
            yield one("response.content_part.added", **at, content_index=0, part=part)
            for piece in _halves(item["content"][0]["text"]):
                yield one("response.output_text.delta", **at, content_index=0, delta=piece, logprobs=[])
            text = item["content"][0]["text"]
            yield one("response.output_text.done", **at, content_index=0, text=text, logprobs=[])
            yield one("response.content_part.done", **at, content_index=0, part=item["content"][0])
        elif item["type"] == "function_call":
            for piece in _halves(item["arguments"]):
                yield one("response.function_call_arguments.delta", **at, delta=piece)
            done = {"arguments": item["arguments"], "name": item["name"]}
            yield one("response.function_call_arguments.done", **at, **done)
        yield one("response.output_item.done", output_index=index, item=item)
    yield one("response.completed", response=whole)


def _gemini(leg: Leg, whole: Json) -> Iterator[bytes]:
    candidate = whole["candidates"][0]
    for part in candidate["content"]["parts"]:
        pieces = _halves(part["text"]) if set(part) == {"text"} else [None]
        for piece in pieces:
            shown = part if piece is None else {"text": piece}
            content = {"role": "model", "parts": [shown]}
            yield _event("", {**whole, "candidates": [{"content": content, "index": 0}]})
    end = {"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": "STOP", "index": 0}
    yield _event("", {**whole, "candidates": [end]})


_EVENTS: dict[str, Callable[[Leg, Json], Iterator[bytes]]] = {
    "anthropic": _messages,
    "openai_chat": _chat,
    "openai_responses": _responses,
    "gemini": _gemini,
}


# What a request carries.


def said(wire: str, leg: Leg) -> list[Json]:
    """What a model said, as a client sends it back that saw all of it."""
    if wire == "anthropic":
        thinking = [{"type": "thinking", "thinking": leg.thought, "signature": f"sig {leg.thought}"}]
        text = [{"type": "text", "text": leg.text}]
        uses = [{"type": "tool_use", "id": call.id, "name": call.name, "input": call.given} for call in leg.calls]
        return [{"role": "assistant", "content": [*thinking[: bool(leg.thought)], *text[: bool(leg.text)], *uses]}]
    if wire == "openai_chat":
        message: Json = {"role": "assistant", "content": leg.text or None}
        if leg.thought:
            message["reasoning_content"] = leg.thought
        if leg.calls:
            message["tool_calls"] = [
                {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": json.dumps(c.given)}}
                for c in leg.calls
            ]
        return [message]
    if wire == "openai_responses":
        thought: list[Json] = [
            {"type": "reasoning", "id": f"rs_{leg.thought}", "summary": [], "encrypted_content": leg.thought}
        ]
        part = {"type": "output_text", "text": leg.text, "annotations": []}
        words: list[Json] = [{"type": "message", "id": f"msg_{leg.used}", "role": "assistant", "content": [part]}]
        calls = [
            {
                "type": "function_call",
                "id": f"fc_{call.id}",
                "call_id": call.id,
                "name": call.name,
                "arguments": json.dumps(call.given),
            }
            for call in leg.calls
        ]
        return [*thought[: bool(leg.thought)], *words[: bool(leg.text)], *calls]
    parts: list[Json] = [{"text": leg.text}] if leg.text else []
    for index, call in enumerate(leg.calls):
        signed = {"thoughtSignature": leg.thought} if leg.thought and not index else {}
        parts.append({"functionCall": {"id": call.id, "name": call.name, "args": call.given}, **signed})
    return [{"role": "model", "parts": parts}]


def results(wire: str, done: Sequence[tuple[Call, str]]) -> list[Json]:
    """What tools have brought."""
    if wire == "anthropic":
        blocks = [_result(call, words) for call, words in done]
        return [{"role": "user", "content": blocks}] if blocks else []
    if wire == "openai_chat":
        return [{"role": "tool", "tool_call_id": call.id, "content": words} for call, words in done]
    if wire == "openai_responses":
        return [{"type": "function_call_output", "call_id": call.id, "output": words} for call, words in done]
    parts = [{"functionResponse": {"id": c.id, "name": c.name, "response": {_key(words): words}}} for c, words in done]
    return [{"role": "user", "parts": parts}] if parts else []


def _result(call: Call, words: str) -> Json:
    made = {"type": "tool_result", "tool_use_id": call.id, "content": words}
    return {**made, "is_error": True} if words.startswith("Error") else made


def _key(words: str) -> str:
    return "error" if words.startswith("Error") else "output"


def user(wire: str, words: str) -> Json:
    if wire == "gemini":
        return {"role": "user", "parts": [{"text": words}]}
    return {"role": "user", "content": words, **({"type": "message"} if wire == "openai_responses" else {})}


def tools(wire: str) -> list[Json]:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    about = {"name": "Read", "description": "Reads a file."}
    if wire == "anthropic":
        return [{**about, "input_schema": schema}]
    if wire == "openai_chat":
        return [{"type": "function", "function": {**about, "parameters": schema}}]
    if wire == "openai_responses":
        return [{"type": "function", **about, "parameters": schema, "strict": False}]
    return [{"functionDeclarations": [{**about, "parameters": schema}]}]


def body(wire: str, items: Sequence[Json], *, stream: bool, **more: Any) -> Json:
    head: Json = {"anthropic": {"model": "m", "max_tokens": 99}, "gemini": {}}.get(wire, {"model": "m"})
    streamed = {"stream": True} if stream and wire != "gemini" else {}
    stored = {"store": False} if wire == "openai_responses" else {}
    asked = {"stream_options": {"include_usage": True}} if stream and wire == "openai_chat" else {}
    return {**head, "tools": tools(wire), ITEMS[wire]: [*items], **streamed, **stored, **asked, **more}


def path(wire: str, *, stream: bool) -> str:
    if wire == "gemini":
        verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
        return f"/u/x/v1beta/models/m:{verb}"
    return "/u/x" + {"anthropic": "/v1/messages", "openai_chat": "/v1/chat/completions"}.get(wire, "/v1/responses")


# What a client makes of an answer.


def heard(wire: str, data: bytes, *, stream: bool) -> Json:
    """A whole answer, out of events as a client puts them together."""
    if not stream:
        whole: Json = json.loads(data)
        return whole
    found = []
    for block in data.decode().split("\n\n"):
        line = next((line for line in block.splitlines() if line.startswith("data: ")), None)
        if line is not None and line != "data: [DONE]":
            found.append(json.loads(line[6:]))
    return _HEARD[wire](found)


def _heard_messages(found: list[Json]) -> Json:
    found = [each for each in found if each["type"] != "ping"]  # sent while a leg takes long; clients skip them
    assert [each["type"] for each in found].count("message_start") == 1
    assert found[-1]["type"] == "message_stop"
    whole: Json = dict(found[0]["message"])
    blocks: list[Json] = []
    inputs: dict[int, str] = {}
    for each in found:
        match each["type"]:
            case "content_block_start":
                assert each["index"] == len(blocks), "numbers go on without a gap"
                blocks.append(dict(each["content_block"]))
            case "content_block_delta":
                delta, block = each["delta"], blocks[each["index"]]
                if delta["type"] == "input_json_delta":
                    inputs[each["index"]] = inputs.get(each["index"], "") + delta["partial_json"]
                for key in ("text", "thinking", "signature"):
                    if key in delta:
                        block[key] += delta[key]
            case "message_delta":
                whole |= each["delta"]
                whole["usage"] = {**whole["usage"], **each["usage"]}
    for index, text in inputs.items():
        blocks[index]["input"] = json.loads(text)
    return {**whole, "content": blocks}


def _heard_chat(found: list[Json]) -> Json:
    assert len({each["id"] for each in found}) == 1
    message: Json = {"role": "assistant", "content": None}
    calls: list[Json] = []
    ends = []
    usage: Json = {}
    for each in found:
        usage = each.get("usage") or usage
        for choice in each["choices"]:
            delta = choice["delta"]
            for key in ("content", "reasoning_content"):
                if delta.get(key):
                    message[key] = (message.get(key) or "") + delta[key]
            for call in delta.get("tool_calls", ()):
                if call["index"] == len(calls):
                    calls.append({"id": call["id"], "type": "function", "function": {**call["function"]}})
                else:
                    calls[call["index"]]["function"]["arguments"] += call["function"]["arguments"]
            ends += [choice["finish_reason"]] if choice["finish_reason"] else []
    assert len(ends) == 1
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "finish_reason": ends[0]}
    return {"id": found[0]["id"], "choices": [choice], "usage": usage}


def _heard_responses(found: list[Json]) -> Json:
    assert [each["sequence_number"] for each in found] == list(range(len(found)))
    whole: Json = found[-1]["response"]
    assert found[-1]["type"] == "response.completed"
    assert found[0]["response"]["id"] == whole["id"]
    items = [each["item"] for each in found if each["type"] == "response.output_item.done"]
    numbers = [each["output_index"] for each in found if each["type"] == "response.output_item.added"]
    assert numbers == list(range(len(items)))
    assert items == whole["output"]
    return whole


def _heard_gemini(found: list[Json]) -> Json:
    assert len({each["responseId"] for each in found}) == 1
    parts = _merged([part for each in found for part in each["candidates"][0]["content"]["parts"]])
    ends = [each["candidates"][0]["finishReason"] for each in found if "finishReason" in each["candidates"][0]]
    assert ends == ["STOP"]
    content = {"role": "model", "parts": parts}
    return {**found[-1], "candidates": [{"content": content, "finishReason": "STOP"}]}


_HEARD: dict[str, Callable[[list[Json]], Json]] = {
    "anthropic": _heard_messages,
    "openai_chat": _heard_chat,
    "openai_responses": _heard_responses,
    "gemini": _heard_gemini,
}


def echo(wire: str, whole: Json) -> list[Json]:
    """What a client sends back of an answer that it saw."""
    if wire == "anthropic":
        return [{"role": "assistant", "content": whole["content"]}]
    if wire == "openai_chat":
        message = whole["choices"][0]["message"]
        return [{key: value for key, value in message.items() if value is not None or key == "content"}]
    if wire == "openai_responses":
        return list(whole["output"])
    return [whole["candidates"][0]["content"]]


def parted(wire: str, items: Sequence[Json], cut: int = 0) -> list[Json]:
    """What an assistant said in as many messages as there are blocks of it, and its words cut behind so many letters.

    A call of ours stands with what was said before it, or else behind it.
    """
    if wire == "openai_responses":
        return list(items)
    key = {"anthropic": "content", "gemini": "parts"}.get(wire)
    found: list[Json] = []
    for item in items:
        if key is None:
            found += _parted_chat(item)
            continue
        groups: list[list[Json]] = []
        for block in _cut(_merged(item[key]), cut) if wire == "gemini" else item[key]:
            if not groups or (not _is_ours(block) and not all(map(_is_ours, groups[-1]))):
                groups.append([])
            groups[-1].append(block)
        found += [{**item, key: group} for group in groups]
    return found


def _parted_chat(message: Json) -> list[Json]:
    groups: list[list[Json]] = [[]]
    for call in message.get("tool_calls", ()):
        alone = message["content"] or not all(_is_ours(each["function"]) for each in groups[-1])
        if alone and not _is_ours(call["function"]):
            groups.append([])
        groups[-1].append(call)
    words = {key: value for key, value in message.items() if key != "tool_calls"}
    first = [words] if not groups[0] else [{**words, "tool_calls": groups[0]}]
    return [*first, *({"role": "assistant", "content": None, "tool_calls": group} for group in groups[1:])]


def _cut(blocks: Sequence[Json], letters: int) -> list[Json]:
    first, *others = blocks or [{}]
    if not 0 < letters < len(first.get("text", "")):
        return list(blocks)
    return [{"text": first["text"][:letters]}, {"text": first["text"][letters:]}, *others]


def _is_ours(block: Json) -> bool:
    return (block.get("functionCall") or block).get("name") in OURS


def joined(wire: str, legs: Sequence[Leg]) -> Json:
    """What a client would see of a model that knew the answer: all that was said, in one."""
    seen = [leg.visible for leg in legs]
    if wire == "anthropic":
        return {"content": [block for leg in seen for block in said(wire, leg)[0]["content"]]}
    if wire == "openai_chat":
        one = Leg("".join(leg.text for leg in seen), seen[-1].calls, "".join(leg.thought for leg in seen))
        return {"message": said(wire, one)[0]}
    if wire == "openai_responses":
        return {"output": [item for leg in seen for item in said(wire, leg)]}
    return {"parts": _merged([part for leg in seen for part in said(wire, leg)[0]["parts"]])}


def seen(wire: str, whole: Json) -> Json:
    """The same of an answer that came."""
    if wire == "anthropic":
        return {"content": whole["content"]}
    if wire == "openai_chat":
        return {"message": echo(wire, whole)[0]}
    if wire == "openai_responses":
        return {"output": whole["output"]}
    return {"parts": _merged(whole["candidates"][0]["content"]["parts"])}


def _merged(parts: Sequence[Json]) -> list[Json]:
    """Words that stand side by side are one text, however many parts they come in."""
    merged: list[Json] = []
    for part in parts:
        if set(part) == {"text"} and merged and set(merged[-1]) == {"text"}:
            merged[-1] = {"text": merged[-1]["text"] + part["text"]}
        elif part != {"text": ""}:
            merged.append(part)
    return merged


@dataclass
class Script:
    """A provider whose model says what was written for it, leg by leg."""

    wire: str
    legs: list[Leg | Reply | Callable[[Json], Leg]] = field(default_factory=list)
    asked: list[Json] = field(default_factory=list)
    names: int = 0
    whole: bool = False  # it answers in one piece, whatever was asked for

    def answer(self, exchange: Exchange) -> Reply:
        given = json.loads(exchange.body)
        self.asked.append(given)
        planned = self.legs[len(self.asked) - 1]
        if isinstance(planned, Reply):
            return planned
        leg = planned if isinstance(planned, Leg) else planned(given)
        self.names += 1
        stream = (given.get("stream") or b"streamGenerate" in exchange.target) and not self.whole
        if not stream:
            data = json.dumps(answer(self.wire, leg, str(self.names))).encode()
            return Reply(200, (("content-type", "application/json"),), (data,))
        parts = tuple(events(self.wire, leg, str(self.names)))
        return Reply(200, (("content-type", "text/event-stream"),), parts, streamed=True)

    def items(self, number: int) -> list[Json]:
        found: list[Json] = self.asked[number][ITEMS[self.wire]]
        return found


def serving(script: Script) -> Server:
    return Server(script.answer, lambda: False)
