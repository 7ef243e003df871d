"""A JSON body as text: lift its base64 out, decide on the skeleton that is left, splice edits back in.

A body with images is nearly all base64. Its long runs are found by looking at one place every few kilobytes
and jumping to the closing quote; only the skeleton around them is ever parsed. Splicing rewrites exactly the
values that an edit names: every other byte of the result is a byte of the original, in its place.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import orjson

from sightline.model.edit import Edit, Replace
from sightline.model.scene import Json, Path

Buffer = bytes | bytearray | memoryview

STRIDE = 4096  # a run of twice this length is always found
_WINDOW = 64
_BACKSLASH = 0x5C
_ESCAPED = 5  # letters at the most after a backslash, as in \u00e9
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_-"
_run_here = re.compile(rb"[%b]{%d}" % (re.escape(_LETTERS), _WINDOW)).match
_huge = re.compile(rb"[:,\[\s]-?[0-9]{19}").search
_AS_DIGITS = bytes(0x30 if 0x30 <= letter <= 0x39 else 0x20 for letter in range(256))
_MANY_DIGITS = b"0" * 19
_blank = re.compile(r"[ \t\n\r]*").match


@dataclass(frozen=True, slots=True)
class Document:
    body: bytes | bytearray
    tree: Json  # the parsed skeleton: in it, a placeholder stands for each lifted run
    skeleton: bytes | bytearray = field(repr=False)
    spans: tuple[memoryview, ...] = field(repr=False)
    token: str

    def text_of(self, leaf: str) -> Buffer:
        """The text of a string of the tree, with what was lifted out of it."""
        if self.token not in leaf:
            return leaf.encode("utf-8", "surrogatepass")
        parts = self._expanded(leaf)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def splice(self, edits: Sequence[Edit]) -> list[Buffer]:
        """The body after `edits`, as a list of buffers; without an edit, the body itself."""
        if not edits:
            return [self.body]
        return self._expanded(patched(self.skeleton.decode("utf-8"), edits))

    def _expanded(self, text: str) -> list[Buffer]:
        parts: list[Buffer] = []
        for i, part in enumerate(re.split(re.escape(self.token) + r"(\d+);", text)):
            if i % 2:
                parts.append(self.spans[int(part)])
            elif part:
                parts.append(part.encode("utf-8", "surrogatepass"))
        return parts


def patched(text: str, edits: Sequence[Edit]) -> str:
    """A JSON text after `edits`: every other character of it stays."""
    slots = _locate(text, [edit.place for edit in edits])
    pieces: list[str] = []
    at = 0
    # Insertions at one place keep the order in which they were asked for (sorted() is stable), and stand
    # before whatever replaces the value there.
    ordered = sorted(edits, key=lambda edit: (slots[edit.place].start, isinstance(edit, Replace)))
    for place, group in groupby(ordered, key=lambda edit: edit.place):
        slot, together = slots[place], list(group)
        values = ",".join(dumps(edit.value) for edit in together)
        replaced = isinstance(together[-1], Replace)
        pieces += [text[at : slot.start], values if replaced else slot.lead + values + slot.trail]
        at = slot.end if replaced else slot.start
    return "".join([*pieces, text[at:]])


def lift(body: bytes | bytearray, token: str) -> Document | None:
    """Read a body; None when it is not JSON that can be read and written back.

    `token` begins every placeholder; it must be one that neither the body nor any words that an edit brings
    can contain, so its maker draws it at random.
    """
    view = memoryview(body)
    pieces: list[Buffer] = []
    spans: list[memoryview] = []
    at = 0
    for start, end in _runs(body):
        pieces += [view[at:start], f"{token}{len(spans)};".encode()]
        spans.append(view[start:end])
        at = end
    skeleton = b"".join([*pieces, view[at:]]) if spans else body
    tree = _parse(skeleton)
    if tree is None or skeleton.count(token.encode()) != len(spans):
        return None
    return Document(body, tree, skeleton, tuple(spans), token)


def _runs(body: bytes | bytearray) -> Iterator[tuple[int, int]]:
    """The long base64 runs, each ending at a quote (or at the backslashes that escape it)."""
    at = STRIDE
    floor = 0  # no run begins before the end of the last one
    while at < len(body):
        if not _run_here(body, at):
            at += STRIDE
            continue
        quote = body.find(b'"', at)
        if quote < 0:
            return
        end = quote
        while body[end - 1] == _BACKSLASH:
            end -= 1
        start = max(floor, at - STRIDE)
        start += len(body[start:at].rstrip(_LETTERS))
        if body[start - 1] == _BACKSLASH:
            start += _ESCAPED
        # Inside a run a backslash means that its text is not what stands there: such a string is left to the parser.
        if _run_here(body, end - _WINDOW) and body.find(b"\\", start, end) < 0:
            yield start, end
            floor = end
        at = max(quote + 1, at + STRIDE)


def _parse(skeleton: bytes | bytearray) -> Json:
    """The value, or None. What orjson finds too odd (lone surrogates, NaN) the standard library may read.

    And so it does where a whole number may not fit into 64 bits: orjson would make a float of it.
    """
    read: Json = None
    try:
        read = orjson.loads(skeleton)
        # The digits alone are looked for first: that is ten times as fast, and nearly always enough.
        if _MANY_DIGITS not in skeleton.translate(_AS_DIGITS) or not _huge(skeleton):
            return _object(read)
    except orjson.JSONDecodeError:
        pass
    try:
        return _object(json.loads(skeleton.decode("utf-8")))
    except (ValueError, RecursionError):
        return _object(read)


def _object(value: Json) -> Json:
    return value if isinstance(value, dict) else None


def dumps(value: Json) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # a lone surrogate, which only an escape can write, or a number of more than 64 bits
        return json.dumps(value, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class _Slot:
    start: int
    end: int
    lead: str = ""  # what an insertion here needs before it …
    trail: str = ","  # … and after it


_Trie = dict["str | int", "_Trie"]
# Numbers stay text: they are skipped, and a huge one must not be refused.
_scan = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str).raw_decode


def _locate(text: str, places: Sequence[Path]) -> dict[Path, _Slot]:
    """Where the values at `places` stand. Containers on the way are walked, all else is skipped by C code."""
    trie: _Trie = {}
    for place in places:
        node = trie
        for step in place:
            node = node.setdefault(step, {})
    slots: dict[Path, _Slot] = {}
    _walk(text, _skip(text, 0), trie, (), slots)
    return slots


def _skip(text: str, at: int) -> int:
    blank = _blank(text, at)
    return blank.end() if blank else at


def _walk(text: str, at: int, node: _Trie, path: Path, slots: dict[Path, _Slot]) -> int:
    """Record the slots below the value that begins at `at`; the index just after it."""
    if not node:
        end: int = _scan(text, at)[1]
    elif text[at] == "{":
        end = _walk_object(text, at, node, path, slots)
    elif text[at] == "[":
        end = _walk_list(text, at, node, path, slots)
    else:
        end = _scan(text, at)[1]
    slots[path] = _Slot(at, end)
    return end


def again(key: str, before: int) -> str:
    """The step to a value whose key comes again later in its object, and has come so many times before."""
    return f"{key}\0again\0{before}"


def _walk_object(text: str, at: int, node: _Trie, path: Path, slots: dict[Path, _Slot]) -> int:
    at = _skip(text, at + 1)
    passed = Counter[str]()
    while text[at] != "}":
        key, at = _scan(text, at)
        at = _skip(text, _skip(text, at) + 1)  # past the colon
        # A repeated key: the last one counts for every parser here, and it overwrites the slots of the first; unless
        # an edit names just that one.
        passed[key] += 1
        key = earlier if (earlier := again(key, passed[key] - 1)) in node else key
        at = _walk(text, at, node[key], (*path, key), slots) if key in node else _scan(text, at)[1]
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return at + 1


def _walk_list(text: str, at: int, node: _Trie, path: Path, slots: dict[Path, _Slot]) -> int:
    at = last = at + 1
    at = _skip(text, at)
    index = 0
    while text[at] != "]":
        last = _walk(text, at, node[index], (*path, index), slots) if index in node else _scan(text, at)[1]
        at = _skip(text, last)
        if text[at] == ",":
            at = _skip(text, at + 1)
        index += 1
    if index in node:  # the place after the last element: only an insertion can name it
        slots[(*path, index)] = _Slot(last, last, "," if index else "", "")
    return at + 1
