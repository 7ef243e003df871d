"""The repair of a record: every readable row of a damaged database is copied to a new one.

1. Other programs are kept from writing by SQLite's own lock for writers, so that no durable write is lost.
2. Every readable row is copied to a new database (`copy_rows`), and its numbers are clamped (`clamp_values`). A consent
   is copied only if the table of consents is sound; a withdrawal always is.
3. Images whose rows are lost are assigned to the owner of the record. Blobs that are no images are moved aside.
4. The new database replaces the damaged one: see `record_folder`. Programs that have the old one open notice that and
   open the new one: see `storage`.
5. Images whose bytes are missing or do not match their sha256 are deleted.

A row is copied if its values have the types of its table, and if JSON and sha256 columns are valid. A row that the tree
of a table leads to must match that table; a row without a tree must match exactly one table. A row of `consents`
without a tree may be outdated, so only withdrawals are copied from there.

What is moved aside is deleted by the first `forget`, which must leave nothing behind, and by age like everything else:
its name ends with the record time at which it was moved.
"""

from __future__ import annotations

import io
import json
import os
import re
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sightline.model.image import Image
from sightline.model.ports import ReportProgress, ignore_progress
from sightline.model.refusal import Refusal
from sightline.store.blobs import FileBlobs
from sightline.store.migrations import MIGRATIONS, OtherVersionError, migrate
from sightline.store.record_folder import (
    BLOBS_NAME,
    BLOBS_SUFFIX,
    DATABASE_NAME,
    KEY_NAME,
    NEW_PREFIX,
    REPAIR_MARKER,
    STORAGE_ERRORS,
    DatabaseSwap,
    build_refusal,
    check_folder,
    choose_damaged_path,
    delete_unfinished_repairs,
    ensure_key,
    has_record,
    lock_for_repair,
    read_key,
    resume_swap,
    swap_database,
)
from sightline.store.retention import BLOB_NAMES, MAX_ROWID, RecordBounds, clamp_image_bytes, clamp_values
from sightline.store.sql import SqlConnection
from sightline.store.sql_images import insert_image
from sightline.store.sqlite_database import Database, find_file_damage, is_damage_error
from sightline.store.sqlite_files import DatabasePages, Value, check_log, find_roots, get_log_path
from sightline.store.storage import Backend, hash_credential

if sys.platform != "win32":
    import fcntl

_LOCK_SECONDS = 10.0
_CHECK_SECONDS = 600.0
_WRITER_LOCK_BYTE = 120  # the byte of SQLite's -shm file that a writer locks
PROGRESS_STEP = 256  # pages or images between two reports of progress
_JSON_COLUMNS = {
    "lessons": {"said"},
    "entries": {"images", "about"},
    "tellings": {"said"},
    "receipts": {"labels", "sights", "notes", "trace", "usage"},
    "legs": {"legs", "results"},
}
_DIGEST_COLUMNS = {"images": {"sha256"}, "perceptions": {"pixels"}}
_COLUMN_TYPES: Mapping[str, tuple[type, ...]] = {"TEXT": (str,), "INTEGER": (int,), "REAL": (int, float)}
_is_sha256 = re.compile(r"[0-9a-f]{64}").fullmatch

IdentifyImage = Callable[[str, bytes], Image | None]
"""A function that returns the image with this sha256 and these bytes, or None if they are not an image."""


@dataclass(slots=True)
class RepairResult:
    damage: str = ""  # what was wrong with the database; empty: nothing
    kept: dict[str, int] = field(default_factory=dict)  # number of rows by table
    adopted: int = 0  # images whose rows were lost, now assigned to the owner
    left_out: int = 0  # images whose bytes are missing or wrong
    consents_lost: bool = False  # all consents were withdrawn, because a withdrawal may have been lost
    withdrawn: tuple[str, ...] = ()  # the providers whose consent was withdrawn, as far as known
    aside: str = ""  # the path of the damaged database
    blobs_aside: str = ""  # the folder of blobs that are no images and have no row


