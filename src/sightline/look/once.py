"""What a process has one of, however many threads ask for it first and at the same time."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Alone:
    """A lock that a fork finds open: whoever held it in the parent is not there."""

    def __init__(self) -> None:
        self._forked()
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class once(Generic[P, T]):  # noqa: N801, a decorator
    """As `functools.cache`, which has two threads make two of them."""

    def __init__(self, make: Callable[P, T]) -> None:
        self._made = functools.cache(make)
        self._alone = Alone()
        self.cache_clear = self._made.cache_clear

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        with self._alone:
            return self._made(*args, **kwargs)  # type: ignore[arg-type]
