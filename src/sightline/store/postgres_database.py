"""A PostgreSQL database that replicas share, through a pool of connections.

It works behind a pooler in transaction mode: no prepared statements, no session settings, no session locks. Each wait
for the server ends after a few seconds, because some reads are made in the event loop; the connection is then given up.

A transaction that writes takes a lock that it shares with others; an exclusive one, such as a sweep, takes it alone.
The server ends a transaction whose replica is frozen, so that it doesn't block the others.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.types.numeric import FloatLoader
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from sightline.memory_reads import check_may_wait
from sightline.store.migrations import MIGRATIONS
from sightline.store.postgres_dialect import convert_values, translate_statement
from sightline.store.postgres_schema import check_schema, migrate_schema, read_scope_key, read_version
from sightline.store.server_errors import ServerError, clean_text
from sightline.store.sql import DamageReport, Row, SqlConnection, SqlCursor

logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)  # what is wrong is logged once, by the storage

_MAX_CONNECTIONS = 8
_CHANNEL = "sightline_changes"
_CONNECT_SECONDS = 3
_REPLY_SECONDS = 5.0
_LOCK = 7_310_575_174_166_148_974  # the number of the lock that transactions share
_LIMIT = "SET LOCAL idle_in_transaction_session_timeout TO '15s'"
_BEGIN = f"BEGIN; {_LIMIT}; SELECT pg_advisory_xact_lock_shared({_LOCK})"
_BEGIN_UNSYNCED = f"BEGIN; {_LIMIT}; SET LOCAL synchronous_commit TO off; SELECT pg_advisory_xact_lock_shared({_LOCK})"
_BEGIN_EXCLUSIVE = f"BEGIN; {_LIMIT}; SELECT pg_advisory_xact_lock({_LOCK})"
_MAY_CREATE = "SELECT coalesce(has_schema_privilege(current_schema(), 'CREATE'), FALSE)"
_CHECK_SERVER = "check that the server runs and can be reached from here"

RV = TypeVar("RV")


class _BoundedConnection(psycopg.Connection[Row]):
    """A connection that is closed if the server doesn't reply in time."""

    reply_seconds = _REPLY_SECONDS

    def wait(self, gen: Generator[Any, Any, RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        return super().wait(self._bound(gen, time.monotonic() + self.reply_seconds), interval, timeout)

    def _bound(self, gen: Generator[Any, Any, RV], deadline: float) -> Generator[Any, Any, RV]:
        """Pass a generator of psycopg on until it ends or the time is over."""
        try:
            state = next(gen)
            while True:
                ready = yield state
                if not ready and time.monotonic() > deadline:
                    self.pgconn.finish()
                    raise psycopg.OperationalError("the server does not reply")
                state = gen.send(ready)
        except StopIteration as end:
            value: RV = end.value
            return value


class _PostgresConnection:
    """A connection within a transaction, for statements in the ports' dialect."""

    def __init__(self, raw: psycopg.Connection[Row]) -> None:
        self._raw = raw
        self.announced = 0  # the number of the change that this transaction announces; 0: none

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> SqlCursor:
        return self._raw.execute(translate_statement(statement), convert_values(values))

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> SqlCursor:
        cursor = self._raw.cursor()
        cursor.executemany(translate_statement(statement), [*map(convert_values, rows)])
        return cursor


class PostgresDatabase:
    """Implements `SqlDatabase`."""

    def __init__(self, address: str, *, reply_seconds: float = _REPLY_SECONDS) -> None:
        """Connect, or raise `ServerError`. Nothing is created."""

        def configure(connection: psycopg.Connection[Row]) -> None:
            connection.adapters.register_loader("numeric", FloatLoader)
            assert isinstance(connection, _BoundedConnection)
            connection.reply_seconds = reply_seconds
            connection.add_notify_handler(lambda notify: None)  # a pooler may pass on another client's: don't keep them

        self._own_changes: set[int] = set()
        self._announcing = threading.Lock()  # from the commit of a change until its number is in the set
        options = {"autocommit": True, "prepare_threshold": None}
        with _convert_errors():  # once without the pool, which doesn't say why it can't connect
            conninfo = make_conninfo(address, connect_timeout=_CONNECT_SECONDS)
            psycopg.connect(conninfo).close()
        self._pool: ConnectionPool[_BoundedConnection] = ConnectionPool(
            conninfo,
            connection_class=_BoundedConnection, kwargs=options, configure=configure,
            min_size=1, max_size=_MAX_CONNECTIONS, timeout=_REPLY_SECONDS, open=True,
        )  # fmt: skip

    def check_schema(self) -> None:
        """Raise if there is a schema that this version of Sightline can't use, or none and no right to create one."""
        with self._begin(_BEGIN) as connection:
            if check_schema(connection) == 0 and not connection.execute(_MAY_CREATE).fetchone()[0]:
                raise ServerError("PostgreSQL's user may not create tables", "grant it CREATE on a schema")

    def prepare_schema(self) -> bytes:
        """Create or migrate the schema if needed, and return the key of the scopes."""
        with self._begin(_BEGIN) as connection:
            if read_version(connection) == len(MIGRATIONS):
                return read_scope_key(connection)
        with self._begin(_BEGIN_EXCLUSIVE) as connection:
            migrate_schema(connection)
            return read_scope_key(connection)

    def replace_key(self, key: bytes) -> None:
        """Replace the key of the scopes, for rows that come from another record with that key."""
        with self.begin_exclusive() as connection:
            connection.execute("UPDATE sightline SET key = ?", (key.hex(),))

    def fetch_all(self, query: str, *values: object) -> list[Row]:
        statement, converted = translate_statement(query), convert_values(values)
        return self._retry(lambda raw: raw.execute(statement, converted).fetchall())

    def fetch_one(self, query: str, *values: object) -> Row | None:
        return next(iter(self.fetch_all(query, *values)), None)

    @contextmanager
    def begin(self) -> Iterator[SqlConnection]:
        with self._begin(_BEGIN) as connection:
            yield connection

    @contextmanager
    def begin_unsynced(self) -> Iterator[SqlConnection]:
        with self._begin(_BEGIN_UNSYNCED) as connection:
            yield connection

    @contextmanager
    def begin_exclusive(self) -> Iterator[SqlConnection]:
        with self._begin(_BEGIN_EXCLUSIVE) as connection:
            yield connection

    begin_erasing = begin_exclusive  # the server's own files keep deleted rows until it reuses their place

    def announce_change(self, connection: SqlConnection) -> None:
        assert isinstance(connection, _PostgresConnection)
        row = connection.execute("UPDATE sightline SET changes = changes + 1 RETURNING changes").fetchone()
        connection.announced = row[0] if row else 0
        connection.execute(f"NOTIFY {_CHANNEL}")  # sent when the transaction is committed

    def read_changes(self) -> tuple[int, float]:
        """Return the number of changes that were announced, and the time of the server's clock."""
        found = self.fetch_all("SELECT changes, extract(epoch FROM clock_timestamp())::double precision FROM sightline")
        if not found:
            raise ServerError("the tables of the record are empty", "restore them, or use another database")
        return int(found[0][0]), float(found[0][1])

    def has_foreign_change(self, before: int, now: int) -> bool:
        """Return whether any change after number `before`, up to `now`, was announced by another process."""
        with self._announcing:
            own = sum(before < number <= now for number in self._own_changes)
            self._own_changes = {number for number in self._own_changes if number > now}
        return now - before != own

    def claim_sweep(self, now: float, seconds: float) -> bool:
        """Return whether the last sweep of any replica is this long ago; the caller then has to sweep."""
        with self.begin() as connection:
            claimed = connection.execute(
                "UPDATE sightline SET swept = ? WHERE abs(? - swept) >= ?", (now, now, seconds)
            )
            return claimed.rowcount > 0

    def empty_log(self) -> None:
        """Do nothing: the server keeps its own log."""

    def is_current(self) -> bool:
        return True

    def find_damage(self, seconds: float) -> DamageReport:
        """Report nothing: the server checks its own files."""
        return DamageReport(())

    def check_consents(self) -> None:
        """Check nothing: the server checks its own files."""

    def close(self) -> None:
        self._pool.close(timeout=1.0)

    @contextmanager
    def _begin(self, opening: str) -> Iterator[SqlConnection]:
        check_may_wait()
        with _convert_errors():
            raw = self._pool.getconn()
            try:
                raw = self._open_transaction(raw, opening)
                connection = _PostgresConnection(raw)
                try:
                    yield connection
                except BaseException:
                    if not raw.closed:
                        raw.execute("ROLLBACK")
                    raise
                self._commit(raw, connection.announced)
            finally:
                self._pool.putconn(raw)

    def _commit(self, raw: _BoundedConnection, announced: int) -> None:
        if not announced:
            raw.execute("COMMIT")
            return
        with self._announcing:  # whoever has read this number waits until it is known as our own
            raw.execute("COMMIT")
            self._own_changes.add(announced)

    def _open_transaction(self, raw: _BoundedConnection, opening: str) -> _BoundedConnection:
        """Begin a transaction on a connection, or on another one if the server has closed it meanwhile."""
        try:
            raw.execute(opening)
        except psycopg.OperationalError as error:
            if not _is_lost(raw, error):
                raise
            self._pool.putconn(raw)
            self._pool.check()
            raw = self._pool.getconn()
            raw.execute(opening)
        return raw

    def _retry(self, read: Callable[[_BoundedConnection], RV]) -> RV:
        """Read, and once more if the server has closed the connection meanwhile."""
        check_may_wait()
        with _convert_errors():
            with self._pool.connection() as raw:
                try:
                    return read(raw)
                except psycopg.OperationalError as error:
                    if not _is_lost(raw, error):
                        raise
            self._pool.check()
            with self._pool.connection() as raw:
                return read(raw)


class ChangeListener:
    """A connection on which the server says at once that a change was announced.

    That is only a hint: a pooler in transaction mode passes nothing on, and what is said while there is no connection
    is lost.
    """

    def __init__(self, address: str) -> None:
        self._conninfo = make_conninfo(address, connect_timeout=_CONNECT_SECONDS)
        self._connection: psycopg.Connection[Row] | None = None

    def wait(self, seconds: float) -> None:
        """Wait until a change is announced, or for so long. Raise `psycopg.Error` if the connection is lost.

        On a new connection, don't wait: what was announced before it was there has to be asked for.
        """
        try:
            if self._connection is None:
                self._connection = psycopg.connect(self._conninfo, autocommit=True, prepare_threshold=None)
                self._connection.execute(f"LISTEN {_CHANNEL}")
                return
            for _ in self._connection.notifies(timeout=seconds, stop_after=1):
                return
        except psycopg.Error:
            self.close()
            raise

    def interrupt(self) -> None:
        """Make a thread that waits return or raise."""
        connection = self._connection
        if connection is not None and not connection.closed:
            with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as line:
                line.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _is_lost(connection: _BoundedConnection, error: psycopg.OperationalError) -> bool:
    """Return whether a connection was closed by the server, and not because it didn't reply."""
    return connection.closed and "does not reply" not in str(error)


@contextmanager
def _convert_errors() -> Iterator[None]:
    try:
        yield
    except (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout, PoolClosed) as error:
        if not _is_about_connection(error):  # a deadlock, a full disk, a lock that was not granted
            raise ServerError(f"PostgreSQL says: {clean_text(error)}", "check the server's log") from None
        raise _explain_connection(error) from None
    except psycopg.ProgrammingError as error:
        if error.sqlstate is None:  # libpq can't read the address, and its text would show it
            raise ServerError("the address of the store can't be read", "check its options") from None
        raise ServerError(f"PostgreSQL says: {clean_text(error)}", "check the rights of its user") from None
    except psycopg.Error as error:
        raise ServerError(f"PostgreSQL says: {clean_text(error)}", "check the rights of its user") from None


def _is_about_connection(error: psycopg.Error) -> bool:
    """Return whether an error means that the server can't be used at all, by the codes in PostgreSQL's appendix A."""
    state = error.sqlstate
    return state is None or state[:2] in ("08", "28", "3D") or state.startswith("57P0") or state == "53300"


def _explain_connection(error: Exception) -> ServerError:
    text = str(error)
    if "password authentication failed" in text or "no password supplied" in text or "authentication failed" in text:
        remedy = "check the user and the password in the address, or set PGPASSWORD"
        return ServerError("PostgreSQL rejects the user or the password", remedy, is_down=True)
    if "does not exist" in text and "database" in text:
        return ServerError(f"PostgreSQL says: {clean_text(text.split('FATAL:')[-1])}", "create it, or name another one")
    if isinstance(error, PoolTimeout):
        return ServerError("PostgreSQL does not reply", _CHECK_SERVER, is_down=True)
    return ServerError(f"PostgreSQL can't be used: {clean_text(text)}", _CHECK_SERVER, is_down=True)
