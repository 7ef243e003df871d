"""Bar charts: find the bars, join those that lines or labels have cut, and read their values."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from statistics import median

import numpy as np

from sightline.model.geometry import Box
from sightline.reader.charts.axes import Axis, ChartImage, ChartText, round_to_step
from sightline.reader.charts.captions import (
    SAME_SERIES,
    VISIBLE,
    find_category,
    find_category_labels,
    find_group_centres,
    find_legend,
    find_title,
    find_unit,
)
from sightline.reader.colours import compare_colours, crop_pixels, find_common_colour, measure_distances, name_colour
from sightline.reader.reading import Chart, ChartMark, Colour, Pixels
from sightline.reader.rectangles import enclose_boxes, is_inside, transpose_box
from sightline.reader.regions import ColourRegion

_OFF = 0.6  # pixels: half of one at the tip of a bar, and a little for the axis
NEAR = 4.0  # pixels between edges that meet, for a border or an axis; more where letters are large

_FEW = 2  # bars, which are no chart
NAMED = 0.4  # share of the labels that have bars, at least
_ROUND_END = 6  # how much a pixel of a round end may differ from its bar
THIN = 3  # pixels: the smallest width of a bar
_CUT = 3  # pixels: the width of what cuts a bar, at most
SAME_BAR = 30  # how much a strip of a bar may differ from the rest where an edge or a line mixes in


def read_bar_chart(picture: ChartImage, axis: Axis, room: tuple[int, int]) -> Chart | None:
    """Return the chart whose bars are beside an axis, within the columns that the axis has to itself."""
    bars = find_bars(picture, axis, _find_bar_plot(axis, room))
    axis = _move_to_feet(axis, bars)
    boxes = [bar.box for bar in bars]
    if all(max(bar.box.width, bar.box.height) <= 1.5 * picture.em for bar in bars):  # none, or marks of a line
        return None
    if all(bar.box.height <= NEAR for bar in bars):  # lines along the base
        return None
    names, legend = _find_bar_legend(picture, bars)
    labels = find_category_labels(picture, axis, boxes, legend)
    if len(bars) <= _FEW or len(find_group_centres(boxes)) < max(
        2, NAMED * len(labels)
    ):  # pieces of an area, or of something else
        return None
    marks, soft = [], any(_measure_tip(picture.pixels, bar) != bar.tip for bar in bars)
    for bar in bars:
        category = find_category(bar.box, labels, boxes)
        series = next((title for colour, title in names if compare_colours(colour, bar.colour) <= SAME_SERIES), "")
        value, printed = _read_value(picture, axis, bar, bars, labels)
        slack = 0.0 if soft or printed else _OFF * abs(axis.value_at(bar.tip + 0.5) - axis.value_at(bar.tip - 0.5))
        marks.append(ChartMark(category, series, value, bar.box, bar.colour, slack))
    marks, doubts = _name_series(marks, bool(names))
    if _contradict(marks) and _are_tiles(boxes):  # a heat map
        return None
    if _contradict(marks) or _are_nameless_and_equal(marks):
        marks, doubts = [], ["its bars could not be told apart"]
    ink = enclose_boxes([*boxes, axis.box, *(label.box for label in labels)])
    title, box = find_title(picture, ink, axis, [*labels, *legend])
    unit = axis.unit or find_unit(picture, axis, ink)
    return Chart("bar", box, title, tuple(marks), unit, "; ".join(doubts))


def _move_to_feet(axis: Axis, bars: Sequence[ChartBar]) -> Axis:
    """Return the axis so that the bars begin at 0, where only its labels told where that is."""
    zero = axis.find_position(0.0)
    feet = [float(bar.box.bottom if bar.tip < bar.base else bar.box.y) for bar in bars if bar.base == zero]
    if axis.marked or axis.log or zero is None or len(feet) < 2 or max(feet) - min(feet) > 1:
        return axis
    return replace(axis, start=axis.start - axis.value_at(median(feet)))


def _are_tiles(boxes: Sequence[Box]) -> bool:
    """Return whether boxes have no blank between them."""
    spans = sorted({(box.x, box.right) for box in boxes})
    return all(right[0] - left[1] <= NEAR for left, right in pairwise(spans))


def _are_nameless_and_equal(marks: Sequence[ChartMark]) -> bool:
    """Return whether no bar has a name and most have one value: they are highlights of something else."""
    counts = Counter(mark.value for mark in marks)
    return not any(mark.category for mark in marks) and max(counts.values()) > len(marks) / 2


def _contradict(marks: Sequence[ChartMark]) -> bool:
    """Return whether two marks over each other have the same names: pieces of one bar, or not bars at all."""
    spans: dict[tuple[str, str], list[Box]] = {}
    for mark in marks:
        spans.setdefault((mark.category, mark.series), []).append(mark.box)
    return any(
        one is not other and min(one.right, other.right) - max(one.x, other.x) > 0.5 * min(one.width, other.width)
        for boxes in spans.values() for one in boxes for other in boxes
    )  # fmt: skip


def _find_bar_plot(axis: Axis, room: tuple[int, int]) -> Box:
    low, high = axis.span
    top, bottom = max(0, int(low - 1.5 * axis.pitch)), int(high + 1.5 * axis.pitch)  # a label may be unread
    return Box(room[0], top, room[1] - room[0], bottom - top)


def _read_value(
    picture: ChartImage, axis: Axis, bar: ChartBar, bars: Sequence[ChartBar], labels: Sequence[ChartText]
) -> tuple[float, bool]:
    """Return the value of a bar, and whether it is printed on it: a printed number that agrees is more exact."""
    tip = _measure_tip(picture.pixels, bar)
    bottom = axis.find_position(0.0)
    first = bottom is None or abs(bar.base - bottom) < 1 or not any(_is_base_of(other, bar) for other in bars)
    value = axis.value_at(tip) if first else axis.value_at(tip) - axis.value_at(bar.base)
    step = abs(axis.value_at(axis.span[0]) - axis.value_at(axis.span[1]))
    others = {text.place for text in [*axis.labels, *labels]}
    printed = [
        text.number
        for text in picture.texts
        if text.number is not None and text.place not in others and _is_value_label(text, bar, picture.em)
    ]
    exact = [each for each in printed if abs(each - value) <= 0.012 * step]
    if exact:
        return min(exact, key=lambda each: abs(each - value)), True
    return round_to_step(value, step), False


def _is_base_of(below: ChartBar, bar: ChartBar) -> bool:
    """Return whether a segment is on top of another, perhaps with an edge between them."""
    return below is not bar and abs(below.tip - bar.base) <= NEAR and abs(below.box.x - bar.box.x) <= 2


def _measure_tip(pixels: Pixels, bar: ChartBar) -> float:
    """Return the tip to a fraction of a pixel: the row beyond it mixes the bar and its background."""
    up = bar.tip < bar.base
    bar = replace(bar, tip=_follow_round_end(pixels, bar))
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


def _follow_round_end(pixels: Pixels, bar: ChartBar) -> float:
    """Return the tip of a narrow bar with a round end, whose last rows are too short to belong to its region."""
    x, tip = bar.box.x + bar.box.width // 2, int(bar.tip)
    step = -1 if bar.tip < bar.base else 1
    for _ in range(bar.box.width // 2 + 1):
        row = tip - 1 if step < 0 else tip
        if not 0 <= row < len(pixels) or np.abs(pixels[row, x].astype(int) - bar.colour).max() > _ROUND_END:
            break
        tip += step
    return bar.tip if tip == int(bar.tip) else float(tip)


def _is_value_label(text: ChartText, bar: ChartBar, em: float) -> bool:
    """Return whether a number is directly at the tip of a bar, or in it."""
    x, y = text.middle
    across = abs(x - bar.box.x - bar.box.width / 2) <= bar.box.width / 2 + 2
    down = bar.box.y - 2.5 * em - text.box.height <= y <= bar.box.bottom + 2.5 * em + text.box.height
    return across and down


def _find_bar_legend(picture: ChartImage, bars: Sequence[ChartBar]) -> tuple[list[tuple[Colour, str]], list[ChartText]]:
    """Return the texts with a patch of a series' colour directly before them."""
    boxes = [bar.box for bar in bars]
    return find_legend(picture, _select_distinct_colours(bar.colour for bar in bars), boxes, enclose_boxes(boxes))


