"""Tell text from other data by its bytes."""

from __future__ import annotations

_LETTERS = bytes(range(0x20, 0x7F)) + b"\t\n\r"
_CONTROLS = bytes(byte for byte in range(32) if byte not in b"\t\n\r\f\x1b")
_MAX_CONTROLS = 0.02  # of the bytes of a text
_MIN_LETTERS = 0.6  # of the bytes of a text in an encoding of Western Europe


def is_utf8_text(opening: bytes) -> bool:
    """Return whether the bytes are UTF-8 with few control characters; the last character may be cut."""
    controls = len(opening) - len(opening.translate(None, _CONTROLS))
    if controls > len(opening) * _MAX_CONTROLS:
        return False
    try:
        opening.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start > len(opening) - 4 and error.reason == "unexpected end of data"
    return True


def is_legacy_text(opening: bytes) -> bool:
    """Return whether the bytes are text in UTF-16 without a mark, or in an encoding of Western Europe or East Asia."""
    pairs = len(opening) // 2
    zeros = sorted((opening[: 2 * pairs : 2].count(0), opening[1 : 2 * pairs : 2].count(0)))
    if pairs > 3 and zeros[1] > 0.7 * pairs and zeros[0] == 0:
        opening = opening.translate(None, b"\0")
        return _count_letters(opening) >= _MIN_LETTERS * len(opening)
    if opening.translate(None, _CONTROLS) != opening:
        return False
    if _count_letters(opening) >= _MIN_LETTERS * len(opening):
        return True
    return any(_decodes(opening, encoding) for encoding in ("cp932", "gb18030"))


def _count_letters(data: bytes) -> int:
    return len(data) - len(data.translate(None, _LETTERS))


def _decodes(opening: bytes, encoding: str) -> bool:
    """Return whether the bytes are valid in an encoding; the last character may be cut."""
    try:
        opening.decode(encoding)
    except UnicodeDecodeError as error:
        return error.start > len(opening) - 4
    return True
