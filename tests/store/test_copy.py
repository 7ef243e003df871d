"""A record is copied whole, with its scopes; copying again adds only what is missing."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from sightline.model.facts import Description
from sightline.model.geometry import Size
from sightline.model.ports import Store
from sightline.model.profile import Lesson
from sightline.model.records import FiledReceipt, LedgerEntry, LoopAnswer, PinnedDescription, Receipt
from sightline.model.refusal import Refusal
from sightline.store import open_record, open_record_or_refuse
from sightline.store.blobs import FileBlobs
from sightline.store.maintenance import CopyResult, collect_garbage, copy_record, read_stats
from sightline.store.retention import RecordBounds
from sightline.store.sql_store import SqlStore
from tests.requirements import requirement
from tests.store.test_bounds import DAY, Clock, kept
from tests.store.writer import description_of, image_of, perception_of

KEY = "a credential"


def open_folder(folder: Path) -> SqlStore:
    store = open_record_or_refuse(folder)
    assert isinstance(store, SqlStore), store
    return store


def fill(store: SqlStore, count: int = 3) -> None:
    scope = store.compute_scope(KEY)
    for number in range(count):
        store.images.keep(scope, image_of("cat", number))
        store.images.note_place(scope, image_of("cat", number).sha256, f"/pictures/{number}.png")
        store.descriptions.keep(scope, description_of("cat", number), "v1")
        store.images.keep_view(scope, perception_of("cat", number))
        store.descriptions.pin(scope, PinnedDescription(f"turn {number}", (image_of("cat", number).sha256,), {"a": 1}))
        store.ledger.add_entry(scope, LedgerEntry("vision_proxy.tool_call", (), "ollama/llava", cost_usd=0.5))
        store.ledger.file_receipt(scope, FiledReceipt(Receipt("upstream", f"model {number}", (), ()), "openai_chat"))
    saved = Description(image_of("cat", 0).sha256, Size(1, 1), "a saved one", "local/reader")
    assert store.descriptions.save(None, saved) is None
    store.conversations.visit(scope, "head", ["a", "b"], [1], 300.0)
    store.conversations.keep_answer(scope, LoopAnswer("key", "visible", "h", [{"leg": 1}], None))
    assert store.policy.keep_lesson("upstream", "model", Lesson(blind=True, why="it said so"), 7) is None
    assert store.policy.set_consent("openai", given=True) is None
    assert store.policy.set_consent("google", given=False) is None
    store.flush()


def describe_content(store: SqlStore, count: int = 3) -> object:
    """Everything that the ports return of a record that `fill` has filled."""
    scope = store.compute_scope(KEY)
    shas = [image_of("cat", number).sha256 for number in range(count)]
    return (
        [store.images.read(scope, sha256) for sha256 in shas],
        [store.images.read_view(scope, perception_of("cat", number).id) for number in range(count)],
        [each.path for each in store.images.list_newest(scope, ["/pictures"], 9)],
        [store.descriptions.read(scope, sha256, "ollama/llava", "v1") for sha256 in shas],
        [store.descriptions.read_pin(scope, f"turn {number}", (shas[number],)) for number in range(count)],
        store.descriptions.read_saved(scope, shas[0]),
        store.conversations.read_answers(scope, ["key"])[0].legs,
        store.ledger.list_entries(),
        store.ledger.list_receipts(9),
        store.policy.read_consents(),
        store.policy.list_lessons(),
        read_stats(store),
    )


def copy(source: SqlStore, target: SqlStore) -> CopyResult:
    result = copy_record(source, target, lambda *progress: None)
    assert isinstance(result, CopyResult), result
    return result


@requirement("store.copy")
def test_everything_of_a_record_is_copied(tmp_path: Path) -> None:
    source, target = open_folder(tmp_path / "source"), open_folder(tmp_path / "target")
    fill(source)
    result = copy(source, target)
    assert describe_content(target) == describe_content(source)
    assert (result.missing, sum(result.known.values())) == (0, 0)
    again = copy(source, target)
    assert sum(again.copied.values()) == 0
    assert again.known == result.copied
    assert describe_content(target) == describe_content(source)
    source.close()
    target.close()


@requirement("store.copy")
def test_a_record_with_rows_of_other_credentials_is_refused(tmp_path: Path) -> None:
    source, target = open_folder(tmp_path / "source"), open_folder(tmp_path / "target")
    fill(source)
    fill(target, 1)
    before = describe_content(target, 1)
    assert isinstance(copy_record(source, target, lambda *progress: None), Refusal)
    assert describe_content(target, 1) == before
    source.close()
    target.close()


@requirement("store.copy")
def test_a_withdrawal_wins_over_a_consent(tmp_path: Path) -> None:
    source, target = open_folder(tmp_path / "source"), open_folder(tmp_path / "target")
    for store, given in ((source, "openai"), (target, "google")):
        for provider in ("openai", "google"):
            store.policy.set_consent(provider, given=provider == given)
    copy(source, target)
    assert target.policy.read_consents() == {"google": False, "openai": False}
    source.close()
    target.close()


@requirement("store.copy")
def test_rows_without_bytes_are_left_out_and_counted(tmp_path: Path) -> None:
    source, target = open_folder(tmp_path / "source"), open_folder(tmp_path / "target")
    fill(source)
    next((tmp_path / "source" / "blobs").rglob(image_of("cat", 1).sha256)).unlink()
    assert copy(source, target).missing == 1
    scope = target.compute_scope(KEY)
    assert target.images.read(scope, image_of("cat", 1).sha256) is None
    assert target.images.read(scope, image_of("cat", 2).sha256) == image_of("cat", 2)
    source.close()
    target.close()


class SweptBlobs(FileBlobs):
    """Blobs that another process sweeps as soon as they are written for the first time."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._swept: set[str] = set()

    def write(self, sha256: str, data: bytes) -> None:
        super().write(sha256, data)
        if sha256 not in self._swept:
            self._swept.add(sha256)
            self.delete([sha256])