def repair_record(
    folder: Path,
    progress: ReportProgress = ignore_progress,
    identify: IdentifyImage = lambda sha256, data: None,
) -> RepairResult | Refusal:
    """Repair the record in `folder`, or refuse without changing it."""
    if not has_record(folder):
        return Refusal("not_found", f"there is no record in {folder}", "there is nothing to repair")
    try:
        with lock_for_repair(folder):
            delete_unfinished_repairs(folder)
            result = _resume_repair(folder)
            if damage := _find_damage(folder):
                result = RepairResult(damage)
                _rebuild(folder, result, progress, identify)
            _check_images(folder, result, progress)
    except BlockingIOError:
        return Refusal("unavailable", "another program is writing to the record or repairing it", "try again")
    except STORAGE_ERRORS as error:
        return build_refusal(folder, error)
    return result


def _resume_repair(folder: Path) -> RepairResult:
    """Return the result of an earlier repair that was killed after it had replaced the database."""
    swap = resume_swap(folder)
    if swap is None:
        return RepairResult()
    return RepairResult(
        "an earlier repair was interrupted",
        consents_lost=swap.consents_lost,
        withdrawn=swap.withdrawn,
        aside=str(folder / swap.aside),
    )


def _find_damage(folder: Path) -> str:
    """Return what is wrong with the files of a record; raise if it cannot be repaired."""
    try:
        check_folder(folder)
        if not (folder / DATABASE_NAME).exists():
            return ""
        return next(iter(find_file_damage(folder / DATABASE_NAME, _CHECK_SECONDS).faults), "")
    except sqlite3.Error as error:
        if isinstance(error, OtherVersionError) or not is_damage_error(error):
            raise
        return str(error)


@contextmanager
def _block_writers(database: Path) -> Iterator[None]:
    """Keep every program from writing to a database, by the lock that a writer has."""
    locks = database.with_name(f"{database.name}-shm")
    if sys.platform == "win32" or not locks.is_file():
        yield
        return
    handle = os.open(locks, os.O_RDWR)
    try:
        _lock_byte(handle, _WRITER_LOCK_BYTE)
        yield
    finally:
        os.close(handle)


def _lock_byte(handle: int, at: int) -> None:
    """Lock a byte of a file. Don't open it through SQLite meanwhile: closing the connection would unlock it."""
    end = time.monotonic() + _LOCK_SECONDS
    while sys.platform != "win32":
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, at)
        except OSError:
            if time.monotonic() > end:
                raise BlockingIOError from None
            time.sleep(0.05)
        else:
            return


def _rebuild(folder: Path, result: RepairResult, progress: ReportProgress, identify: IdentifyImage) -> None:
    damaged, new = folder / DATABASE_NAME, folder / f"{NEW_PREFIX}{os.getpid()}"
    result.consents_lost = not _has_sound_consents(damaged)
    try:
        with _block_writers(damaged):
            result.withdrawn = _copy_database(damaged, new, keep_consents=not result.consents_lost, progress=progress)
            database = Database.open_file(new)
            try:
                with database.begin() as connection:
                    now = clamp_values(connection, time.time())
                aside = choose_damaged_path(folder, int(now))
                _replace_damaged_key(folder, aside)
                _adopt_images(folder, database, now, aside, result, identify)
            finally:
                database.close()
            if os.path.lexists(damaged):
                result.aside = str(aside)
            swap_database(folder, new, DatabaseSwap(aside.name, result.consents_lost, result.withdrawn))
    finally:
        delete_unfinished_repairs(folder)


