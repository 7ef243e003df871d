"""The complete text of a joint description."""

from __future__ import annotations

from sightline.model.facts import DescribedImage, JointDescription
from sightline.model.geometry import Size
from sightline.passes.wording import build_hints, write_joint_description

FIRST, SECOND = "5" * 64, "6" * 64


def test_a_joint_description_names_each_image() -> None:
    seen = (DescribedImage(FIRST, Size(640, 480), "a\n.png"), DescribedImage(SECOND, Size(1, 2)))
    lead, _, fence = write_joint_description(
        JointDescription(seen, "A red square, then a blue one.", "up/eye")
    ).partition("\n")
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


def test_file_name_hints_come_before_similarity() -> None:
    named, alike = build_hints(["before.png", "after.png"], [(1, 2, 0.951)])
    assert named.endswith(" before/after pair")
    assert all(fact in alike for fact in ("Image 1", "Image 2", "0.95"))