def _select_distinct_colours(colours: Iterable[Colour]) -> list[Colour]:
    """Return the colours that the eye can distinguish, in their order."""
    found: list[Colour] = []
    for colour in colours:
        if not any(compare_colours(colour, other) <= SAME_SERIES for other in found):
            found.append(colour)
    return found


def _name_series(marks: Sequence[ChartMark], legend: bool) -> tuple[list[ChartMark], list[str]]:
    """Name series without a legend by their colour, where there are several; note what doesn't fit."""
    doubts = []
    per_category = Counter(mark.category for mark in marks)
    several = len(_select_distinct_colours(mark.colour for mark in marks)) > 1 and max(per_category.values()) > 1
    out = [replace(mark, series=mark.series or (name_colour(mark.colour) if several else "")) for mark in marks]
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


@dataclass(frozen=True, slots=True)
class ChartBar:
    box: Box
    colour: Colour
    base: float  # where it begins
    tip: float  # where it ends


def find_bars(picture: ChartImage, axis: Axis, plot: Box) -> list[ChartBar]:
    """Return the bars in a plot, on the side of the axis where its labels suggest them, else on the other."""
    grounds = _find_backgrounds(picture, axis)
    labels = axis.box
    candidates = [
        region
        for region in join_strips(picture.regions, picture.em)
        if is_inside(region.box, plot, slack=0)
        and region.fill_share >= 0.72
        and min(region.sides, region.ends) >= 0.6
        and region.box.width >= THIN
        and all(compare_colours(region.colour, ground) >= VISIBLE for ground in grounds)
        and not labels.x - 2 <= region.box.x + region.box.width / 2 <= labels.right + 2
        and not any(
            is_inside(region.box, text.box, slack=1) or _is_swatch(picture, region, text) for text in picture.texts
        )
    ]
    pieces = join_pieces(join_halves(picture.pixels, join_pieces(candidates)))
    near = max(NEAR, 0.4 * picture.em)
    after = [piece for piece in pieces if piece.box.x >= labels.right]
    before = [piece for piece in pieces if piece.box.right <= labels.x]
    for side in (before, after) if picture.transposed else (after, before):  # labels are at the left, or below
        base = _find_base(axis, side, near)
        if base is not None and (bars := _stack_bars(side, base, near)):
            return bars
    return []


