"""Find the charts of an image, and format their values.

An axis comes first; then whatever is beside it is read against it. The code assumes an upright value axis: a chart on
its side is transposed first, and its boxes are transposed back.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import median

from sightline.model.geometry import Box
from sightline.reader.charts.axes import TICKS, Axis, ChartImage, find_axes, read_labels, transpose_image
from sightline.reader.charts.bars import read_bar_chart
from sightline.reader.charts.curves import read_line_chart
from sightline.reader.reading import Chart, ChartMark, Pixels, TextLine
from sightline.reader.rectangles import is_inside, transpose_box
from sightline.reader.regions import ColourRegion, find_regions


def find_charts(
    pixels: Pixels, lines: Sequence[TextLine], found: Sequence[ColourRegion] | None = None
) -> tuple[Chart, ...]:
    """Return the charts of the image; `found` are its regions if they are known already."""
    texts = read_labels(pixels, lines)
    if sum(text.number is not None for text in texts) < TICKS:
        return ()
    em = median(min(text.box.width, text.box.height) for text in texts)
    known = tuple(find_regions(pixels) if found is None else found)
    upright = ChartImage(pixels, texts, known, em, transposed=False)
    ways = [(picture, each) for picture in (upright, transpose_image(upright)) for each in _find_rooms(picture)]
    read = [(way, chart) for way, (axis, room) in ways if (chart := read_bar_chart(way, axis, room)) is not None]
    barred = _remove_overlaps([_transpose_chart(chart) if way.transposed else chart for way, chart in read])
    free = [each for way, each in ways if way is upright and not any(_has_axis(chart, each[0]) for chart in barred)]
    lined = [chart for axis, room in free if (chart := read_line_chart(upright, axis, room)) is not None]
    return _remove_overlaps([*barred, *lined])


def _find_rooms(picture: ChartImage) -> list[tuple[Axis, tuple[int, int]]]:
    """Return every axis with the columns between its neighbours."""
    found = find_axes(picture)
    rooms = []
    for axis in found:
        level = [other.box for other in found if other is not axis and _overlap_vertically(axis.box, other.box)]
        start = max((box.right for box in level if box.right <= axis.box.x), default=0)
        end = min((box.x for box in level if box.x >= axis.box.right), default=picture.pixels.shape[1])
        rooms.append((axis, (start, end)))
    return rooms


def _overlap_vertically(one: Box, other: Box) -> bool:
    return min(one.bottom, other.bottom) - max(one.y, other.y) > 0.3 * min(one.height, other.height)


def _transpose_chart(chart: Chart) -> Chart:
    marks = tuple(replace(mark, box=transpose_box(mark.box)) for mark in chart.marks)
    return replace(chart, box=transpose_box(chart.box), marks=marks)


def _remove_overlaps(found: Iterable[Chart]) -> tuple[Chart, ...]:
    """Return, of charts in the same place, the one that explains the most."""
    kept: list[Chart] = []
    for chart in sorted(found, key=lambda each: (-len(each.marks), len(each.doubts))):
        if not any(_overlap(chart, other) for other in kept):
            kept.append(chart)
    return tuple(sorted(kept, key=lambda chart: (chart.box.y, chart.box.x)))


def _has_axis(chart: Chart, axis: Axis) -> bool:
    return any(is_inside(label.box, chart.box, slack=1) for label in axis.labels)


def _overlap(one: Chart, other: Chart) -> bool:
    wide = min(one.box.right, other.box.right) - max(one.box.x, other.box.x)
    high = min(one.box.bottom, other.box.bottom) - max(one.box.y, other.box.y)
    small = min(one.box.width * one.box.height, other.box.width * other.box.height)
    return wide > 0 and high > 0 and wide * high > 0.3 * small


def name_mark(mark: ChartMark) -> str:
    """Return the category and series of a mark."""
    return ", ".join(filter(None, (mark.category, mark.series))) or "bar"


def round_mark(mark: ChartMark) -> float:
    """Return the roundest value that the mark may have, but never 0 for a bar that is there."""
    size, exponent = abs(mark.value), math.ceil(math.log10(abs(mark.value) or 1.0))
    if not mark.tolerance or not size:
        return mark.value
    for unit in (step * 10.0**power for power in range(exponent, exponent - 16, -1) for step in (1.0, 0.5, 0.2)):
        near = round(size / unit) * unit
        if near and abs(near - size) <= mark.tolerance:
            return math.copysign(float(f"{near:.12g}"), mark.value)
    return mark.value


def format_value(value: float, chart: Chart) -> str:
    """Return a value as exactly as the chart shows it: to a five-hundredth of its largest value."""
    greatest = max((abs(mark.value) for mark in chart.marks), default=0.0) or abs(value) or 1.0
    places = max(-12, min(12, math.ceil(-math.log10(greatest / 500))))
    rounded = round(value, places)
    return f"{rounded:.0f}" if rounded.is_integer() else f"{rounded:.{max(places, 0)}f}".rstrip("0").rstrip(".")
