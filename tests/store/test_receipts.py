"""Receipts are written in the background, bounded, and survive a crash."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from sightline.model.ports import Store
from sightline.model.records import FiledReceipt, Omission, Receipt, ReceiptLine
from sightline.model.request_trace import MAX_PLACE_BYTES, RequestTrace, TraceParts, shorten_place
from sightline.model.scene import Json
from sightline.store import open_record, sql_ledger
from sightline.store.retention import BOUNDED_TABLES
from tests.requirements import requirement
from tests.store.test_bounds import Clock, use_daily

LINES = (
    ReceiptLine("/messages/0/content/1", "told", "by zai/glm-5.3-flash", 1334, 250),
    ReceiptLine("/messages/2/content/0", "shown", "", None, None),
)
FILED = FiledReceipt(Receipt("zai", "glm-5.3", LINES, ("sent again",)), "anthropic", (("session-id", "one"),))


def numbered(number: int) -> FiledReceipt:
    return FiledReceipt(Receipt("zai", f"model-{number}"), "openai_chat")


def models(record: Store) -> list[str]:
    return [filed.receipt.model for filed in record.ledger.list_receipts(1000)]


@requirement("record.decisions")
def test_receipts_are_read_back_unchanged_newest_first(record: Store) -> None:
    record.ledger.file_receipt("scope", FILED)
    record.ledger.file_receipt("other", numbered(1))
    newest, oldest = record.ledger.list_receipts(2)
    assert (replace(newest, at=0.0), replace(oldest, at=0.0)) == (numbered(1), FILED)
    assert min(newest.at, oldest.at) > 0
    assert record.ledger.list_receipts(1) == (newest,)


@requirement("record.decisions")
def test_receipts_survive_a_restart(tmp_path: Path) -> None:
    record = open_record(tmp_path)
    for number in range(3):
        record.ledger.file_receipt("scope", numbered(number))
    record.close()
    record = open_record(tmp_path)
    assert models(record) == ["model-2", "model-1", "model-0"]
    record.close()


@requirement("record.decisions")
def test_receipts_are_bounded_in_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_ledger, "MAX_RECEIPTS", 5)
    monkeypatch.setattr(sql_ledger, "OWN_RECEIPTS", 2)
    record = open_record(tmp_path)
    for number in range(12):
        record.ledger.file_receipt("scope", numbered(number))
        record.ledger.list_receipts(1)
    assert models(record) == [f"model-{number}" for number in range(11, 6, -1)]
    record.close()


@requirement("record.decisions")
def test_a_busy_credential_displaces_only_its_own_receipts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_ledger, "MAX_RECEIPTS", 5)
    monkeypatch.setattr(sql_ledger, "OWN_RECEIPTS", 2)
    record = open_record(tmp_path)
    for number in range(3):
        record.ledger.file_receipt("quiet", numbered(number))
    for number in range(10, 22):
        record.ledger.file_receipt("busy", numbered(number))
        record.ledger.list_receipts(1)
    newest = [f"model-{number}" for number in range(21, 16, -1)]
    assert models(record) == [*newest, "model-2", "model-1", "model-0"]
    record.ledger.file_receipt("quiet", numbered(30))
    assert models(record) == ["model-30", *newest[:4], "model-17", "model-2"]
    record.close()


@requirement("record.decisions", "record.days")
def test_receipts_are_bounded_in_age(tmp_path: Path) -> None:
    assert {"receipts", "omissions"} <= {*BOUNDED_TABLES}
    clock = Clock()
    record = open_record(tmp_path, days=30, now=clock)
    record.ledger.file_receipt("scope", numbered(1))
    record.conversations.note_omission(Omission("codex", "gpt"))
    record.close()
    use_daily(tmp_path, clock, 20)
    record = open_record(tmp_path, days=30, now=clock)
    record.ledger.file_receipt("scope", numbered(2))
    record.conversations.note_omission(Omission("pi", "glm"))
    record.close()
    use_daily(tmp_path, clock, 11)
    record = open_record(tmp_path, days=30, now=clock)
    assert models(record) == ["model-2"]
    assert [one.client for one in record.conversations.list_omissions()] == ["pi"]
    record.close()


@requirement("record.decisions")
def test_filing_a_receipt_does_not_wait_for_another_writer(tmp_path: Path) -> None:
    record = open_record(tmp_path)
    other = sqlite3.connect(tmp_path / "record.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    for number in range(2):
        record.ledger.file_receipt(
            "scope", numbered(number)
        )  # whoever waited here would have waited for `other`, in vain
    assert other.execute("SELECT COUNT(*) FROM receipts").fetchone() == (0,)
    other.execute("ROLLBACK")
    other.close()
    assert len(models(record)) == 2
    record.close()


_CRASHES = """
import os, signal, sqlite3, sys
from pathlib import Path
from sightline.store import open_record
from tests.store.test_receipts import FILED
folder = Path(sys.argv[1])
record = open_record(folder)
record.ledger.file_receipt("scope", FILED)
other = sqlite3.connect(folder / "record.sqlite")
while other.execute("SELECT COUNT(*) FROM receipts").fetchone() == (0,):
    pass
