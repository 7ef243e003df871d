"""Which backend a record uses now, and what replaces it while its folder cannot be used.

| state       | rows and bytes        | reads                  | writes                 | consents   |
|-------------|-----------------------|------------------------|------------------------|------------|
| `open`      | the folder            | yes                    | yes                    | as written |
| `read_only` | the folder            | what can be read       | fail                   | as written |
| `stand_in`  | this process's memory | what was written there | lost with the process  | none       |
| `memory`    | this process's memory | yes                    | as the user has chosen | as written |

A record that cannot be written (a full disk, or damage) is `read_only`; one that cannot be read, or whose consents are
damaged, is replaced by a `stand_in`. In both states requests go on, but nothing is reported as durable, and in a
`stand_in` no image is sent to a provider that needs consent.

Files can be deleted or replaced under a running program: a user deletes the folder, or `sightline store repair` puts a
new database in its place. SQLite would keep using the old file, which no other program sees, and would miss a consent
that is withdrawn in the new one. So before every write, and when consents are read, the files at the path are compared
with the open ones (by device and inode: two calls of stat). If they differ, they are opened again; if that isn't
possible at once, the state becomes `stand_in`. While the state is not `open`, the record is tried again every minute,
and as soon as its files change.
"""

from __future__ import annotations

import hashlib
import logging
import math
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import field, replace
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

from sightline.disk import write_atomically
from sightline.model.refusal import Refusal
from sightline.model.value import value_class
from sightline.store.blobs import Blobs, FileBlobs, MemoryBlobs, create_private_folder
from sightline.store.change_file import ChangeFile
from sightline.store.record_folder import (
    BLOBS_NAME,
    DATABASE_NAME,
    KEY_NAME,
    REPAIR_MARKER,
    STORAGE_ERRORS,
    build_refusal,
    check_folder,
    ensure_key,
    generate_key,
    read_key,
)
from sightline.store.retention import LastUses, RecordBounds
from sightline.store.sql import DamageReport, Row, SqlDatabase
from sightline.store.sqlite_database import DamagedError, Database, find_file_damage, is_damage_error, read_file_state
from sightline.store.sqlite_files import get_log_path

_log = logging.getLogger(__name__)
_RETRY_SECONDS = 60.0
_CHECK_SECONDS = 0.05  # for the check when a database is opened; most take a few milliseconds
_LONG_CHECK_SECONDS = 300.0
_MAX_RELOADED = 256
_CACHED_ROWS = 4096
StorageState = Literal["open", "read_only", "stand_in", "memory"]
Clock = Callable[[], float]


class ReplacedError(sqlite3.OperationalError):
    """The files of the record were replaced while the open ones were being written."""


class ReloadedQuery(NamedTuple):
    """A key of a cache: a query that is made again after a change, in a thread, because the event loop needs it."""

    query: str
    values: tuple[object, ...] = ()


