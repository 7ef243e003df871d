"""Stored views: kept with their pixels, found by their id, and forgotten with their image."""

from __future__ import annotations

import json
import os
import sqlite3
from dataclasses import asdict
from pathlib import Path

import pytest

from sightline.model.facts import Description
from sightline.model.geometry import Size
from sightline.model.ports import Store
from sightline.model.profile import ImageLimits
from sightline.model.records import StoredView, compute_view_id
from sightline.model.refusal import Refusal
from sightline.store import open_record
from sightline.store.migrations import MIGRATIONS
from tests.requirements import requirement
from tests.store.test_bounds import Clock, blobs_in, use_daily
from tests.store.writer import description_of, image_of, perception_of

IMAGE = image_of("cat", 1)
VIEW = perception_of("cat", 1)


@requirement("record.perceptions")
def test_a_view_is_read_back_with_its_pixels_by_its_id(record: Store) -> None:
    record.images.keep_view("scope", VIEW)
    found = record.images.read_view("scope", compute_view_id(VIEW.result))
    assert found == VIEW
    assert found is not None
    assert found.pixels.data == VIEW.pixels.data
    assert json.loads(found.result)["image"] == f"sha256:{IMAGE.sha256}"


@requirement("inspector.sent")
def test_views_of_an_image_are_listed_and_their_pixels_read(record: Store) -> None:
    other = perception_of("dog", 2)
    for scope, view in (("one", VIEW), ("two", VIEW), ("one", other)):
        record.images.keep_view(scope, view)
    listed = record.images.list_views(VIEW.image, 9)
    assert [(each.result, each.text, each.pixels.sha256) for each in listed] == [
        (VIEW.result, VIEW.text, VIEW.pixels.sha256)
    ] * 2
    assert {each.pixels.data for each in listed} == {b""}, "they are read when they are looked at"
    assert len(record.images.list_views(VIEW.image, 1)) == 1
    assert record.images.read_pixels(other.pixels.sha256) == other.pixels
    assert record.images.read_pixels("0" * 64) is None


@requirement("record.scope.rows")
def test_a_view_is_private_to_its_scope(record: Store) -> None:
    record.images.keep_view("mine", VIEW)
    assert record.images.read_view("yours", VIEW.id) is None
    assert record.images.read_view("mine", compute_view_id("{}")) is None


@requirement("record.scope.rows")
def test_every_table_of_every_migration_has_a_scope() -> None:
    database = sqlite3.connect(":memory:")
    for step in MIGRATIONS:
        for statement in step:
            database.execute(statement)
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            assert "scope" in [column[1] for column in database.execute(f"PRAGMA table_info({table})")], table
    database.close()


def test_a_record_of_the_first_version_is_migrated_and_keeps_its_content(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "record.sqlite")
    for statement in MIGRATIONS[0]:
        database.execute(statement)
    none, tight = (json.dumps(asdict(limits)) for limits in (ImageLimits(), ImageLimits(edge=2000)))
    lessons = [("a", 0, tight), ("b", 1, none), ("c", 0, tight), ("c", 1, none), ("d", 1, tight)]
    for model, blind, limits in lessons:
        row = (model, blind, limits, "it said so", 1e12)
        database.execute("INSERT INTO lessons VALUES ('', 'zai', ?, ?, ?, ?, ?)", row)
    database.execute("INSERT INTO consents VALUES ('', 'openai', 1, 0)")
    database.execute("INSERT INTO descriptions VALUES ('scope', 'a', 'up/eye', 'v1', 20, 10, 'a cat', 5, 1e9)")
    database.execute("PRAGMA user_version = 1")
    database.commit()
    database.close()
    record = open_record(tmp_path)
    record.images.keep_view("scope", VIEW)
    assert record.images.read_view("scope", VIEW.id) == VIEW
    assert record.policy.read_consents() == {"openai": True}
    assert record.descriptions.read("scope", "a", "up/eye", "v1") == Description("a", Size(20, 10), "a cat", "up/eye")
    assert {model: (lesson.blind, lesson.limits) for _, model, lesson in record.policy.list_lessons()} == {
        "a": (None, ImageLimits(edge=2000)),
        "b": (True, ImageLimits()),
        "c": (True, ImageLimits(edge=2000)),
        "d": (True, ImageLimits(edge=2000)),
    }
    assert all(lesson.why == "it said so" for _, _, lesson in record.policy.list_lessons())
    record.close()


