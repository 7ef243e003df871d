"""Moments: when each part of a conversation was last asked about, and whether its cache was cold by then."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from sqlite3 import Connection

from sightline.store.clock import RecordTime

BYTES = 256  # that a row about a moment takes, with its place in the index
_LATEST = 4  # requests of a conversation that are looked for when it goes on: clients still change their last words


@dataclass(frozen=True, slots=True)
class Visit:
    """A request: the name of its beginning, and of those with which it and the ones before it ended."""

    scope: str
    head: str
    names: Sequence[str]
    requests: Sequence[str]

    @property
    def latest(self) -> frozenset[str]:
        return frozenset({self.head, *self.requests[-_LATEST:]})


def met(connection: Connection, visit: Visit, since: float) -> tuple[frozenset[str], Mapping[str, float]]:
    """The names whose request met a cold cache, this one perhaps among them; and when each that is known was used.

    `since` is steady time: a clock that jumps by weeks is a pause of a day at most.
    """
    rows = connection.execute(
        "SELECT name, cold, used, asked FROM moments WHERE scope = ? AND name IN (SELECT value FROM json_each(?))",
        (visit.scope, json.dumps([visit.head, *visit.names])),
    ).fetchall()
    used = {name: at for name, _, at, _ in rows}
    cold = {name for name, cold, *_ in rows if cold}
    if _is_cold({name: at for name, *_, at in rows}, visit.head, visit.requests, since):
        cold.add(visit.requests[-1])
    return frozenset(cold), used


def touch(
    connection: Connection,
    visit: Visit,
    cold: frozenset[str],
    used: Mapping[str, float],
    coarse: float,
    now: RecordTime,
) -> int:
    """That it was here; what was not written for so long is written with it, or it would go bit by bit. New bytes."""
    aged = (name for name, at in used.items() if now.time - at >= coarse)
    connection.executemany(
        "INSERT OR REPLACE INTO moments VALUES (?, ?, ?, ?, ?, ?)",
        [(visit.scope, name, name in cold, BYTES, now.time, now.steady) for name in visit.latest.union(aged)],
    )
    return BYTES * len(visit.latest - used.keys())


def _is_cold(asked: Mapping[str, float], head: str, requests: Sequence[str], since: float) -> bool:
    """Does a conversation go on of which hardly anything can be cached?"""
    known = ((back, asked[name]) for back, name in enumerate(reversed(requests)) if name in asked)
    back, last = next(known, (None, 0.0))
    if back is None:  # a beginning that is known, and nothing of what was said: the client has told it anew
        return bool(requests) and head in asked
    return last < since or back > _LATEST
