"""The LRU cache is bounded by weight, and evicts what was not used for longest."""

from __future__ import annotations

from sightline.vision.concurrency import LruCache


def test_a_value_can_be_read_back() -> None:
    shelf: LruCache[str] = LruCache(2)
    assert shelf.put("a", "1") == "1"
    assert (shelf.get("a"), shelf.get("b")) == ("1", None)
    assert "a" in shelf
    assert "b" not in shelf


def test_the_least_recently_used_value_is_evicted() -> None:
    shelf: LruCache[int] = LruCache(2)
    for key in "ab":
        shelf.put(key, 1)
    shelf.get("a")
    shelf.put("c", 1)
    assert [key in shelf for key in "abc"] == [True, False, True]


def test_a_heavy_value_evicts_several() -> None:
    shelf: LruCache[int] = LruCache(10)
    for key in "abc":
        shelf.put(key, 1, weight=3)
    shelf.put("d", 1, weight=6)
    assert [key in shelf for key in "abcd"] == [False, False, True, True]


def test_a_replaced_value_counts_once() -> None:
    shelf: LruCache[int] = LruCache(10)
    shelf.put("a", 1, weight=4)
    for weight in (6, 5, 6):
        shelf.put("b", 1, weight)
    assert [key in shelf for key in "ab"] == [True, True]
    assert len(shelf) == 2


def test_a_value_heavier_than_the_capacity_is_not_kept() -> None:
    shelf: LruCache[int] = LruCache(10)
    assert shelf.put("a", 7, weight=11) == 7
    assert "a" not in shelf
