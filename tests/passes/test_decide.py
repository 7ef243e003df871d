"""All passes together: they ask only for what they need, and decisions are final."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sightline.model import records
from sightline.model.facts import Fact, Facts, KeptImage, Needs, Rules
from sightline.model.geometry import Size
from sightline.model.image import ImageInfo
from sightline.model.profile import ImageLimits, ToolImagePlacement
from sightline.model.refusal import Refusal
from sightline.model.scene import (
    AS_SENT,
    InlineSource,
    LinkSource,
    OpaqueSource,
    Refused,
    Scene,
    Shown,
    Sight,
    Source,
    ToolCall,
)
from sightline.passes import PASSES, decide
from tests.passes.scenes import Table, description, fitted, inline, rules, scene
from tests.refusals import NOT_SHOWN
from tests.requirements import requirement

NO = Refusal("corrupt", "it is broken", "attach it again")
sources: st.SearchStrategy[Source] = st.one_of(
    st.builds(
        inline, st.sampled_from("abcdef"), st.just(700) | st.integers(1, 900), st.sampled_from(["image/png", ""])
    ),
    st.just(LinkSource("https://a/b")),
    st.just(OpaqueSource("file_1")),
)
limits = st.builds(
    ImageLimits,
    st.just(("image/png", "image/jpeg")),
    st.none() | st.integers(100, 500),
    st.none() | st.integers(50, 500),
    st.just(2),
    st.just(40),
    st.none() | st.integers(1, 4),
    st.none() | st.integers(500, 3000),
)
laws = st.builds(
    rules,
    limits,
    vision=st.sampled_from([True, False, None]),
    mode=st.sampled_from(["fallback", "always", "off"]),
    max_images=st.integers(0, 3),
    may_pay=st.booleans(),
    check_all_images=st.booleans(),
    reencode=st.booleans(),
    unreadable_keys=st.frozensets(st.sampled_from([inline(name).key for name in "abc"])),
)
pictures: st.SearchStrategy[Fact] = st.one_of(
    st.builds(
        ImageInfo,
        st.sampled_from(["image/png", "image/gif"]),
        st.builds(Size, st.integers(1, 600), st.integers(1, 600)),
        st.integers(1, 999),
    ),
    st.just(NO),
)
tables = st.builds(
    Table,
    pictures,
    st.sampled_from([fitted(), fitted("folded"), NO]),
    st.sampled_from([description(), NO, Refusal("pending", "wait")]),
)
scenes = st.lists(sources, max_size=6).map(lambda found: scene(*found))


@requirement("decide.asks_once")
@given(scenes, laws, tables)
def test_every_sight_gets_a_fate_and_nothing_is_asked_twice(what: Scene, given_laws: Rules, table: Table) -> None:
    after = table.decided(what, given_laws)  # it fails where a pass asks for what it knows
    assert all(sight.fate is not None for sight in after.sights)
    undecided = tuple(replace(sight, fate=None) for sight in after.sights)
    opened = [(now, was) for now, was in zip(undecided, what.sights, strict=True) if now != was]
    assert all(isinstance(was.source, LinkSource) and now == replace(was, source=now.source) for now, was in opened)
    assert len(table.rounds) <= 3  # an address is opened before it is looked at
    assert len(table.asked) == len(set(table.asked))


@given(scenes, laws, tables)
def test_deciding_again_asks_nothing_and_changes_nothing(what: Scene, given_laws: Rules, table: Table) -> None:
    after = table.decided(what, given_laws)
    assert decide(after, Facts(), given_laws) == after


@st.composite
def brought(draw: st.DrawFn) -> Scene:
    """Draw a scene of tool images: in results, in texts of results, or hoisted."""
    what = draw(scenes)
    kinds: tuple[dict[str, Any], ...] = (
        {},
        {"hoisted": True},
        {"path_in_text": ()},
        {"path_in_text": (1, "data")},
        {"pixels_only": True},
    )
    kind = st.sampled_from(
        [replace(Sight((), LinkSource(""), "tool", ToolCall("c1", "shot")), **each) for each in kinds]
    )
    drawn = [(sight, draw(kind)) for sight in what.sights]
    return replace(what, sights=tuple(replace(one, place=s.place, source=s.source) for s, one in drawn))


@given(brought(), laws, tables, st.sampled_from(["native", "hoist", "bridge"]))
def test_images_of_tools_are_decided_once_too(
    what: Scene, given_laws: Rules, table: Table, way: ToolImagePlacement
) -> None:
    moving = replace(given_laws, profile=replace(given_laws.profile, tool_images=way))
    after = table.decided(what, moving)
    assert decide(after, Facts(), moving) == after
    assert all(sight.fate is not None for sight in after.sights)
    assert all(sight.label == "" or (sight.is_in_tool_result and way != "native") for sight in after.sights)
    gone = {sight.place for sight in what.sights} - {sight.place for sight in after.sights}
    assert all(sight.path_in_text is not None for sight in what.sights if sight.place in gone)


@requirement("refusal.never_silent")
@given(scenes, laws, tables)
def test_nothing_is_refused_silently(what: Scene, given_laws: Rules, table: Table) -> None:
    after = table.decided(what, given_laws)
    refused = [sight.fate for sight in after.sights if isinstance(sight.fate, Refused)]
    assert all(fate.refusal.what in fate.text and NOT_SHOWN in fate.text for fate in refused)
    told = records.build_receipt(after, "up")
    assert [str(fate.refusal) for fate in refused] == [line.why for line in told.sights if line.fate == "refused"]
    assert told.unchanged_count + len(told.changes) == len(after.sights)


@given(scenes, laws, tables)
def test_a_model_with_vision_gets_pixels_and_others_descriptions(what: Scene, given_laws: Rules, table: Table) -> None:
    kinds = {type(sight.fate).__name__ for sight in table.decided(what, given_laws).sights}
    assert not kinds & ({"Shown", "Refitted"} if given_laws.is_blind else {"Told"})


@given(scenes, laws, tables)
def test_an_image_sent_within_limits_is_never_changed(what: Scene, given_laws: Rules, table: Table) -> None:
    if given_laws.is_blind or given_laws.reencode or given_laws.unreadable_keys:
        return
    easy = replace(given_laws, profile=replace(given_laws.profile, limits=ImageLimits()))
    fine = Table(ImageInfo("image/png", Size(10, 10), 100))
    assert all(
        records.build_receipt(Scene("m", (sight,)), "up").unchanged_count
        or (isinstance(sight.source, InlineSource) and not sight.source.declared_mime)
        for sight in fine.decided(what, easy).sights
    )


def decide_by_all_passes(what: Scene, facts: Facts, by: Rules) -> Scene | Needs:
    """Run every pass, also those that can't change ordinary scenes."""
    for run_pass in PASSES:
        outcome = run_pass(what, facts, by)
        if isinstance(outcome, Needs):
            return outcome
        what = outcome
    return what


