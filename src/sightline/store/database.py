"""One SQLite database for threads and processes: a connection that reads and one that writes.

A write returns when it is on the disk (synchronous=FULL): a description was paid for, and a conversation goes
on naming an image for days. That is one fsync for each new image, beside a look that takes seconds.
A read never waits for a write (WAL), so it may be done where waiting is not allowed.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from sightline.store.migrations import check, migrate

Row: TypeAlias = tuple[Any, ...]

_BUSY_SECONDS = 10.0


class Database:
    def __init__(self, writer: sqlite3.Connection, reader: sqlite3.Connection) -> None:
        self._writer, self._reader = writer, reader
        self._write_lock = threading.RLock()
        self._read_lock = self._write_lock if writer is reader else threading.RLock()

    @classmethod
    def on_disk(cls, path: Path) -> Database:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # SQLite gives its other files the same mode
        if os.name == "posix" and path.stat().st_mode & 0o077:
            path.chmod(0o600)
        writer = _connect(str(path))
        try:
            _use_wal(writer)
            writer.execute("PRAGMA synchronous = FULL")
            writer.execute("PRAGMA secure_delete = ON")  # what goes is written over, whatever it goes for
            migrate(writer)
            return cls(writer, _connect(str(path)))
        except BaseException:
            writer.close()
            raise

    @classmethod
    def read_only(cls, path: Path) -> Database:
        """As it is now, for where nothing can be written: a disk that is full, or closed to us."""
        log = path.with_name(f"{path.name}-wal")
        at_rest = not (log.exists() and log.stat().st_size)  # then SQLite needs no files of its own to read it
        connection = _connect(f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if at_rest else ''}")
        try:
            check(connection)
            return cls(connection, connection)
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

    @contextmanager
    def erasing(self) -> Iterator[sqlite3.Connection]:
        """A transaction whose deleted rows are written over in the file, and gone from its log when it returns."""
        with self._write_lock:
            with self.writing() as connection:
                yield connection
            busy, *_ = self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if busy:
                raise sqlite3.OperationalError("another program reads it, and keeps what was removed in its log")

    def close(self) -> None:
        with self._write_lock, self._read_lock:
            self._reader.close()
            self._writer.close()


def _connect(name: str) -> sqlite3.Connection:
    # Transactions are begun by hand; the locks above see to it that one thread at a time is in there.
    uri = name.startswith("file:")
    return sqlite3.connect(name, uri=uri, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)


def _use_wal(connection: sqlite3.Connection) -> None:
    """Another process that opens the same new file makes SQLite answer "locked" here without waiting."""
    patience = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as trouble:
            if not is_busy(trouble) or time.monotonic() > patience:
                raise
            time.sleep(0.01)
        else:
            return


def is_busy(trouble: Exception) -> bool:
    """Somebody else is at it: what fails now may go well a moment later."""
    code = getattr(trouble, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF
    return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
