"""Descriptions: what a seer has said of an image, by what it was told and asked."""

from __future__ import annotations

from sqlite3 import Connection

from sightline.model.facts import Description
from sightline.model.geometry import Size
from sightline.store.database import Database, Row


def keep(connection: Connection, scope: str, description: Description, prompt: str, now: float) -> int:
    """Write one; gives the bytes that it takes."""
    key = (scope, description.sha256, description.seer, prompt)
    weight = len(description.text.encode())
    size, sent = description.size, description.sent
    sides = (sent.width, sent.height) if sent else (None, None)
    connection.execute(
        "INSERT OR REPLACE INTO descriptions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*key, size.width, size.height, description.text, weight, now, description.form, *sides),
    )
    return weight


def read(database: Database, scope: str, sha256: str, seer: str, prompt: str) -> tuple[Row, Description] | None:
    """The row's number and age, and the description."""
    row = database.row(
        "SELECT rowid, used, width, height, text, form, sent_width, sent_height FROM descriptions"
        " WHERE (scope, sha256, seer, prompt) = (?, ?, ?, ?)",
        *(scope, sha256, seer, prompt),
    )
    if row is None:
        return None
    number, used, width, height, text, form, sent_width, sent_height = row
    sent = Size(sent_width, sent_height) if sent_width else None
    return (number, used), Description(sha256, Size(width, height), text, seer, form, sent)
