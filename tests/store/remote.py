"""A record in SQLite that behaves like one on a server: what it is asked may have to wait."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import pytest

from sightline.memory_reads import check_may_wait
from sightline.model.ports import Store
from sightline.store.sql import Row
from sightline.store.sql_store import SqlStore


class Query(NamedTuple):
    text: str
    in_event_loop: bool


def make_remote(record: Store, monkeypatch: pytest.MonkeyPatch) -> list[Query]:
    """Make the reads of a record those of a server, and return the list to which each query is added."""
    assert isinstance(record, SqlStore)
    database, queries = record.transactions.backend.database, list[Query]()
    fetch_all = database.fetch_all  # which also serves `fetch_one`

    def ask(text: str) -> None:
        check_may_wait()
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            queries.append(Query(text, in_event_loop=False))
        else:
            queries.append(Query(text, in_event_loop=True))

    def ask_for_all(query: str, *values: object) -> list[Row]:
        ask(query)
        return fetch_all(query, *values)

    monkeypatch.setattr(database, "may_wait", True)
    monkeypatch.setattr(database, "fetch_all", ask_for_all)
    return queries
