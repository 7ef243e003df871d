"""Apply edits to JSON: to a tree (`graft`) or to a text (`patch_text`).

`graft` copies on write: values that no edit touches are the same objects in both trees. `patch_text` changes only the
characters of the values that an edit names. To find them it walks from the root along the paths of the edits, and
skips all other values in C code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple, Self

import orjson

from sightline.model.scene import Edit, Insert, Json, JsonPath, Rebuild, Remove, Replace
from sightline.model.value import value_class

_match_blanks, _match_comma = (re.compile(rf"[ \t\n\r]*{mark}[ \t\n\r]*").match for mark in ("", ",?"))
_Trie = dict["str | int", "_Trie"]
# Numbers stay text: they are only skipped, and a huge one must not raise.
_scan_value = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str).raw_decode
_match_key = re.compile(r'"((?:[^"\\]|\\.)*+)"[ \t\n\r]*:[ \t\n\r]*').match
_find_brackets = re.compile(r'[\[{\]}]|"(?:[^"\\]|\\.)*+"').finditer


class RepeatedKey(str):
    """A key that is repeated later in the same object; `occurrence` counts from 0.

    It can be a key of a parsed object, beside the last occurrence, because it equals no plain string.
    """

    __slots__ = ("occurrence",)
    occurrence: int

    def __new__(cls, key: str, occurrence: int) -> Self:
        new_key = super().__new__(cls, key)
        new_key.occurrence = occurrence
        return new_key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RepeatedKey) and other.occurrence == self.occurrence and str.__eq__(self, other)

    def __hash__(self) -> int:
        return hash((str.__hash__(self), self.occurrence))


class WrittenObject(dict[str, Json]):
    """An object that is inserted into many bodies, and is written once. Nothing may change it: trees get copies."""

    __slots__ = ("text",)

    def __init__(self, members: dict[str, Json]) -> None:
        super().__init__(members)
        self.text = orjson.dumps(members)


class WrittenLabel(WrittenObject):
    """A block of a short text beside an image, in ASCII and without base64."""

    __slots__ = ("json",)

    def __init__(self, members: dict[str, Json]) -> None:
        super().__init__(members)
        self.json = self.text.decode()


class MemberSpan(NamedTuple):
    """Where a member of an object is in the text, with its key."""

    position: int
    previous_end: int
    start: int
    end: int
    next_start: int


@value_class
class ValueSpan:
    """Where a value is in the text, or where it would be inserted."""

    start: int
    end: int
    prefix: str = ""  # what an insertion here needs before it
    suffix: str = ","  # and after it
    members: tuple[MemberSpan, ...] = ()  # if it is in an object: one for each time that its key occurs


def locate_values(text: str, places: Sequence[JsonPath]) -> dict[JsonPath, ValueSpan]:
    """Return where the values at `places` are in the text."""
    trie: _Trie = {}
    for place in places:
        node = trie
        for step in place:
            node = node.setdefault(step, {})
    start = _skip_match(_match_blanks, text, 0)
    spans: dict[JsonPath, ValueSpan] = {}
    spans[()] = ValueSpan(start, _walk(text, start, trie, (), spans))
    return spans


def _skip_match(match: Callable[[str, int], re.Match[str] | None], text: str, at: int) -> int:
    matched = match(text, at)
    return matched.end() if matched else at


def _skip_value(text: str, at: int) -> int:
    """Return the index just after the value that begins at `at`."""
    try:
        return _scan_value(text, at)[1]
    except RecursionError:  # nested too deep for this parser; the text was parsed before, so its brackets match
        depth = 0
        for mark in _find_brackets(text, at):
            depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(mark[0], 0)
            if not depth:
                return mark.end()
        raise


def _walk(text: str, at: int, node: _Trie, path: JsonPath, spans: dict[JsonPath, ValueSpan]) -> int:
    """Record the spans below the value that begins at `at`; return the index just after it."""
    if node and text[at] == "{":
        return _walk_object(text, at, node, path, spans)
    if node and text[at] == "[":
        return _walk_list(text, at, node, path, spans)
    return _skip_value(text, at)


def _walk_object(text: str, at: int, node: _Trie, path: JsonPath, spans: dict[JsonPath, ValueSpan]) -> int:
    last = at + 1
    at = first = _skip_match(_match_blanks, text, last)
    absent = dict.fromkeys(node)
    counts_repeats = RepeatedKey in map(type, node)
    occurrences: dict[str, int] = {}
    members: dict[str, tuple[MemberSpan, ...]] = {}
    number = 0
    while text[at] != "}":
        key_start, previous_end = at, last
        key_match = _match_key(text, at)
        assert key_match, "the text was parsed before"
        key, at = key_match[1], key_match.end()
        if "\\" in key:
            key = _scan_value(text, key_start)[0]
        # All parsers here use the last of repeated keys, so its span overwrites the earlier ones. An edit can name
        # an earlier one with a RepeatedKey.
        if counts_repeats:
            occurrence = occurrences[key] = occurrences.get(key, -1) + 1
            key = repeated if (repeated := RepeatedKey(key, occurrence)) in node else key
        if key in node:
            start, last = at, _walk(text, at, node[key], (*path, key), spans)
            at = _skip_match(_match_comma, text, last)
            absent.pop(key, None)
            members[key] = (*members.get(key, ()), MemberSpan(number, previous_end, key_start, last, at))
            spans[(*path, key)] = ValueSpan(start, last, members=members[key])
        else:
            last = _skip_value(text, at)
            at = _skip_match(_match_comma, text, last)
        number += 1
    comma = "," if at > first else ""
    for new in absent:  # only insertions name these
        spans[(*path, new)] = ValueSpan(last, last, f"{comma}{dump_json(new)}:", "")
        comma = ","
    return at + 1


def _walk_list(text: str, at: int, node: _Trie, path: JsonPath, spans: dict[JsonPath, ValueSpan]) -> int:
    last = at + 1
    at = _skip_match(_match_blanks, text, last)
    index = 0
    while text[at] != "]":
        if index in node:
            last = _walk(text, at, node[index], (*path, index), spans)
            spans[(*path, index)] = ValueSpan(at, last)
        else:
            last = _skip_value(text, at)
        at = _skip_match(_match_comma, text, last)
        index += 1
    if index in node:  # the place after the last element: only insertions name it
        spans[(*path, index)] = ValueSpan(last, last, "," if index else "", "")
    return at + 1


_MEMBER_EDITS = (Insert, Remove)


def graft(tree: Json, edits: Sequence[Edit]) -> Json:
    """Return the tree after `edits`; without an edit, the same object."""
    return _graft_value(tree, edits, 0) if edits else tree


def _graft_value(value: Json, edits: Sequence[Edit], depth: int) -> Json:
    """Return a value at this depth of the tree, after the edits of it and of the values below it."""
    below: dict[str | int, list[Edit]] = {}
    member_edits: list[Insert | Remove] = []  # insertions into the value itself, and removals from it
    for edit in edits:
        path = edit.place
        if len(path) == depth:
            return _apply_to_value(value, edit)
        if len(path) == depth + 1 and isinstance(edit, _MEMBER_EDITS):
            member_edits.append(edit)
        elif (step := path[depth]) in below:
            below[step].append(edit)
        else:
            below[step] = [edit]
    if isinstance(value, dict):
        members = value.copy()
        for key, inner in below.items():
            assert isinstance(key, str)
            members[key] = _graft_value(value[key], inner, depth + 1)
        return _edit_members(members, member_edits) if member_edits else members
    assert isinstance(value, list)
    items = value.copy()
    for index, inner in below.items():
        assert isinstance(index, int)
        items[index] = _graft_value(value[index], inner, depth + 1)
    return _insert_elements(items, member_edits) if member_edits else items


def _edit_members(members: dict[str, Json], edits: Sequence[Insert | Remove]) -> dict[str, Json]:
    for edit in edits:
        key = edit.place[-1]
        assert isinstance(key, str)
        if isinstance(edit, Insert):
            members[key] = _get_own_value(edit)
        else:
            members.pop(key, None)
    return members


def _insert_elements(items: list[Json], edits: Sequence[Insert | Remove]) -> list[Json]:
    """Insert elements; those at one place keep the order of their edits."""
    added = [
        (index, _get_own_value(edit))
        for edit in edits
        if isinstance(edit, Insert) and isinstance(index := edit.place[-1], int)
    ]
    result: list[Json] = []
    at = 0
    for index, new in sorted(added, key=itemgetter(0)):
        result += items[at:index]
        result.append(new)
        at = index
    return result + items[at:]


def _apply_to_value(value: Json, edit: Edit) -> Json:
    if isinstance(edit, Replace | Insert):
        return _get_own_value(edit)
    assert isinstance(edit, Rebuild)
    assert isinstance(value, list)
    return [value[each] if isinstance(each, int) else each for each in edit.elements]


def _get_own_value(edit: Replace | Insert) -> Json:
    """Return the value of an edit for a tree whose owner may change it: one that is inserted into many is copied."""
    value = edit.value
    if not isinstance(value, WrittenObject):
        return value
    copied: Json = orjson.loads(value.text)
    return copied


def dump_json(value: Json) -> str:
    """Return a value as JSON text, also if orjson can't write it."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # a lone surrogate, which needs an escape, or a number of more than 64 bits
        return json.dumps(value, separators=(",", ":"))


