"""What was said at a place of a conversation: the first word counts, also between processes, until it is forgotten."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.facts import Description, Joint, Member
from sightline.model.geometry import Size
from sightline.model.ports import Store
from sightline.model.records import Said, Telling, read, written
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.store import open_record
from sightline.store.retention import TABLES
from tests.requirements import requirement
from tests.store.test_bounds import Clock, use_daily
from tests.store.writer import image_of

CAT = image_of("cat", 0).sha256
DOG = image_of("dog", 1).sha256
NO = Refusal("unavailable", "nobody answered", "ask again")


def description(text: str = "a cat", sha256: str = CAT) -> Description:
    return Description(sha256, Size(20, 10), text, "up/eye")


def telling(said: Said, turn: str = "t1", during: str = "") -> Telling:
    images = tuple(sorted((CAT, DOG))) if isinstance(said, Joint) else (CAT,)
    return Telling(turn, images, written(said), isinstance(said, Refusal), during)


def told(record: Store, turn: str = "t1", scope: str = "one") -> Said | None:
    found = record.descriptions.read_pinned(scope, turn, (CAT,))
    return read(found) if found else None


words = st.text(max_size=20)
sizes = st.builds(Size, st.integers(1, 9999), st.integers(1, 9999))
maybe = st.none() | sizes
pointed = st.sampled_from([("none", ""), ("qwen_pixels", ""), ("molmo_points", "<boxes>")])
members = st.lists(st.builds(Member, words, sizes, words, maybe), min_size=2, max_size=4).map(tuple)
said = st.one_of(
    st.builds(Description, words, sizes, words, words, st.just("none"), maybe),
    st.builds(Description, words, sizes, words, words, st.just("molmo_points"), maybe, words),
    st.builds(Refusal, st.just("unavailable"), words, words),
    st.builds(lambda way, *it: Joint(*it, *way), pointed, members, words, words),
)


@given(said)
def test_what_is_written_is_read_as_it_was_said(what: Description | Joint | Refusal) -> None:
    images = ("a", "b") if isinstance(what, Joint) else ("a",)
    assert read(Telling("t", images, written(what))) == what


def test_what_was_written_before_words_had_coordinates_is_read() -> None:
    row: dict[str, Json] = {"sha256": CAT, "width": 20, "height": 10, "filename": ""}
    assert read(Telling("t", (CAT,), {"text": "a cat", "seer": "up/eye", "images": [row]})) == description()


@requirement("tell.holds")
def test_the_first_word_counts_and_only_a_failure_gives_way(record: Store) -> None:
    assert told(record) is None
    assert read(record.descriptions.pin("one", telling(NO))) == NO
    assert read(record.descriptions.pin("one", telling(replace(NO, what="again")))).what == "again"  # type: ignore[union-attr]
    assert read(record.descriptions.pin("one", telling(description()))) == description()
    for later in (description("another"), NO):
        assert read(record.descriptions.pin("one", telling(later))) == description()
    assert told(record) == description()
    assert told(record, turn="t2") is None
    assert told(record, scope="two") is None


@requirement("law.10")
def test_two_processes_agree_also_after_a_restart(tmp_path: Path) -> None:
    one, two = open_record(tmp_path), open_record(tmp_path)
    one.descriptions.pin("one", telling(description("by one")))
    assert read(two.descriptions.pin("one", telling(description("by two")))) == description("by one")
    one.close()
    two.close()
    again = open_record(tmp_path)
    assert told(again) == description("by one")
    again.close()


@requirement("seer.per_turn")
def test_it_is_known_for_which_images_somebody_was_asked_in_a_turn(record: Store) -> None:
    record.descriptions.pin("one", telling(description(), during="t1"))
    record.descriptions.pin("one", Telling("t0", (DOG,), written(NO), failed=True, during="t1"))
    record.descriptions.pin("one", Telling("t1", tuple(sorted((CAT, DOG))), written(NO), during="t1"))
    record.descriptions.pin("one", telling(description(), turn="t2"))
    assert record.descriptions.find_asked("one", "t1") == {CAT, DOG}
    assert record.descriptions.find_asked("one", "t2") == set()
    assert record.descriptions.find_asked("two", "t1") == set()


@requirement("tell.holds")
@pytest.mark.parametrize(("scope", "others"), [(None, "new"), ("one", "a cat")])
def test_a_user_changes_what_is_said_of_an_image_wherever_it_was_told(
    record: Store, scope: str | None, others: str
) -> None:
    both = Joint((Member(CAT, Size(1, 1)), Member(DOG, Size(1, 1))), "both", "up/eye")
    for where in ("one", "two"):
        record.descriptions.pin(where, telling(description()))
        record.descriptions.pin(where, telling(NO, turn="t2"))
        record.descriptions.pin(where, telling(both))
    assert record.descriptions.replace("one", scope, description("new"), "v1") is None
    assert record.descriptions.read("one", CAT, description().seer, "v1") == description("new")
    assert told(record) == told(record, turn="t2") == description("new")
    assert told(record, scope="two") == description(others)
    kept = record.descriptions.read_pinned("one", "t1", tuple(sorted((CAT, DOG))))
    assert kept is not None
    assert read(kept) == both


@requirement("record.forget", "record.forget.all")
def test_what_was_said_of_an_image_is_forgotten_with_it_also_among_others(record: Store) -> None:
    both = Joint((Member(CAT, Size(1, 1)), Member(DOG, Size(1, 1))), "both", "up/eye")
    record.descriptions.pin("one", telling(both))
    record.descriptions.pin("one", telling(description()))
    record.descriptions.pin("one", Telling("t1", (DOG,), written(description("a dog", DOG))))
    assert record.find_remembered(CAT[:12]) == (CAT,)
    record.forget(CAT)
    assert told(record) is None
    assert record.descriptions.read_pinned("one", "t1", tuple(sorted((CAT, DOG)))) is None
    assert record.descriptions.read_pinned("one", "t1", (DOG,)) is not None
    record.forget(None)
    assert record.descriptions.read_pinned("one", "t1", (DOG,)) is None


@requirement("record.days", "record.lru")
def test_it_is_bounded_like_everything_else_and_kept_while_it_is_used(tmp_path: Path) -> None:
    assert "tellings" in TABLES
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
