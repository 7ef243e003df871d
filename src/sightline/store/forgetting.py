"""Forgetting: an image with all that was ever said of it, or everything."""

from __future__ import annotations

from collections.abc import Sequence
from sqlite3 import Connection

from sightline.store import entries, legs, receipts, tellings
from sightline.store.bounds import drop_unnamed
from sightline.store.database import Database
from sightline.store.files import Blobs
from sightline.store.images import BEYOND_HEX

_EVERY_NAME = (
    "SELECT sha256 AS name FROM images UNION SELECT sha256 FROM descriptions"
    " UNION SELECT image FROM perceptions UNION SELECT pixels FROM perceptions"
    " UNION SELECT json_each.value FROM entries, json_each(entries.images)"
    " UNION SELECT images FROM tellings WHERE NOT instr(images, ' ')"
)


def remembered(database: Database, prefix: str) -> Sequence[str]:
    """The images of which anything is known and whose names begin so, two of them at the most."""
    rows = database.rows(
        f"SELECT name FROM ({_EVERY_NAME}) WHERE name >= ? AND name < ? ORDER BY name LIMIT 2",  # noqa: S608
        *(prefix, prefix + BEYOND_HEX),
    )
    return tuple(name for (name,) in rows)


def forget(connection: Connection, blobs: Blobs, sha256: str | None) -> int:
    """One image, or, for None, all; gives how many there were."""
    known = connection.execute(_EVERY_NAME).fetchall()
    chosen = [name for name in known if sha256 in (None, *name)]
    pixels = connection.execute("SELECT DISTINCT pixels FROM perceptions WHERE image = ?", (sha256,)).fetchall()
    connection.executemany("DELETE FROM images WHERE sha256 = ?", chosen)
    connection.executemany("DELETE FROM descriptions WHERE sha256 = ?", chosen)
    connection.executemany("DELETE FROM perceptions WHERE ? IN (image, pixels)", chosen)
    if sha256 is None:  # what the conversations about them were is no secret to those who can guess their words
        connection.execute("DELETE FROM moments")
        receipts.forget(connection)
    entries.forget(connection, sha256)
    tellings.forget(connection, sha256)
    legs.forget(connection, sha256)
    connection.execute("DELETE FROM flights")  # what came of them, whatever they were about
    named = list(blobs.names()) if sha256 is None else [sha256, *(name for (name,) in pixels)]
    drop_unnamed(connection, blobs, named)
    blobs.settle(named)
    return len(chosen)
