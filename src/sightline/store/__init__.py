"""The record, which is the durable memory: rows in SQLite and bytes in files, or both in memory; or on servers.

sql_*.py                            the five ports of `model.ports`, in SQL for both databases (sql.py)
transactions.py                     what all ports share: errors, caches, last uses, deferred rows
retention.py, sweeps.py             record time, and deleting what is too old or too much
maintenance.py                      how large a record is, garbage collection, and copies
storage.py, record_folder.py        which files are used, and what replaces them when they fail
blobs.py                            bytes in files, in memory and in a cache
sqlite_database.py, migrations.py   connections to SQLite, and the schema
sqlite_files.py, sqlite_repair.py   SQLite's file formats, to find damage and to repair it
shared_storage.py                   a record that replicas share, and what replaces it while it fails
postgres_*.py, object_blobs.py      rows in PostgreSQL, and bytes in object storage
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from sightline.model.ports import Store
from sightline.model.refusal import Refusal
from sightline.model.shared_address import SharedAddress
from sightline.store.change_file import CHANGES_NAME
from sightline.store.record_folder import BLOBS_NAME, DATABASE_NAME, KEY_NAME, build_refusal
from sightline.store.retention import RecordBounds
from sightline.store.sql_store import SqlStore
from sightline.store.storage import RecordLocation, Storage
from sightline.store.sweeps import sweep

__all__ = ["delete_record", "open_record", "open_record_or_refuse", "open_server_record", "open_stand_in"]

_GIB = 1 << 30
_MAX_BYTES, _MAX_DAYS = 2 * _GIB, 30.0
_MAX_MEMORY_BYTES = _GIB // 4  # memory is shared with everything else in the process
_MAX_SERVER_BYTES = 1024 * _GIB


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
        return SqlStore(Storage.open_in_memory(memory_bounds, now), now)
    return SqlStore.open_folder(RecordLocation(folder, bounds, memory_bounds), now, check=check)


def open_record_or_refuse(folder: Path) -> SqlStore | Refusal:
    """Open the record in `folder` without a fallback. The code of the refusal is `corrupt` if it is damaged."""
    bounds = RecordBounds(_MAX_BYTES, _MAX_DAYS)
    opened = Storage.open_or_refuse(RecordLocation(folder, bounds, bounds), time.time)
    return opened if isinstance(opened, Refusal) else SqlStore(opened, time.time)


def open_server_record(
    address: SharedAddress, *, days: float = _MAX_DAYS, now: Callable[[], float] = time.time
) -> SqlStore | Refusal:
    """Open a record on servers, which replicas share, or return why that is not possible; then nothing was created."""
    try:
        from sightline.store.shared_storage import SharedBounds, open_shared_storage
    except ImportError:
        return Refusal("unavailable", "a shared record needs other packages", "run: pip install 'sightline[scale]'")
    bounds = SharedBounds(RecordBounds(_MAX_SERVER_BYTES, days), RecordBounds(_MAX_MEMORY_BYTES, days))
    storage = open_shared_storage(address, bounds, now)
    if isinstance(storage, Refusal):
        return storage
    store = SqlStore(storage, storage.read_clock)
    store.policy.read_consents()  # from now on they are in memory
    if storage.claim_sweep():
        sweep(store.transactions)
    return store


def open_stand_in(reason: Refusal) -> Store:
    """Open a record in memory in place of one that can't be used, for this reason: it has no consents."""
    bounds = RecordBounds(_MAX_MEMORY_BYTES, _MAX_DAYS)
    return SqlStore(Storage.open_stand_in(bounds, time.time, reason), time.time)


def delete_record(folder: Path) -> Refusal | None:
    """Delete all files of a record, also of one that cannot be opened."""
    try:
        shutil.rmtree(folder / BLOBS_NAME, ignore_errors=not (folder / BLOBS_NAME).exists())
        for path in (*folder.glob(f"{DATABASE_NAME}*"), folder / KEY_NAME, folder / CHANGES_NAME):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
    except OSError as error:
        return build_refusal(folder, error)
    return None
