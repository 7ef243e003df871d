"""Repair of a record: what can be read of a damaged database goes into a new one, and the damaged one is kept aside.

1. Other programs are kept from writing (SQLite's own lock for writers), so that nothing is acknowledged that is lost.
2. Every row that can be read is written to a new database (`copy_rows`), with values that are possible
   (`clamp_values`). A consent to send images counts only where nothing was wrong with the consents; a no always does.
3. Images whose rows are lost become the owner's. Bytes that are no image are kept aside.
4. The new database takes the place of the damaged one: see `home`. Programs that have the old one open notice that and
   open the new one: see `storage`.
5. Images whose bytes are missing, or are not what their sha256 says, are left out.

A row counts if its values have the types of its table, and if what has to be JSON or a sha256 is. One that the tree of
a table leads to must fit that table; one whose tree is damaged must fit exactly one. A row of `consents` that no tree
leads to may be an old one, so only a no is taken from there.

What is kept aside goes with the first `forget`, which must leave nothing behind, and by age like everything else: its
name ends in the record time at which it was put there.
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
from sightline.model.refusal import Refusal
from sightline.store.database import Database, examine_file, is_damage
from sightline.store.files import Files
from sightline.store.home import (
    ASIDE_BYTES,
    BYTES,
    KEY,
    NEW,
    REPAIRING,
    ROWS,
    Home,
    Swap,
    check_folder,
    choose_aside,
    create_key,
    drop_unfinished,
    hash_credential,
    is_there,
    lock_folder,
    read_key,
    resume_swap,
    swap,
)
from sightline.store.images import insert_image
from sightline.store.migrations import STEPS, OtherVersionError, migrate
from sightline.store.retention import MOST_ROWS, NAMES, Bounds, clamp_image_bytes, clamp_values
from sightline.store.sqlite_files import Pages, Value, check_log, log_of, roots
from sightline.store.storage import TROUBLES, explain

if sys.platform != "win32":
    import fcntl

_PATIENCE = 10.0
_CHECK_SECONDS = 600.0
_WRITERS = 120  # the byte of SQLite's file of locks that a writer locks
BATCH = 256  # pages, or images, between two reports of progress
_JSON = {
    "lessons": {"said"},
    "entries": {"images", "about"},
    "tellings": {"said"},
    "receipts": {"labels", "sights", "notes"},
    "legs": {"legs", "results"},
}
_NAMES = {"images": {"sha256"}, "perceptions": {"pixels"}}
_TYPES: Mapping[str, tuple[type, ...]] = {"TEXT": (str,), "INTEGER": (int,), "REAL": (int, float)}
_is_sha256 = re.compile(r"[0-9a-f]{64}").fullmatch

Progress = Callable[[str, int, int], None]
"""What is being done, how much of it is done, and how much there is."""

Identify = Callable[[str, bytes], Image | None]
"""Return the image with this sha256 and these bytes; None if they are no image."""


@dataclass(slots=True)
class Repaired:
    damage: str = ""  # what was wrong with the database; empty: nothing
    kept: dict[str, int] = field(default_factory=dict)  # rows that there are now, by table
    adopted: int = 0  # images of which only the bytes were left, and which are the owner's now
    left_out: int = 0  # images without bytes, or with other bytes than they had
    consents_lost: bool = False  # no consent counts any more: what the user said last may be in what is damaged
    withdrawn: tuple[str, ...] = ()  # of those, the providers that are known by name
    aside: str = ""  # where the damaged database is
    blobs_aside: str = ""  # where bytes are that are no image and that no row names


def repair(
    folder: Path,
    progress: Progress = lambda what, done, total: None,
    identify: Identify = lambda sha256, data: None,
) -> Repaired | Refusal:
    """Repair the record in `folder`, or refuse and change nothing."""
    if not is_there(folder):
        return Refusal("not_found", f"there is no record in {folder}", "there is nothing to repair")
    try:
        with lock_folder(folder):
            drop_unfinished(folder)
            result = _resume(folder)
            if damage := _find_damage(folder):
                result = Repaired(damage)
                _rebuild(folder, result, progress, identify)
            _check_images(folder, result, progress)
    except BlockingIOError:
        return Refusal("unavailable", "another program is writing to the record, or repairs it", "try again")
    except TROUBLES as trouble:
        return explain(folder, trouble)
    return result


def _resume(folder: Path) -> Repaired:
    """Return what an earlier repair has done that was killed after it had put the new database in place."""
    done = resume_swap(folder)
    if done is None:
        return Repaired()
    return Repaired(
        "an earlier repair was interrupted",
        consents_lost=done.consents_lost,
        withdrawn=done.withdrawn,
        aside=str(folder / done.aside),
    )


def _find_damage(folder: Path) -> str:
    """Return what is wrong with the files of a record; raise if it is nothing that can be repaired."""
    try:
        check_folder(folder)
        if not (folder / ROWS).exists():
            return ""
        return next(iter(examine_file(folder / ROWS, _CHECK_SECONDS).damage), "")
    except sqlite3.Error as trouble:
        if isinstance(trouble, OtherVersionError) or not is_damage(trouble):
            raise
        return str(trouble)


@contextmanager
def _no_writers(database: Path) -> Iterator[None]:
    """Keep every program from writing to a database that it has open, as one that writes keeps out the others."""
    locks = database.with_name(f"{database.name}-shm")
    if sys.platform == "win32" or not locks.is_file():
        yield
        return
    handle = os.open(locks, os.O_RDWR)
    try:
        _lock_byte(handle, _WRITERS)
        yield
    finally:
        os.close(handle)


def _lock_byte(handle: int, at: int) -> None:
    """Lock a byte of a file. No connection of SQLite to it may be opened here meanwhile: closing it would unlock it."""
    end = time.monotonic() + _PATIENCE
    while sys.platform != "win32":
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, at)
        except OSError:
            if time.monotonic() > end:
                raise BlockingIOError from None
            time.sleep(0.05)
        else:
            return


def _rebuild(folder: Path, result: Repaired, progress: Progress, identify: Identify) -> None:
    rows, new = folder / ROWS, folder / f"{NEW}{os.getpid()}"
    result.consents_lost = not _has_sound_consents(rows)
    try:
        with _no_writers(rows):
            result.withdrawn = _copy(rows, new, is_sound=not result.consents_lost, progress=progress)
            database = Database.on_disk(new)
            try:
                with database.writing() as connection:
                    now = clamp_values(connection, time.time())
                aside = choose_aside(folder, int(now))
                _renew_key(folder, aside)
                _adopt(folder, database, now, aside, result, identify)
            finally:
                database.close()
            if os.path.lexists(rows):
                result.aside = str(aside)
            swap(folder, new, Swap(aside.name, result.consents_lost, result.withdrawn))
    finally:
        drop_unfinished(folder)


def _copy(rows: Path, new: Path, *, is_sound: bool, progress: Progress) -> tuple[str, ...]:
    """Write what can be read into a new database; return the providers whose consent is not."""
    log = log_of(rows).read_bytes() if log_of(rows).is_file() else b""
    with rows.open("rb") if rows.is_file() else io.BytesIO() as file:
        pages = Pages(file, log)
        steps = pages.header.steps
        connection = sqlite3.connect(new, isolation_level=None)
        try:
            migrate(connection, steps if steps and steps <= len(STEPS) else len(STEPS))
            connection.execute("BEGIN")
            copy_rows(pages, connection, progress)
            withdrawn = () if is_sound else _withdraw(connection)
            connection.execute("COMMIT")
            migrate(connection)
        finally:
            connection.close()
    return withdrawn


def _adopt(folder: Path, database: Database, now: float, aside: Path, result: Repaired, identify: Identify) -> None:
    """Make images whose rows are lost the owner's, and move other bytes that no row names aside."""
    blobs, scope = Files(folder / BYTES), hash_credential(read_key(folder), "")
    named = {name for (name,) in database.rows(NAMES)}
    for name in sorted(set(blobs.names()) - named):
        data = blobs.read(name)
        image = identify(name, data) if data is not None else None
        if image is not None:
            with database.noting() as connection:
                insert_image(connection, scope, image, now)
            result.adopted += 1
        elif data is not None:
            result.blobs_aside = f"{aside}{ASIDE_BYTES}"
            blobs.move(name, Path(result.blobs_aside))


