"""Base64 text that stands in a body: decoded whole, or only as far as an image's header goes."""

from __future__ import annotations

import binascii
import json
import re

import pybase64

from sightline.model.letters import STANDARD
from sightline.model.refusal import Refusal

Text = bytes | bytearray | memoryview
_PREFIX = re.compile(rb"data:[^,]*;base64,", re.IGNORECASE)
_LONGEST_PREFIX = 512
_BLANKS = b" \t\r\n\f\v"


def decode(text: Text) -> bytes | Refusal:
    """The bytes that the text stands for, in either alphabet, with or without padding and line breaks."""
    return _decoded(_payload(text))


def _decoded(text: Text) -> bytes | Refusal:
    try:
        return pybase64.b64decode(text, validate=True)
    except binascii.Error:
        plain = _plain(bytes(text))
    try:
        return pybase64.b64decode(plain, validate=True)
    except binascii.Error:
        return Refusal("corrupt", "the base64 text of the image is broken", "send the image again")


def head(text: Text, size: int) -> bytes:
    """The first bytes that the text stands for, at most `size`; none where the text is broken or too odd."""
    text, quads = _payload(text), 4 * -(-size // 3)
    found = _decoded(text[:quads])
    if isinstance(found, Refusal):  # line breaks and escapes take room: read on, and drop what is cut
        plain = _plain(bytes(text[: 2 * quads])).rstrip(b"=")
        found = _decoded(plain[: len(plain) // 4 * 4][:quads])
    return b"" if isinstance(found, Refusal) else found[:size]


def decoded_size(text: Text) -> int:
    """How many bytes the text stands for; too many by a little where it holds line breaks."""
    text = _payload(text)
    padding = bytes(text[-2:]).count(b"=")
    return len(text) * 3 // 4 - padding


def _payload(text: Text) -> Text:
    """What stands behind the prefix of a data URL, which some clients write where the bare text belongs."""
    if not text or text[0] not in b"dD" or bytes(text[:5]).lower() != b"data:":
        return text
    prefix = _PREFIX.match(bytes(text[:_LONGEST_PREFIX]))
    return text[prefix.end() :] if prefix else text


def _plain(text: bytes) -> bytes:
    """The text in the standard alphabet, without blanks and with its padding."""
    if b"\\" in text:
        text = _unescaped(text)
    text = text.translate(STANDARD, _BLANKS)
    unpadded = text.rstrip(b"=")
    return unpadded + b"=" * (-len(unpadded) % 4)


def _unescaped(text: bytes) -> bytes:
    """Some writers of JSON escape `/` and `+`, and the text is taken from the body as it stands there."""
    try:
        value = json.loads(b'"%b"' % text, strict=False)
    except ValueError:
        return text
    return str(value).encode("ascii", "replace")