class RowCache:
    """The least recently used rows go first. With a size of 0, nothing is cached.

    With `changes`, each use first looks there for changes that other processes have announced. If a cache `is_polled`,
    a thread asks a server for them instead, so rows may be out of date until the next poll. Else no other process
    writes.
    """

    def __init__(self, size: int = 0, changes: ChangeFile | None = None, *, is_polled: bool = False) -> None:
        self._size, self._changes, self.is_polled, self._lock = size, changes, is_polled, threading.Lock()
        self._reload_lock = threading.Lock()  # of two threads that reload, neither drops what the other has read
        self._rows: OrderedDict[Hashable, list[Row]] = OrderedDict()
        self._last_state = changes.read_state() if changes else None
        self.generation = 0  # changes with every `clear`
        self.checked_at = -math.inf  # when other processes were last asked for what they announce, in monotonic time

    def look_for_changes(self) -> None:
        """Clear the cache if any process has announced a change since this was last called."""
        if self._changes is not None and (state := self._changes.read_state()) != self._last_state:
            self.clear()  # first, as other threads rely on rows once the state is known
            self._last_state = state

    def get(self, key: Hashable) -> list[Row] | None:
        with self._lock:
            if (rows := self._rows.get(key)) is not None:
                self._rows.move_to_end(key)
            return rows

    def put(self, key: Hashable, rows: list[Row], generation: int | None = None, *, replace: bool = True) -> None:
        """Cache rows, unless the cache was cleared since they were read in `generation`; None: this process wrote them.

        Without `replace`, rows that are cached meanwhile stay.
        """
        with self._lock:
            if self._size and generation in (None, self.generation) and (replace or key not in self._rows):
                self._rows[key] = rows
                self._rows.move_to_end(key)
                if len(self._rows) > self._size:
                    self._rows.popitem(last=False)

    def discard(self, key: Hashable) -> None:
        with self._lock:
            self._rows.pop(key, None)

    def clear(self) -> None:
        with self._lock:
            self._rows.clear()
            self.generation += 1

    def reload(self, fetch: Callable[..., list[Row]]) -> None:
        """Clear the cache after a change, but for rows that the event loop needs: those are read again first."""
        with self._reload_lock:
            with self._lock:
                keys = [key for key in reversed(self._rows) if isinstance(key, ReloadedQuery)][:_MAX_RELOADED]
                generation = self.generation
            fresh: dict[Hashable, list[Row]] = {key: fetch(key.query, *key.values) for key in keys}
            with self._lock:
                is_latest = generation == self.generation  # else another thread has cleared it after a later change
                self.generation += 1
                self._rows.clear()
                if is_latest:
                    self._rows.update(fresh)


@value_class
class Backend:
    """An open record: rows, blobs and key."""

    database: SqlDatabase
    blobs: Blobs
    key: bytes
    bounds: RecordBounds
    last_uses: LastUses = field(default_factory=LastUses)
    is_new: bool = False  # the database was just created, so existing blobs are not orphans
    row_cache: RowCache = field(default_factory=lambda: RowCache(_CACHED_ROWS))
    policy_cache: RowCache = field(default_factory=lambda: RowCache(_CACHED_ROWS))  # of consents and saved descriptions
    fills_cache: bool = True  # false: the cache of rows is only read
    is_stand_in: bool = False  # in memory, in place of a record that can't be used
    clock_seconds: float = 3600.0  # after which the record time is read again, if nothing is written

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
            return cls._open(database, folder, read_key(folder), bounds, is_new=is_new)
        except BaseException:
            database.close()
            raise

    @classmethod
    def open_read_only(cls, folder: Path, bounds: RecordBounds) -> Backend:
        """Open the record in a folder without changing it; raise if its files or its consents are damaged."""
        check_folder(folder)
        key = read_key(folder)
        database = Database.open_read_only(folder / DATABASE_NAME)
        try:
            database.check_consents()
            return cls._open(database, folder, key, bounds)
        except BaseException:
            database.close()
            raise

    @classmethod
    def _open(
        cls, database: Database, folder: Path, key: bytes, bounds: RecordBounds, *, is_new: bool = False
    ) -> Backend:
        rows, policy = (RowCache(_CACHED_ROWS, database.changes) for _ in range(2))
        blobs = FileBlobs(folder / BLOBS_NAME)
        return cls(database, blobs, key, bounds, is_new=is_new, row_cache=rows, policy_cache=policy)

    @classmethod
    def open_in_memory(cls, bounds: RecordBounds, *, is_stand_in: bool = False) -> Backend:
        return cls(Database.open_in_memory(), MemoryBlobs(), generate_key(), bounds, is_stand_in=is_stand_in)


@lru_cache(maxsize=64)  # every request has one, mostly that of the last one
def hash_credential(key: bytes, credential: str) -> str:
    return hashlib.blake2b(credential.encode(), key=key).hexdigest()[:32]


@value_class
class RecordLocation:
    """The folder of a record, its limits, and those of its fallback in memory."""

    folder: Path
    bounds: RecordBounds
    memory_bounds: RecordBounds

    def read_file_states(self) -> tuple[object, ...]:
        """Return a value that changes when a file is written or replaced."""
        database = self.folder / DATABASE_NAME
        return tuple(map(read_file_state, (database, get_log_path(database), self.folder / REPAIR_MARKER)))


