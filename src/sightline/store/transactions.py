"""Transactions on the record, and what all ports have in common: errors of the disk, last uses, and sweeps.

A port has an attribute `transactions`, where the decorators in this module find it. A decorator determines what a
method returns when the disk is full, gone or damaged: a default, or a refusal.
"""

from __future__ import annotations

import functools
import json
import logging
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Concatenate, Generic, ParamSpec, Protocol, TypeVar

from sightline.model.image import Image
from sightline.model.refusal import Refusal
from sightline.store.record_folder import (
    BLOBS_SUFFIX,
    Backend,
    Blobs,
    FileBlobs,
    choose_damaged_path,
    delete_damaged_files,
)
from sightline.store.retention import (
    DAY,
    USED_PRECISION,
    RecordTime,
    delete_expired,
    find_orphans,
    read_record_time,
    update_record_time,
)
from sightline.store.sqlite_database import Row, is_damage_error
from sightline.store.storage import REPAIR_COMMAND, STORAGE_ERRORS, Clock, ReplacedError, Storage, explain_error

_log = logging.getLogger(__name__)
_WRITES_BETWEEN_SWEEPS = 256
_TIME_SECONDS = 1.0
_ATTEMPTS = 3  # to write to a record whose files are being replaced
_READ_ERRORS = (*STORAGE_ERRORS, json.JSONDecodeError)
_RECENT_SECONDS = 1.0
_MAX_RECENT = 4096
_DEFERRED_SECONDS = 0.5
MAX_DEFERRED = 10_000

P = ParamSpec("P")
T = TypeVar("T")
D = TypeVar("D")


class _HasTransactions(Protocol):
    @property
    def transactions(self) -> Transactions: ...


S = TypeVar("S", bound=_HasTransactions)
Method = Callable[Concatenate[S, P], T]


def return_on_error(default: D) -> Callable[[Method[S, P, T]], Method[S, P, T | D]]:
    """Make a method return `default` on an error: a disk that is full or gone must not fail a request."""

    def decorate(method: Method[S, P, T]) -> Method[S, P, T | D]:
        @functools.wraps(method)
        def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T | D:
            try:
                return method(self, *args, **kwargs)
            except _READ_ERRORS as error:
                self.transactions.log_error(error)
                return default

        return call

    return decorate


def refuse_on_error(method: Method[S, P, T]) -> Method[S, P, T | Refusal]:
    """Make a method return a refusal on an error."""

    @functools.wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T | Refusal:
        try:
            return method(self, *args, **kwargs)
        except _READ_ERRORS as error:
            return self.transactions.refuse(error)

    return call


def require_durable(method: Method[S, P, T]) -> Method[S, P, T | Refusal]:
    """Make a method return a refusal unless what it wrote is in the user's record and survives a crash."""

    @functools.wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T | Refusal:
        storage, error = self.transactions.storage, Exception()
        for _ in range(_ATTEMPTS):
            try:
                storage.ensure_current()
                if storage.write_refusal:
                    return storage.write_refusal
                return method(self, *args, **kwargs)
            except ReplacedError as replaced:  # it has to be written to the new record, too
                error = replaced
            except _READ_ERRORS as other:
                error = other
                break
        return self.transactions.refuse(error)

    return call


@dataclass(frozen=True, slots=True)
class WriteTransaction:
    """A transaction that writes: the backend, its connection, and the record time."""

    backend: Backend
    connection: sqlite3.Connection
    now: RecordTime


def delete_orphans(connection: sqlite3.Connection, blobs: Blobs, names: Iterable[str]) -> None:
    """Delete those of these blobs that no row names.

    This happens within the transaction: a process that stores the same image meanwhile finds it missing and writes it
    again. A crash in between leaves rows without bytes, which read as absent.
    """
    for sha256 in find_orphans(connection, names):
        blobs.delete(sha256)


