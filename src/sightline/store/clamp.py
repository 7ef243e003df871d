"""Bringing values that damage has changed back to what is possible.

A row that can be read may still hold garbage. One image of 2^61 bytes would push every other row out of the record, one
clock that is far ahead would expire all of them, and the sum of some large numbers is an error in SQLite.
"""

from __future__ import annotations

import math
from sqlite3 import Connection
from statistics import median

from sightline.store.bounds import TABLES
from sightline.store.clock import DAY, RecordTime

MOST_ROWS = 1 << 53  # no table has more rows; a larger number would be the last that SQLite can give out
_MOST_INTEGER = 1 << 40
_MOST_COST = 1e9
_ROW_BYTES = 1024  # that a row may say it takes beside its texts
_LONGEST_LESSON = 30 * DAY
_OLDEST = 40 * DAY  # rows are removed after 30 days; some are a few days late
_SLACK = 3600.0  # by which a row may be later than the clock, which is not written every time
_CLOCK = "SELECT wall, steady, added, owed, back, ahead FROM clock"


def clamp_values(connection: Connection, wall: float) -> float:
    """Bring every value of a repaired database into its bounds, and return the record time.

    The bytes of images are set when their files are checked. `wall` is the machine's clock.
    """
    now = _restore_clock(connection, wall)
    latest = {"used": now.time, "asked": now.steady, "expires": now.time + _LONGEST_LESSON, "at": wall}
    latest |= {"made": max(now.time, wall), "cost": _MOST_COST}
    for table, column, kind in _number_columns(connection):
        _clamp(connection, table, column, latest.get(column, _MOST_COST if kind == "REAL" else _MOST_INTEGER))
    for table in TABLES:
        texts = " + ".join(f"ifnull(length(CAST({column} AS BLOB)), 0)" for column in _text_columns(connection, table))
        if table not in ("images", "perceptions"):
            connection.execute(f"UPDATE {table} SET bytes = min(bytes, {_ROW_BYTES} + {texts})")  # noqa: S608
    return now.time


def clamp_image_bytes(connection: Connection, sha256: str, size: int) -> None:
    """Set how many bytes an image takes to the size of its file."""
    connection.execute("UPDATE images SET bytes = ? WHERE sha256 = ? AND bytes != ?", (size, sha256, size))
    connection.execute("UPDATE perceptions SET bytes = min(bytes, ?) WHERE pixels = ?", (size + _ROW_BYTES, sha256))


def _restore_clock(connection: Connection, wall: float) -> RecordTime:
    """Return the record time; if it is lost or cannot be true, set it to that of the last use, by which rows are old.

    A few rows may be wrong, too: so a use counts if it is not far from the one in the middle.
    """
    row = connection.execute(_CLOCK).fetchone()
    all_used = " UNION ALL ".join(f"SELECT used FROM {table}" for table in TABLES)  # noqa: S608, our own tables
    used = [at for (at,) in connection.execute(f"SELECT used FROM ({all_used})") if math.isfinite(at)]  # noqa: S608
    middle = median(used) if used else None
    if row and _is_plausible(RecordTime(*row), middle):
        return RecordTime(*row).advance(wall)
    last = max((at for at in used if middle is not None and abs(at - middle) <= _OLDEST), default=wall)
    connection.execute("DELETE FROM clock")
    if used:
        values = (wall, last)
        connection.execute(
            "INSERT INTO clock (scope, one, wall, steady, added, owed, back) VALUES ('', 1, ?, ?, 0, 0, 0)", values
        )
    return RecordTime(wall, last)


def _is_plausible(clock: RecordTime, middle: float | None) -> bool:
    values = (clock.wall, clock.steady, clock.added, clock.owed, clock.back, clock.ahead)
    if not all(math.isfinite(value) for value in values) or not 0 <= clock.owed <= 30 * DAY or clock.back < 0:
        return False
    return middle is None or -_SLACK <= clock.time - middle <= _OLDEST


def _number_columns(connection: Connection) -> list[tuple[str, str, str]]:
    found = connection.execute(
        "SELECT tables.name, columns.name, columns.type FROM sqlite_schema AS tables,"
        " pragma_table_info(tables.name) AS columns WHERE tables.type = 'table' AND columns.type IN ('INTEGER', 'REAL')"
        " AND tables.name NOT IN ('clock', 'flights')"
    )
    return [(table, column, kind) for table, column, kind in found]


def _text_columns(connection: Connection, table: str) -> list[str]:
    found = connection.execute("SELECT name FROM pragma_table_info(?) WHERE type = 'TEXT'", (table,))
    return [name for (name,) in found]


def _clamp(connection: Connection, table: str, column: str, most: float) -> None:
    bounded = f"{column} = max(0, min({column}, ?1)) WHERE {column} NOT BETWEEN 0 AND ?1"
    connection.execute(f"UPDATE {table} SET {bounded}", (most,))  # noqa: S608, our own tables and columns
