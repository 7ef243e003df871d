"""What a caller refers to: a path, an image of the record or a web address, and how a result names it again."""

from __future__ import annotations

from sightline.model.fence import json_line
from sightline.model.refusal import Refusal
from sightline.sources import reference
from sightline.sources.reference import Reference

_LONGEST = 4000  # characters of JSON, so that every result has room for the reference that it repeats


def reference_of(path: object) -> Reference | Refusal:
    if not isinstance(path, str):
        return Refusal("invalid_input", "the path is not text", "give the path of a file")
    if len(path) > _LONGEST or len(json_line(named(path))) > _LONGEST:
        return Refusal("invalid_input", "the path is too long", "give a shorter one, from the working folder")
    return reference.parse(path)


def named(path: object) -> str:
    """As it can be written in JSON, also where it holds bytes that are no text."""
    return str(path).encode("utf-8", "backslashreplace").decode()