def patch_text(text: str, edits: Sequence[Edit]) -> str:
    """Return a JSON text after `edits`; every other character stays as it is."""
    spans = locate_values(text, [place for edit in edits for place in (edit.place, *_list_kept_places(edit))])
    pieces: list[str] = []
    at = 0
    for start, end, new in sorted(_find_replacements(text, edits, spans), key=lambda replacement: replacement[0]):
        if start >= at:  # else it is inside a value that another edit has replaced
            pieces += [text[at:start], new]
            at = end
    return "".join([*pieces, text[at:]])


def _find_replacements(
    text: str, edits: Sequence[Edit], spans: Mapping[JsonPath, ValueSpan]
) -> Iterator[tuple[int, int, str]]:
    """Yield the start and end of each piece of text that is replaced, and its new text.

    Insertions at one place keep the order of their edits and come before the value there. If several edits replace
    that value, the first one counts.
    """
    edits_by_place: dict[JsonPath, list[Edit]] = {}
    for edit in edits:
        edits_by_place.setdefault(edit.place, []).append(edit)
    removed: dict[JsonPath, list[MemberSpan]] = {}
    for place, edits_here in edits_by_place.items():
        span = spans[place]
        inserted = [edit for edit in edits_here if isinstance(edit, Insert)]
        others = [edit for edit in edits_here if not isinstance(edit, Insert)]
        if any(isinstance(edit, Remove) for edit in others):
            removed.setdefault(place[:-1], []).extend(span.members)
            continue
        values = ",".join([_write_value(edit, text, spans) for edit in (*inserted, *others[:1])])
        yield (span.start, span.end, values) if others else (span.start, span.start, span.prefix + values + span.suffix)
    for members in removed.values():
        yield from _cut_members(members)


