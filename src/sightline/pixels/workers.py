"""A pool of child processes for untrusted images: a decoder that crashes, hangs or needs too much costs one refusal.

A `WorkerPool` starts Python processes that run `worker_process.run_worker`, which imports and runs the functions in
`TASKS`. A task takes bytes and a JSON object, and returns a JSON object and bytes, or a refusal. A new decoder or
renderer is one such function and one line in `TASKS`.

Each worker has limits on memory and CPU time that the system enforces; one that fails in any way is replaced. It gets
no API keys, and nothing that it sends is executed or unpickled.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from time import monotonic
from typing import TYPE_CHECKING, Self

from sightline.model.refusal import Refusal
from sightline.pixels.worker_handle import WorkerHandle, WorkerLimits, WorkerReply
from sightline.pixels.worker_process import JsonObject

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

__all__ = ["TASKS", "WorkerLimits", "WorkerPool", "WorkerReply"]

TASKS: Mapping[str, str] = {
    "check": "sightline.pixels.decode:check_task",
    "exact": "sightline.pixels.encode:exact_task",
    "fit": "sightline.pixels.fit_image:fit_task",
    "hash": "sightline.pixels.similarity:hash_task",
    "overlay": "sightline.pixels.overlay:overlay_task",
    "part": "sightline.pixels.fit_image:crop_task",
    "terminal": "sightline.pixels.terminal_picture:terminal_task",
}

_START_SECONDS = 60.0  # in which a worker must have loaded its libraries, even on a busy machine
_NO_WORKER = Refusal("unavailable", "the image decoder did not start", "check that libvips is installed")
_CLOSED = Refusal("unavailable", "the image workers are shut down", "start Sightline again")
_BUSY = Refusal("unavailable", "other images took all the time there was for this one", "try again later")
_CANCELLED = Refusal("unavailable", "the request was cancelled", "try again")


class WorkerPool:
    """A few worker processes. Each is started when it is first needed, and replaced when it has failed."""

    def __init__(
        self,
        tasks: Mapping[str, str] = TASKS,
        *,
        count: int = 2,
        limits: WorkerLimits | None = None,
        idle_seconds: float | None = None,  # after which an idle worker is ended; None: never
        prepare: str = "",  # a function that each worker calls before its first task
        subject: str = "image",  # what refusals call the data of a task
    ) -> None:
        self._tasks = dict(tasks)
        self._prepare = prepare
        self._subject = subject
        self._idle_seconds = idle_seconds
        self._count = count
        self._limits = limits or WorkerLimits()
        self._idle_workers: list[WorkerHandle] = []
        self._workers: set[WorkerHandle] = set()
        self._lock = threading.Lock()
        self._threads: ThreadPoolExecutor | None = None
        self._closed = False

    async def run(self, task: str, data: bytes, arguments: JsonObject | None = None) -> WorkerReply | Refusal:
        """Run a task; if the caller is cancelled, the worker that runs it is killed."""
        import asyncio

        job = _Job()
        future = self._submit(task, data, arguments or {}, job)
        if isinstance(future, Refusal):
            return future
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            job.cancel()
            raise

    def run_sync(
        self, task: str, data: bytes, arguments: JsonObject | None = None, *, file: int | None = None
    ) -> WorkerReply | Refusal:
        """Run a task and block until it is done.

        file: the descriptor of an open file that the task reads; its number becomes the argument `descriptor`. Such a
            task gets a worker of its own, because a process can inherit an open file only when it is started.
        """
        own = {} if file is None else {"descriptor": file}
        future = self._submit(task, data, {**(arguments or {}), **own}, _Job(file))
        return future if isinstance(future, Refusal) else future.result()

    async def close(self) -> None:
        import asyncio

        await asyncio.to_thread(self.shut_down)

    def shut_down(self) -> None:
        """End every worker, including busy ones; their callers get a refusal."""
        with self._lock:
            self._closed = True
            workers, threads = tuple(self._workers), self._threads
        for worker in workers:
            worker.kill()
        if threads is not None:
            threads.shutdown()
        for worker in tuple(self._workers):
            self._discard(worker)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shut_down()

    def _submit(
        self, task: str, data: bytes, arguments: JsonObject, job: _Job
    ) -> Future[WorkerReply | Refusal] | Refusal:
        """Queue a task. One thread per worker waits for its reply, so the threads' queue is the queue of tasks."""
        from concurrent.futures import ThreadPoolExecutor

        with self._lock:
            if self._closed:
                return _CLOSED
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self._count, "sightline-pixels")
            return self._threads.submit(self._run_job, task, data, arguments, job)

    def _run_job(self, task: str, data: bytes, arguments: JsonObject, job: _Job) -> WorkerReply | Refusal:
        if job.measure_remaining_seconds(self._limits) <= 0:
            return _BUSY
        worker = self._acquire() if job.file is None else self._start_worker(job.file)
        if isinstance(worker, Refusal):
            return worker
        reply: WorkerReply | Refusal = _CANCELLED
        if job.assign(worker):
            seconds = job.measure_remaining_seconds(self._limits)
            if self._limits.wall_clock:
                arguments = {**arguments, "seconds": seconds}
            reply = worker.request({"task": task, "arguments": arguments}, data, seconds) if seconds > 0 else _BUSY
            job.finish()
        if worker.failed or job.file is not None:
            self._discard(worker)
        else:
            self._release(worker)
        return reply

    def _acquire(self) -> WorkerHandle | Refusal:
        with self._lock:
            if self._closed:
                return _CLOSED
            idle = self._idle_workers.pop() if self._idle_workers else None
        if idle is not None:
            if idle.is_alive:
                return idle
            self._discard(idle)  # something else has ended it
        return self._start_worker()

    def _start_worker(self, file: int | None = None) -> WorkerHandle | Refusal:
        with self._lock:
            if self._closed:
                return _CLOSED
            try:
                worker = WorkerHandle(self._tasks, self._limits, self._prepare, self._subject, file)
            except OSError:  # too many processes, or files
                return _NO_WORKER
            self._workers.add(worker)
        if isinstance(worker.receive(_START_SECONDS), Refusal):
            self._discard(worker)
            return _NO_WORKER
        return worker

    def _release(self, worker: WorkerHandle) -> None:
        worker.uses += 1
        with self._lock:
            self._idle_workers.append(worker)
        if self._idle_seconds is not None:
            timer = threading.Timer(self._idle_seconds, self._end_if_idle, (worker, worker.uses))
            timer.daemon = True
            timer.start()

    def _end_if_idle(self, worker: WorkerHandle, uses: int) -> None:
        """End a worker that was not used since, which frees its memory."""
        with self._lock:
            if worker not in self._idle_workers or worker.uses != uses:
                return
            self._idle_workers.remove(worker)
        self._discard(worker)

    def _discard(self, worker: WorkerHandle) -> None:
        worker.end()
        with self._lock:
            self._workers.discard(worker)


class _Job:
    """One task of a caller. Cancelling it kills the worker that runs it: a decoder cannot be interrupted otherwise."""

    def __init__(self, file: int | None = None) -> None:
        self.file = file
        self._lock = threading.Lock()
        self._worker: WorkerHandle | None = None
        self._cancelled = False
        self._created = monotonic()

    def measure_remaining_seconds(self, limits: WorkerLimits) -> float:
        return limits.wall_seconds - (monotonic() - self._created if limits.wall_clock else 0.0)

    def assign(self, worker: WorkerHandle) -> bool:
        """Note the worker that runs the job; return False if the job was cancelled before."""
        with self._lock:
            self._worker = worker
            return not self._cancelled

    def finish(self) -> None:
        with self._lock:
            self._worker = None

    def cancel(self) -> None:
        with self._lock:
            self._cancelled = True
            if self._worker is not None:
                self._worker.kill()
