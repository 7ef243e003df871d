"""Finding out whether the database is damaged, in bounded time, before anything is built on what it says."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sightline.store.log import check_log
from sightline.store.migrations import STEPS, count_steps, migrate

_SHOWN = 5  # faults that are named
_STEPS = 10_000  # of SQLite's virtual machine between two looks at the clock


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