@value_class
class _OpenedBackend:
    """A backend and its state, as in the table above."""

    backend: Backend
    state: StorageState
    reason: Refusal | None = None  # why the state is not `open`
    needs_check: bool = False  # there was no time to look for damage everywhere

    def __str__(self) -> str:
        assert self.reason is not None
        what, remedy = self.reason.what, f" ({self.reason.remedy})" if self.reason.remedy else ""
        is_read_only = self.state == "read_only"
        effect = "nothing new is stored" if is_read_only else "until then it is in memory and has no consents"
        return f"{what[:1].upper()}{what[1:]}; {effect}{remedy}"


class Storage:
    """The backend that is used now, and its state."""

    def __init__(self, opened: _OpenedBackend, now: Clock, location: RecordLocation | None = None) -> None:
        self._opened, self._now, self._location = opened, now, location
        self._last_attempt, self._last_file_states = now(), location.read_file_states() if location else ()
        self._logged_state: StorageState = "open"  # the last state that was logged
        self._lock = threading.Lock()
        self._previous: list[Backend] = []
        self._closing = threading.Event()
        self._check_thread: threading.Thread | None = None
        self._start_check(opened)

    @classmethod
    def open_in_memory(cls, bounds: RecordBounds, now: Clock) -> Storage:
        return cls(_OpenedBackend(Backend.open_in_memory(bounds), "memory"), now)

    @classmethod
    def open_stand_in(cls, bounds: RecordBounds, now: Clock, reason: Refusal) -> Storage:
        """Use memory in place of a record that can't be used, for this reason."""
        return cls(_OpenedBackend(Backend.open_in_memory(bounds, is_stand_in=True), "stand_in", reason), now)

    @classmethod
    def open_with_fallback(cls, location: RecordLocation, now: Clock, *, check: bool = True) -> Storage:
        """Open the record in a folder, or a fallback."""
        storage = cls(_open_backend(location, check=check), now, location)
        storage._log_state(location)
        return storage

    @classmethod
    def open_or_refuse(cls, location: RecordLocation, now: Clock) -> Storage | Refusal:
        """Open the record in a folder, or refuse: no fallback is used."""
        opened = _open_backend(location)
        if opened.reason:
            opened.backend.database.close()
            return opened.reason
        return cls(replace(opened, needs_check=False), now, location)

    @property
    def folder(self) -> Path | None:
        return self._location.folder if self._location else None

    @property
    def backend(self) -> Backend:
        return self._opened.backend

    @property
    def state(self) -> StorageState:
        return self._opened.state

    @property
    def read_refusal(self) -> Refusal | None:
        """Why the record cannot be read, or None."""
        return self._opened.reason if self.state == "stand_in" else None

    @property
    def write_refusal(self) -> Refusal | None:
        """Why nothing can be written durably, or None."""
        return self._opened.reason

    def ensure_current(self, *, wait: bool = True) -> bool:
        """Make `backend` the files that are in the folder now; return false if that could not be done.

        Without `wait`, this creates nothing and does not wait for other threads or programs.
        """
        if self._location is None or self._closing.is_set() or self._is_current():
            return True
        if not self._lock.acquire(blocking=wait):
            return False
        try:
            self._refresh(self._location, wait=wait)
        finally:
            self._lock.release()
        return True

    def report_error(self, error: Exception) -> bool:
        """Stop writing to a record that turned out to be damaged; return whether it is."""
        if not is_damage_error(error):
            return False
        with self._lock:
            if self._location is not None and self.state == "open":
                self._switch_to(_open_fallback(self._location, error))
                self._log_state(self._location)
        return True

    def claim_sweep(self) -> bool:
        """Return whether a sweep is due when enough was written."""
        return True

    def replace_key(self, key: bytes) -> None:
        """Replace the key for the hashes of credentials, in a record without rows that use it."""
        if self.folder is not None:
            write_atomically(self.folder / KEY_NAME, key)
        self._opened = replace(self._opened, backend=replace(self.backend, key=key))

    def close(self) -> None:
        self._closing.set()
        if self._check_thread is not None:
            self._check_thread.join()
        for backend in (*self._previous, self.backend):
            backend.database.close()

    def _is_current(self) -> bool:
        return self.state == "open" and self.backend.database.is_current()

    def _refresh(self, location: RecordLocation, *, wait: bool) -> None:
        before, is_replaced = self._opened, self.state == "open" and not self._is_current()
        is_due = location.read_file_states() != self._last_file_states or (
            wait and abs(self._now() - self._last_attempt) >= _RETRY_SECONDS
        )
        if not (is_replaced or (self.state != "open" and is_due)):
            return
        self._last_attempt, self._last_file_states = self._now() if wait else -math.inf, location.read_file_states()
        self._switch_to(_open_backend(location, before.backend if before.state == "stand_in" else None, wait=wait))
        if is_replaced:
            _log.warning("The record in %s was deleted or replaced and is opened again.", location.folder)
        if wait or self.state == "open":  # else the next write tries again at once
            self._log_state(location)

    def _log_state(self, location: RecordLocation) -> None:
        """Log the state, unless it was logged before."""
        if self.state == self._logged_state:
            return
        if self.state == "open":
            _log.warning("The record in %s can be used again.", location.folder)
        else:
            _log.warning("%s", self._opened)
        self._logged_state = self.state

    def _switch_to(self, opened: _OpenedBackend) -> None:
        if opened.backend is not self.backend:
            for older in self._previous:
                older.database.close()
            self._previous = [self.backend]  # another thread may still be reading from it
        self._opened = opened
        self._start_check(opened)

    def _start_check(self, opened: _OpenedBackend) -> None:
        """Look for damage in the background, if that is still to be done."""
        if opened.needs_check and not (self._check_thread and self._check_thread.is_alive()):
            self._check_thread = threading.Thread(target=self._run_check, name="record check", daemon=True)
            self._check_thread.start()

    def _run_check(self) -> None:
        assert self._location is not None
        try:
            report = find_file_damage(self._location.folder / DATABASE_NAME, _LONG_CHECK_SECONDS, self._closing.is_set)
        except STORAGE_ERRORS:  # it is gone or busy, which the next use will notice
            return
        if report.faults:
            self.report_error(DamagedError(report.faults[0]))


