"""Work on pixels in processes of its own: a bomb, an endless or a crashing decoder costs a refusal and no more.

A worker is a Python process that runs `work`. Nothing that it sends is ever executed or unpickled.
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
from dataclasses import dataclass, field
from time import monotonic
from typing import IO, TYPE_CHECKING, Self, get_args

from sightline.model.image import WORKER_MEMORY
from sightline.model.refusal import Code, Refusal
from sightline.pixels.work import MAX_ANSWER, NO_MEMORY, Json, receive, send

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor
    from subprocess import Popen

TASKS: Mapping[str, str] = {
    "check": "sightline.pixels.bitmap:check_task",
    "exact": "sightline.pixels.encode:exact_task",
    "fit": "sightline.pixels.fit:fit_task",
    "hash": "sightline.pixels.similar:hash_task",
    "overlay": "sightline.pixels.overlay:overlay_task",
}

_log = logging.getLogger(__name__)
_STARTING = 60.0  # seconds that a worker may take to load its libraries, on however busy a machine
_PARENT_PATH = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
_START = _PARENT_PATH + "from sightline.pixels.work import work; work(*sys.argv[2:])"

# A worker gets none of the caller's environment but what a process needs: there are keys in it.
_KEPT = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR", "TEMP")
_ENVIRONMENT = {
    "VIPS_CONCURRENCY": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "1",  # a second one would count against the limit of memory
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",  # a bitmap in pages of 4 KiB costs a third more time
}


# The last words of a process that GLib or C++ has aborted because there was no memory left.
_OUT_OF_MEMORY = re.compile(rb"failed to allocate|bad_alloc|out of memory", re.IGNORECASE)
_LAST_WORDS = 64 * 1024
_OUT_OF_TIME = getattr(signal, "SIGPROF", None)  # what ends a worker that has used up its time; not on Windows


@dataclass(frozen=True, slots=True)
class Limits:
    seconds: float = 5.0  # of the processor, where the system counts these: an image is not to blame for a busy machine
    memory: int = WORKER_MEMORY  # bytes of data in all, which the system does not let it exceed
    waiting: bool = False  # whether it is seconds of the clock, from the asking on; the task is told what is left
    patience: float = 30.0  # seconds of the clock in which the others have to come by

    @property
    def counted(self) -> float:
        """Seconds of the processor; 0: no limit of these."""
        return 0.0 if self.waiting or _OUT_OF_TIME is None else self.seconds

    @property
    def clock(self) -> float:
        return max(self.seconds, self.patience) if self.counted else self.seconds


@dataclass(frozen=True, slots=True)
class Reply:
    facts: Json
    data: bytes = field(repr=False)


class Workers:
    """A few processes, each started when it is first needed and replaced when it has failed."""

    def __init__(
        self,
        tasks: Mapping[str, str] = TASKS,
        *,
        count: int = 2,
        limits: Limits | None = None,
        idle: float | None = None,  # seconds after which a worker that nobody asks is ended; None: it stays
    ) -> None:
        self._tasks = dict(tasks)
        self._leave = idle
        self._count = count
        self._limits = limits or Limits()
        self._idle: list[_Worker] = []
        self._alive: set[_Worker] = set()
        self._lock = threading.Lock()
        self._threads: ThreadPoolExecutor | None = None
        self._closed = False

    async def run(self, task: str, data: bytes, arguments: Json | None = None) -> Reply | Refusal:
        import asyncio

        job = _Job()
        answer = self._submitted(task, data, arguments or {}, job)
        if isinstance(answer, Refusal):
            return answer
        try:
            return await asyncio.wrap_future(answer)
        except asyncio.CancelledError:
            job.drop()
            raise

    def ask(self, task: str, data: bytes, arguments: Json | None = None) -> Reply | Refusal:
        """Like `run`, for callers that block until it is done."""
        answer = self._submitted(task, data, arguments or {}, _Job())
        return answer if isinstance(answer, Refusal) else answer.result()

    async def close(self) -> None:
        import asyncio

        await asyncio.to_thread(self.end)

    def end(self) -> None:
        """End every worker, also one that is at work: whoever waits for it gets a refusal."""
        with self._lock:
            self._closed = True
            alive, threads = tuple(self._alive), self._threads
        for worker in alive:
            worker.kill()
        if threads is not None:
            threads.shutdown()
        for worker in tuple(self._alive):
            self._discard(worker)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def _submitted(self, task: str, data: bytes, arguments: Json, job: _Job) -> Future[Reply | Refusal] | Refusal:
        """A thread for each worker waits for it; what is asked of more waits in the threads' queue."""
        from concurrent.futures import ThreadPoolExecutor

        with self._lock:
            if self._closed:
                return _CLOSED
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self._count, "sightline-pixels")
            return self._threads.submit(self._answer, task, data, arguments, job)

    def _answer(self, task: str, data: bytes, arguments: Json, job: _Job) -> Reply | Refusal:
        if job.left(self._limits) <= 0:
            return _BUSY
        worker = self._worker()
        if isinstance(worker, Refusal):
            return worker
        answer: Reply | Refusal = _DROPPED
        if job.given_to(worker):
            left = job.left(self._limits)
            told = {**arguments, "seconds": left} if self._limits.waiting else arguments
            answer = worker.ask({"task": task, "arguments": told}, data, left) if left > 0 else _BUSY
            job.done()
        if worker.failed:
            self._discard(worker)
        else:
            self._rest(worker)
        return answer

    def _rest(self, worker: _Worker) -> None:
        worker.rests += 1
        with self._lock:
            self._idle.append(worker)
        if self._leave is not None:
            timer = threading.Timer(self._leave, self._dismiss, (worker, worker.rests))
            timer.daemon = True
            timer.start()

    def _dismiss(self, worker: _Worker, rests: int) -> None:
        """A worker that has rested ever since leaves, and gives its memory back."""
        with self._lock:
            if worker not in self._idle or worker.rests != rests:
                return
            self._idle.remove(worker)
        self._discard(worker)

    def _worker(self) -> _Worker | Refusal:
        with self._lock:
            if self._closed:
                return _CLOSED
            idle = self._idle.pop() if self._idle else None
        if idle is not None:
            if idle.alive:
                return idle
            self._discard(idle)  # somebody else has ended it
        return self._started()

    def _started(self) -> _Worker | Refusal:
        with self._lock:
            if self._closed:
                return _CLOSED
            try:
                worker = _Worker(self._tasks, self._limits)
            except OSError:  # too many processes, or files
                return _NO_WORKER
            self._alive.add(worker)
        if isinstance(worker.hear(_STARTING), Refusal):
            self._discard(worker)
            return _NO_WORKER
        return worker

    def _discard(self, worker: _Worker) -> None:
        worker.end()
        with self._lock:
            self._alive.discard(worker)