def _has_sound_consents(rows: Path) -> bool:
    """Return whether what the damaged database says of consents can be relied on."""
    if rows.with_name(REPAIRING).exists() or check_log(rows) == "damaged":
        return False
    try:
        database = Database.read_only(rows)
    except TROUBLES:
        return False
    try:
        database.check_consents()
    except sqlite3.Error:
        return False
    finally:
        database.close()
    return True


def _withdraw(connection: sqlite3.Connection) -> tuple[str, ...]:
    gone = [name for (name,) in connection.execute("SELECT provider FROM consents WHERE given ORDER BY provider")]
    connection.execute("DELETE FROM consents WHERE given")
    return tuple(gone)


def _renew_key(folder: Path, aside: Path) -> None:
    """Move a damaged key aside, and make a new one. Only the owner finds then what was kept for other credentials."""
    try:
        read_key(folder)
    except FileNotFoundError:
        pass
    except sqlite3.Error:
        (folder / KEY).rename(aside.with_name(f"{aside.name}-key"))
    create_key(folder)


def _check_images(folder: Path, result: Repaired, progress: Progress) -> None:
    """Leave out images whose bytes are missing or wrong."""
    home = Home.on_disk(folder, Bounds(0, 0.0))
    try:
        named, held = {name for (name,) in home.database.rows(NAMES)}, set(home.blobs.names())
        bad: list[tuple[str]] = []
        sizes: dict[str, int] = {}
        for done, name in enumerate(sorted(named | held)):
            if done % BATCH == 0:
                progress("checking images", done, len(named | held))
            data = home.blobs.read(name)  # which removes wrong ones
            if data is None:
                bad.append((name,))
            else:
                sizes[name] = len(data)
        with home.database.writing() as connection:
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
    optional: bool  # it may be NULL
    late: bool  # rows that are older than the column do not have it

    def takes(self, value: Value) -> bool:
        return self.optional if value is None else isinstance(value, self.types)


