"""Tell text from other data by its bytes, and decode it, in any usual encoding, to characters that can be drawn.

The order of attempts: a byte order mark, UTF-16 by its zero bytes, UTF-8, Shift JIS and GB 18030 if what comes out
looks like Japanese or Chinese, then Windows-1252, which takes everything.
"""

from __future__ import annotations

import codecs
import re

_SAMPLE = 64 * 1024  # bytes that tell the encoding
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_KANA = re.compile("[\u3041-\u30ff]")
_FOREIGN = re.compile("[^\x00-\x7f]")
_MIN_KANA, _MIN_COMMON = 0.15, 0.9  # shares of the characters beyond ASCII

# Control characters are drawn as the pictures that Unicode has for them: U+2400 for U+0000, and so on.
_PICTURES = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"} | {0x7F: 0x2421}
_PICTURES |= dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_ZERO_WIDTH = "\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe2f\u200b-\u200d"
_MARK_FLOOD = re.compile(f"([{_ZERO_WIDTH}]{{4}})[{_ZERO_WIDTH}]+")
# What changes the order of other characters or is invisible would deceive the reader; it is drawn as a code point.
_INVISIBLE = re.compile("[\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]")
_LONE_JOINER = re.compile("(?<![^\x00-\xff])[\u200c\u200d\ufe0e\ufe0f]")
_LETTERS = bytes(range(0x20, 0x7F)) + b"\t\n\r"
_CONTROLS = bytes(byte for byte in range(32) if byte not in b"\t\n\r\f\x1b")
_MAX_CONTROLS = 0.02  # of the bytes of a text
_MIN_LETTERS = 0.6  # of the bytes of a text in an encoding of Western Europe


def choose_encoding(data: bytes) -> str:
    """Return the encoding in which a text is most likely written."""
    if found := next((name for mark, name in _MARKS if data.startswith(mark)), ""):
        return found
    head = data[:_SAMPLE]
    if wide := _find_utf16(head):
        return wide
    if _decodes(head, "utf-8"):
        return "utf-8"
    return next((name for name, fits in _GUESSES if fits(head)), "cp1252")


def decode_text(data: bytes) -> tuple[str, str]:
    """Return the text of a file, with line feeds as the only line ends, and its encoding."""
    encoding = choose_encoding(data)
    text = data.decode(encoding, "replace")
    if encoding == "cp1252" and "\ufffd" in text:
        text = data.decode("latin-1")
    return text.replace("\r\n", "\n").replace("\r", "\n"), encoding


def describe_encoding(encoding: str) -> str:
    """Return a note about an encoding that was guessed, or nothing."""
    return "" if encoding.startswith("utf-8") else f"read as {encoding}"


def make_visible(text: str) -> str:
    """Return a text in which every character has a look: control characters as pictures, floods of marks cut."""
    if _CONTROL.search(text):
        text = text.translate(_PICTURES)
    if text.isascii():
        return text
    text = _MARK_FLOOD.sub("\\1…", text)
    text = _LONE_JOINER.sub(_spell_code, text)
    return _INVISIBLE.sub(_spell_code, text)


def _spell_code(found: re.Match[str]) -> str:
    return f"⟦{ord(found[0]):04X}⟧"


def _find_utf16(head: bytes) -> str:
    """Return a form of UTF-16 if nearly every second byte is zero, as in text of few characters beyond Latin."""
    pairs = len(head) // 2
    if pairs < 2:
        return ""
    first, second = head[: 2 * pairs : 2].count(0), head[1 : 2 * pairs : 2].count(0)
    if second > 0.7 * pairs and first < 0.05 * pairs:
        return "utf-16-le"
    return "utf-16-be" if first > 0.7 * pairs and second < 0.05 * pairs else ""


def _decodes(head: bytes, encoding: str) -> str:
    """Return the text of a sample, whose last character may be cut; empty: it is in another encoding."""
    try:
        return codecs.getincrementaldecoder(encoding)().decode(head, len(head) < _SAMPLE)
    except UnicodeDecodeError:
        return ""


def _is_japanese(head: bytes) -> bool:
    text = _decodes(head, "cp932")
    foreign = len(_FOREIGN.findall(text))
    return foreign > 0 and len(_KANA.findall(text)) >= _MIN_KANA * foreign


def _is_chinese(head: bytes) -> bool:
    foreign = "".join(_FOREIGN.findall(_decodes(head, "gb18030")))
    common = len(foreign.encode("gb2312", "ignore")) // 2
    return bool(foreign) and common >= _MIN_COMMON * len(foreign)


_GUESSES = (("cp932", _is_japanese), ("gb18030", _is_chinese))


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
    return any(_is_valid(opening, encoding) for encoding in ("cp932", "gb18030"))


def _count_letters(data: bytes) -> int:
    return len(data) - len(data.translate(None, _LETTERS))


def _is_valid(opening: bytes, encoding: str) -> bool:
    """Return whether the bytes are valid in an encoding; the last character may be cut."""
    try:
        opening.decode(encoding)
    except UnicodeDecodeError as error:
        return error.start > len(opening) - 4
    return True
