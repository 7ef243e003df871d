"""Several images of a turn: which are looked at together, when, and beside which one that is said."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.facts import Compare, Joint, Look, Member, Recall
from sightline.model.fate import Refused
from sightline.model.geometry import Size
from sightline.model.refusal import Refusal
from sightline.model.rules import Rules
from sightline.model.scene import Message, Scene, Sight
from sightline.model.source import Link, Source
from sightline.passes.tell import tell
from sightline.passes.together import groups, turns
from sightline.passes.words import absence, joint
from tests.passes.scenes import Table, inline, name_of, rules
from tests.passes.test_words import fences, hostile
from tests.requirements import requirement

USER, SPEAKS, TOOL = Message("user", opens=True), Message("assistant"), Message("tool")
LAWS = rules(vision=False, max_batch=4)


def talk(*messages: Message | Source) -> Scene:
    """Messages, and after each the images that stand in it."""
    heard: list[Message] = []
    sights: list[Sight] = []
    for each in messages:
        if isinstance(each, Message):
            heard.append(each)
        else:
            sights.append(Sight(("messages", len(sights)), each, "user", message=len(heard) - 1))
    return Scene("m", tuple(sights), messages=tuple(heard))


def compared(scene: Scene, laws: Rules = LAWS) -> list[tuple[int, str, bool]]:
    """Beside which sight, which images, and whether somebody is asked now."""
    return [
        (group.beside, "".join(map(name_of, group.need.images)), not group.need.remembered_only)
        for group in groups(scene, laws)
    ]


A, B, C, D, E = (inline(name) for name in "ABCDE")


def test_a_turn_begins_where_somebody_speaks() -> None:
    assert turns(talk(TOOL, USER, SPEAKS, TOOL, USER)) == [-1, 1, 1, 1, 4]
    assert turns(Scene("m")) == []


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
def test_which_are_looked_at_together(scene: Scene, found: list[tuple[int, str, bool]]) -> None:
    assert compared(scene) == found


@requirement("FR-2.4")
def test_settings_bound_it() -> None:
    both, many = talk(USER, A, B), talk(USER, A, B, C)
    assert compared(both, rules(vision=False)) == []
    assert compared(both, rules(vision=False, max_batch=1)) == []
    assert compared(many, rules(vision=False, max_batch=2)) == []
    assert compared(both, rules(vision=False, max_batch=4, mode="off")) == []
    assert compared(both, rules(vision=False, max_batch=4, paid=False)) == [(1, "AB", False)]
    assert compared(many, rules(vision=False, max_batch=4, max_images=2)) == []
    assert compared(many, rules(vision=False, max_batch=4, max_images=0)) == [(2, "ABC", True)]


@requirement("FR-2.4.fails")
def test_one_that_cannot_be_read_is_said_and_what_cannot_hold_words_is_left_out() -> None:
    no = Refusal("corrupt", "it is broken")
    scene = talk(USER, A, B, C)
    one, two, three = scene.sights
    (group,) = groups(replace(scene, sights=(one, two.meets(Refused("words", no)), three)), LAWS)
    assert (group.beside, group.need.whole, len(group.need.images)) == (2, False, 2)
    (group,) = groups(talk(USER, A, Link("https://a/b")), LAWS)
    assert (group.beside, group.need.whole, group.need.images) == (0, False, (A,))
    (group,) = groups(replace(scene, sights=(one, two, replace(three, fixed=True))), LAWS)
    assert (group.beside, group.need.images) == (1, (A, B))


def said(need: Compare) -> Joint:
    members = tuple(Member(name_of(image) * 64, Size(1, 1)) for image in need.images)
    return Joint(members, f"all {len(members)}", "up/eye")


@requirement("FR-2.1.beside")
def test_it_is_asked_for_with_the_looks_and_stands_beside_the_last() -> None:
    table = Table(joint=said)
    fates = table.fates(talk(USER, A, SPEAKS, TOOL, B), LAWS, by=tell)
    assert table.rounds == [
        {Look(A, message=0), Look(B, message=2), Compare((A, B), ("", ""), 2), Recall()},
    ]
    words = [fate.words for fate in fates if fate is not None and hasattr(fate, "words")]
    assert [each.count("all 2") for each in words] == [0, 1]


@requirement("FR-2.1.beside")
def test_it_stands_beside_a_sentence_too() -> None:
    no = Refusal("unavailable", "nobody answered")
    _, last = Table(look=no, joint=said).fates(talk(USER, A, B), LAWS, by=tell)
    assert isinstance(last, Refused)
    assert last.refusal == no
    assert last.words.startswith(absence(no))
    assert "all 2" in last.words


@requirement("fence.neutral")
@given(hostile, hostile, hostile)
def test_what_is_said_of_several_has_exactly_its_own_fence(text: str, filename: str, seer: str) -> None:
    words = joint(Joint((Member("a" * 64, Size(1, 2), filename), Member("b" * 64, Size(3, 4))), text, seer))
    assert fences(words) == ["<vision_proxy_", "</vision_proxy_"]


pieces = st.sampled_from([USER, SPEAKS, TOOL, A, B, C, D, E])


@requirement("law.2")
@given(st.lists(pieces, max_size=20), st.lists(pieces, max_size=10))
def test_what_was_compared_once_is_looked_for_at_the_same_place_ever_after(
    first: list[Message | Source], more: list[Message | Source]
) -> None:
    """A request ends with what somebody said to the assistant, and the next one begins with the assistant."""
    before, after = talk(USER, *first, TOOL), talk(USER, *first, TOOL, SPEAKS, *more, TOOL)
    asked = [(beside, names) for beside, names, _ in compared(before)]
    later = compared(after)
    assert [(beside, names) for beside, names, _ in later][: len(asked)] == asked
    assert all(not paid for _, _, paid in later[: len(asked)])
