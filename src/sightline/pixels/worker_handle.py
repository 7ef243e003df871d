"""A worker process as its parent sees it: started with few rights, sent tasks, ended when it takes too long."""

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
from typing import IO, TYPE_CHECKING, get_args

from sightline.model.image import WORKER_MEMORY
from sightline.model.refusal import Refusal, RefusalCode
from sightline.model.value import value_class
from sightline.pixels.worker_process import OUT_OF_MEMORY, JsonObject, read_frame, write_frame

if TYPE_CHECKING:
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
_MEMORY_ERROR = re.compile(rb"failed to allocate|bad_alloc|out of memory|memory allocation of", re.IGNORECASE)
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
        if _MEMORY_ERROR.search(self._read_stderr()):
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
