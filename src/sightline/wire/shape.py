"""Reading trees whose shape nobody promised: what is not as expected is simply not there."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sightline.model.scene import Json
from sightline.wire.jsontext import Buffer

TextOf = Callable[[str], Buffer]
"""Gives the whole text of a string of the tree, with what was lifted out of it."""

_LONGEST_WORD = 4096
_LONGEST_NAME = 255
_NAMES = ("file_path", "filePath", "path", "filename", "file")


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


def entries(value: Json) -> Iterator[tuple[int, dict[str, Json]]]:
    """The objects of a list with their indexes; nulls and other things in it are passed over."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, dict):
                yield index, item


def text_in(value: Json, key: str) -> str:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def bytes_of(leaf: str) -> bytes:
    """The text of a string that nothing was lifted out of."""
    return leaf.encode("utf-8", "surrogatepass")


def word_in(value: Json, key: str, text_of: TextOf) -> str:
    """A short text, whole: a part of it that was lifted out must not come back behind the backs of those who check it.

    What is too long for a name is none.
    """
    text = text_of(text_in(value, key))
    return bytes(text).decode("utf-8", "replace") if len(text) <= _LONGEST_WORD else ""


def filename_in(arguments: Json, text_of: TextOf) -> str | None:
    """The last part of the file name that a tool call's arguments hold, if they hold one."""
    for key in _NAMES:
        if name := word_in(arguments, key, text_of):
            last = name.replace("\\", "/").rstrip("/").rpartition("/")[2]
            return last if 0 < len(last) <= _LONGEST_NAME else None
    return None
