"""Receipts: what was done to requests, the newest so many; and which clients leave images out by themselves.

Nobody waits for them. They gather in memory and are written together, a moment after the first; what a crash takes
is that moment.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Sequence
from sqlite3 import Connection

from sightline.model.receipt import Filed, Line, Omission, Receipt
from sightline.store.database import Database, Row

MOST = 10_000  # receipts that are kept
_ROW_BYTES = 256  # that a row takes beside its texts
_SECONDS = 0.5  # in which they gather
_COLUMNS = "wire, upstream, model, labels, sights, notes, at"

Gathered = tuple[str, Filed | Omission]
"""One of them, and its scope."""


class Gathering:
    """What is still to be written. A disk that does not take it costs the oldest of them, and no memory."""

    def __init__(self, write: Callable[[Sequence[Gathered]], None]) -> None:
        self._write = write
        self._waiting: deque[Gathered] = deque(maxlen=MOST)
        self._lock = threading.Lock()
        self._writing = threading.Lock()  # whoever has it sees to it that what was taken is written
        self._timer: threading.Timer | None = None

    def add(self, scope: str, one: Filed | Omission) -> None:
        with self._lock:
            self._waiting.append((scope, one))
            if self._timer is None:
                self._wait()

    def flush(self) -> None:
        """What is there is written when this returns, whoever had begun to."""
        with self._writing:
            if found := self.taken():
                self._write(found)

    def taken(self) -> Sequence[Gathered]:
        """All of it; from now on it is nobody's but the caller's."""
        with self._lock:
            found = tuple(self._waiting)
            self._waiting.clear()
        return found

    def end(self) -> None:
        """The last of it; nobody writes behind the back of whoever closes the record."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
        self.flush()

    def _wait(self) -> None:
        self._timer = threading.Timer(_SECONDS, self._in_time)
        self._timer.daemon = True
        self._timer.start()

    def _in_time(self) -> None:
        self.flush()
        with self._lock:
            self._timer = None
            if self._waiting:  # it came while that was written: one thread at a time will do
                self._wait()


def keep(connection: Connection, found: Sequence[Gathered], now: float) -> int:
    """Write them all, and let go of what is too many; gives the bytes that they take. `now` is record time."""
    weight = 0
    for scope, one in found:
        if isinstance(one, Omission):
            row = (one.client, one.model, _ROW_BYTES, now, one.at)
            connection.execute("INSERT OR REPLACE INTO omissions VALUES ('', ?, ?, ?, ?, ?)", row)
            weight += _ROW_BYTES
        else:
            weight += _keep_receipt(connection, scope, one, now)
    connection.execute("DELETE FROM receipts WHERE rowid <= (SELECT MAX(rowid) FROM receipts) - ?", (MOST,))
    return weight


def _keep_receipt(connection: Connection, scope: str, filed: Filed, now: float) -> int:
    receipt = filed.receipt
    texts = tuple(json.dumps(each) for each in (filed.labels, [_row(line) for line in receipt.sights], receipt.notes))
    weight = _ROW_BYTES + sum(map(len, texts))
    connection.execute(
        f"INSERT INTO receipts (scope, bytes, used, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
        (scope, weight, now, filed.wire, receipt.upstream, receipt.model, *texts, filed.at),
    )
    return weight


def read(database: Database, most: int) -> Sequence[Filed]:
    rows = database.rows(f"SELECT {_COLUMNS} FROM receipts ORDER BY rowid DESC LIMIT ?", most)  # noqa: S608
    return tuple(_filed(row) for row in rows)


def omissions(database: Database) -> Sequence[Omission]:
    rows = database.rows("SELECT client, model, at FROM omissions ORDER BY client, model")
    return tuple(Omission(client, model, at) for client, model, at in rows)


def forget(connection: Connection) -> None:
    """They name no image, but say when there were some."""
    connection.execute("DELETE FROM receipts")
    connection.execute("DELETE FROM omissions")


def _row(line: Line) -> list[str | int | None]:
    return [line.place, line.fate, line.why, line.before, line.after]


def _filed(row: Row) -> Filed:
    wire, upstream, model, labels, sights, notes, at = row
    lines = tuple(Line(*each) for each in json.loads(sights))
    receipt = Receipt(upstream, model, lines, tuple(json.loads(notes)))
    return Filed(receipt, wire, tuple((name, value) for name, value in json.loads(labels)), at)
