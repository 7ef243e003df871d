"""Pinned descriptions: the first writer wins, also between processes, until they are forgotten."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.facts import DescribedImage, Description, JointDescription
from sightline.model.geometry import Size
from sightline.model.ports import Store
from sightline.model.records import DescriptionResult, PinnedDescription, dump_description, load_description
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.store import open_record
from sightline.store.retention import BOUNDED_TABLES
from tests.requirements import requirement
from tests.store.test_bounds import Clock, use_daily
from tests.store.writer import image_of

CAT = image_of("cat", 0).sha256
DOG = image_of("dog", 1).sha256
NO = Refusal("unavailable", "nobody answered", "ask again")


def description(text: str = "a cat", sha256: str = CAT) -> Description:
    return Description(sha256, Size(20, 10), text, "up/eye")


def telling(said: DescriptionResult, turn: str = "t1", during: str = "") -> PinnedDescription:
    images = tuple(sorted((CAT, DOG))) if isinstance(said, JointDescription) else (CAT,)
    return PinnedDescription(turn, images, dump_description(said), isinstance(said, Refusal), during)


def told(record: Store, turn: str = "t1", scope: str = "one") -> DescriptionResult | None:
    found = record.descriptions.read_pin(scope, turn, (CAT,))
    return load_description(found) if found else None


words = st.text(max_size=20)
sizes = st.builds(Size, st.integers(1, 9999), st.integers(1, 9999))
maybe = st.none() | sizes
pointed = st.sampled_from([("none", ""), ("qwen_pixels", ""), ("molmo_points", "<boxes>")])
members = st.lists(st.builds(DescribedImage, words, sizes, words, maybe), min_size=2, max_size=4).map(tuple)
said = st.one_of(
    st.builds(Description, words, sizes, words, words, st.just("none"), maybe),
    st.builds(Description, words, sizes, words, words, st.just("molmo_points"), maybe, words),
    st.builds(Refusal, st.just("unavailable"), words, words),
    st.builds(lambda way, *it: JointDescription(*it, *way), pointed, members, words, words),
)


@given(said)
def test_a_pinned_description_is_read_back_unchanged(what: Description | JointDescription | Refusal) -> None:
    images = ("a", "b") if isinstance(what, JointDescription) else ("a",)
    assert load_description(PinnedDescription("t", images, dump_description(what))) == what


def test_descriptions_from_before_coordinates_are_read() -> None:
    row: dict[str, Json] = {"sha256": CAT, "width": 20, "height": 10, "filename": ""}
    assert (
        load_description(PinnedDescription("t", (CAT,), {"text": "a cat", "seer": "up/eye", "images": [row]}))
        == description()
    )


@requirement("tell.holds")
def test_the_first_description_stays_and_only_a_failure_is_replaced(record: Store) -> None:
    assert told(record) is None
    assert load_description(record.descriptions.pin("one", telling(NO))) == NO
    assert load_description(record.descriptions.pin("one", telling(replace(NO, what="again")))).what == "again"  # type: ignore[union-attr]
    assert load_description(record.descriptions.pin("one", telling(description()))) == description()
    for later in (description("another"), NO):
        assert load_description(record.descriptions.pin("one", telling(later))) == description()
    assert told(record) == description()
    assert told(record, turn="t2") is None
    assert told(record, scope="two") is None


@requirement("law.10")
def test_two_processes_agree_after_a_restart(tmp_path: Path) -> None:
    one, two = open_record(tmp_path), open_record(tmp_path)
    one.descriptions.pin("one", telling(description("by one")))
    assert load_description(two.descriptions.pin("one", telling(description("by two")))) == description("by one")
    one.close()
    two.close()
    again = open_record(tmp_path)
    assert told(again) == description("by one")
    again.close()


@requirement("seer.per_turn")
def test_the_images_asked_about_in_a_turn_are_found(record: Store) -> None:
    record.descriptions.pin("one", telling(description(), during="t1"))
    record.descriptions.pin(
        "one", PinnedDescription("t0", (DOG,), dump_description(NO), failed=True, asked_in_turn="t1")
    )
    record.descriptions.pin(
        "one", PinnedDescription("t1", tuple(sorted((CAT, DOG))), dump_description(NO), asked_in_turn="t1")
    )
    record.descriptions.pin("one", telling(description(), turn="t2"))
    assert record.descriptions.find_asked_images("one", "t1") == {CAT, DOG}
    assert record.descriptions.find_asked_images("one", "t2") == set()
    assert record.descriptions.find_asked_images("two", "t1") == set()


@requirement("tell.holds")
@pytest.mark.parametrize(("scope", "others"), [(None, "new"), ("one", "a cat")])
def test_a_saved_description_replaces_others_everywhere(record: Store, scope: str | None, others: str) -> None:
    both = JointDescription((DescribedImage(CAT, Size(1, 1)), DescribedImage(DOG, Size(1, 1))), "both", "up/eye")
    for where in ("one", "two"):
        record.descriptions.pin(where, telling(description()))
        record.descriptions.pin(where, telling(NO, turn="t2"))
        record.descriptions.pin(where, telling(both))
    assert record.descriptions.save(scope, description("new")) is None
    assert told(record) == told(record, turn="t2") == description("new")
    assert told(record, scope="two") == description(others)
    kept = record.descriptions.read_pin("one", "t1", tuple(sorted((CAT, DOG))))
    assert kept is not None
    assert load_description(kept) == both


@requirement("tell.saved")
def test_the_newest_saved_description_is_read_in_its_scope(tmp_path: Path) -> None:
    record = open_record(tmp_path)

    def read() -> list[Description | None]:
        return [record.descriptions.read_saved(scope, CAT) for scope in ("one", "two")]

    assert read() == [None, None]
    own = replace(description("own"), seer="up/other", coordinate_format="qwen_pixels", boxes_block="boxes")
    record.descriptions.save("one", own)
    assert read() == [own, None]
    record.descriptions.save(None, description("for all"))
    assert read() == [description("for all")] * 2
    record.descriptions.save("two", own)
    record.close()
    record = open_record(tmp_path)
    assert read() == [description("for all"), own]
    assert record.descriptions.read_saved("one", DOG) is None
    record.forget(CAT)
    assert read() == [None, None]


@requirement("tell.saved")
def test_a_description_saved_meanwhile_is_pinned(record: Store) -> None:
    record.descriptions.save("one", description("saved"))
    for turn, made in (("t1", description("late")), ("t2", NO)):
        pinned = record.descriptions.pin("one", telling(made, turn=turn))
        assert load_description(pinned) == description("saved")
        assert told(record, turn=turn) == description("saved")
    record.descriptions.pin("two", telling(description("late")))
    assert told(record, scope="two") == description("late")


@requirement("record.forget", "record.forget.all")
def test_pinned_descriptions_are_forgotten_with_any_of_their_images(record: Store) -> None:
    both = JointDescription((DescribedImage(CAT, Size(1, 1)), DescribedImage(DOG, Size(1, 1))), "both", "up/eye")
    record.descriptions.pin("one", telling(both))
    record.descriptions.pin("one", telling(description()))
    record.descriptions.pin("one", PinnedDescription("t1", (DOG,), dump_description(description("a dog", DOG))))
    assert record.find_known_images(CAT[:12]) == (CAT,)
    record.forget(CAT)
    assert told(record) is None
    assert record.descriptions.read_pin("one", "t1", tuple(sorted((CAT, DOG)))) is None
    assert record.descriptions.read_pin("one", "t1", (DOG,)) is not None
    record.forget(None)
    assert record.descriptions.read_pin("one", "t1", (DOG,)) is None


@requirement("record.days", "record.lru")
def test_pinned_descriptions_expire_unless_they_are_used(tmp_path: Path) -> None:
    assert "tellings" in BOUNDED_TABLES
    clock = Clock()
    record = open_record(tmp_path, days=30, now=clock)
    record.descriptions.pin("one", telling(description()))
    record.descriptions.pin("one", telling(description(), turn="t2"))
    for _ in range(4):
        use_daily(tmp_path, clock, 10)
        assert told(record) == description()
        record.close()
        record = open_record(tmp_path, days=30, now=clock)
    assert told(record, turn="t2") is None
    record.close()