os.kill(os.getpid(), signal.SIGKILL)
"""


@requirement("record.decisions")
def test_a_receipt_is_written_soon_and_survives_a_crash(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", _CRASHES, tmp_path], timeout=60, check=False)
    assert ended.returncode == -signal.SIGKILL
    record = open_record(tmp_path)
    assert [replace(filed, at=0.0) for filed in record.ledger.list_receipts(9)] == [FILED]
    record.close()


def test_receipts_of_many_threads_are_all_written(tmp_path: Path) -> None:
    record = open_record(tmp_path)

    def work(first: int) -> None:
        for number in range(first, first + 100):
            record.ledger.file_receipt("scope", numbered(number))
            if number % 25 == 0:
                record.ledger.list_receipts(1)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(0, 800, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    record.close()
    record = open_record(tmp_path)
    assert sorted(models(record)) == sorted(f"model-{number}" for number in range(800))
    record.close()


@requirement("record.trouble")
def test_a_failing_disk_does_not_fail_a_request(tmp_path: Path) -> None:
    record = open_record(tmp_path)
    with sqlite3.connect(tmp_path / "record.sqlite") as other:
        other.execute("DROP TABLE receipts")
    other.close()
    record.ledger.file_receipt("scope", FILED)
    assert record.ledger.list_receipts(1) == ()
    record.close()


def test_an_omission_is_stored_once_for_each_client_and_model(record: Store) -> None:
    for omission in (Omission("pi", "glm"), Omission("codex", "gpt"), Omission("pi", "glm"), Omission("pi", "other")):
        record.conversations.note_omission(omission)
    assert [(one.client, one.model) for one in record.conversations.list_omissions()] == [
        ("codex", "gpt"),
        ("pi", "glm"),
        ("pi", "other"),
    ]
    assert all(one.at > 0 for one in record.conversations.list_omissions())


@requirement("record.forget.all")
def test_forgetting_all_images_deletes_receipts_that_are_not_yet_written(record: Store) -> None:
    record.ledger.file_receipt("scope", FILED)
    assert record.ledger.list_receipts(1)
    record.ledger.file_receipt("scope", FILED)
    record.conversations.note_omission(Omission("pi", "glm"))
    assert isinstance(record.forget(None), int)
    assert (record.ledger.list_receipts(9), record.conversations.list_omissions()) == ((), ())


def taken(number: int, conversation: str, sha256: str = "", words: str = "") -> FiledReceipt:
    """A receipt with a trace: the request of a turn, with one image."""
    line = ReceiptLine(f"/messages/{number}/content/0", "told", "by local", 100, 10, sha256, "a.png", (20, 10))
    parts = TraceParts(conversation, (("/messages/0", words, "told"),), RequestTrace(turn=number, messages=number))
    return FiledReceipt(Receipt("zai", "glm-5.3", (line,)), "anthropic", client="agent/1", parts=parts)


@requirement("inspector.data")
def test_conversations_are_the_receipts_with_the_same_first_message(record: Store) -> None:
    for number, name in enumerate(("one", "two", "one"), 1):
        record.ledger.file_receipt("scope", taken(number, name))
    newest, older = record.ledger.list_conversations(10)
    assert {newest.requests, older.requests} == {1, 2}
    both = newest if newest.requests == 2 else older
    assert (both.turns, both.images, both.tokens_before, both.tokens_after) == (3, 1, 200, 20)
    assert (both.model, both.client, both.models) == ("glm-5.3", "agent/1", 1)
    assert record.ledger.find_conversation(both.id) == both
    assert len(record.ledger.list_conversations(1, 1)) == 1
    first, last = record.ledger.read_conversation(both.id, 10)
    assert [each.trace.turn for each in (first, last)] == [1, 3]
    assert first.receipt.sights[0].size == (20, 10)
    assert [*record.ledger.read_conversation(both.id, 10, first.id)] == [last]
    assert (record.ledger.find_conversation("none"), record.ledger.read_conversation("none", 10)) == (None, [])


@requirement("inspector.data")
def test_forgetting_an_image_deletes_the_receipts_that_name_it(record: Store) -> None:
    record.ledger.file_receipt("scope", taken(1, "one", "a" * 64))
    record.ledger.file_receipt("scope", taken(2, "one", "b" * 64))
    record.ledger.list_receipts(1)
    record.ledger.file_receipt("scope", taken(3, "one", "a" * 64))  # not yet written
    record.forget("a" * 64)
    assert [each.receipt.sights[0].sha256 for each in record.ledger.list_receipts(9)] == ["b" * 64]


@requirement("inspector.data")
@pytest.mark.parametrize("words", ["x y " * 2000, "\ud800é" * 3000, "A" * 9000, {"data": "B" * 9000}])
def test_an_edited_place_is_kept_shortened_and_without_base64(words: Json) -> None:
    text = shorten_place(words)
    assert len(text.encode()) <= MAX_PLACE_BYTES
    assert "A" * 64 not in text
    assert "B" * 64 not in text
