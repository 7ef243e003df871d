"""Needs as keys of facts."""

from __future__ import annotations

from sightline.model.facts import Check, Facts, Keep, KeptImage, Probe
from sightline.model.geometry import Size
from sightline.model.image import ImageInfo
from sightline.model.refusal import Refusal
from sightline.model.scene import InlineSource

INFO = ImageInfo("image/png", Size(2, 1), 75)


def test_two_needs_about_one_image_are_not_compared_with_each_other() -> None:
    image = InlineSource("image/png", b"cGl4ZWxz" * 100)
    assert hash(Keep(image)) == hash(Keep(image)) != hash(Probe(image))
    facts = Facts({Probe(image): INFO})
    assert (facts.get(Probe(image), ImageInfo), Keep(image) in facts) == (INFO, False)


def test_what_is_known_of_images_answers_the_same_needs_as_facts_about_them() -> None:
    kept, probed, damaged, unknown = (InlineSource("image/png", name * 40) for name in (b"a", b"b", b"c", b"d"))
    no, known = Refusal("corrupt", "it is broken", "attach it again"), KeptImage("5" * 64, INFO)
    by_need = Facts({Keep(kept): known, Probe(kept): INFO, Probe(probed): INFO, Probe(damaged): no})
    by_image = Facts(kept={kept: known}, infos={probed: INFO, damaged: no})
    for facts in (by_need, by_image, by_image.with_facts({Check(kept): INFO})):
        for image, in_record, info in ((kept, known, INFO), (probed, None, INFO), (damaged, None, no), (unknown,) * 3):
            expected = (None, None) if image is unknown else (in_record, info)
            again = InlineSource(image.declared_mime, image.text)
            assert (facts.find_kept(again), facts.find_info(again)) == expected
            assert (facts.get(Keep(again), KeptImage), facts.get(Probe(again), ImageInfo)) == expected
            assert (Keep(again) in facts, Probe(again) in facts) == tuple(each is not None for each in expected)
    assert by_image.with_facts({Check(kept): INFO}).get(Check(kept), ImageInfo) == INFO
    assert Check(kept) not in by_image
