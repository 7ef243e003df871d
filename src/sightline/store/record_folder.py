"""The files of a record: its database, its blobs and its key, and what can be wrong with them.

| name in the folder         | what it is                                                                     |
|----------------------------|--------------------------------------------------------------------------------|
| `record.sqlite`            | the rows, with SQLite's own `-wal` and `-shm`                                  |
| `blobs/ab/cd/abcd…`        | the bytes of images, by their sha256                                           |
| `scope.key`                | the key for the hashes of credentials (scopes)                                 |
| `changes`                  | grows when processes are to drop what they have cached (see `change_file`)     |
| `swept`                    | its time is that of the last sweep of the whole record                         |
| `record.sqlite.new-PID`    | the new database of a repair                                                   |
| `record.sqlite.repairing`  | the marker of a repair that is replacing files, or was killed while it did     |
| `record.sqlite.damaged-T…` | what a repair or a sweep has kept of a damaged record; T is the record time    |

The database is created first, then the key, then the folder for blobs. So a key or blobs without a database, or blobs
without a key, mean that something was deleted: that is damage, and nothing is created in its place. A scope is a keyed
hash, so that no credential is written down and the scopes of two records differ.

A repair replaces the damaged database by a new one so that a crash at any time does no harm. The old log must be gone
before the new database is in place, because SQLite would apply it there. But without its log the old database lacks the
last changes, and a consent that was withdrawn in the log would be valid again. So a marker is written first, and no
program opens the record while it is there (see `check_folder`):

1. Write the marker, which identifies the new file.
2. Give the damaged database a second name.
3. Move its log to that name, and delete the lock file.
4. Rename the new database to `record.sqlite`.
5. Delete the marker.

If a repair is killed, the next one checks whether the new file is in place. If it is, only step 5 is missing; else the
log is moved back, and the repair starts again.
"""

from __future__ import annotations

import errno
import json
import math
import os
import secrets
import shutil
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

from sightline.disk import explain_os_error, find_broken_link, find_write_error, sync_folder, write_atomically
from sightline.model.refusal import Refusal, RefusalCode
from sightline.model.value import value_class
from sightline.store.blobs import Blobs, FileBlobs
from sightline.store.migrations import ForeignDatabaseError, OtherVersionError
from sightline.store.retention import BLOB_NAMES
from sightline.store.server_errors import ServerError
from sightline.store.sqlite_database import (
    DamagedError,
    Database,
    check_database_file,
    find_file_damage,
    identify_file,
    is_busy_error,
    is_damage_error,
    is_full_error,
)
from sightline.store.sqlite_files import get_log_path

if sys.platform != "win32":
    import fcntl

DATABASE_NAME, BLOBS_NAME, KEY_NAME = "record.sqlite", "blobs", "scope.key"
NEW_PREFIX = f"{DATABASE_NAME}.new-"
REPAIR_MARKER = f"{DATABASE_NAME}.repairing"
DAMAGED_PREFIX = f"{DATABASE_NAME}.damaged-"
BLOBS_SUFFIX = "-blobs"  # after DAMAGED_PREFIX and the time: a folder of blobs that no row names
_SWEEP_STAMP = "swept"
_KEY_BYTES = 32
STORAGE_ERRORS = (OSError, sqlite3.Error)
REPAIR_COMMAND = "run: sightline store repair"
_SWEEP_SECONDS = 3600.0  # between two sweeps of a whole record when it is opened


def has_record(folder: Path) -> bool:
    """Return whether a folder contains a record, or the remains of one."""
    return any((folder / name).exists() for name in (DATABASE_NAME, KEY_NAME, REPAIR_MARKER)) or _has_blobs(folder)


def check_folder(folder: Path) -> None:
    """Raise if files are missing or damaged in a way that SQLite would take for a new database or an empty log.

    Also raise if one of them is a broken link, or a file where a folder is needed.
    """
    for name in (DATABASE_NAME, KEY_NAME, BLOBS_NAME):
        if find_broken_link(folder / name):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder / name))
    database = folder / DATABASE_NAME
    for each in (folder, folder / BLOBS_NAME):
        if each.exists() and not each.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(each))
    # Checked before the database, which is created first.
    has_folder, has_key = (folder / BLOBS_NAME).exists(), (folder / KEY_NAME).exists()
    if (folder / REPAIR_MARKER).exists():
        raise DamagedError("a repair was interrupted, or is under way")
    if not database.exists() and (has_key or (has_folder and _has_blobs(folder))):
        raise DamagedError(f"{DATABASE_NAME} is missing")
    if database.exists() and has_folder and not has_key:
        raise DamagedError(f"{KEY_NAME} is missing")
    check_database_file(database, used_before=has_key)
    if has_key:
        read_key(folder)


