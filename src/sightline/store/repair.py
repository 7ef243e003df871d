"""Repair of a record: what can be read of a damaged database goes into a new one, and the damaged one is kept aside.

1. Other programs are kept from writing (SQLite's own lock for writers), so that nothing is acknowledged that is lost.
2. Every row that can be read is written to a new database (see `salvage`), with values that are possible (see `clamp`).
   A consent to send images counts only where nothing was wrong with the consents; a no always does.
3. Images whose rows are lost become the owner's. Bytes that are no image are kept aside.
4. The new database takes the place of the damaged one: see `swap`. Programs that have the old one open notice that and
   open the new one: see `storage`.
5. Images whose bytes are missing, or are not what their sha256 says, are left out.

What is kept aside goes with the first `forget`, which must leave nothing behind, and by age like everything else: its
name ends in the record time at which it was put there.
"""

from __future__ import annotations

import io
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sightline.model.image import Image
from sightline.model.refusal import Refusal
from sightline.store import images, scope_key
from sightline.store.bounds import NAMES, Bounds
from sightline.store.clamp import clamp_image_bytes, clamp_values
from sightline.store.damage import is_damage
from sightline.store.database import Database, examine_file
from sightline.store.files import Files
from sightline.store.home import (
    ASIDE,
    BYTES,
    NEW,
    REPAIRING,
    ROWS,
    Home,
    check_folder,
    drop_unfinished,
    is_there,
    lock_folder,
)
from sightline.store.log import check_log, log_of
from sightline.store.migrations import STEPS, OtherVersionError, migrate
from sightline.store.pages import Pages
from sightline.store.salvage import BATCH, Progress, copy_rows, count_rows
from sightline.store.storage import TROUBLES, explain
from sightline.store.swap import Swap, resume_swap, swap

if sys.platform != "win32":
    import fcntl

_PATIENCE = 10.0
_CHECK_SECONDS = 600.0
_WRITERS = 120  # the byte of SQLite's file of locks that a writer locks

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
                aside = _choose_aside(folder, int(now))
                _renew_key(folder, aside)
                _adopt(folder, database, now, aside, result, identify)
            finally:
                database.close()
            if os.path.lexists(rows):
                result.aside = str(aside)
            swap(folder, new, Swap(aside.name, result.consents_lost, result.withdrawn))
    finally:
        drop_unfinished(folder)


def _choose_aside(folder: Path, now: int) -> Path:
    """Return a name under which nothing was kept yet."""
    used = {path.name.removeprefix(ASIDE).partition("-")[0] for path in folder.glob(f"{ASIDE}*")}
    return folder / f"{ASIDE}{next(time for time in range(now, now + len(used) + 1) if str(time) not in used)}"


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
    blobs, scope = Files(folder / BYTES), scope_key.scope_of(scope_key.read_in(folder), "")
    named = {name for (name,) in database.rows(NAMES)}
    for name in sorted(set(blobs.names()) - named):
        data = blobs.read(name)
        image = identify(name, data) if data is not None else None
        if image is not None:
            with database.noting() as connection:
                images.keep(connection, scope, image, now)
            result.adopted += 1
        elif data is not None:
            result.blobs_aside = f"{aside}-blobs"
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
        scope_key.read_in(folder)
    except FileNotFoundError:
        pass
    except sqlite3.Error:
        (folder / scope_key.NAME).rename(aside.with_name(f"{aside.name}-key"))
    scope_key.make_in(folder)


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
