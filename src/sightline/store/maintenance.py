"""How large a record is, and deleting what it need not keep."""

from __future__ import annotations

from dataclasses import dataclass

from sightline.model.ports import ReportProgress
from sightline.store.record_copy import TABLES
from sightline.store.retention import DAY, ORPHAN_SECONDS, RecordBounds
from sightline.store.sql_store import SqlStore

_MIN_AGE = DAY  # what was used later may belong to a conversation that goes on


@dataclass(frozen=True, slots=True)
class RecordStats:
    rows: dict[str, int]  # by table
    images: int  # different ones, in all scopes
    image_bytes: int
    scopes: int  # of images


@dataclass(frozen=True, slots=True)
class GarbageCount:
    rows: int
    blobs: int  # that no row named


def read_stats(store: SqlStore) -> RecordStats:
    """Return how large a record is. Errors of a disk or a server are raised."""
    with store.transactions.backend.database.allow_long_statements():
        return _count_rows(store)


def _count_rows(store: SqlStore) -> RecordStats:
    store.flush()
    fetch = store.transactions.fetch_all
    rows = {table: int(fetch(f"SELECT COUNT(*) FROM {table}")[0][0]) for table in TABLES}  # noqa: S608
    query = "SELECT COUNT(*), SUM(bytes) FROM (SELECT DISTINCT sha256, bytes FROM images) AS distinct_images"
    count, size = fetch(query)[0]
    (scopes,) = fetch("SELECT COUNT(DISTINCT scope) FROM images")[0]
    return RecordStats(rows, int(count), int(size or 0), int(scopes))


def collect_garbage(store: SqlStore, bounds: RecordBounds, report: ReportProgress) -> GarbageCount:
    """Delete what is older or more than the bounds, and bytes that no row names.

    What was used or stored in the last day stays, whatever the bounds are. Errors of a disk or a server are raised.
    """
    transactions = store.transactions
    rows = transactions.delete_expired(bounds, _MIN_AGE, lambda done, total: report("deleting rows", done, total))
    with transactions.backend.database.allow_long_statements():
        names = transactions.backend.blobs.list_names(transactions.wall_clock() - ORPHAN_SECONDS)
        blobs = transactions.delete_unreferenced(names, lambda done, total: report("checking images", done, total))
    return GarbageCount(rows, blobs)