def _copy_database(damaged: Path, new: Path, *, keep_consents: bool, progress: ReportProgress) -> tuple[str, ...]:
    """Copy the readable rows to a new database; return the providers whose consent was not copied."""
    log = get_log_path(damaged).read_bytes() if get_log_path(damaged).is_file() else b""
    with damaged.open("rb") if damaged.is_file() else io.BytesIO() as file:
        pages = DatabasePages(file, log)
        steps = pages.header.version
        connection = sqlite3.connect(new, isolation_level=None)
        try:
            migrate(connection, steps if steps and steps <= len(MIGRATIONS) else len(MIGRATIONS))
            connection.execute("BEGIN")
            copy_rows(pages, connection, progress)
            lost = () if keep_consents else _withdraw_consents(connection)
            connection.execute("COMMIT")
            migrate(connection)
        finally:
            connection.close()
    return lost


def _adopt_images(
    folder: Path, database: Database, now: float, aside: Path, result: RepairResult, identify: IdentifyImage
) -> None:
    """Assign images whose rows are lost to the owner, and move other blobs without rows aside."""
    blobs, scope = FileBlobs(folder / BLOBS_NAME), hash_credential(read_key(folder), "")
    named = {name for (name,) in database.fetch_all(BLOB_NAMES)}
    for name in sorted(set(blobs.list_names()) - named):
        data = blobs.read(name)
        image = identify(name, data) if data is not None else None
        if image is not None:
            with database.begin_without_sync() as connection:
                insert_image(connection, scope, image, now)
            result.adopted += 1
        elif data is not None:
            result.blobs_aside = f"{aside}{BLOBS_SUFFIX}"
            blobs.move(name, Path(result.blobs_aside))


def _has_sound_consents(damaged: Path) -> bool:
    """Return whether the table of consents in the damaged database is sound."""
    if damaged.with_name(REPAIR_MARKER).exists() or check_log(damaged) == "damaged":
        return False
    try:
        database = Database.open_read_only(damaged)
    except STORAGE_ERRORS:
        return False
    try:
        database.check_consents()
    except sqlite3.Error:
        return False
    finally:
        database.close()
    return True


def _withdraw_consents(connection: sqlite3.Connection) -> tuple[str, ...]:
    withdrawn = [name for (name,) in connection.execute("SELECT provider FROM consents WHERE given ORDER BY provider")]
    connection.execute("DELETE FROM consents WHERE given")
    return tuple(withdrawn)


def _replace_damaged_key(folder: Path, aside: Path) -> None:
    """Move a damaged key aside, and create a new one. Then only the owner can read the rows of other credentials."""
    try:
        read_key(folder)
    except FileNotFoundError:
        pass
    except sqlite3.Error:
        (folder / KEY_NAME).rename(aside.with_name(f"{aside.name}-key"))
    ensure_key(folder)


def _check_images(folder: Path, result: RepairResult, progress: ReportProgress) -> None:
    """Delete images whose bytes are missing or wrong."""
    home = Backend.open_folder(folder, RecordBounds(0, 0.0))
    try:
        named, present = {name for (name,) in home.database.fetch_all(BLOB_NAMES)}, set(home.blobs.list_names())
        bad: list[tuple[str]] = []
        sizes: dict[str, int] = {}
        for done, name in enumerate(sorted(named | present)):
            if done % PROGRESS_STEP == 0:
                progress("checking images", done, len(named | present))
            data = home.blobs.read(name)  # deletes wrong ones
            if data is None:
                bad.append((name,))
            else:
                sizes[name] = len(data)
        with home.database.begin() as connection:
            home.database.announce_change(connection)
            connection.executemany("DELETE FROM images WHERE sha256 = ?", bad)
            connection.executemany("DELETE FROM perceptions WHERE pixels = ?", bad)
            for name in named & sizes.keys():
                clamp_image_bytes(connection, name, sizes[name])
            result.kept = count_rows(connection)
    finally:
        home.database.close()
    result.left_out = len({name for (name,) in bad} & named)


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    types: tuple[type, ...]
    is_optional: bool  # it may be NULL
    is_late: bool  # older rows do not have it

    def accepts(self, value: Value) -> bool:
        return self.is_optional if value is None else isinstance(value, self.types)


