"""Record time: how old rows are, whatever the machine's clock does.

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

from dataclasses import dataclass
from sqlite3 import Connection

from sightline.store.database import Database

DAY = 86400.0
_LONGEST_STEP = DAY
_CATCH_UP = 7.0
_MOST_OWED = 30 * DAY
_MOST_AHEAD = 30 * DAY
_FIRST, _LAST = 1_704_067_200.0, 4_102_444_800.0  # the years 2024 to 2099
_NOTED_SECONDS = 10.0  # how far the table may be behind; a lease lasts that much longer where the clock goes back
_READ = "SELECT wall, steady, added, owed, back, ahead FROM clock"


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
