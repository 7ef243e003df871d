"""The reason for refitting an image: the first limit that it exceeds, and none that it just meets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sightline.model.facts import Facts, Keep, Needs, Probe, Refit
from sightline.model.geometry import Size
from sightline.model.image import ImageInfo, ImageTarget
from sightline.model.profile import UNKNOWN_SIZING, ImageLimits
from sightline.model.refusal import Refusal
from sightline.model.scene import Refitted, Refused
from sightline.passes.show import show
from sightline.passes.wording import write_absence
from tests.passes.scenes import Table, inline, rules, scene
from tests.passes.test_fit import is_refitted
from tests.requirements import requirement

LIMITS = ImageLimits(("image/png", "image/gif"), encoded_bytes=700, edge=800, still=True)
AT_EVERY_LIMIT = ImageInfo("image/gif", Size(800, 800), 525)


@requirement("fit.figures")
@pytest.mark.parametrize(
    ("seen", "length", "facts"),
    [
        (AT_EVERY_LIMIT, 700, ["provider"]),
        (replace(AT_EVERY_LIMIT, bytes=526), 704, ["526 ", "525"]),
        (replace(AT_EVERY_LIMIT, bytes=9_258), 12_345, ["9,258 ", "525"]),
        (AT_EVERY_LIMIT, 701, ["701 ", "700"]),
        (replace(AT_EVERY_LIMIT, size=Size(801, 1)), 701, ["801x1", "800 px"]),
        (replace(AT_EVERY_LIMIT, size=Size(1, 801), is_animated=True), 701, ["animation"]),
        (replace(AT_EVERY_LIMIT, mime="image/bmp", is_animated=True), 701, ["image/bmp"]),
    ],
)
def test_the_first_reason_is_given(seen: ImageInfo, length: int, facts: list[str]) -> None:
    (fate,) = Table(seen).fates(scene(inline(length=length)), rules(LIMITS, check_all_images=True, reencode=True))
    assert is_refitted(fate, *facts)
    others = {"701 ", "801x1", "animation", "image/bmp", "provider"} - {*facts}
    assert isinstance(fate, Refitted)
    assert not any(other in fate.why for other in others)


def test_an_accepted_animation_is_not_a_reason() -> None:
    moving = replace(AT_EVERY_LIMIT, is_animated=True)
    laws = rules(replace(LIMITS, still=False), check_all_images=True, reencode=True)
    (fate,) = Table(moving).fates(scene(inline()), laws)
    assert is_refitted(fate, "provider", "frame")


def test_the_original_of_a_refitted_image_is_kept() -> None:
    known = Facts().with_facts({Probe(inline()): replace(AT_EVERY_LIMIT, size=Size(801, 9))})
    goal = ImageTarget(LIMITS.formats, 700, 800, sizing=UNKNOWN_SIZING, still=True, keeps_geometry=True)
    assert show(scene(inline()), known, rules(LIMITS)) == Needs(frozenset({Refit(inline(), goal), Keep(inline())}))


def test_an_image_that_the_provider_named_is_called_unreadable() -> None:
    (fate,) = Table().fates(scene(inline(), filename="a.png"), rules(unreadable_keys=frozenset({inline().key})))
    assert isinstance(fate, Refused)
    assert (fate.refusal.code, fate.text) == ("corrupt", write_absence(fate.refusal, "a.png"))


def test_a_dropped_image_that_was_not_kept_has_no_reference() -> None:
    table = Table(kept=Refusal("unavailable", "the disk is full"))
    first, *_ = table.fates(scene(inline("1"), inline("2"), filename="old.png"), rules(ImageLimits(count=1)))
    assert isinstance(first, Refused)
    assert (first.refusal.code, first.text) == ("too_large", write_absence(first.refusal, "old.png"))
    assert "sha256" not in first.text
