"""How old and how large a record may become: record time, expired rows, and values that damage has changed.

Rows that were used least recently are deleted first. When a row is read, its time is noted in memory and written with
the next write, so that no read waits for a write.

Record time is a clock of the record's own. Rows expire by age: images and descriptions after 30 days without use,
lessons after 7 or 30 days, leases after seconds. But a machine's clock jumps: its battery is empty, a virtual machine
resumes, a user sets the date. A record that trusted that clock would lose everything by one use under a clock that is
40 days ahead, and a lease would last 40 days after the clock was set back. So ages are measured in record time, which
is kept in the table `clock`:

1. Record time never goes back.
2. Each use of the record adds the time since the last use, but at most one day. A longer step may be a jump of the
   clock, or a laptop that was switched off for weeks: the two look the same.
3. What rule 2 left out is owed, up to 30 days. It is added as the clock goes on: for each second that is counted,
   seven of the owed seconds. A clock that was wrong is usually corrected soon, which cancels what is owed.
4. A step back counts as no time, and cancels as much of what is owed. The excess is remembered (`back`): a later step
   forward that rule 2 cuts may be the clock being corrected again, and that much of it is never owed.
5. Time that was counted before a step back is not counted twice (`ahead`): that much time passes without being added.
   So a clock that jumps back and forth adds nothing after the first time. This is limited to 30 days, because else
   nothing would expire after a clock was wrong for long.
6. A date before 2024 or after 2099 is wrong. The step from there to a possible date counts as no time.

So one use adds at most 8 days, and only if an earlier use has already seen the clock ahead: nothing that was used in
the last three weeks expires at once. If time has really passed, record time has caught up after 30 / 7 days of use at
the latest. A record that is used once a week keeps up with the calendar, one use behind.

Short spans (leases, the lifetime of a prompt cache) are measured in steady time, which is record time without rules 3
and 5: else they would pass eight times as fast while record time catches up, and not at all after a step back.

A use is a write or a sweep; opening a record causes one sweep an hour. What people read (the days of `usage`, the
times of receipts) is the machine's clock, not record time.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable
from sqlite3 import Connection

from sightline.model.value import value_class
from sightline.store.sql import Row, SqlConnection, SqlDatabase, build_upsert

DAY = 86400.0
ORPHAN_SECONDS = DAY  # that bytes without a row stay: a program may be storing them, or another record has the row
_MAX_STEP = DAY
_CATCH_UP_FACTOR = 7.0
_MAX_OWED = 30 * DAY
_MAX_AHEAD = 30 * DAY
_EARLIEST_DATE, _LATEST_DATE = 1_704_067_200.0, 4_102_444_800.0  # the years 2024 to 2099
_SAVE_SECONDS = 10.0  # how far the table may be behind; a lease lasts that much longer if the clock is set back
_CLOCK_QUERY = "SELECT wall, steady, added, owed, back, ahead FROM clock"
_WRITE_CLOCK = build_upsert("clock", "scope, one, wall, steady, added, owed, back, ahead", "one")

USED_PRECISION = (
    3600.0  # seconds: `used` is only rewritten after that long, because an image may come with every request
)
# The tables with the columns `used` and `bytes`; and of those that name a blob, the column that does.
BOUNDED_TABLES = (
    "images",
    "descriptions",
    "perceptions",
    "moments",
    "entries",
    "tellings",
    "receipts",
    "omissions",
    "legs",
)
_BLOB_COLUMNS = {"images": "sha256", "perceptions": "pixels"}
_BOUNDED_ROWS = " UNION ALL ".join(
    f"SELECT '{table}' AS kind, rowid AS id, used, bytes, {_BLOB_COLUMNS.get(table, repr(''))} AS blob FROM {table}"  # noqa: S608
    for table in BOUNDED_TABLES
)
_OLD_ROWS = f"SELECT kind, id, blob, used FROM ({_BOUNDED_ROWS}) AS bounded WHERE used < ? AND used <= ? LIMIT ?"  # noqa: S608
_TOTAL_BYTES = f"SELECT SUM(bytes) FROM ({_BOUNDED_ROWS}) AS bounded"  # noqa: S608
_EXCESS_ROWS = f"""
    WITH summed AS (
        SELECT *, SUM(bytes) OVER (ORDER BY used DESC, kind, id ROWS UNBOUNDED PRECEDING) AS total
        FROM ({_BOUNDED_ROWS}) AS bounded)
    SELECT kind, id, blob, used FROM summed WHERE total > ? AND used <= ? ORDER BY used LIMIT ?"""  # noqa: S608
BLOB_NAMES = "SELECT sha256 FROM images UNION SELECT pixels FROM perceptions"
_IS_REFERENCED = "SELECT 1 FROM images WHERE sha256 = ?1 UNION ALL SELECT 1 FROM perceptions WHERE pixels = ?1"

# The bounds of values in a repaired database.
MAX_ROWID = 1 << 53  # no table has more rows; SQLite could not assign a number after its largest one
_MAX_INTEGER = 1 << 40
_MAX_COST = 1e9
_ROW_BYTES = 1024  # a row's `bytes` may exceed the length of its texts by this much
_MAX_LESSON_SECONDS = 30 * DAY
_OLDEST = 40 * DAY  # rows are deleted after 30 days, some a few days late
_SLACK = 3600.0  # by which a row may be ahead of the clock, which is not written every time


@value_class
class RecordTime:
    wall: float  # the machine's clock
    steady: float  # the sum of all steps, by rules 1, 2 and 4
    added: float = 0.0  # what rule 3 has added, less what rule 5 has left out
    owed: float = 0.0  # what rule 3 still has to add
    back: float = 0.0  # how far the clock was set back, by rule 4
    ahead: float = 0.0  # what rule 5 does not count again; never more than `back`

    @property
    def time(self) -> float:
        return self.steady + self.added

    def compute_time(self, wall: float) -> float:
        """Return `advance(wall).time`, without a new object where the clock has only moved on."""
        step = wall - self.wall
        if 0.0 <= step <= _MAX_STEP and not (self.owed or self.ahead) and _is_possible_date(self.wall):
            return self.steady + step + self.added
        return self.advance(wall).time

    def advance(self, wall: float) -> RecordTime:
        """Return the record time at the time `wall` of the machine's clock."""
        step = wall - self.wall
        if _is_possible_date(wall) and not _is_possible_date(self.wall):
            return RecordTime(wall, self.steady, self.added)
        if step < 0:
            left = self.owed + step
            excess = max(0.0, -left)
            ahead = min(self.ahead + excess, _MAX_AHEAD)
            return RecordTime(wall, self.steady, self.added, max(0.0, left), self.back + excess, ahead)
        counted = min(step, _MAX_STEP)
        again = min(self.ahead, counted)
        paid = min(self.owed, _CATCH_UP_FACTOR * (counted - again))
        restored = min(self.back - again, step - counted)
        owed, back = min(self.owed - paid + step - counted - restored, _MAX_OWED), self.back - again - restored
        added = self.added + paid - again
        return RecordTime(wall, self.steady + counted, added, owed, back, min(self.ahead - again, back))


