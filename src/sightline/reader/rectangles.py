"""Geometry of boxes: containment, rows, distances, rotation."""

from __future__ import annotations

from collections.abc import Iterable

from sightline.model.geometry import Box, Size


def format_box(box: Box) -> str:
    """Return a box as text, `[x1, y1, x2, y2]`; x2 and y2 are one past the last pixel."""
    return f"[{box.x}, {box.y}, {box.right}, {box.bottom}]"


def is_inside(inner: Box, outer: Box, slack: int = 2) -> bool:
    """Return whether one box lies within another, give or take `slack` pixels."""
    return (
        inner.x >= outer.x - slack
        and inner.y >= outer.y - slack
        and inner.right <= outer.right + slack
        and inner.bottom <= outer.bottom + slack
    )


def find_indexes_inside(outer: Box, boxes: Iterable[Box]) -> tuple[int, ...]:
    """Return the indexes of the boxes that lie within `outer`."""
    return tuple(place for place, box in enumerate(boxes) if is_inside(box, outer))


def enclose_boxes(boxes: Iterable[Box]) -> Box:
    """Return the smallest box around some others."""
    each = list(boxes)
    x, y = min(box.x for box in each), min(box.y for box in each)
    return Box(x, y, max(box.right for box in each) - x, max(box.bottom for box in each) - y)


def transpose_box(box: Box) -> Box:
    """Return the box with x and y exchanged."""
    return Box(box.y, box.x, box.height, box.width)


def contains_centre(box: Box, other: Box) -> bool:
    """Return whether the centre of `other` lies in `box`."""
    x, y = other.x + other.width / 2, other.y + other.height / 2
    return box.x <= x <= box.right and box.y <= y <= box.bottom


def are_level(one: Box, other: Box) -> bool:
    """Return whether two boxes are side by side: the smaller one's centre is within the larger one's height."""
    small, large = (one, other) if one.height < other.height else (other, one)
    return large.y <= small.y + small.height / 2 <= large.bottom


def overlap_horizontally(one: Box, other: Box) -> bool:
    """Return whether two boxes share some columns."""
    return one.x < other.right and other.x < one.right


def measure_distance(one: Box, other: Box) -> int:
    """Return the pixels between two boxes, across plus down; 0 where they touch."""
    across = max(other.x - one.right, one.x - other.right, 0)
    return across + max(other.y - one.bottom, one.y - other.bottom, 0)


def rotate_box(box: Box, size: Size, degrees: int) -> Box:
    """Return a box of an image of that size after the image was rotated clockwise by `degrees`."""
    match degrees % 360:
        case 90:
            return Box(size.height - box.bottom, box.x, box.height, box.width)
        case 180:
            return Box(size.width - box.right, size.height - box.bottom, box.width, box.height)
        case 270:
            return Box(box.y, size.width - box.right, box.height, box.width)
        case _:
            return box
