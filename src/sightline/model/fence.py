"""Text from outside, made harmless: nothing of it opens or closes a fence of ours."""

from __future__ import annotations

import re

_NAME = "vision_proxy_"
# Full-width brackets and slashes read like plain ones to a model, and what has no width reads like nothing.
_GAP = r"[\s\u200b-\u200f\u2060-\u2064\ufeff\u00ad]*+"
_opens = re.compile(r"[<\uff1c](?=" + _GAP + r"(?:[/\uff0f]" + _GAP + ")?" + _NAME + ")", re.IGNORECASE)
_unprintable = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_ESCAPES = str.maketrans({"&": "&amp;", '"': "&quot;", "<": "&lt;", ">": "&gt;", "\uff1c": "&lt;"})


def neutral(text: str) -> str:
    """Text that may have several lines."""
    return _opens.sub("&lt;", text)


def one_line(text: str) -> str:
    """A name or another short word."""
    return neutral(_unprintable.sub(" ", text).strip())


def attribute(text: str) -> str:
    """The value of an attribute, in double quotes."""
    return _unprintable.sub(" ", text).translate(_ESCAPES).strip()


def plain(text: str) -> str:
    """One line for a terminal, which obeys what it cannot print."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
