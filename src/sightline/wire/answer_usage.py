"""The tokens of an answer as its provider counted them, on each wire. Pure.

`read_usage` reads the counts of a parsed answer. `AnswerEnds` finds them in an answer that is relayed: they are near
its end, and in a stream of Anthropic's Messages also in its first event. So it keeps the first and the last bytes as
they pass, and parses nothing but the counts. A text of the model can't be mistaken for them: its quotes are escaped.
"""

from __future__ import annotations

import json
import re

from sightline.model.profile import WireName
from sightline.model.scene import Json
from sightline.model.seer import Usage

_HEAD_BYTES = 4096
_TAIL_BYTES = 16 * 1024
_MAX_COUNTS = 4096  # characters of the counts
_find_counts = re.compile(rb'"usage(?:Metadata)?"\s*:\s*(?=\{)').finditer
_parse_beginning = json.JSONDecoder().raw_decode


def read_usage(wire: WireName, counts: Json) -> Usage:
    """Return the counts under `usage` or `usageMetadata` of an answer. Cached tokens count as input."""
    match wire:
        case "anthropic":  # unlike other APIs, this one doesn't count cached tokens as input
            cached, written = (read_count(counts, f"cache_{kind}_input_tokens") for kind in ("read", "creation"))
            total_input = sum_counts(read_count(counts, "input_tokens"), cached, written)
            return Usage(total_input, read_count(counts, "output_tokens"), cached, written)
        case "gemini":  # tokens of reasoning are billed as output
            output = sum_counts(read_count(counts, "candidatesTokenCount"), read_count(counts, "thoughtsTokenCount"))
            cached = read_count(counts, "cachedContentTokenCount")
            return Usage(read_count(counts, "promptTokenCount"), output, cached)
        case "openai_chat":
            return _read_openai_usage(counts, "prompt_tokens", "completion_tokens")
        case "openai_responses":
            return _read_openai_usage(counts, "input_tokens", "output_tokens")


def _read_openai_usage(counts: Json, input_name: str, output_name: str) -> Usage:
    """Return the counts of both APIs of OpenAI; DeepSeek and Moonshot have names of their own for cached tokens."""
    if not isinstance(counts, dict):
        return Usage()
    cached = written = None
    if details := counts.get(f"{input_name}_details"):
        cached, written = read_count(details, "cached_tokens"), read_count(details, "cache_write_tokens")
    if cached is None and "prompt_cache_hit_tokens" in counts:
        cached = read_count(counts, "prompt_cache_hit_tokens")
    if cached is None and "cached_tokens" in counts:
        cached = read_count(counts, "cached_tokens")
    return Usage(read_count(counts, input_name), read_count(counts, output_name), cached, written)


def read_count(tree: Json, name: str) -> int | None:
    """Return the number of tokens under a name, if there is one."""
    if not isinstance(tree, dict) or (found := tree.get(name)) is None:
        return None
    return found if type(found) is int and found >= 0 else None


def sum_counts(*counts: int | None) -> int | None:
    known = [each for each in counts if each is not None]
    return sum(known) if known else None


class AnswerEnds:
    """The first and the last bytes of an answer."""

    __slots__ = ("_head", "_size", "_tail")

    def __init__(self) -> None:
        self._head = b""
        self._tail: list[bytes] = []
        self._size = 0  # of the tail

    def add(self, piece: bytes) -> None:
        """Add the next bytes of the answer."""
        self._tail.append(piece)
        self._size += len(piece)
        if self._size > 2 * _TAIL_BYTES:
            self._shorten()

    def _shorten(self) -> None:
        data = b"".join(self._tail)
        self._head = self._head or data[:_HEAD_BYTES]
        self._tail, self._size = [data[-_TAIL_BYTES:]], _TAIL_BYTES

    def find_usage(self, wire: WireName) -> Usage:
        """Return what the answer says about its usage; all None: nothing."""
        tail = b"".join(self._tail)
        counts: dict[str, Json] = {}
        if wire == "anthropic" and b"message_start" in (head := self._head or tail[:_HEAD_BYTES]):
            counts = _parse_counts(head, next(_find_counts(head), None))
        last = None
        for last in _find_counts(tail):  # noqa: B007, the last one counts
            pass
        later = _parse_counts(tail, last)
        if counts:
            later = counts | {name: value for name, value in later.items() if value is not None}
        return read_usage(wire, later)


def _parse_counts(data: bytes, found: re.Match[bytes] | None) -> dict[str, Json]:
    if found is None:
        return {}
    try:
        value, _ = _parse_beginning(data[found.end() : found.end() + _MAX_COUNTS].decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
