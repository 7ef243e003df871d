"""Keys that an edit inserts into an object: after the old ones, in the order of the edits."""

from __future__ import annotations

import json

import pytest

from sightline.model.scene import Edit, Insert, Replace
from sightline.wire.json_document import lift
from sightline.wire.json_edits import graft
from tests.wire.bodies import TOKEN


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"o":{}}', '{"o":{"a":1,"b":[2],"c":"3"}}'),
        ('{"o":{"x":0}}', '{"o":{"x":0,"a":1,"b":[2],"c":"3"}}'),
        ('{"o":{"x":{},"y":[]},"z":1}', '{"o":{"x":{},"y":[],"a":1,"b":[2],"c":"3"},"z":1}'),
    ],
)
def test_several_new_keys_are_appended_with_commas(before: str, after: str) -> None:
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
