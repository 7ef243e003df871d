"""Bar charts: what each bar says, by the axis beside it, and whom it belongs to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from sightline.model.geometry import Box
from sightline.seers.local.axes import Axis, Picture, Text, rounded
from sightline.seers.local.boxes import union
from sightline.seers.local.captions import SAME, category_of, labels_of, legend_of, titled, unit_of
from sightline.seers.local.colours import distance, name
from sightline.seers.local.regions import Pixels
from sightline.seers.local.seen import Chart, Colour, Mark
from sightline.seers.local.standing import NEAR, Bar, bars_of

_OFF = 0.6  # pixels: half of one at the tip of a bar, and a little for its axis


def read_bars(picture: Picture, axis: Axis, room: tuple[int, int]) -> Chart | None:
    """The chart whose bars stand beside an axis, between the two edges of the room that it has."""
    bars = bars_of(picture, axis, _plot(axis, room))
    boxes = [bar.box for bar in bars]
    if all(max(bar.box.width, bar.box.height) <= 1.5 * picture.em for bar in bars):  # none, or marks of a line
        return None
    if all(bar.box.height <= NEAR for bar in bars):  # lines along the foot
        return None
    names, legend = _legend(picture, bars)
    labels = labels_of(picture, axis, boxes, legend)
    if not labels and len(bars) < 2:
        return None
    marks, soft = [], any(_exact_tip(picture.pixels, bar) != bar.tip for bar in bars)
    for bar in bars:
        category = category_of(bar.box, labels, boxes)
        series = next((title for colour, title in names if distance(colour, bar.colour) <= SAME), "")
        value, printed = _value(picture, axis, bar, bars, labels)
        slack = 0.0 if soft or printed else _OFF * abs(axis.value(bar.tip + 0.5) - axis.value(bar.tip - 0.5))
        marks.append(Mark(category, series, value, bar.box, bar.colour, slack))
    marks, doubts = _settled(marks, bool(names))
    ink = union([*boxes, axis.box, *(label.box for label in labels)])
    title, box = titled(picture, ink, axis, [*labels, *legend])
    unit = axis.unit or unit_of(picture, axis, ink)
    return Chart("bar", box, title, tuple(marks), unit, "; ".join(doubts))


def _plot(axis: Axis, room: tuple[int, int]) -> Box:
    low, high = axis.span
    top, bottom = max(0, int(low - 1.5 * axis.pitch)), int(high + 1.5 * axis.pitch)  # a label may be unread
    return Box(room[0], top, room[1] - room[0], bottom - top)


def _value(picture: Picture, axis: Axis, bar: Bar, bars: Sequence[Bar], labels: Sequence[Text]) -> tuple[float, bool]:
    """What the bar says, and whether that is printed on it: such a number, where it agrees, is more exact."""
    tip = _exact_tip(picture.pixels, bar)
    bottom = axis.at(0.0)
    first = bottom is None or abs(bar.base - bottom) < 1 or not any(_carries(other, bar) for other in bars)
    value = axis.value(tip) if first else axis.value(tip) - axis.value(bar.base)
    step = abs(axis.value(axis.span[0]) - axis.value(axis.span[1]))
    others = {text.place for text in [*axis.labels, *labels]}
    printed = [
        text.number
        for text in picture.texts
        if text.number is not None and text.place not in others and _labels_bar(text, bar, picture.em)
    ]
    exact = [each for each in printed if abs(each - value) <= 0.012 * step]
    if exact:
        return min(exact, key=lambda each: abs(each - value)), True
    return rounded(value, step), False


def _carries(below: Bar, bar: Bar) -> bool:
    """Whether a piece stands on another one; an edge may be drawn between them."""
    return below is not bar and abs(below.tip - bar.base) <= NEAR and abs(below.box.x - bar.box.x) <= 2


def _exact_tip(pixels: Pixels, bar: Bar) -> float:
    """The tip between pixels: the row beyond it is mixed of the bar and its ground."""
    up = bar.tip < bar.base
    edge = int(bar.tip) - 1 if up else int(bar.tip)
    beyond = edge - 2 if up else edge + 2
    x = bar.box.x + bar.box.width // 2
    if not (0 <= edge < len(pixels) and 0 <= beyond < len(pixels)):
        return bar.tip
    mixed, ground = pixels[edge, x].astype(float), pixels[beyond, x].astype(float)
    full = np.array(bar.colour, dtype=float) - ground
    if not full.any():
        return bar.tip
    share = float(np.dot(mixed - ground, full) / np.dot(full, full))
    apart = float(np.abs(mixed - ground - share * full).max())
    return bar.tip + (-share if up else share) if 0.05 < share < 0.98 and apart < 12 else bar.tip


def _labels_bar(text: Text, bar: Bar, em: float) -> bool:
    """Whether a number stands right on the tip of a bar, or in it."""
    x, y = text.middle
    across = abs(x - bar.box.x - bar.box.width / 2) <= bar.box.width / 2 + 2
    down = bar.box.y - 2.5 * em - text.box.height <= y <= bar.box.bottom + 2.5 * em + text.box.height
    return across and down


def _legend(picture: Picture, bars: Sequence[Bar]) -> tuple[list[tuple[Colour, str]], list[Text]]:
    """The texts with a patch of a series' colour right before them."""
    boxes = [bar.box for bar in bars]
    return legend_of(picture, _different(bar.colour for bar in bars), boxes, union(boxes))


def _different(colours: Iterable[Colour]) -> list[Colour]:
    """The colours that the eye tells apart, in their order."""
    found: list[Colour] = []
    for colour in colours:
        if not any(distance(colour, other) <= SAME for other in found):
            found.append(colour)
    return found


def _settled(marks: Sequence[Mark], legend: bool) -> tuple[list[Mark], list[str]]:
    """Series without a name get their colour's, where there are several; what does not fit is said."""
    doubts = []
    per_category = Counter(mark.category for mark in marks)
    several = len(_different(mark.colour for mark in marks)) > 1 and max(per_category.values()) > 1
    out = [replace(mark, series=mark.series or (name(mark.colour) if several else "")) for mark in marks]
    if several and any(not mark.series for mark in marks):
        doubts.append(
            "series without a legend are named by their colour"
            if not legend
            else "the legend does not name every colour"
        )
    if any(not mark.category for mark in marks):
        doubts.append("some bars have no label that could be read")
    seen = [(mark.category, mark.series) for mark in out if mark.category]
    if len(seen) != len(set(seen)):
        doubts.append("some bars share a label")
    if several:
        lacking = len(per_category) * len({mark.series for mark in out}) - len(out)
        if lacking > 0 and all(per_category):
            doubts.append(f"{lacking} bars are too small to be seen, or not there")
    return out, doubts
