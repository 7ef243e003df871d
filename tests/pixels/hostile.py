"""Hostile tasks that a worker pool must survive, and some that report about their process."""

from __future__ import annotations

import os
import resource
import signal
import threading
from pathlib import Path
from typing import Any

from sightline.model.refusal import Refusal

TASKS = {
    name: f"tests.pixels.hostile:{name}"
    for name in (
        "echo",
        "wait_for_ever",
        "rest",
        "spin",
        "take_all_memory",
        "die",
        "leave",
        "babble",
        "lie",
        "stumble",
        "refuse",
        "murmur",
        "murmurs",
        "limits",
    )
} | {"absent": "tests.pixels.hostile:absent"}

Answer = tuple[dict[str, Any], bytes]


def echo(data: bytes, arguments: dict[str, Any]) -> Answer:
    return {"pid": os.getpid(), "environment": sorted(os.environ), **arguments}, data[::-1]


def wait_for_ever(data: bytes, arguments: dict[str, Any]) -> Answer:
    """Wait for ever, after reporting the start in a named pipe."""
    if "begun" in arguments:
        Path(arguments["begun"]).write_text(str(os.getpid()), "ascii")
    threading.Event().wait()
    raise AssertionError


def rest(data: bytes, arguments: dict[str, Any]) -> Answer:
    threading.Event().wait(arguments["for"])
    return {}, b""


def spin(data: bytes, arguments: dict[str, Any]) -> Answer:
    while True:
        pass


def take_all_memory(data: bytes, arguments: dict[str, Any]) -> Answer:
    taken = []
    while True:
        taken.append(bytearray(64 * 1024 * 1024))


def die(data: bytes, arguments: dict[str, Any]) -> Answer:
    os.kill(os.getpid(), signal.SIGSEGV)
    raise AssertionError


def leave(data: bytes, arguments: dict[str, Any]) -> Answer:
    os._exit(0)


def babble(data: bytes, arguments: dict[str, Any]) -> Answer:
    """Print, as a library may do."""
    os.write(1, b"libhostile: warning: \xff\xff\xff\xff" * 100)
    return {}, b""


def lie(data: bytes, arguments: dict[str, Any]) -> Answer:
    """Announce a reply of 16 exabytes, as a decoder that was taken over might."""
    for descriptor in range(3, 16):
        try:
            os.write(descriptor, b"\xff" * 64)
        except OSError:
            continue
    raise AssertionError


def stumble(data: bytes, arguments: dict[str, Any]) -> Answer:
    raise RuntimeError("a bug")


def refuse(data: bytes, arguments: dict[str, Any]) -> Refusal:
    return Refusal("unsupported_type", "not this one", "send another")


def murmur(data: bytes, arguments: dict[str, Any]) -> Answer:
    """Leave an error behind that is not UTF-8."""
    import pyvips

    try:
        pyvips.Image.heifload_buffer(data).avg()
    except UnicodeDecodeError:
        return murmurs(data, arguments)
    raise AssertionError


def murmurs(data: bytes, arguments: dict[str, Any]) -> Answer:
    from pyvips import ffi, vips_lib

    return {"heard": ffi.string(vips_lib.vips_error_buffer()).decode("latin-1")}, b""


def limits(data: bytes, arguments: dict[str, Any]) -> Answer:
    timers = {"alarm": signal.ITIMER_REAL, "counted": signal.ITIMER_PROF}
    left = {name: signal.getitimer(timer)[0] for name, timer in timers.items()}
    return {"core": resource.getrlimit(resource.RLIMIT_CORE), **left}, b""
