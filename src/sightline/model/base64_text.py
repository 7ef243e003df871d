"""Base64 as it stands in a body: its alphabets, and the text behind a data URL prefix, in lines or with escapes."""

from __future__ import annotations

import json
import re

PLAIN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
BASE64 = PLAIN + b"=_-"
"""All that base64 is ever written with."""

STANDARD = bytes.maketrans(b"-_", b"+/")
"""Translates the alphabet that is safe in addresses into the plain one."""

AS_LETTERS = bytes(0x41 if letter in BASE64 else 0x20 for letter in range(256))
"""Translates a letter of base64 into an A, and anything else into a blank: then runs of it are found fast."""

PER_TOKEN = 4
"""Letters of words to a token, roughly, on every model."""


Text = bytes | bytearray | memoryview
_PREFIX = re.compile(rb"data:[^,]*;base64,", re.IGNORECASE)
_LONGEST_PREFIX = 512
_BLANKS = b" \t\r\n\f\v"
_SAMPLE = 1024  # letters in which line breaks and escapes show, where there are any
_odd = re.compile(rb"[\\\s]").search


def payload(text: Text) -> Text:
    """Return what stands behind the prefix of a data URL, which some clients write where the bare text belongs."""
    if not text or text[0] not in b"dD" or bytes(text[:5]).lower() != b"data:":
        return text
    prefix = _PREFIX.match(bytes(text[:_LONGEST_PREFIX]))
    return text[prefix.end() :] if prefix else text


def plain(text: bytes) -> bytes:
    """Return the text in the standard alphabet, without blanks and with its padding."""
    if b"\\" in text:
        text = _unescaped(text)
    text = text.translate(STANDARD, _BLANKS)
    unpadded = text.rstrip(b"=")
    return unpadded + b"=" * (-len(unpadded) % 4)


def decoded_size(text: Text) -> int:
    """Return how many bytes the text stands for. Blanks and escapes do not count."""
    text = payload(text)
    last = bytes(text[-4:])
    if _odd(bytes(text[:_SAMPLE])) or _odd(last):
        return len(plain(bytes(text)).rstrip(b"=")) * 3 // 4
    return (len(text) - len(last) + len(last.rstrip(b"="))) * 3 // 4


def _unescaped(text: bytes) -> bytes:
    """Some writers of JSON escape `/` and `+`, and the text is taken from the body as it stands there."""
    try:
        value = json.loads(b'"%b"' % text, strict=False)
    except ValueError:
        return text
    return str(value).encode("ascii", "replace")
