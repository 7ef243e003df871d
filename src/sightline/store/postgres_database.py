"""A PostgreSQL database that replicas share, through a pool of connections.

It works behind a pooler in transaction mode: no prepared statements, no session settings, no session locks. Each wait
for the server ends after a few seconds, because some reads are made in the event loop: see `postgres_connection`.
Sweeps, migrations and other maintenance have minutes (`allow_long_statements`).

A transaction that writes takes a lock that it shares with others; an exclusive one, such as a sweep, takes it alone.
A transaction that doesn't get it in time fails, and the server is not down. The server ends a transaction whose replica
is frozen, so that it doesn't block the others.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.types.numeric import FloatLoader
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from sightline.memory_reads import check_may_wait
from sightline.store.migrations import MIGRATIONS
from sightline.store.postgres_connection import (
    CHANNEL,
    CONNECT_SECONDS,
    REPLY_SECONDS,
    BoundedConnection,
    NoReplyError,
)
from sightline.store.postgres_sql import (
    check_schema,
    convert_values,
    migrate_schema,
    read_scope_key,
    read_version,
    translate_statement,
)
from sightline.store.server_errors import ServerError, clean_text
from sightline.store.sql import DamageReport, Row, SqlConnection, SqlCursor

logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)  # what is wrong is logged once, by the storage

_MAX_CONNECTIONS = 8
_LOCK = 7_310_575_174_166_148_974  # the number of the lock that transactions share
_SHARED, _EXCLUSIVE = f"SELECT pg_advisory_xact_lock_shared({_LOCK})", f"SELECT pg_advisory_xact_lock({_LOCK})"
_IDLE_LIMIT = "SET LOCAL idle_in_transaction_session_timeout TO '15s'"
_LIMITS = f"{_IDLE_LIMIT}; SET LOCAL lock_timeout TO '2s'"
_BEGIN = f"BEGIN; {_LIMITS}; {_SHARED}"
_BEGIN_UNSYNCED = f"BEGIN; {_LIMITS}; SET LOCAL synchronous_commit TO off; {_SHARED}"
_BEGIN_EXCLUSIVE = f"BEGIN; {_LIMITS}; {_EXCLUSIVE}"
_BEGIN_CHECK = f"BEGIN; {_IDLE_LIMIT}; {_SHARED}"  # these wait for a replica that migrates the schema
_BEGIN_MIGRATION = f"BEGIN; {_IDLE_LIMIT}; {_EXCLUSIVE}"
_TOO_SLOW = ("55P03", "57014")  # a lock was not granted in time, a statement was cancelled
_MAY_CREATE = "SELECT coalesce(has_schema_privilege(current_schema(), 'CREATE'), FALSE)"
_CHECK_SERVER = "check that the server runs and can be reached from here"

RV = TypeVar("RV")


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

    reply_seconds, long_reply_seconds = REPLY_SECONDS, 300.0

    def __init__(self, address: str) -> None:
        """Connect, or raise `ServerError`. Nothing is created."""
        self._closing = closing = threading.Event()
        self._own_limit = threading.local()

        def configure(connection: psycopg.Connection[Row]) -> None:
            connection.adapters.register_loader("numeric", FloatLoader)
            assert isinstance(connection, BoundedConnection)
            connection.closing = closing
            connection.add_notify_handler(lambda notify: None)  # a pooler may pass on another client's: don't keep them

        self._own_changes: set[int] = set()
        self._announcing = threading.Lock()  # from the commit of a change until its number is in the set
        options = {"autocommit": True, "prepare_threshold": None}
        with _convert_errors():  # once without the pool, which doesn't say why it can't connect
            conninfo = make_conninfo(address, connect_timeout=CONNECT_SECONDS)
            psycopg.connect(conninfo).close()
        self._pool: ConnectionPool[BoundedConnection] = ConnectionPool(
            conninfo,
            connection_class=BoundedConnection, kwargs=options, configure=configure,
            min_size=1, max_size=_MAX_CONNECTIONS, timeout=REPLY_SECONDS, open=True,
        )  # fmt: skip

    def check_schema(self) -> None:
        """Raise if there is a schema that this version of Sightline can't use, or none and no right to create one."""
        with self._begin(_BEGIN_CHECK) as connection:
            if check_schema(connection) == 0 and not connection.execute(_MAY_CREATE).fetchone()[0]:
                raise ServerError("PostgreSQL's user may not create tables", "grant it CREATE on a schema")

    def prepare_schema(self) -> bytes:
        """Create or migrate the schema if needed, and return the key of the scopes."""
        with self._begin(_BEGIN_CHECK) as connection:
            if read_version(connection) == len(MIGRATIONS):
                return read_scope_key(connection)
        with self._begin(_BEGIN_MIGRATION) as connection:
            migrate_schema(connection)
            return read_scope_key(connection)

    def replace_key(self, key: bytes) -> None:
        """Replace the key of the scopes, for rows that come from another record with that key."""
        with self.begin_exclusive() as connection:
            connection.execute("UPDATE sightline SET key = ?", (key.hex(),))

    @contextmanager
    def allow_long_statements(self) -> Iterator[None]:
        before = self._read_limit()
        self._own_limit.seconds = self.long_reply_seconds
        try:
            yield
        finally:
            self._own_limit.seconds = before

    def _read_limit(self) -> float:
        """Return how long a statement of this thread may take."""
        return float(getattr(self._own_limit, "seconds", self.reply_seconds))

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
    def begin_without_sync(self) -> Iterator[SqlConnection]:
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
        connection.execute(f"NOTIFY {CHANNEL}")  # sent when the transaction is committed

    def read_state(self) -> tuple[int, float, int]:
        """Return the number of changes that were announced, the time of the server's clock, and the schema version."""
        found = self.fetch_all(
            "SELECT changes, extract(epoch FROM clock_timestamp())::double precision, version FROM sightline"
        )
        if not found:
            raise ServerError("the tables of the record are empty", "restore them, or use another database")
        ((changes, now, version),) = found
        return int(changes), float(now), int(version)

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
        self._closing.set()
        self._pool.close(timeout=1.0)

    @contextmanager
    def _begin(self, opening: str) -> Iterator[SqlConnection]:
        check_may_wait()
        with _convert_errors():
            raw = self._open_transaction(opening)
            try:
                connection = _PostgresConnection(raw)
                try:
                    yield connection
                except BaseException:
                    if not raw.closed:
                        raw.execute("ROLLBACK")
                    raise
                self._commit(raw, connection.announced)
            finally:
                self._give_back(raw)

    def _commit(self, raw: BoundedConnection, announced: int) -> None:
        if not announced:
            raw.execute("COMMIT")
            return
        with self._announcing:  # whoever has read this number waits until it is known as our own
            raw.execute("COMMIT")
            self._own_changes.add(announced)

    def _open_transaction(self, opening: str) -> BoundedConnection:
        """Return a connection with a new transaction; try a second one if the server has closed the first meanwhile."""
        try:
            return self._try_transaction(opening)
        except _LostError:
            self._pool.check()
            return self._try_transaction(opening)

    def _try_transaction(self, opening: str) -> BoundedConnection:
        raw = self._borrow()
        try:
            with _detect_loss(raw):
                raw.execute(opening)
        except BaseException:
            self._give_back(raw)  # the pool rolls back
            raise
        return raw

    def _retry(self, read: Callable[[BoundedConnection], RV]) -> RV:
        """Read, and once more if the server has closed the connection meanwhile."""
        check_may_wait()
        with _convert_errors():
            try:
                return self._try_read(read)
            except _LostError:
                self._pool.check()
                return self._try_read(read)

    def _try_read(self, read: Callable[[BoundedConnection], RV]) -> RV:
        raw = self._borrow()
        try:
            with _detect_loss(raw):
                return read(raw)
        finally:
            self._give_back(raw)

    def _borrow(self) -> BoundedConnection:
        raw = self._pool.getconn()
        raw.reply_seconds = self._read_limit()
        return raw

    def _give_back(self, raw: BoundedConnection) -> None:
        raw.reply_seconds = self.reply_seconds  # for the pool's own statements
        self._pool.putconn(raw)


class _LostError(psycopg.OperationalError):
    """The server has closed a connection, perhaps long ago."""


@contextmanager
def _detect_loss(raw: BoundedConnection) -> Iterator[None]:
    """Raise `_LostError` if the server has closed a connection, and not because it was given up here."""
    try:
        yield
    except (NoReplyError, psycopg.errors.QueryCanceled):
        raise
    except psycopg.OperationalError as error:
        if not raw.closed:
            raise
        raise _LostError(str(error)) from error


@contextmanager
def _convert_errors() -> Iterator[None]:
    try:
        yield
    except (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout, PoolClosed) as error:
        if error.sqlstate in _TOO_SLOW:
            raise ServerError("PostgreSQL is busy with the record", "try again") from None
        if not _is_about_connection(error):  # a deadlock, a full disk
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
