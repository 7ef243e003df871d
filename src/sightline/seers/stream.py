"""Answers that come piece by piece: their events, read once the last has come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import orjson

from sightline.model.scene import Json
from sightline.wire.jsonsize import parse_bounded
from sightline.wire.shape import at
from sightline.wire.sse import read_event, split_events

Events = Sequence[Json]
Collect = Callable[[Events], Json]
"""Events as the answer that the wire would have given in one piece; None: it broke off before its end."""

END = "[DONE]"
"""What the wires of OpenAI, and all that look like them, say when nothing more comes."""


def events(body: bytes) -> list[Json]:
    """What a stream says: events as servers send them, or a line of JSON each. What is neither is left out."""
    found = (_payload(data) for event in split_events(body) for data in _data(event))
    return [each for each in found if each is not None]


def _data(event: bytes) -> Iterable[bytes]:
    """Return the data of one event, or each line that is JSON by itself."""
    _, data = read_event(event)
    return [data.strip()] if data else [line for line in event.splitlines() if line.startswith(b"{")]


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
