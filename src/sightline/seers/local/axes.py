"""Axes: labels in a column (or a row) whose numbers grow evenly with their place."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sightline.model.geometry import Box
from sightline.seers.local.amounts import measured, pointed
from sightline.seers.local.boxes import flipped, union
from sightline.seers.local.regions import Pixels, Region

TICKS, MOST = 3, 40  # labels make an axis
AXES = 16  # and no more: that many columns of numbers are a table
OFF = 3.0  # pixels that a label may stand off its place


@dataclass(frozen=True, slots=True)
class Text:
    """A line of text, turned as the chart is."""

    place: int
    text: str
    box: Box
    number: float | None
    dashed: bool = False  # a dash stands before it, which may be a minus

    @property
    def middle(self) -> tuple[float, float]:
        return self.box.x + self.box.width / 2, self.box.y + self.box.height / 2


@dataclass(frozen=True, slots=True)
class Axis:
    """value = slope · y + start, or its logarithm."""

    slope: float
    start: float
    log: bool
    labels: tuple[Text, ...]
    unit: str = ""

    def value(self, y: float) -> float:
        plain = self.slope * y + self.start
        return 10.0**plain if self.log else plain

    def at(self, value: float) -> float | None:
        """Where a value stands; None when it stands nowhere."""
        if self.log and value <= 0:
            return None
        return ((math.log10(value) if self.log else value) - self.start) / self.slope

    @property
    def span(self) -> tuple[float, float]:
        middles = [label.middle[1] for label in self.labels]
        return min(middles), max(middles)

    @property
    def box(self) -> Box:
        return union(label.box for label in self.labels)

    @property
    def pitch(self) -> float:
        low, high = self.span
        return (high - low) / (len(self.labels) - 1)


@dataclass(frozen=True, slots=True)
class Picture:
    """What a chart is read from, the right way round."""

    pixels: Pixels
    texts: tuple[Text, ...]
    regions: tuple[Region, ...]
    em: float
    turned: bool


def axes(picture: Picture) -> list[Axis]:
    """Columns of labels whose numbers grow evenly; a label belongs to one."""
    left = _together([text for text in picture.texts if text.number is not None], picture.em)
    found: list[Axis] = []
    for edge in (_right, _left, _middle):
        for group in _level(left, edge, picture.em):
            while (axis := _axis(group)) is not None:  # one may stand above another
                axis = _completed(axis, left, picture.em)
                found.append(axis)
                if len(found) > AXES:
                    return []
                taken = {(text.place, text.box) for text in axis.labels}
                group = [text for text in group if (text.place, text.box) not in taken]
                left = [text for text in left if (text.place, text.box) not in taken]
    return [_snapped(picture, axis) for axis in found]


def _together(texts: list[Text], em: float) -> list[Text]:
    """Points in the labels of a column are decimals in all of them, or part thousands in all."""
    for edge in (_right, _left, _middle):
        for group in _level(texts, edge, em):
            if pointed([text.text for text in group]):
                read = {text: measured(text.text, pointed=True) for text in group}
                texts = [replace(text, number=value[0]) if (value := read.get(text)) else text for text in texts]
    return texts


def _right(text: Text) -> float:
    return text.box.right


def _left(text: Text) -> float:
    return text.box.x


def _middle(text: Text) -> float:
    return text.middle[0]


def _level(texts: Iterable[Text], edge: Callable[[Text], float], em: float) -> list[list[Text]]:
    """Texts that share an edge, from the top down."""
    groups: list[list[Text]] = []
    for text in sorted(texts, key=edge):
        if groups and edge(text) - edge(groups[-1][-1]) <= 0.5 * em:
            groups[-1].append(text)
        else:
            groups.append([text])
    return [sorted(group, key=lambda text: text.middle[1]) for group in groups if len(group) >= TICKS]


def _axis(group: Sequence[Text]) -> Axis | None:
    """The line on which the most labels lie, found by trying those that stand close to each other."""
    best: Axis | None = None
    lost = [replace(text, number=-text.number) for text in group if text.dashed and text.number is not None]
    signed = sorted([*group, *lost], key=lambda text: text.middle[1])
    points = [(text.middle[1], text.number, text) for text in signed if text.number is not None][:MOST]
    for log in (False, True):
        usable = [(y, math.log10(v) if log else v, text) for y, v, text in points if not log or v > 0]
        for (y1, v1, _), (y2, v2, _) in (pair for n in (1, 2, 3) for pair in zip(usable, usable[n:], strict=False)):
            if abs(y1 - y2) < 8 or v1 == v2:
                continue
            slope = (v2 - v1) / (y2 - y1)
            on = [(y, v, text) for y, v, text in usable if abs((v - v1) / slope + y1 - y) <= OFF]
            if len({round(y) for y, _, _ in on}) >= TICKS and (best is None or len(on) > len(best.labels)):
                slope, start = np.polyfit([y for y, _, _ in on], [v for _, v, _ in on], 1)
                best = Axis(float(slope), float(start), log, tuple(text for _, _, text in on))
        if best is not None:
            break
    if best is None:
        return None
    low, high = best.span
    between = [y for y, _, _ in points if low <= y <= high]
    units = {read[1] for text in best.labels if (read := measured(text.text)) and read[1]}
    return (
        replace(best, unit=units.pop() if len(units) == 1 else "") if len(best.labels) >= 0.6 * len(between) else None
    )


def _completed(axis: Axis, texts: Iterable[Text], em: float) -> Axis:
    """With the labels that stand on its line and in its column, though a mark beside them was taken for a letter."""
    box, taken = axis.box, set(axis.labels)
    more = [
        text
        for text in texts
        if text not in taken
        and box.x - em <= text.box.x
        and text.box.right <= box.right + 1.5 * em
        and text.number is not None
        and (at := axis.at(text.number)) is not None
        and abs(at - text.middle[1]) <= OFF
    ]
    return replace(axis, labels=(*axis.labels, *more))


def _snapped(picture: Picture, axis: Axis) -> Axis:
    """The axis through the marks or grid lines beside its labels, where there are some: labels stand a little off."""
    places = marked(_strips(picture, axis), [label.middle[1] for label in axis.labels])
    known = [(place, label) for place, label in zip(places, axis.labels, strict=True) if place is not None]
    if len(known) < 2:
        return axis
    values = [label.number or 0.0 for _, label in known]
    values = [math.log10(value) for value in values] if axis.log else values
    slope, start = np.polyfit([place for place, _ in known], values, 1)
    off = [abs((value - start) / slope - place) for (place, _), value in zip(known, values, strict=True)]
    return replace(axis, slope=float(slope), start=float(start)) if max(off) <= 1.5 else axis


def marked(strips: Iterable[NDArray[np.int16]], places: Sequence[float]) -> list[float | None]:
    """Where something is drawn close to each of the places, by the first strip in which it is so for most."""
    for strip in strips:
        ground = np.median(strip, axis=1, keepdims=True)  # of each row
        plain = np.median(ground, axis=0, keepdims=True)
        drawn = np.abs(ground - plain).max(axis=(1, 2)) > 10
        marks = [_nearest_mark(drawn, place) for place in places]
        if sum(mark is not None for mark in marks) >= max(2, 0.7 * len(places)):
            return marks
    return [None] * len(places)


def _strips(picture: Picture, axis: Axis) -> list[NDArray[np.int16]]:
    """Narrow columns right beside the labels: marks are drawn there, and grid lines begin."""
    return beside(picture.pixels, axis.box)


def beside(pixels: Pixels, box: Box) -> list[NDArray[np.int16]]:
    width = pixels.shape[1]
    starts = [*range(box.right + 1, box.right + 14, 2), *range(box.x - 4, box.x - 16, -2)]
    return [pixels[:, start : start + 3].astype(np.int16) for start in starts if start >= 0 and start + 3 <= width]


def _nearest_mark(drawn: NDArray[np.bool_], y: float) -> float | None:
    low = max(0, round(y) - 5)
    places = np.flatnonzero(drawn[low : round(y) + 6]) + low
    if not len(places) or len(places) > 6:
        return None
    return float(places.mean()) + 0.5


def rounded(value: float, step: float) -> float:
    """No more digits than the pixels bear."""
    if step <= 0 or not math.isfinite(value):
        return 0.0
    return round(value, max(0, 3 - math.floor(math.log10(step)))) + 0.0


def turned(picture: Picture) -> Picture:
    return Picture(
        picture.pixels.transpose(1, 0, 2),
        tuple(replace(text, box=flipped(text.box)) for text in picture.texts),
        tuple(
            replace(region, box=flipped(region.box), sides=region.ends, ends=region.sides) for region in picture.regions
        ),
        picture.em,
        turned=True,
    )
