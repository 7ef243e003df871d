"""The record, which is the durable memory: rows in SQLite and bytes in files, or both in memory.

sqlite.py, sqlite_images.py, sqlite_history.py    the five ports of `model.ports` on SQLite's tables
transactions.py, retention.py                     what all ports share: errors, last uses, sweeps, record time
storage.py, record_folder.py                      which files are used, and what replaces them when they fail
sqlite_database.py, sqlite_migrations.py          connections and the schema
sqlite_files.py, sqlite_repair.py                 SQLite's file formats, to find damage and to repair it
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from sightline.model.ports import Store
from sightline.model.refusal import Refusal
from sightline.store.record_folder import BLOBS_NAME, DATABASE_NAME, KEY_NAME
from sightline.store.retention import RecordBounds
from sightline.store.sqlite import SqliteStore
from sightline.store.storage import RecordLocation, Storage, build_refusal

__all__ = ["delete_record", "open_record", "open_record_or_refuse"]

_GIB = 1 << 30
_MAX_BYTES, _MAX_DAYS = 2 * _GIB, 30.0
_MAX_MEMORY_BYTES = _GIB // 4  # memory is shared with everything else in the process


def open_record(
    folder: Path,
    *,
    kind: Literal["disk", "memory"] = "disk",
    bytes_limit: int = _MAX_BYTES,
    days: float = _MAX_DAYS,
    now: Callable[[], float] = time.time,
    check: bool = True,
) -> Store:
    """Open the record in `folder`, or a fallback while it cannot be used: see `storage`.

    An error is logged in one line and does not raise. With `check`, look for damage, as long-running programs should;
    else it is only noticed where it is read.
    """
    bounds, memory_bounds = RecordBounds(bytes_limit, days), RecordBounds(min(bytes_limit, _MAX_MEMORY_BYTES), days)
    if kind == "memory":
        return SqliteStore(Storage.open_in_memory(memory_bounds, now), now)
    return SqliteStore.open_folder(RecordLocation(folder, bounds, memory_bounds), now, check=check)


def open_record_or_refuse(folder: Path) -> Store | Refusal:
    """Open the record in `folder` without a fallback. The code of the refusal is `corrupt` if it is damaged."""
    bounds = RecordBounds(_MAX_BYTES, _MAX_DAYS)
    opened = Storage.open_or_refuse(RecordLocation(folder, bounds, bounds), time.time)
    return opened if isinstance(opened, Refusal) else SqliteStore(opened, time.time)


def delete_record(folder: Path) -> Refusal | None:
    """Delete all files of a record, also of one that cannot be opened."""
    try:
        shutil.rmtree(folder / BLOBS_NAME, ignore_errors=not (folder / BLOBS_NAME).exists())
        for path in (*folder.glob(f"{DATABASE_NAME}*"), folder / KEY_NAME):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
    except OSError as error:
        return build_refusal(folder, error)
    return None
