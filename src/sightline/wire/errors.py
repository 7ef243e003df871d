"""Errors in each wire's own shape: as the body of an answer, and inside a stream that has begun."""

from __future__ import annotations

from collections.abc import Callable

import orjson

from sightline.model.scene import Json

Fault = Callable[[str], Json]
"""A wire's own shape for an error with this message."""


def anthropic(kind: str) -> Fault:
    return lambda message: {"type": "error", "error": {"type": kind, "message": message}}


def openai(kind: str) -> Fault:
    # The message comes first: some agents show the raw body.
    return lambda message: {"error": {"message": message, "type": kind, "param": None, "code": "sightline"}}


def google(code: int, status: str) -> Fault:
    return lambda message: {"error": {"code": code, "message": message, "status": status}}


def anthropic_event(message: str) -> bytes:
    return event("error", anthropic("api_error")(message))


def openai_event(message: str) -> bytes:
    return event("", openai("server_error")(message))


def responses_event(message: str) -> bytes:
    """Said twice: OpenAI's own SDK raises whatever has an `error`, and others read only the end of a response."""
    said = {"code": "server_error", "message": message, "param": None}
    error: Json = {"type": "error", **said, "sequence_number": 0, "error": {"type": "server_error", **said}}
    failed: Json = {
        "id": "resp_sightline",
        "object": "response",
        "created_at": 0,
        "status": "failed",
        "error": {"code": "server_error", "message": message},
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": "",
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": None,
    }
    end: Json = {"type": "response.failed", "sequence_number": 1, "response": failed}
    return event("error", error) + event("response.failed", end)


def google_event(message: str) -> bytes:
    """Bare, as Google itself breaks into its streams: one of its SDKs takes it for an error only without `data:`.

    Another counts braces to find its end, so those of the message are escaped.
    """
    before, _, after = orjson.dumps(google(503, "UNAVAILABLE")("")).partition(b'""')
    quoted = orjson.dumps(message).replace(b"{", rb"\u007b").replace(b"}", rb"\u007d")
    return before + quoted + after + b"\n\n"


def event(name: str, data: Json) -> bytes:
    """One event of a stream; without a name, its data alone."""
    return (f"event: {name}\n".encode() if name else b"") + b"data: " + orjson.dumps(data) + b"\n\n"
