"""The port for the ledger: calls of seers with their cost, and receipts of what was done to requests.

Entries name images and are forgotten with them. Each is also emitted as a span if OpenTelemetry is set up, with the
names of its conventions for models. The newest receipts are kept, and those of each scope; the inspector reads them by
conversation.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any

import orjson

from sightline.model.records import (
    ANSWER_DETAIL,
    EntryKind,
    FiledReceipt,
    LedgerEntry,
    Receipt,
    ReceiptLine,
    Spending,
)
from sightline.model.request_trace import AnswerSlot, ConversationSummary, read_trace
from sightline.model.seer import Usage
from sightline.store.sql import Row, SqlConnection
from sightline.store.transactions import Transactions, WriteBehind, WriteTransaction, refuse_on_error, return_on_error

_log = logging.getLogger(__name__)
MAX_RECEIPTS = 100_000  # the newest ones of all scopes are kept
OWN_RECEIPTS = 1_000  # and these of each scope, so that a busy one doesn't displace those of the others
_DELETE_OLD = """
    DELETE FROM receipts WHERE scope = ?1 AND rowid <= ?2
        AND rowid <= (SELECT rowid FROM receipts WHERE scope = ?1 ORDER BY rowid DESC LIMIT 1 OFFSET ?3)"""
_ROW_BYTES = 256  # a row without its texts
_ENTRY_COLUMNS = "kind, images, seer, input, output, cached, cost, hit, latency, about, error, at"

# Calls that were answered from the cache cost nothing and do not count.
_SPENDING_QUERY = "SELECT at, seer, input, output, cached, cost, error FROM entries WHERE seer != '' AND hit = 0"

_get_line_fields = attrgetter(*(each.name for each in fields(ReceiptLine)))
_RECEIPT_BYTES = 512  # a row without its texts, including its index entry
_COLUMNS = "wire, upstream, model, labels, sights, notes, at, client, conversation, trace, usage"
_SUM_COLUMNS = "turn, pictures, tokens_before, tokens_after"
_INSERT = f"INSERT INTO receipts (scope, bytes, used, {_COLUMNS}, {_SUM_COLUMNS}) VALUES ({'?, ' * 17}?)"  # noqa: S608
CONVERSATION_QUERY = f"""
    SELECT rowid, {_COLUMNS} FROM receipts WHERE rowid IN (
        SELECT rowid FROM receipts WHERE conversation = ? AND rowid > ? ORDER BY rowid LIMIT ?) ORDER BY rowid"""  # noqa: S608
NEWEST_QUERY = f"SELECT rowid, {_COLUMNS} FROM receipts ORDER BY rowid DESC LIMIT ?"  # noqa: S608
_UPDATE_USAGE = "UPDATE receipts SET usage = ? WHERE rowid = ?"
SUMMARY_QUERY = """
    SELECT conversation, COUNT(*), MAX(turn), MAX(pictures), SUM(tokens_before), SUM(tokens_after), MIN(at), MAX(at),
        MAX(model), MAX(client), MAX(upstream), COUNT(DISTINCT model)
    FROM receipts WHERE conversation != '' {} GROUP BY conversation ORDER BY MAX(at) DESC, conversation
    LIMIT ? OFFSET ?"""

_MAX_SPAN_TEXT = 200  # characters; the record has the whole text
_NANOSECONDS = 1_000_000_000
SpanAttribute = str | bool | int | float | list[str]


class SqlLedger:
    """Implements the port `Ledger`."""

    def __init__(self, transactions: Transactions, deferred: WriteBehind) -> None:
        self.transactions, self._deferred = transactions, deferred
        self._filed: set[str] = set()  # scopes with new receipts
        deferred.after_write = self._delete_old_receipts

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

        def write(tx: WriteTransaction) -> int:
            self._filed.add(scope)
            return insert_receipt(tx, scope, filed, at)

        self._deferred.add(write)

    def _delete_old_receipts(self, connection: SqlConnection) -> None:
        """Delete what is too much in the scopes that have new receipts."""
        scopes, self._filed = sorted(self._filed), set()
        newest = int(connection.execute("SELECT MAX(rowid) FROM receipts").fetchone()[0] or 0) if scopes else 0
        for scope in scopes if newest > MAX_RECEIPTS else ():
            connection.execute(_DELETE_OLD, (scope, newest - MAX_RECEIPTS, OWN_RECEIPTS))

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


def insert_receipt(tx: WriteTransaction, scope: str, filed: FiledReceipt, at: float) -> int:
    """Write a receipt, and return its size. `at` is the time of the machine's clock when it was filed."""
    receipt, parts, answer = filed.receipt, filed.parts, filed.answer
    trace = parts.build() if parts else filed.trace
    lines, before, after = [], 0, 0
    for line in receipt.sights:
        lines.append(_get_line_fields(line))
        before += line.before or 0
        after += line.after or 0
    for number, digest in list(parts.digests.items()) if parts and parts.digests else ():  # of threads, found later
        lines[number] = _get_line_fields(replace(receipt.sights[number], sha256=digest))
    labels, sights, notes = _dump(filed.labels), _dump(lines), _dump(receipt.notes)
    details = _dump(trace.as_json()) if trace.messages else "{}"
    size = _RECEIPT_BYTES + len(labels) + len(sights) + len(notes) + len(details)
    if answer is not None:
        answer.is_read = True
    usage = filed.usage if answer is None else answer.usage
    row = (
        scope, size, tx.now.time, filed.wire, receipt.upstream, receipt.model, labels, sights, notes, at, filed.client,
        trace.conversation, details, _dump_usage(usage), trace.turn, len(lines), before, after,
    )  # fmt: skip
    if answer is None or usage is not None:
        tx.connection.execute(_INSERT, row)
    else:
        (answer.row,) = tx.connection.execute(f"{_INSERT} RETURNING rowid", row).fetchone()
    return size


