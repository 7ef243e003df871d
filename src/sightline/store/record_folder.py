"""The files of a record: its database, its blobs and its key; or the same in memory.

| name in the folder         | what it is                                                                     |
|----------------------------|--------------------------------------------------------------------------------|
| `record.sqlite`            | the rows, with SQLite's own `-wal` and `-shm`                                  |
| `blobs/ab/cd/abcd…`        | the bytes of images, by their sha256                                           |
| `scope.key`                | the key for the hashes of credentials (scopes)                                 |
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
import hashlib
import json
import math
import os
import re
import secrets
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, field
from pathlib import Path

from sightline.disk import PART_SUFFIX, find_broken_link, find_write_error, sync_folder, write_atomically
from sightline.model.value import value_class
from sightline.store.read_caches import Blobs, MemoryBlobs, RowCache
from sightline.store.retention import LastUses, RecordBounds
from sightline.store.sql import SqlDatabase
from sightline.store.sqlite_database import DamagedError, Database, check_database_file, identify_file
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
_SWEEP_SECONDS = 3600.0  # between two sweeps of a whole record when it is opened
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SYNC_ALL_FOLDERS = 64  # for more folders than this, syncing the whole disk is faster
_ABANDONED_SECONDS = 3600.0  # an unfinished file this old has no writer any more


class FileBlobs:
    """Blobs as files `ab/cd/abcd…` below a folder."""

    def __init__(self, folder: Path, *, create: bool = True) -> None:
        self._folder = folder
        if create:
            create_private_folder(folder)

    def has(self, sha256: str) -> bool:
        return os.path.isfile(self._locate(sha256))  # noqa: PTH113  for every known image of every request

    confirm = has

    def write(self, sha256: str, data: bytes) -> None:
        path = self._path(sha256)
        for folder in (path.parent.parent, path.parent):
            if not folder.is_dir():
                create_private_folder(folder)
                sync_folder(folder.parent)
        write_atomically(path, data)

    def read(self, sha256: str) -> bytes | None:
        """Return the bytes, or None. A file that does not match its hash is rejected."""
        try:
            data = self._path(sha256).read_bytes()
        except FileNotFoundError:
            return None
        if hashlib.sha256(data).hexdigest() == sha256:
            return data
        self._reject(sha256)
        return None

    def _reject(self, sha256: str) -> None:
        """Delete a file with wrong bytes, so that the same image can be stored again."""
        self.delete([sha256])

    def delete(self, names: Iterable[str]) -> None:
        for sha256 in names:
            self._path(sha256).unlink(missing_ok=True)

    def move(self, sha256: str, folder: Path) -> None:
        """Move a blob to another folder on the same disk, and create that folder."""
        create_private_folder(folder)
        self._path(sha256).rename(folder / sha256)

    def sync(self, names: Iterable[str]) -> None:
        """Make deletions survive a power failure."""
        folders = {folder for name in names if (folder := self._path(name).parent).is_dir()}
        if len(folders) > _SYNC_ALL_FOLDERS and hasattr(os, "sync"):
            os.sync()
            return
        for folder in folders:
            sync_folder(folder)

    def list_names(self, stored_before: float = math.inf) -> Iterator[str]:
        """Return the names of blobs, and delete unfinished files that killed processes have left."""
        for path in self._folder.glob("??/??/*"):
            if _SHA256.fullmatch(path.name):
                if stored_before == math.inf or _is_older(path, stored_before):
                    yield path.name
            elif path.name.endswith(PART_SUFFIX):
                _delete_if_abandoned(path)

    def _path(self, sha256: str) -> Path:
        return Path(self._locate(sha256))

    def _locate(self, sha256: str) -> str:
        if not _SHA256.fullmatch(sha256):
            raise ValueError("not a sha256")  # untrusted names must not become paths
        return f"{self._folder}{os.sep}{sha256[:2]}{os.sep}{sha256[2:4]}{os.sep}{sha256}"


def create_private_folder(folder: Path) -> None:
    """Create a folder that only its owner can access, or restrict an existing one."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.name == "posix" and folder.stat().st_mode & 0o077:
        folder.chmod(0o700)


def _delete_if_abandoned(part: Path) -> None:
    if _is_older(part, time.time() - _ABANDONED_SECONDS):
        part.unlink(missing_ok=True)


def _is_older(path: Path, than: float) -> bool:
    try:
        return path.stat().st_mtime < than
    except FileNotFoundError:
        return False  # another process has just renamed or deleted it


@value_class
class Backend:
    """An open record: rows, blobs and key."""

    database: SqlDatabase
    blobs: Blobs
    key: bytes
    bounds: RecordBounds
    last_uses: LastUses = field(default_factory=LastUses)
    is_new: bool = False  # the database was just created, so existing blobs are not orphans
    row_cache: RowCache = field(default_factory=lambda: RowCache(4096, seconds=1.0))
    policy_cache: RowCache = field(default_factory=RowCache)  # of consents and saved descriptions
    fills_cache: bool = True  # false: the cache of rows is only read
    is_stand_in: bool = False  # in memory, in place of a record that can't be used
    clock_seconds: float = 1.0  # after which the record time is read again

    @classmethod
    def open_folder(cls, folder: Path, bounds: RecordBounds, timeout: float | None = None) -> Backend:
        """Open the record in a folder, or create one; raise if its files are damaged."""
        create_private_folder(folder)
        check_folder(folder)
        is_new = not (folder / DATABASE_NAME).exists()
        database = Database.open_file(folder / DATABASE_NAME, timeout)
        try:
            if not (folder / KEY_NAME).exists():
                with database.begin():  # one process at a time: the first creates the key
                    ensure_key(folder)
            return cls(database, FileBlobs(folder / BLOBS_NAME), read_key(folder), bounds, is_new=is_new)
        except BaseException:
            database.close()
            raise

    @classmethod
    def open_read_only(cls, folder: Path, bounds: RecordBounds) -> Backend:
        """Open the record in a folder without changing it; raise if its files or its consents are damaged."""
        check_folder(folder)
        key, blobs = read_key(folder), FileBlobs(folder / BLOBS_NAME)
        database = Database.open_read_only(folder / DATABASE_NAME)
        try:
            database.check_consents()
            return cls(database, blobs, key, bounds)
        except BaseException:
            database.close()
            raise

    @classmethod
    def open_in_memory(cls, bounds: RecordBounds, *, is_stand_in: bool = False) -> Backend:
        return cls(Database.open_in_memory(), MemoryBlobs(), generate_key(), bounds, is_stand_in=is_stand_in)


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


def hash_credential(key: bytes, credential: str) -> str:
    return hashlib.blake2b(credential.encode(), key=key).hexdigest()[:32]


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
