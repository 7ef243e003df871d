"""The schema of the record as a list of migrations. A migration that was released never changes.

Every row has a scope, the keyed hash of the credential that made it. It is empty for rows that concern the whole user:
lessons about models, and consents.
"""

from __future__ import annotations

import sqlite3

# The tables with a column `used` when migration 12 changed it to record time.
_USED_TABLES = "images descriptions perceptions moments entries tellings receipts omissions legs places".split()
_DATED_TABLES = ("entries", "receipts", "omissions")
_ALL_USED = " UNION ALL ".join(f"SELECT used FROM {table}" for table in _USED_TABLES)  # noqa: S608
_FIRST_TABLES = ("images", "descriptions", "lessons", "consents")
_LAST = "(SELECT steady FROM clock)"

# A migration is a tuple of statements; user_version is the number of migrations that were applied.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE images (
            scope TEXT NOT NULL, sha256 TEXT NOT NULL, mime TEXT NOT NULL,
            width INTEGER NOT NULL, height INTEGER NOT NULL, bytes INTEGER NOT NULL, used REAL NOT NULL,
            UNIQUE (scope, sha256))""",
        "CREATE INDEX images_sha256 ON images (sha256)",
        """CREATE TABLE descriptions (
            scope TEXT NOT NULL, sha256 TEXT NOT NULL, seer TEXT NOT NULL, prompt TEXT NOT NULL,
            width INTEGER NOT NULL, height INTEGER NOT NULL, text TEXT NOT NULL, bytes INTEGER NOT NULL,
            used REAL NOT NULL,
            UNIQUE (scope, sha256, seer, prompt))""",
        """CREATE TABLE lessons (
            scope TEXT NOT NULL,
            upstream TEXT NOT NULL, model TEXT NOT NULL, blind INTEGER NOT NULL,
            limits TEXT NOT NULL, why TEXT NOT NULL, expires REAL NOT NULL,
            UNIQUE (upstream, model, blind))""",
        """CREATE TABLE consents (
            scope TEXT NOT NULL, provider TEXT PRIMARY KEY, given INTEGER NOT NULL, at REAL NOT NULL)""",
    ),
    (
        """CREATE TABLE perceptions (
            scope TEXT NOT NULL, id TEXT NOT NULL, result TEXT NOT NULL, words TEXT NOT NULL,
            image TEXT NOT NULL, pixels TEXT NOT NULL, mime TEXT NOT NULL,
            width INTEGER NOT NULL, height INTEGER NOT NULL, bytes INTEGER NOT NULL, used REAL NOT NULL,
            UNIQUE (scope, id))""",
        "CREATE INDEX perceptions_image ON perceptions (image)",
        "CREATE INDEX perceptions_pixels ON perceptions (pixels)",
        "CREATE INDEX descriptions_sha256 ON descriptions (sha256)",
    ),
    (
        """CREATE TABLE moments (
            scope TEXT NOT NULL, name TEXT NOT NULL, cold INTEGER NOT NULL, bytes INTEGER NOT NULL, used REAL NOT NULL,
            UNIQUE (scope, name))""",
    ),
    (  # One row for each thing that was learnt, in JSON: `blind`, `limits`, and `tools` with the name of a wire.
        "ALTER TABLE lessons RENAME TO old_lessons",
        """CREATE TABLE lessons (
            scope TEXT NOT NULL,
            upstream TEXT NOT NULL, model TEXT NOT NULL, about TEXT NOT NULL,
            said TEXT NOT NULL, why TEXT NOT NULL, expires REAL NOT NULL,
            UNIQUE (upstream, model, about))""",
        """INSERT INTO lessons SELECT scope, upstream, model, 'limits', limits, why, expires
            FROM old_lessons WHERE NOT blind""",
        """INSERT INTO lessons SELECT scope, upstream, model, 'blind', 'true', why, expires
            FROM old_lessons WHERE blind""",
        """INSERT OR IGNORE INTO lessons SELECT scope, upstream, model, 'limits', limits, why, expires
            FROM old_lessons WHERE blind AND limits GLOB '*: [0-9]*'""",
        "DROP TABLE old_lessons",
    ),
    (
        """CREATE TABLE entries (
            scope TEXT NOT NULL, kind TEXT NOT NULL, images TEXT NOT NULL, seer TEXT NOT NULL,
            input INTEGER, output INTEGER, cached INTEGER, cost REAL, hit INTEGER NOT NULL, latency INTEGER,
            about TEXT NOT NULL, bytes INTEGER NOT NULL, used REAL NOT NULL)""",
        "CREATE INDEX entries_kind ON entries (kind)",
    ),
    (
        """CREATE TABLE flights (
            scope TEXT NOT NULL, name TEXT NOT NULL, owner TEXT NOT NULL, at REAL NOT NULL, until REAL NOT NULL,
            answer TEXT,
            UNIQUE (scope, name))""",
        "ALTER TABLE entries ADD COLUMN error TEXT NOT NULL DEFAULT ''",
    ),
    (
        """CREATE TABLE tellings (
            scope TEXT NOT NULL, turn TEXT NOT NULL, images TEXT NOT NULL, said TEXT NOT NULL,
            failed INTEGER NOT NULL, during TEXT NOT NULL, bytes INTEGER NOT NULL, used REAL NOT NULL,
            UNIQUE (scope, turn, images))""",
        "CREATE INDEX tellings_during ON tellings (scope, during)",
    ),
    (
        """CREATE TABLE receipts (
            scope TEXT NOT NULL, wire TEXT NOT NULL, upstream TEXT NOT NULL, model TEXT NOT NULL,
            labels TEXT NOT NULL, sights TEXT NOT NULL, notes TEXT NOT NULL,
            bytes INTEGER NOT NULL, used REAL NOT NULL)""",
        """CREATE TABLE omissions (
            scope TEXT NOT NULL, client TEXT NOT NULL, model TEXT NOT NULL, bytes INTEGER NOT NULL, used REAL NOT NULL,
            UNIQUE (client, model))""",
    ),
    (  # The format of coordinates in the text, and the size in which the image was sent; NULL: its own size.
        "ALTER TABLE descriptions ADD COLUMN form TEXT NOT NULL DEFAULT 'none'",
        "ALTER TABLE descriptions ADD COLUMN sent_width INTEGER",
        "ALTER TABLE descriptions ADD COLUMN sent_height INTEGER",
    ),
    (
        """CREATE TABLE legs (
            scope TEXT NOT NULL, name TEXT NOT NULL, visible TEXT NOT NULL, before TEXT NOT NULL, legs TEXT NOT NULL,
            results TEXT, images TEXT NOT NULL, made REAL NOT NULL, bytes INTEGER NOT NULL, used REAL NOT NULL,
            UNIQUE (scope, name, visible, before))""",
    ),
    (  # The trigger does not fire when an image is replaced by itself.
        """CREATE TABLE places (
            scope TEXT NOT NULL, sha256 TEXT NOT NULL, path TEXT NOT NULL, used REAL NOT NULL,
            UNIQUE (scope, sha256, path))""",
        """CREATE TRIGGER places_of_no_image AFTER DELETE ON images BEGIN
            DELETE FROM places WHERE (scope, sha256) = (old.scope, old.sha256); END""",
    ),
    (  # From here on `used` and `expires` are record time, `asked` is steady time (see retention.py), `at` wall time.
        """CREATE TABLE clock (
            scope TEXT NOT NULL, one INTEGER PRIMARY KEY CHECK (one = 1),
            wall REAL NOT NULL, steady REAL NOT NULL, added REAL NOT NULL, owed REAL NOT NULL,
            back REAL NOT NULL)""",
        f"""INSERT INTO clock SELECT '', 1, last, last, 0, 0, 0 FROM (
            SELECT ifnull(MAX(CASE WHEN used <= CAST(strftime('%s', 'now') AS REAL) THEN used END), MAX(used)) AS last
            FROM ({_ALL_USED})) WHERE last IS NOT NULL""",  # noqa: S608, the names above
        *(f"ALTER TABLE {table} ADD COLUMN at REAL NOT NULL DEFAULT 0" for table in _DATED_TABLES),
        *(f"UPDATE {table} SET at = used" for table in _DATED_TABLES),  # noqa: S608
        *(f"UPDATE {table} SET used = {_LAST} WHERE used > {_LAST}" for table in _USED_TABLES),  # noqa: S608
        """UPDATE lessons SET expires = (SELECT steady FROM clock) + 30 * 86400
            WHERE expires > (SELECT steady FROM clock) + 30 * 86400""",
        "ALTER TABLE moments ADD COLUMN asked REAL NOT NULL DEFAULT 0",
        "UPDATE moments SET asked = used",
        "DELETE FROM flights",
    ),
    (  # Rule 5 of retention.py.
        "ALTER TABLE clock ADD COLUMN ahead REAL NOT NULL DEFAULT 0",
    ),
    (  # What the inspector shows: sums for its list in columns, everything else as JSON.
        "ALTER TABLE receipts ADD COLUMN conversation TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE receipts ADD COLUMN client TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE receipts ADD COLUMN turn INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE receipts ADD COLUMN pictures INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE receipts ADD COLUMN tokens_before INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE receipts ADD COLUMN tokens_after INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE receipts ADD COLUMN trace TEXT NOT NULL DEFAULT '{}'",
        """CREATE INDEX receipts_conversation ON receipts
            (conversation, turn, pictures, tokens_before, tokens_after, at, model, client, upstream)""",
    ),
    (  # Tokens of the answer as its provider counted them: input, output, read from the cache, written to it.
        "ALTER TABLE receipts ADD COLUMN usage TEXT NOT NULL DEFAULT '[]'",
    ),
    (  # To keep the newest receipts of each scope.
        "CREATE INDEX receipts_scope ON receipts (scope)",
    ),
)

COLUMNS = {  # that all migrations together create, by table; creating the tables to list them would take 6 ms
    "clock": "scope one wall steady added owed back ahead",
    "consents": "scope provider given at",
    "descriptions": "scope sha256 seer prompt width height text bytes used form sent_width sent_height",
    "entries": "scope kind images seer input output cached cost hit latency about bytes used error at",
    "flights": "scope name owner at until answer",
    "images": "scope sha256 mime width height bytes used",
    "legs": "scope name visible before legs results images made bytes used",
    "lessons": "scope upstream model about said why expires",
    "moments": "scope name cold bytes used asked",
    "omissions": "scope client model bytes used at",
    "perceptions": "scope id result words image pixels mime width height bytes used",
    "places": "scope sha256 path used",
    "receipts": "scope wire upstream model labels sights notes bytes used at"
    " conversation client turn pictures tokens_before tokens_after trace usage",
    "tellings": "scope turn images said failed during bytes used",
}


class OtherVersionError(sqlite3.DatabaseError):
    """Another version of Sightline wrote the database, and this one cannot use it."""


class ForeignDatabaseError(OtherVersionError):
    """Another program wrote the database."""


def migrate(connection: sqlite3.Connection, target: int = len(MIGRATIONS)) -> None:
    """Apply the missing migrations, all or none, even if other processes open the same file.

    `target`: the number of migrations, to create a database like that of an earlier version.
    """
    if read_version(connection) == target:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        check_origin(connection)
        version = read_version(connection)  # another process may have applied them meanwhile
        if version > len(MIGRATIONS):
            raise OtherVersionError("a newer version of Sightline wrote it")
        for migration in MIGRATIONS[version:target]:
            for statement in migration:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {target}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def check_origin(connection: sqlite3.Connection) -> None:
    """Raise if the database has tables, but none of those that the first migration creates."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    if tables and tables.isdisjoint(_FIRST_TABLES):
        raise ForeignDatabaseError("record.sqlite is a database of another program")


def check_version(connection: sqlite3.Connection) -> None:
    """Raise unless exactly the known migrations were applied."""
    check_origin(connection)
    if read_version(connection) != len(MIGRATIONS):
        raise OtherVersionError("another version of Sightline wrote it")


def read_version(connection: sqlite3.Connection) -> int:
    """Return how many migrations were applied."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
