"""The wires: codecs for the request bodies of four APIs, and for content that programs pass to each other.

Each is a file with pure functions: `read` finds the sights in a body, `lower` writes their fates as edits. A wire also
has paths and its own shape for errors. A new one is a file and an entry in `WIRES` or `CONTENTS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sightline.model.profile import Profile, WireName
from sightline.model.scene import Edit, Json, Scene
from sightline.wire import anthropic, content_blocks, gemini, model_message, openai_chat, openai_responses
from sightline.wire.json_tree import Texts
from sightline.wire.scene_reader import Endpoint
from sightline.wire.sse import StreamFormat

BuildError = Callable[[str], Json]
"""Returns the body of an error with this message."""

_KEEP_ALIVE = b": sightline is waiting\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Codec:
    name: str
    read: Callable[[Json, Texts], Scene]
    lower: Callable[[Scene, Json, Profile], list[Edit]]
    head_keys: Sequence[str] = ()  # the keys of what comes before the first message, such as tools and system prompt
    messages_key: str  # the key of the messages or blocks
    is_one_message: bool = False  # the key has the blocks of one message


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire(Codec):
    name: WireName
    match_path: Callable[[str], Endpoint | None]  # None: the path isn't one of this wire
    permanent_error: BuildError  # the request would fail again
    temporary_error: BuildError  # the request may work when it is sent again
    stream_format: StreamFormat


def _match_exactly(paths: Sequence[str], counting_paths: Sequence[str] = ()) -> Callable[[str], Endpoint | None]:
    known = {path: Endpoint(path, counts_tokens=path in counting_paths) for path in (*paths, *counting_paths)}
    return known.get


ANTHROPIC = Wire(
    name="anthropic",
    match_path=_match_exactly(anthropic.PATHS, anthropic.COUNTING_PATHS),
    read=anthropic.read,
    lower=anthropic.lower,
    head_keys=anthropic.HEAD_KEYS,
    messages_key=anthropic.MESSAGES_KEY,
    permanent_error=anthropic.make_error("invalid_request_error"),
    temporary_error=anthropic.make_error("api_error"),
    stream_format=StreamFormat(
        end_marks=(b'"message_stop"',),
        keep_alive=b'event: ping\ndata: {"type": "ping"}\n\n',
        write_error=anthropic.write_error,
    ),
)

OPENAI_CHAT = Wire(
    name="openai_chat",
    match_path=_match_exactly(openai_chat.PATHS),
    read=openai_chat.read,
    lower=openai_chat.lower,
    head_keys=openai_chat.HEAD_KEYS,
    messages_key=openai_chat.MESSAGES_KEY,
    permanent_error=openai_chat.make_error("invalid_request_error"),
    temporary_error=openai_chat.make_error("server_error"),
    stream_format=StreamFormat(
        end_marks=(b"\ndata: [DONE]",),  # with its line break, which is escaped in the text of any event
        keep_alive=_KEEP_ALIVE,
        write_error=openai_chat.write_error,
    ),
)

OPENAI_RESPONSES = Wire(
    name="openai_responses",
    match_path=_match_exactly(openai_responses.PATHS, openai_responses.COUNTING_PATHS),
    read=openai_responses.read,
    lower=openai_responses.lower,
    head_keys=openai_responses.HEAD_KEYS,
    messages_key=openai_responses.MESSAGES_KEY,
    permanent_error=openai_chat.make_error("invalid_request_error"),
    temporary_error=openai_chat.make_error("server_error"),
    stream_format=StreamFormat(
        # The event repeats the whole answer after its name. Quotes in that are escaped, so it can't contain a mark.
        end_marks=(b'"response.completed"', b'"response.incomplete"', b'"response.failed"'),
        needs_event_end=True,
        keep_alive=_KEEP_ALIVE,
        write_error=openai_responses.write_error,
    ),
)

GEMINI = Wire(
    name="gemini",
    match_path=gemini.match_path,
    read=gemini.read,
    lower=gemini.lower,
    head_keys=gemini.HEAD_KEYS,
    messages_key=gemini.MESSAGES_KEY,
    permanent_error=gemini.make_error(400, "INVALID_ARGUMENT"),
    temporary_error=gemini.make_error(503, "UNAVAILABLE"),
    stream_format=StreamFormat(
        end_marks=(b'"finishReason"',),
        needs_event_end=True,
        keep_alive=b"",  # all clients of this wire take a comment for a broken answer
        write_error=gemini.write_error,
    ),
)

WIRES: tuple[Wire, ...] = (ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES, GEMINI)

# Content that programs pass to each other: no provider accepts these shapes. A body is an object that has the list of
# messages or blocks under `messages_key`; a caller that has the bare list wraps it first.

MODEL_MESSAGE = Codec(
    name="model_message",
    read=model_message.read,
    lower=model_message.lower,
    messages_key=model_message.MESSAGES_KEY,
)
MCP = Codec(
    name="mcp",
    read=content_blocks.read_mcp,
    lower=content_blocks.lower_mcp,
    messages_key=content_blocks.MCP_KEY,
    is_one_message=True,
)
ACP = Codec(
    name="acp",
    read=content_blocks.read_acp,
    lower=content_blocks.lower_acp,
    messages_key=content_blocks.ACP_KEY,
    is_one_message=True,
)

CONTENTS: tuple[Codec, ...] = (MODEL_MESSAGE, MCP, ACP)
