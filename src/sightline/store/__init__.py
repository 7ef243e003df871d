"""The durable memory: SQLite for rows, files for bytes; or nothing but this process's memory."""

from __future__ import annotations

import logging
import shutil
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from sightline.model.ports import Record
from sightline.model.refusal import Refusal
from sightline.store.bounds import Bounds
from sightline.store.database import is_busy
from sightline.store.home import BYTES, ROWS, Home
from sightline.store.scope_key import NAME as KEY
from sightline.store.sqlite import SqliteRecord

__all__ = ["open_on_disk", "open_record", "remove"]

_log = logging.getLogger(__name__)
_TROUBLES = (OSError, sqlite3.Error)
_GIB = 1 << 30
_BYTES, _DAYS = 2 * _GIB, 30.0
_MEMORY_BYTES = _GIB // 4  # a record that is held in memory shares it with everything else


def open_record(
    folder: Path,
    *,
    kind: Literal["disk", "memory"] = "disk",
    bytes_limit: int = _BYTES,
    days: float = _DAYS,
    now: Callable[[], float] = time.time,
) -> Record:
    """The record in `folder`; where it cannot be written, what stands in it; where it cannot be read, one in memory.

    It is no reason to stop, and the record on the disk is taken up as soon as it can be used again.
    """
    bounds, small = Bounds(bytes_limit, days), Bounds(min(bytes_limit, _MEMORY_BYTES), days)
    if kind == "memory":
        return SqliteRecord(Home.in_memory(small), now)

    def again() -> SqliteRecord:
        return SqliteRecord.on_disk(folder, bounds, now)

    try:
        return again()
    except _TROUBLES as trouble:
        reason = trouble
    try:
        record = SqliteRecord(Home.read_only(folder, bounds), now).stand_by(again, None)
        _log.warning("The record in %s cannot be written (%s); nothing new is remembered.", folder, reason)
    except _TROUBLES:
        record = SqliteRecord(Home.in_memory(small), now).stand_by(again, _unusable(folder, reason))
        _log.warning("The record in %s cannot be used (%s); it is held in memory.", folder, reason)
    return record


def open_on_disk(folder: Path) -> Record | Refusal:
    """The record in `folder` itself, for whoever must not be answered by another. Only a damaged one is `corrupt`."""
    try:
        return SqliteRecord.on_disk(folder, Bounds(_BYTES, _DAYS), time.time)
    except _TROUBLES as trouble:
        return _unusable(folder, trouble)


def remove(folder: Path) -> Refusal | None:
    """All that a record is made of, for one that cannot be opened any more."""
    try:
        shutil.rmtree(folder / BYTES, ignore_errors=not (folder / BYTES).exists())
        for path in (*folder.glob(f"{ROWS}*"), folder / KEY):
            path.unlink(missing_ok=True)
    except OSError as trouble:
        return _unusable(folder, trouble)
    return None


def _unusable(folder: Path, trouble: Exception) -> Refusal:
    what = f"the record in {folder} cannot be used: {trouble}"
    if isinstance(trouble, OSError | sqlite3.OperationalError):
        return Refusal("unavailable", what, "another program is at it: try again" if is_busy(trouble) else "")
    return Refusal("corrupt", what, "`sightline forget --all` removes it")
