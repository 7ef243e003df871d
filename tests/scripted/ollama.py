"""The face that Ollama shows beside its OpenAI-compatible one: which models there are, what they can, and a chat."""

import json
from collections.abc import Iterator
from typing import Any

from tests.scripted.models import SEES, Models, sees
from tests.scripted.talk import Asked, Json, No, Picture, Said

PART = "images"
PRELUDE: tuple[bytes, ...] = ()
_ROLES = {"system", "user", "assistant", "tool"}
_BEGINNINGS = {"iVBOR": "image/png", "/9j/": "image/jpeg", "UklGR": "image/webp"}


def names(models: Models) -> list[str]:
    """The models that the table names without a pattern."""
    return [pattern for pattern, _ in models if not set(pattern) & set("*?[")]


def tags(models: Models) -> Json:
    """GET /api/tags."""
    return {
        "models": [
            {
                "name": name,
                "model": name,
                "modified_at": "2026-09-01T10:00:00Z",
                "size": 3_338_801_804,
                "digest": f"{number:064x}",
                "details": {"format": "gguf", "family": "scripted", "parameter_size": "4B"},
            }
            for number, name in enumerate(names(models), 1)
        ]
    }


def show(models: Models, body: Json) -> Json | No:
    """POST /api/show: a model that sees has the capability `vision`."""
    name = str(body.get("model") or body.get("name"))
    what = sees(models, name)
    if what is None:
        message = f"model '{name}' not found"
        return No(404, message, shape={"error": message})
    capabilities = ["completion", "tools", *(["vision"] if what == SEES else [])]
    return {
        "details": {"format": "gguf", "family": "scripted"},
        "model_info": {},
        "capabilities": capabilities,
    }


def read(body: Json, *, counting: bool = False, lenient: bool = False) -> Asked | No:
    """POST /api/chat: content is a string, and images stand beside it as bare base64."""
    messages = body.get("messages")
    if not isinstance(body.get("model"), str) or not body["model"]:
        return No(400, "model is required")
    if not isinstance(messages, list) or not all(isinstance(one, dict) for one in messages):
        return No(400, "json: cannot unmarshal messages")
    for message in messages:
        if message.get("role") not in _ROLES:
            return No(400, "invalid role")
        if not isinstance(message.get("content"), str):
            return No(
                400, "json: cannot unmarshal array into Go struct field ChatRequest.messages.content of type string"
            )
        if broken := next((one for one in message.get(PART) or () if not _kind(one)), None):
            return No(400, f"illegal base64 data, or an unknown image format: {str(broken)[:20]}")
    return Asked(
        model=body["model"],
        stream=body.get("stream") is not False,
        wants_usage=True,
        pictures=tuple(_pictures(messages)),
        words=tuple(message["content"] for message in messages if message["role"] in {"user", "tool"}),
        tools=frozenset(),
        steps=0,
    )


def _kind(image: Any) -> str:
    return next((mime for start, mime in _BEGINNINGS.items() if isinstance(image, str) and image.startswith(start)), "")


def _pictures(messages: list[Json]) -> Iterator[Picture]:
    for number, message in enumerate(messages):
        for at, image in enumerate(message.get(PART) or ()):
            yield Picture(f"messages[{number}].{PART}[{at}]", _kind(image), image, message["role"] == "tool")


def index(picture: Picture) -> int:
    return int(picture.where[len("messages[") :].partition("]")[0])


def error(no: No) -> Json:
    return no.shape or {"error": no.message}


def error_event(no: No) -> bytes:
    return json.dumps(error(no)).encode() + b"\n"


def whole(asked: Asked, said: Said) -> Json:
    return {
        "model": asked.model,
        "created_at": "2026-09-01T10:00:00Z",
        "message": {"role": "assistant", "content": said.text},
        "done": True,
        "done_reason": "stop",
        "total_duration": 1,
        "prompt_eval_count": asked.tokens,
        "eval_count": said.tokens,
    }


def events(asked: Asked, said: Said) -> list[bytes]:
    return [json.dumps(whole(asked, said)).encode() + b"\n"]
