"""When rows were last read: noted here, and written with the next write, so that no read waits for one."""

from __future__ import annotations

import threading

from sightline.store.bounds import TABLES
from sightline.store.database import Database, Row

COARSE = 3600.0  # seconds, to which `used` is exact: an image that comes with every request is not written every time


class Touches:
    def __init__(self) -> None:
        self._touched: dict[tuple[str, int], float] = {}
        self._lock = threading.Lock()

    def add(self, table: str, row: Row, now: float) -> None:
        """Note that a row was read. `row` begins with its number and when it was last used."""
        if now - row[1] >= COARSE:
            with self._lock:
                self._touched[table, row[0]] = now

    def write(self, database: Database) -> None:
        with self._lock:
            touched, self._touched = self._touched, {}
        if not touched:
            return
        with database.writing() as connection:
            for table in TABLES:
                connection.executemany(
                    f"UPDATE {table} SET used = ? WHERE rowid = ?",  # noqa: S608, one of TABLES
                    [(used, row) for (kind, row), used in touched.items() if kind == table],
                )
