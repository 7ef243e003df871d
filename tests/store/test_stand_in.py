"""A record that fails between a check and a write: memory takes its place, and nothing there is called durable."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sightline.model.profile import Lesson
from sightline.model.refusal import Refusal
from sightline.store import open_record
from sightline.store.blobs import FileBlobs
from sightline.store.retention import RecordBounds
from sightline.store.sql_store import SqlStore
from sightline.store.storage import Backend, Storage, StorageState
from tests.requirements import requirement
from tests.store.writer import description_of, image_of, perception_of

BOUNDS = RecordBounds(1 << 20, 30.0)
DOWN = Refusal("unavailable", "the server is down", "wait")


class FailingStorage:
    """Implements `RecordStorage`: it fails right after it was asked whether it can be written."""

    def __init__(self) -> None:
        self._storage = Storage.open_in_memory(BOUNDS, time.time)
        self._stand_in = Storage.open_stand_in(BOUNDS, time.time, DOWN).backend
        self.is_down = False

    @property
    def folder(self) -> Path | None:
        return None

    @property
    def backend(self) -> Backend:
        return self._stand_in if self.is_down else self._storage.backend

    @property
    def state(self) -> StorageState:
        return "stand_in" if self.is_down else "open"

    @property
    def read_refusal(self) -> Refusal | None:
        return DOWN if self.is_down else None

    @property
    def write_refusal(self) -> Refusal | None:
        refusal, self.is_down = self.read_refusal, True
        return refusal

    def ensure_current(self, *, wait: bool = True) -> bool:
        return True

    def report_error(self, error: Exception) -> bool:
        return False

    def claim_sweep(self) -> bool:
        return False

    def replace_key(self, key: bytes) -> None:
        raise NotImplementedError

    def close(self) -> None:
        self._storage.close()
        self._stand_in.database.close()


@pytest.fixture
def failing() -> Iterator[SqlStore]:
    store = SqlStore(FailingStorage(), time.time)
    yield store
    store.close()


DURABLE: dict[str, Callable[[SqlStore], object]] = {
    "a consent": lambda store: store.policy.set_consent("openai", given=True),
    "a lesson": lambda store: store.policy.keep_lesson("upstream", "model", Lesson(blind=True), 7.0),
    "a forgotten lesson": lambda store: store.policy.forget_lesson("upstream", "model"),
    "a saved description": lambda store: store.descriptions.save("scope", description_of("cat", 1)),
    "a forgotten record": lambda store: store.forget(None),
}


@requirement("record.shared.durable")
@pytest.mark.parametrize("what", DURABLE)
def test_what_would_be_written_to_the_stand_in_is_refused(failing: SqlStore, what: str) -> None:
    assert DURABLE[what](failing) is DOWN
    assert failing.transactions.fetch_all("SELECT 1 FROM consents UNION ALL SELECT 1 FROM lessons") == []


@requirement("record.shared.durable", "record.before_reference")
def test_an_image_that_was_written_to_the_stand_in_is_not_durable(failing: SqlStore) -> None:
    assert failing.images.keep("scope", image_of("cat", 1)) is False
    assert failing.images.read("scope", image_of("cat", 1).sha256) == image_of("cat", 1)


@requirement("record.shared.durable", "record.before_reference")
def test_a_view_that_was_written_to_the_stand_in_is_not_durable(failing: SqlStore) -> None:
    assert failing.images.keep_view("scope", perception_of("cat", 1)) is False


@requirement("record.forget.order")
def test_forgetting_everything_deletes_rows_before_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: FileBlobs, names: object) -> None:
        raise OSError("bytes can't be deleted")

    record = open_record(tmp_path)
    images = [image_of("cat", number) for number in range(3)]
    for image in images:
        assert record.images.keep("scope", image)
    with monkeypatch.context() as patch:
        patch.setattr(FileBlobs, "delete", fail)
        assert isinstance(record.forget(None), Refusal), "it is not reported as forgotten"
    assert record.images.find_by_prefix("scope", "") == (), "no row names bytes that may be gone"
    assert record.forget(None) == 0
    assert not [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()], "the next one deletes the bytes"
    record.close()
