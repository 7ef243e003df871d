"""Reading trees whose shape nobody promised: what is not as expected is simply not there."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Protocol

import orjson

from sightline.model.fence import sound
from sightline.model.scene import Json
from sightline.wire.jsontext import Buffer

_LONGEST_WORD = 4096
_LONGEST_ARGUMENTS = 65536
_PATHS = ("file_path", "filePath", "absolute_path", "path", "filename", "file")


class Texts(Protocol):
    """Whoever knows the whole texts of a tree out of which long ones were lifted."""

    @property
    def token(self) -> str:
        """Stands in every string that something was lifted out of."""
        ...

    def text_of(self, leaf: str) -> Buffer:
        """The whole text of a string of the tree."""
        ...


class Whole:
    """The texts of a tree that nothing was lifted out of."""

    token = "\0never\0"  # noqa: S105

    def text_of(self, leaf: str) -> Buffer:
        return leaf.encode("utf-8", "surrogatepass")


def at(tree: Json, *steps: str | int) -> Json:
    """The value at the end of `steps`, or None."""
    for step in steps:
        if isinstance(tree, dict) and isinstance(step, str):
            tree = tree.get(step)
        elif isinstance(tree, list) and isinstance(step, int) and 0 <= step < len(tree):
            tree = tree[step]
        else:
            return None
    return tree


def items(tree: Json, key: str) -> list[Json]:
    """The list under a key of the body, whatever stands in it."""
    found = at(tree, key)
    return found if isinstance(found, list) else []


def entries(value: Json) -> list[tuple[int, dict[str, Json]]]:
    """The objects of a list with their indexes; nulls and other things in it are passed over."""
    return [(i, item) for i, item in enumerate(value) if isinstance(item, dict)] if isinstance(value, list) else []


def value_in(value: Json, key: str) -> Json:
    """What `at` gives for a single key, in a third of the time: it is asked of every message."""
    return value.get(key) if isinstance(value, dict) else None


def text_in(value: Json, key: str) -> str:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def word_in(value: Json, key: str, texts: Texts) -> str:
    """A short text, whole: a part of it that was lifted out must not come back behind the backs of those who check it.

    What is too long for a name is none.
    """
    leaf = text_in(value, key)
    if leaf.isascii() and texts.token not in leaf:  # as it nearly always is
        return leaf if len(leaf) <= _LONGEST_WORD else ""
    text = texts.text_of(leaf)
    return bytes(text).decode("utf-8", "replace") if len(text) <= _LONGEST_WORD else ""


def path_in(arguments: Json, texts: Texts) -> str | None:
    """The path of the file that a tool call's arguments name, if they name one."""
    if not isinstance(arguments, dict):
        return None
    for key in _PATHS:
        if key in arguments and (path := word_in(arguments, key, texts)):
            return path
    return None


def parsed(leaf: str, texts: Texts) -> Json:
    """Arguments are JSON inside a string of JSON; long ones hold a file, not its name."""
    text = texts.text_of(leaf) if texts.token in leaf else leaf
    if not text or len(text) > _LONGEST_ARGUMENTS:
        return None
    found: Json = None
    try:
        found = orjson.loads(text)
    except ValueError:  # what it finds too odd, the standard library may read
        with suppress(ValueError, RecursionError):
            found = json.loads(text if isinstance(text, str) else bytes(text))
    return found


_run = re.compile(r"[A-Za-z0-9+/=_-]{256,}+")  # no word is that long
_WORDS = ("", "text", "input_text", "output_text")  # the types of blocks that hold words, over all wires


def words(message: Json, texts: Texts) -> list[str]:
    """The texts of a message, each without the payloads in it."""
    content = at(message, "content") if at(message, "parts") is None else at(message, "parts")
    if isinstance(content, str):
        return [_short(content, texts)]
    blocks = (block for _, block in entries(content) if text_in(block, "type") in _WORDS and not block.get("thought"))
    return [_short(text, texts) for block in blocks if (text := text_in(block, "text"))]


def _short(text: str, texts: Texts) -> str:
    """Half a letter of a pair, which JSON can hold and no wire can send, becomes a question mark."""
    lifted = re.sub(re.escape(texts.token) + r"\d+;", "…", text) if texts.token in text else text
    said = _run.sub("…", lifted)
    return sound(said)
