"""A record stays within its limits of size and age."""

from __future__ import annotations

import inspect
import os
import time
from pathlib import Path

import pytest

from sightline.model.ports import Store
from sightline.store import open_record
from sightline.store.retention import RecordBounds
from sightline.store.sql_store import SqlStore
from sightline.store.sweeps import delete_expired_rows
from tests.requirements import requirement
from tests.store.writer import description_of, image_of

DAY = 86400.0


class Clock:
    def __init__(self) -> None:
        self.days = 100.0

    def __call__(self) -> float:
        return self.days * DAY


def use_daily(folder: Path, clock: Clock, days: float) -> None:
    """Let so many days pass on which the record is opened once a day: then record time goes with the clock."""
    end = clock.days + days
    while clock.days < end:
        clock.days = min(clock.days + 1, end)
        open_record(folder, days=30, now=clock).close()


def blobs_in(folder: Path) -> set[str]:
    return {path.name for path in (folder / "blobs").rglob("*") if path.is_file()}


def kept(record: Store, numbers: range) -> list[int]:
    return [number for number in numbers if record.images.read("scope", image_of("cat", number).sha256)]


@requirement("record.days")
def test_rows_expire_after_the_configured_days_without_use(tmp_path: Path) -> None:
    clock = Clock()
    record = open_record(tmp_path, days=30, now=clock)
    old, new = image_of("cat", 0), image_of("cat", 1)
    record.images.keep("scope", old)
    record.descriptions.keep("scope", description_of("cat", 0), "v1")
    use_daily(tmp_path, clock, 20)
    record.images.keep("scope", new)
    record.close()
    use_daily(tmp_path, clock, 11)
    record = open_record(tmp_path, days=30, now=clock)
    assert kept(record, range(2)) == [1]
    assert record.descriptions.read("scope", old.sha256, "ollama/llava", "v1") is None
    assert blobs_in(tmp_path) == {new.sha256}
    record.close()


