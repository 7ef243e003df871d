"""The history in SQLite: the ports for conversations and the ledger.

Conversations: visits to prompt caches, answers of the tool loop, and clients that omit images. The ledger: calls of
seers with their cost, and receipts of what was done to requests, of which the newest are kept. Entries of the ledger
name images and are forgotten with them. Each entry is also emitted as a span if OpenTelemetry is set up, with the
names of its conventions for models.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from sqlite3 import Connection
from typing import Any

from sightline.model.records import (
    EntryKind,
    FiledReceipt,
    LedgerEntry,
    LoopAnswer,
    Omission,
    Receipt,
    ReceiptLine,
    Spending,
)
from sightline.model.scene import Json
from sightline.model.seer import Usage
from sightline.store.retention import USED_PRECISION
from sightline.store.sqlite_database import Row
from sightline.store.transactions import Transactions, WriteBehind, WriteTransaction, refuse_on_error, return_on_error

MAX_RECEIPTS = 10_000
_log = logging.getLogger(__name__)
_ROW_BYTES = 256  # a row without its texts
_ENTRY_COLUMNS = "kind, images, seer, input, output, cached, cost, hit, latency, about, error, at"
_RECEIPT_COLUMNS = "wire, upstream, model, labels, sights, notes, at"
_MAX_SPAN_TEXT = 200  # characters; the record has the whole text
_NANOSECONDS = 1_000_000_000

# Calls that were answered from the cache cost nothing and do not count. A call that failed before any token was counted
# is not reported as one without a known price.
_SPENDING_QUERY = """
    SELECT date(at, 'unixepoch', 'localtime') AS day, seer, COUNT(*), SUM(input), SUM(output), SUM(cached),
        SUM(cost), SUM(cost IS NULL AND (error = '' OR input IS NOT NULL)), SUM(error != '')
    FROM entries WHERE seer != '' AND NOT hit GROUP BY day, seer ORDER BY day, seer"""

SpanAttribute = str | bool | int | float | list[str]

_VISIT_BYTES = 256  # a row of `moments`, including its index entry
_ANSWER_BYTES = 512  # a row of `legs` without its texts, including its index entries
_OMISSION_BYTES = 256
_RECENT_REQUESTS = (
    4  # requests of a conversation that are looked for when it goes on: clients still change their last messages
)
_find_digests = re.compile(r"[0-9a-f]{64}").findall


@dataclass(frozen=True, slots=True)
class _Visit:
    """A request: the names of its first message, of all messages, and of the last message of each request so far."""

    scope: str
    head: str
    names: Sequence[str]
    requests: Sequence[str]

    @property
    def recent_names(self) -> frozenset[str]:
        return frozenset({self.head, *self.requests[-_RECENT_REQUESTS:]})

    def is_cold(self, asked: Mapping[str, float], since: float) -> bool:
        """Return whether a conversation continues of which hardly anything can be cached.

        `asked`: when each name was last seen.
        """
        known = ((back, asked[name]) for back, name in enumerate(reversed(self.requests)) if name in asked)
        back, last = next(known, (None, 0.0))
        if back is None:  # only the first message is known: the client has rewritten the rest
            return bool(self.requests) and self.head in asked
        return last < since or back > _RECENT_REQUESTS


class SqliteConversations:
    """Implements the port `ConversationStore`."""

    def __init__(self, transactions: Transactions, deferred: WriteBehind) -> None:
        self.transactions, self._deferred = transactions, deferred

    @return_on_error(frozenset[str]())
    def visit(
        self, scope: str, head: str, names: Sequence[str], ends: Sequence[int], life: float, touch: bool = True
    ) -> frozenset[str]:
        visit = _Visit(scope, head, names, [names[end] for end in ends])
        with self.transactions.begin() as tx:
            cold, used = _find_cold(tx, visit, life)
            size = _insert_visit(tx, visit, cold, used) if touch else 0
        if touch:
            self.transactions.count_write(size)
        return cold

    @return_on_error(default=False)
    def has_answers(self, scope: str) -> bool:
        return self.transactions.fetch_one("SELECT 1 FROM legs WHERE scope = ? LIMIT 1", scope) is not None

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
    def keep_answer(self, scope: str, answer: LoopAnswer) -> None:
        self.transactions.write(lambda tx: _insert_answer(tx, scope, answer))

    @return_on_error(None)
    def keep_results(self, scope: str, answer: LoopAnswer, results: Sequence[Json]) -> None:
        text = json.dumps(results)

        def write(tx: WriteTransaction) -> int:
            tx.connection.execute(
                "UPDATE legs SET results = ?1, bytes = bytes + ?2, images = images || ' ' || ?3"
                " WHERE (scope, name, visible, before) = (?4, ?5, ?6, ?7) AND results IS NULL",
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


def forget_conversations(connection: Connection, sha256: str | None) -> None:
    """Delete the answers that mention an image; for None, delete all answers, visits and omissions.

    Visits do not mention images, but their hashes could confirm a guessed text.
    """
    connection.execute("DELETE FROM legs WHERE ?1 IS NULL OR instr(images, ?1)", (sha256,))
    if sha256 is None:
        connection.execute("DELETE FROM moments")
        connection.execute("DELETE FROM omissions")


def _find_cold(tx: WriteTransaction, visit: _Visit, life: float) -> tuple[frozenset[str], Mapping[str, float]]:
    """Return the names whose request found a cold cache, and when each known name was used.

    The life of a cache is measured in steady time: so a clock that jumps by weeks counts as a pause of at most a day.
    """
    rows = tx.connection.execute(
        "SELECT name, cold, used, asked FROM moments WHERE scope = ? AND name IN (SELECT value FROM json_each(?))",
        (visit.scope, json.dumps([visit.head, *visit.names])),
    ).fetchall()
    used = {name: at for name, _, at, _ in rows}
    cold = {name for name, cold, *_ in rows if cold}
    if visit.is_cold({name: at for name, *_, at in rows}, tx.now.steady - life):
        cold.add(visit.requests[-1])
    return frozenset(cold), used


def _insert_visit(tx: WriteTransaction, visit: _Visit, cold: frozenset[str], used: Mapping[str, float]) -> int:
    """Write a visit, and refresh the old rows of the conversation, so that all expire together; return the new size."""
    aged = (name for name, at in used.items() if tx.now.time - at >= USED_PRECISION)
    tx.connection.executemany(
        "INSERT OR REPLACE INTO moments VALUES (?, ?, ?, ?, ?, ?)",
        [
            (visit.scope, name, name in cold, _VISIT_BYTES, tx.now.time, tx.now.steady)
            for name in visit.recent_names.union(aged)
        ],
    )
    return _VISIT_BYTES * len(visit.recent_names - used.keys())


def _insert_answer(tx: WriteTransaction, scope: str, answered: LoopAnswer) -> int:
    """Write an answer unless it exists, and return its size."""
    legs, results = json.dumps(answered.legs), None if answered.results is None else json.dumps(answered.results)
    size = _ANSWER_BYTES + len(legs) + len(results or "")
    place = (scope, answered.key, answered.visible_hash, answered.conversation)
    tx.connection.execute(
        "INSERT OR IGNORE INTO legs (scope, name, visible, before, legs, results, images, made, bytes, used)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*place, legs, results, _list_digests(legs, results), tx.now.time, size, tx.now.time),
    )
    return size


def _insert_omission(tx: WriteTransaction, omission: Omission) -> int:
    tx.connection.execute(
        "INSERT OR REPLACE INTO omissions VALUES ('', ?, ?, ?, ?, ?)",
        (omission.client, omission.model, _OMISSION_BYTES, tx.now.time, omission.at),
    )
    return _OMISSION_BYTES


def _list_digests(*texts: str | None) -> str:
    """Return every sha256 in the texts, separated by blanks."""
    return " ".join(sorted({found for text in texts if text for found in _find_digests(text)}))


class SqliteLedger:
    """Implements the port `Ledger`."""

    def __init__(self, transactions: Transactions, deferred: WriteBehind) -> None:
        self.transactions, self._deferred = transactions, deferred

    def add_entry(self, scope: str, entry: LedgerEntry) -> None:
        self._write_entry(scope, entry)
        _emit_span(entry)

    @return_on_error(None)
    def _write_entry(self, scope: str, entry: LedgerEntry) -> None:
        self.transactions.write(
            lambda tx: _insert_entry(tx, scope, entry, self.transactions.wall_clock()), unsynced=True
        )

    @return_on_error(())
    def list_entries(self, kind: EntryKind | None = None) -> Sequence[LedgerEntry]:
        query = f"SELECT {_ENTRY_COLUMNS} FROM entries WHERE kind = ifnull(?, kind) ORDER BY rowid"  # noqa: S608
        return tuple(_read_entry(row) for row in self.transactions.fetch_all(query, kind))

    @refuse_on_error
    def sum_spending(self) -> Sequence[Spending]:
        rows = self.transactions.fetch_all(_SPENDING_QUERY)
        return tuple(
            Spending(day, seer, calls, Usage(input_tokens, output_tokens, cached), cost, unpriced, failed)
            for day, seer, calls, input_tokens, output_tokens, cached, cost, unpriced, failed in rows
        )

    def file_receipt(self, scope: str, filed: FiledReceipt) -> None:
        at = self.transactions.wall_clock()
        self._deferred.add(lambda tx: _insert_receipt(tx, scope, filed, at))

    @return_on_error(())
    def list_receipts(self, limit: int) -> Sequence[FiledReceipt]:
        self._deferred.flush()
        query = f"SELECT {_RECEIPT_COLUMNS} FROM receipts ORDER BY rowid DESC LIMIT ?"  # noqa: S608
        return tuple(_read_receipt(row) for row in self.transactions.fetch_all(query, limit))


def delete_old_receipts(connection: Connection) -> None:
    connection.execute("DELETE FROM receipts WHERE rowid <= (SELECT MAX(rowid) FROM receipts) - ?", (MAX_RECEIPTS,))


def forget_ledger(connection: Connection, sha256: str | None, *, usage: bool = False) -> None:
    """Remove an image, or all for None, from the entries, with all words, and keep what seers cost.

    For None, receipts and entries without a cost are deleted. With `usage`, everything is. Receipts do not name images,
    but show when there were some.
    """
    if sha256 is None:
        connection.execute("DELETE FROM entries WHERE ? OR seer = ''", (usage,))
        connection.execute("DELETE FROM receipts")
    connection.execute(
        "UPDATE entries SET images = '[]', about = '{}', bytes = ?1 WHERE ?2 IS NULL OR instr(images, ?2)",
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


def _insert_receipt(tx: WriteTransaction, scope: str, filed: FiledReceipt, at: float) -> int:
    """Write a receipt, and return its size. `at` is the time of the machine's clock when it was filed."""
    receipt = filed.receipt
    lines = [[line.place, line.fate, line.why, line.before, line.after] for line in receipt.sights]
    texts = tuple(json.dumps(each) for each in (filed.labels, lines, receipt.notes))
    size = _ROW_BYTES + sum(map(len, texts))
    tx.connection.execute(
        f"INSERT INTO receipts (scope, bytes, used, {_RECEIPT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
        (scope, size, tx.now.time, filed.wire, receipt.upstream, receipt.model, *texts, at),
    )
    return size


