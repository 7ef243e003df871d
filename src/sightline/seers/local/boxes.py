"""Boxes beside, around and within each other."""

from __future__ import annotations

from collections.abc import Iterable

from sightline.model.geometry import Box


def inside(inner: Box, outer: Box, slack: int = 2) -> bool:
    return (
        inner.x >= outer.x - slack
        and inner.y >= outer.y - slack
        and inner.right <= outer.right + slack
        and inner.bottom <= outer.bottom + slack
    )


def union(boxes: Iterable[Box]) -> Box:
    """The least box around some."""
    each = list(boxes)
    x, y = min(box.x for box in each), min(box.y for box in each)
    return Box(x, y, max(box.right for box in each) - x, max(box.bottom for box in each) - y)


def flipped(box: Box) -> Box:
    """The box when rows become columns."""
    return Box(box.y, box.x, box.height, box.width)
