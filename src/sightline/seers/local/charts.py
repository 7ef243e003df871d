"""Bar and line charts, read against their axes.

An axis comes first; then whatever stands beside it is read by it. All of it is written for a value axis that stands
upright: a chart on its side is turned first, and its boxes turned back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import median

from sightline.model.geometry import Box
from sightline.seers.local.axes import TICKS, Axis, Picture, axes, turned
from sightline.seers.local.bars import read_bars
from sightline.seers.local.boxes import flipped, inside
from sightline.seers.local.curves import read_lines
from sightline.seers.local.labels import labels
from sightline.seers.local.regions import Pixels, Region, regions
from sightline.seers.local.seen import Chart, Line


def charts(pixels: Pixels, lines: Sequence[Line], found: Sequence[Region] | None = None) -> tuple[Chart, ...]:
    """The charts of the image; `found` are its regions when they are known already."""
    texts = labels(pixels, lines)
    if sum(text.number is not None for text in texts) < TICKS:
        return ()
    em = median(min(text.box.width, text.box.height) for text in texts)
    known = tuple(regions(pixels) if found is None else found)
    upright = Picture(pixels, texts, known, em, turned=False)
    ways = [(picture, each) for picture in (upright, turned(upright)) for each in _rooms(picture)]
    read = [(way, chart) for way, (axis, room) in ways if (chart := read_bars(way, axis, room)) is not None]
    barred = _apart([_back(chart) if way.turned else chart for way, chart in read])
    free = [each for way, each in ways if way is upright and not any(_owns(chart, each[0]) for chart in barred)]
    lined = [chart for axis, room in free if (chart := read_lines(upright, axis, room)) is not None]
    return _apart([*barred, *lined])


def _rooms(picture: Picture) -> list[tuple[Axis, tuple[int, int]]]:
    """Every axis, with the room that it has between its neighbours."""
    found = axes(picture)
    rooms = []
    for axis in found:
        level = [other.box for other in found if other is not axis and _level(axis.box, other.box)]
        start = max((box.right for box in level if box.right <= axis.box.x), default=0)
        end = min((box.x for box in level if box.x >= axis.box.right), default=picture.pixels.shape[1])
        rooms.append((axis, (start, end)))
    return rooms


def _level(one: Box, other: Box) -> bool:
    return min(one.bottom, other.bottom) - max(one.y, other.y) > 0.3 * min(one.height, other.height)


def _back(chart: Chart) -> Chart:
    marks = tuple(replace(mark, box=flipped(mark.box)) for mark in chart.marks)
    return replace(chart, box=flipped(chart.box), marks=marks)


def _apart(found: Iterable[Chart]) -> tuple[Chart, ...]:
    """Of charts that stand in each other's place, the one that explains the most."""
    kept: list[Chart] = []
    for chart in sorted(found, key=lambda each: (-len(each.marks), len(each.doubts))):
        if not any(_shares(chart, other) for other in kept):
            kept.append(chart)
    return tuple(sorted(kept, key=lambda chart: (chart.box.y, chart.box.x)))


def _owns(chart: Chart, axis: Axis) -> bool:
    return any(inside(label.box, chart.box, slack=1) for label in axis.labels)


def _shares(one: Chart, other: Chart) -> bool:
    wide = min(one.box.right, other.box.right) - max(one.box.x, other.box.x)
    high = min(one.box.bottom, other.box.bottom) - max(one.box.y, other.box.y)
    small = min(one.box.width * one.box.height, other.box.width * other.box.height)
    return wide > 0 and high > 0 and wide * high > 0.3 * small