Shapes = Mapping[str, tuple[_Column, ...]]


def copy_rows(pages: Pages, connection: sqlite3.Connection, progress: Progress) -> None:
    """Write what can be read into the tables of a new database, within a transaction."""
    shapes = _shapes(connection)
    for table, rowid, values in _readable(pages, shapes, progress):
        _insert(connection, table, shapes[table], rowid, values)


def count_rows(connection: sqlite3.Connection) -> dict[str, int]:
    """Return how many rows each table has that people know of."""
    return {
        table: int(connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])  # noqa: S608
        for table in sorted(_shapes(connection).keys() - {"clock"})
    }


def _shapes(connection: sqlite3.Connection) -> Shapes:
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    return {table: tuple(_columns(connection, table)) for table in tables if table != "flights"}


def _columns(connection: sqlite3.Connection, table: str) -> Iterator[_Column]:
    for _, name, kind, is_required, default, is_key in connection.execute(f"PRAGMA table_info({table})"):
        late = default is not None or (not is_required and not is_key)
        yield _Column(name, _TYPES[kind], not is_required, late)


def _readable(pages: Pages, shapes: Shapes, progress: Progress) -> Iterator[tuple[str, int, tuple[Value, ...]]]:
    """Return all rows with their tables: first those that the trees lead to, then those of leaves without a tree."""
    trees = {leaf: table for table, root in roots(pages).items() for leaf in pages.leaves(root)}
    others = set(range(2, pages.count + 1)) - trees.keys() - pages.free()
    for done, number in enumerate((*trees, *sorted(others))):
        if done % BATCH == 0:
            progress("reading", done, len(trees) + len(others))
        for rowid, values in pages.rows(number):
            if table := _table_of(values, trees.get(number), shapes):
                yield table, rowid, values


def _table_of(values: tuple[Value, ...], expected: str | None, shapes: Shapes) -> str | None:
    """Return the table that a row is of. One that no tree leads to must fit exactly one, and no consent is taken."""
    if expected is not None:
        return expected if expected in shapes and _fits(values, expected, shapes) else None
    fitting = [table for table in shapes if table != "clock" and _fits(values, table, shapes)]
    if len(fitting) != 1 or (fitting == ["consents"] and values[2]):
        return None
    return fitting[0]


def _fits(values: tuple[Value, ...], table: str, shapes: Shapes) -> bool:
    columns = shapes[table]
    if len(values) > len(columns) or not all(column.late for column in columns[len(values) :]):
        return False
    pairs = list(zip(columns, values, strict=False))
    return all(column.takes(value) for column, value in pairs) and all(
        _is_sound(table, column.name, value) for column, value in pairs
    )


def _is_sound(table: str, column: str, value: Value) -> bool:
    if column in _NAMES.get(table, ()):
        return isinstance(value, str) and _is_sha256(value) is not None
    if column not in _JSON.get(table, ()) or not isinstance(value, str):
        return True
    try:
        json.loads(value)
    except ValueError:
        return False
    return True


def _insert(
    connection: sqlite3.Connection, table: str, columns: tuple[_Column, ...], rowid: int, values: tuple[Value, ...]
) -> None:
    """Write a row under its own number: entries and receipts are read in that order."""
    names = [column.name for column in columns[: len(values)]]
    if "one" in names:  # the key of `clock`, which is the number of its row
        values = tuple(rowid if name == "one" else value for name, value in zip(names, values, strict=True))
    else:
        names, values = ["rowid", *names], (rowid if 0 < rowid < MOST_ROWS else None, *values)
    marks = ", ".join("?" * len(values))
    connection.execute(f"INSERT OR IGNORE INTO {table} ({', '.join(names)}) VALUES ({marks})", values)  # noqa: S608