@given(st.lists(sources, max_size=6), laws, pictures, st.booleans())
def test_the_passes_that_are_left_out_would_change_nothing(
    given_sources: list[Source], by: Rules, picture: Fact, refers: bool
) -> None:
    what, by = scene(*given_sources), replace(by, add_references=refers)
    all_asked, asked = Table(picture), Table(picture)
    assert asked.decided(what, by) == all_asked.decided(what, by, decide_by_all_passes)
    assert asked.rounds == all_asked.rounds


@given(st.lists(st.sampled_from("abc"), max_size=4), st.booleans())
def test_the_line_of_a_shown_image_is_the_same_from_its_cache(names: list[str], is_named: bool) -> None:
    kept = KeptImage("5" * 64, ImageInfo("image/png", Size(640, 480), 525))
    what = scene(*map(inline, names), filename="/a/~b.png" if is_named else None)
    facts = Facts(kept={inline(name): kept for name in names})
    if is_named:  # a place that is too long for the cache
        what = what.with_sights(tuple(replace(s, place=("content", "key" * 200, *s.place)) for s in what.sights))
    shown = what.with_sights(tuple(sight.with_label_and_fate("[label]", AS_SENT) for sight in what.sights))
    equal = what.with_sights(tuple(sight.with_label_and_fate("[label]", Shown()) for sight in what.sights))
    sizing = rules().profile.sizing
    first, again = (records.build_receipt(shown, "up", sizing, facts) for _ in range(2))
    assert first == again == records.build_receipt(equal, "up", sizing, facts)
    assert all(line.fate == "shown" and line.sha256 == kept.sha256 for line in first.sights)
