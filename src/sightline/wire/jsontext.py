"""A JSON body as text: lift its base64 out, decide on the skeleton that is left, splice edits back in.

A body with images is nearly all base64. Its long runs are found by looking at one place every few kilobytes
and jumping to the closing quote; only the skeleton around them is ever parsed. Splicing rewrites exactly the
values that an edit names: every other byte of the result is a byte of the original, in its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import orjson

from sightline.model.edit import Edit, Insert, Rebuild, Remove, Replace
from sightline.model.letters import AS_LETTERS, BASE64
from sightline.model.scene import Json, Path
from sightline.model.value import value
from sightline.wire.jsontree import graft

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
_FEW_DIGITS, _MANY_DIGITS = b"0" * 3, b"0" * 19
_blank, _colon, _comma = (re.compile(rf"[ \t\n\r]*{mark}[ \t\n\r]*").match for mark in ("", ":", ",?"))


class Again(str):
    """The step to a value whose key comes again later in its object, and has come so many times before.

    It is a key, so that it can stand in a tree, but it equals no text.
    """

    __slots__ = ("before",)
    before: int

    def __new__(cls, key: str, before: int) -> Self:
        made = super().__new__(cls, key)
        made.before = before
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Again) and other.before == self.before and str.__eq__(self, other)

    def __hash__(self) -> int:
        return hash((str.__hash__(self), self.before))


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
        made = self._appended(edits) or self._rewritten(edits)
        return self._expanded(made or patched(self.skeleton.decode("utf-8"), edits).encode())

    def _appended(self, edits: Sequence[Edit]) -> bytes | None:
        """The skeleton with more behind the last of a list that the body holds, as a tool more is; else None.

        That list is found as it is written, and no other can be meant: one of both sides is as long as the tree says.
        Most of a body is on the other side, and is not looked at.
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
        if not self.spans:
            return [text]
        first, *others = text.split(self.token.encode())
        parts: list[Buffer] = [first] if first else []
        for other in others:
            number, _, rest = other.partition(b";")
            parts += [self.spans[int(number)], rest] if rest else [self.spans[int(number)]]
        return parts


def _behind_list(tree: Json, skeleton: bytes | bytearray, place: Path, values: Sequence[Json]) -> bytes | None:
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
    more = b",".join(map(orjson.dumps, values))
    return b"".join((skeleton[: end - 1], b",", more, skeleton[end - 1 :])) if sure else None


def patched(text: str, edits: Sequence[Edit]) -> str:
    """A JSON text after `edits`: every other character of it stays."""
    slots = _locate(text, [place for edit in edits for place in (edit.place, *_kept(edit))])
    pieces: list[str] = []
    at = 0
    for start, end, new in sorted(_strokes(text, edits, slots), key=lambda stroke: stroke[0]):
        if start >= at:  # else it stands in what another edit has replaced already
            pieces += [text[at:start], new]
            at = end
    return "".join([*pieces, text[at:]])


def _strokes(text: str, edits: Sequence[Edit], slots: Mapping[Path, _Slot]) -> Iterator[tuple[int, int, str]]:
    """What is written, each time from where to where.

    Insertions at one place keep the order in which they were asked for, and stand before whatever replaces the value
    there; of several that do, the first.
    """
    together: dict[Path, list[Edit]] = {}
    for edit in edits:
        together.setdefault(edit.place, []).append(edit)
    leaving: dict[Path, list[_Member]] = {}
    for place, here in together.items():
        slot = slots[place]
        inserted = [edit for edit in here if isinstance(edit, Insert)]
        others = [edit for edit in here if not isinstance(edit, Insert)]
        if any(isinstance(edit, Remove) for edit in others):
            leaving.setdefault(place[:-1], []).extend(slot.members)
            continue
        values = ",".join([_value(edit, text, slots) for edit in (*inserted, *others[:1])])
        yield (slot.start, slot.end, values) if others else (slot.start, slot.start, slot.lead + values + slot.trail)
    for members in leaving.values():
        yield from _cuts(members)


def _cuts(members: list[_Member]) -> Iterator[tuple[int, int, str]]:
    """Of the members that leave one object: each takes a comma along, the one behind it where nothing stays before."""
    first = 0
    for member in sorted(members):
        if member.number == first:
            first += 1
            yield member.start, member.following, ""
        else:
            yield member.before, member.end, ""


def _kept(edit: Edit) -> list[Path]:
    """The places of the values that an edit puts elsewhere as they are."""
    return [(*edit.place, each) for each in edit.elements if isinstance(each, int)] if isinstance(edit, Rebuild) else []


def _value(edit: Edit, text: str, slots: Mapping[Path, _Slot]) -> str:
    """What an edit writes."""
    if isinstance(edit, Replace | Insert):
        return dumps(edit.value)
    assert isinstance(edit, Rebuild), "what leaves writes nothing"
    return f"[{','.join([_element(edit.place, each, text, slots) for each in edit.elements])}]"


