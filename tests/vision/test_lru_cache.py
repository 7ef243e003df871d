"""The memory of the process is bounded by weight, and forgets first what was not asked for longest."""

from __future__ import annotations

from sightline.vision.lru_cache import LruCache


def test_what_was_put_is_there() -> None:
    shelf: LruCache[str] = LruCache(2)
    assert shelf.put("a", "1") == "1"
    assert (shelf.get("a"), shelf.get("b")) == ("1", None)
    assert "a" in shelf
    assert "b" not in shelf


def test_the_longest_unused_goes_first() -> None:
    shelf: LruCache[int] = LruCache(2)
    for key in "ab":
        shelf.put(key, 1)
    shelf.get("a")
    shelf.put("c", 1)
    assert [key in shelf for key in "abc"] == [True, False, True]


def test_the_heavy_makes_room_for_itself() -> None:
    shelf: LruCache[int] = LruCache(10)
    for key in "abc":
        shelf.put(key, 1, weight=3)
    shelf.put("d", 1, weight=6)
    assert [key in shelf for key in "abcd"] == [False, False, True, True]


def test_what_is_put_again_weighs_once() -> None:
    shelf: LruCache[int] = LruCache(10)
    shelf.put("a", 1, weight=4)
    for weight in (6, 5, 6):
        shelf.put("b", 1, weight)
    assert [key in shelf for key in "ab"] == [True, True]
    assert len(shelf) == 2


def test_what_is_too_heavy_for_the_whole_shelf_is_not_kept() -> None:
    shelf: LruCache[int] = LruCache(10)
    assert shelf.put("a", 7, weight=11) == 7
    assert "a" not in shelf