def _cut_members(members: list[MemberSpan]) -> Iterator[tuple[int, int, str]]:
    """Yield the cuts that remove members of one object.

    Each takes a comma along: the one before it, or the one after it if no member stays before it.
    """
    first = 0
    for member in sorted(members):
        if member.position == first:
            first += 1
            yield member.start, member.next_start, ""
        else:
            yield member.previous_end, member.end, ""


def _list_kept_places(edit: Edit) -> list[JsonPath]:
    """Return the places of the values that an edit keeps as they are, at another index."""
    return [(*edit.place, each) for each in edit.elements if isinstance(each, int)] if isinstance(edit, Rebuild) else []


def _write_value(edit: Edit, text: str, spans: Mapping[JsonPath, ValueSpan]) -> str:
    """Return the text that an edit writes."""
    if isinstance(edit, Replace | Insert):
        return dump_json(edit.value)
    assert isinstance(edit, Rebuild), "a removal writes nothing"
    return f"[{','.join([_write_element(edit.place, each, text, spans) for each in edit.elements])}]"


def _write_element(
    place: JsonPath, element: int | dict[str, Json], text: str, spans: Mapping[JsonPath, ValueSpan]
) -> str:
    if not isinstance(element, int):
        return dump_json(element)
    kept = spans[(*place, element)]
    return text[kept.start : kept.end]