@requirement("store.copy")
def test_bytes_that_are_swept_before_their_row_is_copied_are_copied_again(tmp_path: Path) -> None:
    source, target = open_folder(tmp_path / "source"), open_folder(tmp_path / "target")
    fill(source)
    object.__setattr__(target.transactions.backend, "blobs", SweptBlobs(tmp_path / "target" / "blobs"))
    assert copy(source, target).missing == 0
    assert describe_content(target) == describe_content(source)
    source.close()
    target.close()


@requirement("store.gc")
@pytest.mark.parametrize("limit", [0, 1 << 40])
def test_garbage_is_deleted_and_what_was_used_today_stays(tmp_path: Path, limit: int) -> None:
    store = open_folder(tmp_path)
    fill(store)
    blobs, old, new = store.transactions.backend.blobs, image_of("nobody's", 1), image_of("nobody's", 2)
    for orphan in (old, new):
        blobs.write(orphan.sha256, orphan.data)
    stored = time.time() - 2 * DAY
    os.utime(next(tmp_path.rglob(old.sha256)), (stored, stored))
    before = read_stats(store)
    gone = collect_garbage(store, RecordBounds(limit, 1.0), lambda *progress: None)
    assert (gone.rows, gone.blobs) == (0, 1)
    assert read_stats(store) == before
    assert [blobs.has(orphan.sha256) for orphan in (old, new)] == [False, True], "it may be another record's"
    store.close()


def keep_daily(record: Store, clock: Clock, count: int) -> None:
    """Keep one image a day, the last one today."""
    for number in range(count):
        clock.days += 1
        assert record.images.keep("scope", image_of("cat", number))


@requirement("store.gc")
@pytest.mark.parametrize(
    ("size", "days", "stay"),
    [
        (1 << 40, 30.0, [0, 1, 2, 3, 4]),
        (1 << 40, 2.5, [2, 3, 4]),
        (2 * len(image_of("cat", 0).data), 30.0, [3, 4]),
        (0, 30.0, [4]),
        (0, 0.0, [4]),
    ],
)
def test_what_is_older_or_more_than_the_bounds_is_deleted(
    tmp_path: Path, size: int, days: float, stay: list[int]
) -> None:
    clock = Clock()
    record = open_record(tmp_path, now=clock)
    assert isinstance(record, SqlStore)
    keep_daily(record, clock, 5)
    gone = collect_garbage(record, RecordBounds(size, days), lambda *progress: None)
    assert (gone.rows, gone.blobs) == (5 - len(stay), 0)
    assert kept(record, range(5)) == stay
    names = {image_of("cat", number).sha256 for number in stay}
    assert set(record.transactions.backend.blobs.list_names()) == names
    record.close()
