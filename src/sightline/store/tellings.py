"""Tellings: what was said at the places of conversations. The first word counts, and only a failure gives way."""

from __future__ import annotations

import json
from sqlite3 import Connection

from sightline.model.records import Telling
from sightline.model.scene import Json
from sightline.store.database import Database, Row

_ROW_BYTES = 512  # that a row takes beside its words, with its places in the indexes
_COLUMNS = "turn, images, said, failed, during"


def keep(connection: Connection, scope: str, telling: Telling, now: float) -> int:
    """Write what is said, unless something is said there already; gives the bytes that it takes."""
    said = json.dumps(telling.said)
    weight = _ROW_BYTES + len(said)
    connection.execute(
        f"INSERT INTO tellings (scope, bytes, used, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
        " ON CONFLICT (scope, turn, images) DO UPDATE SET said = excluded.said, failed = excluded.failed,"
        " during = excluded.during, bytes = excluded.bytes, used = excluded.used WHERE failed",
        (scope, weight, now, telling.turn, _list(telling.images), said, telling.failed, telling.during),
    )
    return weight


def read(database: Database, scope: str, turn: str, images: tuple[str, ...]) -> tuple[Row, Telling] | None:
    """The row's number and age, and what it says."""
    row = database.row(
        f"SELECT rowid, used, {_COLUMNS} FROM tellings WHERE (scope, turn, images) = (?, ?, ?)",  # noqa: S608
        *(scope, turn, _list(images)),
    )
    if row is None:
        return None
    number, used, turn, _, said, failed, during = row
    return (number, used), Telling(turn, images, json.loads(said), bool(failed), during)


def looked(database: Database, scope: str, turn: str) -> frozenset[str]:
    """The single images for which somebody was asked in a turn."""
    rows = database.rows("SELECT images FROM tellings WHERE (scope, during) = (?, ?)", scope, turn)
    return frozenset(images for (images,) in rows if " " not in images)


def retell(connection: Connection, scope: str | None, sha256: str, said: dict[str, Json]) -> None:
    """Other words about an image, wherever it was told on its own; None: in every scope."""
    connection.execute(
        "UPDATE tellings SET said = ?, failed = 0 WHERE images = ? AND scope = ifnull(?, scope)",
        (json.dumps(said), sha256, scope),
    )


def forget(connection: Connection, sha256: str | None) -> None:
    """All of them, or all that was said of one image, alone or among others."""
    connection.execute("DELETE FROM tellings WHERE ?1 IS NULL OR instr(images, ?1)", (sha256,))


def _list(images: tuple[str, ...]) -> str:
    return " ".join(images)
