"""Values of which a request makes many: equal by what they hold and by their kind, and cheap to make."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sightline.model.facts import Facts, Keep, Need, Needs, Present, Probe
from sightline.model.fate import Shown
from sightline.model.scene import Sight
from sightline.model.source import Inline, Link

IMAGE = Inline("image/png", b"iVBORw0KGgo=")


def test_a_value_is_what_it_holds_and_of_its_kind() -> None:
    assert Probe(IMAGE) == Probe(Inline("image/png", b"iVBORw0KGgo="))
    assert len({Probe(IMAGE), Probe(IMAGE), Keep(IMAGE), Present("/a.png", 3)}) == 3
    kinds: list[Need] = [Probe(IMAGE), Keep(IMAGE)]
    assert kinds[0] != kinds[1], "or the answer to one would be taken for the answer to the other"


def test_a_value_has_nothing_but_its_fields() -> None:
    sight = Sight(("messages", 0), Link("https://a/b.png"), "user")
    assert replace(sight, fate=Shown()) == sight.meets(Shown())
    assert replace(sight, fate=Shown()) != sight
    with pytest.raises(AttributeError):
        sight.colour = "red"  # type: ignore[attr-defined]


def test_several_needs_are_answered_together_or_those_are_named_that_are_not() -> None:
    needs = {"here": Present("/a.png", 1), "there": Present("/b.png", 1)}
    assert Facts().answers(needs, bool) == Needs(frozenset(needs.values()))
    some = Facts({needs["here"]: False})
    assert some.answers(needs, bool) == Needs(frozenset({needs["there"]})), "an answer may well be no"
    assert some.with_answers({needs["there"]: True}).answers(needs, bool) == {"here": False, "there": True}
