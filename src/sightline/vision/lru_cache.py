"""A cache that evicts what was used least recently."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class LruCache(Generic[T]):
    """Keeps what was found out last, up to a weight. Several threads may use it."""

    def __init__(self, most: int) -> None:
        self._lock = threading.Lock()
        self._most = most
        self._weight = 0
        self._items: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._items

    def get(self, key: Hashable) -> T | None:
        with self._lock:
            found = self._items.get(key)
            if found is None:
                return None
            self._items.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: T, weight: int = 1) -> T:
        with self._lock:
            if key in self._items:
                self._weight -= self._items.pop(key)[1]
            self._items[key] = value, weight
            self._weight += weight
            while self._weight > self._most and self._items:
                self._weight -= self._items.popitem(last=False)[1][1]
        return value
