"""The schema of the record in PostgreSQL: the same numbered migrations as in SQLite.

No record in PostgreSQL is older than version 13, so its first migration creates the tables as SQLite's have them after
13 of theirs. From then on, each migration of `migrations` is translated and applied to both. What SQLite keeps beside
its tables is one row of the table `sightline` here: the schema's version, the key of the scopes, the number of changes
that replicas must not miss, and the time of the last sweep.
"""

from __future__ import annotations

import sqlite3

from sightline.store.migrations import MIGRATIONS, ForeignDatabaseError, OtherVersionError, migrate
from sightline.store.postgres_dialect import translate_schema
from sightline.store.record_folder import generate_key
from sightline.store.sql import SqlConnection

FIRST_VERSION = 13
_FIRST_STATEMENTS = (
    """CREATE TABLE sightline (one INTEGER PRIMARY KEY CHECK (one = 1), version BIGINT NOT NULL, key TEXT NOT NULL,
        changes BIGINT NOT NULL DEFAULT 0, swept DOUBLE PRECISION NOT NULL DEFAULT 0)""",
    # What SQLite does by a trigger.
    """ALTER TABLE places ADD CONSTRAINT places_of_no_image
        FOREIGN KEY (scope, sha256) REFERENCES images (scope, sha256) ON DELETE CASCADE""",
)
_TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"


def list_statements(version: int) -> list[str]:
    """Return the statements that bring a schema of a version, 0 for none, to the current one."""
    later = [
        translate_schema(statement)
        for migration in MIGRATIONS[max(version, FIRST_VERSION) :]
        for statement in migration
    ]
    if version:
        return later
    return [*map(translate_schema, _read_first_schema()), *_FIRST_STATEMENTS, *later]


def _read_first_schema() -> list[str]:
    """Return the statements that create SQLite's tables and indexes as they are after the first migrations."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        migrate(connection, FIRST_VERSION)
        found = connection.execute(
            "SELECT sql FROM sqlite_schema WHERE type IN ('table', 'index') AND sql IS NOT NULL ORDER BY rowid"
        )
        return [sql for (sql,) in found]
    finally:
        connection.close()


def read_version(connection: SqlConnection) -> int:
    """Return the version of the schema, 0 if there is none; raise if another program has tables of these names."""
    tables = {name for (name,) in connection.execute(_TABLES)}
    if "sightline" in tables:
        row = connection.execute("SELECT version FROM sightline").fetchone()
        return int(row[0]) if row else 0
    if tables & {"images", "descriptions", "lessons", "consents"}:
        raise ForeignDatabaseError("the database has tables of another program with the same names")
    return 0


def check_schema(connection: SqlConnection) -> int:
    """Return the version of the schema, 0 if there is none; raise if this version of Sightline can't use it."""
    version = read_version(connection)
    if version > len(MIGRATIONS):
        raise OtherVersionError("a newer version of Sightline wrote it")
    if 0 < version < FIRST_VERSION:
        raise ForeignDatabaseError(f"its schema has version {version}, which Sightline never wrote to PostgreSQL")
    return version


def migrate_schema(connection: SqlConnection) -> None:
    """Apply the missing migrations within an exclusive transaction."""
    if (version := check_schema(connection)) == len(MIGRATIONS):
        return
    for statement in list_statements(version):
        connection.execute(statement)
    if version:
        connection.execute("UPDATE sightline SET version = ?", (len(MIGRATIONS),))
    else:
        row = (1, len(MIGRATIONS), generate_key().hex())
        connection.execute("INSERT INTO sightline (one, version, key) VALUES (?, ?, ?)", row)


def read_scope_key(connection: SqlConnection) -> bytes:
    """Return the key for the hashes of credentials."""
    (key,) = connection.execute("SELECT key FROM sightline").fetchone()
    return bytes.fromhex(key)
