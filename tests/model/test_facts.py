"""Needs as keys of facts."""

from __future__ import annotations

from sightline.model.facts import Facts, Keep, Probe
from sightline.model.geometry import Size
from sightline.model.image import ImageInfo
from sightline.model.scene import InlineSource

INFO = ImageInfo("image/png", Size(2, 1), 75)


def test_two_needs_about_one_image_are_not_compared_with_each_other() -> None:
    image = InlineSource("image/png", b"cGl4ZWxz" * 100)
    assert hash(Keep(image)) == hash(Keep(image)) != hash(Probe(image))
    facts = Facts({Probe(image): INFO})
    assert (facts.get(Probe(image), ImageInfo), Keep(image) in facts) == (INFO, False)
