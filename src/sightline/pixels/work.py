"""The process of a worker: it gets work on its standard input and answers on its standard output.

Both ways go frames: the lengths of a JSON object and of bytes, then the two. Nothing is ever unpickled.
"""

from __future__ import annotations

import json
import os
import struct
import sys
from collections.abc import Callable, Mapping
from typing import IO, Any

from sightline.model.refusal import Refusal

Json = dict[str, Any]
Task = Callable[[bytes, Json], tuple[Json, bytes] | Refusal]

NO_MEMORY = Refusal("too_large", "the image needs too much memory", "send a smaller one")
_LENGTHS = struct.Struct(">IQ")
MAX_WORK = 1 << 28  # bytes of a frame that a worker is sent
MAX_ANSWER = 1 << 27  # … and that it answers with
_GRACE = 1.0  # seconds after which a worker that nobody ends any more ends itself


def send(stream: IO[bytes], facts: Json, data: bytes) -> None:
    text = json.dumps(facts).encode()
    stream.write(_LENGTHS.pack(len(text), len(data)) + text)
    stream.write(data)
    stream.flush()


def receive(stream: IO[bytes], most: int = MAX_WORK) -> tuple[Json, bytes] | None:
    """Read the next frame, of at most so many bytes; None where the stream ends."""
    lengths = stream.read(_LENGTHS.size)
    if len(lengths) < _LENGTHS.size:
        return None
    text, data = _LENGTHS.unpack(lengths)
    if text + data > most:
        raise ValueError("no frame is as long")
    facts, rest = stream.read(text), stream.read(data)
    if len(facts) < text or len(rest) < data:
        return None
    found = json.loads(facts)
    if not isinstance(found, dict):
        raise ValueError("a frame holds an object")
    return found, rest


def work(tasks: str, clock: str, counted: str, memory: str) -> None:
    """The process itself: answer until nobody asks any more."""
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    known, limit, most = json.loads(tasks), float(clock) + _GRACE, float(counted)
    _load()
    _confine(int(memory))
    send(sink, {"ready": True}, b"")
    while (asked := receive(source)) is not None:
        facts, data = asked
        _alarm(limit, most)
        answer = _done(known, facts, data)
        _alarm(0, 0)
        send(sink, *answer)


def _done(tasks: Mapping[str, str], work: Json, data: bytes) -> tuple[Json, bytes]:
    from pkgutil import resolve_name

    from pyvips import vips_lib

    vips_lib.vips_error_clear()  # what the last image left there would be told about this one
    try:
        task: Task = resolve_name(tasks[work["task"]])
        found = task(data, work["arguments"])
    except MemoryError:
        found = NO_MEMORY
    except Exception:  # noqa: BLE001 - the outermost edge of the process; the caller logs it
        import traceback

        return {"trouble": traceback.format_exc()}, b""
    return ({"refusal": [found.code, found.what, found.remedy]}, b"") if isinstance(found, Refusal) else found


def _load() -> None:
    """What every task needs, so that no task pays for it in time or memory."""
    import pyvips

    pyvips.Image.black(1, 1).copy_memory()


def _confine(memory: int) -> None:
    """Limits that the operating system keeps, where it has them: memory, and no file of what was in it.

    Data is all that a process writes to. Addresses would be a poor measure: a thread and an allocator reserve more of
    them than they ever use.
    """
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))


def _alarm(clock: float, counted: float) -> None:
    """Unless called again with 0, the process ends then: after so long, for its parent, which ends it earlier, may be
    gone; or after so much time of the processor, which nobody but the system can count."""
    import signal

    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, clock)
        signal.setitimer(signal.ITIMER_PROF, counted)
