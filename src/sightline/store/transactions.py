"""Transactions on the record, and what all ports have in common: errors of the disk, last uses, and sweeps.

A port has an attribute `transactions`, where the decorators in this module find it. A decorator determines what a
method returns when the disk is full, gone or damaged: a default, or a refusal.
"""

from __future__ import annotations

import functools
import json
import logging
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from sightline.model.image import Image
from sightline.model.refusal import Refusal
from sightline.model.value import value_class
from sightline.store.orphans import delete_orphans, move_orphans
from sightline.store.read_caches import RowCache
from sightline.store.record_folder import Backend, delete_damaged_files
from sightline.store.record_storage import RecordStorage
from sightline.store.retention import (
    DAY,
    USED_PRECISION,
    RecordBounds,
    RecordTime,
    delete_ended,
    delete_rows,
    find_expired,
    find_orphans,
    read_record_time,
    update_record_time,
)
from sightline.store.server_errors import ServerError
from sightline.store.sql import Row, SqlConnection
from sightline.store.sqlite_database import is_damage_error
from sightline.store.storage import (
    REPAIR_COMMAND,
    STORAGE_ERRORS,
    Clock,
    ReplacedError,
    explain_error,
)

_log = logging.getLogger(__name__)
_WRITES_BETWEEN_SWEEPS = 256
_ROWS_FOUND = 10_000  # at once, by a sweep
_ROWS_IN_SWEEP = 200  # that one transaction deletes
_ORPHANS_AT_ONCE = 50
_ATTEMPTS = 3  # to write to a record whose files are being replaced
_READ_ERRORS = (*STORAGE_ERRORS, json.JSONDecodeError)

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
                with self.transactions.refuse_stand_in():
                    return method(self, *args, **kwargs)
            except ReplacedError as replaced:  # it has to be written to the new record, too
                error = replaced
            except _READ_ERRORS as other:
                error = other
                break
        return self.transactions.refuse(error)

    return call


@value_class
class WriteTransaction:
    """A transaction that writes: the backend, its connection, and the record time."""

    backend: Backend
    connection: SqlConnection
    now: RecordTime


class _DurableOnly(threading.local):
    is_set = False  # whether this thread must not write to a stand-in


