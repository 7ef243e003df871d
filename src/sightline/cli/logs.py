"""Logs for machines: a JSON object a line on stderr, without an image byte, a text of a conversation, or a key."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sightline.model.scene import Json

_OURS = "sightline"
_LONGEST = 300  # letters of a message


def write(said: Mapping[str, Json]) -> None:
    """With the time, in one piece: other processes may write to the same place."""
    print(json.dumps({"time": _now(), **said}), file=sys.stderr, flush=True)


def warned(warnings: Iterable[str]) -> None:
    for warning in warnings:
        write({"level": "warning", "message": warning[:_LONGEST]})


def begin() -> None:
    """From now on, what any part of this process logs is such a line, too."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)


@contextmanager
def quiet(name: str, *, when: bool = True) -> Iterator[None]:
    """Log no warnings of a part of ours meanwhile."""
    log = logging.getLogger(name)
    before = log.level
    log.setLevel(logging.ERROR if when else before)
    try:
        yield
    finally:
        log.setLevel(before)


class _Lines(logging.Formatter):
    """Of a fault its kind and where it was, never its words: they may quote what somebody has sent."""

    def format(self, record: logging.LogRecord) -> str:
        ours = record.name.partition(".")[0] == _OURS
        said: dict[str, Json] = {"time": _now(), "level": record.levelname.lower(), "logger": record.name}
        said["message"] = record.getMessage()[:_LONGEST] if ours else "a library has logged something"
        if record.exc_info and record.exc_info[0] is not None:
            frames = traceback.extract_tb(record.exc_info[2])
            said["fault"] = record.exc_info[0].__name__
            said["at"] = [f"{PurePath(frame.filename).name}:{frame.lineno}" for frame in frames]
        return json.dumps(said)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
