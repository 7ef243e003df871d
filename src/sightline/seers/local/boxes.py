"""Boxes beside, around and within each other."""

from __future__ import annotations

from collections.abc import Iterable

from sightline.model.geometry import Box


def corners(box: Box) -> str:
    """A box in words, as the boxes behind an answer have it: the pixel after the last is x2, y2."""
    return f"[{box.x}, {box.y}, {box.right}, {box.bottom}]"


def inside(inner: Box, outer: Box, slack: int = 2) -> bool:
    return (
        inner.x >= outer.x - slack
        and inner.y >= outer.y - slack
        and inner.right <= outer.right + slack
        and inner.bottom <= outer.bottom + slack
    )


def places_in(outer: Box, boxes: Iterable[Box]) -> tuple[int, ...]:
    """Which of some boxes are inside another one, by their place among them."""
    return tuple(place for place, box in enumerate(boxes) if inside(box, outer))


def union(boxes: Iterable[Box]) -> Box:
    """The least box around some."""
    each = list(boxes)
    x, y = min(box.x for box in each), min(box.y for box in each)
    return Box(x, y, max(box.right for box in each) - x, max(box.bottom for box in each) - y)


def flipped(box: Box) -> Box:
    """The box when rows become columns."""
    return Box(box.y, box.x, box.height, box.width)


def has_middle_of(box: Box, other: Box) -> bool:
    """Whether the middle of another box lies in a box."""
    x, y = other.x + other.width / 2, other.y + other.height / 2
    return box.x <= x <= box.right and box.y <= y <= box.bottom


def in_row(one: Box, other: Box) -> bool:
    """Whether they stand side by side: the middle of the smaller one lies within the height of the larger."""
    small, large = (one, other) if one.height < other.height else (other, one)
    return large.y <= small.y + small.height / 2 <= large.bottom


def overlap_across(one: Box, other: Box) -> bool:
    """Whether some of one stands straight above, below or upon the other."""
    return one.x < other.right and other.x < one.right


def spacing(one: Box, other: Box) -> int:
    """Pixels from one to the other, across and down; none where they touch."""
    across = max(other.x - one.right, one.x - other.right, 0)
    return across + max(other.y - one.bottom, one.y - other.bottom, 0)
