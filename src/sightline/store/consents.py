"""Consents: which providers the user lets see images, or does not."""

from __future__ import annotations

from collections.abc import Mapping
from sqlite3 import Connection

from sightline.store.database import Database


def keep(connection: Connection, provider: str, given: bool, now: float) -> None:
    connection.execute("INSERT OR REPLACE INTO consents VALUES ('', ?, ?, ?)", (provider, given, now))


def read(database: Database) -> Mapping[str, bool]:
    """Return what the user has said about each provider. Where an index is damaged, a no counts."""
    rows = database.rows("SELECT provider, given FROM consents NOT INDEXED")
    said: dict[str, bool] = {}
    for provider, given in rows:
        said[provider] = bool(given) and said.get(provider, True)
    return dict(sorted(said.items()))