def find_record_write_error(folder: Path) -> OSError | None:
    """Return why a record cannot be written, or None, without trying to write."""
    database = folder / DATABASE_NAME
    paths = (folder, database, get_log_path(database), folder / KEY_NAME, folder / BLOBS_NAME)
    errors = (find_write_error(path) for path in paths if path == folder or os.path.lexists(path))
    return next(filter(None, errors), None)


def _has_blobs(folder: Path) -> bool:
    return next(FileBlobs(folder / BLOBS_NAME, create=False).list_names(), None) is not None


@contextmanager
def lock_for_repair(folder: Path) -> Iterator[None]:
    """Block other repairs; raise BlockingIOError if one is running."""
    if sys.platform == "win32":
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def delete_unfinished_repairs(folder: Path) -> None:
    """Delete the new databases that killed repairs have left. The folder must be locked."""
    for path in folder.glob(f"{NEW_PREFIX}*"):
        path.unlink(missing_ok=True)


def choose_damaged_path(folder: Path, now: int) -> Path:
    """Return an unused path for what is kept of a damaged record."""
    used = {path.name.removeprefix(DAMAGED_PREFIX).partition("-")[0] for path in folder.glob(f"{DAMAGED_PREFIX}*")}
    return folder / f"{DAMAGED_PREFIX}{next(time for time in range(now, now + len(used) + 1) if str(time) not in used)}"


def delete_damaged_files(folder: Path, before: float = math.inf) -> None:
    """Delete what was kept of damaged records, all or what is older than a record time; and unfinished repairs."""
    with suppress(BlockingIOError), lock_for_repair(folder):  # a running repair does it itself
        delete_unfinished_repairs(folder)
    for path in folder.glob(f"{DAMAGED_PREFIX}*"):
        digits = path.name.removeprefix(DAMAGED_PREFIX).partition("-")[0]
        if not digits.isdecimal() or float(digits) >= before:
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def claim_sweep(folder: Path, now: float) -> bool:
    """Return whether the last sweep of the whole record is over an hour ago; the caller then has to sweep."""
    stamp = folder / _SWEEP_STAMP
    try:
        if stamp.exists() and abs(now - stamp.stat().st_mtime) < _SWEEP_SECONDS:
            return False
        stamp.touch(0o600)
        os.utime(stamp, (now, now))
    except OSError:
        return False  # nothing can be deleted here, either
    return True


def generate_key() -> bytes:
    return secrets.token_bytes(_KEY_BYTES)


def ensure_key(folder: Path) -> None:
    if not (folder / KEY_NAME).exists():
        write_atomically(folder / KEY_NAME, generate_key())


def read_key(folder: Path) -> bytes:
    key = (folder / KEY_NAME).read_bytes()
    if len(key) != _KEY_BYTES:
        raise DamagedError(f"{folder / KEY_NAME} is damaged")
    return key


@value_class
class DatabaseSwap:
    """What a repair has done. It is written to the marker as JSON, so the names of the fields cannot change."""

    aside: str  # the second name of the damaged database
    consents_lost: bool
    withdrawn: tuple[str, ...]


def swap_database(folder: Path, new: Path, details: DatabaseSwap) -> None:
    """Replace the database by `new`, and keep the damaged one with its log under the name `details.aside`."""
    database, aside = folder / DATABASE_NAME, folder / details.aside
    write_atomically(folder / REPAIR_MARKER, json.dumps({**asdict(details), "new": identify_file(new)}).encode())
    with suppress(FileNotFoundError):
        if database.is_file():
            os.link(database, aside)  # a link, so that there is always a database
        else:
            database.rename(aside)
    with suppress(FileNotFoundError):
        get_log_path(database).rename(get_log_path(aside))
    database.with_name(f"{DATABASE_NAME}-shm").unlink(missing_ok=True)
    sync_folder(folder)
    new.replace(database)
    _remove_marker(folder)


