"""Damage is found when a record is opened and by `check_health`, and damaged consents are not valid."""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from sightline.store import open_record, open_record_or_refuse
from sightline.store.migrations import COLUMNS, MIGRATIONS
from sightline.store.record_folder import check_health
from sightline.store.sqlite_database import list_columns
from tests.privileges import as_nobody
from tests.requirements import requirement
from tests.store.damaged_records import DAMAGES, IMAGES, begin_read, damage_root, fill, overwrite
from tests.store.writer import image_of

Damage = Callable[[Path], None]


@pytest.fixture(scope="session")
def whole_record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "record"
    fill(folder)
    return folder


@pytest.fixture
def folder(whole_record: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole_record, tmp_path / "record"))


@requirement("record.damage.found")
def test_a_sound_record_is_healthy(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    health = check_health(folder, 60)
    assert (health.refusal, health.missing_images, health.is_complete) == (None, 0, True)
    record = open_record(folder)
    assert record.policy.read_consents() == {"openai": True, "zai": False}
    record.close()
    assert caplog.records == []
    assert check_health(folder.with_name("none"), 60).refusal is None


def test_the_expected_columns_are_those_of_a_new_record(tmp_path: Path) -> None:
    open_record(tmp_path / "record").close()
    database = sqlite3.connect(tmp_path / "record" / "record.sqlite")
    expected = {(table, column) for table, columns in COLUMNS.items() for column in columns.split()}
    assert list_columns(database) == expected
    database.close()


@requirement("record.damage.found", "record.trouble")
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damage_is_logged_once_with_the_repair_command(
    folder: Path, damage: Damage, caplog: pytest.LogCaptureFixture
) -> None:
    damage(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    trouble = check_health(folder, 60).refusal
    assert trouble is not None
    assert trouble.code == "corrupt"
    assert "sightline store repair" in trouble.remedy
    record = open_record(folder)
    for number in range(3):
        record.images.keep("scope", image_of("dog", number))
        record.images.read("scope", image_of("cat", number).sha256)
        record.policy.read_lesson("zai", "glm")
        record.policy.read_consents()
    (line,) = caplog.records
    assert line.levelno == logging.WARNING
    assert str(folder) in line.message
    assert "sightline store repair" in line.message
    record.close()
    refusal = open_record_or_refuse(folder)
    assert getattr(refusal, "code", "") == "corrupt"
    left = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    assert {name: left[name] for name in before if "shm" not in name} == {
        name: data for name, data in before.items() if "shm" not in name
    }, "nothing is written to what is damaged"


@requirement("record.damage.consents")
@pytest.mark.parametrize(
    "name",
    [name for name in DAMAGES if "log" in name or "consents" in name]
    + ["header zeroed", "schema damaged", "a text file", "zero bytes", "database deleted", "only images left"],
)
def test_a_consent_that_cannot_be_read_is_not_valid(folder: Path, name: str) -> None:
    DAMAGES[name](folder)
    record = open_record(folder)
    assert record.policy.read_consents().get("openai") is not True
    assert record.find_trouble() is not None
    record.close()


def flip_last_frame(log: Path) -> None:
    if data := log.read_bytes():
        log.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


@requirement("record.damage.consents")
@pytest.mark.parametrize(
    "damage",
    [
        Path.unlink,
        flip_last_frame,
        lambda log: os.truncate(log, log.stat().st_size // 2),
        lambda log: log.write_bytes(bytes(log.stat().st_size)),
    ],
    ids=["deleted", "a bit of the last frame", "truncated", "zeroed"],
)
def test_a_withdrawal_is_never_only_in_the_log(folder: Path, tmp_path: Path, damage: Callable[[Path], None]) -> None:
    record = open_record(folder)
    assert record.policy.set_consent("openai", given=False) is None
    copy = tmp_path / "after the crash"
    shutil.copytree(folder, copy)
    record.close()
    (copy / "record.sqlite-shm").unlink()
    damage(copy / "record.sqlite-wal")
    after = open_record(copy)
    assert after.policy.read_consents()["openai"] is False
    after.close()


@requirement("record.damage.consents")
def test_a_log_kept_by_a_reader_is_emptied_with_the_next_write(folder: Path) -> None:
    record, log = open_record(folder), folder / "record.sqlite-wal"
    reader = begin_read(folder / "record.sqlite")
    assert record.policy.set_consent("openai", given=False) is None
    assert log.stat().st_size > 0
    reader.close()
    record.images.note_place("scope", image_of("cat", 0).sha256, "/elsewhere.png")
    assert log.stat().st_size == 0
    record.close()


@requirement("record.damage.found")
def test_images_named_only_by_a_damaged_log_are_kept(folder: Path) -> None:
    record = open_record(folder)
    reader = begin_read(folder / "record.sqlite")
    assert record.images.keep("scope", image_of("dog", 7))
    copy = folder.with_name("copy")
    shutil.copytree(folder, copy)
    reader.close()
    record.close()
    (copy / "record.sqlite-shm").unlink()
    (copy / "swept").unlink()
    overwrite(copy / "record.sqlite-wal", 0, bytes(32))
    open_record(copy).close()
    sha256 = image_of("dog", 7).sha256
    assert (copy / "blobs" / sha256[:2] / sha256[2:4] / sha256).exists()


@requirement("record.damage.consents", "record.damage.found")
def test_the_readable_part_of_a_damaged_record_is_read(folder: Path) -> None:
    damage_root("entries")(folder)
    record = open_record(folder)
    assert record.images.read("scope", image_of("cat", 5).sha256) == image_of("cat", 5)
    assert record.policy.read_consents() == {"openai": True, "zai": False}
    assert record.images.keep("scope", image_of("dog", 1)) is False
    record.close()


@requirement("record.damage.found")
def test_later_damage_is_noticed_where_it_is_read(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    record = open_record(folder)
    damage_root("descriptions")(folder)
    other = sqlite3.connect(folder / "record.sqlite", isolation_level=None)
    other.execute("DELETE FROM omissions")  # after a write of another program, pages are read anew
    other.close()
    for number in range(IMAGES):
        record.descriptions.read("scope", image_of("cat", number).sha256, "ollama/llava", "v1")
    assert record.images.keep("scope", image_of("dog", 1)) is False, "nothing is written to it any more"
    assert ["sightline store repair" in line.message for line in caplog.records] == [True]
    record.close()


@requirement("record.damage.found")
def test_a_record_without_read_permission_is_reported(folder: Path, tmp_path: Path) -> None:
    for path in (tmp_path, *tmp_path.parents):
        path.chmod(path.stat().st_mode | 0o011) if path.stat().st_uid == os.geteuid() else None
    (folder / "record.sqlite").chmod(0)
    with as_nobody():
        trouble = check_health(folder, 60).refusal
    assert trouble is not None
    assert trouble.code == "unavailable"


@requirement("record.damage.found")
def test_a_future_version_is_reported_and_is_not_damage(folder: Path) -> None:
    database = sqlite3.connect(folder / "record.sqlite")
    database.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    database.close()
    trouble = check_health(folder, 60).refusal
    assert trouble is not None
    assert "newer version" in trouble.what
    assert "repair" not in trouble.remedy


@requirement("record.damage.found")
def test_images_whose_bytes_are_missing_are_counted(folder: Path) -> None:
    for number in range(3):
        next(folder.rglob(image_of("cat", number).sha256)).unlink()
    assert check_health(folder, 60).missing_images == 3


@requirement("record.damage.found")
def test_a_check_stops_at_its_deadline(folder: Path) -> None:
    health = check_health(folder, -1.0)
    assert (health.refusal, health.is_complete) == (None, False)
