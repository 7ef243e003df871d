"""On every wire, lowering keeps roles, calls and results, whatever fates the images get."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.model.profile import Profile, ToolImagePlacement
from sightline.model.scene import Fate, Refitted, Shown
from sightline.wire import WIRES, Wire
from tests.golden.captures import payloads
from tests.golden.talk import faults, lines_but_moved
from tests.invariants.wires import Called, Said, Writer, fates, talks
from tests.requirements import requirement
from tests.wire.bodies import lower_body, read

by_wire = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
ways: st.SearchStrategy[ToolImagePlacement] = st.sampled_from(["native", "hoist", "bridge"])


def pixels(wrote: Writer, met: Sequence[Fate]) -> Counter[str]:
    """Return what must be in the body, once each."""
    told = zip(wrote.payloads, met, strict=True)
    return Counter(
        fate.image.base64 if isinstance(fate, Refitted) else text
        for text, fate in told
        if isinstance(fate, Shown | Refitted)
    )


@requirement("lower.no_text", "hoist.idempotent", "hoist.parallel", "law.4")
@by_wire
@settings(max_examples=60)
@given(talks, ways, st.data())
def test_lowering_keeps_pairs_order_and_roles(
    wire: Wire, talk: list[Said | Called], way: ToolImagePlacement, data: st.DataObject
) -> None:
    wrote = Writer(wire)
    body = wrote.body(talk)
    found = read(wire, body)
    assert Counter(found.texts()) == Counter(wrote.payloads)
    number = len(wrote.payloads)
    drawn = data.draw(st.lists(fates, min_size=number, max_size=number), label="fates")
    fate_of = dict(zip(wrote.payloads, drawn, strict=True))
    profile = Profile("up", wire.name, "m", tool_images=way)
    after: Any = lower_body(wire, body, [fate_of[text] for text in found.texts()], profile)
    assert Counter(payload.text for payload in payloads(after)) == pixels(wrote, drawn)
    assert all(payload.is_pixels for payload in payloads(after))
    assert lines_but_moved(after, wire) == lines_but_moved(body, wire)
    assert list(faults(after, wire)) == []
    again = read(wire, after).scene.sights
    assert not any(sight.is_in_tool_result for sight in again) or way == "native"
    assert lower_body(wire, after, [Shown()] * len(again), profile) == after


@requirement("law.1")
@by_wire
@settings(max_examples=30)
@given(talks)
def test_images_that_stay_in_place_are_not_touched(wire: Wire, talk: list[Said | Called]) -> None:
    native = [replace_stringified(one) for one in talk]
    body = Writer(wire).body(native)
    found = read(wire, body)
    met = [sight.with_fate(Shown()) for sight in found.scene.sights]
    assert wire.lower(type(found.scene)("m", tuple(met)), found.document.tree, Profile("up", wire.name, "m")) == []


def replace_stringified(one: Said | Called) -> Said | Called:
    return one if isinstance(one, Said) else Called(one.results, one.order, stringified=False)
