"""Tasks that a worker has to survive, and some that tell about it."""

from __future__ import annotations

import os
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
        "spin",
        "take_all_memory",
        "die",
        "leave",
        "babble",
        "lie",
        "stumble",
        "refuse",
    )
} | {"absent": "tests.pixels.hostile:absent"}

Answer = tuple[dict[str, Any], bytes]


def echo(data: bytes, arguments: dict[str, Any]) -> Answer:
    return {"pid": os.getpid(), "environment": sorted(os.environ), **arguments}, data[::-1]


def wait_for_ever(data: bytes, arguments: dict[str, Any]) -> Answer:
    """Having said, in a pipe with a name, that it has begun."""
    if "begun" in arguments:
        Path(arguments["begun"]).write_text(str(os.getpid()), "ascii")
    threading.Event().wait()
    raise AssertionError


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
    """A library that prints."""
    os.write(1, b"libhostile: warning: \xff\xff\xff\xff" * 100)
    return {}, b""


def lie(data: bytes, arguments: dict[str, Any]) -> Answer:
    """A decoder that somebody has taken over writes an answer of 16 exabytes."""
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
