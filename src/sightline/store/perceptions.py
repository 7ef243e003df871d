"""Perceptions: views of images that were made, their pixels beside."""

from __future__ import annotations

from sqlite3 import Connection

from sightline.model.geometry import Size
from sightline.model.image import Image
from sightline.model.records import Perception
from sightline.store.database import Database, Row
from sightline.store.files import Blobs


def used(database: Database, scope: str, perception: Perception) -> float | None:
    """When it was last used; None: it is not there, or was another then."""
    row = database.row(
        "SELECT used FROM perceptions WHERE (scope, id, pixels, words) = (?, ?, ?, ?)",
        *(scope, perception.id, perception.pixels.sha256, perception.words),
    )
    return row[0] if row else None


def keep(connection: Connection, scope: str, perception: Perception, now: float) -> None:
    pixels = perception.pixels
    # The pixels count here too, even where they are the image's own: they stay as long as either row does.
    weight = len(perception.result) + len(perception.words) + len(pixels.data)
    about = (scope, perception.id, perception.result, perception.words, perception.image)
    connection.execute(
        "INSERT OR REPLACE INTO perceptions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*about, pixels.sha256, pixels.mime, pixels.size.width, pixels.size.height, weight, now),
    )


def read(database: Database, blobs: Blobs, scope: str, perception_id: str) -> tuple[Row, Perception] | None:
    """The row's number and age, and the perception."""
    row = database.row(
        "SELECT rowid, used, pixels, mime, width, height, result, image, words FROM perceptions"
        " WHERE (scope, id) = (?, ?)",
        *(scope, perception_id),
    )
    data = blobs.read(row[2]) if row else None
    if row is None or data is None:
        return None
    number, used, sha256, mime, width, height, result, image, words = row
    return (number, used), Perception(result, image, Image(sha256, mime, Size(width, height), data), words)