class Transactions:
    """Reads and writes of one record, on the backend that its storage uses now."""

    def __init__(self, storage: Storage, now: Clock) -> None:
        self.storage, self.wall_clock = storage, now
        self._writes = self._written_bytes = 0
        self.write_count = 0  # transactions of this process, except notes of last uses
        self._logged_backend: Backend | None = None  # whose failure was logged
        self._last_time: tuple[Backend | None, RecordTime] = None, RecordTime(0.0, 0.0)

    @property
    def backend(self) -> Backend:
        return self.storage.backend

    def fetch_all(self, query: str, *values: object) -> list[Row]:
        return self.backend.database.fetch_all(query, *values)

    def fetch_one(self, query: str, *values: object) -> Row | None:
        return self.backend.database.fetch_one(query, *values)

    def read_record_time(self) -> float:
        """Return the record time. It is read from the record at most once a second."""
        wall, backend = self.wall_clock(), self.backend
        if self._last_time[0] is not backend or not 0 <= wall - self._last_time[1].wall < _TIME_SECONDS:
            self._last_time = backend, read_record_time(backend.database, wall)
        return self._last_time[1].compute_time(wall)

    def is_recent(self, used: Row | None) -> bool:
        """Return whether a row exists and was used so recently that it need not be written; `used` is what was read."""
        return used is not None and self.read_record_time() - used[0] < USED_PRECISION

    def mark_used(self, table: str, row: Row) -> None:
        """Note that a row was read. `row` begins with its rowid and its `used`."""
        self.backend.last_uses.add(table, row, self.read_record_time())

    def write(self, write: Callable[[WriteTransaction], int], *, unsynced: bool = False) -> None:
        """Write rows, whose bytes `write` returns. With `unsynced`, a power failure may lose them."""
        with self.begin(unsynced=unsynced) as tx:
            size = write(tx)
        self.count_write(size)

    @contextmanager
    def begin(self, *, unsynced: bool = False) -> Iterator[WriteTransaction]:
        """Begin a transaction on the files that are in the folder now; raise if they were replaced by its end."""
        self.storage.ensure_current()
        backend = self.backend
        with backend.database.begin_unsynced() if unsynced else backend.database.begin() as connection:
            yield WriteTransaction(backend, connection, update_record_time(connection, self.wall_clock()))
        self.write_count += 1
        self.check_not_replaced(backend)

    @contextmanager
    def begin_erasing(self) -> Iterator[tuple[Backend, sqlite3.Connection]]:
        """Begin a transaction after which no file of the record contains what was deleted."""
        backend = self.backend
        with backend.database.begin_erasing() as connection:
            yield backend, connection
        self.write_count += 1
        self.check_not_replaced(backend)
        if self.storage.folder:  # what a repair has kept may contain it, too
            delete_damaged_files(self.storage.folder)

    def check_not_replaced(self, backend: Backend) -> None:
        if self.storage.write_refusal is None and not backend.database.is_current():
            raise ReplacedError("its files were replaced meanwhile")

    def store_blob(self, image: Image, used: Row | None, write: Callable[[WriteTransaction], None]) -> bool:
        """Store the bytes of an image, then the row that names them, and return whether they are durable.

        So there is never a row without its bytes. Nothing is written if both were used recently; `used` is what was
        read of the row.
        """
        is_durable = self.storage.write_refusal is None
        if is_durable and self.is_recent(used) and self.backend.blobs.has(image.sha256):
            return True
        blobs = self.backend.blobs
        if not blobs.has(image.sha256):
            blobs.write(image.sha256, image.data)
        with self.begin() as tx:
            if not tx.backend.blobs.has(image.sha256):  # another process swept in between
                tx.backend.blobs.write(image.sha256, image.data)
            write(tx)
        self.count_write(len(image.data))
        return is_durable

    def count_write(self, size: int) -> None:
        """Count a write, and sweep if enough was written."""
        self._writes += 1
        self._written_bytes += size
        if self._written_bytes > self._bytes_between_sweeps or self._writes >= _WRITES_BETWEEN_SWEEPS:
            self.sweep()
        else:
            self.write_last_uses()  # the next sweep, which may be in another process, needs them

    @property
    def _bytes_between_sweeps(self) -> int:
        """How much may be written before the next sweep. A sweep leaves that much free, so the limit holds."""
        return self.backend.bounds.bytes // 16

    def write_last_uses(self) -> None:
        with self._log_errors():
            self.backend.last_uses.write(self.backend.database)

    def sweep(self, *, include_orphans: bool = False) -> None:
        """Delete what is too old or too much; with `include_orphans`, also move aside the blobs that no row names."""
        with self._log_errors():
            self._writes = self._written_bytes = 0
            self.write_last_uses()
            with self.begin() as tx:
                limit = tx.backend.bounds.bytes - self._bytes_between_sweeps
                oldest = tx.now.time - tx.backend.bounds.days * DAY
                blobs = delete_expired(tx.connection, limit, oldest, tx.now.time)
                delete_orphans(tx.connection, tx.backend.blobs, blobs)
                if include_orphans and self.storage.folder:
                    self._move_orphans(tx, self.storage.folder)
                    delete_damaged_files(self.storage.folder, oldest)

    def _move_orphans(self, tx: WriteTransaction, folder: Path) -> None:
        """Move the blobs that no row names aside. They expire there, and the next `forget` deletes them.

        A crash leaves one for each image that was being written. But the database may also be older than the blobs,
        such as a backup that was restored without them, and then they may be all that is left of these images.
        """
        blobs = tx.backend.blobs
        orphans = find_orphans(tx.connection, blobs.list_names())
        if not orphans or not isinstance(blobs, FileBlobs):  # in memory, no other program can have left any
            return
        aside = choose_damaged_path(folder, int(tx.now.time))
        aside = aside.with_name(f"{aside.name}{BLOBS_SUFFIX}")
        for name in orphans:
            blobs.move(name, aside)
        _log.warning(
            "%d of the images have no rows in the record: a program was killed, or the database is older than they"
            " are; they were moved to %s",
            *(len(orphans), aside),
        )

    @contextmanager
    def _log_errors(self) -> Iterator[None]:
        try:
            yield
        except _READ_ERRORS as error:
            self.log_error(error)

    def log_error(self, error: Exception) -> None:
        """Log an error once for each backend: a disk that stays full fails with every request."""
        if is_damage_error(error):
            self.storage.report_damage(error)
        elif self._logged_backend is not self.backend and not isinstance(error, ReplacedError):
            self._logged_backend = self.backend
            if not self.storage.write_refusal:  # which was logged when it was found
                why, remedy = explain_error(self.storage.folder, error)
                _log.warning("The record cannot be used: %s; nothing new is remembered (%s)", why, remedy)

    def refuse(self, error: Exception) -> Refusal:
        if is_damage_error(error):
            self.storage.report_damage(error)
            return Refusal("corrupt", f"the record is damaged: {error}", REPAIR_COMMAND)
        why, remedy = explain_error(self.storage.folder, error)
        return Refusal("unavailable", f"the record could not be written: {why}", remedy)


