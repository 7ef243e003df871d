"""Where a record is kept: its rows, its bytes and its key, on the disk or in memory."""

from __future__ import annotations

import math
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from sightline.store import scope_key
from sightline.store.bounds import Bounds
from sightline.store.damage import check_files
from sightline.store.database import Database
from sightline.store.files import Blobs, Files, Held, private_folder
from sightline.store.touches import Touches

ROWS, BYTES = "record.sqlite", "blobs"
ASIDE = f"{ROWS}.damaged-"  # a damaged database that a repair has kept, with the record time at which it was put there
_SWEPT = "swept"
_SWEEP_SECONDS = 3600.0  # a record that is opened again sooner was swept just now


@dataclass(frozen=True, slots=True)
class Home:
    database: Database
    blobs: Blobs
    key: bytes
    bounds: Bounds
    touches: Touches = field(default_factory=Touches)

    @classmethod
    def on_disk(cls, folder: Path, bounds: Bounds, patience: float | None = None) -> Home:
        """Open the record in a folder, and begin one if there is none; raise if its files are damaged."""
        private_folder(folder)
        check_files(folder / ROWS, used_before=(folder / scope_key.NAME).exists())
        database = Database.on_disk(folder / ROWS, patience)
        try:
            if not (folder / scope_key.NAME).exists():
                with database.writing():  # one process at a time: the first one makes the key
                    scope_key.make_in(folder)
            return cls(database, Files(folder / BYTES), scope_key.read_in(folder), bounds)
        except BaseException:
            database.close()
            raise

    @classmethod
    def read_only(cls, folder: Path, bounds: Bounds) -> Home:
        """Open the record in a folder as it is; raise if its files or its consents are damaged."""
        check_files(folder / ROWS, used_before=True)
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


def drop_asides(folder: Path, oldest: float = math.inf) -> None:
    """Remove damaged databases that repairs have kept: all, or those from before a record time."""
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
