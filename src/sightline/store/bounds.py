"""How large and how old the record may become: what was used least recently goes first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from sqlite3 import Connection

from sightline.store.files import Blobs


@dataclass(frozen=True, slots=True)
class Bounds:
    bytes: int
    days: float


# What is bounded; each has `used` and `bytes`.
TABLES = ("images", "descriptions", "perceptions", "moments", "entries", "tellings", "receipts", "omissions", "legs")

_PAST_BOUNDS = """
    WITH rows AS (
        SELECT 'images' AS kind, rowid AS id, used, bytes, sha256 AS blob FROM images
        UNION ALL SELECT 'descriptions', rowid, used, bytes, '' FROM descriptions
        UNION ALL SELECT 'perceptions', rowid, used, bytes, pixels FROM perceptions
        UNION ALL SELECT 'moments', rowid, used, bytes, '' FROM moments
        UNION ALL SELECT 'entries', rowid, used, bytes, '' FROM entries
        UNION ALL SELECT 'tellings', rowid, used, bytes, '' FROM tellings
        UNION ALL SELECT 'receipts', rowid, used, bytes, '' FROM receipts
        UNION ALL SELECT 'omissions', rowid, used, bytes, '' FROM omissions
        UNION ALL SELECT 'legs', rowid, used, bytes, '' FROM legs),
    summed AS (
        SELECT *, SUM(bytes) OVER (ORDER BY used DESC, kind, id ROWS UNBOUNDED PRECEDING) AS total
        FROM rows)
    SELECT kind, id, blob FROM summed WHERE used < ? OR total > ?"""
NAMES = "SELECT sha256 FROM images UNION SELECT pixels FROM perceptions"
_NAMED = "SELECT 1 FROM images WHERE sha256 = ?1 UNION ALL SELECT 1 FROM perceptions WHERE pixels = ?1"


def sweep(
    connection: Connection, blobs: Blobs, bytes_limit: int, oldest: float, now: float, *, everything: bool = False
) -> None:
    """Remove rows last used before `oldest`, those past the limit, and the bytes that no row names any more.

    Both times are record time. With `everything` also bytes that no row ever named, which a crash has left: that means
    to list all there are.
    """
    connection.execute("DELETE FROM lessons WHERE expires <= ?", (now,))
    gone = connection.execute(_PAST_BOUNDS, (oldest, bytes_limit)).fetchall()
    for table, row, _ in gone:
        connection.execute(f"DELETE FROM {table} WHERE rowid = ?", (row,))  # noqa: S608, one of TABLES
    drop_unnamed(connection, blobs, blobs.names() if everything else {blob for *_, blob in gone if blob})


def drop_unnamed(connection: Connection, blobs: Blobs, names: Iterable[str]) -> None:
    """Of these, what no row names. The bytes go within the transaction: whoever keeps the same image meanwhile finds
    them missing and writes them again. A crash in between leaves rows without bytes, which read as not there.
    """
    for sha256 in names:
        if connection.execute(_NAMED, (sha256,)).fetchone() is None:
            blobs.drop(sha256)
