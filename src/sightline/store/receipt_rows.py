"""Receipts as rows: how one is written and read, and what the inspector asks about them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import orjson

from sightline.model.records import FiledReceipt, Receipt, ReceiptLine
from sightline.model.request_trace import AnswerSlot, ConversationSummary, read_trace
from sightline.model.seer import Usage
from sightline.store.sql import Row
from sightline.store.transactions import Transactions, WriteTransaction

_ROW_BYTES = 512  # a row without its texts, including its index entry
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


def insert_receipt(tx: WriteTransaction, scope: str, filed: FiledReceipt, at: float) -> int:
    """Write a receipt, and return its size. `at` is the time of the machine's clock when it was filed."""
    receipt = filed.receipt
    trace = filed.parts.build() if filed.parts else filed.trace
    digests = filed.parts.digests if filed.parts else {}
    lines = [_dump_line(line, digests.get(number, "")) for number, line in enumerate(receipt.sights)]
    labels, sights, notes = _dump(filed.labels), _dump(lines), _dump(receipt.notes)
    details = _dump(trace.as_json()) if trace.messages else "{}"
    size = _ROW_BYTES + len(labels) + len(sights) + len(notes) + len(details)
    sums = (
        trace.turn,
        len(lines),
        sum([line.before or 0 for line in receipt.sights]),
        sum([line.after or 0 for line in receipt.sights]),
    )
    texts = (filed.wire, receipt.upstream, receipt.model, labels, sights, notes)
    answer = filed.answer
    if answer is not None:
        answer.is_read = True
    usage = filed.usage if answer is None else answer.usage
    row = (scope, size, tx.now.time, *texts, at, filed.client, trace.conversation, details, _dump_usage(usage), *sums)
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
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # a lone surrogate
        return json.dumps(value)


def _dump_line(line: ReceiptLine, digest: str) -> list[Any]:
    """Return a line as a list, in the order of its fields; `digest` is that of its image, if it was found later."""
    image = [line.sha256 or digest, line.filename, line.size, line.sent_size, line.bytes, line.sent_bytes]
    return [line.place, line.fate, line.why, line.before, line.after, *image, line.seer, line.sent_sha256]


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
