"""A body as objects: the same edits as on text, copy on write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sightline.model.edit import Edit, Insert, Rebuild, Remove, Replace
from sightline.model.scene import Json


def graft(tree: Json, edits: Sequence[Edit]) -> Json:
    """The tree after `edits`. What no edit touches is the same object in both; without an edit, so is the tree."""
    return _grafted(tree, edits, 0) if edits else tree


def _grafted(value: Json, edits: Sequence[Edit], depth: int) -> Json:
    """A value that stands so deep in the tree, after the edits of it and of what it holds."""
    below: dict[str | int, list[Edit]] = {}
    added: dict[str | int, list[Json]] = {}
    gone: set[str | int] = set()
    for edit in edits:
        way = edit.place
        if len(way) == depth:
            return _made(value, edit)
        if len(way) == depth + 1 and isinstance(edit, Remove):
            gone.add(way[depth])
        elif len(way) == depth + 1 and isinstance(edit, Insert):
            added.setdefault(way[depth], []).append(edit.value)
        else:
            below.setdefault(way[depth], []).append(edit)
    if isinstance(value, dict):
        changed = {key: _grafted(value[key], inner, depth + 1) for key, inner in below.items() if isinstance(key, str)}
        if not added and not gone:
            return {**value, **changed}
        held = {**value, **changed, **{key: new for key, (new,) in added.items() if isinstance(key, str)}}
        return {key: item for key, item in held.items() if key not in gone}
    assert isinstance(value, list)
    changed_items = [_grafted(item, below[i], depth + 1) if i in below else item for i, item in enumerate(value)]
    return _grown(changed_items, added) if added else changed_items


def _grown(items: list[Json], added: Mapping[str | int, list[Json]]) -> list[Json]:
    grown: list[Json] = []
    at = 0
    for index in sorted(step for step in added if isinstance(step, int)):
        grown += items[at:index]
        grown += added[index]
        at = index
    return grown + items[at:]


def _made(value: Json, edit: Edit) -> Json:
    if isinstance(edit, Replace | Insert):
        return edit.value
    assert isinstance(edit, Rebuild)
    assert isinstance(value, list)
    return [value[each] if isinstance(each, int) else each for each in edit.elements]
