"""Edits of JSON: of a tree of objects, copy on write, and of a text, every other character of which stays."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple, Self

import orjson

from sightline.model.edit import Edit, Insert, Rebuild, Remove, Replace
from sightline.model.scene import Json, Path
from sightline.model.value import value

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


_WITHIN = (Insert, Remove)


def graft(tree: Json, edits: Sequence[Edit]) -> Json:
    """The tree after `edits`. What no edit touches is the same object in both; without an edit, so is the tree."""
    return _grafted(tree, edits, 0) if edits else tree


def _grafted(value: Json, edits: Sequence[Edit], depth: int) -> Json:
    """A value that stands so deep in the tree, after the edits of it and of what it holds."""
    below: dict[str | int, list[Edit]] = {}
    here: list[Insert | Remove] = []  # what comes into the value itself, and what leaves it
    for edit in edits:
        way = edit.place
        if len(way) == depth:
            return _made(value, edit)
        if len(way) == depth + 1 and isinstance(edit, _WITHIN):
            here.append(edit)
        elif (step := way[depth]) in below:
            below[step].append(edit)
        else:
            below[step] = [edit]
    if isinstance(value, dict):
        held = value.copy()
        for key, inner in below.items():
            assert isinstance(key, str)
            held[key] = _grafted(value[key], inner, depth + 1)
        return _changed(held, here) if here else held
    assert isinstance(value, list)
    items = value.copy()
    for index, inner in below.items():
        assert isinstance(index, int)
        items[index] = _grafted(value[index], inner, depth + 1)
    return _grown(items, here) if here else items


def _changed(held: dict[str, Json], edits: Sequence[Insert | Remove]) -> dict[str, Json]:
    for edit in edits:
        key = edit.place[-1]
        assert isinstance(key, str)
        if isinstance(edit, Insert):
            held[key] = edit.value
        else:
            held.pop(key, None)
    return held


def _grown(items: list[Json], edits: Sequence[Insert | Remove]) -> list[Json]:
    """Those at one place in the order in which they were asked for."""
    added = [
        (index, edit.value) for edit in edits if isinstance(edit, Insert) and isinstance(index := edit.place[-1], int)
    ]
    grown: list[Json] = []
    at = 0
    for index, new in sorted(added, key=itemgetter(0)):
        grown += items[at:index]
        grown.append(new)
        at = index
    return grown + items[at:]


def _made(value: Json, edit: Edit) -> Json:
    if isinstance(edit, Replace | Insert):
        return edit.value
    assert isinstance(edit, Rebuild)
    assert isinstance(value, list)
    return [value[each] if isinstance(each, int) else each for each in edit.elements]


def dumps(value: Json) -> str:
    """A value as JSON text, also where orjson cannot write it."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # a lone surrogate, which only an escape can write, or a number of more than 64 bits
        return json.dumps(value, separators=(",", ":"))


def patched(text: str, edits: Sequence[Edit]) -> str:
    """A JSON text after `edits`: every other character of it stays."""
    slots = locate(text, [place for edit in edits for place in (edit.place, *_kept(edit))])
    pieces: list[str] = []
    at = 0
    for start, end, new in sorted(_strokes(text, edits, slots), key=lambda stroke: stroke[0]):
        if start >= at:  # else it stands in what another edit has replaced already
            pieces += [text[at:start], new]
            at = end
    return "".join([*pieces, text[at:]])


def _strokes(text: str, edits: Sequence[Edit], slots: Mapping[Path, Slot]) -> Iterator[tuple[int, int, str]]:
    """What is written, each time from where to where.

    Insertions at one place keep the order in which they were asked for, and stand before whatever replaces the value
    there; of several that do, the first.
    """
    together: dict[Path, list[Edit]] = {}
    for edit in edits:
        together.setdefault(edit.place, []).append(edit)
    leaving: dict[Path, list[Member]] = {}
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


def _cuts(members: list[Member]) -> Iterator[tuple[int, int, str]]:
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


def _value(edit: Edit, text: str, slots: Mapping[Path, Slot]) -> str:
    """The text that an edit writes."""
    if isinstance(edit, Replace | Insert):
        return dumps(edit.value)
    assert isinstance(edit, Rebuild), "what leaves writes nothing"
    return f"[{','.join([_element(edit.place, each, text, slots) for each in edit.elements])}]"


def _element(place: Path, each: int | dict[str, Json], text: str, slots: Mapping[Path, Slot]) -> str:
    if not isinstance(each, int):
        return dumps(each)
    kept = slots[(*place, each)]
    return text[kept.start : kept.end]