class RecentReads(Generic[T]):
    """What was read within the last second, for reads that nearly every request repeats.

    A write by this process ends it at once. A write by another process is noticed within a second, like a change of the
    settings; so use it only for what may be that old.
    """

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._since, self._writes, self._backend = 0.0, 0, transactions.backend
        self._found: dict[Hashable, T] = {}

    def get_all(self) -> dict[Hashable, T]:
        """Return what was read, by keys of the caller, who calls this before a read and adds its result."""
        store, wall = self._transactions, self._transactions.wall_clock()
        is_current = self._writes == store.write_count and self._backend is store.backend
        if not is_current or not 0 <= wall - self._since < _RECENT_SECONDS or len(self._found) > _MAX_RECENT:
            self._since, self._writes, self._backend = wall, store.write_count, store.backend
            self._found = {}  # another thread may still add to the old one what it has read before the write
        return self._found


DeferredWrite = Callable[[WriteTransaction], int]
"""A function that writes a row and returns its bytes."""


class WriteBehind:
    """Rows that no caller waits for, written together half a second after the first. A crash loses them.

    If they cannot be written for long, the oldest are dropped.
    """

    def __init__(self, transactions: Transactions, after_write: Callable[[sqlite3.Connection], None]) -> None:
        self.transactions, self._after_write = transactions, after_write
        self._waiting: deque[DeferredWrite] = deque(maxlen=MAX_DEFERRED)
        self._lock = threading.Lock()
        self._flushing = threading.Lock()  # held while rows are written
        self._timer: threading.Timer | None = None

    def add(self, row: DeferredWrite) -> None:
        with self._lock:
            self._waiting.append(row)
            if self._timer is None:
                self._start_timer()

    def flush(self) -> None:
        """Write all rows, and wait for another thread that is writing some."""
        with self._flushing:
            if rows := self.take_all():
                self._write(rows)

    def take_all(self) -> Sequence[DeferredWrite]:
        """Remove and return all rows."""
        with self._lock:
            rows = tuple(self._waiting)
            self._waiting.clear()
        return rows

    def close(self) -> None:
        """Write the last rows, and stop the timer."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
        self.flush()

    @return_on_error(None)
    def _write(self, rows: Sequence[DeferredWrite]) -> None:
        def write(tx: WriteTransaction) -> int:
            size = sum(write_row(tx) for write_row in rows)
            self._after_write(tx.connection)
            return size

        self.transactions.write(write, unsynced=True)

    def _start_timer(self) -> None:
        self._timer = threading.Timer(_DEFERRED_SECONDS, self._flush_on_timer)
        self._timer.daemon = True
        self._timer.start()

    def _flush_on_timer(self) -> None:
        self.flush()
        with self._lock:
            self._timer = None
            if self._waiting:  # added meanwhile
                self._start_timer()
