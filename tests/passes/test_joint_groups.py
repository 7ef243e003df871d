"""Joint descriptions: which images of a turn are described together, when, and where the text goes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.facts import (
    DescribedImage,
    DescribeImage,
    DescribeTogether,
    JointDescription,
    RecallHistory,
    Rules,
)
from sightline.model.geometry import Size
from sightline.model.refusal import Refusal
from sightline.model.scene import LinkSource, Message, Refused, Scene, Sight, Source
from sightline.passes.tell import find_joint_groups, tell
from sightline.passes.wording import write_absence, write_joint_description
from tests.passes.scenes import Table, inline, name_of, rules
from tests.passes.test_words import fences, hostile
from tests.requirements import requirement

USER, SPEAKS, TOOL = Message("user", opens_turn=True), Message("assistant"), Message("tool")
LAWS = rules(vision=False, max_joint_images=4)


def talk(*messages: Message | Source) -> Scene:
    """Build a scene from messages, each followed by its images."""
    heard: list[Message] = []
    sights: list[Sight] = []
    for each in messages:
        if isinstance(each, Message):
            heard.append(each)
        else:
            sights.append(Sight(("messages", len(sights)), each, "user", message=len(heard) - 1))
    return Scene("m", tuple(sights), messages=tuple(heard))


def compared(scene: Scene, laws: Rules = LAWS) -> list[tuple[int, str, bool]]:
    """Return for each group its sight, its images, and whether a seer is asked now."""
    return [
        (group.sight_index, "".join(map(name_of, group.need.images)), not group.need.cached_only)
        for group in find_joint_groups(scene, laws)
    ]


A, B, C, D, E = (inline(name) for name in "ABCDE")


def test_a_turn_begins_with_a_user_message() -> None:
    assert talk(TOOL, USER, SPEAKS, TOOL, USER).turn_starts == [-1, 1, 1, 1, 4]
    assert Scene("m").turn_starts == []


@requirement("FR-2.1", "FR-2.4", "FR-2.4.one")
@pytest.mark.parametrize(
    ("scene", "found"),
    [
        pytest.param(talk(USER, A), [], id="one"),
        pytest.param(talk(USER, A, A), [], id="one, twice"),
        pytest.param(talk(USER, A, B), [(1, "AB", True)], id="two"),
        pytest.param(talk(USER, A, SPEAKS, USER, B), [], id="in two turns"),
        pytest.param(talk(USER, A, B, SPEAKS, USER), [(1, "AB", False)], id="of an earlier turn"),
        pytest.param(talk(USER, A, SPEAKS, TOOL, B), [(1, "AB", True)], id="in two steps"),
        pytest.param(talk(USER, A, SPEAKS, TOOL, B, SPEAKS, TOOL), [(1, "AB", False)], id="and a third"),
        pytest.param(
            talk(USER, A, B, SPEAKS, TOOL, C, SPEAKS, TOOL, A, D),
            [(1, "AB", False), (2, "ABC", False), (4, "ABCD", True)],
            id="more with each step",
        ),
        pytest.param(talk(USER, A, B, SPEAKS, TOOL, B), [(1, "AB", False)], id="nothing new"),
        pytest.param(talk(USER, A, B, C, D, E), [], id="too many"),
        pytest.param(talk(USER, A, B, SPEAKS, TOOL, C, D, E), [(1, "AB", False)], id="too many by now"),
        pytest.param(talk(TOOL, A, B), [(1, "AB", True)], id="before anybody spoke"),
    ],
)
def test_images_of_one_turn_are_described_together(scene: Scene, found: list[tuple[int, str, bool]]) -> None:
    assert compared(scene) == found


@requirement("FR-2.4")
def test_settings_limit_joint_descriptions() -> None:
    both, many = talk(USER, A, B), talk(USER, A, B, C)
    assert compared(both, rules(vision=False)) == []
    assert compared(both, rules(vision=False, max_joint_images=1)) == []
    assert compared(many, rules(vision=False, max_joint_images=2)) == []
    assert compared(both, rules(vision=False, max_joint_images=4, mode="off")) == []
    assert compared(both, rules(vision=False, max_joint_images=4, may_pay=False)) == [(1, "AB", False)]
    assert compared(many, rules(vision=False, max_joint_images=4, max_images=2)) == []
    assert compared(many, rules(vision=False, max_joint_images=4, max_images=0)) == [(2, "ABC", True)]


@requirement("FR-2.4.fails")
def test_unreadable_images_count_and_pixels_only_sights_do_not() -> None:
    no = Refusal("corrupt", "it is broken")
    scene = talk(USER, A, B, C)
    one, two, three = scene.sights
    (group,) = find_joint_groups(replace(scene, sights=(one, two.with_fate(Refused("words", no)), three)), LAWS)
    assert (group.sight_index, group.need.is_complete, len(group.need.images)) == (2, False, 2)
    (group,) = find_joint_groups(talk(USER, A, LinkSource("https://a/b")), LAWS)
    assert (group.sight_index, group.need.is_complete, group.need.images) == (0, False, (A,))
    (group,) = find_joint_groups(replace(scene, sights=(one, two, replace(three, pixels_only=True))), LAWS)
    assert (group.sight_index, group.need.images) == (1, (A, B))


def said(need: DescribeTogether) -> JointDescription:
    members = tuple(DescribedImage(name_of(image) * 64, Size(1, 1)) for image in need.images)
    return JointDescription(members, f"all {len(members)}", "up/eye")


@requirement("FR-2.1.beside")
def test_a_joint_description_follows_the_last_image() -> None:
    table = Table(joint=said)
    fates = table.fates(talk(USER, A, SPEAKS, TOOL, B), LAWS, by=tell)
    assert table.rounds == [
        {
            DescribeImage(A, message=0),
            DescribeImage(B, message=2),
            DescribeTogether((A, B), ("", ""), 2),
            RecallHistory(),
        },
    ]
    words = [fate.text for fate in fates if fate is not None and hasattr(fate, "text")]
    assert [each.count("all 2") for each in words] == [0, 1]


@requirement("FR-2.1.beside")
def test_a_joint_description_follows_a_refusal_too() -> None:
    no = Refusal("unavailable", "nobody answered")
    _, last = Table(look=no, joint=said).fates(talk(USER, A, B), LAWS, by=tell)
    assert isinstance(last, Refused)
    assert last.refusal == no
    assert last.text.startswith(write_absence(no))
    assert "all 2" in last.text


@requirement("fence.neutral")
@given(hostile, hostile, hostile)
def test_a_joint_description_has_exactly_its_own_fence(text: str, filename: str, seer: str) -> None:
    words = write_joint_description(
        JointDescription(
            (DescribedImage("a" * 64, Size(1, 2), filename), DescribedImage("b" * 64, Size(3, 4))), text, seer
        )
    )
    assert fences(words) == ["<vision_proxy_", "</vision_proxy_"]


pieces = st.sampled_from([USER, SPEAKS, TOOL, A, B, C, D, E])


@requirement("law.2")
@given(st.lists(pieces, max_size=20), st.lists(pieces, max_size=10))
def test_an_earlier_joint_description_keeps_its_place(
    first: list[Message | Source], more: list[Message | Source]
) -> None:
    """A request ends before an assistant message, and the next one begins with it."""
    before, after = talk(USER, *first, TOOL), talk(USER, *first, TOOL, SPEAKS, *more, TOOL)
    asked = [(beside, names) for beside, names, _ in compared(before)]
    later = compared(after)
    assert [(beside, names) for beside, names, _ in later][: len(asked)] == asked
    assert all(not paid for _, _, paid in later[: len(asked)])
