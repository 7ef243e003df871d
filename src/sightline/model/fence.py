"""Text from outside, made harmless: nothing of it opens or closes a fence of ours."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the command's refusals come here, and need no more of the model
    from sightline.model.scene import Json

_NAME = "vision_proxy_"
# Full-width brackets and slashes read like plain ones to a model, and what has no width reads like nothing.
_GAP = r"[\s\u200b-\u200f\u2060-\u2064\ufeff\u00ad]*+"
_opens = re.compile(r"[<\uff1c](?=" + _GAP + r"(?:[/\uff0f]" + _GAP + ")?" + _NAME + ")", re.IGNORECASE)
_unprintable = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_ESCAPES = str.maketrans({"&": "&amp;", '"': "&quot;", "<": "&lt;", ">": "&gt;", "\uff1c": "&lt;"})


def neutral(text: str) -> str:
    """A text, of several lines perhaps, in which nothing opens or closes a fence of ours."""
    return _opens.sub("&lt;", text)


def one_line(text: str) -> str:
    """A name or another short text on one line, as harmless."""
    return neutral(_unprintable.sub(" ", text).strip())


def attribute(text: str) -> str:
    """The value of an attribute, in double quotes."""
    return _unprintable.sub(" ", text).translate(_ESCAPES).strip()


def fenced(tag: str, attributes: Mapping[str, str | None], text: str, listed: Mapping[str, str] | None = None) -> str:
    """Text from outside between tags of ours. What has no value is left out; `listed` ones are JSON already."""
    given = {name: f'"{attribute(value)}"' for name, value in attributes.items() if value}
    quoted = {name: f"'{value}'" for name, value in (listed or {}).items()}
    order = [name for name in attributes if name in given or name in quoted]
    inner = "".join(f"\n    {name}={quoted.get(name) or given[name]}" for name in order)
    return f"<{_NAME}{tag}{inner}>\n{neutral(text.strip())}\n</{_NAME}{tag}>"


_INNER = re.compile(r"['<>&\uff1c\x7f-\x9f\u2028\u2029]")


def rows(entries: Iterable[Mapping[str, Json]], indent: int) -> str:
    """A list of objects for an attribute in single quotes: JSON as it stands, an object a line, nothing to unescape."""
    written = (json.dumps(dict(entry), ensure_ascii=False, separators=(",", ":")) for entry in entries)
    escaped = (_INNER.sub(lambda found: f"\\u{ord(found[0]):04x}", row) for row in written)
    return "[" + (",\n" + " " * indent).join(escaped) + "]"


def sound(text: str) -> str:
    """Text that can be written anywhere: half a letter, or a byte of a name that is no text, is a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def plain(text: str) -> str:
    """One line for a terminal, which obeys what it cannot print."""
    return text if text.isprintable() else "".join(letter if letter.isprintable() else "?" for letter in text)
