"""Keys that an edit brings into an object: behind what is there, in the order in which they were asked for."""

from __future__ import annotations

import json

import pytest

from sightline.model.edit import Edit, Insert, Replace
from sightline.wire.jsonedits import graft
from sightline.wire.jsontext import lift
from tests.wire.bodies import TOKEN


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"o":{}}', '{"o":{"a":1,"b":[2],"c":"3"}}'),
        ('{"o":{"x":0}}', '{"o":{"x":0,"a":1,"b":[2],"c":"3"}}'),
        ('{"o":{"x":{},"y":[]},"z":1}', '{"o":{"x":{},"y":[],"a":1,"b":[2],"c":"3"},"z":1}'),
    ],
)
def test_several_new_keys_stand_behind_the_old_ones_with_a_comma_between_each(before: str, after: str) -> None:
    edits: list[Edit] = [Insert(("o", "a"), 1), Insert(("o", "b"), [2]), Insert(("o", "c"), "3")]
    document = lift(before.encode(), TOKEN)
    assert document is not None
    assert b"".join(document.splice(edits)).decode() == after
    assert json.dumps(graft(json.loads(before), edits), separators=(",", ":")) == after


def test_a_new_key_beside_one_that_is_replaced() -> None:
    document = lift(b'{ "x" : 0 }', TOKEN)
    assert document is not None
    edits: list[Edit] = [Insert(("a",), 1), Replace(("x",), 5)]
    assert json.loads(b"".join(document.splice(edits))) == {"x": 5, "a": 1}
