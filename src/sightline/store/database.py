"""One SQLite database for threads and processes: a connection that reads and one that writes.

A write returns when it is on the disk (synchronous=FULL): a description was paid for, and a conversation goes
on naming an image for days. That is one fsync for each new image, beside a look that takes seconds.
A read never waits for a write (WAL), so it may be done where waiting is not allowed.

Before anything is built on what a database says, it is examined for damage, in bounded time.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias

from sightline.store.migrations import STEPS, OtherVersionError, check, check_origin, count_steps, migrate
from sightline.store.sqlite_files import check_log, log_of

_BUSY_SECONDS = 10.0
_EMPTY_LOG_SECONDS = 0.25
_SHOWN = 5  # faults that are named
_STEPS = 10_000  # of SQLite's virtual machine between two looks at the clock

Row: TypeAlias = tuple[Any, ...]
Identity: TypeAlias = tuple[tuple[int, ...] | None, ...]
"""What tells the files at a path from others that were put in their place."""


class DamagedError(sqlite3.DatabaseError):
    """The files of the record do not hold what was written to them."""


@dataclass(frozen=True, slots=True)
class Examination:
    damage: tuple[str, ...]  # what is wrong, a line each
    complete: bool = True  # false: the time was up, and what was not looked at may be damaged


def is_damage(trouble: Exception) -> bool:
    """Return whether an error means damage, not a disk that is full, closed or busy."""
    code = getattr(trouble, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF
    return isinstance(trouble, DamagedError) or code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def check_files(database: Path, *, used_before: bool) -> None:
    """Raise if the files are damaged in a way that SQLite would take for an empty database or an empty log."""
    if database.is_dir():
        raise DamagedError(f"{database.name} is a folder")
    try:
        size = database.stat().st_size
    except FileNotFoundError:
        return
    if used_before and not size:
        raise DamagedError(f"{database.name} is empty, and was not")
    if check_log(database) == "damaged":
        raise DamagedError(f"{database.name}-wal is damaged: the last changes are lost")


def examine(connection: sqlite3.Connection, seconds: float, is_over: Callable[[], bool] = lambda: False) -> Examination:
    """Check the whole database by SQLite's quick check, then the tables and their indexes one by one.

    It ends after so many seconds, or when `is_over` says so. Trouble that is no damage, such as a busy database, is not
    reported: nothing is known then.
    """
    until = time.monotonic() + seconds
    connection.set_progress_handler(lambda: int(time.monotonic() > until or is_over()), _STEPS)
    try:
        return Examination(tuple(_faults(connection)))
    except sqlite3.Error as trouble:
        return Examination((str(trouble),)) if is_damage(trouble) else Examination((), complete=False)
    finally:
        connection.set_progress_handler(None, 0)


def check_consents(connection: sqlite3.Connection) -> None:
    """Raise unless the consents can be relied on, in a database that may be damaged elsewhere."""
    if faults := _rows(connection, "PRAGMA integrity_check(consents)"):
        raise DamagedError(faults[0])


def _faults(connection: sqlite3.Connection) -> Iterator[str]:
    if faults := _rows(connection, f"PRAGMA quick_check({_SHOWN})"):
        yield from faults
        return
    if count_steps(connection) != len(STEPS):  # of another version, whose tables are others
        return
    missing = _expected_columns() - _columns(connection)
    yield from (f"the column {column} of {table} is missing" for table, column in sorted(missing)[:_SHOWN])
    for table in () if missing else sorted({table for table, _ in _expected_columns()}):
        yield from _rows(connection, f"PRAGMA integrity_check({table})")[:_SHOWN]


def _rows(connection: sqlite3.Connection, pragma: str) -> list[str]:
    return [row[0] for row in connection.execute(pragma) if row[0] != "ok"]


def _columns(connection: sqlite3.Connection) -> frozenset[tuple[str, str]]:
    return frozenset(
        connection.execute(
            "SELECT tables.name, columns.name FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns"
            " WHERE tables.type = 'table'"
        )
    )


@cache
def _expected_columns() -> frozenset[tuple[str, str]]:
    fresh = sqlite3.connect(":memory:", isolation_level=None)
    try:
        migrate(fresh)
        return _columns(fresh)
    finally:
        fresh.close()


class Database:
    def __init__(
        self,
        writer: sqlite3.Connection,
        reader: sqlite3.Connection,
        identify: Callable[[], Identity] = lambda: (),
    ) -> None:
        self._writer, self._reader = writer, reader
        self._identify, self._identity = identify, identify()
        self._is_log_kept = False  # by a reader, though it was to be emptied
        self._write_lock = threading.RLock()
        self._read_lock = self._write_lock if writer is reader else threading.RLock()

    @classmethod
    def on_disk(cls, path: Path, patience: float | None = None) -> Database:
        """Open the database, and create it if it is not there; others who use it are waited for so many seconds."""
        _create_private(path)
        before = file_identity(path)
        writer = _connect(str(path), patience)
        try:
            with suppress(sqlite3.OperationalError):  # busy: `migrate` looks again
                check_origin(writer)  # before anything is written
            _use_wal(writer, patience)
            writer.execute("PRAGMA synchronous = FULL")
            writer.execute("PRAGMA secure_delete = ON")  # what goes is written over, whatever it goes for
            migrate(writer)
            return _opened(cls, writer, path, before, patience)
        except BaseException:
            writer.close()
            raise

    @classmethod
    def read_only(cls, path: Path) -> Database:
        """Open it as it is now, for where nothing can be written: a disk that is full, or closed to us."""
        connection, at_rest = _connect_to_read(path)
        try:
            check(connection)
            # SQLite does not look whether others write to a file that it was told is immutable: we have to.
            return cls(connection, connection, partial(_states if at_rest else _identities, path))
        except BaseException:
            connection.close()
            raise

    @classmethod
    def in_memory(cls) -> Database:
        connection = _connect(":memory:")
        migrate(connection)
        return cls(connection, connection)

    def rows(self, query: str, *values: object) -> list[Row]:
        with self._read_lock:
            return self._reader.execute(query, values).fetchall()

    def row(self, query: str, *values: object) -> Row | None:
        return next(iter(self.rows(query, *values)), None)

    @contextmanager
    def noting(self) -> Iterator[sqlite3.Connection]:
        """A transaction of which a loss of power may take the last: nobody was promised anything of it."""
        with self._write_lock:
            self._writer.execute("PRAGMA synchronous = NORMAL")
            try:
                with self.writing() as connection:
                    yield connection
            finally:
                self._writer.execute("PRAGMA synchronous = FULL")

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that nobody else writes beside, in this process or another."""
        with self._write_lock:
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
            except BaseException:
                self._writer.execute("ROLLBACK")
                raise
            self._writer.execute("COMMIT")
            if self._is_log_kept:
                self.empty_log(0.0)

    @contextmanager
    def erasing(self) -> Iterator[sqlite3.Connection]:
        """A transaction whose deleted rows are written over in the file, and gone from its log when it returns."""
        with self._write_lock:
            with self.writing() as connection:
                yield connection
            busy, *_ = self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if busy:
                raise sqlite3.OperationalError("another program reads it, and keeps what was removed in its log")

    def empty_log(self, seconds: float = _EMPTY_LOG_SECONDS) -> None:
        """Move what was committed from the log into the database, so that damage to the log cannot take it back.

        A program that reads keeps the log from being emptied. It is waited for so many seconds; after that, the next
        write tries again. What was committed is durable all the same.
        """
        with self._write_lock:
            (timeout,) = self._writer.execute("PRAGMA busy_timeout").fetchone()
            self._writer.execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")
            try:
                busy, *_ = self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            except sqlite3.OperationalError:  # locked, or a disk that is full; damage is another error
                busy = 1
            finally:
                self._writer.execute(f"PRAGMA busy_timeout = {timeout}")
            self._is_log_kept = bool(busy)

    def is_current(self) -> bool:
        """Return whether the files at its path are still those that are open here: they may have been replaced."""
        return self._identify() == self._identity

    def examine(self, seconds: float) -> Examination:
        with self._read_lock:
            return examine(self._reader, seconds)

    def check_consents(self) -> None:
        """Raise unless the consents can be relied on."""
        with self._read_lock:
            check_consents(self._reader)

    def close(self) -> None:
        with self._write_lock, self._read_lock:
            self._reader.close()
            self._writer.close()


