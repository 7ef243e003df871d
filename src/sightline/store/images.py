"""Images: a row for each in the scope that brought it, and its bytes beside."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from sqlite3 import Connection

from sightline.model.geometry import Size
from sightline.model.image import Image
from sightline.store.database import Database, Row
from sightline.store.files import Blobs

BEYOND_HEX = "g"  # no hexadecimal digit comes after it: a prefix with it behind is past all that begin so


def used(database: Database, scope: str, sha256: str) -> float | None:
    """When it was last used; None: it is not there."""
    row = database.row("SELECT used FROM images WHERE (scope, sha256) = (?, ?)", scope, sha256)
    return row[0] if row else None


def keep(connection: Connection, scope: str, image: Image, now: float) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO images VALUES (?, ?, ?, ?, ?, ?, ?)",
        (scope, image.sha256, image.mime, image.size.width, image.size.height, len(image.data), now),
    )


def read(database: Database, blobs: Blobs, scope: str | None, sha256: str) -> tuple[Row, Image] | None:
    """The row's number and age, and the image; None for a scope: of any."""
    row = database.row(
        "SELECT rowid, used, mime, width, height FROM images WHERE sha256 = ? AND scope = ifnull(?, scope)",
        *(sha256, scope),
    )
    data = blobs.read(sha256) if row else None
    if row is None or data is None:
        return None
    number, used, mime, width, height = row
    return (number, used), Image(sha256, mime, Size(width, height), data)


def held(database: Database, blobs: Blobs, scope: str, names: Collection[str]) -> list[Row]:
    """Number, age and name of those that are there, with their bytes."""
    rows = database.rows(
        "SELECT rowid, used, sha256 FROM images WHERE scope = ? AND sha256 IN (SELECT value FROM json_each(?))",
        *(scope, json.dumps(list(names))),
    )
    return [row for row in rows if blobs.holds(row[2])]


def by_prefix(database: Database, scope: str | None, prefix: str) -> Sequence[str]:
    """The names that begin so, two of them at the most: whether there is one, or not only one."""
    rows = database.rows(
        "SELECT DISTINCT sha256 FROM images WHERE sha256 >= ? AND sha256 < ? AND scope = ifnull(?, scope)"
        " ORDER BY sha256 LIMIT 2",
        *(prefix, prefix + BEYOND_HEX, scope),
    )
    return tuple(sha256 for (sha256,) in rows)
