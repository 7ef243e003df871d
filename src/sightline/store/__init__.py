"""The durable memory: SQLite for rows, files for bytes; or nothing but this process's memory."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from sightline.model.ports import Store
from sightline.model.refusal import Refusal
from sightline.store.home import BYTES, KEY, ROWS
from sightline.store.retention import Bounds
from sightline.store.sqlite import SqliteStore
from sightline.store.storage import Storage, Where, explain

__all__ = ["open_on_disk", "open_record", "remove"]

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
    check: bool = True,
) -> Store:
    """Open the record in `folder`, or what takes its place while it cannot be used: see `storage`.

    Trouble with it is said in one line, and is no reason to stop. `check`: look for damage, as who uses it for long
    should; else it is found where it is met.
    """
    bounds, small = Bounds(bytes_limit, days), Bounds(min(bytes_limit, _MEMORY_BYTES), days)
    if kind == "memory":
        return SqliteStore(Storage.in_memory(small, now), now)
    return SqliteStore.in_folder(Where(folder, bounds, small), now, check=check)


def open_on_disk(folder: Path) -> Store | Refusal:
    """Open the record in `folder` itself, for who must not be answered by another. One that is damaged is `corrupt`."""
    bounds = Bounds(_BYTES, _DAYS)
    opened = Storage.open(Where(folder, bounds, bounds), time.time)
    return opened if isinstance(opened, Refusal) else SqliteStore(opened, time.time)


def remove(folder: Path) -> Refusal | None:
    """All that a record is made of, for one that cannot be opened any more."""
    try:
        shutil.rmtree(folder / BYTES, ignore_errors=not (folder / BYTES).exists())
        for path in (*folder.glob(f"{ROWS}*"), folder / KEY):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
    except OSError as trouble:
        return explain(folder, trouble)
    return None