def _open_backend(
    location: RecordLocation, memory: Backend | None = None, *, wait: bool = True, check: bool = True
) -> _OpenedBackend:
    """Open the record for writing, or a fallback; `memory` is a fallback that is already in use."""
    try:
        if not wait and not (location.folder / DATABASE_NAME).exists():
            raise FileNotFoundError(f"there is no {DATABASE_NAME}")
        backend = Backend.open_folder(location.folder, location.bounds, None if wait else 0.0)
    except STORAGE_ERRORS as error:
        return _open_fallback(location, error, memory)
    if not check:
        return _OpenedBackend(backend, "open")
    report = backend.database.find_damage(_CHECK_SECONDS) if wait else _check_consents(backend)
    if report.faults:
        backend.database.close()
        return _open_fallback(location, DamagedError(report.faults[0]), memory)
    return _OpenedBackend(backend, "open", needs_check=not report.is_complete)


def _check_consents(backend: Backend) -> DamageReport:
    """Check only the consents, which matter at once; the rest is checked later."""
    try:
        backend.database.check_consents()
    except sqlite3.Error as error:
        return DamageReport((str(error),))
    return DamageReport((), is_complete=False)


def _open_fallback(location: RecordLocation, error: Exception, memory: Backend | None = None) -> _OpenedBackend:
    """Open the record for reading, or use memory instead."""
    reason = build_refusal(location.folder, error)
    try:
        return _OpenedBackend(Backend.open_read_only(location.folder, location.bounds), "read_only", reason)
    except STORAGE_ERRORS:
        backend = memory or Backend.open_in_memory(location.memory_bounds, is_stand_in=True)
        return _OpenedBackend(backend, "stand_in", reason)