@requirement("record.prefix")
def test_a_prefix_finds_images_of_its_scope_only(record: Store) -> None:
    images = sorted((image_of("cat", number) for number in range(40)), key=lambda image: image.sha256)
    for image in images:
        record.images.keep("mine", image)
    for image in images:
        assert record.images.find_by_prefix("mine", image.sha256[:12]) == (image.sha256,)
        assert record.images.find_by_prefix("mine", image.sha256) == (image.sha256,)
        assert record.images.find_by_prefix("yours", image.sha256) == ()
    shared = next(digit for digit in "0123456789abcdef" if sum(i.sha256[0] == digit for i in images) >= 2)
    two = [image.sha256 for image in images if image.sha256[0] == shared][:2]
    assert record.images.find_by_prefix("mine", shared) == tuple(two)
    assert record.images.find_by_prefix("mine", "%") == ()


@requirement("record.owner")
def test_the_owner_of_the_record_sees_the_images_of_every_scope(record: Store) -> None:
    record.images.keep("mine", IMAGE)
    record.images.keep("yours", IMAGE)
    assert record.images.read(None, IMAGE.sha256) == IMAGE
    assert record.images.find_by_prefix(None, IMAGE.sha256[:12]) == (IMAGE.sha256,)
    assert record.images.find_by_prefix("", IMAGE.sha256) == ()
    assert record.images.read("", IMAGE.sha256) is None


@requirement("record.forget")
def test_an_image_is_forgotten_with_its_descriptions_and_views(record: Store) -> None:
    other, other_view = image_of("dog", 2), perception_of("dog", 2)
    for scope in ("mine", "yours"):
        record.images.keep(scope, IMAGE)
        record.descriptions.keep(scope, description_of("cat", 1), "v1")
        record.images.keep_view(scope, VIEW)
        record.images.keep(scope, other)
        record.images.keep_view(scope, other_view)
    assert record.forget(IMAGE.sha256) == 1
    for scope in ("mine", "yours"):
        assert record.images.read(scope, IMAGE.sha256) is None
        assert record.descriptions.read(scope, IMAGE.sha256, "ollama/llava", "v1") is None
        assert record.images.read_view(scope, VIEW.id) is None
        assert record.images.read(scope, other.sha256) == other
        assert record.images.read_view(scope, other_view.id) == other_view
    assert record.forget(IMAGE.sha256) == 0
    record.images.keep("mine", IMAGE)
    assert record.images.read("mine", IMAGE.sha256) == IMAGE


@requirement("record.forget.all")
def test_all_images_are_forgotten_and_consents_stay(record: Store) -> None:
    record.policy.set_consent("openai", given=True)
    record.images.keep("mine", IMAGE)
    record.images.keep_view("yours", perception_of("dog", 2))
    record.descriptions.keep("yours", description_of("fox", 3), "v1")
    assert record.forget(None) == 4
    assert record.images.read("mine", IMAGE.sha256) is None
    assert record.images.read_view("yours", perception_of("dog", 2).id) is None
    assert record.descriptions.read("yours", image_of("fox", 3).sha256, "ollama/llava", "v1") is None
    assert record.policy.read_consents() == {"openai": True}
    assert record.forget(None) == 0


@requirement("record.forget.traces")
def test_forgotten_content_is_overwritten_on_the_disk(tmp_path: Path) -> None:
    record = open_record(tmp_path)
    record.images.keep("scope", IMAGE)
    record.descriptions.keep("scope", description_of("cat", 1), "v1")
    record.images.keep_view("scope", VIEW)
    traces = (b"cat sees 1", VIEW.pixels.data[:40], IMAGE.sha256.encode())

    def left() -> list[bytes]:
        held = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
        return [trace for trace in traces if trace in held]

    assert left() == list(traces)
    record.forget(IMAGE.sha256)
    assert left() == []
    assert blobs_in(tmp_path) == set()
    record.close()


@requirement("record.forget.traces")
def test_forgetting_survives_a_power_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = open_record(tmp_path)
    record.images.keep("scope", IMAGE)
    place = next(tmp_path.rglob(IMAGE.sha256)).parent
    synced: list[str] = []
    fsync = os.fsync

    def noted(handle: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{handle}").readlink()))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", noted)
    assert record.forget(IMAGE.sha256) == 1
    assert str(place) in synced
    record.close()


