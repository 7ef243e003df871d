"""Transactions on the record, with what goes for all ports: trouble with the disk, reads that are noted, and sweeps.

A port takes a `Transactions` and keeps it under that name; the decorators here find it there. They say what a method
returns where the disk is full, gone or damaged: a default, or a refusal.
"""

from __future__ import annotations

import functools
import json
import logging
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from sightline.model.image import Image
from sightline.model.refusal import Refusal
from sightline.store.database import Row, is_damage
from sightline.store.files import Files
from sightline.store.home import ASIDE_BYTES, Home, choose_aside, drop_asides
from sightline.store.retention import COARSE, DAY, RecordTime, drop_unnamed, find_unnamed, note_time, read_time, sweep
from sightline.store.storage import REPAIR, TROUBLES, Clock, ReplacedError, Storage, describe_trouble

_log = logging.getLogger(__name__)
_WRITES_BETWEEN_SWEEPS = 256
_TIME_SECONDS = 1.0
_MOST_OF_A_CRASH = 8  # blobs without rows
_ATTEMPTS = 3  # to write to a record that is replaced at the same time
_UNREADABLE = (*TROUBLES, json.JSONDecodeError)
_DEFERRED_SECONDS = 0.5
MOST_DEFERRED = 10_000

P = ParamSpec("P")
T = TypeVar("T")
D = TypeVar("D")


class _Port(Protocol):
    @property
    def transactions(self) -> Transactions: ...


S = TypeVar("S", bound=_Port)
Method = Callable[Concatenate[S, P], T]


def return_on_trouble(default: D) -> Callable[[Method[S, P, T]], Method[S, P, T | D]]:
    """Let a method return `default` on trouble: a disk that is full or gone must not fail a request."""

    def decorate(method: Method[S, P, T]) -> Method[S, P, T | D]:
        @functools.wraps(method)
        def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T | D:
            try:
                return method(self, *args, **kwargs)
            except _UNREADABLE as trouble:
                self.transactions.complain(trouble)
                return default

        return call

    return decorate


def refuse_on_trouble(method: Method[S, P, T]) -> Method[S, P, T | Refusal]:
    """Let a method return a refusal on trouble."""

    @functools.wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T | Refusal:
        try:
            return method(self, *args, **kwargs)
        except _UNREADABLE as trouble:
            return self.transactions.refuse(trouble)

    return call


def require_durable(method: Method[S, P, T]) -> Method[S, P, T | Refusal]:
    """Let a method return a refusal unless what it wrote is in the record that the user has, and survives a crash."""

    @functools.wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T | Refusal:
        storage, trouble = self.transactions.storage, Exception()
        for _ in range(_ATTEMPTS):
            try:
                storage.check()
                if storage.obstacle:
                    return storage.obstacle
                return method(self, *args, **kwargs)
            except ReplacedError as replaced:  # the new record has to have it, too
                trouble = replaced
            except _UNREADABLE as other:
                trouble = other
                break
        return self.transactions.refuse(trouble)

    return call


@dataclass(frozen=True, slots=True)
class Write:
    """A transaction that writes: where it is, and when."""

    home: Home
    rows: sqlite3.Connection
    now: RecordTime


