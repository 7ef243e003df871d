"""Reads of the record in the event loop, which must not wait for a server or a disk.

A record on servers answers most reads from its caches. Within `read_in_memory` it raises `NotInMemoryError` where it
would ask a server, and `read_record` then reads in a thread. A record on this machine raises only where it would write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_only_memory: ContextVar[bool] = ContextVar("only_memory", default=False)


class NotInMemoryError(Exception):
    """A server would have to be asked, or something be written."""


def check_may_wait() -> None:
    """Raise if the caller must not wait; the record calls this before it asks a server."""
    if _only_memory.get():
        raise NotInMemoryError


def read_in_memory(read: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Return the result of `read`; raise `NotInMemoryError` if a server would have to be asked."""
    token = _only_memory.set(True)
    try:
        return read(*args, **kwargs)
    finally:
        _only_memory.reset(token)


async def read_record(read: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Return the result of `read`, which is called in a thread if a server has to be asked.

    It may be called twice, so nothing that it changes may count twice.
    """
    try:
        return read_in_memory(read, *args, **kwargs)
    except NotInMemoryError:
        return await asyncio.to_thread(read, *args, **kwargs)
