"""The pass `tell`: descriptions for models without vision."""

from __future__ import annotations

import pytest

from sightline.model.facts import DescribeImage, Facts, Rules
from sightline.model.geometry import Size
from sightline.model.refusal import Refusal
from sightline.model.scene import LinkSource, OpaqueSource, Refused, Shown, Source, Told
from sightline.passes.tell import explain_telling, tell
from sightline.passes.wording import write_absence
from sightline.passes.wording import write_description as described
from tests.passes.scenes import BLIND, Table, description, inline, name_of, rules, scene
from tests.requirements import requirement

PENDING = Refusal("pending", "not yet", "wait")


@requirement("mode.fallback")
def test_a_model_without_vision_gets_a_description() -> None:
    table = Table()
    assert table.fates(scene(inline(), filename="a.png"), BLIND) == [
        Told(described(description(), "a.png"), "up/eye", Size(640, 480), "the model takes no images")
    ]
    assert table.rounds == [{DescribeImage(inline())}]


@requirement("mode.fallback")
def test_a_model_with_vision_gets_no_description() -> None:
    for laws in (rules(), rules(vision=True), rules(vision=True, mode="off")):
        sights = scene(inline())
        assert tell(sights, Facts(), laws) is sights


def test_mode_always_describes_for_models_with_vision() -> None:
    table = Table()
    (fate,) = table.fates(scene(inline()), rules(vision=True, mode="always"))
    assert isinstance(fate, Told)
    assert table.rounds == [{DescribeImage(inline())}]


@requirement("inspector.reason")
def test_a_description_says_why_there_are_no_pixels() -> None:
    """A model without vision gets none in any mode; in mode route, images of earlier turns are described."""
    cases = [rules(vision=False, mode="always"), rules(vision=True, mode="always"), rules(pixels_this_turn_only=True)]
    reasons = [explain_telling(each) for each in cases]
    assert len({*reasons}) == 3
    for laws, reason in zip(cases[:2], reasons, strict=False):
        (fate,) = Table().fates(scene(inline()), laws)
        assert isinstance(fate, Told)
        assert fate.why == reason


@pytest.mark.parametrize("source", [inline(), LinkSource("https://a/b"), OpaqueSource("file_1")])
def test_mode_off_refuses_without_asking_a_seer(source: Source) -> None:
    table = Table()
    (fate,) = table.fates(scene(source), rules(vision=False, mode="off"))
    assert isinstance(fate, Refused)
    assert (fate.refusal.code, fate.text) == ("not_permitted", write_absence(fate.refusal))
    assert "sightline config set mode fallback" in fate.text
    assert table.asked == []


def test_a_failed_description_is_refused() -> None:
    no = Refusal("unavailable", "500 from up/eye", "wait")
    (fate,) = Table(look=no).fates(scene(inline()), BLIND)
    assert fate == Refused(write_absence(no), no)


def remembered(*keys: str) -> Table:
    """Answer known images; descriptions of all others are pending."""
    return Table(look=lambda source: description() if name_of(source) in keys else PENDING)


def capped(most: int, paid: bool = True) -> Rules:
    return rules(vision=False, max_images=most, may_pay=paid)


@requirement("seer.newest")
def test_only_the_newest_of_many_images_get_new_descriptions() -> None:
    table = remembered("1", "3", "4")
    fates = table.fates(scene(*(inline(str(n)) for n in range(1, 5))), capped(2))
    assert table.rounds == [
        {DescribeImage(inline("1"), over_limit=True), DescribeImage(inline("2"), over_limit=True)}
        | {DescribeImage(inline("3")), DescribeImage(inline("4"))}
    ]
    one, two, *rest = fates
    assert [type(fate) for fate in (one, *rest)] == [Told] * 3
    assert isinstance(two, Refused)


def test_all_images_are_described_without_a_cap() -> None:
    table = Table()
    table.fates(scene(*(inline(str(n)) for n in range(50))), capped(0))
    assert table.rounds == [{DescribeImage(inline(str(n))) for n in range(50)}]


def test_counting_tokens_asks_no_seer_and_assumes_600_words() -> None:
    table = remembered("known")
    known, new = table.fates(scene(inline("known"), inline("new")), capped(20, paid=False))
    assert table.asked
    assert all(isinstance(need, DescribeImage) and need.cached_only for need in table.asked)
    assert known == Told(described(description(), None), "up/eye", Size(640, 480), "the model takes no images")
    assert isinstance(new, Told)
    assert len(new.text.split()) == 600


def test_a_pending_description_says_so() -> None:
    (fate,) = Table(look=PENDING).fates(scene(inline()), BLIND)
    assert isinstance(fate, Refused)
    assert fate.refusal == PENDING


def test_a_fate_from_an_earlier_pass_stays() -> None:
    sight = scene(inline()).sights[0].with_fate(Shown())
    (fate,) = Table().fates(type(scene())("m", (sight,)), BLIND, by=tell)
    assert fate == Shown()
