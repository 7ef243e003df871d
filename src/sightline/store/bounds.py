"""How large and how old the record may become: what was used least recently goes first."""

from __future__ import annotations

from dataclasses import dataclass

from sightline.store.database import Database
from sightline.store.files import Blobs


@dataclass(frozen=True, slots=True)
class Bounds:
    bytes: int
    days: float


_PAST_LIMIT = """
    WITH rows AS (
        SELECT 'images' AS kind, rowid AS id, used, bytes FROM images
        UNION ALL SELECT 'descriptions', rowid, used, bytes FROM descriptions),
    summed AS (
        SELECT kind, id, SUM(bytes) OVER (ORDER BY used DESC, kind, id ROWS UNBOUNDED PRECEDING) AS total
        FROM rows)
    SELECT kind, id FROM summed WHERE total > ?"""


def sweep(database: Database, blobs: Blobs, bytes_limit: int, oldest: float, now: float) -> None:
    """Rows last used before `oldest`, then those past the limit, and at last the bytes that nobody names.

    The bytes go within the transaction: whoever keeps the same image meanwhile finds them missing and writes
    them again. A crash in between leaves rows without bytes, which read as not there.
    """
    with database.writing() as connection:
        connection.execute("DELETE FROM images WHERE used < ?", (oldest,))
        connection.execute("DELETE FROM descriptions WHERE used < ?", (oldest,))
        connection.execute("DELETE FROM lessons WHERE expires <= ?", (now,))
        past: dict[str, list[tuple[int]]] = {"images": [], "descriptions": []}
        for kind, row in connection.execute(_PAST_LIMIT, (bytes_limit,)):
            past[kind].append((row,))
        connection.executemany("DELETE FROM images WHERE rowid = ?", past["images"])
        connection.executemany("DELETE FROM descriptions WHERE rowid = ?", past["descriptions"])
        named = {sha256 for (sha256,) in connection.execute("SELECT DISTINCT sha256 FROM images")}
        for sha256 in blobs.names():
            if sha256 not in named:
                blobs.drop(sha256)
