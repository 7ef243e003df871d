"""Caches of blobs and rows, while other threads delete or change some of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from sightline.store.blobs import ByteCache, CachedBlobs, MemoryBlobs
from sightline.store.sql import Row
from sightline.store.storage import ReloadedQuery, RowCache
from tests.requirements import requirement

SHA256 = "f0" * 32


class InterruptedBlobs(MemoryBlobs):
    """Blobs of which a read or a deletion is interrupted: what another thread does meanwhile is called."""

    after_read: Callable[[], object] | None = None
    before_delete: Callable[[], object] | None = None

    def read(self, sha256: str) -> bytes | None:
        data = super().read(sha256)
        meanwhile, self.after_read = self.after_read, None
        if meanwhile is not None:
            meanwhile()
        return data

    def delete(self, names: Iterable[str]) -> None:
        meanwhile, self.before_delete = self.before_delete, None
        if meanwhile is not None:
            meanwhile()
        super().delete(names)


def open_blobs() -> tuple[InterruptedBlobs, ByteCache, CachedBlobs]:
    blobs, cache = InterruptedBlobs(), ByteCache(1 << 20, 100)
    blobs.write(SHA256, b"pixels")
    return blobs, cache, CachedBlobs(blobs, cache)


@requirement("record.shared.forgotten")
def test_a_blob_that_is_deleted_while_it_is_read_is_not_cached() -> None:
    blobs, _, cached = open_blobs()
    blobs.after_read = lambda: cached.delete([SHA256])
    assert cached.read(SHA256) == b"pixels", "it was there"
    assert not cached.has(SHA256)
    assert cached.read(SHA256) is None


@requirement("record.shared.forgotten")
def test_a_blob_that_is_read_while_it_is_deleted_is_not_cached() -> None:
    blobs, _, cached = open_blobs()
    blobs.before_delete = lambda: cached.read(SHA256)
    cached.delete([SHA256])
    assert not cached.has(SHA256)
    assert cached.read(SHA256) is None


@requirement("record.shared.forgotten")
def test_a_blob_that_another_replica_forgets_while_it_is_read_is_not_cached() -> None:
    blobs, cache, cached = open_blobs()

    def forget_elsewhere() -> None:
        MemoryBlobs.delete(blobs, [SHA256])
        cache.clear()  # as after an announcement

    blobs.after_read = forget_elsewhere
    assert cached.read(SHA256) == b"pixels", "it was there"
    assert cached.read(SHA256) is None


@requirement("record.shared.hot_path")
def test_a_blob_that_was_read_is_cached() -> None:
    blobs, _, cached = open_blobs()
    assert cached.read(SHA256) == b"pixels"
    MemoryBlobs.delete(blobs, [SHA256])
    assert cached.read(SHA256) == b"pixels"
    assert cached.has(SHA256)


@requirement("record.shared.change")
def test_rows_that_were_read_before_a_later_change_are_not_cached() -> None:
    cache, key = RowCache(10), ReloadedQuery("SELECT given FROM consents")
    cache.put(key, [("yes",)])

    def fetch(query: str) -> list[Row]:
        cache.clear()  # another thread has withdrawn it after this was read
        return [("yes",)]

    cache.reload(fetch)
    assert cache.get(key) is None


@requirement("record.shared.loop")
def test_only_rows_that_are_reloaded_stay_in_a_cache_after_a_change() -> None:
    cache, key = RowCache(10), ReloadedQuery("SELECT given FROM consents WHERE provider = ?", ("openai",))
    cache.put(key, [("yes",)])
    cache.put("image", [("old",)])
    before = cache.generation
    cache.reload(lambda query, *values: [(query, *values)])
    assert cache.get(key) == [(key.query, "openai")]
    assert cache.get("image") is None
    assert cache.generation > before


@requirement("record.shared.loop", "record.shared.change")
def test_two_threads_that_reload_at_once_leave_the_rows_of_the_later_one() -> None:
    cache, key, values = RowCache(10), ReloadedQuery("SELECT given FROM consents"), iter("ab")
    cache.put(key, [("old",)])
    begun, second_begun = threading.Event(), threading.Event()

    def fetch(query: str) -> list[Row]:
        value = next(values)
        begun.set()
        assert second_begun.wait(10)
        return [(value,)]

    def reload_again() -> None:
        assert begun.wait(10)
        second_begun.set()
        cache.reload(fetch)

    threads = [threading.Thread(target=cache.reload, args=(fetch,)), threading.Thread(target=reload_again)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert cache.get(key) == [("b",)]
