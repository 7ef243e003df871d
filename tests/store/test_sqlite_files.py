"""Database files read without SQLite: the same rows as SQLite reads, and more if they are damaged."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from sightline.store import open_record, sqlite_files
from sightline.store.sqlite_files import DatabasePages, Value, find_roots, get_log_path
from tests.requirements import requirement
from tests.store.damaged_records import EVERY, PAGE, damage_root, fill, overwrite, root_of
from tests.store.writer import image_of


def rows_by_page(database: Path, table: str, log: bytes = b"") -> set[tuple[Value, ...]]:
    with database.open("rb") as file:
        pages = DatabasePages(file, log)
        return {values for leaf in pages.find_leaves(find_roots(pages)[table]) for _, values in pages.read_rows(leaf)}


def rows_by_sqlite(database: Path, table: str) -> set[tuple[Value, ...]]:
    connection = sqlite3.connect(database)
    found = {tuple(row) for row in connection.execute(f"SELECT * FROM {table}")}
    connection.close()
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages") / "record"
    fill(folder, 200)
    return folder


@pytest.mark.parametrize("table", EVERY)
def test_a_sound_database_is_read_as_sqlite_reads_it(folder: Path, table: str) -> None:
    found = rows_by_sqlite(folder / "record.sqlite", table)
    assert found
    if table == "clock":  # whose key is the number of its row
        found = {(row[0], None, *row[2:]) for row in found}
    assert rows_by_page(folder / "record.sqlite", table) == found


def test_rows_longer_than_a_page_are_read(tmp_path: Path) -> None:
    database = tmp_path / "long.sqlite"
    connection = sqlite3.connect(database)
    connection.execute("CREATE TABLE long (words TEXT, number INTEGER, real REAL, data BLOB, empty TEXT)")
    for size in (0, 1, 4000, 4060, 4061, 4062, 5000, 100_000):
        row = ("é" * size, -(2**62) + size, size / 3, b"\xff" * size, None)
        connection.execute("INSERT INTO long VALUES (?, ?, ?, ?, ?)", row)
    connection.commit()
    connection.close()
    assert rows_by_page(database, "long") == rows_by_sqlite(database, "long")


def test_pages_in_the_log_replace_those_in_the_file(tmp_path: Path) -> None:
    record = open_record(tmp_path)
    for number in range(5):
        record.images.keep("scope", image_of("cat", number))
    log = (tmp_path / "record.sqlite-wal").read_bytes()
    assert rows_by_page(tmp_path / "record.sqlite", "images", log) == rows_by_sqlite(
        tmp_path / "record.sqlite", "images"
    )
    cut = rows_by_page(tmp_path / "record.sqlite", "images", log[: -PAGE // 2])
    assert len(cut) == 4, "a commit that is not whole does not count"
    record.close()


def test_leaves_are_read_if_the_inner_pages_are_damaged(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "record")
    database = tmp_path / "record" / "record.sqlite"
    before = rows_by_sqlite(database, "descriptions")
    damage_root("descriptions")(tmp_path / "record")
    with database.open("rb") as file:
        pages = DatabasePages(file, b"")
        found = {values for number in range(1, pages.count + 1) for _, values in pages.read_rows(number)}
    assert before <= found


@pytest.mark.parametrize("byte", [0x00, 0x05, 0x0D, 0xFF])
def test_garbage_is_read_as_far_as_possible(folder: Path, tmp_path: Path, byte: int) -> None:
    shutil.copytree(folder, tmp_path / "record")
    database = tmp_path / "record" / "record.sqlite"
    size = database.stat().st_size
    for number in range(1, size // PAGE, 7):
        overwrite(database, number * PAGE, bytes([byte]) * PAGE)
    with database.open("rb") as file:
        pages = DatabasePages(file, b"")
        assert sum(len(pages.read_rows(number)) for number in range(1, pages.count + 1)) > 0
        for root in find_roots(pages).values():
            list(pages.find_leaves(root))
    assert root_of(folder / "record.sqlite", "images")


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    """The log of a database that is open: frames of one transaction each, the last of them a commit."""
    database = tmp_path / "logged.sqlite"
    connection = sqlite3.connect(database, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE numbers (number INTEGER)")
    for number in range(12):
        connection.execute("INSERT INTO numbers VALUES (?)", (number,))
    yield get_log_path(database)
    connection.close()


@requirement("record.damage.found")
@pytest.mark.parametrize("batch", [1, 3, 256])
@pytest.mark.parametrize("place", [0, 6, 11, 19, 24, 2000, 24 + PAGE - 1])
def test_a_flipped_bit_in_any_frame_of_a_log_is_found(
    log: Path, batch: int, place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_files, "_FRAMES_PER_BATCH", batch)
    database, data = log.with_name("logged.sqlite"), log.read_bytes()
    frames = (len(data) - 32) // (24 + PAGE)
    assert (frames, sqlite_files.check_log(database)) == (14, "sound")
    for frame in range(frames):
        at = 32 + frame * (24 + PAGE) + place
        log.write_bytes(data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1 :])
        expected = "sound" if frame == frames - 1 else "damaged"  # the last one may be what a crash has left
        assert sqlite_files.check_log(database) == expected, frame
    log.write_bytes(data)
