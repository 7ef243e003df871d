"""Splitting a stream into lines: each byte comes out once, in order, and a held line is complete."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.surfaces.acp.pipes import MAX_HEAD, HeldLine, LineSplitter, MessageHead, PassedBytes, parse_head
from tests.requirements import requirement

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
MESSAGES = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0")},
    optional={
        "id": st.integers() | st.text(max_size=8) | st.none(),
        "method": st.sampled_from(["session/prompt", "session/update", "x"]) | st.text(max_size=8),
        "params": st.dictionaries(st.text(max_size=8), JSON, max_size=3),
        "result": JSON,
    },
)
LINES = st.lists(
    st.builds(lambda value, plain: json.dumps(value, ensure_ascii=plain).encode(), MESSAGES | JSON, st.booleans())
    | st.binary(max_size=30).map(lambda raw: raw.replace(b"\n", b" ")),
    max_size=8,
)


def cut(stream: bytes, sizes: list[int], most: int) -> list[PassedBytes | HeldLine]:
    cutter = LineSplitter(lambda head: most if head.method == "session/prompt" else 0)
    found: list[PassedBytes | HeldLine] = []
    at = 0
    for size in [*sizes, len(stream)]:
        pieces = cutter.feed(stream[at : at + size])
        found += [
            PassedBytes(bytes(each.data), each.ends_line) if isinstance(each, PassedBytes) else each for each in pieces
        ]
        at += size
    return [*found, *cutter.flush()]


@given(LINES, st.lists(st.integers(1, 40), max_size=30), st.booleans(), st.sampled_from([10, 60, 10_000]))
@requirement("acp.relay")
def test_every_byte_comes_out_once_and_in_order(lines: list[bytes], sizes: list[int], ended: bool, most: int) -> None:
    stream = b"\n".join(lines) + (b"\n" if ended else b"")
    found = cut(stream, sizes, most)
    assert b"".join(bytes(each.data) for each in found) == stream
    open_line = False
    for each in found:
        if isinstance(each, HeldLine):
            assert not open_line, "a held line never stands within another"
            assert each.data.count(b"\n") == each.data.endswith(b"\n")
            assert len(each.data) <= most or each.head.method != "session/prompt"
        else:
            assert each.ends_line == bytes(each.data).endswith(b"\n")
            open_line = not each.ends_line


@given(MESSAGES, st.booleans())
def test_the_first_members_of_a_line_tell_what_it_is(message: dict[str, Any], sort: bool) -> None:
    keys = sorted(message) if sort else [*message]
    holds = next((key for key in keys if isinstance(message[key], (dict, list))), "")
    before = {key: message[key] for key in (keys[: keys.index(holds)] if holds else keys)}
    assert parse_head(json.dumps(message, sort_keys=sort).encode()) == MessageHead(
        before.get("method"), before.get("id"), holds
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"a","params":{"x":1', MessageHead("a", 7, "params")),
        (b' {"id":"\\u0061","result":', None),
        (b'{"id":"\\u0061","result":[', MessageHead(None, "a", "result")),
        (b'{"params":{"method":"session/prompt"}}', MessageHead(object_member="params")),
        (b'{"id":null,"method":"a"}', MessageHead("a", None, "")),
        (b'{"method":3,"id":true}', MessageHead(None, True, "")),
        (b'{"method":"a', None),
        (b"[1]", MessageHead()),
        (b"", None),
        (b"   ", None),
        (b"hello", MessageHead()),
    ],
)
def test_the_head_of_a_line_is_parsed(line: bytes, expected: MessageHead | None) -> None:
    assert parse_head(line) == expected


def test_a_line_with_a_long_head_passes_through() -> None:
    cutter = LineSplitter(lambda head: 0)
    long = b'{"id":"' + b"a" * (MAX_HEAD + 10)
    assert b"".join(bytes(each.data) for each in cutter.feed(long)) == long


def test_a_long_line_passes_through_piece_by_piece() -> None:
    cutter = LineSplitter(lambda head: 0)
    assert [bytes(each.data) for each in cutter.feed(b'{"method":"x","params":{')] == [b'{"method":"x","params":{']
    assert [(bytes(each.data), each.ends_line) for each in cutter.feed(b"aaa") if isinstance(each, PassedBytes)] == [
        (b"aaa", False)
    ]
    assert [
        (bytes(each.data), each.ends_line) for each in cutter.feed(b"b}}\n1\n") if isinstance(each, PassedBytes)
    ] == [(b"b}}\n1\n", True)]
