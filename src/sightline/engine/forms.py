"""A question about one picture as each wire puts it, pasted by a user or brought by a tool; and the answer's words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sightline.model.image import Image
from sightline.model.profile import WireName
from sightline.model.scene import Json
from sightline.seers import chat, gemini, messages, responses

_TOOL = "view_picture"
_ABOUT = "Shows the picture."
_CALL = "call_1"
_HERE = "Here is the picture."
_SCHEMA: Json = {"type": "object", "properties": {}}
_ANTHROPIC_TOKENS = 4096  # the wire wants a number; a model that thinks first needs some
# Google's own word for a call that no model of its has made: without one, newer models refuse the conversation.
_UNSIGNED = "skip_thought_signature_validator"


@dataclass(frozen=True, slots=True)
class Form:
    """One wire's way to ask. A picture of None is the same question about nothing."""

    path: Callable[[str], str]
    pasted: Callable[[str, str, Image | None], Json]
    brought: Callable[[str, str, Image], Json]
    words: Callable[[Json], str]
    headers: Mapping[str, str]


def _chat_image(image: Image) -> Json:
    return {"type": "image_url", "image_url": {"url": image.data_url}}


def _chat_pasted(model: str, words: str, image: Image | None) -> Json:
    said: list[Json] = [{"type": "text", "text": words}]
    content: Json = [*said, _chat_image(image)] if image else words
    return {"model": model, "messages": [{"role": "user", "content": content}]}


def _chat_brought(model: str, words: str, image: Image) -> Json:
    called: Json = {"id": _CALL, "type": "function", "function": {"name": _TOOL, "arguments": "{}"}}
    content: Json = [{"type": "text", "text": _HERE}, _chat_image(image)]
    return {
        "model": model,
        "messages": [
            {"role": "user", "content": words},
            {"role": "assistant", "content": "", "tool_calls": [called]},
            {"role": "tool", "tool_call_id": _CALL, "content": content},
        ],
        "tools": [{"type": "function", "function": {"name": _TOOL, "description": _ABOUT, "parameters": _SCHEMA}}],
    }


def _messages_image(image: Image) -> Json:
    return {"type": "image", "source": {"type": "base64", "media_type": image.mime, "data": image.base64}}


def _messages_pasted(model: str, words: str, image: Image | None) -> Json:
    said: Json = {"type": "text", "text": words}
    content: Json = [_messages_image(image), said] if image else [said]
    return {"model": model, "max_tokens": _ANTHROPIC_TOKENS, "messages": [{"role": "user", "content": content}]}


def _messages_brought(model: str, words: str, image: Image) -> Json:
    called: Json = {"type": "tool_use", "id": _CALL, "name": _TOOL, "input": {}}
    content: Json = [{"type": "text", "text": _HERE}, _messages_image(image)]
    result: Json = {"type": "tool_result", "tool_use_id": _CALL, "content": content}
    return {
        "model": model,
        "max_tokens": _ANTHROPIC_TOKENS,
        "messages": [
            {"role": "user", "content": words},
            {"role": "assistant", "content": [called]},
            {"role": "user", "content": [result]},
        ],
        "tools": [{"name": _TOOL, "description": _ABOUT, "input_schema": _SCHEMA}],
    }


def _responses_pasted(model: str, words: str, image: Image | None) -> Json:
    said: list[Json] = [{"type": "input_text", "text": words}]
    shown: list[Json] = [{"type": "input_image", "image_url": image.data_url}] if image else []
    return {"model": model, "store": False, "input": [{"role": "user", "content": said + shown}]}


def _responses_brought(model: str, words: str, image: Image) -> Json:
    output: Json = [{"type": "input_text", "text": _HERE}, {"type": "input_image", "image_url": image.data_url}]
    return {
        "model": model,
        "store": False,
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": words}]},
            {"type": "function_call", "call_id": _CALL, "name": _TOOL, "arguments": "{}"},
            {"type": "function_call_output", "call_id": _CALL, "output": output},
        ],
        "tools": [{"type": "function", "name": _TOOL, "description": _ABOUT, "parameters": _SCHEMA, "strict": False}],
    }


def _gemini_image(image: Image) -> Json:
    return {"inlineData": {"mimeType": image.mime, "data": image.base64}}


def _gemini_pasted(model: str, words: str, image: Image | None) -> Json:
    shown: list[Json] = [_gemini_image(image)] if image else []
    return {"contents": [{"role": "user", "parts": [{"text": words}, *shown]}]}


def _gemini_brought(model: str, words: str, image: Image) -> Json:
    called: Json = {"functionCall": {"id": _CALL, "name": _TOOL, "args": {}}, "thoughtSignature": _UNSIGNED}
    response: Json = {"id": _CALL, "name": _TOOL, "response": {"output": _HERE}, "parts": [_gemini_image(image)]}
    return {
        "contents": [
            {"role": "user", "parts": [{"text": words}]},
            {"role": "model", "parts": [called]},
            {"role": "user", "parts": [{"functionResponse": response}]},
        ],
        "tools": [{"functionDeclarations": [{"name": _TOOL, "description": _ABOUT}]}],
    }


FORMS: Mapping[WireName, Form] = {
    "anthropic": Form(
        lambda model: "/v1/messages",
        _messages_pasted,
        _messages_brought,
        messages.words,
        {"anthropic-version": "2023-06-01"},
    ),
    "openai_chat": Form(lambda model: "/v1/chat/completions", _chat_pasted, _chat_brought, chat.words, {}),
    "openai_responses": Form(lambda model: "/v1/responses", _responses_pasted, _responses_brought, responses.words, {}),
    "gemini": Form(
        gemini.path,
        _gemini_pasted,
        _gemini_brought,
        gemini.words,
        {},
    ),
}
