"""Conversations: visits to prompt caches, answers with tool calls of our own, and clients that leave images out."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from sqlite3 import Connection

from sightline.model.receipt import Omission
from sightline.model.records import Answered
from sightline.model.scene import Json
from sightline.store.retention import COARSE
from sightline.store.transactions import Transactions, Write, WriteBehind, return_on_trouble

_VISIT_BYTES = 256  # of a row in `moments`, with its place in the index
_ANSWER_BYTES = 512  # of a row in `legs` beside its texts, with its places in the indexes
_OMISSION_BYTES = 256
_LATEST = 4  # requests of a conversation that are looked for when it goes on: clients still change their last messages
_find_digests = re.compile(r"[0-9a-f]{64}").findall


@dataclass(frozen=True, slots=True)
class _Visit:
    """A request: the name of its beginning, and of those with which it and the ones before it ended."""

    scope: str
    head: str
    names: Sequence[str]
    requests: Sequence[str]

    @property
    def latest(self) -> frozenset[str]:
        return frozenset({self.head, *self.requests[-_LATEST:]})

    def is_cold(self, asked: Mapping[str, float], since: float) -> bool:
        """Return whether a conversation goes on of which hardly anything can be cached; `asked`: when each name was."""
        known = ((back, asked[name]) for back, name in enumerate(reversed(self.requests)) if name in asked)
        back, last = next(known, (None, 0.0))
        if back is None:  # only the beginning is known: the client has rewritten the rest
            return bool(self.requests) and self.head in asked
        return last < since or back > _LATEST


class SqliteConversations:
    """Implements the port `ConversationStore`."""

    def __init__(self, transactions: Transactions, deferred: WriteBehind) -> None:
        self.transactions, self._deferred = transactions, deferred

    @return_on_trouble(frozenset[str]())
    def visit(
        self, scope: str, head: str, names: Sequence[str], ends: Sequence[int], life: float, touch: bool = True
    ) -> frozenset[str]:
        visit = _Visit(scope, head, names, [names[end] for end in ends])
        with self.transactions.begin() as to:
            cold, used = _find_cold(to, visit, life)
            weight = _note_visit(to, visit, cold, used) if touch else 0
        if touch:
            self.transactions.count_write(weight)
        return cold

    @return_on_trouble(default=False)
    def has_answers(self, scope: str) -> bool:
        return self.transactions.row("SELECT 1 FROM legs WHERE scope = ? LIMIT 1", scope) is not None

    @return_on_trouble(())
    def read_answers(self, scope: str, keys: Sequence[str]) -> Sequence[Answered]:
        rows = self.transactions.rows(
            "SELECT rowid, used, name, visible, before, legs, results, made FROM legs"
            " WHERE scope = ? AND name IN (SELECT value FROM json_each(?))",
            *(scope, json.dumps([*keys])),
        )
        found = []
        for _, _, name, visible, before, legs, results, made in rows:
            known = None if results is None else json.loads(results)
            found.append(Answered(name, visible, before, json.loads(legs), known, made))
        for row in rows:
            self.transactions.touch("legs", row)
        return found

    @return_on_trouble(None)
    def keep_answer(self, scope: str, answered: Answered) -> None:
        self.transactions.write(lambda to: _insert_answer(to, scope, answered))

    @return_on_trouble(None)
    def keep_results(self, scope: str, answered: Answered, results: Sequence[Json]) -> None:
        text = json.dumps(results)

        def write(to: Write) -> int:
            to.rows.execute(
                "UPDATE legs SET results = ?1, bytes = bytes + ?2, images = images || ' ' || ?3"
                " WHERE (scope, name, visible, before) = (?4, ?5, ?6, ?7) AND results IS NULL",
                (text, len(text), _list_digests(text), scope, answered.key, answered.visible, answered.before),
            )
            return len(text)

        self.transactions.write(write)

    def note_omission(self, omission: Omission) -> None:
        dated = replace(omission, at=self.transactions.wall())
        self._deferred.add(lambda to: _insert_omission(to, dated))

    @return_on_trouble(())
    def list_omissions(self) -> Sequence[Omission]:
        self._deferred.flush()
        rows = self.transactions.rows("SELECT client, model, at FROM omissions ORDER BY client, model")
        return tuple(Omission(client, model, at) for client, model, at in rows)


def forget_conversations(connection: Connection, sha256: str | None) -> None:
    """Delete the answers that speak of an image; or for None all answers, visits and omissions.

    Visits name no image, but a text that can be guessed could be found by its hash.
    """
    connection.execute("DELETE FROM legs WHERE ?1 IS NULL OR instr(images, ?1)", (sha256,))
    if sha256 is None:
        connection.execute("DELETE FROM moments")
        connection.execute("DELETE FROM omissions")


def _find_cold(to: Write, visit: _Visit, life: float) -> tuple[frozenset[str], Mapping[str, float]]:
    """Return the names whose request met a cold cache, and when each that is known was used.

    The life of a cache is measured in steady time: a clock that jumps by weeks is a pause of a day at most.
    """
    rows = to.rows.execute(
        "SELECT name, cold, used, asked FROM moments WHERE scope = ? AND name IN (SELECT value FROM json_each(?))",
        (visit.scope, json.dumps([visit.head, *visit.names])),
    ).fetchall()
    used = {name: at for name, _, at, _ in rows}
    cold = {name for name, cold, *_ in rows if cold}
    if visit.is_cold({name: at for name, *_, at in rows}, to.now.steady - life):
        cold.add(visit.requests[-1])
    return frozenset(cold), used


def _note_visit(to: Write, visit: _Visit, cold: frozenset[str], used: Mapping[str, float]) -> int:
    """Write that a request was here, with all rows that are old, so that they expire together; return the new bytes."""
    aged = (name for name, at in used.items() if to.now.time - at >= COARSE)
    to.rows.executemany(
        "INSERT OR REPLACE INTO moments VALUES (?, ?, ?, ?, ?, ?)",
        [
            (visit.scope, name, name in cold, _VISIT_BYTES, to.now.time, to.now.steady)
            for name in visit.latest.union(aged)
        ],
    )
    return _VISIT_BYTES * len(visit.latest - used.keys())


def _insert_answer(to: Write, scope: str, answered: Answered) -> int:
    """Write an answer unless it is there, and return its bytes."""
    legs, results = json.dumps(answered.legs), None if answered.results is None else json.dumps(answered.results)
    weight = _ANSWER_BYTES + len(legs) + len(results or "")
    place = (scope, answered.key, answered.visible, answered.before)
    to.rows.execute(
        "INSERT OR IGNORE INTO legs (scope, name, visible, before, legs, results, images, made, bytes, used)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*place, legs, results, _list_digests(legs, results), to.now.time, weight, to.now.time),
    )
    return weight


def _insert_omission(to: Write, omission: Omission) -> int:
    to.rows.execute(
        "INSERT OR REPLACE INTO omissions VALUES ('', ?, ?, ?, ?, ?)",
        (omission.client, omission.model, _OMISSION_BYTES, to.now.time, omission.at),
    )
    return _OMISSION_BYTES


def _list_digests(*texts: str | None) -> str:
    """Return the images that texts name, by their sha256."""
    return " ".join(sorted({found for text in texts if text for found in _find_digests(text)}))