def examine_file(path: Path, seconds: float, is_over: Callable[[], bool] = lambda: False) -> Examination:
    """Look for damage through a connection of its own, which changes nothing; raise if it cannot be opened."""
    connection, _ = _connect_to_read(path)
    try:
        check_origin(connection)
        if count_steps(connection) > len(STEPS):
            raise OtherVersionError("a newer version of Sightline wrote it")
        return examine(connection, seconds, is_over)
    finally:
        connection.close()


def _connect_to_read(path: Path) -> tuple[sqlite3.Connection, bool]:
    """Return a connection that changes nothing, and whether SQLite was told that nobody else does, either."""
    log = log_of(path)
    at_rest = not (log.exists() and log.stat().st_size)  # then SQLite needs no files of its own to read it
    return _connect(f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if at_rest else ''}"), at_rest


def _opened(
    kind: type[Database], writer: sqlite3.Connection, path: Path, before: tuple[int, ...] | None, patience: float | None
) -> Database:
    """Return the database with a second connection that reads, if the file is still the one that was opened first."""
    reader = _connect(str(path), patience)
    try:
        check(reader)  # which opens it
        made = kind(writer, reader, partial(_identities, path))
        if before != file_identity(path):
            raise sqlite3.OperationalError("it was replaced while it was opened")
    except BaseException:
        reader.close()
        raise
    return made


def _create_private(path: Path) -> None:
    """Create the file if it is not there, closed to others. SQLite gives its other files the same mode.

    A file that is there is not opened: closing it again would drop the locks that SQLite holds on it in this process.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        if os.name == "posix" and path.stat().st_mode & 0o077:
            path.chmod(0o600)


def _identities(path: Path) -> Identity:
    return file_identity(path), file_identity(log_of(path))


def file_identity(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _states(path: Path) -> Identity:
    """Return what changes as soon as anybody writes to the database, too."""
    return file_state(path), file_state(log_of(path))


def file_state(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _connect(name: str, patience: float | None = None) -> sqlite3.Connection:
    # Transactions are begun by hand; the locks above see to it that one thread at a time is in there.
    uri, timeout = name.startswith("file:"), _BUSY_SECONDS if patience is None else patience
    return sqlite3.connect(name, uri=uri, timeout=timeout, isolation_level=None, check_same_thread=False)


def _use_wal(connection: sqlite3.Connection, patience: float | None) -> None:
    """Another process that opens the same new file makes SQLite answer "locked" here without waiting."""
    end = time.monotonic() + (_BUSY_SECONDS if patience is None else patience)
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as trouble:
            if not is_busy(trouble) or time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            return


def is_busy(trouble: Exception) -> bool:
    """Somebody else is at it: what fails now may go well a moment later."""
    code = getattr(trouble, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF
    return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def is_full(trouble: Exception) -> bool:
    """Return whether an error means that the disk has no room."""
    return getattr(trouble, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF == sqlite3.SQLITE_FULL
