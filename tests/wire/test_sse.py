"""Server-sent events: where they end, what they contain, and how they are written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.wire.sse import EventBuffer, begins_stream, may_begin_stream, read_event, split_events, write_event

STREAM = b'event: ping\ndata: {"type": "ping"}\n\ndata: 1\r\n\r\n: a comment\n\ndata: a\ndata: b\n\ndata: [DONE]\n\n'


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_events_end_with_a_blank_line(end: bytes) -> None:
    stream = STREAM.replace(b"\r\n", b"\n").replace(b"\n", end)
    events = list(split_events(stream))
    assert b"".join(events) == stream
    assert [read_event(event) for event in events] == [
        ("ping", b'{"type": "ping"}'),
        ("", b"1"),
        ("", b""),
        ("", b"a\nb"),
        ("", b"[DONE]"),
    ]


def test_an_event_without_its_end_comes_last() -> None:
    assert list(split_events(b"data: 1\n\ndata: 2")) == [b"data: 1\n\n", b"data: 2"]


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_a_written_event_is_read_back(line_end: bytes) -> None:
    event = write_event("delta", {"text": "a\nb"}, line_end)
    assert list(split_events(event)) == [event]
    assert read_event(event) == ("delta", b'{"text":"a\\nb"}')


@given(st.data())
def test_a_buffer_returns_whole_events_for_any_split(data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(0, len(STREAM)))))
    pieces = [STREAM[a:b] for a, b in zip([0, *cuts], [*cuts, len(STREAM)], strict=True)]
    buffer, given_out = EventBuffer(), b""
    for piece in pieces:
        whole = buffer.feed(piece)
        assert not whole or whole.endswith((b"\n\n", b"\n\r\n"))
        given_out += whole
        assert STREAM.startswith(given_out)
    assert given_out + buffer.flush() == STREAM
    assert buffer.size == 0


def test_a_buffer_returns_each_event_at_its_last_byte() -> None:
    buffer = EventBuffer()
    given_out = [whole for byte in STREAM if (whole := buffer.feed(bytes([byte])))]
    assert given_out == list(split_events(STREAM))


@pytest.mark.parametrize("start", [b"data: 1", b"\xef\xbb\xbfdata: 1", b"\n\nevent: a", b": waiting"])
def test_the_beginning_of_a_stream_is_recognised(start: bytes) -> None:
    assert begins_stream(start)
    assert not begins_stream(b"{" + start)


def test_a_few_bytes_may_become_a_stream() -> None:
    assert may_begin_stream(b"da")
    assert may_begin_stream(b"")
    assert not may_begin_stream(b"dx")
