"""Bars: regions that grow out of a common base, and their values by the axis beside them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from sightline.model.geometry import Box
from sightline.seers.local.axes import Axis, Picture, Text, rounded
from sightline.seers.local.boxes import flipped, inside, union
from sightline.seers.local.captions import SAME, SEEN, category_of, labels_of, legend_of, titled, unit_of
from sightline.seers.local.colours import apart, commonest, cut, distance, name
from sightline.seers.local.regions import Pixels, Region
from sightline.seers.local.seen import Chart, Colour, Mark

NEAR = 4.0  # pixels: edges that meet, with a border or an axis between them; more where letters are large
THIN = 3  # pixels, the least width of a bar
SAME_BAR = 30  # what a strip of a bar may differ by from the rest, where an edge or a line is mixed into it


@dataclass(frozen=True, slots=True)
class _Bar:
    box: Box
    colour: Colour
    base: float  # where it begins,
    tip: float  # and where it ends


def read_bars(picture: Picture, axis: Axis, room: tuple[int, int]) -> Chart | None:
    """The chart whose bars stand beside an axis, between the two edges of the room that it has."""
    bars = _bars(picture, axis, _plot(axis, room))
    boxes = [bar.box for bar in bars]
    if all(max(bar.box.width, bar.box.height) <= 1.5 * picture.em for bar in bars):  # none, or marks of a line
        return None
    if all(bar.box.height <= NEAR for bar in bars):  # lines along the foot
        return None
    names, legend = _legend(picture, bars)
    labels = labels_of(picture, axis, boxes, legend)
    if not labels and len(bars) < 2:
        return None
    marks = []
    for bar in bars:
        category = category_of(bar.box, labels, boxes)
        series = next((title for colour, title in names if distance(colour, bar.colour) <= SAME), "")
        marks.append(Mark(category, series, _value(picture, axis, bar, bars, labels), bar.box, bar.colour))
    marks, doubts = _settled(marks, bool(names))
    ink = union([*boxes, axis.box, *(label.box for label in labels)])
    title, box = titled(picture, ink, axis, [*labels, *legend])
    unit = axis.unit or unit_of(picture, axis, ink)
    return Chart("bar", box, title, tuple(marks), unit, "; ".join(doubts))


def _plot(axis: Axis, room: tuple[int, int]) -> Box:
    low, high = axis.span
    top, bottom = max(0, int(low - 1.5 * axis.pitch)), int(high + 1.5 * axis.pitch)  # a label may be unread
    return Box(room[0], top, room[1] - room[0], bottom - top)


def _bars(picture: Picture, axis: Axis, plot: Box) -> list[_Bar]:
    grounds = _grounds(picture, axis)
    labels = axis.box
    candidates = [
        region
        for region in _thickened(picture.regions, picture.em)
        if inside(region.box, plot, slack=0)
        and region.filled >= 0.72
        and min(region.sides, region.ends) >= 0.6
        and region.box.width >= THIN
        and all(distance(region.colour, ground) >= SEEN for ground in grounds)
        and not labels.x - 2 <= region.box.x + region.box.width / 2 <= labels.right + 2
        and not any(inside(region.box, text.box, slack=1) or _swatch(picture, region, text) for text in picture.texts)
    ]
    pieces = _mended(_widened(picture.pixels, _mended(candidates)))
    near = max(NEAR, 0.4 * picture.em)
    after = [piece for piece in pieces if piece.box.x >= labels.right]
    before = [piece for piece in pieces if piece.box.right <= labels.x]
    for side in (before, after) if picture.turned else (after, before):  # labels stand at the left, or below
        base = _base(axis, side, near)
        if base is not None and (bars := _stacked(side, base, near)):
            return bars
    return []


def _thickened(regions: Sequence[Region], em: float) -> list[Region]:
    """Strips of one thin bar put together: its edges are softer than what lies between them."""
    strips = sorted(
        (region for region in regions if region.box.width <= THIN and region.box.height > 2 * em),
        key=lambda region: region.box.x,
    )
    joined: list[list[Region]] = []
    for strip in strips:
        beside = next((each for each in joined if _continues(each[-1], strip)), None)
        if beside is None:
            joined.append([strip])
        else:
            beside.append(strip)
    thick = [each for each in joined if len(each) > 1]
    used = {id(region) for each in thick for region in each}
    whole = [
        replace(max(each, key=lambda region: (region.area, -each.index(region))), area=sum(one.area for one in each),
                box=union(region.box for region in each))
        for each in thick
    ]  # fmt: skip
    return [*(region for region in regions if id(region) not in used), *whole]


def _continues(one: Region, other: Region) -> bool:
    level = abs(one.box.y - other.box.y) <= 2 and abs(one.box.bottom - other.box.bottom) <= 2
    return level and other.box.x == one.box.right and distance(one.colour, other.colour) <= SAME_BAR


def _swatch(picture: Picture, region: Region, text: Text) -> bool:
    """A small square right before a name belongs to the legend."""
    box, word = (flipped(region.box), flipped(text.box)) if picture.turned else (region.box, text.box)
    small = max(box.width, box.height) <= 1.6 * picture.em and text.number is None
    return small and 0 <= word.x - box.right <= 1.5 * picture.em and word.y <= box.y + box.height / 2 <= word.bottom


def _grounds(picture: Picture, axis: Axis) -> set[Colour]:
    """What the labels stand on, and what the plot is drawn on: a colour of the margin that is no rarer at the tips."""
    box = axis.box
    found = {commonest(cut(picture.pixels, box, more=2).reshape(-1, 3))}
    tips, feet = _bands(picture, axis)
    for away in (8, 13, 18, 23):
        for start in (box.right + away, box.x - away - 4):
            strip = cut(picture.pixels, Box(max(0, start), box.y, 4, box.height)).reshape(-1, 3)
            if start < 0 or not len(strip) or (colour := commonest(strip)) in found:
                continue
            if _share(strip, colour) < 0.6 or not _crosses(picture, axis, colour):
                continue
            if _share(tips, colour) >= _share(feet, colour) - 0.02:
                found.add(colour)
    return found


def _crosses(picture: Picture, axis: Axis, colour: Colour) -> bool:
    """Whether a colour goes all along the axis somewhere: the ground does between bars, and a piece of one does not."""
    low, high = axis.span
    zero = axis.at(0.0)
    if zero is not None and low - 1.3 * axis.pitch <= zero <= high + 1.3 * axis.pitch:
        low, high = min(low, zero), max(high, zero)
    rows = picture.pixels[max(0, int(low)) : int(high) + 1 : 2, ::2]
    return bool(((apart(rows.reshape(-1, 3), colour) <= 4).reshape(rows.shape[:2]).mean(axis=0) >= 0.85).any())


def _bands(picture: Picture, axis: Axis) -> tuple[Pixels, Pixels]:
    """Pixels where only the longest bars reach, and where nearly all do."""
    low, high = axis.span
    zero = axis.at(0.0)
    if zero is None or not low - axis.pitch <= zero <= high + axis.pitch:
        zero = high if axis.slope < 0 else low
    far, inward = (low, 1) if abs(low - zero) > abs(high - zero) else (high, -1)
    near = -inward
    ends = ((far, inward), (zero, near))
    bands = []
    for end, step in ends:
        one, other = sorted((int(end + step * 0.15 * axis.pitch), int(end + step * 0.35 * axis.pitch)))
        bands.append(picture.pixels[max(0, one) : max(0, other) + 1].reshape(-1, 3))
    return bands[0], bands[1]


def _share(flat: Pixels, colour: Colour) -> float:
    return float((apart(flat, colour) <= 4).mean()) if len(flat) else 0.0


def _mended(candidates: Iterable[Region]) -> list[Region]:
    """Pieces of one bar that a grid line or a label has cut, put together."""
    mended: list[Region] = []
    for region in sorted(candidates, key=lambda each: each.box.y):
        for place, above in enumerate(mended):
            if 0 <= region.box.y - above.box.bottom <= 3 and _one(above, region):
                thicker = max(above, region, key=lambda each: each.box.height)
                y = above.box.y
                whole = Box(thicker.box.x, y, thicker.box.width, region.box.bottom - y)
                mended[place] = replace(thicker, box=whole, area=above.area + region.area)
                break
        else:
            mended.append(region)
    return mended


def _one(above: Region, below: Region) -> bool:
    """Whether two pieces are of one bar: the same colour and width, or one of them just its edge."""
    one, other = above.box, below.box
    low = min(one.height, other.height)
    level = abs(one.x - other.x) <= 1 and abs(one.right - other.right) <= 1
    within = abs(one.x - other.x) <= 3 and abs(one.right - other.right) <= 3
    same = distance(above.colour, below.colour) <= (SAME_BAR if low <= THIN + 2 else 8)  # a line mixes its colour
    return (level and same) or (low <= 2 and within)


def _widened(pixels: Pixels, pieces: Sequence[Region]) -> list[Region]:
    """Halves of one bar that a grid line has cut along, put together: the line goes on beyond the bar."""
    whole: list[Region] = []
    for region in sorted(pieces, key=lambda each: (each.box.x, each.box.y)):
        for place, left in enumerate(whole):
            gap = region.box.x - left.box.right
            if (
                0 < gap <= 3
                and distance(left.colour, region.colour) <= 8
                and abs(left.box.y - region.box.y) <= 1
                and abs(left.box.bottom - region.box.bottom) <= 1
                and _line_beyond(pixels, Box(left.box.right, left.box.y, gap, left.box.height))
            ):
                whole[place] = replace(left, box=union([left.box, region.box]), area=left.area + region.area)
                break
        else:
            whole.append(region)
    return whole


def _line_beyond(pixels: Pixels, gap: Box) -> bool:
    """Whether what parts two halves is also drawn outside of them."""
    x = gap.x + gap.width // 2
    if x < 4 or x + 5 > pixels.shape[1]:
        return False
    above, below = pixels[max(0, gap.y - 14) : max(0, gap.y - 2)], pixels[gap.bottom + 2 : gap.bottom + 14]
    rows = np.concatenate([above, below])[:, x - 4 : x + 5].astype(np.int16)  # some, for it may be dashed
    apart = np.minimum(np.abs(rows[:, 4] - rows[:, 0]).max(axis=1), np.abs(rows[:, 4] - rows[:, 8]).max(axis=1))
    return bool((apart > 4).sum() >= 2)


def _base(axis: Axis, pieces: Sequence[Region], near: float) -> float | None:
    """Where the bars begin: at nought when the axis has it, else where most of them do."""
    low, high = axis.span
    zero = axis.at(0.0)
    if zero is not None and low - 1.3 * axis.pitch <= zero <= high + 1.3 * axis.pitch:
        return zero if any(_meets(piece, zero, near) for piece in pieces) else None
    far = high if axis.slope < 0 else low
    ends = [piece.box.bottom if axis.slope < 0 else piece.box.y for piece in pieces]
    last = [end for end in ends if abs(end - far) <= 0.8 * axis.pitch]
    if len(last) < 2:
        return None
    counted = [(sum(abs(end - other) <= 2 for other in last), end) for end in last]
    count, end = max(counted)
    return float(end) if count >= 2 else None


def _stacked(pieces: Sequence[Region], base: float, near: float) -> list[_Bar]:
    """The pieces that stand on the base or on each other, both ways from it, all as wide as most."""
    on_it = [piece for piece in pieces if _meets(piece, base, near)]
    wide = [piece.box.width for piece in on_it if piece.box.height > 2]  # anything lower may be a line
    if not wide:
        return []
    width = median(wide)
    left = [piece for piece in pieces if abs(piece.box.width - width) <= max(3, 0.15 * width)]
    bars: list[_Bar] = []
    for up in (True, False):
        tips: list[tuple[float, Box | None]] = [(base, None)]
        while tips:
            level, below = tips.pop()
            for piece in _next(left, level, below, near, up=up):
                left.remove(piece)
                tip = float(piece.box.y if up else piece.box.bottom)
                bars.append(_Bar(piece.box, piece.colour, level, tip))
                tips.append((tip, piece.box))
    thick = [bar.colour for bar in bars if bar.box.height > NEAR]
    shown = [bar for bar in bars if not thick or any(distance(bar.colour, colour) <= SAME for colour in thick)]
    return sorted(shown, key=lambda bar: (bar.box.x, -bar.box.y))


def _next(pieces: Sequence[Region], level: float, below: Box | None, near: float, *, up: bool) -> list[Region]:
    """The pieces that begin at a level, on top of another if there is one; of two in one place, the nearer."""

    def away(piece: Region) -> tuple[bool, float]:
        return piece.box.height <= 2, abs((piece.box.bottom if up else piece.box.y) - level)  # lines come last

    found: list[Region] = []
    for piece in sorted(pieces, key=away):
        start, end = (piece.box.bottom, piece.box.y) if up else (piece.box.y, piece.box.bottom)
        aligned = below is None or (abs(piece.box.x - below.x) <= 2 and abs(piece.box.right - below.right) <= 2)
        free = all(piece.box.x >= other.box.right or piece.box.right <= other.box.x for other in found)
        if abs(start - level) <= near and (end < level) == up and aligned and free:
            found.append(piece)
    return found


def _meets(piece: Region, base: float, near: float) -> bool:
    return min(abs(piece.box.bottom - base), abs(piece.box.y - base)) <= near


def _value(picture: Picture, axis: Axis, bar: _Bar, bars: Sequence[_Bar], labels: Sequence[Text]) -> float:
    """What the bar says; a number that is printed on it, and agrees, is more exact."""
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
        return min(exact, key=lambda each: abs(each - value))
    return rounded(value, step)


def _carries(below: _Bar, bar: _Bar) -> bool:
    """Whether a piece stands on another one; an edge may be drawn between them."""
    return below is not bar and abs(below.tip - bar.base) <= NEAR and abs(below.box.x - bar.box.x) <= 2


def _exact_tip(pixels: Pixels, bar: _Bar) -> float:
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


def _labels_bar(text: Text, bar: _Bar, em: float) -> bool:
    """Whether a number stands right on the tip of a bar, or in it."""
    x, y = text.middle
    across = abs(x - bar.box.x - bar.box.width / 2) <= bar.box.width / 2 + 2
    down = bar.box.y - 2.5 * em - text.box.height <= y <= bar.box.bottom + 2.5 * em + text.box.height
    return across and down


def _legend(picture: Picture, bars: Sequence[_Bar]) -> tuple[list[tuple[Colour, str]], list[Text]]:
    """The texts with a patch of a series' colour right before them."""
    colours: list[Colour] = []
    for bar in bars:
        if not any(distance(bar.colour, colour) <= SAME for colour in colours):
            colours.append(bar.colour)
    boxes = [bar.box for bar in bars]
    return legend_of(picture, colours, boxes, union(boxes))


def _settled(marks: Sequence[Mark], legend: bool) -> tuple[list[Mark], list[str]]:
    """Series without a name get their colour's, where there are several; what does not fit is said."""
    doubts = []
    colours: list[Colour] = []
    for mark in marks:
        if not any(distance(mark.colour, colour) <= SAME for colour in colours):
            colours.append(mark.colour)
    per_category: dict[str, int] = {}
    for mark in marks:
        per_category[mark.category] = per_category.get(mark.category, 0) + 1
    several = len(colours) > 1 and max(per_category.values()) > 1
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