@requirement("record.forget.refused")
def test_forgetting_is_refused_while_a_reader_keeps_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sightline.store.sqlite_database._BUSY_SECONDS", 0.05)
    record = open_record(tmp_path)
    record.descriptions.keep("scope", description_of("cat", 1), "v1")
    reader = sqlite3.connect(tmp_path / "record.sqlite", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM descriptions").fetchall()
    for chosen in (IMAGE.sha256, None):
        refusal = record.forget(chosen)
        assert isinstance(refusal, Refusal)
        assert (refusal.code, "program" in refusal.what) == ("unavailable", True)
        assert any(b"cat sees 1" in path.read_bytes() for path in tmp_path.glob("record.sqlite*"))
    reader.close()
    assert record.forget(None) == 0
    assert not any(b"cat sees 1" in path.read_bytes() for path in tmp_path.glob("record.sqlite*"))
    record.close()


@requirement("record.forget.refused")
def test_forgetting_is_refused_if_the_record_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sightline.store.sqlite_database._BUSY_SECONDS", 0.05)
    record = open_record(tmp_path)
    record.images.keep("scope", IMAGE)
    other = sqlite3.connect(tmp_path / "record.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert isinstance(record.forget(IMAGE.sha256), Refusal)
    other.close()
    assert record.images.read("scope", IMAGE.sha256) == IMAGE
    record.close()


@requirement("record.forget.command")
def test_images_to_forget_are_found_by_prefix_in_every_table(record: Store) -> None:
    record.images.keep("mine", IMAGE)
    record.descriptions.keep("yours", description_of("fox", 3), "v1")
    record.images.keep_view("theirs", perception_of("dog", 2))
    view = perception_of("dog", 2)
    for sha256 in (IMAGE.sha256, image_of("fox", 3).sha256, view.image, view.pixels.sha256):
        assert record.find_known_images(sha256[:12]) == (sha256,)
    assert record.find_known_images("0" * 12) == ()
    every = record.find_known_images("")
    assert isinstance(every, tuple)
    assert len(every) == 2


@requirement("record.lru", "record.bytes")
def test_views_count_against_the_limit_and_the_oldest_are_deleted_first(tmp_path: Path) -> None:
    clock = Clock()
    size = len(perception_of("cat", 10).pixels.data)
    record = open_record(tmp_path, bytes_limit=10 * size, now=clock)
    for number in range(10, 40):
        clock.days += 0.1
        record.images.keep_view("scope", perception_of("cat", number))
        assert sum(path.stat().st_size for path in (tmp_path / "blobs").rglob("*/*/*")) <= 10 * size
    found = [number for number in range(10, 40) if record.images.read_view("scope", perception_of("cat", number).id)]
    assert found == list(range(40 - len(found), 40))
    assert 5 <= len(found) <= 10
    record.close()


@requirement("record.days", "record.lru")
def test_a_view_that_is_read_again_stays_and_others_expire(tmp_path: Path) -> None:
    clock = Clock()
    record = open_record(tmp_path, days=30, now=clock)
    record.images.keep_view("scope", VIEW)
    record.images.keep_view("scope", perception_of("dog", 2))
    use_daily(tmp_path, clock, 20)
    assert record.images.read_view("scope", VIEW.id)
    record.close()
    use_daily(tmp_path, clock, 20)
    record = open_record(tmp_path, days=30, now=clock)
    assert record.images.read_view("scope", VIEW.id) == VIEW
    assert record.images.read_view("scope", perception_of("dog", 2).id) is None
    assert blobs_in(tmp_path) == {VIEW.pixels.sha256}
    record.close()


def test_pixels_stay_while_a_view_uses_them(tmp_path: Path) -> None:
    whole = StoredView('{"whole": true}', IMAGE.sha256, IMAGE)
    clock = Clock()
    record = open_record(tmp_path, days=30, now=clock)
    record.images.keep("scope", IMAGE)
    use_daily(tmp_path, clock, 20)
    record.images.keep_view("scope", whole)
    record.close()
    use_daily(tmp_path, clock, 20)
    record = open_record(tmp_path, days=30, now=clock)
    assert record.images.read("scope", IMAGE.sha256) is None
    assert record.images.read_view("scope", whole.id) == whole
    record.close()
