"""Where a record is kept: its rows, its bytes and its key, on the disk or in memory.

| name in the folder         | what it is                                                                            |
|----------------------------|---------------------------------------------------------------------------------------|
| `record.sqlite`            | the rows, with SQLite's own `-wal` and `-shm`                                         |
| `blobs/ab/cd/abcd…`        | the bytes of images                                                                   |
| `scope.key`                | the key that scopes are made with                                                     |
| `swept`                    | when the whole record was last swept (the time of the file)                           |
| `record.sqlite.new-PID`    | what a repair is writing                                                              |
| `record.sqlite.repairing`  | there while a repair exchanges the files; if it stays there, that repair was killed   |
| `record.sqlite.damaged-T…` | what a repair has kept of the damaged record; T is the record time                    |

The database is made first, then the key, then the folder for the bytes. So a key or bytes without a database, or bytes
without a key, mean that something was deleted: that is damage, and nothing is created in its place.
"""

from __future__ import annotations

import errno
import math
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from sightline.disk import find_broken_link, find_obstacle
from sightline.store import scope_key
from sightline.store.bounds import Bounds
from sightline.store.damage import DamagedError, check_files
from sightline.store.database import Database
from sightline.store.files import Blobs, Files, Held, private_folder
from sightline.store.log import log_of
from sightline.store.touches import Touches

if sys.platform != "win32":
    import fcntl

ROWS, BYTES = "record.sqlite", "blobs"
NEW = f"{ROWS}.new-"
REPAIRING = f"{ROWS}.repairing"
ASIDE = f"{ROWS}.damaged-"
_SWEPT = "swept"
_SWEEP_SECONDS = 3600.0  # a record that is opened again sooner was swept just now


@dataclass(frozen=True, slots=True)
class Home:
    database: Database
    blobs: Blobs
    key: bytes
    bounds: Bounds
    touches: Touches = field(default_factory=Touches)
    is_new: bool = False  # the database was created just now, and names no bytes that were there before

    @classmethod
    def on_disk(cls, folder: Path, bounds: Bounds, patience: float | None = None) -> Home:
        """Open the record in a folder, and begin one if there is none; raise if its files are damaged."""
        private_folder(folder)
        check_folder(folder)
        is_new = not (folder / ROWS).exists()
        database = Database.on_disk(folder / ROWS, patience)
        try:
            if not (folder / scope_key.NAME).exists():
                with database.writing():  # one process at a time: the first one makes the key
                    scope_key.make_in(folder)
            return cls(database, Files(folder / BYTES), scope_key.read_in(folder), bounds, is_new=is_new)
        except BaseException:
            database.close()
            raise

    @classmethod
    def read_only(cls, folder: Path, bounds: Bounds) -> Home:
        """Open the record in a folder as it is; raise if its files or its consents are damaged."""
        check_folder(folder)
        key, blobs = scope_key.read_in(folder), Files(folder / BYTES)
        database = Database.read_only(folder / ROWS)
        try:
            database.check_consents()
            return cls(database, blobs, key, bounds)
        except BaseException:
            database.close()
            raise

    @classmethod
    def in_memory(cls, bounds: Bounds) -> Home:
        return cls(Database.in_memory(), Held(), scope_key.made(), bounds)


def is_there(folder: Path) -> bool:
    """Return whether a folder holds a record, or what is left of one."""
    return any((folder / name).exists() for name in (ROWS, scope_key.NAME, REPAIRING)) or _holds_bytes(folder)


def check_folder(folder: Path) -> None:
    """Raise if the files are damaged in a way that SQLite would take for a new database, or for an empty log.

    Raise as well if one of them is a link that leads nowhere.
    """
    for name in (ROWS, scope_key.NAME, BYTES):
        if find_broken_link(folder / name):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder / name))
    rows, key = folder / ROWS, folder / scope_key.NAME
    has_folder, has_key = (folder / BYTES).exists(), key.exists()  # before `rows`, which is created first
    if (folder / REPAIRING).exists():
        raise DamagedError("a repair was interrupted, or is under way")
    if not rows.exists() and (has_key or (has_folder and _holds_bytes(folder))):
        raise DamagedError(f"{ROWS} is missing")
    if rows.exists() and has_folder and not has_key:
        raise DamagedError(f"{scope_key.NAME} is missing")
    check_files(rows, used_before=has_key)
    if has_key:
        scope_key.read_in(folder)


def find_record_obstacle(folder: Path) -> OSError | None:
    """Return why a record cannot be written, or None. Nothing is changed to find it out."""
    rows = folder / ROWS
    paths = (folder, rows, log_of(rows), folder / scope_key.NAME, folder / BYTES)
    obstacles = (find_obstacle(path) for path in paths if path == folder or os.path.lexists(path))
    return next((each for each in obstacles if each), None)


def _holds_bytes(folder: Path) -> bool:
    return next(Files(folder / BYTES, create=False).names(), None) is not None


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Keep other repairs out; raise BlockingIOError if one is under way."""
    if sys.platform == "win32":
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def drop_unfinished(folder: Path) -> None:
    """Remove the new databases that killed repairs have left. The folder has to be locked."""
    for path in folder.glob(f"{NEW}*"):
        path.unlink(missing_ok=True)


def drop_asides(folder: Path, oldest: float = math.inf) -> None:
    """Remove what repairs have kept or left behind: all of it, or what was kept before a record time."""
    with suppress(BlockingIOError), lock_folder(folder):  # a repair that is under way does it itself
        drop_unfinished(folder)
    for path in folder.glob(f"{ASIDE}*"):
        digits = path.name.removeprefix(ASIDE).partition("-")[0]
        if not digits.isdecimal() or float(digits) >= oldest:
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def is_due(folder: Path, now: float) -> bool:
    """Whether the last sweep of a whole record is over an hour ago; whoever is told so sweeps."""
    swept = folder / _SWEPT
    try:
        if swept.exists() and abs(now - swept.stat().st_mtime) < _SWEEP_SECONDS:
            return False
        swept.touch(0o600)
        os.utime(swept, (now, now))
    except OSError:
        return False  # where no time can be written, nothing can be removed either
    return True
