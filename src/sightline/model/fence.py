"""Text from outside, made harmless: nothing of it opens or closes a fence of ours."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

_NAME = "vision_proxy_"
# Full-width brackets and slashes read like plain ones to a model, and what has no width reads like nothing.
_GAP = r"[\s\u200b-\u200f\u2060-\u2064\ufeff\u00ad]*+"
_opens = re.compile(r"[<\uff1c](?=" + _GAP + r"(?:[/\uff0f]" + _GAP + ")?" + _NAME + ")", re.IGNORECASE)
_CONTROLS = r"\x00-\x1f\x7f-\x9f\u2028\u2029"
# What has no width, or turns the letters around it: by it a name reads like another one, or holds words that nobody
# sees. All that Unicode lets a reader ignore, but for the variation selectors of emoji.
_HIDES = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    r"\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_unprintable = re.compile(f"[{_CONTROLS}]+")
_hides = re.compile(f"[{_HIDES}]")
_unseen = re.compile(f"[{_CONTROLS}{_HIDES}]")
_ESCAPES = str.maketrans({"&": "&amp;", '"': "&quot;", "<": "&lt;", ">": "&gt;", "\uff1c": "&lt;"})


def neutral(text: str) -> str:
    """A text, of several lines perhaps, in which nothing opens or closes a fence of ours."""
    return _opens.sub("&lt;", text)


def one_line(text: str) -> str:
    """A name or another short word: what hides in it is seen, as JSON would write it."""
    return neutral(_flat(text))


def attribute(text: str) -> str:
    """The value of an attribute, in double quotes."""
    return _flat(text).translate(_ESCAPES)


def json_line(value: object) -> str:
    """JSON as it reads best, in which nothing hides: what would is escaped, and whoever reads it back has it all."""
    return _unseen.sub(_escaped, json.dumps(value, ensure_ascii=False))


def _flat(text: str) -> str:
    if text.isascii() and text.isprintable():  # as it mostly is
        return text.strip()
    return _hides.sub(_escaped, _unprintable.sub(" ", text).strip())


def _escaped(found: re.Match[str]) -> str:
    letter = found[0]
    return f"\\u{ord(letter):04x}" if letter <= "\uffff" else json.dumps(letter)[1:-1]


def fenced(tag: str, attributes: Mapping[str, str | None], text: str, listed: Mapping[str, str] | None = None) -> str:
    """Text from outside between tags of ours. What has no value is left out; `listed` ones are JSON already."""
    given = {name: f'"{attribute(value)}"' for name, value in attributes.items() if value}
    quoted = {name: f"'{value}'" for name, value in (listed or {}).items()}
    order = [name for name in attributes if name in given or name in quoted]
    inner = "".join(f"\n    {name}={quoted.get(name) or given[name]}" for name in order)
    return f"<{_NAME}{tag}{inner}>\n{neutral(text.strip())}\n</{_NAME}{tag}>"


_INNER = re.compile(rf"['<>&\uff1c]|{_unseen.pattern}")


def rows(entries: Iterable[Mapping[str, object]], indent: int) -> str:
    """A list of objects for an attribute in single quotes: JSON as it stands, an object a line, nothing to unescape."""
    written = (json.dumps(dict(entry), ensure_ascii=False, separators=(",", ":")) for entry in entries)
    escaped = (_INNER.sub(_escaped, row) for row in written)
    return "[" + (",\n" + " " * indent).join(escaped) + "]"


def sound(text: str) -> str:
    """Text that can be written anywhere: half a letter, or a byte of a name that is no text, is a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def plain(text: str) -> str:
    """One line for a terminal, which obeys what it cannot print."""
    return text if text.isprintable() else "".join(letter if letter.isprintable() else "?" for letter in text)