def _is_possible_date(wall: float) -> bool:
    return _EARLIEST_DATE <= wall < _LATEST_DATE


def read_record_time(database: SqlDatabase, wall: float) -> RecordTime:
    """Return the current record time without writing anything."""
    row = database.fetch_one(_CLOCK_QUERY)
    return RecordTime(*row).advance(wall) if row else RecordTime(wall, wall)


def update_record_time(connection: SqlConnection, wall: float) -> RecordTime:
    """Return the current record time, and write it within a transaction if the table is too far behind."""
    row = connection.execute(_CLOCK_QUERY).fetchone()
    last = RecordTime(*row) if row else RecordTime(wall, wall)
    now = last.advance(wall)
    if row is None or not 0 <= wall - last.wall < _SAVE_SECONDS:
        values = ("", 1, now.wall, now.steady, now.added, now.owed, now.back, now.ahead)
        connection.execute(_WRITE_CLOCK, values)
    return now


@value_class
class RecordBounds:
    bytes: int
    days: float


def delete_ended_rows(connection: SqlConnection, now: RecordTime) -> None:
    """Delete lessons and leases that are over."""
    connection.execute("DELETE FROM lessons WHERE expires <= ?", (now.time,))
    connection.execute("DELETE FROM flights WHERE until <= ?", (now.steady,))


def find_expired_rows(database: SqlDatabase, bytes_limit: int, oldest: float, newest: float, count: int) -> list[Row]:
    """Return rows that were last used before `oldest`, a record time, or are the least recently used past the limit.

    Those that were used after `newest` are never among them. At most `count` rows are returned: delete them, and ask
    again until there are none.
    """
    if old := database.fetch_all(_OLD_ROWS, oldest, newest, count):
        return old
    (total,) = database.fetch_one(_TOTAL_BYTES) or (0,)
    return database.fetch_all(_EXCESS_ROWS, bytes_limit, newest, count) if (total or 0) > bytes_limit else []


def delete_rows(connection: SqlConnection, expired: Iterable[Row]) -> tuple[int, set[str]]:
    """Delete expired rows unless they were used meanwhile.

    Returns how many were deleted, and the blobs that they named; other rows may still name them.
    """
    count, blobs = 0, set()
    for table, row, blob, used in expired:
        delete = f"DELETE FROM {table} WHERE rowid = ? AND used = ?"  # noqa: S608, one of BOUNDED_TABLES
        count += connection.execute(delete, (row, used)).rowcount
        blobs.add(blob)
    return count, {blob for blob in blobs if blob}


def find_orphans(connection: SqlConnection, names: Iterable[str]) -> list[str]:
    """Return those of these blobs that no row names."""
    return [sha256 for sha256 in names if connection.execute(_IS_REFERENCED, (sha256,)).fetchone() is None]


