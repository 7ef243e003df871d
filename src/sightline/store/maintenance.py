"""What an operator does with a record: its size, garbage collection, and copies: to servers, back, or into a folder.

Rows keep their scopes, which are hashes with the record's key. So an empty record takes over the key of the one that is
copied into it, and a record with rows under another key is refused. Copying again adds only what is missing, so that a
copy that was interrupted can be continued.

Bytes are copied before the rows that name them. Times that are record time are moved by the difference between the two
records' times. If one of the records has a consent and the other a withdrawal, the withdrawal wins.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

from sightline.model.ports import ReportProgress
from sightline.model.refusal import Refusal
from sightline.store.migrations import migrate
from sightline.store.retention import DAY, ORPHAN_SECONDS, RecordBounds, read_record_time
from sightline.store.sql import Row, SqlConnection
from sightline.store.sql_store import SqlStore
from sightline.store.storage import Backend
from sightline.store.sweeps import delete_expired_rows, delete_orphans_in_steps

# Images come before the paths where they were found. Leases and the clock are each record's own.
TABLES = (
    "images", "places", "perceptions", "descriptions", "tellings", "moments", "legs", "lessons", "consents",
    "entries", "receipts", "omissions",
)  # fmt: skip
_BLOB_COLUMNS = {"images": "sha256", "perceptions": "pixels"}
_TIMES = ("used", "expires", "made")  # record time
_STEADY_TIMES = ("asked",)
# Tables whose rows have no key: the columns that tell them apart.
_IDENTITIES = {
    "entries": ("scope", "at", "kind", "images", "seer", "about"),
    "receipts": ("scope", "at", "wire", "upstream", "model", "sights"),
}
_WITHDRAW = """(provider) DO UPDATE SET given = 0, at = excluded.at
    WHERE excluded.given = 0 AND consents.given != 0"""
_BATCH = 200
_MIN_AGE = DAY  # what was used later may belong to a conversation that goes on
_BLOBS_AT_ONCE = 20  # that one transaction checks


@dataclass(slots=True)
class CopyResult:
    copied: dict[str, int] = field(default_factory=dict)  # rows by table
    known: dict[str, int] = field(default_factory=dict)  # rows that were there already
    missing: int = 0  # rows left out, because their bytes are missing


def copy_record(source: SqlStore, target: SqlStore, report: ReportProgress) -> CopyResult | Refusal:
    """Copy everything of a record into another one. Errors of a disk or a server are raised."""
    here, there = source.transactions.backend.database, target.transactions.backend.database
    with here.allow_long_statements(), there.allow_long_statements():
        return _copy_record(source, target, report)


def _copy_record(source: SqlStore, target: SqlStore, report: ReportProgress) -> CopyResult | Refusal:
    source.flush()
    here, there = source.transactions.backend, target.transactions.backend
    if here.key != there.key:
        if has_rows(there):
            what = "the record already has rows of other credentials, which would get mixed up"
            return Refusal("not_permitted", what, "import into an empty record")
        target.transactions.storage.replace_key(here.key)
    copier = _Copier(source, target, report)
    for table in TABLES:
        copier.copy_table(table)
    with target.transactions.begin_exclusive():
        pass  # this tells other replicas
    return copier.result


def has_rows(backend: Backend) -> bool:
    """Return whether a record has rows that belong to a credential."""
    tables = ("images", "descriptions", "perceptions", "moments", "entries", "tellings", "receipts", "legs")
    return any(backend.database.fetch_one(f"SELECT 1 FROM {table} LIMIT 1") for table in tables)  # noqa: S608


@cache
def list_columns(table: str) -> tuple[str, ...]:
    """Return the columns of a table, which are the same in every database."""
    fresh = sqlite3.connect(":memory:", isolation_level=None)
    try:
        migrate(fresh)
        return tuple(name for _, name, *_ in fresh.execute(f"PRAGMA table_info({table})"))
    finally:
        fresh.close()


_ANNOUNCED = ("consents", "lessons", "legs")  # what processes may have cached that there is none


class _Copier:
    """Copies table by table."""

    def __init__(self, source: SqlStore, target: SqlStore, report: ReportProgress) -> None:
        self._source, self._target, self._report = source.transactions.backend, target.transactions.backend, report
        self._old = read_record_time(self._source.database, source.transactions.wall_clock())
        self._new = read_record_time(self._target.database, target.transactions.wall_clock())
        self.result = CopyResult()

    def copy_table(self, table: str) -> None:
        (total,) = self._source.database.fetch_one(f"SELECT COUNT(*) FROM {table}") or (0,)  # noqa: S608
        done, known = 0, self._read_identities(table)
        self.result.copied[table] = self.result.known[table] = 0
        for batch in self._read_batches(table):
            kept = [row for row in batch if self._copy_blob(table, row)]
            self.result.missing += len(batch) - len(kept)
            fresh = [row for row in kept if _identify(table, row) not in known]
            step = _BLOBS_AT_ONCE if table in _BLOB_COLUMNS else _BATCH
            added = sum(self._write(table, fresh[start : start + step]) for start in range(0, len(fresh), step))
            self.result.copied[table] += added
            self.result.known[table] += len(kept) - added
            done += len(batch)
            self._report(f"copying {table}", done, total)

    def _write(self, table: str, rows: list[Row]) -> int:
        """Write rows in one transaction, and return how many are new.

        Their bytes are checked again, because another process may have deleted them before there was a row.
        """
        with self._target.database.begin() as connection:
            if table in _ANNOUNCED:
                self._target.database.announce_change(connection)
            there = [row for row in rows if self._copy_blob(table, row)]
            return sum(self._insert(connection, table, row) for row in there)

    def _read_batches(self, table: str) -> Iterator[list[Row]]:
        columns, last = ", ".join(list_columns(table)), -1
        query = f"SELECT rowid, {columns} FROM {table} WHERE rowid > ? ORDER BY rowid LIMIT {_BATCH}"  # noqa: S608
        while batch := self._source.database.fetch_all(query, last):
            last = batch[-1][0]
            yield [row[1:] for row in batch]

    def _read_identities(self, table: str) -> frozenset[Row]:
        """Return the rows of the target that have no key, by what tells them apart."""
        if table not in _IDENTITIES:
            return frozenset()
        query = f"SELECT {', '.join(_IDENTITIES[table])} FROM {table}"  # noqa: S608
        return frozenset(self._target.database.fetch_all(query))

    def _copy_blob(self, table: str, row: Row) -> bool:
        """Copy the bytes that a row names, and return whether they are there; also true if it names none."""
        if table not in _BLOB_COLUMNS:
            return True
        sha256 = row[list_columns(table).index(_BLOB_COLUMNS[table])]
        if self._target.blobs.confirm(sha256):
            return True
        data = self._source.blobs.read(sha256)
        if data is not None:
            self._target.blobs.write(sha256, data)
        return data is not None

    def _insert(self, connection: SqlConnection, table: str, row: Row) -> int:
        """Write a row unless it is there, and return 1 if it was written."""
        columns = list_columns(table)
        marks = ", ".join("?" * len(columns))
        conflict = _WITHDRAW if table == "consents" else "DO NOTHING"
        statement = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks}) ON CONFLICT {conflict}"  # noqa: S608
        values = [self._move_time(name, value) for name, value in zip(columns, row, strict=True)]
        return connection.execute(statement, values).rowcount

    def _move_time(self, column: str, value: object) -> object:
        if isinstance(value, int | float) and column in _TIMES:
            return value + self._new.time - self._old.time
        if isinstance(value, int | float) and column in _STEADY_TIMES:
            return value + self._new.steady - self._old.steady
        return value


def _identify(table: str, row: Row) -> Row | None:
    if table not in _IDENTITIES:
        return None
    columns = list_columns(table)
    return tuple(row[columns.index(name)] for name in _IDENTITIES[table])


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
    rows = delete_expired_rows(transactions, bounds, _MIN_AGE, lambda done, total: report("deleting rows", done, total))
    with transactions.backend.database.allow_long_statements():
        names = transactions.backend.blobs.list_names(transactions.wall_clock() - ORPHAN_SECONDS)
        blobs = delete_orphans_in_steps(transactions, names, lambda done, total: report("checking images", done, total))
    return GarbageCount(rows, blobs)
