"""On every wire, whatever is said and whatever becomes of the images: who speaks, calls and answers stays the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.model.fate import Fate, Refitted, Shown
from sightline.model.profile import Profile, ToolImages
from sightline.wire import WIRES, Wire
from tests.golden.captures import payloads
from tests.golden.talk import faults, lines_but_moved
from tests.invariants.wires import Called, Said, Writer, fates, talks
from tests.requirements import requirement
from tests.wire.bodies import lowered, read

by_wire = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
ways: st.SearchStrategy[ToolImages] = st.sampled_from(["native", "hoist", "bridge"])


def pixels(wrote: Writer, met: Sequence[Fate]) -> Counter[str]:
    """What must stand in the body, once each."""
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
def test_pairs_order_and_roles_stay_pixels_are_shown_once_and_a_second_time_changes_nothing(
    wire: Wire, talk: list[Said | Called], way: ToolImages, data: st.DataObject
) -> None:
    wrote = Writer(wire)
    body = wrote.body(talk)
    found = read(wire, body)
    assert Counter(found.texts()) == Counter(wrote.payloads)
    number = len(wrote.payloads)
    drawn = data.draw(st.lists(fates, min_size=number, max_size=number), label="fates")
    fate_of = dict(zip(wrote.payloads, drawn, strict=True))
    profile = Profile("up", wire.name, "m", tool_images=way)
    after: Any = lowered(wire, body, [fate_of[text] for text in found.texts()], profile)
    assert Counter(payload.text for payload in payloads(after)) == pixels(wrote, drawn)
    assert all(payload.is_pixels for payload in payloads(after))
    assert lines_but_moved(after, wire) == lines_but_moved(body, wire)
    assert list(faults(after, wire)) == []
    again = read(wire, after).scene.sights
    assert not any(sight.held for sight in again) or way == "native"
    assert lowered(wire, after, [Shown()] * len(again), profile) == after


@requirement("law.1")
@by_wire
@settings(max_examples=30)
@given(talks)
def test_what_is_shown_where_it_may_stand_is_not_touched(wire: Wire, talk: list[Said | Called]) -> None:
    native = [replace_stringified(one) for one in talk]
    body = Writer(wire).body(native)
    found = read(wire, body)
    met = [sight.meets(Shown()) for sight in found.scene.sights]
    assert wire.lower(type(found.scene)("m", tuple(met)), found.document.tree, Profile("up", wire.name, "m")) == []


def replace_stringified(one: Said | Called) -> Said | Called:
    return one if isinstance(one, Said) else Called(one.results, one.order, stringified=False)
