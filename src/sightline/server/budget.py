"""A bound on the memory that request bodies take together.

A body that has to be read whole reserves its bytes before it is read, and gives them back when its request is done.
Without room for it, the request is refused and can be sent again: waiting would last as long as the slowest request
under way. A part is set aside for small bodies, so that large ones do not keep them out.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

MOST_HELD = 1024 * 1024 * 1024  # bytes of all bodies that are in memory at a time
MOST_SMALL = 1024 * 1024  # bytes: a body that is no longer is small
SET_ASIDE = 128 * 1024 * 1024  # bytes beyond `MOST_HELD`, for small bodies


class MemoryBudget:
    """The bytes that all requests of a process have reserved."""

    __slots__ = ("held", "most")

    def __init__(self, most: int | None = None) -> None:
        self.most = MOST_HELD if most is None else most
        self.held = 0

    def open(self) -> Reservation:
        """Return the reservation of one request, which is empty; leave it as a context to give everything back."""
        return Reservation(self)


class Reservation:
    """The bytes that one request has reserved."""

    __slots__ = ("_budget", "_size")

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._size = 0

    def add(self, size: int) -> bool:
        """Reserve `size` bytes more, or return false if there is no room for them."""
        budget = self._budget
        most = budget.most + SET_ASIDE if self._size + size <= MOST_SMALL else budget.most
        if budget.held + size > most:
            return False
        self._size += size
        budget.held += size
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._budget.held -= self._size
        self._size = 0