def _is_swatch(picture: ChartImage, region: ColourRegion, text: ChartText) -> bool:
    """Return whether a region is a small square directly before a name: part of the legend."""
    box, word = (transpose_box(region.box), transpose_box(text.box)) if picture.transposed else (region.box, text.box)
    small = max(box.width, box.height) <= 1.6 * picture.em and text.number is None
    return small and 0 <= word.x - box.right <= 1.5 * picture.em and word.y <= box.y + box.height / 2 <= word.bottom


def _find_backgrounds(picture: ChartImage, axis: Axis) -> set[Colour]:
    """Return the colours behind the labels and behind the plot."""
    box = axis.box
    found = {find_common_colour(crop_pixels(picture.pixels, box, margin=2).reshape(-1, 3))}
    tips, feet = _sample_bands(picture, axis)
    for away in (8, 13, 18, 23):
        for start in (box.right + away, box.x - away - 4):
            strip = crop_pixels(picture.pixels, Box(max(0, start), box.y, 4, box.height)).reshape(-1, 3)
            if start < 0 or not len(strip) or (colour := find_common_colour(strip)) in found:
                continue
            if _measure_share(strip, colour) < 0.6 or not _is_along_axis(picture, axis, colour):
                continue
            if _measure_share(tips, colour) >= _measure_share(feet, colour) - 0.02:
                found.add(colour)
    return found


def _is_along_axis(picture: ChartImage, axis: Axis, colour: Colour) -> bool:
    """Return whether a colour extends along the whole axis somewhere, as the background does between bars."""
    low, high = axis.span
    zero = axis.find_position(0.0)
    if zero is not None and low - 1.3 * axis.pitch <= zero <= high + 1.3 * axis.pitch:
        low, high = min(low, zero), max(high, zero)
    rows = picture.pixels[max(0, int(low)) : int(high) + 1 : 2, ::2]
    return bool(
        ((measure_distances(rows.reshape(-1, 3), colour) <= 4).reshape(rows.shape[:2]).mean(axis=0) >= 0.85).any()
    )


