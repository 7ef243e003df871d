"""A body as objects: the same edits as on text, copy on write."""

from __future__ import annotations

from collections.abc import Sequence

from sightline.model.edit import Edit, Insert
from sightline.model.scene import Json, Path


def graft(tree: Json, edits: Sequence[Edit]) -> Json:
    """The tree after `edits`. What no edit touches is the same object in both; without an edit, so is the tree."""
    return _grafted(tree, [(edit.place, edit) for edit in edits])


def _grafted(value: Json, edits: list[tuple[Path, Edit]]) -> Json:
    here = [edit for way, edit in edits if not way]
    if here:
        return here[-1].value
    if not edits:
        return value
    below: dict[str | int, list[tuple[Path, Edit]]] = {}
    added: dict[int, list[Json]] = {}
    for way, edit in edits:
        step, rest = way[0], way[1:]
        if isinstance(edit, Insert) and not rest:
            assert isinstance(step, int)
            added.setdefault(step, []).append(edit.value)
        else:
            below.setdefault(step, []).append((rest, edit))
    if isinstance(value, dict):
        return {**value, **{key: _grafted(value[key], inner) for key, inner in below.items() if isinstance(key, str)}}
    assert isinstance(value, list)
    grown: list[Json] = []
    for index, item in enumerate(value):
        grown += added.get(index, [])
        grown.append(_grafted(item, below[index]) if index in below else item)
    return [*grown, *added.get(len(value), [])]
