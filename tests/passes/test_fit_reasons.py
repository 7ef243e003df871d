"""Why an image was made anew: the first thing that forbade it as it was, and nothing that it just met."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sightline.model.facts import Facts, Keep, Needs, Probe, Refit
from sightline.model.fate import Refitted, Refused
from sightline.model.geometry import Size
from sightline.model.image import Picture, Target
from sightline.model.profile import UNSIZED, Limits
from sightline.model.refusal import Refusal
from sightline.passes.fit import fit
from sightline.passes.words import absence
from tests.passes.scenes import Table, inline, rules, scene
from tests.passes.test_fit import is_refitted
from tests.requirements import requirement

LIMITS = Limits(("image/png", "image/gif"), encoded_bytes=700, edge=800, still=True)
AT_EVERY_LIMIT = Picture("image/gif", Size(800, 800), 525)


@requirement("fit.figures")
@pytest.mark.parametrize(
    ("seen", "length", "facts"),
    [
        (AT_EVERY_LIMIT, 700, ["provider"]),
        (replace(AT_EVERY_LIMIT, bytes=526), 704, ["526 ", "525"]),
        (replace(AT_EVERY_LIMIT, bytes=9_258), 12_345, ["9,258 ", "525"]),
        (AT_EVERY_LIMIT, 701, ["701 ", "700"]),
        (replace(AT_EVERY_LIMIT, size=Size(801, 1)), 701, ["801x1", "800 px"]),
        (replace(AT_EVERY_LIMIT, size=Size(1, 801), moving=True), 701, ["animation"]),
        (replace(AT_EVERY_LIMIT, mime="image/bmp", moving=True), 701, ["image/bmp"]),
    ],
)
def test_the_first_of_all_reasons_is_told(seen: Picture, length: int, facts: list[str]) -> None:
    (fate,) = Table(seen).fates(scene(inline(length=length)), rules(LIMITS, distrust=True, recode=True))
    assert is_refitted(fate, *facts)
    others = {"701 ", "801x1", "animation", "image/bmp", "provider"} - {*facts}
    assert isinstance(fate, Refitted)
    assert not any(other in fate.why for other in others)


def test_where_animations_are_taken_they_are_no_reason() -> None:
    moving = replace(AT_EVERY_LIMIT, moving=True)
    laws = rules(replace(LIMITS, still=False), distrust=True, recode=True)
    (fate,) = Table(moving).fates(scene(inline()), laws)
    assert is_refitted(fate, "provider")


def test_what_is_made_anew_is_remembered_as_it_was() -> None:
    known = Facts().with_answers({Probe(inline()): replace(AT_EVERY_LIMIT, size=Size(801, 9))})
    goal = Target(LIMITS.formats, 700, 800, sizing=UNSIZED, still=True)
    assert fit(scene(inline()), known, rules(LIMITS)) == Needs(frozenset({Refit(inline(), goal), Keep(inline())}))


def test_an_image_that_the_provider_named_is_told_to_be_unreadable() -> None:
    (fate,) = Table().fates(scene(inline(), filename="a.png"), rules(poison=frozenset({inline().key})))
    assert isinstance(fate, Refused)
    assert (fate.refusal.code, fate.words) == ("corrupt", absence(fate.refusal, "a.png"))


def test_what_is_left_out_and_could_not_be_kept_is_not_said_to_be_remembered() -> None:
    table = Table(kept=Refusal("unavailable", "the disk is full"))
    first, *_ = table.fates(scene(inline("1"), inline("2"), filename="old.png"), rules(Limits(count=1)))
    assert isinstance(first, Refused)
    assert (first.refusal.code, first.words) == ("too_large", absence(first.refusal, "old.png"))
    assert "sha256" not in first.words
