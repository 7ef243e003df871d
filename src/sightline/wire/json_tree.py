"""JSON that others wrote: parsing it within bounds, and reading trees whose shape isn't known.

The size of a text is found before it is parsed. Parsing costs about 100 ns and 100 bytes of memory per value, in one
call that nothing can interrupt, and reading the result costs more. Counting costs 1 ns per byte and can be done in
pieces. So a text is counted first, and one above a bound isn't parsed at all. The bounds are several times what any
model's context can hold: a conversation of 5,000 messages has about 100,000 values, and the text of a million tokens
has about 4 MB and 300,000 marks.

The `get_…` functions never raise. A value that is missing or has another type than expected is treated as absent.
"""

from __future__ import annotations

import json
from contextlib import suppress
from functools import reduce
from operator import getitem
from typing import Any, Protocol

import orjson

from sightline.model.refusal import Refusal
from sightline.model.scene import Json, JsonPath

Buffer = bytes | bytearray | memoryview
Block = dict[str, Json]
"""An object of the body: a content block, a part, an item, a message."""

MAX_BYTES = 16 * 1024 * 1024  # of text without the lifted base64: parsing takes up to 0.2 s
MAX_VALUES = 500_000  # outside of strings
MAX_MARKS = 4_000_000  # inside of strings as well: a string can contain JSON that is parsed too
MAX_ANSWER_VALUES = 100_000  # of a provider's answer, which is parsed while other requests wait
SMALL_BYTES = 256 * 1024  # a text up to this size is parsed in a few milliseconds, whatever it contains
_MARKS = b",[{"  # one of these or a colon is before each value, and one of these is before each colon
_MARK_LETTERS = (",", "[", "{")
_STEP = 1024 * 1024  # bytes that are counted at a time, so that other threads get their turn

_REMEDY = "it is forwarded as it came"
_TOO_LONG = Refusal("too_large", f"there are more than {MAX_BYTES >> 20} MB of text beside the images", _REMEDY)
_TOO_MANY = Refusal("too_large", f"there are more than {MAX_VALUES:,} JSON values", _REMEDY)

_DICT_ONLY = {dict}
_get_item: Any = getitem  # for `reduce`, which calls it without a step of the interpreter
_MAX_NAME = 4096  # bytes
_MAX_ARGUMENTS = 65536


def measure_json(text: bytes | bytearray) -> int | Refusal:
    """Return about how many values a JSON text has, or why it is too large to be parsed; 0 for any small text."""
    if len(text) <= SMALL_BYTES:
        return 0
    if len(text) > MAX_BYTES:
        return _TOO_LONG
    marks = count_marks(text)
    if marks <= MAX_VALUES:
        return marks
    values = MAX_VALUES + 1 if marks > MAX_MARKS else count_values(text)
    return values if values <= MAX_VALUES else _TOO_MANY


def count_marks(text: bytes | bytearray, limit: int = MAX_MARKS) -> int:
    """Return how many commas and opening brackets there are, inside of strings too; stop counting above `limit`."""
    found = 0
    for start in range(0, len(text), _STEP):
        piece = text[start : start + _STEP]
        found += len(piece) - len(piece.translate(None, _MARKS))
        if found > limit:
            break
    return found


def count_values(text: bytes | bytearray, limit: int = MAX_VALUES) -> int:
    """Return how many commas and opening brackets there are outside of strings; stop counting above `limit`."""
    found, start, in_string = 0, 0, False
    while start < len(text) and found <= limit:
        piece = text[start : start + _STEP]
        if (len(piece) - len(piece.rstrip(b"\\"))) % 2:  # never cut between a backslash and what it escapes
            piece = text[start : start + _STEP + 1]
        start += len(piece)
        # Without escapes, every quote that is left begins or ends a string.
        parts = piece.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        outside = b"".join(parts[in_string::2])
        found += len(outside) - len(outside.translate(None, _MARKS))
        in_string ^= len(parts) % 2 == 0
    return found


