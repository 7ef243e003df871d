"""A SQLite database that threads and processes share: one connection for reading and one for writing.

A write returns when it is on the disk (synchronous=FULL), because a description has been paid for and a conversation
refers to an image for days. That is one fsync for each new image, next to a description that takes seconds. A read
never waits for a write (WAL), so it is allowed in the event loop.

A database is checked for damage before it is trusted, in bounded time.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TypeAlias

from sightline.store.change_file import CHANGES_NAME, ChangeFile
from sightline.store.migrations import (
    COLUMNS,
    MIGRATIONS,
    OtherVersionError,
    check_origin,
    check_version,
    migrate,
    read_version,
)
from sightline.store.sql import DamageReport, Row, SqlConnection
from sightline.store.sqlite_files import check_log, get_log_path

_BUSY_SECONDS = 10.0
_EMPTY_LOG_SECONDS = 0.25
_MAX_FAULTS = 5  # that are reported
_STEPS_PER_CHECK = 10_000  # of SQLite's virtual machine, between two checks of the time

FileIdentity: TypeAlias = tuple[tuple[int, ...] | None, ...]
"""A value that differs between the files at a path and others that replace them."""


class DamagedError(sqlite3.DatabaseError):
    """The files of the record do not contain what was written to them."""


def is_damage_error(error: Exception) -> bool:
    """Return whether an error means damage, and not a disk that is full, read-only or busy."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF
    return isinstance(error, DamagedError) or code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def check_database_file(database: Path, *, used_before: bool) -> None:
    """Raise if the files are damaged in a way that SQLite would take for an empty database or an empty log."""
    if database.is_dir():
        raise DamagedError(f"{database.name} is a folder")
    try:
        size = database.stat().st_size
    except FileNotFoundError:
        return
    if used_before and not size:
        raise DamagedError(f"{database.name} has become empty")
    if check_log(database) == "damaged":
        raise DamagedError(f"{database.name}-wal is damaged: the last changes are lost")


def find_damage(
    connection: sqlite3.Connection, seconds: float, is_cancelled: Callable[[], bool] = lambda: False
) -> DamageReport:
    """Run SQLite's quick check of the whole database, then check the tables with their indexes one by one.

    This stops after `seconds`, or when `is_cancelled` returns true. Other errors, such as a busy database, are not
    reported as damage; the report is incomplete then.
    """
    deadline = time.monotonic() + seconds
    connection.set_progress_handler(lambda: int(time.monotonic() > deadline or is_cancelled()), _STEPS_PER_CHECK)
    try:
        return DamageReport(tuple(_list_faults(connection)))
    except sqlite3.Error as error:
        return DamageReport((str(error),)) if is_damage_error(error) else DamageReport((), is_complete=False)
    finally:
        connection.set_progress_handler(None, 0)


def check_consents(connection: sqlite3.Connection) -> None:
    """Raise if the table of consents is damaged."""
    if faults := _run_check(connection, "PRAGMA integrity_check(consents)"):
        raise DamagedError(faults[0])


def _list_faults(connection: sqlite3.Connection) -> Iterator[str]:
    if faults := _run_check(connection, f"PRAGMA quick_check({_MAX_FAULTS})"):
        yield from faults
        return
    if read_version(connection) != len(MIGRATIONS):  # another version, with other tables
        return
    expected = {(table, column) for table, columns in COLUMNS.items() for column in columns.split()}
    missing = expected - list_columns(connection)
    yield from (f"the column {column} of {table} is missing" for table, column in sorted(missing)[:_MAX_FAULTS])
    for table in () if missing else COLUMNS:
        yield from _run_check(connection, f"PRAGMA integrity_check({table})")[:_MAX_FAULTS]


def _run_check(connection: sqlite3.Connection, pragma: str) -> list[str]:
    return [row[0] for row in connection.execute(pragma) if row[0] != "ok"]


def list_columns(connection: sqlite3.Connection) -> frozenset[tuple[str, str]]:
    """Return all columns, each with its table."""
    return frozenset(
        connection.execute(
            "SELECT tables.name, columns.name FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns"
            " WHERE tables.type = 'table'"
        )
    )


