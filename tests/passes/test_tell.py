"""Words for a model that is blind."""

from __future__ import annotations

import pytest

from sightline.model.facts import Facts, Look
from sightline.model.fate import Refused, Shown, Told
from sightline.model.geometry import Size
from sightline.model.refusal import Refusal
from sightline.model.rules import Rules
from sightline.model.source import Link, Opaque, Source
from sightline.passes.tell import tell
from sightline.passes.words import absence
from sightline.passes.words import description as described
from tests.passes.scenes import BLIND, Table, description, inline, name_of, rules, scene
from tests.requirements import requirement

PENDING = Refusal("pending", "not yet", "wait")


@requirement("mode.fallback")
def test_a_blind_model_is_told_what_is_to_be_seen() -> None:
    table = Table()
    assert table.fates(scene(inline(), filename="a.png"), BLIND) == [
        Told(described(description(), "a.png"), "up/eye", Size(640, 480))
    ]
    assert table.rounds == [{Look(inline())}]


@requirement("mode.fallback")
def test_a_seeing_model_is_told_nothing() -> None:
    for laws in (rules(), rules(vision=True), rules(vision=True, mode="off")):
        sights = scene(inline())
        assert tell(sights, Facts(), laws) is sights


def test_a_seeing_model_is_told_everything_when_the_user_wants_it_always() -> None:
    table = Table()
    (fate,) = table.fates(scene(inline()), rules(vision=True, mode="always"))
    assert isinstance(fate, Told)
    assert table.rounds == [{Look(inline())}]


@pytest.mark.parametrize("source", [inline(), Link("https://a/b"), Opaque("file_1")])
def test_switched_off_a_blind_model_gets_a_sentence_and_nobody_looks(source: Source) -> None:
    table = Table()
    (fate,) = table.fates(scene(source), rules(vision=False, mode="off"))
    assert isinstance(fate, Refused)
    assert (fate.refusal.code, fate.words) == ("not_permitted", absence(fate.refusal))
    assert "`sightline config set mode fallback`" in fate.words
    assert table.asked == []


def test_a_look_that_failed_becomes_a_sentence() -> None:
    no = Refusal("unavailable", "500 from up/eye", "wait")
    (fate,) = Table(look=no).fates(scene(inline()), BLIND)
    assert fate == Refused(absence(no), no)


def remembered(*keys: str) -> Table:
    """Only these are known already; anything else is under way."""
    return Table(look=lambda source: description() if name_of(source) in keys else PENDING)


def capped(most: int, paid: bool = True) -> Rules:
    return rules(vision=False, max_images=most, paid=paid)


@requirement("seer.newest")
def test_of_many_images_the_newest_are_looked_at_and_older_ones_only_remembered() -> None:
    table = remembered("1", "3", "4")
    fates = table.fates(scene(*(inline(str(n)) for n in range(1, 5))), capped(2))
    assert table.rounds == [
        {Look(inline("1"), beyond=True), Look(inline("2"), beyond=True)} | {Look(inline("3")), Look(inline("4"))}
    ]
    one, two, *rest = fates
    assert [type(fate) for fate in (one, *rest)] == [Told] * 3
    assert isinstance(two, Refused)


def test_without_a_cap_all_are_looked_at() -> None:
    table = Table()
    table.fates(scene(*(inline(str(n)) for n in range(50))), capped(0))
    assert table.rounds == [{Look(inline(str(n))) for n in range(50)}]


def test_where_tokens_are_only_counted_nobody_is_paid_and_an_unseen_image_counts_as_600_words() -> None:
    table = remembered("known")
    known, new = table.fates(scene(inline("known"), inline("new")), capped(20, paid=False))
    assert table.asked
    assert all(isinstance(need, Look) and need.remembered_only for need in table.asked)
    assert known == Told(described(description(), None), "up/eye", Size(640, 480))
    assert isinstance(new, Told)
    assert len(new.words.split()) == 600


def test_a_look_that_goes_on_is_said_to_go_on() -> None:
    (fate,) = Table(look=PENDING).fates(scene(inline()), BLIND)
    assert isinstance(fate, Refused)
    assert fate.refusal == PENDING


def test_a_fate_that_an_earlier_pass_gave_stands() -> None:
    sight = scene(inline()).sights[0].meets(Shown())
    (fate,) = Table().fates(type(scene())("m", (sight,)), BLIND, by=tell)
    assert fate == Shown()
