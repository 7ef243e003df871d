"""What was read within the last second, for reads that nearly every request repeats."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from sightline.store.transactions import Transactions

_RECENT_SECONDS = 1.0
_MAX_RECENT = 4096

T = TypeVar("T")


class RecentReads(Generic[T]):
    """What was read within the last second.

    A write by this process ends it at once. A write by another process is noticed within a second, like a change of the
    settings; so use it only for what may be that old.
    """

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._since, self._writes, self._backend = 0.0, 0, transactions.backend
        self._found: dict[Hashable, T] = {}

    def get_all(self) -> dict[Hashable, T]:
        """Return what was read, by keys of the caller, who calls this before a read and adds its result."""
        store, wall = self._transactions, self._transactions.wall_clock()
        is_current = self._writes == store.write_count and self._backend is store.backend
        if not is_current or not 0 <= wall - self._since < _RECENT_SECONDS or len(self._found) > _MAX_RECENT:
            self._since, self._writes, self._backend = wall, store.write_count, store.backend
            self._found = {}  # another thread may still add to the old one what it has read before the write
        return self._found
