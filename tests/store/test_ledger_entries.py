"""Entries of the ledger: read back, bounded, summed up, and forgotten with their images."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path

from sightline.model.ports import Store
from sightline.model.records import LedgerEntry, Spending
from sightline.model.seer import Usage
from sightline.store import open_record
from sightline.store.retention import BOUNDED_TABLES
from tests.requirements import requirement
from tests.store.test_bounds import DAY, Clock, use_daily
from tests.store.writer import image_of

CAT = image_of("cat", 0).sha256
DOG = image_of("dog", 1).sha256
CALL = LedgerEntry(
    "vision_proxy.tool_call",
    (CAT, DOG),
    "here/eye",
    Usage(1000, 20, 400),
    0.25,
    latency_ms=1200,
    about={
        "question": "what?\n" * 100,
        "reason": None,
        "crop_form": "region",
        "crop_resolved_pixels": [0, 0, 20, 15],
        "odd": "\ud800",
    },
)
OTHERS = (
    LedgerEntry(
        "vision_proxy.joint_description",
        (CAT, DOG),
        "here/eye",
        Usage(7, 8),
        about={"filename_hint": "versioned", "phash_similarity": 0.9, "dimensions": [[1, 2], [3, 4]]},
    ),
    LedgerEntry("vision_proxy.command", about={"command": "describe"}),
    LedgerEntry("vision_proxy.skip", (CAT,), about={"why": "maxImagesPerTurn"}),
    LedgerEntry("vision_proxy.tool_call", (CAT,), "here/eye", latency_ms=9, error="unavailable"),
)


@requirement("telemetry.entries", "telemetry.crop", "telemetry.joint")
def test_entries_are_read_back_unchanged(record: Store) -> None:
    for entry in (CALL, *OTHERS):
        record.ledger.add_entry("scope", entry)
    found = record.ledger.list_entries()
    assert [replace(entry, at=0.0) for entry in found] == [CALL, *OTHERS]
    assert all(entry.at > 0 for entry in found)
    assert [entry.kind for entry in record.ledger.list_entries("vision_proxy.skip")] == ["vision_proxy.skip"]


@requirement("ask.usage", "telemetry.cost", "telemetry.failed")
def test_spending_is_summed_by_day_and_seer(tmp_path: Path) -> None:
    clock = Clock()
    record = open_record(tmp_path, now=clock)
    first = datetime.fromtimestamp(clock()).strftime("%Y-%m-%d")  # noqa: DTZ006, the day where the user is
    record.ledger.add_entry("one", CALL)
    record.ledger.add_entry("two", replace(CALL, cost_usd=None))
    record.ledger.add_entry("one", replace(CALL, cache_hit=True))
    record.ledger.add_entry("one", replace(CALL, seer="cloud/eye", usage=Usage(), cost_usd=None))
    record.ledger.add_entry("one", OTHERS[1])
    record.ledger.add_entry("one", replace(CALL, seer="cloud/eye", usage=Usage(), cost_usd=None, error="unavailable"))
    record.ledger.add_entry(
        "one", replace(CALL, seer="cloud/eye", usage=Usage(9, 1), cost_usd=None, error="RESPONSE_NOT_JSON")
    )
    clock.days += 1
    second = datetime.fromtimestamp(clock()).strftime("%Y-%m-%d")  # noqa: DTZ006
    record.ledger.add_entry("one", replace(CALL, cost_usd=0.5))
    assert record.ledger.sum_spending() == (
        Spending(first, "cloud/eye", 3, Usage(9, 1), None, 2, 2),
        Spending(first, "here/eye", 2, Usage(2000, 40, 800), 0.25, 1),
        Spending(second, "here/eye", 1, Usage(1000, 20, 400), 0.5, 0),
    )
    record.close()


@requirement("record.days", "record.bytes")
def test_entries_count_against_the_bounds(tmp_path: Path) -> None:
    assert "entries" in BOUNDED_TABLES
    clock = Clock()
    record = open_record(tmp_path, days=30, bytes_limit=20_000, now=clock)
    record.ledger.add_entry("scope", CALL)
    record.close()
    use_daily(tmp_path, clock, 31)
    record = open_record(tmp_path, days=30, bytes_limit=20_000, now=clock)
    assert record.ledger.list_entries() == ()
    for number in range(100):
        clock.days += 1 / DAY
        record.ledger.add_entry("scope", replace(CALL, latency_ms=number))
    kept = [entry.latency_ms for entry in record.ledger.list_entries()]
    assert kept == list(range(100))[-len(kept) :]
    assert 0 < len(kept) < 25
    record.close()


@requirement("record.forget", "record.forget.traces")
def test_forgetting_an_image_clears_its_entries_and_keeps_their_figures(tmp_path: Path) -> None:
    record = open_record(tmp_path)
    record.ledger.add_entry("scope", CALL)
    record.ledger.add_entry("other", OTHERS[1])
    assert record.find_known_images(CAT[:12]) == (CAT,)
    assert record.forget(CAT) == 1
    call, command = record.ledger.list_entries()
    assert (call.images, call.about, call.usage, call.cost_usd) == ((), {}, CALL.usage, 0.25)
    assert command.about == OTHERS[1].about
    assert record.find_known_images(CAT[:12]) == ()
    record.close()
    held = b"".join(path.read_bytes() for path in tmp_path.glob("record.sqlite*"))
    assert CAT.encode() not in held
    assert b"what?" not in held


@requirement("record.forget.all", "record.forget.usage", "record.forget.traces")
def test_forgetting_all_images_keeps_what_was_spent_without_images_and_words(tmp_path: Path) -> None:
    record = open_record(tmp_path)
    for entry in (CALL, *OTHERS):
        record.ledger.add_entry("scope", entry)
    spent = record.ledger.sum_spending()
    assert isinstance(record.forget(None), int)
    assert record.ledger.sum_spending() == spent
    kept = record.ledger.list_entries()
    assert {(entry.images, *entry.about) for entry in kept} == {((),)}
    assert all(entry.seer for entry in kept)
    record.close()
    held = b"".join(path.read_bytes() for path in tmp_path.glob("record.sqlite*"))
    assert CAT.encode() not in held
    assert b"what?" not in held


@requirement("record.forget.usage")
def test_forgetting_usage_too_deletes_every_entry(record: Store) -> None:
    for entry in (CALL, *OTHERS):
        record.ledger.add_entry("scope", entry)
    assert isinstance(record.forget(None, usage=True), int)
    assert (record.ledger.list_entries(), record.ledger.sum_spending()) == ((), ())
