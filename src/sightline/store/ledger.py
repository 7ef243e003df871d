"""The ledger: what was asked, of whom, and what it cost; and receipts of what was done to requests, the newest so many.

Entries name images, and are forgotten with them. Each is also a span, if OpenTelemetry is set up, named by its
conventions for models.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from sqlite3 import Connection
from typing import Any

from sightline.model.asking import Usage
from sightline.model.receipt import Filed, Line, Receipt
from sightline.model.records import Entry, EntryKind, Spent
from sightline.store.database import Row
from sightline.store.transactions import Transactions, Write, WriteBehind, refuse_on_trouble, return_on_trouble

MOST_RECEIPTS = 10_000
_log = logging.getLogger(__name__)
_ROW_BYTES = 256  # of a row beside its texts
_ENTRY = "kind, images, seer, input, output, cached, cost, hit, latency, about, error, at"
_RECEIPT = "wire, upstream, model, labels, sights, notes, at"
_LONGEST = 200  # characters of a text in a span: the record has it whole
_NANO = 1_000_000_000

# A call that was answered from the cache does not count: nothing was spent. One that failed before any token was
# counted has no price that could be unknown.
_SPENT = """
    SELECT date(at, 'unixepoch', 'localtime') AS day, seer, COUNT(*), SUM(input), SUM(output), SUM(cached),
        SUM(cost), SUM(cost IS NULL AND (error = '' OR input IS NOT NULL)), SUM(error != '')
    FROM entries WHERE seer != '' AND NOT hit GROUP BY day, seer ORDER BY day, seer"""

Attribute = str | bool | int | float | list[str]


class SqliteLedger:
    """Implements the port `Ledger`."""

    def __init__(self, transactions: Transactions, deferred: WriteBehind) -> None:
        self.transactions, self._deferred = transactions, deferred

    def add_entry(self, scope: str, entry: Entry) -> None:
        self._write_entry(scope, entry)
        _emit_span(entry)

    @return_on_trouble(None)
    def _write_entry(self, scope: str, entry: Entry) -> None:
        self.transactions.write(lambda to: _insert_entry(to, scope, entry, self.transactions.wall()), lightly=True)

    @return_on_trouble(())
    def list_entries(self, kind: EntryKind | None = None) -> Sequence[Entry]:
        query = f"SELECT {_ENTRY} FROM entries WHERE kind = ifnull(?, kind) ORDER BY rowid"  # noqa: S608
        return tuple(_read_entry(row) for row in self.transactions.rows(query, kind))

    @refuse_on_trouble
    def sum_spending(self) -> Sequence[Spent]:
        return tuple(
            Spent(day, seer, calls, Usage(given, made, cached), cost, unpriced, failed)
            for day, seer, calls, given, made, cached, cost, unpriced, failed in self.transactions.rows(_SPENT)
        )

    def file_receipt(self, scope: str, filed: Filed) -> None:
        dated = replace(filed, at=self.transactions.wall())
        self._deferred.add(lambda to: _insert_receipt(to, scope, dated))

    @return_on_trouble(())
    def list_receipts(self, most: int) -> Sequence[Filed]:
        self._deferred.flush()
        query = f"SELECT {_RECEIPT} FROM receipts ORDER BY rowid DESC LIMIT ?"  # noqa: S608
        return tuple(_read_receipt(row) for row in self.transactions.rows(query, most))


def drop_old_receipts(connection: Connection) -> None:
    connection.execute("DELETE FROM receipts WHERE rowid <= (SELECT MAX(rowid) FROM receipts) - ?", (MOST_RECEIPTS,))


def forget_ledger(connection: Connection, sha256: str | None) -> None:
    """Delete what entries say about an image and leave their figures; or for None delete all entries and receipts.

    Receipts name no image, but say when there were some.
    """
    if sha256 is None:
        connection.execute("DELETE FROM entries")
        connection.execute("DELETE FROM receipts")
    else:
        connection.execute(
            "UPDATE entries SET images = '[]', about = '{}', bytes = ? WHERE instr(images, ?)", (_ROW_BYTES, sha256)
        )


def _insert_entry(to: Write, scope: str, entry: Entry, at: float) -> int:
    """Write an entry, and return its bytes. `at` is the machine's clock."""
    images, about = json.dumps(entry.images), json.dumps(entry.about)
    weight = _ROW_BYTES + len(images) + len(about)
    usage = entry.usage
    figures = (usage.input, usage.output, usage.cached, entry.cost_usd, entry.cache_hit, entry.latency_ms)
    to.rows.execute(
        f"INSERT INTO entries (scope, bytes, used, {_ENTRY}) VALUES ({'?, ' * 14}?)",  # noqa: S608
        (scope, weight, to.now.time, entry.kind, images, entry.seer, *figures, about, entry.error, at),
    )
    return weight


