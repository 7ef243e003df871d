"""One event loop in a background thread, through which blocking callers use asynchronous code."""

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
    """A lock that is free in a forked process, even if a thread of the parent held it."""

    def __init__(self) -> None:
        self._reset()
        os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class once(Generic[P, T]):  # noqa: N801, a decorator
    """Like `functools.cache`, but concurrent calls from several threads call the function only once."""

    def __init__(self, function: Callable[P, T]) -> None:
        self._cached = functools.cache(function)
        self._lock = ForkSafeLock()
        self.cache_clear = self._cached.cache_clear

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        with self._lock:
            return self._cached(*args, **kwargs)  # type: ignore[arg-type]


_GRACE_SECONDS = 2.0  # for running work when the process ends
_close_callbacks: list[Callable[[], Awaitable[None]]] = []


class PendingWork:
    """The work that one caller waits for, so that it can be cancelled when the caller is."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._futures: set[Future[Any]] = set()
        self._cancelled = False

    def add(self, future: Future[Any]) -> None:
        with self._lock:
            self._futures.add(future)
            is_cancelled = self._cancelled
        future.add_done_callback(self._futures.discard)
        if is_cancelled:
            future.cancel()

    def cancel(self) -> None:
        """Cancel the work, and everything that is added later."""
        with self._lock:
            self._cancelled, futures = True, tuple(self._futures)
        for future in futures:
            future.cancel()


PENDING_WORK: ContextVar[PendingWork | None] = ContextVar("WAITS", default=None)
"""The work of the current caller; None: a caller that can't be cancelled."""


def run_blocking(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in the background loop, block until it is done, and return its result."""
    future = asyncio.run_coroutine_threadsafe(coroutine, _start_loop())
    if (pending := PENDING_WORK.get()) is not None:
        pending.add(future)
    try:
        return future.result()
    except CancelledError:  # asyncio's error, which callers don't mistake for a failure of the work
        raise asyncio.CancelledError from None


def start_coroutine(coroutine: Coroutine[Any, Any, T]) -> Future[T]:
    """Start a coroutine in the background loop; the caller goes on, and may cancel it."""
    return asyncio.run_coroutine_threadsafe(coroutine, _start_loop())


def close_at_exit(close: Callable[[], Awaitable[None]]) -> None:
    """Call `close` in the background loop when the process ends."""
    _close_callbacks.append(close)


@once
def _start_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, name="sightline", daemon=True)
    thread.start()
    atexit.register(_stop_loop, loop, thread, os.getpid())
    return loop


def _stop_loop(loop: asyncio.AbstractEventLoop, thread: Thread, process: int) -> None:
    if process != os.getpid():  # a fork has its parent's loop, but no thread that runs it
        return
    asyncio.run_coroutine_threadsafe(_cancel_and_close(), loop)
    thread.join(_GRACE_SECONDS)
    if not thread.is_alive():
        loop.close()


async def _cancel_and_close() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=_GRACE_SECONDS / 2)
    for close in _close_callbacks:
        await close()
    await asyncio.sleep(0)  # closed transports finish in the next iteration
    asyncio.get_running_loop().stop()


os.register_at_fork(after_in_child=_start_loop.cache_clear)


T_co = TypeVar("T_co", covariant=True)
_MAX_THREADS = 64  # separate from the event loop's own threads, so that these stay free


class SyncAndAsync(Protocol[P, T_co]):
    """A plain function, so that `help` and editors show it as one, with an asynchronous variant `aio`."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T_co: ...

    async def aio(self, *args: P.args, **kwargs: P.kwargs) -> T_co: ...


def with_async(function: Callable[P, T]) -> SyncAndAsync[P, T]:
    """Add the asynchronous variant `aio` to a function; it runs the function in a thread."""

    @functools.wraps(function)
    async def aio(*args: P.args, **kwargs: P.kwargs) -> T:
        return await run_in_thread(function, *args, **kwargs)

    aio.__name__, aio.__qualname__ = "aio", f"{function.__name__}.aio"
    result: Any = function
    result.aio = aio
    return cast("SyncAndAsync[P, T]", result)


async def run_in_thread(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function in a thread. Cancelling the caller also cancels what the thread waits for."""
    pending = PendingWork()
    token = PENDING_WORK.set(pending)
    try:
        work = functools.partial(copy_context().run, function, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(_start_threads(), work)
    except asyncio.CancelledError:
        pending.cancel()
        raise
    finally:
        PENDING_WORK.reset(token)


@functools.cache
def _start_threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_MAX_THREADS, "sightline-aside")


os.register_at_fork(after_in_child=_start_threads.cache_clear)  # threads don't survive a fork
