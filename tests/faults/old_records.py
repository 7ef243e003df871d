"""Records of earlier versions with a row in every table, on disk or on servers, and whether all are there later."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import psycopg

from sightline.store.blobs import FileBlobs
from sightline.store.migrations import MIGRATIONS, migrate
from sightline.store.object_blobs import open_blobs
from sightline.store.postgres_database import FIRST_VERSION, list_statements
from sightline.store.record_folder import BLOBS_NAME, DATABASE_NAME, ensure_key, generate_key
from sightline.store.sql_store import SqlStore
from tests.store.writer import image_of

_IMAGE = image_of("old", 1)
_OWN_TABLES = ("flights", "sqlite_sequence")  # leases, which a migration may drop
_VALUES = {"sha256": _IMAGE.sha256, "image": _IMAGE.sha256, "pixels": _IMAGE.sha256, "one": 1, "images": "[]"}


def create_old_record(words: Sequence[str], version: int) -> None:
    """Create a record as this version of the schema had it; `words` name it as those of `open_store` do."""
    rows = [f"INSERT INTO {table} ({', '.join(row)}) VALUES ({_quote(row)})" for table, row in list_old_rows(version)]
    if len(words) == 1:
        _create_on_disk(Path(words[0]), version, rows)
    else:
        _create_on_servers(words, version, rows)


def list_old_versions(words: Sequence[str]) -> range:
    """Return the versions that a record in this place may have had."""
    return range(1 if len(words) == 1 else FIRST_VERSION, len(MIGRATIONS))


def count_statements(version: int) -> int:
    """Return how many statements bring a record of a version to the current one."""
    return sum(map(len, MIGRATIONS[version:]))


def list_old_rows(version: int) -> Iterator[tuple[str, Mapping[str, object]]]:
    """List a row for every table; images come first, because others refer to them."""
    now = time.time()
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        migrate(database, version)
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        for table in sorted(tables, key=lambda name: name != "images"):
            if table not in _OWN_TABLES:
                columns = database.execute(f"PRAGMA table_info({table})").fetchall()
                yield table, {name: _choose_value(name, kind, now) for _, name, kind, *_ in columns}


def has_old_rows(store: SqlStore, version: int) -> bool:
    """Return whether every row of `create_old_record` is there, once; times may have changed."""
    for table, row in list_old_rows(version):
        present = {name for name, _ in _read_columns(table)}
        kept = {name: value for name, value in row.items() if name in present and not isinstance(value, float)}
        if store.transactions.fetch_all(f"SELECT {', '.join(kept)} FROM {table}") != [tuple(kept.values())]:
            return False
    return True


def _read_columns(table: str) -> list[tuple[str, object]]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        migrate(database)
        return [(name, kind) for _, name, kind, *_ in database.execute(f"PRAGMA table_info({table})")]


def _choose_value(name: str, kind: str, now: float) -> object:
    if name == "expires":
        return now + 86_400
    if kind == "REAL":
        return now if name in ("used", "at", "asked", "made", "wall", "steady") else 0.0
    return _VALUES.get(name, 1 if kind == "INTEGER" else name)


def _quote(row: Mapping[str, object]) -> str:
    return ", ".join(f"'{value}'" if isinstance(value, str) else str(value) for value in row.values())


def _create_on_disk(folder: Path, version: int, rows: Sequence[str]) -> None:
    folder.mkdir(mode=0o700, parents=True)
    ensure_key(folder)
    FileBlobs(folder / BLOBS_NAME).write(_IMAGE.sha256, _IMAGE.data)
    with closing(sqlite3.connect(folder / DATABASE_NAME, isolation_level=None)) as database:
        migrate(database, version)
        for row in rows:
            database.execute(row)


def _create_on_servers(words: Sequence[str], version: int, rows: Sequence[str]) -> None:
    open_blobs(words[1], os.environ).write(_IMAGE.sha256, _IMAGE.data)
    statements = list_statements(0)
    with psycopg.connect(words[0], autocommit=True) as connection:
        for statement in (*statements[: len(statements) - count_statements(version)], *rows):
            connection.execute(statement.encode())
        key = generate_key().hex()
        connection.execute("INSERT INTO sightline (one, version, key) VALUES (1, %s, %s)", (version, key))
