"""Codecs, one file a wire: pure functions from bodies to scenes and from fates to edits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import orjson

from sightline.model.edit import Edit
from sightline.model.profile import Profile, WireName
from sightline.model.scene import Json, Scene
from sightline.wire import anthropic, openai_chat
from sightline.wire.listen import Voice
from sightline.wire.shape import TextOf

Fault = Callable[[str], Json]
"""The wire's own shape for an error with this message."""


@dataclass(frozen=True, slots=True)
class Wire:
    name: WireName
    paths: Sequence[str]
    counts: Sequence[str]  # those of `paths` that only count tokens
    read: Callable[[Json, TextOf], Scene]
    lower: Callable[[Scene, Json, Profile], list[Edit]]
    permanent: Fault  # what will fail again
    passing: Fault  # what may work in a moment
    voice: Voice


def _anthropic_error(kind: str) -> Fault:
    return lambda message: {"type": "error", "error": {"type": kind, "message": message}}


def _openai_error(kind: str) -> Fault:
    # The message comes first: some agents show the raw body.
    return lambda message: {"error": {"message": message, "type": kind, "param": None, "code": "sightline"}}


ANTHROPIC = Wire(
    name="anthropic",
    paths=anthropic.PATHS,
    counts=("/v1/messages/count_tokens",),
    read=anthropic.read,
    lower=anthropic.lower,
    permanent=_anthropic_error("invalid_request_error"),
    passing=_anthropic_error("api_error"),
    voice=Voice(
        last=b'"message_stop"',
        alive=b'event: ping\ndata: {"type": "ping"}\n\n',
        failure=lambda message: (
            b"event: error\ndata: " + orjson.dumps(_anthropic_error("api_error")(message)) + b"\n\n"
        ),
    ),
)

OPENAI_CHAT = Wire(
    name="openai_chat",
    paths=openai_chat.PATHS,
    counts=(),
    read=openai_chat.read,
    lower=openai_chat.lower,
    permanent=_openai_error("invalid_request_error"),
    passing=_openai_error("server_error"),
    voice=Voice(
        last=b"\ndata: [DONE]",  # with its line end, which no words inside an event can hold
        alive=b": sightline is waiting\n\n",
        failure=lambda message: b"data: " + orjson.dumps(_openai_error("server_error")(message)) + b"\n\n",
    ),
)

WIRES: tuple[Wire, ...] = (ANTHROPIC, OPENAI_CHAT)
