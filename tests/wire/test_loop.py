"""Calls of ours in a stream: however it is cut, the same goes out, and what is not ours goes out as it came."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.wire.loop import LOOPS, Past
from sightline.wire.loop.leg import Block, known_by, seen, summed
from tests.proxy.legs import WIRES, Call, Json, Leg, echo, events, heard, joined, said
from tests.proxy.legs import seen as shown
from tests.requirements import requirement

NAMES = frozenset({"analyze_image", "view_image"})
_WORDS = st.text(max_size=12)
_IDS = st.sampled_from(["call_0123456789abcdef", "Read:0", "", "functions.Read:1"])
_CALLS = st.builds(Call, _IDS, st.sampled_from(["analyze_image", "Read"]), st.fixed_dictionaries({"path": _WORDS}))
LEGS = st.builds(Leg, _WORDS, st.lists(_CALLS, max_size=3).map(tuple), st.sampled_from(["", "hm"]))
EVERY_WIRE = pytest.mark.parametrize("wire", WIRES)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({cut % (len(data) + 1) for cut in cuts})
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]


@EVERY_WIRE
@requirement("stream.own_calls", "loop.one_message")
@given(leg=LEGS, cuts=st.lists(st.integers(0, 10**6), max_size=12), crlf=st.booleans())
def test_however_a_stream_is_cut_the_same_goes_out(wire: str, leg: Leg, cuts: list[int], crlf: bool) -> None:
    stream = b"".join(events(wire, leg, "1"))
    stream = stream.replace(b"\n", b"\r\n") if crlf else stream
    once, often = LOOPS[wire].listener(NAMES), LOOPS[wire].listener(NAMES)  # type: ignore[index]
    whole = once.hear(stream) + once.over()
    parts = b"".join(map(often.hear, pieces(stream, cuts))) + often.over()
    assert (whole, once.last, once.asks, once.inner) == (parts, often.last, often.asks, often.inner)
    assert once.asks == bool(leg.asks)
    assert once.inner == (bool(leg.asks) and not leg.visible.calls)
    if not leg.asks:
        assert whole == stream, "what is not ours goes out as it came"
    elif not once.inner:
        got = heard(wire, (whole + once.last).replace(b"\r\n", b"\n"), stream=True)
        assert shown(wire, got) == joined(wire, [leg])
    if leg.asks:
        assert [ask.call.id for ask in once.leg().asks] == [call.id for call in leg.asks]
        assert [ask.call.given for ask in once.leg().asks] == [call.given for call in leg.asks]


@EVERY_WIRE
@requirement("stream.own_calls")
@given(data=st.binary(max_size=300), names=st.booleans())
def test_what_is_no_stream_goes_out_as_it_came(wire: str, data: bytes, names: bool) -> None:
    said_ = data + (b'data: {"x": "analyze_image"}\n\n' if names else b"")
    ear = LOOPS[wire].listener(NAMES)  # type: ignore[index]
    assert ear.hear(said_) + ear.over() + ear.last == said_


@EVERY_WIRE
@requirement("loop.substituted")
@given(legs=st.lists(LEGS, min_size=1, max_size=3))
def test_what_a_client_sends_back_is_known_again_and_nothing_else(wire: str, legs: list[Leg]) -> None:
    """Whatever legs are kept: what is put back together is what was said, or nothing is."""
    loop = LOOPS[wire]  # type: ignore[index]
    listeners = []
    for leg in legs:
        ear = loop.listener(NAMES)
        ear.hear(b"".join(events(wire, leg, "1")) + b'data: {"analyze_image": "analyze_image"}\n\n')
        ear.over()
        listeners.append(ear.leg())
    pasts = [Past.of(each, [{"result": index}]) for index, each in enumerate(listeners)]
    assert [Past.read(json.loads(json.dumps(past.as_json()))) for past in pasts] == pasts
    for other in legs:
        tree: Json = {"messages": said(wire, other), "input": said(wire, other), "contents": said(wire, other)}
        for run in loop.runs(tree):
            found = loop.woven(tree, run, pasts, [])
            if found is not None:
                assert known_by(pasts) == seen(run.blocks, loop.reads)


@requirement("loop.usage")
def test_the_input_of_the_last_leg_and_the_output_of_all() -> None:
    legs: list[Block] = [
        {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11, "completion_tokens_details": {"x": 1}},
        {"prompt_tokens": 20, "completion_tokens": 2, "total_tokens": 22, "completion_tokens_details": {"x": 2}},
    ]
    whole = summed(legs, ("completion_tokens", "completion_tokens_details"), "total_tokens", "prompt_tokens")
    assert whole == {
        "prompt_tokens": 20,
        "completion_tokens": 3,
        "total_tokens": 23,
        "completion_tokens_details": {"x": 3},
    }
    assert summed([{}, {}], ("output_tokens",)) == {}


def test_the_kit_itself_echoes_what_it_says() -> None:
    for wire in WIRES:
        leg = Leg("Hm.", (Call("c", "Read", {"path": "x"}),), "so")
        assert echo(wire, heard(wire, b"".join(events(wire, leg, "1")), stream=True)) == said(wire, leg)
