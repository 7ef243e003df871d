"""Line charts: follow each line and read it above the labels of the horizontal axis."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import numpy as np
from numpy.typing import NDArray

from sightline.model.geometry import Box
from sightline.reader.charts.axes import (
    TICKS,
    Axis,
    ChartImage,
    ChartText,
    cut_strips_beside,
    find_marks,
    round_to_step,
)
from sightline.reader.charts.captions import (
    SAME_SERIES,
    VISIBLE,
    find_label_rows,
    find_legend,
    find_title,
    find_unit,
    join_label_lines,
)
from sightline.reader.colours import crop_pixels, find_common_colour, measure_distances, name_colour, unmix_colour
from sightline.reader.reading import Chart, ChartMark, Colour, Pixels
from sightline.reader.rectangles import enclose_boxes, transpose_box

COLUMNS = 160  # of a line that are looked at, about
CUT = 0.12  # share of the columns in a row in which a line may be covered
BEYOND, PEAK = 0.06, 0.25  # shares of the plot's height: beyond all labelled points, and what a peak covers in a column
FLAT, STEEP = 0.8, 8  # share of level columns of a line in steps, and pixels of its jumps


def read_line_chart(picture: ChartImage, axis: Axis, room: tuple[int, int]) -> Chart | None:
    """Return the line chart of an axis, read at the labels of the other axis."""
    labels = _find_labels_below(picture, axis, room[1])
    if len(labels) < TICKS:
        return None
    places = _find_label_columns(picture, labels)
    plot = _find_line_plot(axis, labels, places)
    if plot.width < 20 or plot.height < 20:
        return None
    ground = find_common_colour(crop_pixels(picture.pixels, plot).reshape(-1, 3)[::3])
    plot = _cut_off_frame(picture.pixels, plot, ground, axis.span)
    ruled = [label.middle[1] - plot.y for label in axis.labels]
    colours = _find_line_colours(picture, plot, ground, (min(places), max(places)), ruled)
    if not colours:
        return None
    names, legend = find_legend(picture, colours, [], plot, ground)
    titles = dict(names)
    if titles:  # grey lines without a name in the legend are part of the frame
        colours = [colour for colour in colours if colour in titles or max(colour) - min(colour) > VISIBLE]
    marks: list[ChartMark] = []
    curves = [_Curve(colour, tuple(other for other in colours if other != colour), ground) for colour in colours]
    ends = (min(places), max(places))
    traces = [_trace(picture.pixels, plot, curve) for curve in curves]
    between: list[str] = []
    if any(_is_cut(trace, ends) for trace in traces):
        return None
    for colour, curve, trace in zip(colours, curves, traces, strict=True):
        series = titles.get(colour, name_colour(colour) if len(colours) > 1 else "")
        heights = [_find_height(picture.pixels, plot, place, curve) for place in places]
        points = list(zip(labels, places, heights, strict=True))
        marks += _read_marks(axis, curve, series, points)
        between += [f"{series or 'it'} is {phrase}" for phrase in _find_extremes(axis, plot, trace, points)]
    if len(marks) < TICKS:
        return None
    if any(map(_is_stepped, traces)):
        marks = []
    hidden = len(colours) * len(labels) - len(marks) if marks else 0
    doubts = [f"{hidden} points are covered or not there"] if hidden else []
    doubts += [] if marks else ["its lines go in steps"]
    if len(colours) > 1 and len(titles) < len(colours):
        doubts.append("lines that no legend names are named by their colour")
    ink = enclose_boxes([plot, axis.box, *(label.box for label in labels)])
    title, box = find_title(picture, ink, axis, [*labels, *legend])
    return Chart("line", box, title, tuple(marks), axis.unit or find_unit(picture, axis, ink), "; ".join(doubts),
                 "; ".join(between) if marks else "")  # fmt: skip


def _find_label_columns(picture: ChartImage, labels: Sequence[ChartText]) -> list[float]:
    """Return the column of each label's point: at its tick if it has one, else at its centre."""
    middles = [label.middle[0] for label in labels]
    turned = picture.pixels.transpose(1, 0, 2)
    ticks = find_marks(cut_strips_beside(turned, transpose_box(enclose_boxes(label.box for label in labels))), middles)
    return [middle if tick is None else tick for tick, middle in zip(ticks, middles, strict=True)]


def _find_line_plot(axis: Axis, labels: Sequence[ChartText], places: Sequence[float]) -> Box:
    """Return where lines are drawn: half a step beyond the first and last point, and down to the labels."""
    low, high = axis.span
    pitch = min(b - a for a, b in pairwise(sorted(places)))
    left, right = max(axis.box.right + 2, round(min(places) - pitch / 2)), round(max(places) + pitch / 2)
    top = max(0, round(low - 0.8 * axis.pitch))
    bottom = min(min(label.box.y for label in labels) - 2, round(high + axis.pitch))
    return Box(left, top, right - left, bottom - top)


