"""The port for conversations: visits to prompt caches, answers of the tool loop, and clients that omit images.

Every request with tools asks whether its scope has any answers; most have none. In a shared record, that is cached. An
answer must be found by every replica as soon as its client has it, so caches may not be late here, as they may be
elsewhere:

- the first answer of a scope is announced as soon as a model calls one of our tools (`expect_answer`), else in the
  transaction that stores it, and the announcement clears the caches;
- that a scope has no answers counts for `ABSENT_SECONDS` after it was read, or after the last poll that found no
  announcement; then it is read again;
- `keep_answer` returns for how long the client has to wait for the end of its answer: until every replica that has not
  heard of the scope's first answer has to read again. That is 0 if it was announced that long ago, which is the usual
  case: the call has been run since, and the model has gone on.

In a record on a disk, every process looks for announcements before each use of its cache, so it is never out of date:
`expect_answer` does nothing, and no client waits.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sightline.memory_reads import check_may_wait
from sightline.model.records import LoopAnswer, Omission
from sightline.model.scene import Json
from sightline.model.value import value_class
from sightline.store.retention import USED_PRECISION
from sightline.store.sql import SqlConnection, build_upsert
from sightline.store.transactions import Transactions, WriteBehind, WriteTransaction, return_on_error

_VISIT_BYTES = 256  # a row of `moments`, including its index entry
_OMISSION_BYTES = 256
_RECENT_REQUESTS = (
    4  # requests of a conversation that are looked for when it goes on: clients still change their last messages
)
# Once cold, always cold; and a visit that is written late is no step back.
_WRITE_MOMENT = """
    INSERT INTO moments (scope, name, cold, bytes, used, asked) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (scope, name) DO UPDATE SET bytes = excluded.bytes,
        used = CASE WHEN moments.used > excluded.used THEN moments.used ELSE excluded.used END,
        asked = CASE WHEN moments.asked > excluded.asked THEN moments.asked ELSE excluded.asked END,
        cold = CASE WHEN moments.cold > excluded.cold THEN moments.cold ELSE excluded.cold END"""
ABSENT_SECONDS = 2.0  # replicas ask for announcements once a second
_ANSWER_BYTES = 512  # a row of `legs` without its texts, including its index entries
_HAS_ANSWERS = "SELECT 1 FROM legs WHERE scope = ? LIMIT 1"
_EXPECTED = LoopAnswer("", "", "", [], ())  # no request has its key: it only says that its scope has answers
_find_digests = re.compile(r"[0-9a-f]{64}").findall


@value_class
class _Moment:
    """When a name was used, in record time, and last asked for, in steady time; and whether its cache was cold."""

    used: float
    asked: float
    cold: bool = False


@value_class
class _Visit:
    """A request: the names of its first message, of all messages, and of the last message of each request so far."""

    scope: str
    head: str
    names: Sequence[str]
    requests: Sequence[str]

    @property
    def recent_names(self) -> frozenset[str]:
        return frozenset({self.head, *self.requests[-_RECENT_REQUESTS:]})

    def renew(self, known: Mapping[str, _Moment], now: _Moment) -> dict[str, _Moment]:
        """Return the rows to be written: the recent ones, and the old ones, so that all expire together."""
        aged = (name for name, moment in known.items() if now.used - moment.used >= USED_PRECISION)
        names = self.recent_names.union(aged)
        return {name: _Moment(now.used, now.asked, name in known and known[name].cold) for name in names}

    def find_cold(self, known: Mapping[str, _Moment]) -> frozenset[str]:
        """Return the names whose request found a cold cache."""
        return frozenset(name for name in (self.head, *self.names) if name in known and known[name].cold)

    def is_cold(self, asked: Mapping[str, _Moment], since: float) -> bool:
        """Return whether a conversation continues of which hardly anything can be cached.

        The life of a cache is measured in steady time: so a clock that jumps by weeks counts as a pause of at most a
        day.
        """
        known = ((back, asked[name].asked) for back, name in enumerate(reversed(self.requests)) if name in asked)
        back, last = next(known, (None, 0.0))
        if back is None:  # only the first message is known: the client has rewritten the rest
            return bool(self.requests) and self.head in asked
        return last < since or back > _RECENT_REQUESTS


class SqlConversations:
    """Implements the port `ConversationStore`."""

    def __init__(self, transactions: Transactions, deferred: WriteBehind) -> None:
        self.transactions, self._deferred = transactions, deferred

    @return_on_error(frozenset[str]())
    def visit(
        self, scope: str, head: str, names: Sequence[str], ends: Sequence[int], life: float, touch: bool = True
    ) -> frozenset[str]:
        visit = _Visit(scope, head, names, [names[end] for end in ends])
        generation, known = self.transactions.row_cache.generation, self._recall_rows(visit)
        if known is not None:
            now = _Moment(self.transactions.read_record_time(), self.transactions.read_steady_time())
            if not visit.is_cold(known, now.asked - life):
                if touch:
                    self._deferred.add(lambda tx: _insert_next_visit(tx, visit, known, now))
                    self._cache_rows(visit, known, now, generation)
                return visit.find_cold(known)
        check_may_wait()
        self._deferred.flush()  # earlier visits of this conversation may be among these rows
        with self.transactions.begin(unsynced=True) as tx:
            found, now = _fetch_moments(tx, visit), _Moment(tx.now.time, tx.now.steady)
            if visit.is_cold(found, now.asked - life):
                newest = visit.requests[-1]
                found[newest] = replace(found.get(newest, now), cold=True)
            size = _insert_visit(tx, visit, found, now) if touch else 0
        if touch:
            self.transactions.count_write(size)
            self._cache_rows(visit, found, now, generation)
        return visit.find_cold(found)

    def _recall_rows(self, visit: _Visit) -> dict[str, _Moment] | None:
        """Return what is known of a conversation if its last request, or this very one, came to this process, too.

        Then another process can know more of it only for half a second, and never that its cache is cold: it would see
        this process's visits, and they aren't that old, else they would not be used here either.
        """
        cache = self.transactions.row_cache
        known = (cache.get(("moments", visit.scope, visit.head, end)) for end in visit.requests[:-3:-1])
        rows = next((rows for rows in known if rows is not None), None)
        return None if rows is None else {name: _Moment(*row) for name, *row in rows}

    def _cache_rows(self, visit: _Visit, known: Mapping[str, _Moment], now: _Moment, generation: int) -> None:
        if not (visit.requests and self.transactions.backend.fills_cache):
            return
        rows = [(name, row.used, row.asked, row.cold) for name, row in {**known, **visit.renew(known, now)}.items()]
        name = ("moments", visit.scope, visit.head)
        self.transactions.row_cache.put((*name, visit.requests[-1]), rows, generation)
        for older in visit.requests[-3:-2]:  # of which nothing is recalled any more: each holds the whole conversation
            self.transactions.row_cache.discard((*name, older))

    @return_on_error(default=False)
    def has_answers(self, scope: str) -> bool:
        store, key, now = self.transactions, ("answers", scope), time.monotonic()
        backend, cache = store.backend, store.row_cache
        for known, read_at in cache.get(key) or ():
            if known or not cache.is_polled or now - max(read_at, cache.checked_at) < ABSENT_SECONDS:
                return bool(known)
            cache.discard(key)
        generation = cache.generation
        found = backend.database.fetch_one(_HAS_ANSWERS, scope) is not None
        if backend.fills_cache:  # if this process has stored an answer since, that stays in the cache
            cache.put(key, [(found, time.monotonic() if found else now)], generation, replace=found)
        return found

    @return_on_error(())
    def read_answers(self, scope: str, keys: Sequence[str]) -> Sequence[LoopAnswer]:
        rows = self.transactions.fetch_all(
            "SELECT rowid, used, name, visible, before, legs, results, made FROM legs"
            " WHERE scope = ? AND name IN (SELECT value FROM json_each(?))",
            *(scope, json.dumps([*keys])),
        )
        found = []
        for _, _, name, visible, before, legs, results, created_at in rows:
            known = None if results is None else json.loads(results)
            found.append(LoopAnswer(name, visible, before, json.loads(legs), known, created_at))
        for row in rows:
            self.transactions.mark_used("legs", row)
        return found

    @return_on_error(None)
    def expect_answer(self, scope: str) -> None:
        cache = self.transactions.row_cache
        if not cache.is_polled or any(known for known, _ in cache.get(("answers", scope)) or ()):
            return
        with self.transactions.begin() as tx:
            if is_first := _announce_first(tx, scope):
                _insert_answer(tx, scope, _EXPECTED)
        self._note_answers(scope, is_first=is_first)

    @return_on_error(0.0)
    def keep_answer(self, scope: str, answer: LoopAnswer) -> float:
        with self.transactions.begin() as tx:
            is_first = _announce_first(tx, scope)
            size = _insert_answer(tx, scope, answer)
        seconds = self._note_answers(scope, is_first=is_first)
        self.transactions.count_write(size)
        return seconds

    def _note_answers(self, scope: str, *, is_first: bool) -> float:
        """Cache that a scope has answers; return for how many seconds other processes may believe that it has none."""
        cache, key, now = self.transactions.row_cache, ("answers", scope), time.monotonic()
        if (
            not self.transactions.backend.fills_cache
        ):  # the servers can't be used: what was written is in this process only
            cache.discard(key)
            return 0.0
        since = next((at for known, at in cache.get(key) or () if known and not is_first), now)
        cache.put(key, [(True, since)])
        return max(since + ABSENT_SECONDS - now, 0.0) if cache.is_polled else 0.0

    @return_on_error(None)
    def keep_results(self, scope: str, answer: LoopAnswer, results: Sequence[Json]) -> None:
        text = json.dumps(results)

        def write(tx: WriteTransaction) -> int:
            tx.connection.execute(
                "UPDATE legs SET results = ?, bytes = bytes + ?, images = images || ' ' || CAST(? AS TEXT)"
                " WHERE (scope, name, visible, before) = (?, ?, ?, ?) AND results IS NULL",
                (text, len(text), _list_digests(text), scope, answer.key, answer.visible_hash, answer.conversation),
            )
            return len(text)

        self.transactions.write(write)

    def note_omission(self, omission: Omission) -> None:
        dated = replace(omission, at=self.transactions.wall_clock())
        self._deferred.add(lambda tx: _insert_omission(tx, dated))

    @return_on_error(())
    def list_omissions(self) -> Sequence[Omission]:
        self._deferred.flush()
        rows = self.transactions.fetch_all("SELECT client, model, at FROM omissions ORDER BY client, model")
        return tuple(Omission(client, model, at) for client, model, at in rows)


def forget_conversations(connection: SqlConnection, sha256: str | None) -> None:
    """Delete the answers that mention an image; for None, delete all answers, visits and omissions.

    Visits do not mention images, but their hashes could confirm a guessed text.
    """
    connection.execute("DELETE FROM legs WHERE CAST(?1 AS TEXT) IS NULL OR instr(images, ?1) > 0", (sha256,))
    if sha256 is None:
        connection.execute("DELETE FROM moments")
        connection.execute("DELETE FROM omissions")


def _fetch_moments(tx: WriteTransaction, visit: _Visit) -> dict[str, _Moment]:
    rows = tx.connection.execute(
        "SELECT name, used, asked, cold FROM moments WHERE scope = ? AND name IN (SELECT value FROM json_each(?))",
        (visit.scope, json.dumps([visit.head, *visit.names])),
    ).fetchall()
    return {name: _Moment(used, asked, bool(cold)) for name, used, asked, cold in rows}


def _insert_next_visit(tx: WriteTransaction, visit: _Visit, known: Mapping[str, _Moment], now: _Moment) -> int:
    """Write a visit of a known conversation, unless all visits were forgotten since it was made."""
    query = "SELECT 1 FROM moments WHERE (scope, name) = (?, ?)"
    is_known = tx.connection.execute(query, (visit.scope, visit.head)).fetchone() is not None
    return _insert_visit(tx, visit, known, now) if is_known else 0


def _insert_visit(tx: WriteTransaction, visit: _Visit, known: Mapping[str, _Moment], now: _Moment) -> int:
    """Write a visit that is made now, and return the new size."""
    tx.connection.executemany(
        _WRITE_MOMENT,
        [
            (visit.scope, name, row.cold, _VISIT_BYTES, row.used, row.asked)
            for name, row in sorted(
                visit.renew(known, now).items()
            )  # in one order, so that none blocks another forever
        ],
    )
    return _VISIT_BYTES * len(visit.recent_names - known.keys())


def _insert_omission(tx: WriteTransaction, omission: Omission) -> int:
    tx.connection.execute(
        build_upsert("omissions", "scope, client, model, bytes, used, at", "client, model"),
        ("", omission.client, omission.model, _OMISSION_BYTES, tx.now.time, omission.at),
    )
    return _OMISSION_BYTES


def _announce_first(tx: WriteTransaction, scope: str) -> bool:
    """Announce that a scope has answers, and return true, unless it had some before."""
    if tx.connection.execute(_HAS_ANSWERS, (scope,)).fetchone() is not None:
        return False
    tx.backend.database.announce_change(tx.connection)
    return True


def _insert_answer(tx: WriteTransaction, scope: str, answered: LoopAnswer) -> int:
    """Write an answer unless it exists, and return its size."""
    legs, results = json.dumps(answered.legs), None if answered.results is None else json.dumps(answered.results)
    size = _ANSWER_BYTES + len(legs) + len(results or "")
    place = (scope, answered.key, answered.visible_hash, answered.conversation)
    tx.connection.execute(
        "INSERT INTO legs (scope, name, visible, before, legs, results, images, made, bytes, used)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (*place, legs, results, _list_digests(legs, results), tx.now.time, size, tx.now.time),
    )
    return size


def _list_digests(*texts: str | None) -> str:
    """Return every sha256 in the texts, separated by blanks."""
    return " ".join(sorted({found for text in texts if text for found in _find_digests(text)}))
