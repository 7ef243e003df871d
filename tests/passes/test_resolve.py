"""The pass `resolve`: texts that only look like images, and links for models without vision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from sightline.model.facts import Facts, Fetch, Needs, Probe, Rules
from sightline.model.refusal import Refusal
from sightline.model.scene import LinkSource, OpaqueSource, Refused, Scene, Shown, Sight, Source
from sightline.passes import resolve
from sightline.passes.wording import write_absence
from tests.passes.scenes import BLIND, PNG, inline, rules, scene

LINK = LinkSource("https://a.example/b.png")
NO_PICTURE = Refusal("corrupt", "it is no picture")
BLOCKED = Refusal("not_permitted", "the address is private", "attach the file itself")
NOTHING = Facts()


def rescued(source: Source) -> Sight:
    """Return a sight that is inside a text."""
    return replace(scene(source).sights[0], path_in_text=("png",))


def resolved(what: Scene, facts: Facts = NOTHING, laws: Rules = BLIND) -> Scene:
    outcome = resolve(what, facts, laws)
    assert isinstance(outcome, Scene)
    return outcome


@pytest.mark.parametrize("laws", [rules(vision=True), BLIND], ids=["seeing", "blind"])
def test_a_text_counts_as_an_image_only_if_it_is_one(laws: Rules) -> None:
    one, other = rescued(inline("one")), rescued(inline("other"))
    what = Scene("m", (one, other))
    needs = frozenset({Probe(inline("one")), Probe(inline("other"))})
    assert resolve(what, NOTHING, laws) == Needs(needs)
    known = NOTHING.with_facts({Probe(inline("one")): NO_PICTURE})
    assert resolve(what, known, laws) == Needs(frozenset({Probe(inline("other"))})), "only what is not known yet"
    known = known.with_facts({Probe(inline("other")): PNG})
    assert resolved(what, known, laws).sights == (other,), "what is no picture stays a text, and no sight"


def test_an_image_block_counts_as_an_image_with_any_content() -> None:
    what = scene(inline(), OpaqueSource("file_1"))
    assert resolve(what, NOTHING, BLIND) is what
    mixed = replace(what, sights=(*what.sights, rescued(inline("text"))))
    known = NOTHING.with_facts({Probe(inline("text")): NO_PICTURE, Probe(inline()): NO_PICTURE})
    assert resolved(mixed, known).sights == what.sights


def test_a_link_is_fetched_for_a_model_without_vision() -> None:
    what = scene(LINK, inline(), filename="b.png")
    assert resolve(what, NOTHING, BLIND) == Needs(frozenset({Fetch(LINK)}))
    opened = resolved(what, NOTHING.with_facts({Fetch(LINK): inline("fetched")}))
    assert opened.sights == (replace(what.sights[0], source=inline("fetched")), what.sights[1])


def test_a_link_that_cannot_be_fetched_is_refused() -> None:
    what = scene(LINK, filename="b.png")
    (sight,) = resolved(what, NOTHING.with_facts({Fetch(LINK): BLOCKED})).sights
    assert sight == what.sights[0].with_fate(Refused(write_absence(BLOCKED, "b.png"), BLOCKED))


@pytest.mark.parametrize(
    "laws",
    [
        pytest.param(rules(vision=True), id="a model that sees opens it itself"),
        pytest.param(rules(vision=None), id="so does one that may see"),
        pytest.param(rules(vision=False, mode="off"), id="nothing is described"),
        pytest.param(rules(vision=False, may_pay=False), id="only tokens are counted"),
    ],
)
def test_a_link_is_fetched_only_if_it_will_be_described(laws: Rules) -> None:
    what = scene(LINK)
    assert resolve(what, NOTHING, laws) is what
    beside = Scene("m", (what.sights[0], rescued(inline("text"))))
    known = NOTHING.with_facts({Probe(inline("text")): PNG})
    assert resolved(beside, known, laws).sights == beside.sights


@pytest.mark.parametrize("make", [lambda: rescued(inline("done")), lambda: scene(LINK).sights[0]], ids=["text", "link"])
def test_a_decided_sight_is_not_resolved(make: Callable[[], Sight]) -> None:
    decided = make().with_fate(Shown())
    assert resolved(Scene("m", (decided,))).sights == (decided,)


def test_the_same_link_is_one_need() -> None:
    assert resolve(scene(LINK, LINK), NOTHING, BLIND) == Needs(frozenset({Fetch(LINK)}))
