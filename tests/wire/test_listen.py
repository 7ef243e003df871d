"""Answers as they come, stall, break and end, on both wires."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.wire import ANTHROPIC, OPENAI_CHAT, Wire
from sightline.wire.listen import Broken, Chunk, Stalled, Voice
from tests.requirements import requirement
from tests.wire.playbook import Playbook

MESSAGES = b"".join(
    b"event: %b\ndata: %b\n\n" % (json.loads(data)["type"].encode(), data)
    for data in (
        b'{"type":"message_start","message":{"id":"msg_1","content":[],"usage":{"input_tokens":3}}}',
        b'{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}',
        b'{"type": "ping"}',
        rb'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"say \"message_stop\""}}',
        b'{"type":"content_block_stop","index":0}',
        b'{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4}}',
        b'{"type":"message_stop"}',
    )
)
CHAT = b"".join(
    b"data: %b\n\n" % data
    for data in (
        b'{"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}',
        b'{"id":"c","choices":[{"index":0,"delta":{"content":"data: [DONE]"}}]}',
        rb'{"id":"c","choices":[{"index":0,"delta":{"content":"\n\ndata: [DONE]"}}]}',
        b'{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}',
        b"[DONE]",
    )
)
STREAMS = [(ANTHROPIC, MESSAGES), (OPENAI_CHAT, CHAT)]
DONE = {"anthropic": len(MESSAGES.removesuffix(b"}\n\n")), "openai_chat": len(CHAT.removesuffix(b"\n\n"))}
CUT = Broken("the upstream's answer broke off")

both = pytest.mark.parametrize(("wire", "stream"), STREAMS, ids=[wire.name for wire, _ in STREAMS])


def error_in(wire: Wire, said: bytes) -> str:
    """The message of the one event that was said, in the wire's own shape."""
    assert said.endswith(b"\n\n")
    (data,) = (line for line in said.splitlines() if line.startswith(b"data: "))
    shape = json.loads(data.removeprefix(b"data: "))
    assert ("event: error" in said.decode()) == (wire is ANTHROPIC)
    message: str = shape["error"]["message"]
    assert shape == wire.passing(message)
    return message


@both
@requirement("stream.verbatim")
@given(data=st.data())
def test_bytes_go_on_as_they_came_however_they_were_cut(wire: Wire, stream: bytes, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    book = Playbook(wire.voice)
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        if start < end:
            book >> Chunk(stream[start:end]) << stream[start:end] >> Stalled() << b""
    book >> CUT << b""


@both
def test_one_byte_at_a_time(wire: Wire, stream: bytes) -> None:
    book = Playbook(wire.voice)
    for byte in stream:
        book >> Chunk(bytes([byte])) << bytes([byte])
    book >> CUT << b""


@both
def test_a_client_that_waits_is_kept_alive_until_the_upstream_speaks(wire: Wire, stream: bytes) -> None:
    alive = wire.voice.alive
    book = Playbook(wire.voice) >> Stalled() << alive >> Stalled() << alive
    book >> Chunk(stream[:10]) << stream[:10] >> Stalled() << b""
    book >> Chunk(stream[10:]) << stream[10:] >> Stalled() << b""


@pytest.mark.parametrize(
    ("voice", "event"), [(ANTHROPIC.voice, b'event: ping\ndata: {"type": "ping"}\n\n'), (OPENAI_CHAT.voice, None)]
)
def test_a_keep_alive_is_an_event_that_clients_skip(voice: Voice, event: bytes | None) -> None:
    assert voice.alive == event if event else voice.alive.startswith(b":")
    assert voice.alive.endswith(b"\n\n")


@both
@requirement("stream.broken")
def test_an_upstream_that_fails_before_it_speaks_is_told_in_the_wire_s_own_words(wire: Wire, stream: bytes) -> None:
    said = wire.voice.failure("nothing listens there")
    Playbook(wire.voice) >> Broken("nothing listens there") << said
    Playbook(wire.voice) >> Stalled() << wire.voice.alive >> Broken("nothing listens there") << said
    assert error_in(wire, said) == "nothing listens there"


@both
@requirement("stream.broken")
def test_a_break_at_every_place_is_told_once_and_a_break_after_the_last_event_never(wire: Wire, stream: bytes) -> None:
    said = wire.voice.failure(CUT.message)
    for end in range(1, len(stream) + 1):
        book = Playbook(wire.voice) >> Chunk(stream[:end]) << stream[:end]
        if end >= DONE[wire.name]:
            book >> CUT << b""
        else:
            between_events = stream[:end].endswith(b"\n\n")
            book >> CUT << (said if between_events else b"\n\n" + said) >> CUT << b""


@both
def test_an_error_never_runs_into_an_event_that_was_cut(wire: Wire, stream: bytes) -> None:
    half = stream[: stream.index(b"\n\n") + 20]
    Playbook(wire.voice) >> Chunk(half) << half >> CUT << b"\n\n" + wire.voice.failure(CUT.message)


@given(st.text(max_size=50))
def test_no_message_can_end_its_event_early(message: str) -> None:
    for wire, _ in STREAMS:
        assert error_in(wire, wire.voice.failure(message)) == message


def test_an_answer_that_is_only_the_last_event_is_whole() -> None:
    only = b"data: [DONE]\n\n"
    Playbook(OPENAI_CHAT.voice) >> Chunk(only) << only >> CUT << b""
