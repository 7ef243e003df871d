"""Answers that came in legs: what was asked and answered inside of them, for whoever sends them back."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from sqlite3 import Connection

from sightline.model.records import Answered
from sightline.model.scene import Json
from sightline.store.database import Database, Row

_ROW_BYTES = 512  # that a row takes beside its words, with its places in the indexes
_image = re.compile(r"[0-9a-f]{64}").findall


def keep(connection: Connection, scope: str, answered: Answered, now: float) -> int:
    """Write it, unless it is there; gives the bytes that it takes."""
    legs, results = json.dumps(answered.legs), _written(answered.results)
    weight = _ROW_BYTES + len(legs) + len(results or "")
    connection.execute(
        "INSERT OR IGNORE INTO legs (scope, name, visible, before, legs, results, images, made, bytes, used)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (scope, *_place(answered), legs, results, _images(legs, results), now, weight, now),
    )
    return weight


def settle(connection: Connection, scope: str, answered: Answered, results: Sequence[Json]) -> int:
    """What its last calls brought; the first word counts."""
    written = _written(results)
    more = len(written or "")
    connection.execute(
        "UPDATE legs SET results = ?1, bytes = bytes + ?2, images = images || ' ' || ?3"
        " WHERE (scope, name, visible, before) = (?4, ?5, ?6, ?7) AND results IS NULL",
        (written, more, _images(written), scope, *_place(answered)),
    )
    return more


def read(database: Database, scope: str, keys: Sequence[str]) -> list[tuple[Row, Answered]]:
    """The answers that these keys may mean, each with its row's number and age."""
    found: list[tuple[Row, Answered]] = []
    rows = database.rows(
        "SELECT rowid, used, name, visible, before, legs, results, made FROM legs"
        " WHERE scope = ? AND name IN (SELECT value FROM json_each(?))",
        *(scope, json.dumps([*keys])),
    )
    for number, used, name, visible, before, legs, results, made in rows:
        known = None if results is None else json.loads(results)
        found.append(((number, used), Answered(name, visible, before, json.loads(legs), known, made)))
    return found


def any_of(database: Database, scope: str) -> bool:
    return database.row("SELECT 1 FROM legs WHERE scope = ? LIMIT 1", scope) is not None


def forget(connection: Connection, sha256: str | None) -> None:
    """All of them, or all that speak of one image."""
    connection.execute("DELETE FROM legs WHERE ?1 IS NULL OR instr(images, ?1)", (sha256,))


def _place(answered: Answered) -> tuple[str, str, str]:
    return answered.key, answered.visible, answered.before


def _written(results: Sequence[Json] | None) -> str | None:
    return None if results is None else json.dumps(results)


def _images(*texts: str | None) -> str:
    """The images that are spoken of, by their sha256."""
    return " ".join(sorted({found for text in texts if text for found in _image(text)}))
