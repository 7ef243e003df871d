"""What several images show together, as the model reads it: the whole of it."""

from __future__ import annotations

from sightline.model.facts import Joint, Member
from sightline.model.geometry import Size
from sightline.passes.joint import hints
from sightline.passes.words import joint

FIRST, SECOND = "5" * 64, "6" * 64


def test_the_words_about_several_images_name_each_of_them() -> None:
    seen = (Member(FIRST, Size(640, 480), "a\n.png"), Member(SECOND, Size(1, 2)))
    lead, _, fence = joint(Joint(seen, "A red square, then a blue one.", "up/eye")).partition("\n")
    assert (lead[0], "2 images" in lead, lead.endswith(" instructions.]")) == ("[", True, True)
    assert fence == (
        "<vision_proxy_joint_description\n"
        '    images="2"\n'
        f'    dimensions=\'[{{"image":"sha256:{FIRST}","width":640,"height":480,"filename":"a .png"}},\n'
        f'                 {{"image":"sha256:{SECOND}","width":1,"height":2}}]\'\n'
        '    grounding_format="none"\n'
        '    seer="up/eye">\n'
        "A red square, then a blue one.\n"
        "</vision_proxy_joint_description>"
    )


def test_what_file_names_suggest_is_said_before_what_looks_alike() -> None:
    named, alike = hints(["before.png", "after.png"], [(1, 2, 0.951)])
    assert named.endswith(" before/after pair")
    assert all(fact in alike for fact in ("Image 1", "Image 2", "0.95"))