class Transactions:
    def __init__(self, storage: Storage, now: Clock) -> None:
        self.storage, self.wall = storage, now
        self._writes = self._written = 0
        self._complained: Home | None = None  # of which it was said that it fails
        self._read_time: tuple[Home | None, RecordTime] = None, RecordTime(0.0, 0.0)

    @property
    def home(self) -> Home:
        return self.storage.home

    def rows(self, query: str, *values: object) -> list[Row]:
        return self.home.database.rows(query, *values)

    def row(self, query: str, *values: object) -> Row | None:
        return self.home.database.row(query, *values)

    def read_now(self) -> float:
        """Return the record time, by which things grow old. It is read from the record once a second at the most."""
        wall, home = self.wall(), self.home
        if self._read_time[0] is not home or not 0 <= wall - self._read_time[1].wall < _TIME_SECONDS:
            self._read_time = home, read_time(home.database, wall)
        return self._read_time[1].advance(wall).time

    def is_recent(self, used: Row | None) -> bool:
        """Return whether a row, of which `used` was read, is there and so young that it need not be written again."""
        return used is not None and self.read_now() - used[0] < COARSE

    def touch(self, table: str, row: Row) -> None:
        """Note that a row was read. `row` begins with its rowid and when it was last used."""
        self.home.touches.add(table, row, self.read_now())

    def write(self, write: Callable[[Write], int], *, lightly: bool = False) -> None:
        """Write rows, of which `write` returns the weight; `lightly`: a loss of power may take them."""
        with self.begin(lightly=lightly) as to:
            weight = write(to)
        self.count_write(weight)

    @contextmanager
    def begin(self, *, lightly: bool = False) -> Iterator[Write]:
        """Begin a transaction in the record that the folder holds now, and raise if it has lost its file by the end."""
        self.storage.check()
        home = self.home
        with home.database.noting() if lightly else home.database.writing() as rows:
            yield Write(home, rows, note_time(rows, self.wall()))
        self.confirm(home)

    @contextmanager
    def erase(self) -> Iterator[tuple[Home, sqlite3.Connection]]:
        """Begin a transaction after which nothing is left of what was deleted, in no file of the record."""
        home = self.home
        with home.database.erasing() as rows:
            yield home, rows
        self.confirm(home)
        if self.storage.folder:  # what a repair has kept may contain it, too
            drop_asides(self.storage.folder)

    def confirm(self, home: Home) -> None:
        if self.storage.obstacle is None and not home.database.is_current():
            raise ReplacedError("it was replaced meanwhile")

    def keep_bytes(self, image: Image, used: Row | None, write: Callable[[Write], None]) -> bool:
        """Store bytes, and then the row that names them, unless both were used lately; return whether they are durable.

        `used` is what was read of that row. So a row is never without its bytes.
        """
        is_durable = self.storage.obstacle is None
        if is_durable and self.is_recent(used) and self.home.blobs.holds(image.sha256):
            return True
        blobs = self.home.blobs
        if not blobs.holds(image.sha256):
            blobs.keep(image.sha256, image.data)
        with self.begin() as to:
            if not to.home.blobs.holds(image.sha256):  # another process swept in between
                to.home.blobs.keep(image.sha256, image.data)
            write(to)
        self.count_write(len(image.data))
        return is_durable

    def count_write(self, weight: int) -> None:
        """Count what was written, and sweep if it is time."""
        self._writes += 1
        self._written += weight
        if self._written > self._allowance or self._writes >= _WRITES_BETWEEN_SWEEPS:
            self.sweep()
        else:
            self.write_touches()  # so that the next sweep, in whichever process, knows of them

    @property
    def _allowance(self) -> int:
        """Return what may be written before the next sweep; a sweep leaves that much free, so the limit holds."""
        return self.home.bounds.bytes // 16

    def write_touches(self) -> None:
        with self._complaining():
            self.home.touches.write(self.home.database)

    def sweep(self, *, everything: bool = False) -> None:
        """Remove what is too old or too much; with `everything` also bytes that no row names."""
        with self._complaining():
            self._writes = self._written = 0
            self.write_touches()
            with self.begin() as to:
                limit, oldest = to.home.bounds.bytes - self._allowance, to.now.time - to.home.bounds.days * DAY
                sweep(to.rows, to.home.blobs, limit, oldest, to.now.time)
                if everything and self.storage.folder:
                    self._clear_unnamed(to, self.storage.folder)
                    drop_asides(self.storage.folder, oldest)

    def _clear_unnamed(self, to: Write, folder: Path) -> None:
        """Remove the bytes that no row names, which a crash has left.

        A crash leaves one for each image that was being written. If there are more, the database is an older one or
        another one, such as a backup that was restored without the bytes: then they are moved aside.
        """
        unnamed, blobs = find_unnamed(to.rows, to.home.blobs.names()), to.home.blobs
        if len(unnamed) <= _MOST_OF_A_CRASH or not isinstance(blobs, Files):
            drop_unnamed(to.rows, blobs, unnamed)
            return
        aside = choose_aside(folder, int(to.now.time))
        aside = aside.with_name(f"{aside.name}{ASIDE_BYTES}")
        for name in unnamed:
            blobs.move(name, aside)
        _log.warning(
            "The record does not know %d of the images beside it, as if its database were an older or another one;"
            " they were moved to %s",
            *(len(unnamed), aside),
        )

    @contextmanager
    def _complaining(self) -> Iterator[None]:
        try:
            yield
        except _UNREADABLE as trouble:
            self.complain(trouble)

    def complain(self, trouble: Exception) -> None:
        """Log that the record fails, once: a disk that stays full would fail with every request."""
        if is_damage(trouble):
            self.storage.note_damage(trouble)
        elif self._complained is not self.home and not isinstance(trouble, ReplacedError):
            self._complained = self.home
            if not self.storage.obstacle:  # which was logged when it was found
                why, remedy = describe_trouble(self.storage.folder, trouble)
                _log.warning("The record cannot be used: %s; nothing new is remembered (%s)", why, remedy)

    def refuse(self, trouble: Exception) -> Refusal:
        if is_damage(trouble):
            self.storage.note_damage(trouble)
            return Refusal("corrupt", f"the record is damaged: {trouble}", REPAIR)
        why, remedy = describe_trouble(self.storage.folder, trouble)
        return Refusal("unavailable", f"the record could not be written: {why}", remedy)


Deferred = Callable[[Write], int]
"""Write a row, and return its weight."""


class WriteBehind:
    """Rows that no caller waits for: they are written together, a moment after the first. A crash loses that moment.

    Where the disk does not take them, the oldest are dropped.
    """

    def __init__(self, write: Callable[[Sequence[Deferred]], None]) -> None:
        self._write = write
        self._waiting: deque[Deferred] = deque(maxlen=MOST_DEFERRED)
        self._lock = threading.Lock()
        self._writing = threading.Lock()  # its holder writes what it has taken
        self._timer: threading.Timer | None = None

    def add(self, row: Deferred) -> None:
        with self._lock:
            self._waiting.append(row)
            if self._timer is None:
                self._start_timer()

    def flush(self) -> None:
        """Write what is there, and wait for another thread that has begun to."""
        with self._writing:
            if found := self.take():
                self._write(found)

    def take(self) -> Sequence[Deferred]:
        """Remove and return all rows."""
        with self._lock:
            found = tuple(self._waiting)
            self._waiting.clear()
        return found

    def close(self) -> None:
        """Write the last rows; nothing is written afterwards."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
        self.flush()

    def _start_timer(self) -> None:
        self._timer = threading.Timer(_DEFERRED_SECONDS, self._flush_in_time)
        self._timer.daemon = True
        self._timer.start()

    def _flush_in_time(self) -> None:
        self.flush()
        with self._lock:
            self._timer = None
            if self._waiting:  # added meanwhile: one thread at a time is enough
                self._start_timer()
