"""How old and how large a record may become: record time, what is swept away, and values that damage has changed.

What was used least recently goes first. When rows were last read is noted in memory and written with the next write, so
that no read waits for a write. Record time says how old rows are, whatever the machine's clock does.

Rows expire by age: images and words after 30 days without use, lessons after 7 or 30 days, leases after seconds. But a
machine's clock jumps: a battery is empty, a virtual machine wakes up, someone sets the date. A record that compared
rows with that clock would lose everything by one call under a clock 40 days ahead, and a lease would last 40 days
after the clock was put back. So ages are measured in record time, which the record keeps in its table `clock`:

1. Record time never goes back.
2. Each use of the record adds the time since the last use, but at most one day. A longer step may be a jump of the
   clock, or a laptop that was switched off for weeks: the two look the same.
3. What rule 2 left out is owed, up to 30 days. It is added as the clock goes on from there: seven seconds that are
   owed with every second that is counted. A clock that was wrong is soon put right, and what is owed is cancelled.
4. A step back counts as no time, and cancels as much of what is owed. What it exceeds that by is remembered (`back`):
   a later step forwards that rule 2 cuts may be the clock being put right again, and as much of it is never owed.
5. What was counted before a step back is not counted twice (`ahead`): as much time passes without being added. So a
   clock that jumps to and fro adds nothing after the first time. That goes for 30 days at most, else nothing would
   expire after a clock that was wrong for long.
6. A clock before 2024 or after 2100 is wrong. The step from there to a possible time counts as none at all.

So one use adds at most 8 days, and only where an earlier use has seen the clock ahead already: nothing that was used
in the last three weeks expires at once. Where time has really passed, record time has caught up after 30 / 7 days of
use at the latest. A record that is used once a week keeps up with the calendar, one use behind.

Short spans (leases, the life of a prompt cache) are measured in steady time, which is record time without rules 3 and
5: else they would pass eight times as fast while record time catches up, and not at all after a step back.

A use is a write, or a sweep, of which opening a record makes one an hour. What people read (the days of `usage`, the
times of receipts) is the machine's clock at that moment, not record time.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from sqlite3 import Connection
from statistics import median

from sightline.store.database import Database, Row
from sightline.store.files import Blobs

DAY = 86400.0
_LONGEST_STEP = DAY
_CATCH_UP = 7.0
_MOST_OWED = 30 * DAY
_MOST_AHEAD = 30 * DAY
_FIRST, _LAST = 1_704_067_200.0, 4_102_444_800.0  # the years 2024 to 2099
_NOTED_SECONDS = 10.0  # how far the table may be behind; a lease lasts that much longer where the clock goes back
_READ = "SELECT wall, steady, added, owed, back, ahead FROM clock"

COARSE = 3600.0  # seconds, to which `used` is exact: an image that comes with every request is not written every time
# The tables that are bounded: each has `used` and `bytes`. Of those that name bytes, the column that does.
TABLES = ("images", "descriptions", "perceptions", "moments", "entries", "tellings", "receipts", "omissions", "legs")
_NAMING = {"images": "sha256", "perceptions": "pixels"}
_ROWS = " UNION ALL ".join(
    f"SELECT '{table}' AS kind, rowid AS id, used, bytes, {_NAMING.get(table, repr(''))} AS blob FROM {table}"  # noqa: S608
    for table in TABLES
)
_PAST_BOUNDS = f"""
    WITH summed AS (
        SELECT *, SUM(bytes) OVER (ORDER BY used DESC, kind, id ROWS UNBOUNDED PRECEDING) AS total FROM ({_ROWS}))
    SELECT kind, id, blob FROM summed WHERE used < ? OR total > ?"""  # noqa: S608
NAMES = "SELECT sha256 FROM images UNION SELECT pixels FROM perceptions"
_NAMED = "SELECT 1 FROM images WHERE sha256 = ?1 UNION ALL SELECT 1 FROM perceptions WHERE pixels = ?1"

# What values can be, in a database that is repaired.
MOST_ROWS = 1 << 53  # no table has more rows; a larger number would be the last that SQLite can give out
_MOST_INTEGER = 1 << 40
_MOST_COST = 1e9
_ROW_BYTES = 1024  # that a row may say it takes beside its texts
_LONGEST_LESSON = 30 * DAY
_OLDEST = 40 * DAY  # rows are removed after 30 days; some are a few days late
_SLACK = 3600.0  # by which a row may be later than the clock, which is not written every time


@dataclass(frozen=True, slots=True)
class RecordTime:
    wall: float  # what the machine's clock says
    steady: float  # the sum of all steps, by rules 1, 2 and 4
    added: float = 0.0  # what rule 3 has added to it, without what rule 5 has left out
    owed: float = 0.0  # what rule 3 has still to add
    back: float = 0.0  # how far the clock has gone back, by rule 4
    ahead: float = 0.0  # what is not to be counted again, by rule 5; never more than `back`

    @property
    def time(self) -> float:
        return self.steady + self.added

    def advance(self, wall: float) -> RecordTime:
        """Return the record time when the machine's clock says `wall`."""
        step = wall - self.wall
        if _is_possible(wall) and not _is_possible(self.wall):
            return RecordTime(wall, self.steady, self.added)
        if step < 0:
            left = self.owed + step
            excess = max(0.0, -left)
            ahead = min(self.ahead + excess, _MOST_AHEAD)
            return RecordTime(wall, self.steady, self.added, max(0.0, left), self.back + excess, ahead)
        counted = min(step, _LONGEST_STEP)
        again = min(self.ahead, counted)
        paid = min(self.owed, _CATCH_UP * (counted - again))
        restored = min(self.back - again, step - counted)
        owed, back = min(self.owed - paid + step - counted - restored, _MOST_OWED), self.back - again - restored
        added = self.added + paid - again
        return RecordTime(wall, self.steady + counted, added, owed, back, min(self.ahead - again, back))


