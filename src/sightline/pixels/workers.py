"""A pool of child processes for untrusted images: a decoder that crashes, hangs or needs too much costs one refusal.

A `WorkerPool` starts Python processes that run `worker_process.run_worker`, which imports and runs the functions in
`TASKS`. A task takes bytes and a JSON object, and returns a JSON object and bytes, or a refusal. A new decoder or
renderer is one such function and one line in `TASKS`.

Each worker has limits on memory and CPU time that the system enforces; one that fails in any way is replaced. It gets
no API keys, and nothing that it sends is executed or unpickled.
"""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from time import monotonic
from typing import IO, TYPE_CHECKING, Self, get_args

from sightline.model.image import WORKER_MEMORY
from sightline.model.refusal import Refusal, RefusalCode
from sightline.model.value import value_class
from sightline.pixels.worker_process import OUT_OF_MEMORY, JsonObject, read_frame, write_frame

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor
    from subprocess import Popen

_log = logging.getLogger(__name__)
_MAX_REPLY_BYTES = 1 << 27
_USE_PARENT_PATH = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
_START_CODE = _USE_PARENT_PATH + "from sightline.pixels.worker_process import run_worker; run_worker(*sys.argv[2:])"

# The environment of the parent has API keys in it, so a worker inherits only what a process needs.
_INHERITED_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR", "TEMP")
_WORKER_VARIABLES = {
    "VIPS_CONCURRENCY": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "1",  # a second arena would count towards the memory limit
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",  # with pages of 4 KiB, a bitmap takes a third more time
}

# What GLib or the runtime of C++ or Rust prints before it aborts a process that is out of memory.
_MEMORY_ERROR = rb"(?i)failed to allocate|bad_alloc|out of memory|memory allocation of"
_STDERR_BYTES = 64 * 1024
_TIME_SIGNAL = getattr(signal, "SIGPROF", None)  # ends a worker that has used up its CPU time; not on Windows


@value_class
class WorkerLimits:
    seconds: float = 5.0  # CPU time of one task where the system can count it, so that a busy machine does no harm
    memory: int = WORKER_MEMORY  # bytes of data of the process
    wall_clock: bool = False  # `seconds` is wall time, counted from the request; the task gets what is left of it
    max_wall_seconds: float = 30.0  # wall time in which a task must use up its CPU time

    @property
    def cpu_seconds(self) -> float:
        """The CPU time of one task; 0: no limit."""
        return 0.0 if self.wall_clock or _TIME_SIGNAL is None else self.seconds

    @property
    def wall_seconds(self) -> float:
        return max(self.seconds, self.max_wall_seconds) if self.cpu_seconds else self.seconds


@value_class
class WorkerReply:
    facts: JsonObject
    data: bytes = field(repr=False)


