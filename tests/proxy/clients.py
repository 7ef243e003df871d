"""Questions with images through the official SDKs: Messages and Chat Completions, streamed or not."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Sequence
from typing import Any

import anthropic
import openai

KEY = "sk-test-0123456789"
Json = dict[str, Any]
Ask = Callable[..., str]


def image_block(data: bytes, mime: str = "image/png") -> Json:
    source = {"type": "base64", "media_type": mime, "data": b64encode(data).decode()}
    return {"type": "image", "source": source}


def image_part(data: bytes, mime: str = "image/png") -> Json:
    return {"type": "image_url", "image_url": {"url": f"data:{mime};base64,{b64encode(data).decode()}"}}


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def ask_messages(
    base: str, model: str, messages: Sequence[Json], *, stream: bool = False, key: str = KEY, **more: Any
) -> str:
    with anthropic.Anthropic(base_url=base, api_key=key, max_retries=0) as client:
        body: Json = {"model": model, "max_tokens": 1024, "messages": list(messages), **more}
        if not stream:
            answer = client.messages.create(**body)
            return "".join(block.text for block in answer.content if block.type == "text")
        with client.messages.stream(**body) as events:
            return events.get_final_text()


def ask_chat(
    base: str, model: str, messages: Sequence[Json], *, stream: bool = False, key: str = KEY, **more: Any
) -> str:
    with openai.OpenAI(base_url=f"{base}/v1", api_key=key, max_retries=0) as client:
        body: Json = {"model": model, "messages": list(messages), **more}
        if not stream:
            return client.chat.completions.create(**body).choices[0].message.content or ""
        chunks = client.chat.completions.create(**body, stream=True)
        return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def pasted_message(data: bytes, mime: str = "image/png", words: str = "Name the quadrants.") -> list[Json]:
    return [{"role": "user", "content": [image_block(data, mime), text(words)]}]


def pasted_chat(data: bytes, mime: str = "image/png", words: str = "Name the quadrants.") -> list[Json]:
    return [{"role": "user", "content": [text(words), image_part(data, mime)]}]


def read_message(*pictures: bytes) -> list[Json]:
    """Tools have brought pictures, one call each, in parallel."""
    calls = [
        {"type": "tool_use", "id": f"toolu_{n}", "name": "Read", "input": {"file_path": f"/project/shot{n}.png"}}
        for n in range(len(pictures))
    ]
    results = [
        {"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": [text("read"), image_block(data)]}
        for n, data in enumerate(pictures)
    ]
    return [
        {"role": "user", "content": "Read the pictures."},
        {"role": "assistant", "content": calls},
        {"role": "user", "content": results},
    ]


def read_chat(*pictures: bytes) -> list[Json]:
    """The same on the chat wire, with the image inside the tool message, where several frameworks put it."""
    calls = [
        {
            "id": f"call_{n}",
            "type": "function",
            "function": {"name": "read", "arguments": json.dumps({"path": f"/project/shot{n}.png"})},
        }
        for n in range(len(pictures))
    ]
    results = [
        {"role": "tool", "tool_call_id": f"call_{n}", "content": [text("read"), image_part(data)]}
        for n, data in enumerate(pictures)
    ]
    return [
        {"role": "user", "content": "Read the pictures."},
        {"role": "assistant", "content": None, "tool_calls": calls},
        *results,
    ]


WIRES: dict[str, tuple[Ask, Callable[..., list[Json]], Callable[..., list[Json]]]] = {
    "messages": (ask_messages, pasted_message, read_message),
    "chat": (ask_chat, pasted_chat, read_chat),
}
"""For each wire: how to ask, a pasted picture, pictures that tools have read."""