def parse_bounded_json(text: bytes | bytearray, max_values: int = MAX_ANSWER_VALUES) -> Json:
    """Parse a text that others wrote; raise `JSONDecodeError` if it isn't JSON or has more than `max_values`."""
    if len(text) > SMALL_BYTES and count_marks(text, max_values) > max_values:
        raise orjson.JSONDecodeError(f"there are more than {max_values:,} values", "", 0)
    parsed: Json = orjson.loads(text)
    return parsed


def is_oversized(text: str) -> bool:
    """Return whether a string contains too much to be parsed as JSON again."""
    return len(text) > SMALL_BYTES and sum(map(text.count, _MARK_LETTERS)) > MAX_VALUES


class Texts(Protocol):
    """The full texts of a tree from whose strings long runs were lifted out."""

    @property
    def token(self) -> str:
        """Begins every placeholder, so it is in every string that something was lifted out of."""
        ...

    def expand_text(self, leaf: str) -> Buffer:
        """Return the full text of a string of the tree."""
        ...


class PlainTexts:
    """The texts of a tree that nothing was lifted out of."""

    token = "\0never\0"  # noqa: S105

    def expand_text(self, leaf: str) -> Buffer:
        return leaf.encode("utf-8", "surrogatepass")


def get_at(tree: Json, *steps: str | int) -> Json:
    """Return the value at the end of `steps`, or None."""
    for step in steps:
        if isinstance(tree, dict):
            tree = tree.get(step)  # type: ignore[arg-type]  # None for an index, which no object has as a key
        elif isinstance(tree, list) and not isinstance(step, str) and 0 <= step < len(tree):
            tree = tree[step]
        else:
            return None
    return tree


def get_known(tree: Json, place: JsonPath) -> Json:
    """Return the value at a place that was found in this tree, such as that of a sight, in a third of the time."""
    found: Json = reduce(_get_item, place, tree)
    return found


def get_list(tree: Json, key: str) -> list[Json]:
    """Return the list under a key; an empty one if there is none."""
    found = tree.get(key) if isinstance(tree, dict) else None
    return found if isinstance(found, list) else []


def enumerate_objects(value: Json) -> list[tuple[int, Block]]:
    """Return the objects of a list with their indexes; other elements, such as nulls, are skipped."""
    if not isinstance(value, list):
        return []
    if {*map(type, value)} == _DICT_ONLY:  # nearly always
        return [*enumerate(value)]  # type: ignore[list-item]
    return [(i, item) for i, item in enumerate(value) if isinstance(item, dict)]


def get_value(value: Json, key: str) -> Json:
    """Return what `get_at` returns for a single key, in a third of the time: this runs for every message."""
    return value.get(key) if isinstance(value, dict) else None


def get_text(value: Json, key: str) -> str:
    """Return the string under a key; an empty one if there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def get_name(value: Json, key: str, texts: Texts) -> str:
    """Return a short text such as a name or an id; an empty one if it is too long for that.

    The text is expanded, so that checks see the text that is sent, not a placeholder.
    """
    leaf = value.get(key) if isinstance(value, dict) else None
    if not isinstance(leaf, str):
        return ""
    if leaf.isascii() and texts.token not in leaf:  # nearly always
        return leaf if len(leaf) <= _MAX_NAME else ""
    text = texts.expand_text(leaf)
    return bytes(text).decode("utf-8", "replace") if len(text) <= _MAX_NAME else ""


def parse_arguments(leaf: str, texts: Texts) -> Json:
    """Parse the arguments of a call, which are JSON inside a string.

    Return None for long ones, too: they contain a file, not its name.
    """
    text = texts.expand_text(leaf) if texts.token in leaf else leaf
    if not text or len(text) > _MAX_ARGUMENTS:
        return None
    found: Json = None
    try:
        found = orjson.loads(text)
    except ValueError:  # the standard library reads some texts that orjson doesn't
        with suppress(ValueError, RecursionError):
            found = json.loads(text if isinstance(text, str) else bytes(text))
    return found