class WorkerHandle:
    """One worker, as its parent sees it."""

    def __init__(
        self, tasks: Mapping[str, str], limits: WorkerLimits, prepare: str, subject: str, file: int | None = None
    ) -> None:
        """Start the process. `file`: the descriptor of an open file that it inherits, under the same number."""
        from subprocess import DEVNULL, PIPE, Popen

        arguments = (json.dumps(tasks), str(limits.wall_seconds), str(limits.cpu_seconds), str(limits.memory), prepare)
        command = [sys.executable, "-I", "-c", _START_CODE, json.dumps(sys.path), *arguments]
        inherited = {name: os.environ[name] for name in _INHERITED_VARIABLES if name in os.environ}
        self._stderr, childs_end = _open_stderr_pipe()
        try:
            stderr = DEVNULL if childs_end is None else childs_end
            self._process: Popen[bytes] = Popen(
                command,
                stdin=PIPE,
                stdout=PIPE,
                stderr=stderr,
                env=inherited | _WORKER_VARIABLES,
                pass_fds=() if file is None else (file,),
            )
        except OSError:
            self._close_stderr()
            raise
        finally:
            if childs_end is not None:
                os.close(childs_end)
        self._expired = False
        self._cpu_seconds = limits.cpu_seconds
        self._subject = subject
        self.failed = False
        self.uses = 0

    def request(self, task: JsonObject, data: bytes, seconds: float) -> WorkerReply | Refusal:
        return self.receive(seconds, lambda: write_frame(_require_stream(self._process.stdin), task, data))

    def receive(self, seconds: float, send: Callable[[], None] = lambda: None) -> WorkerReply | Refusal:
        """Send, then return the next reply. A worker that takes too long is killed, which ends the waiting as well."""
        timer = threading.Timer(seconds, self._expire)
        timer.daemon = True
        timer.start()
        try:
            send()
            frame = read_frame(_require_stream(self._process.stdout), _MAX_REPLY_BYTES)
        except (OSError, ValueError):  # it ended while it was written to, or its reply is not a frame
            frame = None
        finally:
            timer.cancel()
        self.failed = frame is None or self._expired or "trouble" in frame[0]  # a bug may have left anything behind
        if frame is None:
            return self._explain_failure(seconds)
        self._read_stderr()  # empties the pipe, so that the last words of a later crash fit in
        return self._parse_reply(*frame)

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        self._process.kill()

    def end(self) -> None:
        """Leave no process, no zombie and no open file."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            try:
                _require_stream(stream).close()
            except OSError:  # unwritten data has no reader any more
                continue
        self._close_stderr()

    def _read_stderr(self) -> bytes:
        """Return what the process has printed since the last time."""
        try:
            return b"" if self._stderr is None else os.read(self._stderr, _STDERR_BYTES)
        except OSError:  # nothing is there
            return b""

    def _close_stderr(self) -> None:
        if self._stderr is not None:
            os.close(self._stderr)
            self._stderr = None

    def _expire(self) -> None:
        self._expired = True
        self._process.kill()

    def _explain_failure(self, seconds: float) -> Refusal:
        self._process.kill()  # it has closed its end of the pipe; if it has ended, its exit status stays
        signal_number = -self._process.wait()
        if _TIME_SIGNAL is not None and signal_number == _TIME_SIGNAL:
            return _refuse_as_too_large(
                f"the {self._subject} took more than {self._cpu_seconds:.3g} seconds of CPU time"
            )
        if re.search(_MEMORY_ERROR, self._read_stderr()):
            return self._name_subject(OUT_OF_MEMORY)
        if not self._expired:
            return self._refuse_crash()
        if not self._cpu_seconds:
            return _refuse_as_too_large(f"the {self._subject} took more than {seconds:.3g} seconds")
        what = f"the {self._subject} took more than {seconds:.3g} seconds: it is too large, or this machine is too busy"
        return Refusal("too_large", what, "try again, or send a smaller one")

    def _refuse_crash(self) -> Refusal:
        return Refusal("corrupt", f"the {self._subject} crashed its decoder", "check that the file is not damaged")

    def _name_subject(self, refusal: Refusal) -> Refusal:
        return replace(refusal, what=refusal.what.replace("the image", f"the {self._subject}"))

    def _parse_reply(self, facts: JsonObject, data: bytes) -> WorkerReply | Refusal:
        if (trouble := facts.get("trouble")) is not None:
            _log.error("a task failed in its worker: %s", trouble)
            return self._refuse_crash()
        match facts.get("refusal"):
            case [str(code), str(what), str(remedy)] if code in get_args(RefusalCode):
                refusal = Refusal(code, what, remedy)  # type: ignore[arg-type] # it is one of them
                return self._name_subject(refusal) if refusal == OUT_OF_MEMORY else refusal
        return WorkerReply(facts, data)


def _open_stderr_pipe() -> tuple[int | None, int | None]:
    """Open a pipe that never blocks: what doesn't fit is lost. Return None twice where there are no such pipes."""
    if sys.platform == "win32":
        return None, None
    ends = os.pipe()
    for end in ends:
        os.set_blocking(end, False)
    return ends


def _refuse_as_too_large(what: str) -> Refusal:
    return Refusal("too_large", what, "send a smaller or simpler one")


def _require_stream(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None, "both are pipes"
    return stream


TASKS: Mapping[str, str] = {
    "check": "sightline.pixels.decode:check_task",
    "exact": "sightline.pixels.encode:exact_task",
    "fit": "sightline.pixels.fit_image:fit_task",
    "hash": "sightline.pixels.similarity:hash_task",
    "overlay": "sightline.pixels.overlay:overlay_task",
    "part": "sightline.pixels.fit_image:crop_task",
    "terminal": "sightline.pixels.encode:terminal_task",
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
