"""The bridge from callers that block to the asynchronous service: one event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import atexit
import functools
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from threading import Thread
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")


class ForkSafeLock:
    """A lock that is open after a fork, whichever thread of the parent held it."""

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
    """Like `functools.cache`, but threads that call it at once get the same value."""

    def __init__(self, make: Callable[P, T]) -> None:
        self._made = functools.cache(make)
        self._lock = ForkSafeLock()
        self.cache_clear = self._made.cache_clear

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        with self._lock:
            return self._made(*args, **kwargs)  # type: ignore[arg-type]


_GRACE = 2.0  # seconds for what is under way when the process ends
_closings: list[Callable[[], Awaitable[None]]] = []


class Waits:
    """The work that one caller waits for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._futures: set[Future[Any]] = set()
        self._left = False

    def add(self, future: Future[Any]) -> None:
        with self._lock:
            self._futures.add(future)
            left = self._left
        future.add_done_callback(self._futures.discard)
        if left:
            future.cancel()

    def end(self) -> None:
        """Cancel the work: the caller has left. Nothing new begins for it."""
        with self._lock:
            self._left, futures = True, tuple(self._futures)
        for future in futures:
            future.cancel()


WAITS: ContextVar[Waits | None] = ContextVar("WAITS", default=None)
"""The waits of the current caller; None: a caller that cannot leave."""


def wait(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` in the event loop of the bridge, block until it is done, and return its result."""
    future = asyncio.run_coroutine_threadsafe(work, _loop())
    if (waits := WAITS.get()) is not None:
        waits.add(future)
    try:
        return future.result()
    except CancelledError:  # the work has not failed: no caller may turn this into a result
        raise asyncio.CancelledError from None


def begin(work: Coroutine[Any, Any, T]) -> Future[T]:
    """Start `work` in the event loop of the bridge, for callers that go on meanwhile and may cancel it."""
    return asyncio.run_coroutine_threadsafe(work, _loop())


def close_at_exit(close: Callable[[], Awaitable[None]]) -> None:
    """Close something that lives in the event loop there when the process ends."""
    _closings.append(close)


@once
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, name="sightline", daemon=True)
    thread.start()
    atexit.register(_end, loop, thread, os.getpid())
    return loop


def _end(loop: asyncio.AbstractEventLoop, thread: Thread, process: int) -> None:
    if process != os.getpid():  # a fork has the loop of its parent, and no thread that runs it
        return
    asyncio.run_coroutine_threadsafe(_stop(), loop)
    thread.join(_GRACE)
    if not thread.is_alive():
        loop.close()


async def _stop() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=_GRACE / 2)
    for close in _closings:
        await close()
    await asyncio.sleep(0)  # a transport that was closed says good-bye in the next round
    asyncio.get_running_loop().stop()


os.register_at_fork(after_in_child=_loop.cache_clear)


T_co = TypeVar("T_co", covariant=True)
_AT_ONCE = 64  # calls in threads; the event loop's own threads are left for others


class Both(Protocol[P, T_co]):
    """A plain function, so that `help` and editors show it as one, with its second way beside it."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T_co: ...

    async def aio(self, *args: P.args, **kwargs: P.kwargs) -> T_co: ...


def both(core: Callable[P, T]) -> Both[P, T]:
    @functools.wraps(core)
    async def aio(*args: P.args, **kwargs: P.kwargs) -> T:
        return await run_in_thread(core, *args, **kwargs)

    aio.__name__, aio.__qualname__ = "aio", f"{core.__name__}.aio"
    found: Any = core
    found.aio = aio
    return cast("Both[P, T]", found)


async def run_in_thread(core: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call `core` in a thread. Cancelling the caller also cancels what the thread waits for."""
    waits = Waits()
    before = WAITS.set(waits)
    try:
        work = functools.partial(copy_context().run, core, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(_threads(), work)
    except asyncio.CancelledError:
        waits.end()
        raise
    finally:
        WAITS.reset(before)


@functools.cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_AT_ONCE, "sightline-aside")


os.register_at_fork(after_in_child=_threads.cache_clear)  # a fork has none of them