def _read_receipt(row: Row) -> FiledReceipt:
    wire, upstream, model, labels, sights, notes, at = row
    lines = tuple(ReceiptLine(*each) for each in json.loads(sights))
    receipt = Receipt(upstream, model, lines, tuple(json.loads(notes)))
    return FiledReceipt(receipt, wire, tuple((name, value) for name, value in json.loads(labels)), at)


def _emit_span(entry: LedgerEntry) -> None:
    """Emit a span that ends now, if the program has imported OpenTelemetry. It is never imported here."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return
    try:
        _build_span(trace, entry)
    except Exception:  # noqa: BLE001, telemetry must not fail a request
        _log.debug("a span could not be emitted", exc_info=True)


def _build_span(trace: Any, entry: LedgerEntry) -> None:
    was_asked = bool(entry.seer) and not entry.cache_hit
    provider, _, model = entry.seer.partition("/")
    end = time.time_ns()
    span = trace.get_tracer("sightline").start_span(
        shorten(f"chat {model}") if was_asked else entry.kind,
        kind=trace.SpanKind.CLIENT if was_asked else trace.SpanKind.INTERNAL,
        start_time=end - (entry.latency_ms or 0) * _NANOSECONDS // 1000,
    )
    if not span.is_recording():
        return
    span.set_attributes({**dict(_list_model_attributes(entry, provider, model)), **dict(_list_own_attributes(entry))})
    if entry.error:
        span.set_status(trace.StatusCode.ERROR)
    span.end(end)


def _list_model_attributes(entry: LedgerEntry, provider: str, model: str) -> Iterator[tuple[str, SpanAttribute]]:
    if entry.seer:
        yield "gen_ai.operation.name", "chat"
        yield "gen_ai.provider.name", shorten(provider)
        yield "gen_ai.request.model", shorten(model)
    if entry.kind == "vision_proxy.tool_call":
        yield "gen_ai.tool.name", shorten(str(entry.about.get("tool") or "analyze_image"))
    counts = {
        "input_tokens": entry.usage.input,
        "output_tokens": entry.usage.output,
        "cache_read.input_tokens": entry.usage.cached,
    }
    yield from ((f"gen_ai.usage.{name}", count) for name, count in counts.items() if count is not None)
    if entry.error:
        yield "error.type", shorten(entry.error)


def _list_own_attributes(entry: LedgerEntry) -> Iterator[tuple[str, SpanAttribute]]:
    yield "vision_proxy.entry", entry.kind
    yield "vision_proxy.images", [f"sha256:{sha256}" for sha256 in entry.images]
    yield "vision_proxy.cache_hit", entry.cache_hit
    if entry.cost_usd is not None:
        yield "vision_proxy.cost_usd", entry.cost_usd
    yield from ((f"vision_proxy.{shorten(name)}", value) for name, value in _flatten(entry.about))


def _flatten(about: Mapping[str, Any]) -> Iterator[tuple[str, SpanAttribute]]:
    for name, value in about.items():
        match value:
            case bool() | int() | float():
                yield name, value
            case list():
                yield name, [shorten(str(each)) for each in value]
            case None:
                continue
            case _:
                yield name, shorten(str(value))


def shorten(text: str) -> str:
    """Return text as one line of limited length."""
    plain = "".join(character if character.isprintable() else " " for character in text[: 2 * _MAX_SPAN_TEXT])
    return plain[:_MAX_SPAN_TEXT].strip()