def _is_possible(wall: float) -> bool:
    return _FIRST <= wall < _LAST


def read_time(database: Database, wall: float) -> RecordTime:
    """Return the record time now. Nothing is written, so that a read may ask for it."""
    row = database.row(_READ)
    return RecordTime(*row).advance(wall) if row else RecordTime(wall, wall)


def note_time(connection: Connection, wall: float) -> RecordTime:
    """Return the record time now, and write it down within a transaction if the table is too far behind."""
    row = connection.execute(_READ).fetchone()
    last = RecordTime(*row) if row else RecordTime(wall, wall)
    now = last.advance(wall)
    if row is None or not 0 <= wall - last.wall < _NOTED_SECONDS:
        connection.execute(
            "INSERT OR REPLACE INTO clock (scope, one, wall, steady, added, owed, back, ahead)"
            " VALUES ('', 1, ?, ?, ?, ?, ?, ?)",
            (now.wall, now.steady, now.added, now.owed, now.back, now.ahead),
        )
    return now


@dataclass(frozen=True, slots=True)
class Bounds:
    bytes: int
    days: float


def sweep(connection: Connection, blobs: Blobs, bytes_limit: int, oldest: float, now: float) -> None:
    """Remove rows last used before `oldest`, those past the limit, and the bytes that no row names any more.

    Both times are record time.
    """
    connection.execute("DELETE FROM lessons WHERE expires <= ?", (now,))
    gone = connection.execute(_PAST_BOUNDS, (oldest, bytes_limit)).fetchall()
    for table, row, _ in gone:
        connection.execute(f"DELETE FROM {table} WHERE rowid = ?", (row,))  # noqa: S608, one of TABLES
    drop_unnamed(connection, blobs, {blob for *_, blob in gone if blob})


def drop_unnamed(connection: Connection, blobs: Blobs, names: Iterable[str]) -> None:
    """Remove those of these bytes that no row names.

    They go within the transaction: a process that keeps the same image meanwhile finds them missing and writes them
    again. A crash in between leaves rows without bytes, which read as not there.
    """
    for sha256 in find_unnamed(connection, names):
        blobs.drop(sha256)


def find_unnamed(connection: Connection, names: Iterable[str]) -> list[str]:
    """Return those of these bytes that no row names."""
    return [sha256 for sha256 in names if connection.execute(_NAMED, (sha256,)).fetchone() is None]


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


def clamp_values(connection: Connection, wall: float) -> float:
    """Bring every value of a repaired database into its bounds, and return the record time.

    A row that can be read may still hold garbage. One image of 2^61 bytes would push every other row out of the record,
    one clock that is far ahead would expire all of them, and the sum of some large numbers is an error in SQLite.

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
    row = connection.execute(_READ).fetchone()
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