@requirement("record.days", "record.bytes")
def test_expired_rows_are_found_and_deleted_in_portions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten of them expire by age, then all but the last three by size."""
    monkeypatch.setattr("sightline.store.sweeps._ROWS_FOUND", 3)
    clock = Clock()
    record = open_record(tmp_path, days=30, now=clock)
    assert isinstance(record, SqlStore)
    for number in range(20):
        record.images.keep("scope", image_of("cat", number))
        clock.days += 0.5
    size, progress = len(image_of("cat", 19).data), list[tuple[int, int]]()
    bounds = RecordBounds(1 << 40, 5.25)
    assert delete_expired_rows(record.transactions, bounds, report=lambda *done: progress.append(done)) == 10
    assert progress == [(3, 3), (6, 6), (9, 9), (10, 10)]
    assert delete_expired_rows(record.transactions, RecordBounds(3 * size, 30.0)) == 7
    assert kept(record, range(20)) == [17, 18, 19]
    record.close()


@requirement("record.defaults")
def test_the_default_bounds_are_two_gibibytes_and_thirty_days(tmp_path: Path) -> None:
    assert inspect.signature(open_record).parameters["bytes_limit"].default == 2 * 1024**3
    clock = Clock()
    record = open_record(tmp_path, now=clock)
    record.images.keep("scope", image_of("cat", 0))
    record.close()
    for days, expected in ((29.9, [0]), (0.2, [])):
        use_daily(tmp_path, clock, days)
        record = open_record(tmp_path, now=clock)
        assert record.images.find_by_prefix("scope", "") == tuple(image_of("cat", number).sha256 for number in expected)
        record.close()


@requirement("record.lru")
def test_reading_counts_as_use(tmp_path: Path) -> None:
    clock = Clock()
    record = open_record(tmp_path, days=30, now=clock)
    record.images.keep("scope", image_of("cat", 0))
    record.descriptions.keep("scope", description_of("cat", 0), "v1")
    use_daily(tmp_path, clock, 20)
    assert kept(record, range(1)) == [0]
    assert record.descriptions.read("scope", image_of("cat", 0).sha256, "ollama/llava", "v1")
    record.close()
    use_daily(tmp_path, clock, 20)
    record = open_record(tmp_path, days=30, now=clock)
    assert kept(record, range(1)) == [0]
    assert record.descriptions.read("scope", image_of("cat", 0).sha256, "ollama/llava", "v1")
    record.close()


@requirement("record.lru", "record.bytes")
def test_the_least_recently_used_is_deleted_first_and_the_limit_always_holds(tmp_path: Path) -> None:
    clock = Clock()
    size = len(image_of("cat", 10).data)
    record = open_record(tmp_path, bytes_limit=10 * size, now=clock)
    for number in range(10, 40):
        clock.days += 0.1
        record.images.keep("scope", image_of("cat", number))
        assert record.images.read("scope", image_of("cat", 10).sha256), "the one that is read all the time stays"
        assert sum(path.stat().st_size for path in (tmp_path / "blobs").rglob("*/*/*")) <= 10 * size
    assert kept(record, range(10, 40)) == [10, *range(32, 40)]
    record.close()


@requirement("record.bytes")
def test_the_limit_holds_in_memory_too(tmp_path: Path) -> None:
    clock = Clock()
    size = len(image_of("cat", 10).data)
    record = open_record(tmp_path, kind="memory", bytes_limit=10 * size, now=clock)
    for number in range(10, 40):
        clock.days += 0.1
        record.images.keep("scope", image_of("cat", number))
    assert kept(record, range(10, 40)) == list(range(31, 40))
    record.close()


def test_descriptions_count_against_the_limit(tmp_path: Path) -> None:
    clock = Clock()
    record = open_record(tmp_path, bytes_limit=160, now=clock)
    for number in range(10, 40):
        clock.days += 0.1
        record.descriptions.keep("scope", description_of("cat", number), "v1")
    found = [
        n for n in range(10, 40) if record.descriptions.read("scope", image_of("cat", n).sha256, "ollama/llava", "v1")
    ]
    assert found == list(range(40 - len(found), 40))
    assert 0 < len(found) <= 160 // len("cat sees 10")
    record.close()


def test_bytes_shared_by_two_scopes_stay_while_one_uses_them(tmp_path: Path) -> None:
    clock = Clock()
    image = image_of("cat", 0)
    record = open_record(tmp_path, days=30, now=clock)
    record.images.keep("mine", image)
    use_daily(tmp_path, clock, 20)
    record.images.keep("yours", image)
    record.close()
    use_daily(tmp_path, clock, 20)
    record = open_record(tmp_path, days=30, now=clock)
    assert record.images.read("mine", image.sha256) is None
    assert record.images.read("yours", image.sha256) == image
    record.close()


@requirement("record.crash_debris")
def test_leftovers_of_a_crash_are_deleted_or_moved_aside(tmp_path: Path) -> None:
    record = open_record(tmp_path)
    record.images.keep("scope", image_of("cat", 0))
    record.close()
    folder = next((tmp_path / "blobs").rglob(image_of("cat", 0).sha256)).parent
    nameless = tmp_path / "blobs" / "ff" / "ff" / ("f" * 64)
    nameless.parent.mkdir(parents=True)
    abandoned, fresh = folder / "abandoned.part", folder / "fresh.part"
    for path in (nameless, abandoned, fresh):
        path.write_bytes(b"half")
    os.utime(abandoned, (0, 0))
    open_record(tmp_path, now=lambda: time.time() + 7200).close()
    assert not nameless.exists()
    (aside,) = tmp_path.glob("record.sqlite.damaged-*-blobs")
    assert (aside / nameless.name).read_bytes() == b"half", "it may be an image that the database should know"
    assert {path.name for path in folder.iterdir()} == {image_of("cat", 0).sha256, "fresh.part"}


@requirement("record.crash_debris")
@pytest.mark.parametrize("count", [1, 8, 20])
def test_images_unknown_to_an_older_database_are_moved_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, count: int
) -> None:
    folder = tmp_path / "record"
    record = open_record(folder)
    assert record.images.keep("scope", image_of("cat", 0))
    record.close()
    backup = (folder / "record.sqlite").read_bytes()
    record = open_record(folder)
    newer = {image_of("dog", number).sha256: image_of("dog", number) for number in range(count)}
    assert all(record.images.keep("scope", image) for image in newer.values())
    record.close()
    (folder / "record.sqlite").write_bytes(backup)
    (folder / "swept").unlink()
    record = open_record(folder)
    (aside,) = folder.glob("record.sqlite.damaged-*-blobs")
    assert {path.name: path.read_bytes() for path in aside.iterdir()} == {
        name: image.data for name, image in newer.items()
    }
    assert [str(aside) in line.message for line in caplog.records] == [True]
    assert record.images.read("scope", image_of("cat", 0).sha256) == image_of("cat", 0)
    assert isinstance(record.forget(image_of("cat", 0).sha256), int)
    assert not aside.exists(), "it goes with the first thing that is forgotten"
    record.close()


@requirement("record.crash_debris")
def test_the_whole_record_is_swept_once_an_hour_and_not_with_every_command(tmp_path: Path) -> None:
    clock = Clock()
    open_record(tmp_path, now=clock).close()
    nameless = tmp_path / "blobs" / "ff" / "ff" / ("f" * 64)
    nameless.parent.mkdir(parents=True)
    nameless.write_bytes(b"half")
    for hours, there in ((0.9, True), (0.2, False)):
        clock.days += hours / 24
        open_record(tmp_path, now=clock).close()
        assert nameless.exists() is there


def test_a_clock_that_was_set_back_does_not_prevent_sweeps(tmp_path: Path) -> None:
    clock = Clock()
    open_record(tmp_path, now=clock).close()
    nameless = tmp_path / "blobs" / "ff" / "ff" / ("f" * 64)
    nameless.parent.mkdir(parents=True)
    nameless.write_bytes(b"half")
    clock.days -= 50
    open_record(tmp_path, now=clock).close()
    assert not nameless.exists()


@requirement("record.forget.traces")
def test_expired_content_is_overwritten_on_the_disk(tmp_path: Path) -> None:
    clock = Clock()
    record = open_record(tmp_path, days=30, now=clock)
    record.descriptions.keep("scope", description_of("cat", 1), "v1")
    record.descriptions.keep("scope", description_of("dog", 2), "v1")
    assert record.forget(image_of("dog", 2).sha256) == 1
    record.close()
    assert b"cat sees 1" in (tmp_path / "record.sqlite").read_bytes()
    use_daily(tmp_path, clock, 31)
    assert b"cat sees 1" not in (tmp_path / "record.sqlite").read_bytes()
