"""Streams that are relayed, stall, break and end, on every wire."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.wire import ANTHROPIC, GEMINI, OPENAI_CHAT, OPENAI_RESPONSES, Wire
from sightline.wire.sse import UpstreamBytes, UpstreamFailure, UpstreamSilence
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
RESPONSES = b"".join(
    b"event: %b\ndata: %b\n\n" % (json.loads(data)["type"].encode(), data)
    for data in (
        b'{"type":"response.created","response":{"id":"resp_1","status":"in_progress","output":[]}}',
        rb'{"type":"response.output_text.delta","delta":"say \"response.completed\""}',
        b'{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":["the whole of it"]}}',
    )
)
CONTENTS = b"".join(
    b"data: %b\r\n\r\n" % data
    for data in (
        rb'{"candidates":[{"content":{"parts":[{"text":"say \"finishReason\""}]}}]}',
        b'{"candidates":[{"content":{"parts":[{"text":"!"}]},"finishReason":"STOP"}],"usageMetadata":{"x":1}}',
    )
)
STREAMS = [(ANTHROPIC, MESSAGES), (OPENAI_CHAT, CHAT), (OPENAI_RESPONSES, RESPONSES), (GEMINI, CONTENTS)]
DONE = {  # how much of a stream has to come for it to be whole
    "anthropic": len(MESSAGES.removesuffix(b"}\n\n")),
    "openai_chat": len(CHAT.removesuffix(b"\n\n")),
    "openai_responses": len(RESPONSES),
    "gemini": len(CONTENTS),
}
CUT = UpstreamFailure("the upstream's answer broke off")

both = pytest.mark.parametrize(("wire", "stream"), STREAMS, ids=[wire.name for wire, _ in STREAMS])


def error_in(wire: Wire, said: bytes) -> str:
    """Return the message of an error in the wire's own shape."""
    assert said.endswith(b"\n\n")
    if wire is GEMINI:  # bare, as Google breaks into its own streams
        shape = json.loads(said)
        assert shape == wire.temporary_error(shape["error"]["message"])
        return str(shape["error"]["message"])
    events = [event.partition("data: ") for event in said.decode().removesuffix("\n\n").split("\n\n")]
    names = [name.removeprefix("event: ").strip() for name, _, _ in events]
    shapes = [json.loads(data) for _, _, data in events]
    message: str = shapes[0]["error"]["message"]
    if wire is OPENAI_RESPONSES:
        assert names == [shape["type"] for shape in shapes] == ["error", "response.failed"]
        assert shapes[0]["message"] == shapes[1]["response"]["error"]["message"] == message
    else:
        assert names == (["error"] if wire is ANTHROPIC else [""])
        assert shapes == [wire.temporary_error(message)]
    return message


@both
@requirement("stream.verbatim")
@given(data=st.data())
def test_bytes_are_relayed_unchanged_for_any_split(wire: Wire, stream: bytes, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    book = Playbook(wire.stream_format)
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        if start < end:
            book >> UpstreamBytes(stream[start:end]) << stream[start:end] >> UpstreamSilence() << b""
    book >> CUT << b""


@both
def test_one_byte_at_a_time(wire: Wire, stream: bytes) -> None:
    book = Playbook(wire.stream_format)
    for byte in stream:
        book >> UpstreamBytes(bytes([byte])) << bytes([byte])
    book >> CUT << b""


@both
def test_a_client_that_waits_is_kept_alive_until_the_upstream_speaks(wire: Wire, stream: bytes) -> None:
    alive = wire.stream_format.keep_alive
    book = Playbook(wire.stream_format) >> UpstreamSilence() << alive >> UpstreamSilence() << alive
    book >> UpstreamBytes(stream[:10]) << stream[:10] >> UpstreamSilence() << b""
    book >> UpstreamBytes(stream[10:]) << stream[10:] >> UpstreamSilence() << b""


@requirement("stream.gemini")
def test_a_keep_alive_is_an_event_that_clients_skip() -> None:
    assert ANTHROPIC.stream_format.keep_alive == b'event: ping\ndata: {"type": "ping"}\n\n'
    for wire in (OPENAI_CHAT, OPENAI_RESPONSES):
        assert wire.stream_format.keep_alive.startswith(b":")
        assert wire.stream_format.keep_alive.endswith(b"\n\n")
    assert GEMINI.stream_format.keep_alive == b"", "its clients take anything that is no answer for a broken one"


@both
@requirement("stream.broken")
def test_a_failure_before_the_first_byte_is_reported_in_the_wire_s_shape(wire: Wire, stream: bytes) -> None:
    said = wire.stream_format.write_error("nothing listens there")
    Playbook(wire.stream_format) >> UpstreamFailure("nothing listens there") << said
    (
        Playbook(wire.stream_format)
        >> UpstreamSilence()
        << wire.stream_format.keep_alive
        >> UpstreamFailure("nothing listens there")
        << said
    )
    assert error_in(wire, said) == "nothing listens there"


@both
@requirement("stream.broken")
def test_a_break_is_reported_once_and_never_after_the_last_event(wire: Wire, stream: bytes) -> None:
    said = wire.stream_format.write_error(CUT.message)
    for end in range(1, len(stream) + 1):
        book = Playbook(wire.stream_format) >> UpstreamBytes(stream[:end]) << stream[:end]
        if end >= DONE[wire.name]:
            book >> CUT << b""
        else:
            between_events = stream[:end].endswith((b"\n\n", b"\n\r\n"))
            book >> CUT << (said if between_events else b"\n\n" + said) >> CUT << b""


@both
def test_an_error_never_runs_into_an_event_that_was_cut(wire: Wire, stream: bytes) -> None:
    half = stream[: stream.index(b"data: ") + 20]
    (
        Playbook(wire.stream_format)
        >> UpstreamBytes(half)
        << half
        >> CUT
        << b"\n\n" + wire.stream_format.write_error(CUT.message)
    )


@given(st.text(max_size=50))
def test_no_message_can_end_its_event_early(message: str) -> None:
    for wire, _ in STREAMS:
        assert error_in(wire, wire.stream_format.write_error(message)) == message


def test_an_answer_that_is_only_the_last_event_is_whole() -> None:
    only = b"data: [DONE]\n\n"
    Playbook(OPENAI_CHAT.stream_format) >> UpstreamBytes(only) << only >> CUT << b""


@pytest.mark.parametrize("kind", ["response.completed", "response.incomplete", "response.failed"])
def test_a_response_ends_in_one_of_three_ways(kind: str) -> None:
    last = b'event: %b\ndata: {"type":"%b","response":{}}\n\n' % (kind.encode(), kind.encode())
    Playbook(OPENAI_RESPONSES.stream_format) >> UpstreamBytes(last) << last >> CUT << b""


def test_braces_of_a_message_are_not_counted_as_those_of_google_s_error() -> None:
    said = GEMINI.stream_format.write_error("an odd } one {{")
    assert said.count(b"{") == said.count(b"}") == 2
    assert error_in(GEMINI, said) == "an odd } one {{"
