"""What the body of an error says: its sentences, unwrapped from JSON, streams and other errors' quotes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_LONGEST = 16_384  # an error that says more than this quotes the request
_DEEPEST = 16
_ECHOES = frozenset({"input", "request", "body", "messages", "prompt", "tools"})  # the caller's own words
_ESCAPED_UNICODE = re.compile(r"(?<!\\)\\+u([0-9a-fA-F]{4})")
_ESCAPE = re.compile(r"(?<!\\)\\+([\"'`/])")
_BREAK = re.compile(r"(?:(?<!\\)\\+[nrt]|\s)+")
_EVENT = re.compile(r"^(?:event|data|id|retry):[ ]?", re.MULTILINE)


def sentences(text: str) -> tuple[str, ...]:
    """Every string of an error body, in order; a validator's place stands in front of its message."""
    text = text[:_LONGEST]
    lines = _EVENT.sub("", text).splitlines() if _EVENT.match(text) else [text]
    return tuple(said for line in lines for leaf in _unwrapped(line, 0) if (said := _plain(leaf)))


def _unwrapped(text: str, depth: int) -> Iterator[str]:
    """A text, or when JSON stands in it, what is before, in and behind the JSON."""
    start = text.find("{")
    if start < 0 or depth > _DEEPEST:
        yield text
        return
    try:
        value, end = json.JSONDecoder(strict=False).raw_decode(text, start)
    except (ValueError, RecursionError):
        yield text
        return
    yield text[:start]
    yield from _strings(value, depth + 1)
    yield text[end:]


def _strings(value: Any, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        return
    match value:
        case str():
            yield from _unwrapped(value, depth)
        case list():
            for each in value:
                yield from _strings(each, depth + 1)
        case {"loc": [*place], "msg": str(message)}:
            yield f"{'.'.join(map(str, place))}: {message}"
        case dict():
            for key, each in value.items():
                if key not in _ECHOES:
                    yield from _strings(each, depth + 1)


def _plain(text: str) -> str:
    text = _ESCAPED_UNICODE.sub(lambda match: chr(int(match[1], 16)), text)
    return _BREAK.sub(" ", _ESCAPE.sub(r"\1", text)).strip(" []")
