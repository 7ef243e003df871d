"""One conversation, as a client of each of the four wires writes it: turns with words and pictures, and thoughts."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

from tests.proxy.clients import KEY, image_block, image_part, text
from tests.proxy.raw_http import Got, exchange

Json = dict[str, Any]
WIRES = ("anthropic", "openai_chat", "openai_responses", "gemini")
_ITEMS = {"anthropic": "messages", "openai_chat": "messages", "openai_responses": "input", "gemini": "contents"}
_PATHS = {
    "anthropic": "/v1/messages",
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "gemini": "/v1beta/models/{model}:generateContent",
}


def asked(wire: str, words: str, *pictures: bytes) -> Json:
    """A user's message: pictures, and words behind them."""
    if wire == "anthropic":
        return {"role": "user", "content": [*map(image_block, pictures), text(words)]}
    if wire == "openai_chat":
        return {"role": "user", "content": [*map(image_part, pictures), text(words)]}
    if wire == "openai_responses":
        shots: list[Json] = [{"type": "input_image", "detail": "auto", "image_url": _url(each)} for each in pictures]
        return {"type": "message", "role": "user", "content": [*shots, {"type": "input_text", "text": words}]}
    shots = [{"inlineData": {"mimeType": "image/png", "data": b64encode(each).decode()}} for each in pictures]
    return {"role": "user", "parts": [*shots, {"text": words}]}


def _url(data: bytes) -> str:
    return f"data:image/png;base64,{b64encode(data).decode()}"


def answered(wire: str, words: str, seal: str = "") -> list[Json]:
    """What a model said; with a seal, what it thought before that, which nobody else can read."""
    if wire == "anthropic":
        thought: Json = {"type": "thinking", "thinking": "hm", "signature": seal}
        return [{"role": "assistant", "content": [*([thought] if seal else []), text(words)]}]
    if wire == "openai_chat":
        sealed = {"reasoning_details": [{"type": "reasoning.encrypted", "data": seal}]} if seal else {}
        return [{"role": "assistant", "content": words, **sealed}]
    if wire == "openai_responses":
        thought = {"type": "reasoning", "id": f"rs_{seal}", "summary": [], "encrypted_content": seal}
        said: list[Any] = [{"type": "output_text", "text": words}]
        return [*([thought] if seal else []), {"type": "message", "role": "assistant", "id": "msg_1", "content": said}]
    return [{"role": "model", "parts": [{"text": words, **({"thoughtSignature": seal} if seal else {})}]}]


def request(wire: str, model: str, said: Sequence[Json]) -> Json:
    named = {"anthropic": {"model": model, "max_tokens": 99}, "gemini": {}}.get(wire, {"model": model})
    return {**named, _ITEMS[wire]: [*said]}


def path(wire: str, model: str) -> str:
    return _PATHS[wire].format(model=model)


def sent(base: str, wire: str, model: str, said: Sequence[Json], upstream: str = "") -> Got:
    where = (f"/u/{upstream}" if upstream else "") + path(wire, model)
    return exchange(base, where, json.dumps(request(wire, model, said)).encode(), headers=_KEYS[wire])


_KEYS = {
    wire: [("x-goog-api-key", KEY)] if wire == "gemini" else [("authorization", f"Bearer {KEY}")] for wire in WIRES
}


def messages(wire: str, body: bytes) -> list[Any]:
    found: list[Any] = json.loads(body)[_ITEMS[wire]]
    return found


def parts(wire: str, message: Json) -> list[Any]:
    found: list[Any] = message["parts" if wire == "gemini" else "content"]
    return found


def shows(body: bytes, picture: bytes) -> bool:
    """Are the pixels of a picture in it?"""
    return b64encode(picture) in body
