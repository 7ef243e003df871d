"""Prepares large requests at /mcp for the SDK, which parses a request in one step on the event loop.

A large request is checked in a thread first, and long base64, such as that of a file, is replaced by placeholders
there, as in the bodies of the proxy (`wire/json_document`). What is left is bounded, and it is all that the SDK parses.
`restore` puts the base64 back into the parameters before they reach a tool.
"""

from __future__ import annotations

import secrets
from typing import Any

from sightline.model.refusal import Refusal
from sightline.model.value import value_class
from sightline.wire.json_document import lift_runs
from sightline.wire.json_tree import SMALL_BYTES, count_marks

MAX_REQUEST_BYTES = 64 * 1024 * 1024  # of a request, which may contain a file as base64
MAX_REQUEST_TEXT_BYTES = 4 * 1024 * 1024  # bytes beside the base64: parsing them takes about 20 ms
MAX_REQUEST_MARKS = 100_000  # commas and opening brackets
_MAX_DEPTH = 50  # of objects and lists in which base64 is put back; no tool has a parameter that is deeper
_REMEDY = "send less in one request"
_TOO_LONG = Refusal(
    "too_large", f"this request has more than {MAX_REQUEST_TEXT_BYTES >> 20} MB of text besides its base64", _REMEDY
)
_TOO_MANY_VALUES = Refusal("too_large", f"this request has more than {MAX_REQUEST_MARKS:,} JSON values", _REMEDY)
LIFTED = "sightline.lifted"  # key of the `LiftedRequest` in the scope of a request


@value_class
class LiftedRequest:
    """A request without its long base64."""

    body: bytes | bytearray
    token: str  # begins each placeholder
    texts: tuple[str, ...]

    @property
    def size(self) -> int:
        return len(self.body) + sum(map(len, self.texts))


def is_large(body: bytes | bytearray) -> bool:
    """Return whether preparing a request on the event loop would take too long."""
    return len(body) > SMALL_BYTES


def lift_request(body: bytes | bytearray) -> LiftedRequest | Refusal:
    """Lift long base64 out of a large request. Refuse the request if too much is left to parse."""
    token = f"sightline-{secrets.token_hex(16)}-"
    lifted = lift_runs(body, token) if is_large(body) else None
    left = body if lifted is None else lifted.skeleton
    if len(left) > MAX_REQUEST_TEXT_BYTES:
        return _TOO_LONG
    if count_marks(left, MAX_REQUEST_MARKS) > MAX_REQUEST_MARKS:
        return _TOO_MANY_VALUES
    texts = () if lifted is None else tuple(str(span, "ascii") for span in lifted.spans)
    return LiftedRequest(left, token, texts)


def restore(value: Any, lifted: LiftedRequest, depth: int = _MAX_DEPTH) -> Any:
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