class Database:
    """An open database. Its methods may be called from any thread."""

    may_wait = False

    def __init__(
        self,
        writer: sqlite3.Connection,
        reader: sqlite3.Connection,
        identify: Callable[[], FileIdentity] = lambda: (),
        changes: ChangeFile | None = None,
    ) -> None:
        self._writer, self._reader, self.changes = writer, reader, changes
        self._identify, self._identity = identify, identify()
        self._is_change = False  # whether the transaction that is under way announces a change
        self._is_log_pending = False  # it should have been emptied, but is being read
        self._write_lock = threading.RLock()
        self._read_lock = self._write_lock if writer is reader else threading.RLock()

    @classmethod
    def open_file(cls, path: Path, timeout: float | None = None) -> Database:
        """Open the database, or create it. `timeout`: how many seconds to wait for other programs that use it."""
        _create_private_file(path)
        before = identify_file(path)
        writer = _connect(str(path), timeout)
        try:
            with suppress(sqlite3.OperationalError):  # busy: `migrate` checks again
                check_origin(writer)  # before anything is written
            _enable_wal(writer, timeout)
            writer.execute("PRAGMA synchronous = FULL")
            writer.execute("PRAGMA secure_delete = ON")  # overwrite deleted data
            migrate(writer)
            _get_change_file(path).create()
            return _add_reader(cls, writer, path, before, timeout)
        except BaseException:
            writer.close()
            raise

    @classmethod
    def open_read_only(cls, path: Path) -> Database:
        """Open the database without writing anything, for a disk that is full or read-only."""
        connection, at_rest = _connect_read_only(path)
        try:
            check_version(connection)
            # SQLite doesn't notice that other programs write to a file that was opened as immutable, so we must.
            return cls(
                connection,
                connection,
                partial(_read_file_states, path, get_log_path(path)) if at_rest else _build_identifier(path),
                _get_change_file(path),
            )
        except BaseException:
            connection.close()
            raise

    @classmethod
    def open_in_memory(cls) -> Database:
        connection = _connect(":memory:")
        migrate(connection)
        return cls(connection, connection)

    def fetch_all(self, query: str, *values: object) -> list[Row]:
        with self._read_lock:
            return self._reader.execute(query, values).fetchall()

    def fetch_one(self, query: str, *values: object) -> Row | None:
        return next(iter(self.fetch_all(query, *values)), None)

    @contextmanager
    def begin_without_sync(self) -> Iterator[sqlite3.Connection]:
        """Begin a transaction that a power failure may lose after it was committed."""
        with self._write_lock:
            self._writer.execute("PRAGMA synchronous = NORMAL")
            try:
                with self.begin() as connection:
                    yield connection
            finally:
                self._writer.execute("PRAGMA synchronous = FULL")

    @contextmanager
    def begin(self) -> Iterator[sqlite3.Connection]:
        """Begin a transaction; no other thread or process writes until it ends."""
        with self._write_lock:
            self._writer.execute("BEGIN IMMEDIATE")
            self._is_change = False
            try:
                yield self._writer
            except BaseException:
                self._writer.execute("ROLLBACK")
                raise
            self._writer.execute("COMMIT")
            if self._is_change and self.changes is not None:
                self.changes.announce()
            if self._is_log_pending:
                self.empty_log(0.0)

    begin_exclusive = begin

    def allow_long_statements(self) -> AbstractContextManager[None]:
        """Do nothing: statements have no limit."""
        return nullcontext()

    def announce_change(self, connection: SqlConnection) -> None:
        """Tell other processes now, in case this one is killed, and again when they can read what has changed."""
        if self.changes is not None:
            self.changes.announce()
            self._is_change = True

    @contextmanager
    def begin_erasing(self) -> Iterator[sqlite3.Connection]:
        """Begin a transaction whose deleted rows are overwritten in the file, and gone from its log at the end."""
        with self._write_lock:
            with self.begin() as connection:
                yield connection
            busy, *_ = self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if busy:
                raise sqlite3.OperationalError("another program is reading it, so its log keeps what was deleted")

    def empty_log(self, seconds: float = _EMPTY_LOG_SECONDS) -> None:
        """Move commits from the log into the database, so that damage to the log cannot undo them.

        The log cannot be emptied while a program reads. Wait for it for this many seconds; then the next write tries
        again. The commits are durable in any case.
        """
        with self._write_lock:
            (timeout,) = self._writer.execute("PRAGMA busy_timeout").fetchone()
            self._writer.execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")
            try:
                busy, *_ = self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            except sqlite3.OperationalError:  # locked, or the disk is full; damage raises another error
                busy = 1
            finally:
                self._writer.execute(f"PRAGMA busy_timeout = {timeout}")
            self._is_log_pending = bool(busy)

    def is_current(self) -> bool:
        """Return whether the files at its path are still the open ones, and were not replaced."""
        return self._identify() == self._identity

    def find_damage(self, seconds: float) -> DamageReport:
        with self._read_lock:
            return find_damage(self._reader, seconds)

    def check_consents(self) -> None:
        """Raise if the table of consents is damaged."""
        with self._read_lock:
            check_consents(self._reader)

    def close(self) -> None:
        with self._write_lock, self._read_lock:
            self._reader.close()
            self._writer.close()


