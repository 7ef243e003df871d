"""Rows that no caller waits for, such as receipts: they are written together, in a thread."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence

from sightline.store.sql import SqlConnection
from sightline.store.transactions import Transactions, WriteTransaction, return_on_error

_log = logging.getLogger(__name__)
_DEFERRED_SECONDS = 0.5
MAX_DEFERRED = 10_000

DeferredWrite = Callable[[WriteTransaction], int]
"""A function that writes a row and returns its bytes."""


class WriteBehind:
    """Rows that no caller waits for, written together half a second after the first. A crash loses them.

    If they cannot be written for long, the oldest are dropped.
    """

    def __init__(self, transactions: Transactions, after_write: Callable[[SqlConnection], None]) -> None:
        self.transactions, self._after_write = transactions, after_write
        self._waiting: deque[DeferredWrite] = deque(maxlen=MAX_DEFERRED)
        self._lock = threading.Lock()
        self._flushing = threading.Lock()  # held while rows are written
        self._timer: threading.Timer | None = None

    def add(self, row: DeferredWrite) -> None:
        with self._lock:
            self._waiting.append(row)
            if self._timer is None:
                self._start_timer()

    def flush(self) -> None:
        """Write all rows, and wait for another thread that is writing some."""
        with self._flushing:
            if rows := self.take_all():
                self._write(rows)

    def take_all(self) -> Sequence[DeferredWrite]:
        """Remove and return all rows."""
        with self._lock:
            rows = tuple(self._waiting)
            self._waiting.clear()
        return rows

    def close(self) -> None:
        """Write the last rows, and stop the timer."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
        self.flush()

    @return_on_error(None)
    def _write(self, rows: Sequence[DeferredWrite]) -> None:
        def write(tx: WriteTransaction) -> int:
            size = sum(write_row(tx) for write_row in rows)
            self._after_write(tx.connection)
            return size

        self.transactions.write(write, unsynced=True)

    def _start_timer(self) -> None:
        self._timer = threading.Timer(_DEFERRED_SECONDS, self._flush_on_timer)
        self._timer.daemon = True
        self._timer.start()

    def _flush_on_timer(self) -> None:
        try:
            self.flush()
        except Exception:  # noqa: BLE001, no caller waits for these rows, and others are to be written later
            _log.warning("Rows of the record could not be written.", exc_info=True)
        finally:
            with self._lock:
                self._timer = None
                if self._waiting:  # added meanwhile
                    self._start_timer()
