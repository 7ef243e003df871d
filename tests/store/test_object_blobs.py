"""Bytes in object storage, here in memory: the tests in `tests/e2e` use a real server."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import obstore
import pytest
from obstore.store import MemoryStore, ObjectStore

from sightline.store.object_blobs import ObjectBlobs
from tests.requirements import requirement
from tests.store.writer import image_of

IMAGE = image_of("cat", 1)


@requirement("record.blobs.size")
def test_an_object_that_is_larger_than_any_image_is_not_read(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    blobs = ObjectBlobs(MemoryStore(), "s3://bucket", max_bytes=len(IMAGE.data) - 1)
    blobs.write(IMAGE.sha256, IMAGE.data)
    get = obstore.get

    def answer(store: ObjectStore, path: str) -> object:
        return SimpleNamespace(meta=get(store, path).meta, bytes=lambda: pytest.fail("it was loaded"))

    monkeypatch.setattr(obstore, "get", answer)
    with caplog.at_level(logging.WARNING):
        assert [blobs.read(IMAGE.sha256) for _ in range(2)] == [None, None]
    assert len(caplog.records) == 1
    assert IMAGE.sha256 in caplog.text
    assert not blobs.has(IMAGE.sha256), "it can be stored again"


@requirement("record.blobs.size")
def test_an_object_of_the_largest_size_is_read() -> None:
    blobs = ObjectBlobs(MemoryStore(), "s3://bucket", max_bytes=len(IMAGE.data))
    blobs.write(IMAGE.sha256, IMAGE.data)
    assert blobs.read(IMAGE.sha256) == IMAGE.data


@requirement("record.blobs")
def test_wrong_bytes_are_replaced_by_the_next_write() -> None:
    store = MemoryStore()
    blobs = ObjectBlobs(store, "s3://bucket")
    blobs.write(IMAGE.sha256, b"others")
    assert blobs.read(IMAGE.sha256) is None
    assert not blobs.has(IMAGE.sha256)
    blobs.write(IMAGE.sha256, IMAGE.data)
    assert blobs.read(IMAGE.sha256) == IMAGE.data
