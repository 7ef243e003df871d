"""Where a record is kept: its rows, its bytes and its key, on the disk or in memory.

| name in the folder         | what it is                                                                            |
|----------------------------|---------------------------------------------------------------------------------------|
| `record.sqlite`            | the rows, with SQLite's own `-wal` and `-shm`                                         |
| `blobs/ab/cd/abcd…`        | the bytes of images                                                                   |
| `scope.key`                | the key that scopes are made with                                                     |
| `swept`                    | when the whole record was last swept (the time of the file)                           |
| `record.sqlite.new-PID`    | what a repair is writing                                                              |
| `record.sqlite.repairing`  | there while a repair exchanges the files; if it stays there, that repair was killed   |
| `record.sqlite.damaged-T…` | what a repair or a sweep has kept of a damaged record; T is the record time           |

The database is made first, then the key, then the folder for the bytes. So a key or bytes without a database, or bytes
without a key, mean that something was deleted: that is damage, and nothing is created in its place. Scopes are made
with the key, so that a credential is never written down, and the scopes of two records differ.

A repaired database takes the place of the damaged one so that a crash at any moment does no harm. The old log must be
gone before the new database is in place: SQLite would apply it there. But without its log the old database says what it
said before the last changes, and a consent that was withdrawn in the log would count again. So a marker is written
first, and while it is there no program opens the record (see `check_folder`):

1. Write the marker, which names the new file.
2. Give the damaged database a second name.
3. Move its log to that name, and remove the file of locks.
4. Put the new database in place.
5. Remove the marker.

If a repair was killed meanwhile, the next one looks whether the new file is in place. Then only step 5 is missing; else
the log is moved back, and the repair begins again.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from sightline.disk import find_broken_link, find_obstacle, settle, write_whole
from sightline.store.database import DamagedError, Database, check_files, file_identity
from sightline.store.files import Blobs, Files, Held, private_folder
from sightline.store.retention import Bounds, Touches
from sightline.store.sqlite_files import log_of

if sys.platform != "win32":
    import fcntl

ROWS, BYTES, KEY = "record.sqlite", "blobs", "scope.key"
NEW = f"{ROWS}.new-"
REPAIRING = f"{ROWS}.repairing"
ASIDE = f"{ROWS}.damaged-"
ASIDE_BYTES = "-blobs"  # added to the name that begins so: bytes that no row names
_SWEPT = "swept"
_KEY_BYTES = 32
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
            if not (folder / KEY).exists():
                with database.writing():  # one process at a time: the first one makes the key
                    create_key(folder)
            return cls(database, Files(folder / BYTES), read_key(folder), bounds, is_new=is_new)
        except BaseException:
            database.close()
            raise

    @classmethod
    def read_only(cls, folder: Path, bounds: Bounds) -> Home:
        """Open the record in a folder as it is; raise if its files or its consents are damaged."""
        check_folder(folder)
        key, blobs = read_key(folder), Files(folder / BYTES)
        database = Database.read_only(folder / ROWS)
        try:
            database.check_consents()
            return cls(database, blobs, key, bounds)
        except BaseException:
            database.close()
            raise

    @classmethod
    def in_memory(cls, bounds: Bounds) -> Home:
        return cls(Database.in_memory(), Held(), make_key(), bounds)


def is_there(folder: Path) -> bool:
    """Return whether a folder holds a record, or what is left of one."""
    return any((folder / name).exists() for name in (ROWS, KEY, REPAIRING)) or _holds_bytes(folder)


def check_folder(folder: Path) -> None:
    """Raise if the files are damaged in a way that SQLite would take for a new database, or for an empty log.

    Raise as well if one of them is a link that leads nowhere.
    """
    for name in (ROWS, KEY, BYTES):
        if find_broken_link(folder / name):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder / name))
    rows, key = folder / ROWS, folder / KEY
    has_folder, has_key = (folder / BYTES).exists(), key.exists()  # before `rows`, which is created first
    if (folder / REPAIRING).exists():
        raise DamagedError("a repair was interrupted, or is under way")
    if not rows.exists() and (has_key or (has_folder and _holds_bytes(folder))):
        raise DamagedError(f"{ROWS} is missing")
    if rows.exists() and has_folder and not has_key:
        raise DamagedError(f"{KEY} is missing")
    check_files(rows, used_before=has_key)
    if has_key:
        read_key(folder)


def find_record_obstacle(folder: Path) -> OSError | None:
    """Return why a record cannot be written, or None. Nothing is changed to find it out."""
    rows = folder / ROWS
    paths = (folder, rows, log_of(rows), folder / KEY, folder / BYTES)
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


def choose_aside(folder: Path, now: int) -> Path:
    """Return a name under which nothing was kept yet."""
    used = {path.name.removeprefix(ASIDE).partition("-")[0] for path in folder.glob(f"{ASIDE}*")}
    return folder / f"{ASIDE}{next(time for time in range(now, now + len(used) + 1) if str(time) not in used)}"


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


def make_key() -> bytes:
    return secrets.token_bytes(_KEY_BYTES)


def create_key(folder: Path) -> None:
    if not (folder / KEY).exists():
        write_whole(folder / KEY, make_key())


def read_key(folder: Path) -> bytes:
    key = (folder / KEY).read_bytes()
    if len(key) != _KEY_BYTES:
        raise DamagedError(f"{folder / KEY} is damaged")
    return key


def hash_credential(key: bytes, credential: str) -> str:
    return hashlib.blake2b(credential.encode(), key=key).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Swap:
    aside: str  # the second name of the damaged database
    consents_lost: bool
    withdrawn: tuple[str, ...]


def swap(folder: Path, new: Path, done: Swap) -> None:
    """Put the database `new` in place. The damaged one keeps its log beside it under the name `done.aside`."""
    rows, aside = folder / ROWS, folder / done.aside
    write_whole(folder / REPAIRING, json.dumps({**asdict(done), "new": file_identity(new)}).encode())
    with suppress(FileNotFoundError):
        if rows.is_file():
            os.link(rows, aside)  # so that there is never no database at all
        else:
            rows.rename(aside)
    with suppress(FileNotFoundError):
        log_of(rows).rename(log_of(aside))
    rows.with_name(f"{ROWS}-shm").unlink(missing_ok=True)
    settle(folder)
    new.replace(rows)
    _remove_marker(folder)


def resume_swap(folder: Path) -> Swap | None:
    """Finish what a killed repair has begun, and return that; None: there is nothing, or it was undone.

    A marker that cannot be read stays: then nothing is known about the log, and no consent can be relied on.
    """
    try:
        marker = json.loads((folder / REPAIRING).read_bytes())
        rows, new = folder / ROWS, tuple(marker["new"])
        done = Swap(marker["aside"], marker["consents_lost"], tuple(marker["withdrawn"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    is_done = file_identity(rows) == new
    if not is_done:
        _undo(rows, folder / done.aside)
    _remove_marker(folder)
    return done if is_done else None


def _undo(rows: Path, aside: Path) -> None:
    if log_of(aside).exists() and not log_of(rows).exists():
        log_of(aside).rename(log_of(rows))
    if aside.exists() and not rows.exists():
        aside.rename(rows)
    elif aside.is_file():
        aside.unlink()


def _remove_marker(folder: Path) -> None:
    settle(folder)
    (folder / REPAIRING).unlink()
    settle(folder)