def _read_marks(
    axis: Axis, curve: _Curve, series: str, points: Iterable[tuple[ChartText, float, float | None]]
) -> Iterator[ChartMark]:
    """Return a mark for each point whose height is known."""
    step = abs(axis.value_at(axis.span[0]) - axis.value_at(axis.span[1]))
    for label, x, y in points:
        if y is not None:
            box = Box(round(x) - 3, round(y) - 3, 6, 6)
            yield ChartMark(label.text, series, round_to_step(axis.value_at(y), step), box, curve.colour)


def _cut_off_frame(pixels: Pixels, plot: Box, ground: Colour, span: tuple[float, float]) -> Box:
    """Return the plot up to its frame, which is drawn from side to side."""
    inked = measure_distances(crop_pixels(pixels, plot), ground) > VISIBLE
    full = np.flatnonzero(inked.mean(axis=1) > 0.6) + plot.y
    top = max((int(row) + 1 for row in full if row < span[0] - 3), default=plot.y)
    bottom = min((int(row) for row in full if row > span[1] + 3), default=plot.bottom)
    return Box(plot.x, top, plot.width, bottom - top)


def _find_labels_below(picture: ChartImage, axis: Axis, end: int) -> list[ChartText]:
    """Return the first row of texts below the axis, as far as they are evenly spaced."""
    low, high = axis.span
    box = Box(axis.box.right, round(low), end - axis.box.right, round(high - low + 0.4 * picture.em))
    for row in find_label_rows(picture, box, set(axis.labels), below=True)[:4]:
        texts = sorted(row, key=lambda text: text.box.x)
        gaps = [b.middle[0] - a.middle[0] for a, b in pairwise(texts)]
        if len(texts) >= TICKS and texts[0].box.y - axis.box.bottom <= max(4 * picture.em, 1.5 * axis.pitch):
            max_gap = 2.2 * median(gaps)
            end = next((place for place, gap in enumerate(gaps) if gap > max_gap), len(gaps))
            return join_label_lines(picture, texts[: end + 1], set(axis.labels))
    return []


def _find_line_colours(
    picture: ChartImage, plot: Box, ground: Colour, ends: tuple[float, float], ruled: Sequence[float]
) -> list[Colour]:
    """Return the colours that cross the plot from its first label to its last; `ruled` is where a grid may be."""
    pixels = crop_pixels(picture.pixels, plot)
    inked = measure_distances(pixels, ground) > VISIBLE
    inked &= ~_find_grid(inked, ruled)
    rows, columns = np.nonzero(inked)
    drawn = pixels[rows, columns]
    left = drawn
    found: list[Colour] = []
    for _ in range(16):
        if len(left) < plot.width / 2:
            break
        colour = _find_frequent_colour(left)
        left = left[measure_distances(left, colour) > SAME_SERIES]
        if any(_is_soft_edge(colour, other, ground) for other in found):
            continue
        share, rest = unmix_colour(drawn, colour, ground)
        inked = (share > 0.5) & (share < 1.3) & (rest <= 20)
        within = (plot.x + columns >= ends[0]) & (plot.x + columns <= ends[1])
        if _is_line(rows[inked & within], columns[inked & within], plot, ends):
            found.append(colour)
            drawn, rows, columns = drawn[~inked], rows[~inked], columns[~inked]
    return found


def _find_grid(inked: NDArray[np.bool_], places: Sequence[float]) -> NDArray[np.bool_]:
    """Return the grid: full columns, and full rows at the labels."""
    full = inked.mean(axis=1) > 0.6
    at_label = (np.abs(np.arange(len(inked))[:, None] - np.array(places)) <= 3).any(axis=1)
    grid: NDArray[np.bool_] = (full & at_label)[:, None] | (inked.mean(axis=0) > 0.6)[None, :]
    return grid


def _find_frequent_colour(flat: Pixels) -> Colour:
    """Return the most common colour of the fullest bucket of shades."""
    coarse = (flat >> 4).astype(np.int64)
    packed = coarse[:, 0] << 8 | coarse[:, 1] << 4 | coarse[:, 2]
    return find_common_colour(flat[packed == np.bincount(packed, minlength=4096).argmax()])


def _is_soft_edge(colour: Colour, other: Colour, ground: Colour) -> bool:
    """Return whether a colour is another's soft edge."""
    share, rest = unmix_colour(np.array([[colour]], dtype=np.uint8), other, ground)
    return bool(0.1 <= share[0, 0] <= 1.1 and rest[0, 0] <= 15)


def _is_line(rows: NDArray[np.int64], columns: NDArray[np.int64], plot: Box, ends: tuple[float, float]) -> bool:
    """Return whether some pixels form lines: in most columns, a few in each, and not in straight rows or columns."""
    width = max(1.0, ends[1] - ends[0])
    per_column = np.bincount(columns, minlength=plot.width)
    per_row = np.bincount(rows, minlength=plot.height)
    bent = (per_row[rows] <= 0.6 * width) & (per_column[columns] <= 0.6 * plot.height)
    thick = np.bincount(columns[bent], minlength=plot.width)
    thick = thick[thick > 0]
    return bool(len(thick) >= 0.85 * width and np.median(thick) <= 0.2 * plot.height)


