"""Answers of the tool loop: a part of the port for conversations.

Every request with tools asks whether its scope has any answers; most have none. In a shared record, that is cached. An
answer must be found by every replica as soon as its client has it, so caches may not be late here, as they may be
elsewhere:

- the first answer of a scope is announced in the transaction that stores it, and the announcement clears the caches;
- that a scope has no answers counts for `ABSENT_SECONDS` after it was read, or after the last poll that found no
  announcement; then it is read again;
- `keep_answer` returns for how long the client has to wait for the end of its answer: until every replica that has not
  heard of the scope's first answer has to read again. Later, that is 0.

In a record on a disk nothing is announced, and a query takes microseconds: there, nothing is cached.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence

from sightline.model.records import LoopAnswer
from sightline.model.scene import Json
from sightline.store.transactions import Transactions, WriteTransaction, return_on_error

ABSENT_SECONDS = 2.0  # replicas ask for announcements once a second
_ANSWER_BYTES = 512  # a row of `legs` without its texts, including its index entries
_HAS_ANSWERS = "SELECT 1 FROM legs WHERE scope = ? LIMIT 1"
_find_digests = re.compile(r"[0-9a-f]{64}").findall


class SqlAnswers:
    """Implements the methods of the port `ConversationStore` that are about answers."""

    def __init__(self, transactions: Transactions) -> None:
        self.transactions = transactions

    @return_on_error(default=False)
    def has_answers(self, scope: str) -> bool:
        store, key, now = self.transactions, ("answers", scope), time.monotonic()
        backend, cache = store.backend, store.row_cache
        if not cache.is_announced:  # a record on a disk, whose other processes are not heard of
            return store.fetch_one(_HAS_ANSWERS, scope) is not None
        for known, read_at in cache.get(key) or ():
            if known or now - max(read_at, cache.checked_at) < ABSENT_SECONDS:
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

    @return_on_error(0.0)
    def keep_answer(self, scope: str, answer: LoopAnswer) -> float:
        is_announced, is_first = self.transactions.row_cache.is_announced, False
        with self.transactions.begin() as tx:
            if is_announced and tx.connection.execute(_HAS_ANSWERS, (scope,)).fetchone() is None:
                tx.backend.database.announce_change(tx.connection)
                is_first = True
            size = _insert_answer(tx, scope, answer)
        seconds = self._note_answers(scope, is_first=is_first) if is_announced else 0.0
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
        return max(since + ABSENT_SECONDS - now, 0.0)

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
