"""The durable memory: SQLite for rows, files for bytes; or nothing but this process's memory."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from sightline.model.ports import Record
from sightline.store.bounds import Bounds
from sightline.store.sqlite import SqliteRecord

__all__ = ["open_record"]

_log = logging.getLogger(__name__)
_GIB = 1 << 30
_MEMORY_BYTES = _GIB // 4  # a record that is held in memory shares it with everything else


def open_record(
    folder: Path,
    *,
    kind: Literal["disk", "memory"] = "disk",
    bytes_limit: int = 2 * _GIB,
    days: float = 30,
    now: Callable[[], float] = time.time,
) -> Record:
    """The record in `folder`; where it cannot be used, one in memory: it is no reason to stop."""
    if kind == "disk":
        try:
            return SqliteRecord.on_disk(folder, Bounds(bytes_limit, days), now)
        except (OSError, sqlite3.Error) as trouble:
            _log.warning("The record in %s cannot be used (%s); it is held in memory.", folder, trouble)
    return SqliteRecord.in_memory(Bounds(min(bytes_limit, _MEMORY_BYTES), days), now)