class LastUses:
    """When rows were last read: collected in memory, written together."""

    def __init__(self) -> None:
        self._times: dict[tuple[str, int], float] = {}
        self._lock = threading.Lock()

    def add(self, table: str, row: Row, now: float) -> bool:
        """Note that a row, which begins with its rowid and `used`, was read; return whether that has to be written."""
        if now - row[1] < USED_PRECISION:
            return False
        with self._lock:
            self._times[table, row[0]] = now
        return True

    def write(self, database: SqlDatabase) -> None:
        with self._lock:
            times, self._times = self._times, {}
        if not times:
            return
        with database.begin() as connection:
            for table in BOUNDED_TABLES:
                connection.executemany(
                    f"UPDATE {table} SET used = ? WHERE rowid = ?",  # noqa: S608, one of TABLES
                    [(used, row) for (kind, row), used in sorted(times.items()) if kind == table],
                )


def clamp_values(connection: Connection, wall: float) -> float:
    """Clamp every number of a repaired database to its bounds, and return the record time.

    A row that can be read may still contain garbage. One image of 2^61 bytes would push every other row out of the
    record, a clock that is far ahead would expire all of them, and SQLite cannot add up some large numbers.

    The sizes of images are set later, when their files are checked. `wall` is the machine's clock.
    """
    now = _restore_clock(connection, wall)
    latest = {"used": now.time, "asked": now.steady, "expires": now.time + _MAX_LESSON_SECONDS, "at": wall}
    latest |= {"made": max(now.time, wall), "cost": _MAX_COST}
    for table, column, kind in _list_number_columns(connection):
        _clamp_column(connection, table, column, latest.get(column, _MAX_COST if kind == "REAL" else _MAX_INTEGER))
    for table in BOUNDED_TABLES:
        texts = " + ".join(
            f"ifnull(length(CAST({column} AS BLOB)), 0)" for column in _list_text_columns(connection, table)
        )
        if table not in ("images", "perceptions"):
            connection.execute(f"UPDATE {table} SET bytes = min(bytes, {_ROW_BYTES} + {texts})")  # noqa: S608
    return now.time


def clamp_image_bytes(connection: SqlConnection, sha256: str, size: int) -> None:
    """Set the size of an image to that of its file."""
    connection.execute("UPDATE images SET bytes = ? WHERE sha256 = ? AND bytes != ?", (size, sha256, size))
    connection.execute("UPDATE perceptions SET bytes = min(bytes, ?) WHERE pixels = ?", (size + _ROW_BYTES, sha256))


def _restore_clock(connection: Connection, wall: float) -> RecordTime:
    """Return the record time; if it is lost or implausible, set it to the time of the last use.

    A few rows may be wrong, too, so only uses near the median count.
    """
    row = connection.execute(_CLOCK_QUERY).fetchone()
    all_used = " UNION ALL ".join(f"SELECT used FROM {table}" for table in BOUNDED_TABLES)  # noqa: S608, our own tables
    used = [at for (at,) in connection.execute(f"SELECT used FROM ({all_used})") if math.isfinite(at)]  # noqa: S608
    middle = _find_median(used) if used else None
    if row and _is_plausible_clock(RecordTime(*row), middle):
        return RecordTime(*row).advance(wall)
    last = max((at for at in used if middle is not None and abs(at - middle) <= _OLDEST), default=wall)
    connection.execute("DELETE FROM clock")
    if used:
        values = (wall, last)
        connection.execute(
            "INSERT INTO clock (scope, one, wall, steady, added, owed, back) VALUES ('', 1, ?, ?, 0, 0, 0)", values
        )
    return RecordTime(wall, last)


def _find_median(values: list[float]) -> float:
    """Return the median. `statistics` has it too, but importing that takes 1 % of the proxy's start."""
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(values) % 2 else (ordered[half - 1] + ordered[half]) / 2


def _is_plausible_clock(clock: RecordTime, middle: float | None) -> bool:
    values = (clock.wall, clock.steady, clock.added, clock.owed, clock.back, clock.ahead)
    if not all(math.isfinite(value) for value in values) or not 0 <= clock.owed <= 30 * DAY or clock.back < 0:
        return False
    return middle is None or -_SLACK <= clock.time - middle <= _OLDEST


def _list_number_columns(connection: Connection) -> list[tuple[str, str, str]]:
    found = connection.execute(
        "SELECT tables.name, columns.name, columns.type FROM sqlite_schema AS tables,"
        " pragma_table_info(tables.name) AS columns WHERE tables.type = 'table' AND columns.type IN ('INTEGER', 'REAL')"
        " AND tables.name NOT IN ('clock', 'flights')"
    )
    return [(table, column, kind) for table, column, kind in found]


def _list_text_columns(connection: Connection, table: str) -> list[str]:
    found = connection.execute("SELECT name FROM pragma_table_info(?) WHERE type = 'TEXT'", (table,))
    return [name for (name,) in found]


def _clamp_column(connection: Connection, table: str, column: str, maximum: float) -> None:
    bounded = f"{column} = max(0, min({column}, ?1)) WHERE {column} NOT BETWEEN 0 AND ?1"
    connection.execute(f"UPDATE {table} SET {bounded}", (maximum,))  # noqa: S608, our own tables and columns