_NO_WORKER = Refusal("unavailable", "no decoder could be started", "see whether libvips is installed")
_CLOSED = Refusal("unavailable", "the workers have been ended", "ask a new one")
_BUSY = Refusal("unavailable", "others were asked about before, and the time was over", "ask again in a while")
_FAILED = Refusal("corrupt", "the image made its decoder fail", "ask for the image again")
_DROPPED = Refusal("unavailable", "nobody waits for the answer any more", "ask again")


class _Job:
    """Work that somebody waits for; once nobody does, whoever is at it is ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._worker: _Worker | None = None
        self._dropped = False
        self._asked = monotonic()

    def left(self, limits: Limits) -> float:
        """The seconds that are left to answer in."""
        return limits.clock - (monotonic() - self._asked if limits.waiting else 0.0)

    def given_to(self, worker: _Worker) -> bool:
        with self._lock:
            self._worker = worker
            return not self._dropped

    def done(self) -> None:
        with self._lock:
            self._worker = None

    def drop(self) -> None:
        with self._lock:
            self._dropped = True
            if self._worker is not None:
                self._worker.kill()


class _Worker:
    """One process, seen from the outside."""

    def __init__(self, tasks: Mapping[str, str], limits: Limits) -> None:
        from subprocess import DEVNULL, PIPE, Popen

        limited = (str(limits.clock), str(limits.counted), str(limits.memory))
        command = [sys.executable, "-I", "-c", _START, json.dumps(sys.path), json.dumps(tasks), *limited]
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ} | _ENVIRONMENT
        self._words, written = _pipe()
        try:
            stderr = DEVNULL if written is None else written
            self._process: Popen[bytes] = Popen(command, stdin=PIPE, stdout=PIPE, stderr=stderr, env=environment)
        except OSError:
            self._close_words()
            raise
        finally:
            if written is not None:
                os.close(written)
        self._late = False
        self._counted = limits.counted
        self.failed = False
        self.rests = 0  # how often it was done with something

    def ask(self, work: Json, data: bytes, seconds: float) -> Reply | Refusal:
        return self.hear(seconds, lambda: send(_stream(self._process.stdin), work, data))

    def hear(self, seconds: float, first: Callable[[], None] = lambda: None) -> Reply | Refusal:
        """The next answer. Where it does not come in time the process is ended, and so are all waits for it."""
        timer = threading.Timer(seconds, self._expire)
        timer.daemon = True
        timer.start()
        try:
            first()
            frame = receive(_stream(self._process.stdout), MAX_ANSWER)
        except (OSError, ValueError):  # it ended while it was written to, or wrote what is no frame
            frame = None
        finally:
            timer.cancel()
        self.failed = frame is None or self._late or "trouble" in frame[0]  # who knows what a bug has left behind
        if frame is None:
            return self._failure(seconds)
        self._said()  # else there might be no room for its last words
        return _read(*frame)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        self._process.kill()

    def end(self) -> None:
        """Leave no process, no zombie and no open file."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            try:
                _stream(stream).close()
            except OSError:  # what was not written yet has no reader
                continue
        self._close_words()

    def _said(self) -> bytes:
        """Return what the process has written to its standard error since the last time."""
        try:
            return b"" if self._words is None else os.read(self._words, _LAST_WORDS)
        except OSError:  # nothing is there
            return b""

    def _close_words(self) -> None:
        if self._words is not None:
            os.close(self._words)
            self._words = None

    def _expire(self) -> None:
        self._late = True
        self._process.kill()

    def _failure(self, seconds: float) -> Refusal:
        self._process.kill()  # it has closed its end: how it ended, if it has, stays as it is
        ended_by = -self._process.wait()
        if _OUT_OF_TIME is not None and ended_by == _OUT_OF_TIME:
            return _too_large(f"the image took more than {self._counted:.3g} seconds of the processor")
        if _OUT_OF_MEMORY.search(self._said()):
            return NO_MEMORY
        if not self._late:
            return _FAILED
        if not self._counted:
            return _too_large(f"the image took more than {seconds:.3g} seconds")
        what = f"within {seconds:.3g} seconds nothing came of the image: it is too large, or this machine is too busy"
        return Refusal("too_large", what, "try again, or send a smaller one")


def _pipe() -> tuple[int | None, int | None]:
    """Open a pipe in which nobody waits: what there is no room for is lost. None where there are no such pipes."""
    if sys.platform == "win32":
        return None, None
    ends = os.pipe()
    for end in ends:
        os.set_blocking(end, False)
    return ends


def _too_large(what: str) -> Refusal:
    return Refusal("too_large", what, "send a smaller or simpler one")


def _stream(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None, "both are pipes"
    return stream


def _read(facts: Json, data: bytes) -> Reply | Refusal:
    if (trouble := facts.get("trouble")) is not None:
        _log.error("a task failed in its worker: %s", trouble)
        return _FAILED
    match facts.get("refusal"):
        case [str(code), str(what), str(remedy)] if code in get_args(Code):
            return Refusal(code, what, remedy)  # type: ignore[arg-type] # it is one of them
    return Reply(facts, data)
