"""A JSON body as text: lift its base64 out, decide on the skeleton that is left, splice edits back in.

A body with images is nearly all base64. Its long runs are found by looking at one place every few kilobytes
and jumping to the closing quote; only the skeleton around them is ever parsed. Splicing rewrites exactly the
values that an edit names: every other byte of the result is a byte of the original, in its place.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import orjson

from sightline.model.edit import Edit, Insert, Rebuild, Remove, Replace
from sightline.model.scene import Json, Path
from sightline.wire.jsontree import graft

Buffer = bytes | bytearray | memoryview

STRIDE = 4096  # a run of twice this length is always found
_WINDOW = 64
_CACHED = 256 * 1024
_BACKSLASH = 0x5C
_ESCAPED = 5  # letters at the most after a backslash, as in \u00e9
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_-"
_run_here = re.compile(rb"[%b]{%d}" % (re.escape(_LETTERS), _WINDOW)).match
_backslashes = re.compile(rb"\\*").match
_AS_LETTERS = bytes(0x41 if letter in _LETTERS else 0x20 for letter in range(256))
_huge = re.compile(rb"[:,\[\s]-?[0-9]{19}").search
_AS_DIGITS = bytes(0x30 if 0x30 <= letter <= 0x39 else 0x20 for letter in range(256))
_SPARSE = 6  # of 19 digits in a row, three in a row are left when only every sixth letter is looked at
_FEW_DIGITS, _MANY_DIGITS = b"0" * 3, b"0" * 19
_blank, _colon, _comma = (re.compile(rf"[ \t\n\r]*{mark}[ \t\n\r]*").match for mark in ("", ":", ",?"))
_AGAIN = "\0again\0"


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
        if (alone := leaf.removeprefix(self.token)[:-1]).isdecimal():  # nothing stands around what was lifted out
            return self.spans[int(alone)]
        parts = self._expanded(leaf.encode("utf-8", "surrogatepass"))
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def splice(self, edits: Sequence[Edit]) -> list[Buffer]:
        """The body after `edits`, as a list of buffers; without an edit, the body itself."""
        if not edits:
            return [self.body]
        return self._expanded(self._rewritten(edits) or patched(self.skeleton.decode("utf-8"), edits).encode())

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


def patched(text: str, edits: Sequence[Edit]) -> str:
    """A JSON text after `edits`: every other character of it stays."""
    slots = _locate(text, [place for edit in edits for place in (edit.place, *_kept(edit))])
    pieces: list[str] = []
    at = 0
    # Insertions at one place keep the order in which they were asked for (sorted() is stable), and stand
    # before whatever replaces the value there.
    ordered = sorted(edits, key=lambda edit: (slots[edit.place].start, not isinstance(edit, Insert)))
    for place, group in groupby(ordered, key=lambda edit: edit.place):
        slot, together = slots[place], list(group)
        if isinstance(together[-1], Remove):
            pieces.append(text[at : slot.member[0]])
            at = slot.member[1]
            continue
        values = ",".join(_value(edit, text, slots) for edit in together)
        replaced = not isinstance(together[-1], Insert)
        pieces += [text[at : slot.start], values if replaced else slot.lead + values + slot.trail]
        at = slot.end if replaced else slot.start
    return "".join([*pieces, text[at:]])


def _kept(edit: Edit) -> list[Path]:
    """The places of the values that an edit puts elsewhere as they are."""
    return [(*edit.place, each) for each in edit.elements if isinstance(each, int)] if isinstance(edit, Rebuild) else []


def _value(edit: Edit, text: str, slots: Mapping[Path, _Slot]) -> str:
    """What an edit writes."""
    if isinstance(edit, Replace | Insert):
        return dumps(edit.value)
    assert isinstance(edit, Rebuild), "what leaves writes nothing"
    kept = {each: slots[(*edit.place, each)] for each in edit.elements if isinstance(each, int)}
    parts = (text[kept[e].start : kept[e].end] if isinstance(e, int) else dumps(e) for e in edit.elements)
    return f"[{','.join(parts)}]"


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
        start += body[start:at].translate(_AS_LETTERS).rfind(b" ") + 1
        if body[start - 1] == _BACKSLASH:
            start += _ESCAPED
        # Inside a run a backslash means that its text is not what stands there: such a string is left to the parser.
        # Those that escape the quote stand behind it.
        if _run_here(body, end - _WINDOW) and (escape := _backslashes(body, end)) and escape.end() == quote:
            yield start, end
            floor = end
        at = max(quote + 1, at + STRIDE)


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


@dataclass(frozen=True, slots=True)
class _Slot:
    start: int
    end: int
    lead: str = ""  # what an insertion here needs before it …
    trail: str = ","  # … and after it
    member: tuple[int, int] = (0, 0)  # of an object: with its key, and a comma that nobody needs without it


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
    _walk(text, _past(_blank, text, 0), trie, (), slots)
    return slots


def _past(mark: Callable[[str, int], re.Match[str] | None], text: str, at: int) -> int:
    found = mark(text, at)
    return found.end() if found else at


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
    return f"{key}{_AGAIN}{before}"


def _walk_object(text: str, at: int, node: _Trie, path: Path, slots: dict[Path, _Slot]) -> int:
    last = at + 1
    at = first = _past(_blank, text, last)
    passed, absent = Counter[str](), dict.fromkeys(node)
    counts = any(isinstance(key, str) and _AGAIN in key for key in node)
    while text[at] != "}":
        here, before = at, last
        key, at = _scan(text, at)
        at = _past(_colon, text, at)
        # A repeated key: the last one counts for every parser here, and it overwrites the slots of the first; unless
        # an edit names just that one.
        if counts:
            passed[key] += 1
            key = earlier if (earlier := again(key, passed[key] - 1)) in node else key
        start, named = at, key in node
        last = _walk(text, at, node[key], (*path, key), slots) if named else _scan(text, at)[1]
        at = _past(_comma, text, last)
        if named:
            absent.pop(key, None)
            slots[(*path, key)] = _Slot(start, last, member=(first, at) if here == first else (before, last))
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
        last = _walk(text, at, node[index], (*path, index), slots) if index in node else _scan(text, at)[1]
        at = _past(_comma, text, last)
        index += 1
    if index in node:  # the place after the last element: only an insertion can name it
        slots[(*path, index)] = _Slot(last, last, "," if index else "", "")
    return at + 1
