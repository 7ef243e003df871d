"""How large and how old the record may become: what was used least recently goes first."""

from __future__ import annotations

from dataclasses import dataclass
from sqlite3 import Connection

from sightline.store.database import Database
from sightline.store.files import Blobs


@dataclass(frozen=True, slots=True)
class Bounds:
    bytes: int
    days: float


TABLES = ("images", "descriptions", "perceptions")  # what is bounded; each has `used` and `bytes`

_PAST_LIMIT = """
    WITH rows AS (
        SELECT 'images' AS kind, rowid AS id, used, bytes FROM images
        UNION ALL SELECT 'descriptions', rowid, used, bytes FROM descriptions
        UNION ALL SELECT 'perceptions', rowid, used, bytes FROM perceptions),
    summed AS (
        SELECT kind, id, SUM(bytes) OVER (ORDER BY used DESC, kind, id ROWS UNBOUNDED PRECEDING) AS total
        FROM rows)
    SELECT kind, id FROM summed WHERE total > ?"""
_NAMED = "SELECT sha256 FROM images UNION SELECT pixels FROM perceptions"


def sweep(database: Database, blobs: Blobs, bytes_limit: int, oldest: float, now: float) -> None:
    """Rows last used before `oldest`, then those past the limit, and at last the bytes that nobody names."""
    with database.writing() as connection:
        connection.execute("DELETE FROM lessons WHERE expires <= ?", (now,))
        for table in TABLES:
            connection.execute(f"DELETE FROM {table} WHERE used < ?", (oldest,))  # noqa: S608, one of TABLES
        for table, row in connection.execute(_PAST_LIMIT, (bytes_limit,)).fetchall():
            connection.execute(f"DELETE FROM {table} WHERE rowid = ?", (row,))  # noqa: S608, one of TABLES
        drop_unnamed(connection, blobs)


def drop_unnamed(connection: Connection, blobs: Blobs) -> None:
    """The bytes go within the transaction: whoever keeps the same image meanwhile finds them missing and writes
    them again. A crash in between leaves rows without bytes, which read as not there.
    """
    named = {sha256 for (sha256,) in connection.execute(_NAMED)}
    for sha256 in blobs.names():
        if sha256 not in named:
            blobs.drop(sha256)
