"""Repair of a record: what can be read of a damaged database goes into a new one, and the damaged one is kept aside.

1. Other programs are kept from writing (SQLite's own lock for writers), so that nothing is acknowledged that is lost.
2. Every row that can be read is written to a new database: see `salvage`. A consent to send images counts only where
   nothing was wrong with the consents; a no always does.
3. Images whose bytes are missing, or are not what their sha256 says, are left out.
4. The log of the damaged database is moved aside, then the new database takes the place of the damaged one at once.
   Programs that have the old one open notice that and open the new one: see `storage`.

A crash leaves the damaged record, or the new one. The copy that is kept aside goes with the first `forget`, which must
leave nothing behind, and by age like everything else: its name ends in the record time at which it was put there.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from sightline.disk import settle
from sightline.model.refusal import Refusal
from sightline.store import scope_key
from sightline.store.bounds import NAMES, Bounds
from sightline.store.clock import read_time
from sightline.store.damage import check_files, is_damage
from sightline.store.database import Database, examine_file
from sightline.store.home import ASIDE, ROWS, Home
from sightline.store.log import log_of, read_log_header
from sightline.store.migrations import STEPS, OtherVersionError, migrate
from sightline.store.pages import Pages
from sightline.store.salvage import BATCH, Progress, copy_rows, count_rows, restore_clock
from sightline.store.storage import TROUBLES, explain

if sys.platform != "win32":
    import fcntl

_PATIENCE = 10.0
_CHECK_SECONDS = 600.0
_WRITERS = 120  # the byte of SQLite's file of locks that a writer locks


@dataclass(slots=True)
class Repaired:
    damage: str = ""  # what was wrong with the database; empty: nothing
    kept: dict[str, int] = field(default_factory=dict)  # rows that there are now, by table
    left_out: int = 0  # images without bytes, or with other bytes than they had
    withdrawn: tuple[str, ...] = ()  # providers to which the user has to agree again
    aside: str = ""  # where the damaged database is
    unnamed: tuple[str, ...] = ()  # images whose bytes are whole, and of which no row is left


def repair(folder: Path, progress: Progress = lambda what, done, total: None) -> Repaired | Refusal:
    """Repair the record in `folder`, or refuse and change nothing."""
    if not (folder / ROWS).exists() and not (folder / scope_key.NAME).exists():
        return Refusal("not_found", f"there is no record in {folder}", "there is nothing to repair")
    try:
        with _alone(folder):
            result = Repaired(_find_damage(folder))
            if result.damage:
                _rebuild(folder, result, progress)
            _check_images(folder, result, progress)
    except BlockingIOError:
        return Refusal("unavailable", "another program is writing to the record, or repairs it", "try again")
    except TROUBLES as trouble:
        return explain(folder, trouble)
    return result


def _find_damage(folder: Path) -> str:
    """Return what is wrong with the files of a record; raise if it is nothing that can be repaired."""
    rows, key = folder / ROWS, folder / scope_key.NAME
    try:
        check_files(rows, used_before=key.exists())
        if key.exists():
            scope_key.read_in(folder)
        if not rows.exists():
            return ""
        return next(iter(examine_file(rows, _CHECK_SECONDS).damage), "")
    except sqlite3.Error as trouble:
        if isinstance(trouble, OtherVersionError) or not is_damage(trouble):
            raise
        return str(trouble)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep a second repair out."""
    if sys.platform == "win32":
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


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


def _rebuild(folder: Path, result: Repaired, progress: Progress) -> None:
    rows, new = folder / ROWS, folder / f"{ROWS}.new-{os.getpid()}"
    is_sound = _has_sound_consents(rows)
    try:
        with _no_writers(rows):
            if rows.is_file():
                result.withdrawn = _copy(rows, new, is_sound=is_sound, progress=progress)
            database = Database.on_disk(new)
            try:
                with database.writing() as connection:
                    restore_clock(connection)
                now = int(read_time(database, time.time()).time)
            finally:
                database.close()
            result.aside = str(_swap(folder, new, now))
    finally:
        for left in folder.glob(f"{new.name}*"):
            left.unlink()


def _copy(rows: Path, new: Path, *, is_sound: bool, progress: Progress) -> tuple[str, ...]:
    """Write what can be read into a new database; return the providers whose consent is not."""
    log = log_of(rows).read_bytes() if log_of(rows).is_file() else b""
    with rows.open("rb") as file:
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


def _has_sound_consents(rows: Path) -> bool:
    """Return whether what the damaged database says of consents can be relied on."""
    if read_log_header(rows) == "damaged":
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


def _swap(folder: Path, new: Path, now: int) -> Path:
    """Put the new database in the place of the damaged one, which keeps its log beside it under another name."""
    rows = folder / ROWS
    aside = next(path for path in (rows.with_name(f"{ASIDE}{now + more}") for more in range(1000)) if not path.exists())
    with suppress(FileNotFoundError):
        log_of(rows).rename(log_of(aside))
    with suppress(FileNotFoundError):
        rows.with_name(f"{ROWS}-shm").unlink()
    with suppress(FileNotFoundError):
        if rows.is_file():
            os.link(rows, aside)  # so that there is never no database at all
        else:
            rows.rename(aside)
    new.replace(rows)
    _renew_key(folder, aside)
    settle(folder)
    return aside


def _renew_key(folder: Path, aside: Path) -> None:
    """Put a damaged key aside, too: without it, nobody but the owner finds what was kept for other credentials."""
    try:
        scope_key.read_in(folder)
    except FileNotFoundError:
        return
    except sqlite3.Error:
        (folder / scope_key.NAME).rename(aside.with_name(f"{aside.name}-key"))
        scope_key.make_in(folder)


def _check_images(folder: Path, result: Repaired, progress: Progress) -> None:
    """Leave out images whose bytes are missing or wrong; and find those whose bytes are all that is left of them."""
    home = Home.on_disk(folder, Bounds(0, 0.0))
    try:
        named, held = {name for (name,) in home.database.rows(NAMES)}, set(home.blobs.names())
        bad = []
        for done, name in enumerate(sorted(named | held)):
            if done % BATCH == 0:
                progress("checking images", done, len(named | held))
            if home.blobs.read(name) is None:  # which removes wrong ones
                bad.append((name,))
        with home.database.writing() as connection:
            connection.executemany("DELETE FROM images WHERE sha256 = ?", bad)
            connection.executemany("DELETE FROM perceptions WHERE pixels = ?", bad)
            result.kept = count_rows(connection)
    finally:
        home.database.close()
    gone = {name for (name,) in bad}
    result.left_out = len(gone & named)
    result.unnamed = tuple(sorted(held - named - gone)) if result.damage else ()
