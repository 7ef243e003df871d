"""Rows that are written by a timer: a row that can't be written doesn't stop the timer."""

from __future__ import annotations

import logging
import time

import pytest

from sightline.store import transactions
from sightline.store.retention import RecordBounds
from sightline.store.storage import Storage
from sightline.store.sweeps import sweep
from sightline.store.transactions import Transactions, WriteBehind, WriteTransaction
from tests.requirements import requirement
from tests.waiting import try_again


def wait_until_written(written: list[str], count: int) -> None:
    for _ in try_again(20.0):
        if len(written) == count:
            return
        time.sleep(0.01)


@requirement("record.deferred.error")
def test_rows_are_still_written_after_one_that_failed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "sightline.store")
    monkeypatch.setattr(transactions, "_DEFERRED_SECONDS", 0.01)
    storage = Storage.open_in_memory(RecordBounds(1 << 20, 30.0), time.time)
    written: list[str] = []
    deferred = WriteBehind(Transactions(storage, time.time, sweep))

    def fail(tx: WriteTransaction) -> int:
        written.append("failed")
        raise ValueError("a bug")

    def write(tx: WriteTransaction) -> int:
        written.append("written")
        return 1

    deferred.add(fail)
    wait_until_written(written, 1)
    wait_for_log(caplog)
    deferred.add(write)
    wait_until_written(written, 2)
    assert written == ["failed", "written"]
    deferred.close()
    storage.close()


def wait_for_log(caplog: pytest.LogCaptureFixture) -> None:
    for _ in try_again(20.0):
        if any("could not be written" in record.getMessage() for record in caplog.records):
            return
        time.sleep(0.01)