TableShapes = Mapping[str, tuple[_Column, ...]]


def copy_rows(pages: DatabasePages, connection: sqlite3.Connection, progress: ReportProgress) -> None:
    """Copy the readable rows to the tables of a new database, within a transaction."""
    shapes = _read_shapes(connection)
    for table, rowid, values in _read_rows(pages, shapes, progress):
        _insert_row(connection, table, shapes[table], rowid, values)


def count_rows(connection: SqlConnection) -> dict[str, int]:
    """Return the number of rows of each table that users know about."""
    return {
        table: int(connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])  # noqa: S608
        for table in sorted(_read_shapes(connection).keys() - {"clock"})
    }


def _read_shapes(connection: SqlConnection) -> TableShapes:
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    return {table: tuple(_read_columns(connection, table)) for table in tables if table != "flights"}


def _read_columns(connection: SqlConnection, table: str) -> Iterator[_Column]:
    for _, name, kind, is_required, default, is_key in connection.execute(f"PRAGMA table_info({table})"):
        late = default is not None or (not is_required and not is_key)
        yield _Column(name, _COLUMN_TYPES[kind], not is_required, late)


def _read_rows(
    pages: DatabasePages, shapes: TableShapes, progress: ReportProgress
) -> Iterator[tuple[str, int, tuple[Value, ...]]]:
    """Return all readable rows with their tables: first those in trees, then those on leaves without a tree."""
    trees = {leaf: table for table, root in find_roots(pages).items() for leaf in pages.find_leaves(root)}
    others = set(range(2, pages.count + 1)) - trees.keys() - pages.find_free_pages()
    for done, number in enumerate((*trees, *sorted(others))):
        if done % PROGRESS_STEP == 0:
            progress("reading", done, len(trees) + len(others))
        for rowid, values in pages.read_rows(number):
            if table := _find_table(values, trees.get(number), shapes):
                yield table, rowid, values


def _find_table(values: tuple[Value, ...], expected: str | None, shapes: TableShapes) -> str | None:
    """Return the table of a row, or None. Without a tree it must match exactly one table, and not be a consent."""
    if expected is not None:
        return expected if expected in shapes and _matches_table(values, expected, shapes) else None
    fitting = [table for table in shapes if table != "clock" and _matches_table(values, table, shapes)]
    if len(fitting) != 1 or (fitting == ["consents"] and values[2]):
        return None
    return fitting[0]


def _matches_table(values: tuple[Value, ...], table: str, shapes: TableShapes) -> bool:
    columns = shapes[table]
    if len(values) > len(columns) or not all(column.is_late for column in columns[len(values) :]):
        return False
    pairs = list(zip(columns, values, strict=False))
    return all(column.accepts(value) for column, value in pairs) and all(
        _is_valid_value(table, column.name, value) for column, value in pairs
    )


def _is_valid_value(table: str, column: str, value: Value) -> bool:
    if column in _DIGEST_COLUMNS.get(table, ()):
        return isinstance(value, str) and _is_sha256(value) is not None
    if column not in _JSON_COLUMNS.get(table, ()) or not isinstance(value, str):
        return True
    try:
        json.loads(value)
    except ValueError:
        return False
    return True


def _insert_row(
    connection: sqlite3.Connection, table: str, columns: tuple[_Column, ...], rowid: int, values: tuple[Value, ...]
) -> None:
    """Write a row with its own rowid: entries and receipts are read in that order."""
    names = [column.name for column in columns[: len(values)]]
    if "one" in names:  # the key of `clock` is its rowid
        values = tuple(rowid if name == "one" else value for name, value in zip(names, values, strict=True))
    else:
        names, values = ["rowid", *names], (rowid if 0 < rowid < MAX_ROWID else None, *values)
    marks = ", ".join("?" * len(values))
    connection.execute(f"INSERT OR IGNORE INTO {table} ({', '.join(names)}) VALUES ({marks})", values)  # noqa: S608