def _sample_bands(picture: ChartImage, axis: Axis) -> tuple[Pixels, Pixels]:
    """Return pixels where only the longest bars reach, and where nearly all do."""
    low, high = axis.span
    zero = axis.find_position(0.0)
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


def _measure_share(flat: Pixels, colour: Colour) -> float:
    return float((measure_distances(flat, colour) <= 4).mean()) if len(flat) else 0.0


def _find_base(axis: Axis, pieces: Sequence[ColourRegion], near: float) -> float | None:
    """Return where the bars begin: at zero if the axis has it, else where most of them do."""
    low, high = axis.span
    zero = axis.find_position(0.0)
    if zero is not None and low - 1.3 * axis.pitch <= zero <= high + 1.3 * axis.pitch:
        return zero if any(_is_touching(piece, zero, near) for piece in pieces) else None
    far = high if axis.slope < 0 else low
    ends = [piece.box.bottom if axis.slope < 0 else piece.box.y for piece in pieces]
    last = [end for end in ends if abs(end - far) <= 0.8 * axis.pitch]
    if len(last) < 2:
        return None
    counted = [(sum(abs(end - other) <= 2 for other in last), end) for end in last]
    count, end = max(counted)
    return float(end) if count >= 2 else None


def _stack_bars(pieces: Sequence[ColourRegion], base: float, near: float) -> list[ChartBar]:
    """Return the pieces that begin at the base or on each other, in both directions, all about equally wide."""
    on_it = [piece for piece in pieces if _is_touching(piece, base, near)]
    wide = [piece.box.width for piece in on_it if piece.box.height > 2]  # anything lower may be a line
    if not wide:
        return []
    width = median(wide)
    left = [piece for piece in pieces if abs(piece.box.width - width) <= max(3, 0.15 * width)]
    bars: list[ChartBar] = []
    for up in (True, False):
        tips: list[tuple[float, Box | None]] = [(base, None)]
        while tips:
            level, below = tips.pop()
            for piece in _find_next_pieces(left, level, below, near, up=up):
                left.remove(piece)
                tip = float(piece.box.y if up else piece.box.bottom)
                bars.append(ChartBar(piece.box, piece.colour, level, tip))
                tips.append((tip, piece.box))
    thick = [bar.colour for bar in bars if bar.box.height > NEAR]
    shown = [
        bar for bar in bars if not thick or any(compare_colours(bar.colour, colour) <= SAME_SERIES for colour in thick)
    ]
    return sorted(shown, key=lambda bar: (bar.box.x, -bar.box.y))


def _find_next_pieces(
    pieces: Sequence[ColourRegion], level: float, below: Box | None, near: float, *, up: bool
) -> list[ColourRegion]:
    """Return the pieces that begin at a level, on top of `below` if given; of two in one place, the nearer."""

    def away(piece: ColourRegion) -> tuple[bool, float]:
        return piece.box.height <= 2, abs((piece.box.bottom if up else piece.box.y) - level)  # lines come last

    found: list[ColourRegion] = []
    for piece in sorted(pieces, key=away):
        start, end = (piece.box.bottom, piece.box.y) if up else (piece.box.y, piece.box.bottom)
        aligned = below is None or (abs(piece.box.x - below.x) <= 2 and abs(piece.box.right - below.right) <= 2)
        free = all(piece.box.x >= other.box.right or piece.box.right <= other.box.x for other in found)
        if abs(start - level) <= near and (end < level) == up and aligned and free:
            found.append(piece)
    return found


def _is_touching(piece: ColourRegion, base: float, near: float) -> bool:
    return min(abs(piece.box.bottom - base), abs(piece.box.y - base)) <= near


def join_strips(regions: Sequence[ColourRegion], em: float) -> list[ColourRegion]:
    """Join the strips of one thin bar, whose edges are softer than its middle."""
    strips = sorted(
        (region for region in regions if region.box.width <= THIN and region.box.height > 2 * em),
        key=lambda region: region.box.x,
    )
    joined: list[list[ColourRegion]] = []
    for strip in strips:
        beside = next((each for each in joined if _is_next_strip(each[-1], strip)), None)
        if beside is None:
            joined.append([strip])
        else:
            beside.append(strip)
    thick = [each for each in joined if len(each) > 1]
    used = {id(region) for each in thick for region in each}
    whole = [
        replace(max(each, key=lambda region: (region.area, -each.index(region))), area=sum(one.area for one in each),
                box=enclose_boxes(region.box for region in each))
        for each in thick
    ]  # fmt: skip
    return [*(region for region in regions if id(region) not in used), *whole]


