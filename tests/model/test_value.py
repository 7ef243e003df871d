"""Values: equal by fields and class, without other attributes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sightline.model.facts import CompareFile, Facts, Keep, Need, Needs, Probe
from sightline.model.scene import InlineSource, LinkSource, Shown, Sight

IMAGE = InlineSource("image/png", b"iVBORw0KGgo=")


def test_values_are_equal_by_fields_and_class() -> None:
    assert Probe(IMAGE) == Probe(InlineSource("image/png", b"iVBORw0KGgo="))
    assert len({Probe(IMAGE), Probe(IMAGE), Keep(IMAGE), CompareFile("/a.png", IMAGE, 3)}) == 3
    kinds: list[Need] = [Probe(IMAGE), Keep(IMAGE)]
    assert kinds[0] != kinds[1], "or the answer to one would be taken for the answer to the other"


def test_a_value_has_no_other_attributes() -> None:
    sight = Sight(("messages", 0), LinkSource("https://a/b.png"), "user")
    assert replace(sight, fate=Shown()) == sight.with_fate(Shown())
    assert replace(sight, fate=Shown()) != sight
    with pytest.raises(AttributeError):
        sight.colour = "red"  # type: ignore[attr-defined]


def test_get_all_returns_all_facts_or_the_missing_needs() -> None:
    needs = {"here": CompareFile("/a.png", IMAGE, 1), "there": CompareFile("/b.png", IMAGE, 1)}
    assert Facts().get_all(needs, bool) == Needs(frozenset(needs.values()))
    some = Facts({needs["here"]: False})
    assert some.get_all(needs, bool) == Needs(frozenset({needs["there"]})), "an answer may well be no"
    assert some.with_facts({needs["there"]: True}).get_all(needs, bool) == {"here": False, "there": True}
