"""The interface of a database that the ports use, and SQL that SQLite and PostgreSQL both understand.

A statement is written once, in SQLite's dialect restricted to what PostgreSQL has too; `postgres_connection` translates
the few parts that differ: placeholders, `instr`, `json_each`. So in the ports:

- a conflict is `ON CONFLICT (key) DO …`, never `INSERT OR …`; `build_upsert` writes the usual one;
- a parameter whose type nothing else determines is `CAST(? AS TEXT)`;
- a truth value is a number and is compared with one; a subquery in FROM has a name.

Transactions of SQLite exclude each other. Those of PostgreSQL don't, so one that decides by what it reads does so
within one statement, or is exclusive (`begin_exclusive`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias

from sightline.model.value import value_class

Row: TypeAlias = tuple[Any, ...]


@value_class
class DamageReport:
    faults: tuple[str, ...]  # one line each
    is_complete: bool = True  # false: there was no time to check everything


class SqlCursor(Protocol):
    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class SqlConnection(Protocol):
    """A connection within a transaction."""

    def execute(self, statement: str, values: Sequence[Any] = ..., /) -> SqlCursor: ...

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> SqlCursor: ...


class SqlDatabase(Protocol):
    """An open database. Its methods may be called from any thread."""

    may_wait: bool  # for a server

    def fetch_all(self, query: str, *values: object) -> list[Row]: ...

    def fetch_one(self, query: str, *values: object) -> Row | None: ...

    def begin(self) -> AbstractContextManager[SqlConnection]:
        """Begin a transaction that writes. What it has written is durable when it ends."""
        ...

    def begin_without_sync(self) -> AbstractContextManager[SqlConnection]:
        """Begin a transaction that a power failure may lose after it was committed."""
        ...

    def begin_exclusive(self) -> AbstractContextManager[SqlConnection]:
        """Begin a transaction during which no other one writes, in any process."""
        ...

    def begin_erasing(self) -> AbstractContextManager[SqlConnection]:
        """Begin an exclusive transaction whose deleted rows can't be read from the database's files afterwards."""
        ...

    def allow_long_statements(self) -> AbstractContextManager[None]:
        """Let statements of this thread take minutes until the block ends, for maintenance."""
        ...

    def announce_change(self, connection: SqlConnection) -> None:
        """Tell other processes, within a transaction, to drop what they have cached."""
        ...

    def empty_log(self) -> None:
        """Make sure that damage to the log can't undo what was committed."""
        ...

    def find_damage(self, seconds: float) -> DamageReport:
        """Look for damage, for at most this long."""
        ...

    def check_consents(self) -> None:
        """Raise if the table of consents is damaged."""
        ...

    def is_current(self) -> bool:
        """Return whether the database is still the one that was opened."""
        ...

    def close(self) -> None: ...


def build_upsert(table: str, columns: str, key: str) -> str:
    """Return a statement that writes a row, and replaces the one with the same key.

    `columns` and `key` are names separated by commas; the values are given in the order of the columns.
    """
    names, keys = columns.split(", "), key.split(", ")
    changes = ", ".join(f"{name} = excluded.{name}" for name in names if name not in keys)
    marks = ", ".join("?" * len(names))
    return f"INSERT INTO {table} ({columns}) VALUES ({marks}) ON CONFLICT ({key}) DO UPDATE SET {changes}"  # noqa: S608
