"""The process of a worker: reads requests from its standard input, runs tasks, writes replies to its standard output.

Both ways, a frame is two lengths, a JSON object and bytes. Before the first request the process limits itself: memory,
time, no core dumps.
"""

from __future__ import annotations

import json
import os
import re
import signal
import struct
import sys
from collections.abc import Callable, Mapping
from pkgutil import resolve_name
from typing import IO, Any

from sightline.model.refusal import Refusal

JsonObject = dict[str, Any]
Task = Callable[[bytes, JsonObject], tuple[JsonObject, bytes] | Refusal]

OUT_OF_MEMORY = Refusal("too_large", "the image needs too much memory", "send a smaller one")
_GRACE_SECONDS = 1.0  # after which a worker whose parent failed to end it ends itself
_MAX_REQUEST_BYTES = 1 << 28
_FRAME_LENGTHS = struct.Struct(">IQ")
_THREAD_STACK = 2 << 20  # bytes; the default of 8 MiB counts towards the memory limit, and libvips starts threads
# How libraries say that they got no memory: libvips, GLib (for the stack of a thread), libjpeg, libheif, libtiff, the
# dynamic linker, and Pillow, whose quantizers fail for no other reason.
_MEMORY_ERROR = (
    r"(?i)out of memory|(?:insufficient|not enough) memory|memory allocation|cannot allocate|creat\w+ thread"
    r"|tile size out of range|failed to map segment|quantization error"
)


def write_frame(stream: IO[bytes], facts: JsonObject, data: bytes) -> None:
    text = json.dumps(facts).encode()
    stream.write(_FRAME_LENGTHS.pack(len(text), len(data)) + text)
    stream.write(data)
    stream.flush()


def read_frame(stream: IO[bytes], max_bytes: int = _MAX_REQUEST_BYTES) -> tuple[JsonObject, bytes] | None:
    """Return the next frame, or None at the end of the stream; raise ValueError if it is no frame, or too long."""
    lengths = stream.read(_FRAME_LENGTHS.size)
    if len(lengths) < _FRAME_LENGTHS.size:
        return None
    text_length, data_length = _FRAME_LENGTHS.unpack(lengths)
    if text_length + data_length > max_bytes:
        raise ValueError("the frame is too long")
    text, data = stream.read(text_length), stream.read(data_length)
    if len(text) < text_length or len(data) < data_length:
        return None
    facts = json.loads(text)
    if not isinstance(facts, dict):
        raise ValueError("the frame holds no JSON object")
    return facts, data


def run_worker(tasks: str, wall_seconds: str, cpu_seconds: str, memory: str, prepare: str = "") -> None:
    """Run tasks in this process until its input ends. Everything from here on runs in the child only.

    prepare: the name of a function that is called first, such as one that isolates the process. Threads that
        libraries start later inherit what it does.
    """
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not mix with replies
    functions, wall_limit, cpu_limit = json.loads(tasks), float(wall_seconds) + _GRACE_SECONDS, float(cpu_seconds)
    if prepare:
        resolve_name(prepare)()
    _limit_thread_stacks()
    _preload_vips()
    _limit_process(int(memory))
    write_frame(sink, {"ready": True}, b"")
    while (request := read_frame(source)) is not None:
        facts, data = request
        _set_timers(wall_limit, cpu_limit)
        reply = _run_task(functions, facts, data)
        _set_timers(0, 0)
        write_frame(sink, *reply)


def _run_task(functions: Mapping[str, str], request: JsonObject, data: bytes) -> tuple[JsonObject, bytes]:
    from pyvips import vips_lib

    vips_lib.vips_error_clear()  # an error that the last image left there would be reported for this one
    try:
        task: Task = resolve_name(functions[request["task"]])
        result = task(data, request["arguments"])
    except Exception as error:  # noqa: BLE001 - the outermost edge of the process; the parent logs it
        if not is_memory_error(error):
            import traceback

            return {"trouble": traceback.format_exc()}, b""
        result = OUT_OF_MEMORY
    return ({"refusal": [result.code, result.what, result.remedy]}, b"") if isinstance(result, Refusal) else result


def is_memory_error(error: BaseException) -> bool:
    """Return whether an error means that this process met its memory limit, so that the file may be fine."""
    return isinstance(error, MemoryError) or re.search(_MEMORY_ERROR, str(error)) is not None


def _preload_vips() -> None:
    """Load what every task needs, so that it doesn't count towards a task's time and memory."""
    import pyvips

    pyvips.Image.black(1, 1).copy_memory()


def _limit_process(memory: int) -> None:
    """Limit the data of this process where the system can, and forbid core dumps, which would hold the image.

    Data is what a process writes to. Address space would be a poor measure: threads and allocators reserve much more
    than they ever use.
    """
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))


def _limit_thread_stacks() -> None:
    """Give new threads a small stack, where glibc lets us."""
    if sys.platform != "linux":
        return
    import ctypes

    libc = ctypes.CDLL(None)
    if hasattr(libc, "pthread_setattr_default_np"):
        attributes = ctypes.create_string_buffer(256)  # a pthread_attr_t, which has 56 or 64 bytes
        libc.pthread_attr_init(attributes)
        libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(_THREAD_STACK))
        libc.pthread_setattr_default_np(attributes)


def _set_timers(wall_seconds: float, cpu_seconds: float) -> None:
    """End this process after that much time; 0 stops a timer.

    The parent ends a worker earlier than the wall timer does, but the parent may be gone. Only the system can count CPU
    time.
    """
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, wall_seconds)
        signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
