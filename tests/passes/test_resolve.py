"""What a sight really is: text that only looks like an image, and addresses that a blind model's images stand at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from sightline.model.facts import Facts, Fetch, Needs, Probe
from sightline.model.fate import Refused, Shown
from sightline.model.refusal import Refusal
from sightline.model.rules import Rules
from sightline.model.scene import Scene, Sight
from sightline.model.source import Link, Opaque, Source
from sightline.passes.resolve import resolve
from sightline.passes.words import absence
from tests.passes.scenes import BLIND, PNG, inline, rules, scene

LINK = Link("https://a.example/b.png")
NO_PICTURE = Refusal("corrupt", "it is no picture")
BLOCKED = Refusal("not_permitted", "the address is private", "attach the file itself")
NOTHING = Facts()


def rescued(source: Source) -> Sight:
    """A sight that a library has written into a text."""
    return replace(scene(source).sights[0], within=("png",))


def resolved(what: Scene, facts: Facts = NOTHING, laws: Rules = BLIND) -> Scene:
    outcome = resolve(what, facts, laws)
    assert isinstance(outcome, Scene)
    return outcome


@pytest.mark.parametrize("laws", [rules(vision=True), BLIND], ids=["seeing", "blind"])
def test_what_was_found_in_a_text_has_to_be_an_image_to_count_as_one(laws: Rules) -> None:
    one, other = rescued(inline("one")), rescued(inline("other"))
    what = Scene("m", (one, other))
    needs = frozenset({Probe(inline("one")), Probe(inline("other"))})
    assert resolve(what, NOTHING, laws) == Needs(needs)
    known = NOTHING.with_answers({Probe(inline("one")): NO_PICTURE})
    assert resolve(what, known, laws) == Needs(frozenset({Probe(inline("other"))})), "only what is not known yet"
    known = known.with_answers({Probe(inline("other")): PNG})
    assert resolved(what, known, laws).sights == (other,), "what is no picture stays a text, and no sight"


def test_what_stands_in_a_block_of_its_own_is_an_image_whatever_is_in_it() -> None:
    what = scene(inline(), Opaque("file_1"))
    assert resolve(what, NOTHING, BLIND) is what
    mixed = replace(what, sights=(*what.sights, rescued(inline("text"))))
    known = NOTHING.with_answers({Probe(inline("text")): NO_PICTURE, Probe(inline()): NO_PICTURE})
    assert resolved(mixed, known).sights == what.sights


def test_for_a_blind_model_an_address_is_opened_and_what_stands_there_takes_its_place() -> None:
    what = scene(LINK, inline(), filename="b.png")
    assert resolve(what, NOTHING, BLIND) == Needs(frozenset({Fetch(LINK)}))
    opened = resolved(what, NOTHING.with_answers({Fetch(LINK): inline("fetched")}))
    assert opened.sights == (replace(what.sights[0], source=inline("fetched")), what.sights[1])


def test_an_address_that_cannot_be_opened_becomes_a_sentence() -> None:
    what = scene(LINK, filename="b.png")
    (sight,) = resolved(what, NOTHING.with_answers({Fetch(LINK): BLOCKED})).sights
    assert sight == what.sights[0].meets(Refused(absence(BLOCKED, "b.png"), BLOCKED))


@pytest.mark.parametrize(
    "laws",
    [
        pytest.param(rules(vision=True), id="a model that sees opens it itself"),
        pytest.param(rules(vision=None), id="so does one that may see"),
        pytest.param(rules(vision=False, mode="off"), id="nothing is described"),
        pytest.param(rules(vision=False, paid=False), id="only tokens are counted"),
    ],
)
def test_an_address_is_opened_only_where_somebody_will_look(laws: Rules) -> None:
    what = scene(LINK)
    assert resolve(what, NOTHING, laws) is what
    beside = Scene("m", (what.sights[0], rescued(inline("text"))))
    known = NOTHING.with_answers({Probe(inline("text")): PNG})
    assert resolved(beside, known, laws).sights == beside.sights


@pytest.mark.parametrize("make", [lambda: rescued(inline("done")), lambda: scene(LINK).sights[0]], ids=["text", "link"])
def test_what_has_its_fate_is_not_looked_at_again(make: Callable[[], Sight]) -> None:
    decided = make().meets(Shown())
    assert resolved(Scene("m", (decided,))).sights == (decided,)


def test_the_same_address_is_asked_for_once() -> None:
    assert resolve(scene(LINK, LINK), NOTHING, BLIND) == Needs(frozenset({Fetch(LINK)}))
