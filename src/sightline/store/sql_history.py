"""The history in SQLite: the ports for conversations and the ledger.

Conversations: visits to prompt caches, answers of the tool loop (`sql_answers`), and clients that omit images. The
ledger: calls of seers with their cost, and receipts of what was done to requests, of which the newest are kept. Entries
of the ledger name images and are forgotten with them. Each entry is also emitted as a span if OpenTelemetry is set up,
with the names of its conventions for models.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sightline.model.records import (
    EntryKind,
    FiledReceipt,
    LedgerEntry,
    Omission,
    Spending,
)
from sightline.model.request_trace import AnswerSlot, ConversationSummary
from sightline.model.seer import Usage
from sightline.model.value import value_class
from sightline.store.ledger_spans import emit_span
from sightline.store.receipt_rows import (
    fetch_conversation,
    fetch_newest,
    fetch_summaries,
    fetch_summary,
    insert_receipt,
    update_usage,
)
from sightline.store.retention import USED_PRECISION
from sightline.store.sql import Row, SqlConnection, build_upsert
from sightline.store.sql_answers import SqlAnswers
from sightline.store.transactions import Transactions, WriteTransaction, refuse_on_error, return_on_error
from sightline.store.write_behind import WriteBehind

MAX_RECEIPTS = 100_000
_ROW_BYTES = 256  # a row without its texts
_ENTRY_COLUMNS = "kind, images, seer, input, output, cached, cost, hit, latency, about, error, at"

# Calls that were answered from the cache cost nothing and do not count.
_SPENDING_QUERY = "SELECT at, seer, input, output, cached, cost, error FROM entries WHERE seer != '' AND hit = 0"


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
        return {name: replace(now, cold=name in known and known[name].cold) for name in self.recent_names.union(aged)}

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


class SqlConversations(SqlAnswers):
    """Implements the port `ConversationStore`."""

    def __init__(self, transactions: Transactions, deferred: WriteBehind) -> None:
        super().__init__(transactions)
        self._deferred = deferred

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
                    self._deferred.add(lambda tx: _insert_visit(tx, visit, known, now))
                    self._cache_rows(visit, known, now, generation)
                return visit.find_cold(known)
        with self.transactions.begin() as tx:
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
        if not cache.is_announced:  # a record on a disk, whose other processes are not heard of
            return None
        known = (cache.get(("moments", visit.scope, visit.head, end)) for end in visit.requests[:-3:-1])
        rows = next((rows for rows in known if rows is not None), None)
        return None if rows is None else {name: _Moment(*row) for name, *row in rows}

    def _cache_rows(self, visit: _Visit, known: Mapping[str, _Moment], now: _Moment, generation: int) -> None:
        if not (visit.requests and self.transactions.backend.fills_cache):
            return
        rows = [(name, row.used, row.asked, row.cold) for name, row in {**known, **visit.renew(known, now)}.items()]
        key = ("moments", visit.scope, visit.head, visit.requests[-1])
        self.transactions.row_cache.put(key, rows, generation)

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


def _insert_visit(tx: WriteTransaction, visit: _Visit, known: Mapping[str, _Moment], now: _Moment) -> int:
    """Write a visit that was made at this moment, and return the new size."""
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


class SqlLedger:
    """Implements the port `Ledger`."""

    def __init__(self, transactions: Transactions, deferred: WriteBehind) -> None:
        self.transactions, self._deferred = transactions, deferred

    def add_entry(self, scope: str, entry: LedgerEntry) -> None:
        self._write_entry(scope, entry)
        emit_span(entry)

    @return_on_error(None)
    def _write_entry(self, scope: str, entry: LedgerEntry) -> None:
        self.transactions.write(
            lambda tx: _insert_entry(tx, scope, entry, self.transactions.wall_clock()), unsynced=True
        )

    @return_on_error(())
    def list_entries(self, kind: EntryKind | None = None) -> Sequence[LedgerEntry]:
        query = f"SELECT {_ENTRY_COLUMNS} FROM entries WHERE kind = coalesce(?, kind) ORDER BY rowid"  # noqa: S608
        return tuple(_read_entry(row) for row in self.transactions.fetch_all(query, kind))

    @refuse_on_error
    def sum_spending(self) -> Sequence[Spending]:
        sums: dict[tuple[str, str], Spending] = {}
        for row in self.transactions.fetch_all(_SPENDING_QUERY):  # summed here: a database may be in another time zone
            call = _read_spending(row)
            known = sums.get((call.day, call.seer))
            sums[call.day, call.seer] = _add_spending(known, call) if known else call
        return tuple(sums[key] for key in sorted(sums))

    def file_receipt(self, scope: str, filed: FiledReceipt) -> None:
        at = self.transactions.wall_clock()
        self._deferred.add(lambda tx: insert_receipt(tx, scope, filed, at))

    def add_usage(self, answer: AnswerSlot) -> None:
        if answer.is_read:
            self._deferred.add(lambda tx: update_usage(tx, answer))

    @return_on_error(())
    def list_receipts(self, limit: int) -> Sequence[FiledReceipt]:
        self._deferred.flush()
        return fetch_newest(self.transactions, limit)

    @return_on_error(())
    def list_conversations(self, limit: int, offset: int = 0) -> Sequence[ConversationSummary]:
        self._deferred.flush()
        return fetch_summaries(self.transactions, limit, offset)

    @return_on_error(None)
    def find_conversation(self, conversation: str) -> ConversationSummary | None:
        self._deferred.flush()
        return fetch_summary(self.transactions, conversation)

    @return_on_error(())
    def read_conversation(self, conversation: str, limit: int, after: int = 0) -> Sequence[FiledReceipt]:
        self._deferred.flush()
        return fetch_conversation(self.transactions, conversation, limit, after)

    @return_on_error(())
    def list_entries_about(self, sha256: str) -> Sequence[LedgerEntry]:
        query = f"SELECT {_ENTRY_COLUMNS} FROM entries WHERE instr(images, ?) > 0 ORDER BY rowid"  # noqa: S608
        return tuple(_read_entry(row) for row in self.transactions.fetch_all(query, sha256))


def delete_old_receipts(connection: SqlConnection) -> None:
    connection.execute("DELETE FROM receipts WHERE rowid <= (SELECT MAX(rowid) FROM receipts) - ?", (MAX_RECEIPTS,))


def forget_ledger(connection: SqlConnection, sha256: str | None, *, usage: bool = False) -> None:
    """Remove an image, or all for None, from the entries, with all words, and keep what seers cost.

    For None, receipts and entries without a cost are deleted; else the receipts that name the image. With `usage`,
    everything is.
    """
    if sha256 is None:
        connection.execute("DELETE FROM entries WHERE ? = 1 OR seer = ''", (usage,))
    connection.execute(
        "DELETE FROM receipts WHERE CAST(?1 AS TEXT) IS NULL OR instr(sights, ?1) > 0 OR instr(trace, ?1) > 0",
        (sha256,),
    )
    connection.execute(
        "UPDATE entries SET images = '[]', about = '{}', bytes = ?1"
        " WHERE CAST(?2 AS TEXT) IS NULL OR instr(images, ?2) > 0",
        (_ROW_BYTES, sha256),
    )


def _insert_entry(tx: WriteTransaction, scope: str, entry: LedgerEntry, at: float) -> int:
    """Write an entry, and return its size. `at` is the time of the machine's clock."""
    images, about = json.dumps(entry.images), json.dumps(entry.about)
    size = _ROW_BYTES + len(images) + len(about)
    usage = entry.usage
    figures = (usage.input, usage.output, usage.cached, entry.cost_usd, entry.cache_hit, entry.latency_ms)
    tx.connection.execute(
        f"INSERT INTO entries (scope, bytes, used, {_ENTRY_COLUMNS}) VALUES ({'?, ' * 14}?)",  # noqa: S608
        (scope, size, tx.now.time, entry.kind, images, entry.seer, *figures, about, entry.error, at),
    )
    return size


def _read_entry(row: Row) -> LedgerEntry:
    kind, images, seer, input_tokens, output_tokens, cached, cost, hit, latency, about, error, at = row
    usage = Usage(input_tokens, output_tokens, cached)
    return LedgerEntry(
        kind, tuple(json.loads(images)), seer, usage, cost, bool(hit), latency, json.loads(about), error, at
    )


def _read_spending(row: Row) -> Spending:
    """Return what one call cost. One that failed before any token was counted is not one without a known price."""
    at, seer, input_tokens, output_tokens, cached, cost, error = row
    day = time.strftime("%Y-%m-%d", time.localtime(at))
    is_unpriced = cost is None and (not error or input_tokens is not None)
    return Spending(day, seer, 1, Usage(input_tokens, output_tokens, cached), cost, int(is_unpriced), int(error != ""))


def _add_spending(one: Spending, other: Spending) -> Spending:
    costs = [each.cost_usd for each in (one, other) if each.cost_usd is not None]
    return replace(
        one,
        calls=one.calls + other.calls,
        usage=one.usage + other.usage,
        cost_usd=sum(costs) if costs else None,
        unpriced=one.unpriced + other.unpriced,
        failed=one.failed + other.failed,
    )
