"""A body as objects: the same edits as on text, copy on write."""

from __future__ import annotations

import json
from collections.abc import Sequence
from operator import itemgetter

import orjson

from sightline.model.edit import Edit, Insert, Rebuild, Remove, Replace
from sightline.model.scene import Json

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
