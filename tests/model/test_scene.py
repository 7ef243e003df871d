"""Copies of sights and scenes that differ in one field."""

from __future__ import annotations

from dataclasses import fields, replace

from sightline.model.scene import LinkSource, Message, Scene, Shown, Sight, Told, ToolCall

SIGHT = Sight(
    ("messages", 1, "content", 0), LinkSource("https://example.com/a.png"), "tool", ToolCall("c"), 1, (2,),
    hoisted=True, pixels_only=True, label="words", fate=Told("words", "seer"), pasted_name="a.png",
)  # fmt: skip
SCENE = Scene(
    "m", (SIGHT,), stream=True, messages=(Message("tool"),), tools=frozenset({"read"}), is_partial=True,
    file_calls=((0, ToolCall("c")),), own_tools=frozenset({"analyze_image"}), declared_tools=({"name": "read"},),
)  # fmt: skip


def test_the_examples_set_every_field() -> None:
    plain: list[tuple[Sight | Scene, Sight | Scene]] = [(SIGHT, Sight((), SIGHT.source, "user")), (SCENE, Scene(""))]
    for full, bare in plain:
        same = [each.name for each in fields(full) if getattr(full, each.name) == getattr(bare, each.name)]
        assert same == (["source"] if isinstance(full, Sight) else [])


def test_only_label_and_fate_of_a_sight_change() -> None:
    assert SIGHT.with_label_and_fate("other", Shown()) == replace(SIGHT, label="other", fate=Shown())
    assert replace(SIGHT, pixels_only=False).with_fate(Shown("image/png")) == replace(
        SIGHT, pixels_only=False, fate=Shown("image/png")
    )


def test_a_pixels_only_sight_is_shown() -> None:
    assert SIGHT.with_fate(Told("words", "seer")) == replace(SIGHT, fate=Shown())


def test_with_sights_keeps_the_other_fields() -> None:
    assert SCENE.with_sights(()) == replace(SCENE, sights=())
