"""The references that the pass `show` gives to pasted images."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sightline.model.facts import Fetch, Keep
from sightline.model.labels import build_reference, is_reference
from sightline.model.profile import ImageLimits
from sightline.model.refusal import Refusal
from sightline.model.scene import LinkSource, Message, OpaqueSource, Refitted, Retired, Scene, Shown, Told, ToolCall
from tests.passes.scenes import Table, inline, rules, scene
from tests.requirements import requirement

NAME = build_reference("5" * 64)


def labels(what: Scene, table: Table | None = None, **fields: object) -> list[str]:
    laws = rules(**{"add_references": True, **fields})  # type: ignore[arg-type]
    return [sight.label for sight in (table or Table()).decided(what, laws).sights]


@requirement("refer.pasted")
def test_shown_and_refitted_images_get_references_once_kept() -> None:
    table = Table()
    what = scene(inline("a"), inline("b"), inline("a"))
    assert labels(what, table) == [NAME] * 3
    assert {need for need in table.asked if isinstance(need, Keep)} == {Keep(inline("a")), Keep(inline("b"))}
    small = ImageLimits(edge=10)
    refitted = Table().decided(what, rules(small, add_references=True)).sights
    assert all(isinstance(sight.fate, Refitted) for sight in refitted)
    assert [sight.label for sight in refitted] == [NAME] * 3


@requirement("refer.kept")
def test_an_image_that_was_not_kept_gets_no_reference() -> None:
    what = scene(inline("a"))
    assert labels(what, Table(kept=Refusal("unavailable", "the disk is full"))) == [""]


@requirement("refer.off")
def test_no_image_is_kept_without_references() -> None:
    table = Table()
    assert labels(scene(inline("a")), table, add_references=False) == [""]
    assert not any(isinstance(need, Keep) for need in table.asked)


@requirement("refer.pasted")
@pytest.mark.parametrize("vision", [False, None])
def test_descriptions_and_links_get_no_reference(vision: bool | None) -> None:
    what = (
        scene(inline("a"))
        if vision is False
        else scene(LinkSource("https://example.com/a.png"), OpaqueSource("file-1"))
    )
    assert set(labels(what, vision=vision)) == {""}


@requirement("refer.pasted")
def test_images_of_tools_and_programs_get_no_reference() -> None:
    (sight,) = scene(inline("a")).sights
    tools = Scene("m", (replace(sight, role="tool", call=ToolCall("c1", "Read", "/a.png")),))
    moved = Scene("m", (replace(sight, role="tool", call=ToolCall("c1"), hoisted=True),))
    system = replace(scene(inline("a")), messages=(Message("other"),))
    assert [labels(what) for what in (tools, moved, system)] == [[""], [""], [""]]


def test_the_reference_is_recognised_and_nothing_else_is() -> None:
    assert is_reference(NAME)
    assert is_reference(f" {NAME}\n")
    assert not any(map(is_reference, ("", NAME + NAME, NAME[:-1], "[image sha256:1234]", f"see {NAME}", NAME.upper())))


@requirement("mode.route")
def test_earlier_images_are_described_with_pixels_for_one_turn() -> None:
    sights = scene(*map(inline, "abc")).sights
    messages = tuple(Message("user" if n % 2 == 0 else "assistant", opens_turn=n in (0, 4)) for n in range(6))
    placed = tuple(replace(sight, message=number) for sight, number in zip(sights, (0, 2, 4), strict=True))
    what = Scene("m", placed, messages=messages)
    fates = Table().fates(what, rules(mode="route", pixels_this_turn_only=True))
    assert [type(fate) for fate in fates] == [Told, Told, Shown]
    assert [type(fate) for fate in Table().fates(what, rules(mode="route"))] == [Shown] * 3
    assert not any(isinstance(fate, Retired) for fate in fates)
    fixed = replace(what, sights=tuple(replace(sight, pixels_only=True) for sight in what.sights))
    tight = rules(ImageLimits(edge=10), mode="route", pixels_this_turn_only=True)
    assert [type(fate) for fate in Table().fates(fixed, tight)] == [Refitted] * 3, "nothing else may stand there"


@requirement("mode.route")
def test_links_of_earlier_turns_are_fetched_and_new_ones_forwarded() -> None:
    sights = scene(LinkSource("https://example.com/a.png"), LinkSource("https://example.com/b.png")).sights
    placed = (sights[0], replace(sights[1], message=2))
    messages = (Message("user", opens_turn=True), Message("assistant"), Message("user", opens_turn=True))
    table = Table()
    fates = table.fates(Scene("m", placed, messages=messages), rules(mode="route", pixels_this_turn_only=True))
    assert [type(fate) for fate in fates] == [Told, Shown]
    assert [need for need in table.asked if isinstance(need, Fetch)] == [Fetch(LinkSource("https://example.com/a.png"))]
