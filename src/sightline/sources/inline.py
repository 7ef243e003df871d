"""Base64 text that stands in a body: decoded whole, or only as far as an image's header goes."""

from __future__ import annotations

import binascii

import pybase64

from sightline.model.base64_text import Text, payload, plain
from sightline.model.refusal import Refusal


def decode(text: Text) -> bytes | Refusal:
    """The bytes that the text stands for, in either alphabet, with or without padding and line breaks."""
    return _decoded(payload(text))


def _decoded(text: Text) -> bytes | Refusal:
    try:
        return pybase64.b64decode(text, validate=True)
    except binascii.Error:
        standard = plain(bytes(text))
    try:
        return pybase64.b64decode(standard, validate=True)
    except binascii.Error:
        return Refusal("corrupt", "the base64 text of the image is broken", "send the image again")


def head(text: Text, size: int) -> bytes:
    """The first bytes that the text stands for, at most `size`; none where the text is broken or too odd."""
    text, quads = payload(text), 4 * -(-size // 3)
    found = _decoded(text[:quads])
    if isinstance(found, Refusal):  # line breaks and escapes take room: read on, and drop what is cut
        standard = plain(bytes(text[: 2 * quads])).rstrip(b"=")
        found = _decoded(standard[: len(standard) // 4 * 4][:quads])
    return b"" if isinstance(found, Refusal) else found[:size]
