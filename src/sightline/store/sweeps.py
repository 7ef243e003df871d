"""Sweeps: what is too old or too much is deleted, and so are bytes that no row names.

Rows are deleted in several transactions, so that none blocks other processes for long.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path

from sightline.store.blobs import Blobs, FileBlobs
from sightline.store.record_folder import BLOBS_SUFFIX, choose_damaged_path, delete_damaged_files
from sightline.store.retention import DAY, RecordBounds, delete_ended_rows, delete_rows, find_expired_rows, find_orphans
from sightline.store.sql import SqlConnection
from sightline.store.transactions import Transactions

_log = logging.getLogger(__name__)
_ROWS_FOUND = 10_000  # at once
_ROWS_IN_SWEEP = 200  # that one transaction deletes
_ORPHANS_AT_ONCE = 50

ReportCount = Callable[[int, int], None]
"""Gets how many are done, and how many are known."""


def sweep(transactions: Transactions, *, include_orphans: bool = False) -> None:
    """Delete what is too old or too much; with `include_orphans`, also move aside the blobs that no row names."""
    with transactions.log_errors():
        bounds = transactions.backend.bounds  # a sweep leaves free what is written until the next one
        delete_expired_rows(transactions, RecordBounds(bounds.bytes - transactions.bytes_between_sweeps, bounds.days))
        if include_orphans and (folder := transactions.storage.folder):
            with transactions.begin() as tx:
                move_orphans(tx.connection, tx.backend.blobs, folder, tx.now.time)
                delete_damaged_files(folder, tx.now.time - tx.backend.bounds.days * DAY)


def delete_expired_rows(
    transactions: Transactions,
    bounds: RecordBounds,
    min_age: float = 0.0,
    report: ReportCount = lambda done, total: None,
) -> int:
    """Delete what is too old or too much, and return how many rows.

    Those that were used since they were found stay, and all that were used in the last `min_age` seconds.
    """
    with transactions.backend.database.allow_long_statements():
        transactions.write_last_uses()
        with transactions.begin() as tx:
            delete_ended_rows(tx.connection, tx.now)
        oldest, newest = tx.now.time - bounds.days * DAY, tx.now.time - min_age
        done = total = deleted = 0
        while expired := find_expired_rows(transactions.backend.database, bounds.bytes, oldest, newest, _ROWS_FOUND):
            before, total = deleted, total + len(expired)
            for start in range(0, len(expired), _ROWS_IN_SWEEP):
                some = expired[start : start + _ROWS_IN_SWEEP]
                with transactions.begin_exclusive() as tx:
                    count, blobs = delete_rows(tx.connection, some)
                    delete_orphans(tx.connection, tx.backend.blobs, blobs)
                done, deleted = done + len(some), deleted + count
                report(done, total)
            if deleted == before:  # all were used meanwhile
                break
        return deleted


def delete_orphans_in_steps(
    transactions: Transactions, names: Iterable[str], report: ReportCount = lambda done, total: None
) -> int:
    """Delete those of these blobs that no row names, in several transactions, and return how many."""
    ordered, deleted = sorted(names), 0
    for start in range(0, len(ordered), _ORPHANS_AT_ONCE):
        with transactions.begin() as tx:  # most have rows, and don't need to block anyone
            orphans = find_orphans(tx.connection, ordered[start : start + _ORPHANS_AT_ONCE])
        if orphans:
            with transactions.begin_exclusive() as tx:
                deleted += delete_orphans(tx.connection, tx.backend.blobs, orphans)
        report(min(start + _ORPHANS_AT_ONCE, len(ordered)), len(ordered))
    return deleted


def delete_orphans(connection: SqlConnection, blobs: Blobs, names: Iterable[str]) -> int:
    """Delete those of these blobs that no row names, and return how many.

    This happens within the transaction: a process that stores the same image meanwhile finds it missing and writes it
    again. A crash in between leaves rows without bytes, which read as absent.
    """
    orphans = find_orphans(connection, names)
    if orphans:
        blobs.delete(orphans)
    return len(orphans)


def move_orphans(connection: SqlConnection, blobs: Blobs, folder: Path, now: float) -> None:
    """Move the blobs that no row names aside. They expire there, and the next `forget` deletes them.

    A crash leaves one for each image that was being written. But the database may also be older than the blobs, such as
    a backup that was restored without them, and then they may be all that is left of these images.
    """
    orphans = find_orphans(connection, blobs.list_names())
    if not orphans or not isinstance(blobs, FileBlobs):  # in memory, no other program can have left any
        return
    aside = choose_damaged_path(folder, int(now))
    aside = aside.with_name(f"{aside.name}{BLOBS_SUFFIX}")
    for name in orphans:
        blobs.move(name, aside)
    _log.warning(
        "%d of the images have no rows in the record: a program was killed, or the database is older than they"
        " are; they were moved to %s",
        *(len(orphans), aside),
    )