def find_file_damage(path: Path, seconds: float, is_cancelled: Callable[[], bool] = lambda: False) -> DamageReport:
    """Look for damage through a separate read-only connection; raise if the file cannot be opened."""
    connection, _ = _connect_read_only(path)
    try:
        check_origin(connection)
        if read_version(connection) > len(MIGRATIONS):
            raise OtherVersionError("a newer version of Sightline wrote it")
        return find_damage(connection, seconds, is_cancelled)
    finally:
        connection.close()


def _connect_read_only(path: Path) -> tuple[sqlite3.Connection, bool]:
    """Return a read-only connection, and whether it was opened as immutable."""
    log = get_log_path(path)
    at_rest = not (log.exists() and log.stat().st_size)  # then SQLite can read it without creating files
    return _connect(f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if at_rest else ''}"), at_rest


def _add_reader(
    kind: type[Database],
    writer: sqlite3.Connection,
    path: Path,
    identity: tuple[int, ...] | None,
    timeout: float | None,
) -> Database:
    """Open the second connection, for reading, if the file is still the one that was opened first."""
    reader = _connect(str(path), timeout)
    try:
        check_version(reader)  # this opens the file
        database = kind(writer, reader, _build_identifier(path), _get_change_file(path))
        if identity != identify_file(path):
            raise sqlite3.OperationalError("its files were replaced while it was opened")
    except BaseException:
        reader.close()
        raise
    return database


def _create_private_file(path: Path) -> None:
    """Create the file with access only for its owner. SQLite gives its other files the same mode.

    An existing file is not opened: closing it would release the locks that SQLite has on it in this process.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        if os.name == "posix" and path.stat().st_mode & 0o077:
            path.chmod(0o600)


def _get_change_file(path: Path) -> ChangeFile:
    return ChangeFile(path.with_name(CHANGES_NAME))


def _build_identifier(path: Path) -> Callable[[], FileIdentity]:
    """Return a function that identifies the files of a database; with texts, since it runs for every known image."""
    database, log = str(path), str(get_log_path(path))
    return lambda: (identify_file(database), identify_file(log))


def identify_file(path: Path | str) -> tuple[int, ...] | None:
    try:
        status = os.stat(path)  # noqa: PTH116  for every request with known images
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _read_file_states(database: Path, log: Path) -> FileIdentity:
    """Return a value that also changes when another program writes to the database."""
    return read_file_state(database), read_file_state(log)


def read_file_state(path: Path) -> tuple[int, ...] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _connect(name: str, timeout: float | None = None) -> sqlite3.Connection:
    # Transactions are explicit (isolation_level=None); the locks of `Database` admit one thread at a time.
    uri, timeout = name.startswith("file:"), _BUSY_SECONDS if timeout is None else timeout
    return sqlite3.connect(name, uri=uri, timeout=timeout, isolation_level=None, check_same_thread=False)


def _enable_wal(connection: sqlite3.Connection, timeout: float | None) -> None:
    """Turn on the write-ahead log. SQLite does not wait here for a process that opens the same new file: retry."""
    end = time.monotonic() + (_BUSY_SECONDS if timeout is None else timeout)
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if not is_busy_error(error) or time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            return


def is_busy_error(error: Exception) -> bool:
    """Return whether another connection has a lock, so that a retry may succeed."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF
    return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def is_full_error(error: Exception) -> bool:
    """Return whether an error means that the disk is full."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF == sqlite3.SQLITE_FULL