def _is_next_strip(one: ColourRegion, other: ColourRegion) -> bool:
    level = abs(one.box.y - other.box.y) <= 2 and abs(one.box.bottom - other.box.bottom) <= 2
    return level and other.box.x == one.box.right and compare_colours(one.colour, other.colour) <= SAME_BAR


def join_pieces(candidates: Iterable[ColourRegion]) -> list[ColourRegion]:
    """Join the pieces of bars that a grid line or a label has cut."""
    mended: list[ColourRegion] = []
    ends: dict[int, list[int]] = defaultdict(list)  # places in `mended` by where a piece ends
    for region in sorted(candidates, key=lambda each: each.box.y):
        for place in sorted(chain.from_iterable(ends.get(region.box.y - gap, ()) for gap in range(_CUT + 1))):
            above = mended[place]
            if _are_one_bar(above, region):
                thicker = max(above, region, key=lambda each: each.box.height)
                y = above.box.y
                whole = Box(thicker.box.x, y, thicker.box.width, region.box.bottom - y)
                mended[place] = replace(thicker, box=whole, area=above.area + region.area)
                ends[above.box.bottom].remove(place)
                ends[whole.bottom].append(place)
                break
        else:
            ends[region.box.bottom].append(len(mended))
            mended.append(region)
    return mended


def _are_one_bar(above: ColourRegion, below: ColourRegion) -> bool:
    """Return whether two pieces are of one bar: same colour and width, or one is just its edge."""
    one, other = above.box, below.box
    low = min(one.height, other.height)
    level = abs(one.x - other.x) <= 1 and abs(one.right - other.right) <= 1
    within = abs(one.x - other.x) <= 3 and abs(one.right - other.right) <= 3
    same = compare_colours(above.colour, below.colour) <= (
        SAME_BAR if low <= THIN + 2 else 8
    )  # a line mixes its colour
    return (level and same) or (low <= 2 and within)


def join_halves(pixels: Pixels, pieces: Sequence[ColourRegion]) -> list[ColourRegion]:
    """Join the halves of bars that a grid line has cut lengthwise: the line continues beyond the bar."""
    whole: list[ColourRegion] = []
    ends: dict[int, list[int]] = defaultdict(list)  # places in `whole` by where a half ends
    for region in sorted(pieces, key=lambda each: (each.box.x, each.box.y)):
        for place in sorted(chain.from_iterable(ends.get(region.box.x - gap, ()) for gap in range(1, _CUT + 1))):
            left = whole[place]
            if (
                compare_colours(left.colour, region.colour) <= 8
                and abs(left.box.y - region.box.y) <= 1
                and abs(left.box.bottom - region.box.bottom) <= 1
                and _has_line_beyond(
                    pixels, Box(left.box.right, left.box.y, region.box.x - left.box.right, left.box.height)
                )
            ):
                whole[place] = replace(left, box=enclose_boxes([left.box, region.box]), area=left.area + region.area)
                ends[left.box.right].remove(place)
                ends[whole[place].box.right].append(place)
                break
        else:
            ends[region.box.right].append(len(whole))
            whole.append(region)
    return whole


def _has_line_beyond(pixels: Pixels, gap: Box) -> bool:
    """Return whether what separates two halves is also drawn outside of them."""
    x = gap.x + gap.width // 2
    if x < 4 or x + 5 > pixels.shape[1]:
        return False
    above, below = pixels[max(0, gap.y - 14) : max(0, gap.y - 2)], pixels[gap.bottom + 2 : gap.bottom + 14]
    rows = np.concatenate([above, below])[:, x - 4 : x + 5].astype(np.int16)  # only some rows: it may be dashed
    apart = np.minimum(np.abs(rows[:, 4] - rows[:, 0]).max(axis=1), np.abs(rows[:, 4] - rows[:, 8]).max(axis=1))
    return bool((apart > 4).sum() >= 2)