def _element(place: Path, each: int | dict[str, Json], text: str, slots: Mapping[Path, _Slot]) -> str:
    if not isinstance(each, int):
        return dumps(each)
    kept = slots[(*place, each)]
    return text[kept.start : kept.end]


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

    And so it does where a whole number may not fit into 64 bits: orjson would make a float of it.
    """
    read: Json = None
    try:
        read = orjson.loads(skeleton)
        if not _holds_huge(skeleton):
            return _object(read)
    except orjson.JSONDecodeError:
        pass
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


def dumps(value: Json) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # a lone surrogate, which only an escape can write, or a number of more than 64 bits
        return json.dumps(value, separators=(",", ":"))


class _Member(NamedTuple):
    """A member of an object, with its key."""

    number: int
    before: int  # where the one before it ends
    start: int
    end: int
    following: int  # where the next one starts


@value
class _Slot:
    start: int
    end: int
    lead: str = ""  # what an insertion here needs before it …
    trail: str = ","  # … and after it
    members: tuple[_Member, ...] = ()  # of an object: as often as its key comes


_Trie = dict["str | int", "_Trie"]
# Numbers stay text: they are skipped, and a huge one must not be refused.
_scan = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str).raw_decode
_key = re.compile(r'"((?:[^"\\]|\\.)*+)"[ \t\n\r]*:[ \t\n\r]*').match
_marks = re.compile(r'[\[{\]}]|"(?:[^"\\]|\\.)*+"').finditer


def _locate(text: str, places: Sequence[Path]) -> dict[Path, _Slot]:
    """Where the values at `places` stand. Containers on the way are walked, all else is skipped by C code."""
    trie: _Trie = {}
    for place in places:
        node = trie
        for step in place:
            node = node.setdefault(step, {})
    start = _past(_blank, text, 0)
    slots: dict[Path, _Slot] = {}
    slots[()] = _Slot(start, _walk(text, start, trie, (), slots))
    return slots


def _past(mark: Callable[[str, int], re.Match[str] | None], text: str, at: int) -> int:
    found = mark(text, at)
    return found.end() if found else at


def _skipped(text: str, at: int) -> int:
    """The index just after the value that begins at `at`."""
    try:
        return _scan(text, at)[1]
    except RecursionError:  # deeper than this parser goes; it was read, so its brackets match
        depth = 0
        for mark in _marks(text, at):
            depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(mark[0], 0)
            if not depth:
                return mark.end()
        raise


def _walk(text: str, at: int, node: _Trie, path: Path, slots: dict[Path, _Slot]) -> int:
    """Record the slots below the value that begins at `at`; the index just after it."""
    if node and text[at] == "{":
        return _walk_object(text, at, node, path, slots)
    if node and text[at] == "[":
        return _walk_list(text, at, node, path, slots)
    return _skipped(text, at)


def _walk_object(text: str, at: int, node: _Trie, path: Path, slots: dict[Path, _Slot]) -> int:
    last = at + 1
    at = first = _past(_blank, text, last)
    absent = dict.fromkeys(node)
    counts = Again in map(type, node)
    passed: dict[str, int] = {}
    members: dict[str, tuple[_Member, ...]] = {}
    number = 0
    while text[at] != "}":
        here, before = at, last
        named = _key(text, at)
        assert named, "it was read before"
        key, at = named[1], named.end()
        if "\\" in key:
            key = _scan(text, here)[0]
        # A repeated key: the last one counts for every parser here, and it overwrites the slots of the first; unless
        # an edit names just that one.
        if counts:
            again = passed[key] = passed.get(key, -1) + 1
            key = earlier if (earlier := Again(key, again)) in node else key
        if key in node:
            start, last = at, _walk(text, at, node[key], (*path, key), slots)
            at = _past(_comma, text, last)
            absent.pop(key, None)
            members[key] = (*members.get(key, ()), _Member(number, before, here, last, at))
            slots[(*path, key)] = _Slot(start, last, members=members[key])
        else:
            last = _skipped(text, at)
            at = _past(_comma, text, last)
        number += 1
    comma = "," if at > first else ""
    for new in absent:  # only an insertion can name them
        slots[(*path, new)] = _Slot(last, last, f"{comma}{dumps(new)}:", "")
        comma = ","
    return at + 1


def _walk_list(text: str, at: int, node: _Trie, path: Path, slots: dict[Path, _Slot]) -> int:
    last = at + 1
    at = _past(_blank, text, last)
    index = 0
    while text[at] != "]":
        if index in node:
            last = _walk(text, at, node[index], (*path, index), slots)
            slots[(*path, index)] = _Slot(at, last)
        else:
            last = _skipped(text, at)
        at = _past(_comma, text, last)
        index += 1
    if index in node:  # the place after the last element: only an insertion can name it
        slots[(*path, index)] = _Slot(last, last, "," if index else "", "")
    return at + 1