def resume_swap(folder: Path) -> DatabaseSwap | None:
    """Finish a swap that was interrupted and return it, or undo it and return None; also None if there is none.

    A marker that cannot be read stays: then the state of the log is unknown, and no consent can be trusted.
    """
    try:
        marker = json.loads((folder / REPAIR_MARKER).read_bytes())
        database, new = folder / DATABASE_NAME, tuple(marker["new"])
        swap = DatabaseSwap(marker["aside"], marker["consents_lost"], tuple(marker["withdrawn"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    is_done = identify_file(database) == new
    if not is_done:
        _undo_swap(database, folder / swap.aside)
    _remove_marker(folder)
    return swap if is_done else None


def _undo_swap(database: Path, aside: Path) -> None:
    if get_log_path(aside).exists() and not get_log_path(database).exists():
        get_log_path(aside).rename(get_log_path(database))
    if aside.exists() and not database.exists():
        aside.rename(database)
    elif aside.is_file():
        aside.unlink()


def _remove_marker(folder: Path) -> None:
    sync_folder(folder)
    (folder / REPAIR_MARKER).unlink()
    sync_folder(folder)


def build_refusal(folder: Path, error: Exception) -> Refusal:
    """Return a refusal that says why a record cannot be used and what to do."""
    why, remedy = explain_error(folder, error)
    is_corrupt = is_damage_error(error) or isinstance(error, OtherVersionError)
    if isinstance(error, ForeignDatabaseError):  # not ours, so `forget --all` must not delete it
        is_corrupt = False
    code: RefusalCode = "corrupt" if is_corrupt else "unavailable"
    return Refusal(code, f"the record in {folder} cannot be used: {why}", remedy)


def explain_error(folder: Path | None, error: Exception) -> tuple[str, str]:
    """Return what is wrong, and what to do."""
    if isinstance(error, ForeignDatabaseError):
        return str(error), f"move {DATABASE_NAME} to another folder, then {REPAIR_COMMAND}"
    if isinstance(error, OtherVersionError):
        return str(error), "install that version, or run: sightline forget --all (it deletes the record)"
    if is_damage_error(error):
        return str(error), f"{REPAIR_COMMAND}, or sightline forget --all to delete it"
    if isinstance(error, sqlite3.Error) and is_busy_error(error):
        return str(error), "another program is using it; try again"
    if isinstance(error, sqlite3.Error) and is_full_error(error):
        error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    elif isinstance(error, sqlite3.Error) and folder is not None:  # SQLite does not report the cause
        error = find_record_write_error(folder) or error
    if isinstance(error, OSError):
        return (str(error), error.remedy) if isinstance(error, ServerError) else explain_os_error(error)
    return str(error), "check that its folder can be read and written, then try again"


@value_class
class RecordHealth:
    refusal: Refusal | None = None  # why the record cannot be read or written
    missing_images: int = 0  # images without bytes
    is_complete: bool = True  # false: there was no time to check everything


def check_health(folder: Path, seconds: float) -> RecordHealth:
    """Look for damage, for images without bytes, and for reasons why the record cannot be written.

    The check stops after `seconds`.
    """
    deadline, database = time.monotonic() + seconds, folder / DATABASE_NAME
    try:
        check_folder(folder)
        if not database.exists():
            return RecordHealth(_find_write_refusal(folder))
        report = find_file_damage(database, seconds)
        if report.faults:
            raise DamagedError(report.faults[0])
        missing, complete = _count_missing_images(database, FileBlobs(folder / BLOBS_NAME, create=False), deadline)
    except STORAGE_ERRORS as error:
        return RecordHealth(build_refusal(folder, error))
    return RecordHealth(_find_write_refusal(folder), missing, report.is_complete and complete)


def _find_write_refusal(folder: Path) -> Refusal | None:
    error = find_record_write_error(folder)
    return build_refusal(folder, error) if error else None


def _count_missing_images(database_path: Path, blobs: Blobs, deadline: float) -> tuple[int, bool]:
    """Return how many images have no bytes, and whether all were checked."""
    database = Database.open_read_only(database_path)
    missing = 0
    try:
        for (name,) in database.fetch_all(BLOB_NAMES):
            if time.monotonic() > deadline:
                return missing, False
            missing += not blobs.has(name)
    except ValueError as error:  # a name is not a sha256
        raise DamagedError(str(error)) from None
    finally:
        database.close()
    return missing, True