def update_usage(tx: WriteTransaction, answer: AnswerSlot) -> int:
    """Write the usage of an answer into its receipt, if that was written without it."""
    if answer.row is not None:
        tx.connection.execute(_UPDATE_USAGE, (_dump_usage(answer.usage), answer.row))
    return 0


def _dump_usage(usage: Usage | None) -> str:
    return "[]" if usage is None else _dump([usage.input, usage.output, usage.cached, usage.written])


def _dump(value: Any) -> str:
    """Write JSON; every request with an image writes some, and this takes a tenth of the time of `json`."""
    if not value:  # an empty list, as nearly all labels and notes are
        return "[]"
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # a lone surrogate
        return json.dumps(value)


def _read_receipt(row: Row) -> FiledReceipt:
    number, wire, upstream, model, labels, sights, notes, at, client, conversation, trace, usage = row
    lines = tuple(_read_line(*each) for each in json.loads(sights))
    receipt = Receipt(upstream, model, lines, tuple(json.loads(notes)))
    names = tuple((name, value) for name, value in json.loads(labels))
    known = read_trace(conversation, json.loads(trace))
    return FiledReceipt(receipt, wire, names, at, client, known, number, Usage(*json.loads(usage)))


def _read_line(*values: Any) -> ReceiptLine:
    """Return a line; earlier versions wrote no more than the tokens."""
    pairs: list[Any] = [tuple(each) if isinstance(each, list) else each for each in values]
    return ReceiptLine(*pairs)


def fetch_newest(transactions: Transactions, limit: int) -> Sequence[FiledReceipt]:
    return tuple(_read_receipt(row) for row in transactions.fetch_all(NEWEST_QUERY, limit))


def fetch_conversation(transactions: Transactions, conversation: str, limit: int, after: int) -> list[FiledReceipt]:
    return [_read_receipt(row) for row in transactions.fetch_all(CONVERSATION_QUERY, conversation, after, limit)]


def fetch_summaries(transactions: Transactions, limit: int, offset: int) -> list[ConversationSummary]:
    return [_read_summary(row) for row in transactions.fetch_all(SUMMARY_QUERY.format(""), limit, offset)]


def fetch_summary(transactions: Transactions, conversation: str) -> ConversationSummary | None:
    query = SUMMARY_QUERY.format("AND conversation = ?")
    return next((_read_summary(row) for row in transactions.fetch_all(query, conversation, 1, 0)), None)


def _read_summary(row: Row) -> ConversationSummary:
    """Return a summary; PostgreSQL's sums are decimals."""
    name, requests, turns, images, before, after, *others = row
    return ConversationSummary(name, requests, turns, images, int(before), int(after), *others)


def emit_span(entry: LedgerEntry) -> None:
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
        if name == ANSWER_DETAIL:  # only for the inspector of this record
            continue
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
