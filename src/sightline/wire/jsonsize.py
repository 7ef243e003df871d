"""The size of a JSON text, found before it is parsed.

Parsing costs about 100 ns and 100 bytes of memory per value, in one call that nothing can interrupt, and reading what
was parsed costs more. Counting costs 1 ns per byte and can be done in pieces. So a text is counted first, and one that
is over a bound is not parsed at all.

The bounds are several times what any model's context can hold. A conversation of 5,000 messages has about 100,000
values, and the text of a million tokens has about 4 MB and 300,000 marks.
"""

from __future__ import annotations

import orjson

from sightline.model.refusal import Refusal
from sightline.model.scene import Json

MOST_BYTES = 16 * 1024 * 1024  # of text, without the base64 that was lifted out of it: parsing takes up to 0.2 s
MOST_VALUES = 500_000  # outside of strings
MOST_MARKS = 4_000_000  # inside of strings as well: a string can hold JSON that is parsed too
MOST_OF_AN_ANSWER = 100_000  # values, of what a provider answers: it is parsed while other requests wait
SURELY_SMALL = 256 * 1024  # bytes: a text that is no longer is parsed in a few milliseconds, whatever is in it
_MARKS = b",[{"  # before each value there is one of these or a colon, and before each colon there is one of these
_MARK_LETTERS = (",", "[", "{")
_STEP = 1024 * 1024  # bytes that are counted at a time, so that other threads get their turn

_REMEDY = "it is forwarded as it came"
_TOO_LONG = Refusal("too_large", f"there are more than {MOST_BYTES >> 20} MB of text beside the images", _REMEDY)
_TOO_MANY = Refusal("too_large", f"there are more than {MOST_VALUES:,} JSON values", _REMEDY)


def measure(text: bytes | bytearray) -> int | Refusal:
    """Return about how many values a JSON text has, or why it is too large to be parsed; 0 for any small text."""
    if len(text) <= SURELY_SMALL:
        return 0
    if len(text) > MOST_BYTES:
        return _TOO_LONG
    marks = count_marks(text)
    if marks <= MOST_VALUES:
        return marks
    values = MOST_VALUES + 1 if marks > MOST_MARKS else count_values(text)
    return values if values <= MOST_VALUES else _TOO_MANY


def count_marks(text: bytes | bytearray, most: int = MOST_MARKS) -> int:
    """Return how many commas and opening brackets there are, inside of strings too; stop counting above `most`."""
    found = 0
    for start in range(0, len(text), _STEP):
        piece = text[start : start + _STEP]
        found += len(piece) - len(piece.translate(None, _MARKS))
        if found > most:
            break
    return found


def count_values(text: bytes | bytearray, most: int = MOST_VALUES) -> int:
    """Return how many commas and opening brackets there are outside of strings; stop counting above `most`."""
    found, start, inside = 0, 0, False
    while start < len(text) and found <= most:
        piece = text[start : start + _STEP]
        if (len(piece) - len(piece.rstrip(b"\\"))) % 2:  # a backslash belongs to what follows it
            piece = text[start : start + _STEP + 1]
        start += len(piece)
        # Without escapes, every quote that is left begins or ends a string.
        parts = piece.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        outside = b"".join(parts[inside::2])
        found += len(outside) - len(outside.translate(None, _MARKS))
        inside ^= len(parts) % 2 == 0
    return found


def parse_bounded(text: bytes | bytearray, most: int = MOST_OF_AN_ANSWER) -> Json:
    """Parse a text that others wrote; raise `JSONDecodeError` if it is not JSON, or has more values than `most`."""
    if len(text) > SURELY_SMALL and count_marks(text, most) > most:
        raise orjson.JSONDecodeError(f"there are more than {most:,} values", "", 0)
    parsed: Json = orjson.loads(text)
    return parsed


def is_oversized(text: str) -> bool:
    """Return whether a string holds too much to be parsed as JSON again."""
    return len(text) > SURELY_SMALL and sum(map(text.count, _MARK_LETTERS)) > MOST_VALUES
