"""Reading trees whose shape nobody promised: what is not as expected is simply not there."""

from __future__ import annotations

from collections.abc import Iterator

from sightline.model.scene import Json

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


def filename_in(arguments: Json) -> str | None:
    """The last part of the file name that a tool call's arguments hold, if they hold one."""
    for key in _NAMES:
        if name := text_in(arguments, key):
            return name.replace("\\", "/").rstrip("/").rpartition("/")[2] or None
    return None
