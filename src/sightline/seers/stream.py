"""Answers that come piece by piece: their events, read once the last has come."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import orjson

from sightline.model.scene import Json
from sightline.wire.jsonsize import parse_bounded
from sightline.wire.shape import at

Events = Sequence[Json]
Collect = Callable[[Events], Json]
"""Events as the answer that the wire would have given in one piece; None: it broke off before its end."""

END = "[DONE]"
"""What the wires of OpenAI, and all that look like them, say when nothing more comes."""

_blank = re.compile(rb"\r?\n\r?\n|\r\r")


def events(body: bytes) -> list[Json]:
    """What a stream says: events as servers send them, or a line of JSON each. What is neither is left out."""
    found = (_payload(data) for block in _blank.split(body) for data in _data(block.splitlines()))
    return [each for each in found if each is not None]


def _data(lines: Sequence[bytes]) -> Iterable[bytes]:
    """The data of one event; or of each line that is JSON by itself."""
    data = [line[5:].strip() for line in lines if line.startswith(b"data:")]
    return [b"\n".join(data)] if data else [line for line in lines if line.startswith(b"{")]


def _payload(data: bytes) -> Json:
    if data == END.encode():
        return END
    try:
        return parse_bounded(data)
    except orjson.JSONDecodeError:
        return None


def is_broken(event: Json) -> bool:
    """Is it the provider's word that something went wrong on the way?"""
    return isinstance(event, dict) and (bool(event.get("error")) or event.get("type") == "error")


def last(found: Events, *steps: str | int) -> Json:
    """What the last event that says something there says."""
    return next((said for event in reversed(found) if (said := at(event, *steps)) is not None), None)
