"""Consents: which providers the user lets see images, or does not."""

from __future__ import annotations

import math
from collections.abc import Mapping
from sqlite3 import Connection

from sightline.store.database import Database


def keep(connection: Connection, provider: str, given: bool, now: float) -> None:
    connection.execute("INSERT OR REPLACE INTO consents VALUES ('', ?, ?, ?)", (provider, given, now))


def read(database: Database, withdrawn: Mapping[str, float]) -> Mapping[str, bool]:
    """Return what the user has said about each provider. Where an index is damaged, a no counts.

    `withdrawn`: when the user said no to a provider and that could not be written; a later word in the record counts.
    """
    rows = database.rows("SELECT provider, given, at FROM consents NOT INDEXED")
    said: dict[str, bool] = {}
    for provider, given, at in rows:
        is_given = bool(given) and at > withdrawn.get(provider, -math.inf)
        said[provider] = is_given and said.get(provider, True)
    return dict(sorted(said.items()))
