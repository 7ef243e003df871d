"""Copies of sights and scenes that differ in one field."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import product

import pytest

from sightline.model.scene import LinkSource, Message, Role, Scene, Shown, Sight, Told, ToolCall

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


@pytest.mark.parametrize("length", range(6))
def test_the_messages_of_the_previous_request_are_those_up_to_its_end(length: int) -> None:
    roles: tuple[Role, ...] = ("user", "assistant", "tool")
    for each in product(roles, repeat=length):
        scene = Scene("m", messages=tuple(map(Message, each)))
        *before, _ = (-1, -1, *scene.request_ends) if length else (-1, -1)
        assert scene.count_sent_messages() == before[-1] + 1
