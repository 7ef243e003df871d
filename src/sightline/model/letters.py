"""The letters of base64, in either alphabet, and what letters weigh."""

from __future__ import annotations

PLAIN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
BASE64 = PLAIN + b"=_-"
"""All that base64 is ever written with."""

STANDARD = bytes.maketrans(b"-_", b"+/")
"""Translates the alphabet that is safe in addresses into the plain one."""

AS_LETTERS = bytes(0x41 if letter in BASE64 else 0x20 for letter in range(256))
"""Translates a letter of base64 into an A, and anything else into a blank: then runs of it are found fast."""

PER_TOKEN = 4
"""Letters of words to a token, roughly, on every model."""