@dataclass(frozen=True, slots=True)
class _Curve:
    """A line to follow: its colour, the other lines' colours, and the background."""

    colour: Colour
    others: tuple[Colour, ...]
    ground: Colour

    def weigh_pixels(self, column: Pixels) -> NDArray[np.float64]:
        """Return how much of each pixel belongs to this line, where no other explains it better."""
        share, rest = unmix_colour(column, self.colour, self.ground)
        own = (rest <= 40) & (share > 0.4) & (share < 1.3)
        for other in self.others:
            other_share, left = unmix_colour(column, other, self.ground)
            own &= ~((left < rest) & (other_share > 0.4) & (other_share < 1.3))
        return np.where(own, np.minimum(share, 1.0), 0.0)


def _trace(pixels: Pixels, plot: Box, curve: _Curve) -> dict[int, tuple[int, int] | None]:
    """Return where a line begins and ends in some columns of the plot; None where it isn't."""
    first, last = max(0, plot.x), min(pixels.shape[1], plot.right)
    columns = range(first, last, max(1, (last - first) // COLUMNS))
    own = curve.weigh_pixels(pixels[plot.y : plot.bottom, columns.start : columns.stop : columns.step]) > 0.5
    tops, feet = own.argmax(axis=0), len(own) - 1 - own[::-1].argmax(axis=0)
    return {
        x: (int(top), int(foot)) if found else None
        for x, top, foot, found in zip(columns, tops, feet, own.sum(axis=0), strict=True)
    }


def _find_extremes(
    axis: Axis,
    plot: Box,
    trace: dict[int, tuple[int, int] | None],
    points: Sequence[tuple[ChartText, float, float | None]],
) -> Iterator[str]:
    """Yield where a line is clearly higher or lower than at all labels."""
    seen = [y - plot.y for _, _, y in points if y is not None]
    spans = {x: span for x, span in trace.items() if span and points[0][1] <= x <= points[-1][1]}
    if not seen or not spans:
        return
    half = median(foot - top for top, foot in spans.values()) / 2
    thin = {x: span for x, span in spans.items() if span[1] - span[0] <= PEAK * plot.height}
    for name, sign in (("highest", 1), ("lowest", -1)):
        heights = {x: top + half if sign > 0 else foot - half for x, (top, foot) in thin.items()}
        x = min(heights, key=lambda each: sign * heights[each], default=None)
        usual = min(seen, key=lambda each: sign * each)
        if x is not None and sign * (usual - heights[x]) > BEYOND * plot.height:
            step = abs(axis.value_at(axis.span[0]) - axis.value_at(axis.span[1]))
            value = round_to_step(axis.value_at(plot.y + heights[x] + 0.5), step)
            before = max((label for label in points if label[1] <= x), key=lambda each: each[1])
            after = min((label for label in points if label[1] >= x), key=lambda each: each[1])
            yield f"{name}, about {value:g}, between {before[0].text} and {after[0].text}"


def _is_cut(trace: dict[int, tuple[int, int] | None], ends: tuple[float, float]) -> bool:
    """Return whether a line is missing in many successive columns: it leaves the plot, or something covers it."""
    spans = [span for x, span in trace.items() if ends[0] <= x <= ends[1]]
    longest = run = 0
    for span in spans:
        run = run + 1 if span is None else 0
        longest = max(longest, run)
    return longest > CUT * len(spans)


def _is_stepped(trace: dict[int, tuple[int, int] | None]) -> bool:
    """Return whether a line is level, but for jumps: what it is at a label depends on which side is meant."""
    known = [span for span in trace.values() if span]
    if len(known) < 2:
        return False
    thick = median(end - start for start, end in known)
    level = sum(one == other for one, other in pairwise(known))
    jumps = sum(end - start > thick + STEEP for start, end in known)
    jumps += sum(abs(one[0] - other[0]) > thick + STEEP for one, other in pairwise(known))
    return level >= FLAT * (len(known) - 1) and jumps >= 2


def _find_height(pixels: Pixels, plot: Box, x: float, curve: _Curve) -> float | None:
    """Return where a line passes a column: the middle of its colour there, or between its neighbours."""
    here = _find_middle(pixels, plot, int(x), curve)
    if here is not None:
        return here
    sides = []
    for step in (-1, 1):
        near = [(away, _find_middle(pixels, plot, int(x) + step * away, curve)) for away in range(2, 9)]
        seen = [(away, y) for away, y in near if y is not None]
        if len(seen) >= 2:
            (first, y1), (last, y2) = seen[0], seen[-1]
            sides.append(y1 - (y2 - y1) * first / (last - first))
    return sum(sides) / len(sides) if sides else None


def _find_middle(pixels: Pixels, plot: Box, x: int, curve: _Curve) -> float | None:
    if not 0 <= x < pixels.shape[1]:
        return None
    weight = curve.weigh_pixels(pixels[plot.y : plot.bottom, x])
    places = np.flatnonzero(weight)
    if not len(places):
        return None
    groups = np.split(places, np.flatnonzero(np.diff(places) > 2) + 1)
    best = max(groups, key=lambda group: float(weight[group].sum()))
    if weight[best].max() < 0.6:
        return None
    return plot.y + float((best * weight[best]).sum() / weight[best].sum()) + 0.5
