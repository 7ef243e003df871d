"""Looks that are under way: whoever asks for the same meanwhile, in any process, waits for the one that was first.

A flight is its owner's for a few seconds at a time, which the owner prolongs: one that has crashed loses it. What came
of it stands there for those who waited, until the next one clears the table.
"""

from __future__ import annotations

from sqlite3 import Connection

from sightline.model.ports import Flight
from sightline.store.database import Database

_LEFT_SECONDS = 30.0  # far longer than anybody who waits takes to look again
_TAKEN = "SELECT owner FROM flights WHERE (scope, name) = (?, ?) AND owner != ? AND (answer IS NULL OR at >= ?)"


def claim(connection: Connection, flight: Flight, since: float, until: float, now: float) -> str | None:
    """Take a flight or prolong it; or who is ahead, also one that has come to its end since then."""
    connection.execute("DELETE FROM flights WHERE until <= ?", (now,))
    taken = connection.execute(_TAKEN, (flight.scope, flight.name, flight.owner, since)).fetchone()
    if taken:
        return str(taken[0])
    row = (flight.scope, flight.name, flight.owner, now, until)
    connection.execute("INSERT OR REPLACE INTO flights (scope, name, owner, at, until) VALUES (?, ?, ?, ?, ?)", row)
    return None


def land(connection: Connection, flight: Flight, answer: str | None, now: float) -> None:
    """The end of it; without an answer nothing is left, and the next one may try."""
    whose = (flight.scope, flight.name, flight.owner)
    if answer is None:
        connection.execute("DELETE FROM flights WHERE (scope, name, owner) = (?, ?, ?)", whose)
    else:
        connection.execute(
            "UPDATE flights SET answer = ?, at = ?, until = ? WHERE (scope, name, owner) = (?, ?, ?)",
            (answer, now, now + _LEFT_SECONDS, *whose),
        )


def landed(database: Database, flight: Flight, now: float) -> tuple[bool, str | None]:
    """Whether the flight of this owner is still known, and what came of it."""
    row = database.row(
        "SELECT answer FROM flights WHERE (scope, name, owner) = (?, ?, ?) AND until > ?",
        *(flight.scope, flight.name, flight.owner, now),
    )
    return row is not None, row[0] if row else None