def _read_entry(row: Row) -> Entry:
    kind, images, seer, given, made, cached, cost, hit, latency, about, error, at = row
    usage = Usage(given, made, cached)
    return Entry(kind, tuple(json.loads(images)), seer, usage, cost, bool(hit), latency, json.loads(about), error, at)


def _insert_receipt(to: Write, scope: str, filed: Filed) -> int:
    receipt = filed.receipt
    lines = [[line.place, line.fate, line.why, line.before, line.after] for line in receipt.sights]
    texts = tuple(json.dumps(each) for each in (filed.labels, lines, receipt.notes))
    weight = _ROW_BYTES + sum(map(len, texts))
    to.rows.execute(
        f"INSERT INTO receipts (scope, bytes, used, {_RECEIPT}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
        (scope, weight, to.now.time, filed.wire, receipt.upstream, receipt.model, *texts, filed.at),
    )
    return weight


def _read_receipt(row: Row) -> Filed:
    wire, upstream, model, labels, sights, notes, at = row
    lines = tuple(Line(*each) for each in json.loads(sights))
    receipt = Receipt(upstream, model, lines, tuple(json.loads(notes)))
    return Filed(receipt, wire, tuple((name, value) for name, value in json.loads(labels)), at)


def _emit_span(entry: Entry) -> None:
    """Emit a span that ends now, if the program has imported OpenTelemetry; else it is not loaded."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return
    try:
        _start_span(trace, entry)
    except Exception:  # noqa: BLE001, telemetry must not fail a request
        _log.debug("an entry could not become a span", exc_info=True)


def _start_span(trace: Any, entry: Entry) -> None:
    asked = bool(entry.seer) and not entry.cache_hit
    provider, _, model = entry.seer.partition("/")
    end = time.time_ns()
    span = trace.get_tracer("sightline").start_span(
        shorten(f"chat {model}") if asked else entry.kind,
        kind=trace.SpanKind.CLIENT if asked else trace.SpanKind.INTERNAL,
        start_time=end - (entry.latency_ms or 0) * _NANO // 1000,
    )
    if not span.is_recording():
        return
    span.set_attributes({**dict(_list_model_attributes(entry, provider, model)), **dict(_list_own_attributes(entry))})
    if entry.error:
        span.set_status(trace.StatusCode.ERROR)
    span.end(end)


def _list_model_attributes(entry: Entry, provider: str, model: str) -> Iterator[tuple[str, Attribute]]:
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


def _list_own_attributes(entry: Entry) -> Iterator[tuple[str, Attribute]]:
    yield "vision_proxy.entry", entry.kind
    yield "vision_proxy.images", [f"sha256:{sha256}" for sha256 in entry.images]
    yield "vision_proxy.cache_hit", entry.cache_hit
    if entry.cost_usd is not None:
        yield "vision_proxy.cost_usd", entry.cost_usd
    yield from ((f"vision_proxy.{shorten(name)}", value) for name, value in _flatten(entry.about))


def _flatten(about: Mapping[str, Any]) -> Iterator[tuple[str, Attribute]]:
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
    """Return free text as one line of bounded length."""
    plain = "".join(letter if letter.isprintable() else " " for letter in text[: 2 * _LONGEST])
    return plain[:_LONGEST].strip()
