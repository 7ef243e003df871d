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

from sightline.store.migrations import migrate

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
            migrate(writer)
            return cls(writer, _connect(str(path)))
        except BaseException:
            writer.close()
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
        """A transaction whose deleted rows are written over, in the file and in its log."""
        with self._write_lock:
            self._writer.execute("PRAGMA secure_delete = ON")
            try:
                with self.writing() as connection:
                    yield connection
                self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            finally:
                self._writer.execute("PRAGMA secure_delete = OFF")

    def close(self) -> None:
        with self._write_lock, self._read_lock:
            self._reader.close()
            self._writer.close()


def _connect(name: str) -> sqlite3.Connection:
    # Transactions are begun by hand; the locks above see to it that one thread at a time is in there.
    return sqlite3.connect(name, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)


def _use_wal(connection: sqlite3.Connection) -> None:
    """Another process that opens the same new file makes SQLite answer "locked" here without waiting."""
    patience = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if time.monotonic() > patience:
                raise
            time.sleep(0.01)
        else:
            return
