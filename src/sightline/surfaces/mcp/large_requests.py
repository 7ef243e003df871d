"""Prepares large requests at /mcp for the SDK, which parses a request in one step on the event loop.

A large request is checked in a thread first, and long base64, such as that of a file, is replaced by placeholders
there, as in the bodies of the proxy (`wire/jsontext`). What is left is bounded, and it is all that the SDK parses.
`restore` puts the base64 back into the parameters before they reach a tool.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from sightline.model.refusal import Refusal
from sightline.wire.jsonsize import SURELY_SMALL, count_marks
from sightline.wire.jsontext import lift_runs

MOST_BYTES = 64 * 1024 * 1024  # of a request: a file may come as base64
MOST_TEXT = 4 * 1024 * 1024  # bytes beside the base64: parsing them takes about 20 ms
MOST_MARKS = 100_000  # commas and opening brackets
_MOST_DEPTH = 50  # of objects and lists in which base64 is put back; no tool has a parameter that is deeper
_REMEDY = "send less in one request"
_TOO_LONG = Refusal(
    "too_large", f"there are more than {MOST_TEXT >> 20} MB of text in this request beside its base64", _REMEDY
)
_TOO_MANY_VALUES = Refusal("too_large", f"there are more than {MOST_MARKS:,} JSON values in this request", _REMEDY)
LIFTED = "sightline.lifted"  # the key in the scope of a request for what was lifted out of it


@dataclass(frozen=True, slots=True)
class LiftedRequest:
    """A request without its long base64."""

    body: bytes | bytearray
    token: str  # begins each placeholder
    texts: tuple[str, ...]


def is_large(body: bytes | bytearray) -> bool:
    """Return whether a request takes too long to be prepared on the event loop."""
    return len(body) > SURELY_SMALL


def lift_request(body: bytes | bytearray) -> LiftedRequest | Refusal:
    """Lift long base64 out of a large request; refuse it if too much is left to be parsed."""
    token = f"sightline-{secrets.token_hex(16)}-"
    lifted = lift_runs(body, token) if is_large(body) else None
    left = body if lifted is None else lifted.skeleton
    if len(left) > MOST_TEXT:
        return _TOO_LONG
    if count_marks(left, MOST_MARKS) > MOST_MARKS:
        return _TOO_MANY_VALUES
    texts = () if lifted is None else tuple(str(span, "ascii") for span in lifted.spans)
    return LiftedRequest(left, token, texts)


def restore(value: Any, lifted: LiftedRequest, depth: int = _MOST_DEPTH) -> Any:
    """Return parsed JSON with the base64 in the place of its placeholders."""
    if not lifted.texts or not depth:
        return value
    if isinstance(value, str):
        return _restore_text(value, lifted)
    if isinstance(value, dict):
        return {name: restore(each, lifted, depth - 1) for name, each in value.items()}
    return [restore(each, lifted, depth - 1) for each in value] if isinstance(value, list) else value


def _restore_text(text: str, lifted: LiftedRequest) -> str:
    first, *others = text.split(lifted.token)
    parts = [first]
    for other in others:
        number, _, rest = other.partition(";")
        parts += [lifted.texts[int(number)], rest]
    return "".join(parts)
