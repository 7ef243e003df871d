"""Base64 text as clients write it into bodies: its alphabets, data URL prefixes, line breaks and escapes."""

from __future__ import annotations

import binascii
import json
import re

import pybase64

from sightline.model.refusal import Refusal

STANDARD_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
BASE64_CHARACTERS = STANDARD_ALPHABET + b"=_-"
"""All characters of base64 text."""

URLSAFE_TO_STANDARD = bytes.maketrans(b"-_", b"+/")
"""Translates the URL-safe alphabet into the standard one."""

BASE64_RUN_TABLE = bytes(0x41 if character in BASE64_CHARACTERS else 0x20 for character in range(256))
"""Translates base64 characters to `A` and all others to a space, so that long runs can be found fast."""

CHARACTERS_PER_TOKEN = 4
"""Characters of text per token, roughly, for every model."""


BytesLike = bytes | bytearray | memoryview
_PREFIX = re.compile(rb"data:[^,]*;base64,", re.IGNORECASE)
_MAX_PREFIX = 512
_WHITESPACE = b" \t\r\n\f\v"
_SAMPLE_LENGTH = 1024  # characters that show whether a text has line breaks or escapes


def strip_data_prefix(text: BytesLike) -> BytesLike:
    """Return the text without a data URL prefix, which some clients write where bare base64 belongs."""
    if not text or text[0] not in b"dD" or bytes(text[:5]).lower() != b"data:":
        return text
    prefix = _PREFIX.match(bytes(text[:_MAX_PREFIX]))
    return text[prefix.end() :] if prefix else text


def normalize_base64(text: bytes) -> bytes:
    """Return the text in the standard alphabet, without whitespace and with padding."""
    if b"\\" in text:
        text = _unescape_json(text)
    text = text.translate(URLSAFE_TO_STANDARD, _WHITESPACE)
    unpadded = text.rstrip(b"=")
    return unpadded + b"=" * (-len(unpadded) % 4)


def compute_base64_length(size: int) -> int:
    """Return the length of `size` bytes as base64, to convert a limit on bytes."""
    return 4 * -(-size // 3)


def compute_decoded_size(text: BytesLike) -> int:
    """Return how many bytes the text decodes to. Whitespace and escapes do not count."""
    text = strip_data_prefix(text)
    last = bytes(text[-4:])
    sample = bytes(text[:_SAMPLE_LENGTH]) + last
    if len(sample.translate(None, _WHITESPACE + b"\\")) < len(sample):
        return len(normalize_base64(bytes(text)).rstrip(b"=")) * 3 // 4
    return (len(text) - len(last) + len(last.rstrip(b"="))) * 3 // 4


def decode_base64(text: BytesLike) -> bytes | Refusal:
    """Decode base64 text in either alphabet, with or without padding, line breaks and a data URL prefix."""
    return _decode_payload(strip_data_prefix(text))


def _decode_payload(text: BytesLike) -> bytes | Refusal:
    try:
        return pybase64.b64decode(text, validate=True)
    except binascii.Error:
        standard = normalize_base64(bytes(text))
    try:
        return pybase64.b64decode(standard, validate=True)
    except binascii.Error:
        return Refusal("corrupt", "the base64 text of the image is invalid", "send the image again")


def decode_head(text: BytesLike, size: int) -> bytes:
    """Decode at most the first `size` bytes, without decoding the rest; return b"" if the text is invalid."""
    text, quads = strip_data_prefix(text), 4 * -(-size // 3)
    found = _decode_payload(text[:quads])
    if isinstance(found, Refusal):  # line breaks and escapes take room: read more, and drop the incomplete end
        standard = normalize_base64(bytes(text[: 2 * quads])).rstrip(b"=")
        found = _decode_payload(standard[: len(standard) // 4 * 4][:quads])
    return b"" if isinstance(found, Refusal) else found[:size]


def _unescape_json(text: bytes) -> bytes:
    """Undo JSON escapes, since the text is taken from the body unparsed and some clients escape `/` and `+`."""
    try:
        value = json.loads(b'"%b"' % text, strict=False)
    except ValueError:
        return text
    return str(value).encode("ascii", "replace")
