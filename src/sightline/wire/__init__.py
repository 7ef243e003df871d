"""Codecs, one file a wire: pure functions from bodies to scenes and from fates to edits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sightline.model.edit import Edit
from sightline.model.profile import Profile, WireName
from sightline.model.scene import Json, Scene
from sightline.wire import anthropic, gemini, openai_chat, openai_responses, replies
from sightline.wire.codec import Endpoint
from sightline.wire.listen import Voice
from sightline.wire.replies import Fault
from sightline.wire.shape import Texts

_WAITING = b": sightline is waiting\n\n"


@dataclass(frozen=True, slots=True)
class Wire:
    name: WireName
    match: Callable[[str], Endpoint | None]  # of a path; None: it is not this wire's
    read: Callable[[Json, Texts], Scene]
    lower: Callable[[Scene, Json, Profile], list[Edit]]
    head: Sequence[str]  # the keys of what stands before the first message: tools, system
    items: str  # the key of the messages
    permanent: Fault  # what will fail again
    passing: Fault  # what may work in a moment
    voice: Voice


def _paths(asked: Sequence[str], counted: Sequence[str] = ()) -> Callable[[str], Endpoint | None]:
    known = {path: Endpoint(path, counts=path in counted) for path in (*asked, *counted)}
    return known.get


ANTHROPIC = Wire(
    name="anthropic",
    match=_paths(anthropic.PATHS, anthropic.COUNTS),
    read=anthropic.read,
    lower=anthropic.lower,
    head=anthropic.HEAD,
    items=anthropic.ITEMS,
    permanent=replies.anthropic("invalid_request_error"),
    passing=replies.anthropic("api_error"),
    voice=Voice(
        last=(b'"message_stop"',),
        alive=b'event: ping\ndata: {"type": "ping"}\n\n',
        failure=replies.anthropic_event,
    ),
)

OPENAI_CHAT = Wire(
    name="openai_chat",
    match=_paths(openai_chat.PATHS),
    read=openai_chat.read,
    lower=openai_chat.lower,
    head=openai_chat.HEAD,
    items=openai_chat.ITEMS,
    permanent=replies.openai("invalid_request_error"),
    passing=replies.openai("server_error"),
    voice=Voice(
        last=(b"\ndata: [DONE]",),  # with its line end, which no words inside an event can hold
        alive=_WAITING,
        failure=replies.openai_event,
    ),
)

OPENAI_RESPONSES = Wire(
    name="openai_responses",
    match=_paths(openai_responses.PATHS, openai_responses.COUNTS),
    read=openai_responses.read,
    lower=openai_responses.lower,
    head=openai_responses.HEAD,
    items=openai_responses.ITEMS,
    permanent=replies.openai("invalid_request_error"),
    passing=replies.openai("server_error"),
    voice=Voice(
        # The event repeats the whole answer behind its name. Quotes inside words are escaped, so no words are taken
        # for it.
        last=(b'"response.completed"', b'"response.incomplete"', b'"response.failed"'),
        amid=True,
        alive=_WAITING,
        failure=replies.responses_event,
    ),
)

GEMINI = Wire(
    name="gemini",
    match=gemini.match,
    read=gemini.read,
    lower=gemini.lower,
    head=gemini.HEAD,
    items=gemini.ITEMS,
    permanent=replies.google(400, "INVALID_ARGUMENT"),
    passing=replies.google(503, "UNAVAILABLE"),
    voice=Voice(
        last=(b'"finishReason"',),
        amid=True,
        alive=b"",  # every client of this wire takes a comment for a broken answer
        failure=replies.google_event,
    ),
)

WIRES: tuple[Wire, ...] = (ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES, GEMINI)
