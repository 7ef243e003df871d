"""Sights and scenes that change in one thing only."""

from __future__ import annotations

from dataclasses import fields, replace

from sightline.model.fate import Shown, Told
from sightline.model.scene import Call, Message, Scene, Sight
from sightline.model.source import Link

SIGHT = Sight(
    ("messages", 1, "content", 0), Link("https://example.com/a.png"), "tool", Call("c"), 1, (2,),
    hoisted=True, fixed=True, label="words", fate=Told("words", "seer"),
)  # fmt: skip
SCENE = Scene(
    "m", (SIGHT,), stream=True, messages=(Message("tool"),), tools=frozenset({"read"}), partial=True,
    calls=((0, Call("c")),), ours=frozenset({"analyze_image"}),
)  # fmt: skip


def test_the_examples_leave_nothing_as_it_is_by_default() -> None:
    plain: list[tuple[Sight | Scene, Sight | Scene]] = [(SIGHT, Sight((), SIGHT.source, "user")), (SCENE, Scene(""))]
    for full, bare in plain:
        same = [each.name for each in fields(full) if getattr(full, each.name) == getattr(bare, each.name)]
        assert same == (["source"] if isinstance(full, Sight) else [])


def test_a_sight_is_revised_in_its_label_and_its_fate_alone() -> None:
    assert SIGHT.revised("other", Shown()) == replace(SIGHT, label="other", fate=Shown())
    assert replace(SIGHT, fixed=False).meets(Shown("image/png")) == replace(SIGHT, fixed=False, fate=Shown("image/png"))


def test_where_nothing_else_may_stand_pixels_stay() -> None:
    assert SIGHT.meets(Told("words", "seer")) == replace(SIGHT, fate=Shown())


def test_a_scene_with_other_sights_is_the_same_scene() -> None:
    assert SCENE.with_sights(()) == replace(SCENE, sights=())