class Transactions:
    """Reads and writes of one record, on the backend that its storage uses now."""

    def __init__(self, storage: RecordStorage, now: Clock) -> None:
        self.storage, self.wall_clock = storage, now
        self._writes = self._written_bytes = 0
        self._logged_backend: Backend | None = None  # whose failures were logged
        self._logged_outages: set[int] = set()
        self._durable_only = _DurableOnly()
        self._last_time: tuple[Backend | None, RecordTime] = None, RecordTime(0.0, 0.0)

    @property
    def backend(self) -> Backend:
        return self.storage.backend

    def fetch_all(self, query: str, *values: object) -> list[Row]:
        return self.backend.database.fetch_all(query, *values)

    def fetch_one(self, query: str, *values: object) -> Row | None:
        return self.backend.database.fetch_one(query, *values)

    @property
    def row_cache(self) -> RowCache:
        """The cache of rows, without those that are too old."""
        cache = self.backend.row_cache
        cache.expire(self.wall_clock())
        return cache

    def fetch_cached(self, key: Hashable, query: str, *values: object, absent: bool = False) -> list[Row]:
        """Return rows that never change under their key. If there are none, that is only cached with `absent`."""
        backend, cache = self.backend, self.row_cache
        if (cached := cache.get(key)) is not None:
            return cached
        generation = cache.generation
        rows = backend.database.fetch_all(query, *values)
        if (rows or absent) and backend.fills_cache:
            cache.put(key, rows, generation)
        return rows

    def fetch_policy(self, query: str, *values: object) -> list[Row]:
        """Return rows that change only in exclusive transactions; also that there are none is cached."""
        cache, key = self.backend.policy_cache, (query, values)
        if (cached := cache.get(key)) is not None:
            return cached
        generation = cache.generation
        rows = self.fetch_all(query, *values)
        cache.put(key, rows, generation)
        return rows

    def read_record_time(self) -> float:
        """Return the record time. It is read from the record at most once a second, or as the backend says."""
        wall, backend = self.wall_clock(), self.backend
        if self._last_time[0] is not backend or not 0 <= wall - self._last_time[1].wall < backend.clock_seconds:
            self._last_time = backend, read_record_time(backend.database, wall)
        return self._last_time[1].compute_time(wall)

    def read_steady_time(self) -> float:
        """Return the steady time, for short spans."""
        self.read_record_time()
        return self._last_time[1].advance(self.wall_clock()).steady

    def is_recent(self, used: Row | None) -> bool:
        """Return whether a row exists and was used so recently that it need not be written; `used` is what was read."""
        return used is not None and self.read_record_time() - used[0] < USED_PRECISION

    def mark_used(self, table: str, row: Row, key: Hashable = None) -> None:
        """Note that a row was read. `row` begins with its rowid and its `used`; `key` is that of its cache."""
        if self.backend.last_uses.add(table, row, self.read_record_time()):
            self.backend.row_cache.discard(key)  # its `used` is about to change

    def write(self, write: Callable[[WriteTransaction], int], *, unsynced: bool = False) -> None:
        """Write rows, whose bytes `write` returns. With `unsynced`, a power failure may lose them."""
        with self.begin(unsynced=unsynced) as tx:
            size = write(tx)
        self.count_write(size)

    @contextmanager
    def begin(self, *, unsynced: bool = False) -> Iterator[WriteTransaction]:
        """Begin a transaction on the files that are in the folder now; raise if they were replaced by its end."""
        backend = self._choose_backend()
        with backend.database.begin_unsynced() if unsynced else backend.database.begin() as connection:
            yield WriteTransaction(backend, connection, update_record_time(connection, self.wall_clock()))
        if not backend.row_cache.is_announced:
            backend.row_cache.clear()
        self.check_not_replaced(backend)

    @contextmanager
    def begin_exclusive(self) -> Iterator[WriteTransaction]:
        """Begin a transaction for what every process has to know: no other one writes, and caches are dropped."""
        backend = self._choose_backend()
        with backend.database.begin_exclusive() as connection:
            yield WriteTransaction(backend, connection, update_record_time(connection, self.wall_clock()))
            backend.database.announce_change(connection)
        self._clear_caches(backend)
        self.check_not_replaced(backend)

    @contextmanager
    def begin_erasing(self) -> Iterator[tuple[Backend, SqlConnection]]:
        """Begin a transaction after which no file of the record contains what was deleted."""
        backend = self._choose_backend()
        with backend.database.begin_erasing() as connection:
            yield backend, connection
        self._clear_caches(backend)
        self.check_not_replaced(backend)
        if self.storage.folder:  # what a repair has kept may contain it, too
            delete_damaged_files(self.storage.folder)

    @contextmanager
    def refuse_stand_in(self) -> Iterator[None]:
        """Make transactions of this thread raise `ReplacedError` if they would write to a stand-in."""
        before, self._durable_only.is_set = self._durable_only.is_set, True
        try:
            yield
        finally:
            self._durable_only.is_set = before

    def _choose_backend(self) -> Backend:
        """Return the backend for a transaction. It may change after that, so the transaction keeps to it."""
        self.storage.ensure_current()
        backend = self.backend
        if backend.is_stand_in and self._durable_only.is_set:
            raise ReplacedError("memory is used in its place")
        return backend

    def _clear_caches(self, backend: Backend) -> None:
        """Drop what this process has cached; other processes do so when they see the announcement."""
        if backend.fills_cache:
            backend.row_cache.clear()
        backend.policy_cache.clear()

    def check_not_replaced(self, backend: Backend) -> None:
        if self.storage.write_refusal is None and not backend.database.is_current():
            raise ReplacedError("its files were replaced meanwhile")

    def store_blob(
        self, image: Image, used: Row | None, write: Callable[[WriteTransaction], None], key: Hashable = None
    ) -> bool:
        """Store the bytes of an image, then the row that names them, and return whether they are durable.

        So there is never a row without its bytes. Nothing is written if both were used recently; `used` is what was
        read of the row, and `key` is that of its cache.
        """
        backend = self.backend
        blobs = backend.blobs
        is_durable = self.storage.write_refusal is None and not backend.is_stand_in
        if is_durable and self.is_recent(used) and blobs.has(image.sha256):
            return True
        if not blobs.has(image.sha256):
            blobs.write(image.sha256, image.data)
        with self.begin() as tx:
            if not tx.backend.blobs.confirm(image.sha256):  # another process swept in between
                tx.backend.blobs.write(image.sha256, image.data)
            write(tx)
        self.backend.row_cache.discard(key)
        self.count_write(len(image.data))
        return is_durable and not tx.backend.is_stand_in

    def count_write(self, size: int) -> None:
        """Count a write, and sweep if enough was written."""
        self._writes += 1
        self._written_bytes += size
        is_due = self._written_bytes > self._bytes_between_sweeps or self._writes >= _WRITES_BETWEEN_SWEEPS
        if is_due:
            self._writes = self._written_bytes = 0
        if is_due and self.storage.claim_sweep():
            self.sweep()
        else:
            self.write_last_uses()  # the next sweep, which may be in another process, needs them

    @property
    def _sweep_bounds(self) -> RecordBounds:
        bounds = self.backend.bounds
        return RecordBounds(bounds.bytes - self._bytes_between_sweeps, bounds.days)

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
            self.delete_expired()
            if include_orphans and self.storage.folder:
                with self.begin() as tx:
                    move_orphans(tx.connection, tx.backend.blobs, self.storage.folder, tx.now.time)
                    delete_damaged_files(self.storage.folder, tx.now.time - tx.backend.bounds.days * DAY)

    def delete_expired(
        self,
        bounds: RecordBounds | None = None,
        min_age: float = 0.0,
        report: Callable[[int, int], None] = lambda done, total: None,
    ) -> int:
        """Delete what is too old or too much, and return how many rows. `report` gets how many are done, and known.

        The rows are deleted in several transactions, so that none blocks other processes for long. Those that were used
        since they were found stay, and all that were used in the last `min_age` seconds.
        """
        with self.backend.database.allow_long_statements():
            return self._delete_expired(bounds or self._sweep_bounds, min_age, report)

    def _delete_expired(self, bounds: RecordBounds, min_age: float, report: Callable[[int, int], None]) -> int:
        self.write_last_uses()
        with self.begin() as tx:
            delete_ended(tx.connection, tx.now)
        oldest, newest = tx.now.time - bounds.days * DAY, tx.now.time - min_age
        done = total = deleted = 0
        while expired := find_expired(self.backend.database, bounds.bytes, oldest, newest, _ROWS_FOUND):
            before, total = deleted, total + len(expired)
            for start in range(0, len(expired), _ROWS_IN_SWEEP):
                some = expired[start : start + _ROWS_IN_SWEEP]
                with self.begin_exclusive() as tx:
                    count, blobs = delete_rows(tx.connection, some)
                    delete_orphans(tx.connection, tx.backend.blobs, blobs)
                done, deleted = done + len(some), deleted + count
                report(done, total)
            if deleted == before:  # all were used meanwhile
                break
        return deleted

    def delete_unreferenced(
        self, names: Iterable[str], report: Callable[[int, int], None] = lambda done, total: None
    ) -> int:
        """Delete those of these blobs that no row names, in several transactions, and return how many."""
        ordered, deleted = sorted(names), 0
        for start in range(0, len(ordered), _ORPHANS_AT_ONCE):
            with self.begin() as tx:  # most have rows, and don't need to block anyone
                orphans = find_orphans(tx.connection, ordered[start : start + _ORPHANS_AT_ONCE])
            if orphans:
                with self.begin_exclusive() as tx:
                    deleted += delete_orphans(tx.connection, tx.backend.blobs, orphans)
            report(min(start + _ORPHANS_AT_ONCE, len(ordered)), len(ordered))
        return deleted

    @contextmanager
    def _log_errors(self) -> Iterator[None]:
        try:
            yield
        except _READ_ERRORS as error:
            self.log_error(error)

    def log_error(self, error: Exception) -> None:
        """Log an error once for each backend and each outage: a disk that stays full fails with every request."""
        if self.storage.report_error(error) or isinstance(error, ReplacedError):
            return
        if self._logged_backend is not self.backend:
            self._logged_backend, self._logged_outages = self.backend, set()
        outage = error.outage if isinstance(error, ServerError) else 0
        if outage not in self._logged_outages:
            self._logged_outages.add(outage)
            if not self.storage.write_refusal:  # which was logged when it was found
                why, remedy = explain_error(self.storage.folder, error)
                _log.warning("The record cannot be used: %s; nothing new is remembered (%s)", why, remedy)

    def refuse(self, error: Exception) -> Refusal:
        self.storage.report_error(error)
        if is_damage_error(error):
            return Refusal("corrupt", f"the record is damaged: {error}", REPAIR_COMMAND)
        why, remedy = explain_error(self.storage.folder, error)
        return Refusal("unavailable", f"the record could not be written: {why}", remedy)
