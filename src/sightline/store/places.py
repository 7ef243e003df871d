"""Places: where images were found. They are forgotten with their images, and name none that is not there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from sqlite3 import Connection

from sightline.model.geometry import Size
from sightline.model.image import Kept
from sightline.store.database import Database, Row

_MOST = 8  # places of one image: a file can be copied without end

_FOUND_IN = """
    SELECT sha256, mime, width, height, images.bytes, path, MAX(places.used) AS latest
    FROM places JOIN images USING (scope, sha256)
    WHERE scope = ifnull(?, scope) AND ({}) GROUP BY sha256 ORDER BY latest DESC, sha256 LIMIT ?"""
_ALL = """
    SELECT sha256, mime, width, height, bytes, ifnull((
        SELECT path FROM places WHERE (places.scope, places.sha256) = (images.scope, images.sha256)
        ORDER BY places.used DESC LIMIT 1), ''), MAX(used) AS latest
    FROM images WHERE scope = ifnull(?, scope) GROUP BY sha256 ORDER BY latest DESC, sha256 LIMIT ?"""


def used(database: Database, scope: str, sha256: str, path: str) -> float | None:
    """When an image was last found there; None: it was not."""
    row = database.row("SELECT used FROM places WHERE (scope, sha256, path) = (?, ?, ?)", scope, sha256, path)
    return row[0] if row else None


def keep(connection: Connection, scope: str, sha256: str, path: str, now: float) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO places SELECT scope, sha256, ?, ? FROM images WHERE (scope, sha256) = (?, ?)",
        (path, now, scope, sha256),
    )
    connection.execute(
        "DELETE FROM places WHERE (scope, sha256) = (?1, ?2) AND rowid NOT IN (SELECT rowid FROM places"
        " WHERE (scope, sha256) = (?1, ?2) ORDER BY used DESC, rowid DESC LIMIT ?3)",
        (scope, sha256, _MOST),
    )


def images(database: Database, scope: str | None, folders: Sequence[str] | None, most: int) -> Sequence[Kept]:
    """The newest first; None of `folders`: wherever they were found, or by whatever way they came."""
    if folders is None:
        return tuple(map(_kept, database.rows(_ALL, scope, most)))
    if not folders:
        return ()
    within = " OR ".join(["instr(path, ?) = 1"] * len(folders))
    starts = [folder.rstrip(os.sep) + os.sep for folder in folders]
    return tuple(map(_kept, database.rows(_FOUND_IN.format(within), scope, *starts, most)))


def _kept(row: Row) -> Kept:
    sha256, mime, width, height, size, path, _ = row
    return Kept(sha256, mime, Size(width, height), size, path)
