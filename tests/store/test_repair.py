"""Repairs: every readable row is in the new database, and the damaged one is kept aside."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from sightline.model.profile import ImageLimits
from sightline.model.refusal import Refusal
from sightline.store import open_record, open_record_or_refuse
from sightline.store.migrations import MIGRATIONS, migrate
from sightline.store.record_folder import check_health, lock_for_repair
from sightline.store.retention import BOUNDED_TABLES
from sightline.store.sqlite_files import DatabasePages
from sightline.store.sqlite_repair import RepairResult, repair_record
from tests.requirements import requirement
from tests.store.damaged_records import (
    DAMAGES,
    EVERY,
    PAGE,
    damage_root,
    delete_database,
    dump,
    fill,
    leave_only_images,
    overwrite,
    root_of,
)
from tests.store.test_bounds import Clock, use_daily
from tests.store.test_ledger_entries import CALL
from tests.store.writer import image_of, perception_of

Damage = Callable[[Path], None]
NO_ROWS = ("a folder", "a text file", "zero bytes", "database deleted", "only images left")  # no row is left of these
NO_DATABASE = ("database deleted", "only images left")  # nothing can be kept aside


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("filled") / "record"
    fill(folder, 150)
    return folder


@pytest.fixture
def folder(filled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(filled, tmp_path / "record"))


def repaired(folder: Path) -> RepairResult:
    result = repair_record(folder)
    assert isinstance(result, RepairResult)
    return result


def readable(database: Path) -> dict[str, set[tuple[object, ...]]]:
    """What SQLite itself can still read of each table, from either end."""
    found: dict[str, set[tuple[object, ...]]] = {table: set() for table in EVERY}
    connection = sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)
    for table in EVERY:
        for way in ("ASC", "DESC"):
            try:
                for row in connection.execute(f"SELECT * FROM {table} NOT INDEXED ORDER BY rowid {way}"):
                    found[table].add(tuple(row))
            except sqlite3.DatabaseError:
                continue
    connection.close()
    return found


@requirement("store.repair")
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_repaired_record_is_sound_and_writable(folder: Path, damage: Damage) -> None:
    damage(folder)
    result = repaired(folder)
    assert result.damage
    health = check_health(folder, 60)
    assert (health.refusal, health.missing_images, health.is_complete) == (None, 0, True)
    record = open_record_or_refuse(folder)
    assert not isinstance(record, Refusal)
    assert record.images.keep("scope", image_of("dog", 1)) is True
    assert record.policy.set_consent("openai", given=True) is None
    record.close()
    assert bool(result.aside) == (damage not in [DAMAGES[name] for name in NO_DATABASE])
    assert Path(result.aside).exists()
    assert repaired(folder).damage == "", "a second repair has nothing to do"
    assert not list(folder.glob("*.new-*"))


@requirement("store.repair.rows")
@pytest.mark.parametrize("name", [name for name in DAMAGES if name not in NO_ROWS])
def test_every_readable_row_is_kept(folder: Path, filled: Path, name: str) -> None:
    whole = dump(filled / "record.sqlite")
    DAMAGES[name](folder)
    expected = (
        readable(folder / "record.sqlite") if name not in ("header zeroed", "key damaged", "key deleted") else whole
    )
    result = repaired(folder)
    found = dump(folder / "record.sqlite")
    yes = {row for row in expected["consents"] if row[2]}
    for table in EVERY:
        lost = expected[table] - found[table]
        assert not lost or (table == "consents" and lost <= yes and result.withdrawn), table
        assert found[table] <= whole[table] or table in ("clock", "consents"), "and none is made up"


@requirement("store.repair.rows")
@pytest.mark.parametrize("table", ["descriptions", "tellings", "entries", "receipts", "legs", "images"])
def test_a_damaged_root_of_a_large_table_loses_no_row(folder: Path, filled: Path, table: str) -> None:
    with (filled / "record.sqlite").open("rb") as file:
        assert DatabasePages(file, b"").read_rows(root_of(filled / "record.sqlite", table)) == [], (
            "its rows are on other pages"
        )
    damage_root(table)(folder)
    repaired(folder)
    assert dump(folder / "record.sqlite") == dump(filled / "record.sqlite")


@requirement("store.repair.rows")
def test_a_damaged_leaf_loses_only_its_own_rows(folder: Path, filled: Path) -> None:
    whole = dump(filled / "record.sqlite")["entries"]
    with (folder / "record.sqlite").open("rb") as file:
        pages = DatabasePages(file, b"")
        leaf = list(pages.find_leaves(root_of(filled / "record.sqlite", "entries")))[1]
        lost = len(pages.read_rows(leaf))
    overwrite(folder / "record.sqlite", (leaf - 1) * PAGE, b"\x00\x01" * (PAGE // 2))
    repaired(folder)
    assert lost
    assert len(dump(folder / "record.sqlite")["entries"]) == len(whole) - lost
    record = open_record(folder)
    latencies = [entry.latency_ms for entry in record.ledger.list_entries()]
    assert latencies == sorted(latencies, key=lambda each: each or 0), "in the order in which they were written"
    record.close()


@requirement("store.repair.consents", "record.damage.consents")
@pytest.mark.parametrize("name", ["garbage in the log", "header zeroed"])
def test_an_unreliable_consent_is_withdrawn_and_a_withdrawal_is_kept(folder: Path, name: str) -> None:
    DAMAGES[name](folder)
    assert repaired(folder).withdrawn == ("openai",)
    record = open_record(folder)
    assert record.policy.read_consents() == {"zai": False}
    record.close()


@requirement("store.repair.consents")
def test_consents_are_kept_if_their_table_is_sound(folder: Path) -> None:
    damage_root("entries")(folder)
    assert repaired(folder).withdrawn == ()
    record = open_record(folder)
    assert record.policy.read_consents() == {"openai": True, "zai": False}
    record.close()


@requirement("store.repair.images")
def test_images_with_missing_or_wrong_bytes_are_deleted_and_counted(folder: Path) -> None:
    missing, wrong = image_of("cat", 1), image_of("cat", 2)
    next(folder.rglob(missing.sha256)).unlink()
    next(folder.rglob(wrong.sha256)).write_bytes(b"other bytes")
    next(folder.rglob(perception_of("dog", 1).pixels.sha256)).unlink()
    result = repaired(folder)
    assert (result.damage, result.aside, result.left_out) == ("", "", 3)
    record = open_record(folder)
    assert (
        record.images.find_by_prefix("scope", missing.sha256)
        == record.images.find_by_prefix("scope", wrong.sha256)
        == ()
    )
    assert record.images.read("scope", image_of("cat", 3).sha256) == image_of("cat", 3)
    assert record.images.keep("scope", wrong) is True
    assert record.images.read("scope", wrong.sha256) == wrong
    record.close()


HOSTILE = {
    "used in the future": "UPDATE entries SET used = 1e18 WHERE rowid = 3",
    "endless use": "UPDATE tellings SET used = 9e999 WHERE rowid = 3",
    "large": "UPDATE entries SET bytes = 1 << 61 WHERE rowid > 140",
    "large image": "UPDATE images SET bytes = 1 << 61 WHERE rowid = 3",
    "negative": "UPDATE descriptions SET bytes = -(1 << 61)",
    "many tokens": "UPDATE entries SET input = 1 << 62, latency = 1 << 62",
    "no date": "UPDATE entries SET at = 9e999 WHERE rowid = 3",
    "last number of a row": "UPDATE entries SET rowid = 9223372036854775807 WHERE rowid = 3",
    "clock far ahead": "UPDATE clock SET steady = 1e15",
    "clock without an end": "UPDATE clock SET wall = 9e999, back = 9e999",
    "clock that owes": "UPDATE clock SET owed = 1e15",
    "clock at the beginning": "UPDATE clock SET steady = 0, wall = 0",
}


@requirement("store.repair.values")
@pytest.mark.parametrize("statement", HOSTILE.values(), ids=HOSTILE)
def test_an_impossible_value_harms_no_other_row_after_a_repair(folder: Path, statement: str) -> None:
    database = sqlite3.connect(folder / "record.sqlite", isolation_level=None)
    database.execute(statement)
    database.close()
    damage_root("omissions")(folder)
    (folder / "swept").unlink()
    assert repaired(folder).damage
    for days in (0, 1, 2):
        record = open_record(folder, now=lambda: time.time() + 86400.0 * days)  # noqa: B023
        record.ledger.add_entry("scope", CALL)
        assert not isinstance(record.ledger.sum_spending(), Refusal)
        assert len(record.ledger.list_entries()) == 151 + days
        record.close()
    assert len(dump(folder / "record.sqlite")["images"]) == 150
    assert len(dump(folder / "record.sqlite")["descriptions"]) == 150
    database = sqlite3.connect(folder / "record.sqlite")
    last = database.execute("SELECT latency FROM entries ORDER BY rowid DESC LIMIT 1").fetchone()
    assert last == (CALL.latency_ms,), "entries are read in the order in which they were written"
    (now,) = database.execute("SELECT steady + added FROM clock").fetchone()
    for table in BOUNDED_TABLES:
        most, largest, least = database.execute(f"SELECT MAX(used), MAX(bytes), MIN(bytes) FROM {table}").fetchone()
        assert most is None or (most <= now + 60 and 0 <= least <= largest < 100_000), table
    database.close()


@requirement("store.repair.images")
@pytest.mark.parametrize("damage", [damage_root("images"), delete_database, leave_only_images])
def test_images_without_rows_are_assigned_to_the_owner(tmp_path: Path, damage: Damage) -> None:
    folder = tmp_path / "record"
    fill(folder, 2)
    damage(folder)
    known = {image.sha256: image for image in (image_of("cat", 0), image_of("cat", 1))}
    result = repair_record(folder, identify=lambda sha256, _: known.get(sha256))
    assert isinstance(result, RepairResult)
    assert result.adopted == 2
    record = open_record(folder)
    for image in known.values():
        assert record.images.read(record.compute_scope(""), image.sha256) == image
    record.close()


@requirement("store.repair.images", "record.forget.traces")
def test_blobs_that_are_not_images_are_moved_aside_until_a_forget(tmp_path: Path) -> None:
    folder = tmp_path / "record"
    fill(folder, 2)
    images = {path.name: path.read_bytes() for path in (folder / "blobs").glob("??/??/*")}
    delete_database(folder)
    result = repaired(folder)
    assert result.adopted == 0
    assert {path.name: path.read_bytes() for path in Path(result.blobs_aside).iterdir()} == images
    record = open_record(folder)
    assert isinstance(record.forget(None), int)
    record.close()
    assert not Path(result.blobs_aside).exists()


@requirement("record.damage.found", "record.crash_debris")
@pytest.mark.parametrize("damage", [delete_database, leave_only_images])
def test_opening_a_record_without_its_database_deletes_no_image(tmp_path: Path, damage: Damage) -> None:
    folder = tmp_path / "record"
    fill(folder, 2)
    (folder / "swept").unlink()
    damage(folder)
    images = sorted((folder / "blobs").glob("??/??/*"))
    open_record(folder, check=False).close()
    assert sorted((folder / "blobs").glob("??/??/*")) == images
    assert not (folder / "record.sqlite").exists()


@requirement("store.repair")
def test_a_record_of_an_earlier_version_is_repaired_and_migrated(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "record.sqlite", isolation_level=None)
    migrate(database, target=3)
    for number in range(50):
        row = ("scope", f"{number:064x}", "up/eye", "v1", 1, 1, "words " * 100, 600, 1e9)
        database.execute("INSERT INTO descriptions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    limits = json.dumps(asdict(ImageLimits()))
    database.execute("INSERT INTO lessons VALUES ('', 'zai', 'glm', 1, ?, 'it said so', 2e9)", (limits,))
    database.close()
    damage_root("descriptions")(tmp_path)
    assert repaired(tmp_path).kept["descriptions"] == 50
    record = open_record(tmp_path)
    assert [(upstream, model, lesson.blind) for upstream, model, lesson in record.policy.list_lessons()] == [
        ("zai", "glm", True)
    ]
    record.close()


@requirement("store.repair")
def test_a_record_of_a_later_version_is_left_alone(folder: Path) -> None:
    database = sqlite3.connect(folder / "record.sqlite")
    database.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    database.close()
    before = (folder / "record.sqlite").read_bytes()
    refusal = repair_record(folder)
    assert isinstance(refusal, Refusal)
    assert "newer version" in refusal.what
    assert (folder / "record.sqlite").read_bytes() == before


@requirement("store.repair", "record.damage.found")
@pytest.mark.parametrize("version", [0, 1, len(MIGRATIONS) - 1])
def test_a_database_of_another_program_is_refused_and_left_alone(folder: Path, version: int) -> None:
    for path in folder.glob("record.sqlite*"):
        path.unlink()
    database = sqlite3.connect(folder / "record.sqlite")
    database.execute("CREATE TABLE theirs (anything, b BLOB)")
    database.execute(f"PRAGMA user_version = {version}")
    database.commit()
    database.close()
    before = (folder / "record.sqlite").read_bytes()
    refusal, trouble = repair_record(folder), check_health(folder, 60).refusal
    record = open_record(folder)
    for each in (refusal, trouble, record.find_trouble()):
        assert isinstance(each, Refusal)
        assert each.code == "unavailable", "`forget --all` deletes what is corrupt"
        assert "another program" in each.what
        assert "move record.sqlite to another folder" in each.remedy
    record.close()
    assert (folder / "record.sqlite").read_bytes() == before


@requirement("store.repair")
def test_repairing_an_empty_folder_is_refused(tmp_path: Path) -> None:
    refusal = repair_record(tmp_path / "none")
    assert isinstance(refusal, Refusal)
    assert refusal.code == "not_found"
    assert not (tmp_path / "none").exists()


@requirement("store.repair.running", "record.replaced")
def test_programs_with_the_record_open_use_the_repaired_one(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    noticed, unnoticed = open_record(folder), open_record(folder, check=False)
    damage_root("entries")(folder)
    late = open_record(folder)
    assert late.images.keep("scope", image_of("dog", 1)) is False
    result = repaired(folder)
    assert result.damage
    for record in (noticed, unnoticed, late):
        assert record.policy.set_consent("openai", given=False) is None
        assert record.images.keep("scope", image_of("dog", 2)) is True
        assert record.policy.set_consent("openai", given=True) is None
    for record in (noticed, unnoticed, late):
        assert record.policy.read_consents() == {"openai": True, "zai": False}
        record.close()
    again = open_record(folder)
    assert again.policy.read_consents() == {"openai": True, "zai": False}
    assert again.images.read("scope", image_of("dog", 2).sha256) == image_of("dog", 2)
    again.close()


@requirement("store.repair.running")
def test_a_repair_waits_for_a_writer_but_not_too_long(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sightline.store.sqlite_repair._LOCK_SECONDS", 0.0)
    damage_root("entries")(folder)
    code = (
        "import sys, sqlite3; writer = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "writer.execute('BEGIN IMMEDIATE'); print('writing', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(folder / "record.sqlite")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "writing\n"
        refusal = repair_record(folder)
        assert isinstance(refusal, Refusal)
        assert refusal.code == "unavailable"
        writer.communicate("")
    assert repaired(folder).damage


@requirement("store.repair.aside", "record.forget.traces")
@pytest.mark.parametrize("chosen", [image_of("cat", 1).sha256, None])
def test_damaged_files_are_deleted_by_the_first_forget(folder: Path, chosen: str | None) -> None:
    damage_root("entries")(folder)
    aside = Path(repaired(folder).aside)
    assert image_of("cat", 1).sha256.encode() in aside.read_bytes()
    record = open_record(folder)
    assert isinstance(record.forget(chosen), int)
    record.close()
    held = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert image_of("cat", 1).sha256.encode() not in held


@requirement("store.repair.aside", "record.forget.traces")
@pytest.mark.parametrize("end", ["forget", "forget all", "repair", "sweep"])
def test_the_new_database_of_a_killed_repair_is_deleted(folder: Path, end: str) -> None:
    left = [folder / f"record.sqlite.new-4711{suffix}" for suffix in ("", "-wal", "-shm", "-journal")]
    for path in left:
        shutil.copy(folder / "record.sqlite", path)
    if end == "repair":
        repaired(folder)
    else:
        (folder / "swept").unlink(missing_ok=end != "sweep")
        record = open_record(folder)
        if end != "sweep":
            assert isinstance(record.forget(None if end == "forget all" else image_of("cat", 1).sha256), int)
        record.close()
    assert not [path for path in left if path.exists()]


@requirement("store.repair.running")
def test_the_new_database_of_a_running_repair_is_left_alone(folder: Path) -> None:
    new = folder / "record.sqlite.new-4711"
    new.write_bytes(b"being written")
    with lock_for_repair(folder):
        record = open_record(folder)
        assert isinstance(record.forget(image_of("cat", 1).sha256), int)
        record.close()
    assert new.exists()


@requirement("store.repair.aside", "record.days")
def test_damaged_files_expire(tmp_path: Path) -> None:
    clock, folder = Clock(), tmp_path / "record"
    record = open_record(folder, now=clock)
    record.images.keep("scope", image_of("cat", 1))
    record.close()
    damage_root("entries")(folder)
    aside = Path(repaired(folder).aside)
    use_daily(folder, clock, 2)
    assert aside.exists()
    use_daily(folder, clock, 40)
    assert not aside.exists()


@requirement("store.repair")
def test_progress_is_reported(folder: Path) -> None:
    damage_root("entries")(folder)
    said: list[tuple[str, int, int]] = []
    repair_record(folder, lambda *each: said.append(each))
    assert {what for what, _, _ in said} == {"reading", "checking images"}
    assert all(0 <= done <= total for _, done, total in said)
