"""Transactions on the record, and what all ports have in common: errors of the disk, last uses, and deferred rows.

A port has an attribute `transactions`, where the decorators in this module find it. A decorator determines what a
method returns when the disk is full, gone or damaged: a default, or a refusal.
"""

from __future__ import annotations

import functools
import json
import logging
import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from sightline.model.refusal import Refusal
from sightline.model.value import value_class
from sightline.store.record_folder import REPAIR_COMMAND, STORAGE_ERRORS, delete_damaged_files, explain_error
from sightline.store.retention import (
    USED_PRECISION,
    RecordTime,
    read_record_time,
    update_record_time,
)
from sightline.store.server_errors import ServerError
from sightline.store.sql import Row, SqlConnection
from sightline.store.sqlite_database import is_damage_error
from sightline.store.storage import Backend, Clock, ReloadedQuery, ReplacedError, RowCache, StorageState

_log = logging.getLogger(__name__)
_WRITES_BETWEEN_SWEEPS = 256
_ATTEMPTS = 3  # to write to a record whose files are being replaced
_DEFERRED_SECONDS = 0.5
_ROUGH_SECONDS = 1.0
MAX_DEFERRED = 10_000
_READ_ERRORS = (*STORAGE_ERRORS, json.JSONDecodeError)

P = ParamSpec("P")
T = TypeVar("T")
D = TypeVar("D")


class RecordStorage(Protocol):
    """What holds a record: a folder (`storage`) or servers (`shared_storage`), and what replaces it while it fails."""

    @property
    def folder(self) -> Path | None: ...

    @property
    def backend(self) -> Backend: ...

    @property
    def state(self) -> StorageState: ...

    @property
    def read_refusal(self) -> Refusal | None: ...

    @property
    def write_refusal(self) -> Refusal | None: ...

    def ensure_current(self, *, wait: bool = True) -> bool: ...

    def report_error(self, error: Exception) -> bool:
        """Use a replacement if an error means that the backend can't be used; return whether it was logged so."""
        ...

    def claim_sweep(self) -> bool:
        """Return whether a sweep is due when enough was written."""
        ...

    def replace_key(self, key: bytes) -> None:
        """Replace the key for the hashes of credentials, in a record without rows that use it."""
        ...

    def close(self) -> None: ...


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

    def __init__(self, storage: RecordStorage, now: Clock, sweep: Callable[[Transactions], None]) -> None:
        """Use a storage. `sweep` is called when so much was written that a sweep is due."""
        self.storage, self.wall_clock, self._sweep = storage, now, sweep
        self._writes = self._written_bytes = 0
        self._logged_backend: Backend | None = None  # whose failures were logged
        self._logged_outages: set[int] = set()
        self._durable_only = _DurableOnly()
        self._last_time: tuple[Backend | None, RecordTime] = None, RecordTime(0.0, 0.0)
        self._rough_time: tuple[Backend | None, float, float] = None, 0.0, 0.0  # with the time of the wall clock

    @property
    def backend(self) -> Backend:
        return self.storage.backend

    def fetch_all(self, query: str, *values: object) -> list[Row]:
        return self.backend.database.fetch_all(query, *values)

    def fetch_one(self, query: str, *values: object) -> Row | None:
        return self.backend.database.fetch_one(query, *values)

    @property
    def row_cache(self) -> RowCache:
        """The cache of rows, without those that another process may have changed."""
        cache = self.backend.row_cache
        cache.look_for_changes()
        return cache

    def fetch_cached(self, key: Hashable, query: str, *values: object, absent: bool = False) -> list[Row]:
        """Return rows that never change under their key. If there are none, that is only cached with `absent`."""
        backend = self.backend
        cache = backend.row_cache
        cache.look_for_changes()
        if (cached := cache.get(key)) is not None:
            return cached
        generation = cache.generation
        rows = backend.database.fetch_all(query, *values)
        if (rows or absent) and backend.fills_cache:
            cache.put(key, rows, generation)
        return rows

    def fetch_policy(self, query: str, *values: object, reload: bool = False) -> list[Row]:
        """Return rows that change only in exclusive transactions; also that there are none is cached.

        With `reload`, they are in the cache again after a change of another process: see `ReloadedQuery`.
        """
        cache, key = self.backend.policy_cache, ReloadedQuery(query, values) if reload else (query, values)
        cache.look_for_changes()
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

    def read_rough_time(self, backend: Backend) -> float:
        """Return the record time of up to a second ago, in a quarter of the time: for each request with images."""
        wall, (known_backend, known_wall, time) = self.wall_clock(), self._rough_time
        if known_backend is not backend or not 0.0 <= wall - known_wall < _ROUGH_SECONDS:
            time = self.read_record_time()
            self._rough_time = backend, wall, time
        return time

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
        with backend.database.begin_without_sync() if unsynced else backend.database.begin() as connection:
            now = update_record_time(connection, self.wall_clock())
            yield WriteTransaction(backend, connection, now)
        self._last_time = backend, now
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
        for cache in (backend.policy_cache, *([backend.row_cache] if backend.fills_cache else ())):
            if not cache.is_polled:
                cache.clear()
                continue
            try:
                cache.reload(backend.database.fetch_all)
            except STORAGE_ERRORS:  # the change itself was written
                cache.clear()

    def check_not_replaced(self, backend: Backend) -> None:
        if self.storage.write_refusal is None and not backend.database.is_current():
            raise ReplacedError("its files were replaced meanwhile")

    def count_write(self, size: int) -> None:
        """Count a write, and sweep if enough was written."""
        self._writes += 1
        self._written_bytes += size
        is_due = self._written_bytes > self.bytes_between_sweeps or self._writes >= _WRITES_BETWEEN_SWEEPS
        if is_due:
            self._writes = self._written_bytes = 0
        if is_due and self.storage.claim_sweep():
            self._sweep(self)
        else:
            self.write_last_uses()  # the next sweep, which may be in another process, needs them

    @property
    def bytes_between_sweeps(self) -> int:
        """How much may be written before the next sweep. A sweep leaves that much free, so the limit holds."""
        return self.backend.bounds.bytes // 16

    def write_last_uses(self) -> None:
        with self.log_errors():
            self.backend.last_uses.write(self.backend.database)

    @contextmanager
    def log_errors(self) -> Iterator[None]:
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


DeferredWrite = Callable[[WriteTransaction], int]
"""A function that writes a row and returns its bytes."""


class WriteBehind:
    """Rows that no caller waits for, written together half a second after the first. A crash loses them.

    If they cannot be written for long, the oldest are dropped.
    """

    def __init__(self, transactions: Transactions) -> None:
        self.transactions = transactions
        self.after_write: Callable[[SqlConnection], None] = lambda connection: None
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
            self.after_write(tx.connection)
            return size

        self.transactions.write(write, unsynced=True)

    def _start_timer(self) -> None:
        self._timer = threading.Timer(_DEFERRED_SECONDS, self._flush_on_timer)
        self._timer.daemon = True
        self._timer.start()

    def _flush_on_timer(self) -> None:
        try:
            self.flush()
        except Exception:  # noqa: BLE001, no caller waits for these rows, and others are to be written later
            _log.warning("Rows of the record could not be written.", exc_info=True)
        finally:
            with self._lock:
                self._timer = None
                if self._waiting:  # added meanwhile
                    self._start_timer()
