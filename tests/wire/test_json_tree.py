"""Reading a tree whose shape isn't known: what is missing is absent, and nothing raises."""

from __future__ import annotations

from typing import Any

import pytest

from sightline.wire.json_tree import get_at

_TREE: Any = {"a": [{"b": "text"}, "text", ["x"], None, 5], "t": "text"}


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        ((), _TREE),
        (("a", 0, "b"), "text"),
        (("a", 1), "text"),
        (("a", 2, 0), "x"),
        (("a", 4), 5),
        (("a", -1), None),
        (("a", 2, -1), None),
        (("a", 9), None),
        (("a", "b"), None),
        (("a", 3, "b"), None),
        (("a", 4, 0), None),
        (("a", 0, "b", 0), None),
        (("a", 1, 0), None),
        (("a", 1, 0, 0), None),
        (("t", 0), None),
        (("t", "a"), None),
        ((0,), None),
        (("z", "a", 0), None),
    ],
)
def test_a_value_is_found_at_the_end_of_its_steps_or_nothing_is(steps: tuple[str | int, ...], found: object) -> None:
    assert get_at(_TREE, *steps) == found
