"""A JSON body as text: lift its base64 out, decide on the skeleton that is left, splice edits back in.

A body with images is nearly all base64. Its long runs are found by looking at one place every few kilobytes
and jumping to the closing quote; only the skeleton around them is ever parsed. Splicing rewrites exactly the
values that an edit names: every other byte of the result is a byte of the original, in its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import orjson

from sightline.model.base64_text import AS_LETTERS, BASE64
from sightline.model.edit import Edit, Insert
from sightline.model.refusal import Refusal
from sightline.model.scene import Json, Path
from sightline.wire.jsonedits import graft, patched
from sightline.wire.jsonsize import count_values, measure

Buffer = bytes | bytearray | memoryview

STRIDE = 4096  # a run of twice this length is always found
_WINDOW = 64
_CACHED = 256 * 1024
_BACKSLASH = 0x5C
_ESCAPED = 5  # letters at the most after a backslash, as in \u00e9
_run_here = re.compile(rb"[%b]{%d}" % (re.escape(BASE64), _WINDOW)).match
_backslashes = re.compile(rb"\\*").match
_huge = re.compile(rb"[:,\[\s]-?[0-9]{19}").search
_AS_DIGITS = bytes(0x30 if 0x30 <= letter <= 0x39 else 0x20 for letter in range(256))
_SPARSE = 6  # of 19 digits in a row, three in a row are left when only every sixth letter is looked at
_SLOW_VALUES = 150_000  # of a text that the standard library is given to parse
_FEW_DIGITS, _MANY_DIGITS = b"0" * 3, b"0" * 19


@dataclass(frozen=True, slots=True)
class Document:
    body: bytes | bytearray
    tree: Json  # the parsed skeleton: in it, a placeholder stands for each lifted run
    skeleton: bytes | bytearray = field(repr=False)
    spans: tuple[memoryview, ...] = field(repr=False)
    token: str

    def text_of(self, leaf: str) -> Buffer:
        """The text of a string of the tree, with what was lifted out of it."""
        if leaf.startswith(self.token) and (alone := leaf[len(self.token) : -1]).isdecimal():
            return self.spans[int(alone)]  # nothing stands around what was lifted out
        if self.token not in leaf:
            return leaf.encode("utf-8", "surrogatepass")
        parts = self._expanded(leaf.encode("utf-8", "surrogatepass"))
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def splice(self, edits: Sequence[Edit]) -> list[Buffer]:
        """The body after `edits`, as a list of buffers; without an edit, the body itself."""
        if not edits:
            return [self.body]
        if not self.spans and (found := self._behind(edits)):
            at, more = found
            whole = memoryview(self.body)
            return [whole[:at], more, whole[at:]]
        return self._expanded(self._rewritten(edits) or patched(self.skeleton.decode("utf-8"), edits).encode())

    def _behind(self, edits: Sequence[Edit]) -> tuple[int, bytes] | None:
        """Where something comes behind the last of a list that the body holds, as a tool more does, and what it is.

        That list is found as it is written, and no other can be meant: one of both sides is as the tree says. Most of
        a body is on the other side, and is neither looked at nor copied.
        """
        place = edits[0].place
        if len(place) != 2 or any(type(edit) is not Insert or edit.place != place for edit in edits):
            return None
        try:
            return _behind_list(self.tree, self.skeleton, place, [edit.value for edit in edits if type(edit) is Insert])
        except TypeError:  # what orjson does not write
            return None

    def _rewritten(self, edits: Sequence[Edit]) -> bytes | None:
        """The skeleton after `edits`, if it is written just as orjson writes, as most clients do.

        Then what no edit touches is written as it was, letter by letter, and no place has to be searched for.
        """
        try:
            return orjson.dumps(graft(self.tree, edits)) if orjson.dumps(self.tree) == self.skeleton else None
        except TypeError:  # nested too deep for it, or a lone surrogate in an edit
            return None

    def _expanded(self, text: bytes) -> list[Buffer]:
        first, *others = text.split(self.token.encode())
        parts: list[Buffer] = [first] if first else []
        for other in others:
            number, _, rest = other.partition(b";")
            parts += [self.spans[int(number)], rest] if rest else [self.spans[int(number)]]
        return parts


def _behind_list(
    tree: Json, skeleton: bytes | bytearray, place: Path, values: Sequence[Json]
) -> tuple[int, bytes] | None:
    key, index = place
    if not isinstance(tree, dict) or not isinstance(key, str):
        return None
    held = tree.get(key)
    if not isinstance(held, list) or not held or index != len(held):
        return None
    written = orjson.dumps(key) + b":" + orjson.dumps(held)
    start = skeleton.find(written)
    end = start + len(written)
    if start < 0 or skeleton.find(written, end) >= 0:
        return None
    keys = [*tree]
    at = keys.index(key)
    if start < len(skeleton) - end:
        before = orjson.dumps({each: tree[each] for each in keys[:at]})
        sure = skeleton[:start] == (before[:-1] + b"," if at else b"{")
    else:
        behind = orjson.dumps({each: tree[each] for each in keys[at + 1 :]})
        sure = skeleton[end:] == (b"," + behind[1:] if at + 1 < len(keys) else b"}")
    return (end - 1, b"".join(b"," + orjson.dumps(value) for value in values)) if sure else None


def lift(body: bytes | bytearray, token: str) -> Document | None:
    """Read a body; None when it is not JSON that can be read and written back, or is too large to be parsed.

    `token` begins every placeholder; it must be one that neither the body nor any words that an edit brings
    can contain, so its maker draws it at random.
    """
    lifted = lift_runs(body, token)
    return None if isinstance(lifted.measure(), Refusal) else lifted.parse()


@dataclass(frozen=True, slots=True)
class Lifted:
    """A body whose base64 was lifted out, and that has not been parsed."""

    body: bytes | bytearray
    skeleton: bytes | bytearray = field(repr=False)
    spans: tuple[memoryview, ...] = field(repr=False)
    token: str

    def measure(self) -> int | Refusal:
        """Return about how many values there are to be parsed, or why there are too many."""
        return measure(self.skeleton)

    def parse(self) -> Document | None:
        """Return the document, or None when it is not JSON that can be read and written back."""
        tree = _parse(self.skeleton)
        if tree is None or self.skeleton.count(self.token.encode()) != len(self.spans):
            return None
        return Document(self.body, tree, self.skeleton, self.spans, self.token)


def lift_runs(body: bytes | bytearray, token: str) -> Lifted:
    """Lift the long base64 runs out of a body, without parsing it."""
    view = memoryview(body)
    pieces: list[Buffer] = []
    spans: list[memoryview] = []
    at = 0
    for start, end in _runs(body):
        pieces += [view[at:start], f"{token}{len(spans)};".encode()]
        spans.append(view[start:end])
        at = end
    skeleton = b"".join([*pieces, view[at:]]) if spans else body
    return Lifted(body, skeleton, tuple(spans), token)


def _runs(body: bytes | bytearray) -> Iterator[tuple[int, int]]:
    """The long base64 runs, each ending at a quote (or at the backslashes that escape it)."""
    at = STRIDE
    floor = 0  # no run begins before the end of the last one
    while at < len(body):
        if not _run_here(body, at):
            at += STRIDE
            continue
        end = _stop(body, at)
        quote = body.find(b'"', end)
        if quote < 0:
            return
        start = max(floor, at - STRIDE)
        start = max(start, body.rfind(b'"', start, at) + 1)
        start += body[start:at].translate(AS_LETTERS).rfind(b" ") + 1
        if body[start - 1] == _BACKSLASH:
            start += _ESCAPED
        # Inside a run a backslash means that its text is not what stands there: such a string is left to the parser.
        # Those that escape the quote stand behind it.
        if _run_here(body, end - _WINDOW) and (end == quote or _only_escapes(body, end, quote)):
            yield start, end
            floor = end
        at = max(quote + 1, at + STRIDE)


def _only_escapes(body: bytes | bytearray, at: int, quote: int) -> bool:
    found = _backslashes(body, at)
    return found is not None and found.end() == quote


def _stop(body: bytes | bytearray, at: int) -> int:
    """Where the next quote or backslash stands; the end, if there is none.

    Two searches in C, over so much at a time that the second one finds it in the processor's cache.
    """
    while at < len(body):
        quote = body.find(b'"', at, at + _CACHED)
        backslash = body.find(b"\\", at, at + _CACHED if quote < 0 else quote)
        if backslash >= 0 or quote >= 0:
            return backslash if backslash >= 0 else quote
        at += _CACHED
    return len(body)


def _parse(skeleton: bytes | bytearray) -> Json:
    """The value, or None. What orjson finds too odd (lone surrogates, NaN) the standard library may read.

    And so it does where a whole number may not fit into 64 bits: orjson would make a float of it. It takes up to ten
    times as long, in one call, so it is not given the texts with the most values.
    """
    read: Json = None
    try:
        read = orjson.loads(skeleton)
        if not _holds_huge(skeleton):
            return _object(read)
    except orjson.JSONDecodeError:
        pass
    if count_values(skeleton, _SLOW_VALUES) > _SLOW_VALUES:
        return None
    try:
        return _object(json.loads(skeleton.decode("utf-8")))
    except (ValueError, RecursionError):
        return _object(read)


def _holds_huge(skeleton: bytes | bytearray) -> bool:
    """Is there such a number? What is fast, and nearly always enough, is looked at first."""
    return (
        _FEW_DIGITS in skeleton[::_SPARSE].translate(_AS_DIGITS)
        and _MANY_DIGITS in skeleton.translate(_AS_DIGITS)
        and bool(_huge(skeleton))
    )


def _object(value: Json) -> Json:
    return value if isinstance(value, dict) else None
