"""Edits of trees: the same result as on text, and untouched values are the same objects."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given

from sightline.model.scene import Edit, Insert, Json, JsonPath, Rebuild, Remove, Replace
from sightline.wire.json_document import lift
from sightline.wire.json_edits import graft
from tests.requirements import requirement
from tests.wire.bodies import TOKEN
from tests.wire.json_texts import Box, any_values, documents_and_edits, written


def oracle(tree: Any, edits: list[Edit]) -> Any:
    """Apply edits the simple way: copy everything, then change it from the end on, so that no index moves."""
    after = copy.deepcopy(tree)
    order = sorted(range(len(edits)), key=lambda number: (_steps(edits[number].place), number), reverse=True)
    for replacing in (True, False):  # what is put in stands before whatever replaces the value there
        for number in order:
            edit = edits[number]
            if isinstance(edit, Insert) is replacing:
                continue
            *way, last = edit.place
            holder = after
            for step in way:
                holder = holder[step]
            if isinstance(edit, Insert) and isinstance(holder, dict):
                holder[last] = edit.value
            elif isinstance(edit, Insert):
                holder.insert(last, edit.value)
            elif isinstance(edit, Remove):
                del holder[last]
            elif isinstance(edit, Rebuild):
                holder[last] = [holder[last][each] if isinstance(each, int) else each for each in edit.elements]
            else:
                holder[last] = edit.value
    return after


def _steps(place: JsonPath) -> list[tuple[bool, str | int]]:
    return [(isinstance(step, int), step) for step in place]


@requirement("body.graft")
@given(documents_and_edits(any_values))
def test_graft_and_splice_give_the_same(case: tuple[Box, list[Edit]]) -> None:
    text, edits = case
    body = written(text)
    tree: Json = json.loads(body)
    before = copy.deepcopy(tree)
    document = lift(body.encode(), TOKEN)
    assert document is not None
    expected = oracle(tree, edits)
    assert graft(tree, edits) == expected
    assert json.loads(b"".join(document.splice(edits))) == expected
    assert tree == before, "the original was changed"


@requirement("body.graft")
@given(documents_and_edits(any_values))
def test_untouched_values_are_the_same_objects(case: tuple[Box, list[Edit]]) -> None:
    text, edits = case
    tree: Any = json.loads(written(text))
    after: Any = graft(tree, edits)
    if not edits:
        assert after is tree
    touched = {edit.place[0] for edit in edits}
    for key, value in tree.items():
        assert key in touched or after[key] is value


def test_insertions_keep_their_order_before_a_replacement() -> None:
    edits: list[Edit] = [
        Replace(("a", 1), "new"), Insert(("a", 1), 1), Insert(("a", 1), 2), Insert(("a", 3), "end"),
        Insert(("a", 0), "start"), Replace(("a", 2, "b"), None),
    ]  # fmt: skip
    tree: Json = {"a": ["x", "y", {"b": 1, "c": 2}]}
    assert graft(tree, edits) == {"a": ["start", "x", 1, 2, "new", {"b": None, "c": 2}, "end"]}
