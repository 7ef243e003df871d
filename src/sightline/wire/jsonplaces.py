"""Where the values of a JSON text stand: only the containers on the way to them are walked, all else is skipped."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, Self

from sightline.model.scene import Path
from sightline.model.value import value
from sightline.wire.jsontree import dumps

_blank, _comma = (re.compile(rf"[ \t\n\r]*{mark}[ \t\n\r]*").match for mark in ("", ",?"))
_Trie = dict["str | int", "_Trie"]
# Numbers stay text: they are skipped, and a huge one must not be refused.
_scan = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str).raw_decode
_key = re.compile(r'"((?:[^"\\]|\\.)*+)"[ \t\n\r]*:[ \t\n\r]*').match
_marks = re.compile(r'[\[{\]}]|"(?:[^"\\]|\\.)*+"').finditer


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


class Member(NamedTuple):
    """A member of an object, with its key."""

    number: int
    before: int  # where the one before it ends
    start: int
    end: int
    following: int  # where the next one starts


@value
class Slot:
    start: int
    end: int
    lead: str = ""  # what an insertion here needs before it …
    trail: str = ","  # … and after it
    members: tuple[Member, ...] = ()  # of an object: as often as its key comes


def locate(text: str, places: Sequence[Path]) -> dict[Path, Slot]:
    """Where the values at `places` stand. Containers on the way are walked, all else is skipped by C code."""
    trie: _Trie = {}
    for place in places:
        node = trie
        for step in place:
            node = node.setdefault(step, {})
    start = _past(_blank, text, 0)
    slots: dict[Path, Slot] = {}
    slots[()] = Slot(start, _walk(text, start, trie, (), slots))
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


def _walk(text: str, at: int, node: _Trie, path: Path, slots: dict[Path, Slot]) -> int:
    """Record the slots below the value that begins at `at`; the index just after it."""
    if node and text[at] == "{":
        return _walk_object(text, at, node, path, slots)
    if node and text[at] == "[":
        return _walk_list(text, at, node, path, slots)
    return _skipped(text, at)


def _walk_object(text: str, at: int, node: _Trie, path: Path, slots: dict[Path, Slot]) -> int:
    last = at + 1
    at = first = _past(_blank, text, last)
    absent = dict.fromkeys(node)
    counts = Again in map(type, node)
    passed: dict[str, int] = {}
    members: dict[str, tuple[Member, ...]] = {}
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
            members[key] = (*members.get(key, ()), Member(number, before, here, last, at))
            slots[(*path, key)] = Slot(start, last, members=members[key])
        else:
            last = _skipped(text, at)
            at = _past(_comma, text, last)
        number += 1
    comma = "," if at > first else ""
    for new in absent:  # only an insertion can name them
        slots[(*path, new)] = Slot(last, last, f"{comma}{dumps(new)}:", "")
        comma = ","
    return at + 1


def _walk_list(text: str, at: int, node: _Trie, path: Path, slots: dict[Path, Slot]) -> int:
    last = at + 1
    at = _past(_blank, text, last)
    index = 0
    while text[at] != "]":
        if index in node:
            last = _walk(text, at, node[index], (*path, index), slots)
            slots[(*path, index)] = Slot(at, last)
        else:
            last = _skipped(text, at)
        at = _past(_comma, text, last)
        index += 1
    if index in node:  # the place after the last element: only an insertion can name it
        slots[(*path, index)] = Slot(last, last, "," if index else "", "")
    return at + 1
