"""Entries: what was asked, of whom, and what it cost. They name images, and are forgotten with them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from sqlite3 import Connection

from sightline.model.asking import Usage
from sightline.model.records import Entry, EntryKind, Spent
from sightline.store.database import Database, Row

_ROW_BYTES = 256  # that a row takes beside its texts
_COLUMNS = "kind, images, seer, input, output, cached, cost, hit, latency, about, error, at"

# A call that was answered from memory is none: nobody was asked, and nothing was spent. One that failed before any
# token was counted has no price that could be unknown.
_SPENT = """
    SELECT date(at, 'unixepoch', 'localtime') AS day, seer, COUNT(*), SUM(input), SUM(output), SUM(cached),
        SUM(cost), SUM(cost IS NULL AND (error = '' OR input IS NOT NULL)), SUM(error != '')
    FROM entries WHERE seer != '' AND NOT hit GROUP BY day, seer ORDER BY day, seer"""


def keep(connection: Connection, scope: str, entry: Entry, at: float, now: float) -> int:
    """Write an entry; gives the bytes that it takes. `at` is the machine's clock, `now` is record time."""
    images, about = json.dumps(entry.images), json.dumps(entry.about)
    weight = _ROW_BYTES + len(images) + len(about)
    usage = entry.usage
    figures = (usage.input, usage.output, usage.cached, entry.cost_usd, entry.cache_hit, entry.latency_ms)
    connection.execute(
        f"INSERT INTO entries (scope, bytes, used, {_COLUMNS}) VALUES ({'?, ' * 14}?)",  # noqa: S608
        (scope, weight, now, entry.kind, images, entry.seer, *figures, about, entry.error, at),
    )
    return weight


def read(database: Database, kind: EntryKind | None) -> Sequence[Entry]:
    """In the order in which they were written; None: of every kind."""
    rows = database.rows(f"SELECT {_COLUMNS} FROM entries WHERE kind = ifnull(?, kind) ORDER BY rowid", kind)  # noqa: S608
    return tuple(_entry(row) for row in rows)


def spent(database: Database) -> Sequence[Spent]:
    return tuple(
        Spent(day, seer, calls, Usage(given, made, cached), cost, unpriced, failed)
        for day, seer, calls, given, made, cached, cost, unpriced, failed in database.rows(_SPENT)
    )


def forget(connection: Connection, sha256: str | None) -> None:
    """All of them; or what was said of one image, of which only the figures stay."""
    if sha256 is None:
        connection.execute("DELETE FROM entries")
    else:
        connection.execute(
            "UPDATE entries SET images = '[]', about = '{}', bytes = ? WHERE instr(images, ?)", (_ROW_BYTES, sha256)
        )


def _entry(row: Row) -> Entry:
    kind, images, seer, given, made, cached, cost, hit, latency, about, error, at = row
    usage = Usage(given, made, cached)
    return Entry(kind, tuple(json.loads(images)), seer, usage, cost, bool(hit), latency, json.loads(about), error, at)
