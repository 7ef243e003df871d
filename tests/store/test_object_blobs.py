"""Bytes in object storage, here in memory, or in a shared folder: the tests in `tests/e2e` use real servers."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path
from types import SimpleNamespace

import obstore
import pytest
from obstore.store import MemoryStore, ObjectStore

from sightline.store.object_blobs import ObjectBlobs, SharedFolderBlobs, open_blobs
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


def find_file(folder: Path) -> Path:
    return next(folder.rglob(IMAGE.sha256))


@requirement("record.blobs.folder")
def test_a_shared_folder_stores_and_deletes_bytes(tmp_path: Path) -> None:
    blobs, other = (open_blobs(f"file://{tmp_path}/new/blobs", {}) for _ in range(2))
    assert not blobs.has(IMAGE.sha256)
    blobs.write(IMAGE.sha256, IMAGE.data)
    assert other.confirm(IMAGE.sha256)
    assert other.read(IMAGE.sha256) == IMAGE.data
    assert list(other.list_names()) == [IMAGE.sha256]
    other.delete([IMAGE.sha256])
    other.sync([IMAGE.sha256])
    assert blobs.read(IMAGE.sha256) is None
    assert list(blobs.list_names()) == []


@requirement("record.blobs.folder")
@pytest.mark.skipif(os.name != "posix", reason="rights of POSIX")
def test_the_rights_of_an_existing_shared_folder_stay(tmp_path: Path) -> None:
    folder = tmp_path / "blobs"
    folder.mkdir()
    folder.chmod(0o2770)
    open_blobs(f"file://{folder}", {}).write(IMAGE.sha256, IMAGE.data)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o2770


@requirement("record.blobs.folder")
def test_a_file_with_wrong_bytes_in_a_shared_folder_is_replaced_and_never_deleted(tmp_path: Path) -> None:
    one, other = SharedFolderBlobs(tmp_path), SharedFolderBlobs(tmp_path)
    one.write(IMAGE.sha256, IMAGE.data)
    find_file(tmp_path).write_bytes(b"others")
    assert one.read(IMAGE.sha256) is None
    assert find_file(tmp_path).read_bytes() == b"others"
    assert not one.confirm(IMAGE.sha256), "it can be stored again"
    other.write(IMAGE.sha256, IMAGE.data)
    assert one.read(IMAGE.sha256) == IMAGE.data
    assert one.has(IMAGE.sha256)


@requirement("record.blobs.size")
def test_a_file_in_a_shared_folder_that_is_larger_than_any_image_is_not_read(tmp_path: Path) -> None:
    blobs = SharedFolderBlobs(tmp_path, max_bytes=len(IMAGE.data) - 1)
    blobs.write(IMAGE.sha256, IMAGE.data)
    assert blobs.read(IMAGE.sha256) is None
    assert find_file(tmp_path).exists()
