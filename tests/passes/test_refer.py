"""The reference beside a pasted image: whose image gets one, and whose does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sightline.model.facts import Fetch, Keep
from sightline.model.fate import Refitted, Retired, Shown, Told
from sightline.model.marks import reference, refers
from sightline.model.profile import Limits
from sightline.model.refusal import Refusal
from sightline.model.scene import Call, Message, Scene
from sightline.model.source import Link, Opaque
from tests.passes.scenes import Table, inline, rules, scene
from tests.requirements import requirement

NAME = reference("5" * 64)


def labels(what: Scene, table: Table | None = None, **fields: object) -> list[str]:
    laws = rules(**{"references": True, **fields})  # type: ignore[arg-type]
    return [sight.label for sight in (table or Table()).decided(what, laws).sights]


@requirement("refer.pasted")
def test_shown_and_refitted_images_get_theirs_once_each_is_kept() -> None:
    table = Table()
    what = scene(inline("a"), inline("b"), inline("a"))
    assert labels(what, table) == [NAME] * 3
    assert {need for need in table.asked if isinstance(need, Keep)} == {Keep(inline("a")), Keep(inline("b"))}
    small = Limits(edge=10)
    refitted = Table().decided(what, rules(small, references=True)).sights
    assert all(isinstance(sight.fate, Refitted) for sight in refitted)
    assert [sight.label for sight in refitted] == [NAME] * 3


@requirement("refer.kept")
def test_what_the_record_could_not_take_gets_none() -> None:
    what = scene(inline("a"))
    assert labels(what, Table(kept=Refusal("unavailable", "the disk is full"))) == [""]


@requirement("refer.off")
def test_nobody_is_asked_to_keep_anything_where_no_references_are_wanted() -> None:
    table = Table()
    assert labels(scene(inline("a")), table, references=False) == [""]
    assert not any(isinstance(need, Keep) for need in table.asked)


@requirement("refer.pasted")
@pytest.mark.parametrize("vision", [False, None])
def test_words_and_addresses_get_none(vision: bool | None) -> None:
    what = scene(inline("a")) if vision is False else scene(Link("https://example.com/a.png"), Opaque("file-1"))
    assert set(labels(what, vision=vision)) == {""}


@requirement("refer.pasted")
def test_what_tools_brought_or_programs_said_gets_none() -> None:
    (sight,) = scene(inline("a")).sights
    tools = Scene("m", (replace(sight, role="tool", call=Call("c1", "Read", "/a.png")),))
    moved = Scene("m", (replace(sight, role="tool", call=Call("c1"), hoisted=True),))
    system = replace(scene(inline("a")), messages=(Message("other"),))
    assert [labels(what) for what in (tools, moved, system)] == [[""], [""], [""]]


def test_the_reference_is_recognised_and_nothing_else_is() -> None:
    assert refers(NAME)
    assert refers(f" {NAME}\n")
    assert not any(map(refers, ("", NAME + NAME, NAME[:-1], "[image sha256:1234]", f"see {NAME}", NAME.upper())))


@requirement("mode.route")
def test_where_pixels_are_for_one_turn_those_of_earlier_turns_are_told() -> None:
    sights = scene(*map(inline, "abc")).sights
    messages = tuple(Message("user" if n % 2 == 0 else "assistant", opens=n in (0, 4)) for n in range(6))
    placed = tuple(replace(sight, message=number) for sight, number in zip(sights, (0, 2, 4), strict=True))
    what = Scene("m", placed, messages=messages)
    fates = Table().fates(what, rules(mode="route", by_turn=True))
    assert [type(fate) for fate in fates] == [Told, Told, Shown]
    assert [type(fate) for fate in Table().fates(what, rules(mode="route"))] == [Shown] * 3
    assert not any(isinstance(fate, Retired) for fate in fates)
    fixed = replace(what, sights=tuple(replace(sight, fixed=True) for sight in what.sights))
    tight = rules(Limits(edge=10), mode="route", by_turn=True)
    assert [type(fate) for fate in Table().fates(fixed, tight)] == [Refitted] * 3, "nothing else may stand there"


@requirement("mode.route")
def test_of_a_turn_that_is_over_an_address_is_opened_and_of_the_newest_it_is_passed_on() -> None:
    sights = scene(Link("https://example.com/a.png"), Link("https://example.com/b.png")).sights
    placed = (sights[0], replace(sights[1], message=2))
    messages = (Message("user", opens=True), Message("assistant"), Message("user", opens=True))
    table = Table()
    fates = table.fates(Scene("m", placed, messages=messages), rules(mode="route", by_turn=True))
    assert [type(fate) for fate in fates] == [Told, Shown]
    assert [need for need in table.asked if isinstance(need, Fetch)] == [Fetch(Link("https://example.com/a.png"))]
