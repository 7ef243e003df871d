"""Labels of a chart, and axes: columns of labels whose numbers grow evenly with their position."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sightline.model.geometry import Box
from sightline.reader.colours import crop_pixels, find_common_colour, measure_distances
from sightline.reader.phrases import parse_amount, parse_number, points_separate_thousands
from sightline.reader.reading import Pixels, TextLine
from sightline.reader.rectangles import enclose_boxes, is_inside, transpose_box
from sightline.reader.regions import ColourRegion

TICKS, MAX_TICKS = 3, 40  # labels of an axis, at least and at most
MAX_AXES = 16  # axes of an image, at most: more columns of numbers are a table
MAX_OFFSET = 3.0  # pixels that a label may be off its place
INK_CONTRAST = 60  # the smallest difference in a channel between ink and background
WIDE, WIDER = (
    0.6,
    1.2,
)  # heights of a line: the smallest blank between two labels, and where it could separate thousands
_SWATCH = re.compile(r"^[●•■▪◼▲◆○□—–\-_~]+\s*(?=\w)")
APART = 0.8  # heights of a line: a blank between two names
CLOSE = 0.3  # heights of a line: a minus is closer to its number than other dashes
LOW = 6  # pixels: a lower line is not text
_SIGNED = re.compile(r"\d[\d.,]*[%kKM]")
_TICK = re.compile(r"(?<=[\w%‰$€£¥°)])\s*[-–—_|]+$")


@dataclass(frozen=True, slots=True)
class ChartText:
    """A line of text, transposed if the chart is."""

    place: int
    text: str
    box: Box
    number: float | None
    dashed: bool = False  # a dash is before it, which may be a minus

    @property
    def middle(self) -> tuple[float, float]:
        return self.box.x + self.box.width / 2, self.box.y + self.box.height / 2


@dataclass(frozen=True, slots=True)
class Axis:
    """value = slope · y + start, or its logarithm."""

    slope: float
    start: float
    log: bool
    labels: tuple[ChartText, ...]
    unit: str = ""
    marked: bool = False  # whether it was fitted to tick marks or grid lines, not only to its labels

    def value_at(self, y: float) -> float:
        plain = self.slope * y + self.start
        return 10.0**plain if self.log else plain

    def find_position(self, value: float) -> float | None:
        """Return the position of a value, or None if it has none."""
        if self.log and value <= 0:
            return None
        return ((math.log10(value) if self.log else value) - self.start) / self.slope

    @property
    def span(self) -> tuple[float, float]:
        middles = [label.middle[1] for label in self.labels]
        return min(middles), max(middles)

    @property
    def box(self) -> Box:
        return enclose_boxes(label.box for label in self.labels)

    @property
    def pitch(self) -> float:
        low, high = self.span
        return (high - low) / (len(self.labels) - 1)


@dataclass(frozen=True, slots=True)
class ChartImage:
    """What a chart is read from, transposed for charts on their side."""

    pixels: Pixels
    texts: tuple[ChartText, ...]
    regions: tuple[ColourRegion, ...]
    em: float
    transposed: bool


def find_axes(picture: ChartImage) -> list[Axis]:
    """Find columns of labels whose numbers grow evenly; each label belongs to one axis."""
    left = _settle_separators([text for text in picture.texts if text.number is not None], picture.em)
    found: list[Axis] = []
    for edge in (_get_right_edge, _get_left_edge, _get_centre):
        for group in _group_by_edge(left, edge, picture.em):
            while (axis := _fit_axis(group)) is not None:  # one may be above another
                axis = _add_labels(axis, left, picture.em)
                found.append(axis)
                if len(found) > MAX_AXES:
                    return []
                taken = {(text.place, text.box) for text in axis.labels}
                group = [text for text in group if (text.place, text.box) not in taken]
                left = [text for text in left if (text.place, text.box) not in taken]
    return [_snap_to_marks(picture, axis) for axis in found]


def _settle_separators(texts: list[ChartText], em: float) -> list[ChartText]:
    """Decide for each column whether points in its labels are decimals or separate thousands."""
    for edge in (_get_right_edge, _get_left_edge, _get_centre):
        for group in _group_by_edge(texts, edge, em):
            if points_separate_thousands([text.text for text in group]):
                read = {text: parse_amount(text.text, pointed=True) for text in group}
                texts = [replace(text, number=value[0]) if (value := read.get(text)) else text for text in texts]
    return texts


def _get_right_edge(text: ChartText) -> float:
    return text.box.right


def _get_left_edge(text: ChartText) -> float:
    return text.box.x


def _get_centre(text: ChartText) -> float:
    return text.middle[0]


def _group_by_edge(texts: Iterable[ChartText], edge: Callable[[ChartText], float], em: float) -> list[list[ChartText]]:
    """Return texts that share an edge, from top to bottom."""
    groups: list[list[ChartText]] = []
    for text in sorted(texts, key=edge):
        if groups and edge(text) - edge(groups[-1][-1]) <= 0.5 * em:
            groups[-1].append(text)
        else:
            groups.append([text])
    return [sorted(group, key=lambda text: text.middle[1]) for group in groups if len(group) >= TICKS]


def _fit_axis(group: Sequence[ChartText]) -> Axis | None:
    """Return the axis that fits the most labels, found by trying those that are close to each other."""
    best: Axis | None = None
    lost = [replace(text, number=-text.number) for text in group if text.dashed and text.number is not None]
    signed = sorted([*group, *lost], key=lambda text: text.middle[1])
    points = [(text.middle[1], text.number, text) for text in signed if text.number is not None][:MAX_TICKS]
    for log in (False, True):
        usable = [(y, math.log10(v) if log else v, text) for y, v, text in points if not log or v > 0]
        for (y1, v1, _), (y2, v2, _) in (pair for n in (1, 2, 3) for pair in zip(usable, usable[n:], strict=False)):
            if abs(y1 - y2) < 8 or v1 == v2:
                continue
            slope = (v2 - v1) / (y2 - y1)
            on = [(y, v, text) for y, v, text in usable if abs((v - v1) / slope + y1 - y) <= MAX_OFFSET]
            if len({round(y) for y, _, _ in on}) >= TICKS and (best is None or len(on) > len(best.labels)):
                slope, start = np.polyfit([y for y, _, _ in on], [v for _, v, _ in on], 1)
                best = Axis(float(slope), float(start), log, tuple(text for _, _, text in on))
        if best is not None:
            break
    if best is None:
        return None
    low, high = best.span
    between = [y for y, _, _ in points if low <= y <= high]
    units = {read[1] for text in best.labels if (read := parse_amount(text.text)) and read[1]}
    return (
        replace(best, unit=units.pop() if len(units) == 1 else "") if len(best.labels) >= 0.6 * len(between) else None
    )


def _add_labels(axis: Axis, texts: Iterable[ChartText], em: float) -> Axis:
    """Add labels that fit the axis and its column although a mark beside them was read as a letter."""
    box, taken = axis.box, set(axis.labels)
    more = [
        text
        for text in texts
        if text not in taken
        and box.x - em <= text.box.x
        and text.box.right <= box.right + 1.5 * em
        and text.number is not None
        and (at := axis.find_position(text.number)) is not None
        and abs(at - text.middle[1]) <= MAX_OFFSET
    ]
    return replace(axis, labels=(*axis.labels, *more))


def _snap_to_marks(picture: ChartImage, axis: Axis) -> Axis:
    """Fit the axis to the tick marks or grid lines beside its labels, where there are some."""
    places = find_marks(cut_strips_beside(picture.pixels, axis.box), [label.middle[1] for label in axis.labels])
    known = [(place, label) for place, label in zip(places, axis.labels, strict=True) if place is not None]
    if len(known) < 2:
        return axis
    values = [label.number or 0.0 for _, label in known]
    values = [math.log10(value) for value in values] if axis.log else values
    slope, start = np.polyfit([place for place, _ in known], values, 1)
    off = [abs((value - start) / slope - place) for (place, _), value in zip(known, values, strict=True)]
    return replace(axis, slope=float(slope), start=float(start), marked=True) if max(off) <= 1.5 else axis


def find_marks(strips: Iterable[NDArray[np.int16]], places: Sequence[float]) -> list[float | None]:
    """Return where something is drawn close to each place, by the first strip that has it for most of them."""
    for strip in strips:
        ground = np.median(strip, axis=1, keepdims=True)  # of each row
        plain = np.median(ground, axis=0, keepdims=True)
        drawn = np.abs(ground - plain).max(axis=(1, 2)) > 10
        marks = [_find_nearest_mark(drawn, place) for place in places]
        if sum(mark is not None for mark in marks) >= max(2, 0.7 * len(places)):
            return marks
    return [None] * len(places)


def cut_strips_beside(pixels: Pixels, box: Box) -> list[NDArray[np.int16]]:
    """Return narrow columns beside the labels, where ticks are drawn and grid lines begin."""
    width = pixels.shape[1]
    starts = [*range(box.right + 1, box.right + 14, 2), *range(box.x - 4, box.x - 16, -2)]
    return [pixels[:, start : start + 3].astype(np.int16) for start in starts if start >= 0 and start + 3 <= width]


def _find_nearest_mark(drawn: NDArray[np.bool_], y: float) -> float | None:
    low = max(0, round(y) - 5)
    places = np.flatnonzero(drawn[low : round(y) + 6]) + low
    if not len(places) or len(places) > 6:
        return None
    return float(places.mean()) + 0.5


def round_to_step(value: float, step: float) -> float:
    """Round to as many digits as the pixels justify."""
    if step <= 0 or not math.isfinite(value):
        return 0.0
    return round(value, max(0, 3 - math.floor(math.log10(step)))) + 0.0


def transpose_image(picture: ChartImage) -> ChartImage:
    return ChartImage(
        picture.pixels.transpose(1, 0, 2),
        tuple(replace(text, box=transpose_box(text.box)) for text in picture.texts),
        tuple(
            replace(region, box=transpose_box(region.box), sides=region.ends, ends=region.sides)
            for region in picture.regions
        ),
        picture.em,
        transposed=True,
    )


def read_labels(pixels: Pixels, lines: Sequence[TextLine]) -> tuple[ChartText, ...]:
    return tuple(text for place, line in enumerate(lines) for text in _split_line(pixels, place, line))


def _split_line(pixels: Pixels, place: int, line: TextLine) -> Iterator[ChartText]:
    words, blank = _split_numbers(line.text)
    if words:
        boxes = _split_boxes(pixels, line.box, len(words), blank) if blank else _divide_width(line.box, words)
        if boxes:
            yield from (ChartText(place, word, box, parse_number(word)) for word, box in zip(words, boxes, strict=True))
            return
    bare = _TICK.sub("", line.text)
    if (value := parse_number(bare)) is not None:
        yield ChartText(place, bare, _cut_off_tick(pixels, line.box), value, value > 0 and has_dash(pixels, line.box))
        return
    bare = _TICK.sub("", _SWATCH.sub("", line.text))
    box = line.box
    if _SWATCH.match(line.text):
        spans = _find_ink_spans(pixels, box)
        if len(spans) > 1 and spans[0][1] - spans[0][0] <= 3 * box.height:
            box = Box(spans[1][0], box.y, box.right - spans[1][0], box.height)
        yield ChartText(place, bare, box, None)
        return
    yield from (ChartText(place, name, box, None) for name, box in _split_names(pixels, bare, box))


def restore_minus_signs(pixels: Pixels, lines: Iterable[TextLine], plots: Sequence[Box]) -> tuple[TextLine, ...]:
    """Return the lines with the minus signs that the recogniser lost beside charts, marked as uncertain."""
    return tuple(
        replace(line, text=f"-{line.text}", box=_restore_minus(line.box), doubtful=_shift_doubtful(line.doubtful))
        if (parse_number(line.text) or 0) > 0 and line.text[:1].isdigit() and has_dash(pixels, line.box, CLOSE)
        and not any(is_inside(line.box, plot) for plot in plots)
        else line
        for line in lines
    )  # fmt: skip


def _shift_doubtful(indexes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the doubtful characters of a line after a doubtful minus was put before it."""
    return (0, *(index + 1 for index in indexes))


def _restore_minus(box: Box) -> Box:
    left = max(0, box.x - round(0.7 * box.height))
    return Box(left, box.y, box.right - left, box.height)


def has_dash(pixels: Pixels, box: Box, near: float = 0.5) -> bool:
    """Return whether a dash is directly before a number: a lost minus, or a tick of an axis."""
    wide = round(1.2 * box.height)
    part = crop_pixels(pixels, Box(max(0, box.x - wide), box.y, min(wide, box.x), box.height))
    if not part.size or box.height < LOW:
        return False
    inked = measure_distances(part, find_common_colour(part.reshape(-1, 3))) > INK_CONTRAST
    rows, columns = np.flatnonzero(inked.any(axis=1)), np.flatnonzero(inked.any(axis=0))
    if not len(rows):
        return False
    low = rows[-1] - rows[0] < max(LOW / 2, 0.25 * box.height) and 0.3 <= rows.mean() / box.height <= 0.8
    length = columns[-1] - columns[0] + 1
    return bool(low and 0.2 <= length / box.height <= 0.9 and part.shape[1] - columns[-1] - 1 <= near * box.height)


def _split_names(pixels: Pixels, text: str, box: Box) -> list[tuple[str, Box]]:
    """Return the names that were read as one line: the blank between them is wider than between words."""
    words = text.split()
    found: list[tuple[str, Box]] = []
    for word, place in zip(words, _split_boxes(pixels, box, len(words), 0.0), strict=False):
        if found and place.x - found[-1][1].right < APART * box.height:
            name, left = found[-1]
            found[-1] = f"{name} {word}", enclose_boxes([left, place])
        else:
            found.append((word, place))
    return found if len(found) > 1 else [(text, box)]


def _split_numbers(text: str) -> tuple[list[str], float]:
    """Return the numbers that were read as one line, and the blank that must separate them; 0: they touch."""
    words = text.split()
    if len(words) > 1 and all(parse_number(word) is not None for word in words):
        return words, WIDE if parse_number(text) is None else WIDER
    run = [match[0] for match in _SIGNED.finditer(text)] if parse_number(text) is None else []
    signed = len(run) > 2 and "".join(run) == text and len({each[-1] for each in run}) == 1
    return (run, 0.0) if signed else ([], 0.0)


def _divide_width(box: Box, words: Sequence[str]) -> list[Box]:
    """Divide the width of a line among its words by their letters."""
    each = box.width / sum(map(len, words))
    ends = [round(each * sum(map(len, words[:count]))) for count in range(len(words) + 1)]
    return [Box(box.x + start, box.y, end - start, box.height) for start, end in pairwise(ends)]


def _cut_off_tick(pixels: Pixels, box: Box) -> Box:
    """Remove the tick of the axis after a number: low ink in its last columns."""
    part = crop_pixels(pixels, box)
    spans = _find_ink_spans(pixels, box)
    if len(spans) < 2 or box.height < LOW:
        return box
    last = part[:, spans[-1][0] - box.x : spans[-1][1] - box.x]
    rows = np.flatnonzero((measure_distances(last, find_common_colour(part.reshape(-1, 3))) > INK_CONTRAST).any(axis=1))
    thin = rows[-1] - rows[0] < LOW / 2 and abs(rows.mean() + 0.5 - box.height / 2) <= box.height / 4
    return Box(box.x, box.y, spans[-2][1] - box.x, box.height) if thin else box


def _split_boxes(pixels: Pixels, box: Box, count: int, blank: float) -> list[Box]:
    """Return the boxes of that many labels, split at the widest blanks; none where those are too narrow."""
    spans = _find_ink_spans(pixels, box)
    gaps = sorted(range(1, len(spans)), key=lambda place: spans[place - 1][1] - spans[place][0])[: count - 1]
    if len(gaps) < max(count - 1, 1) or any(spans[gap][0] - spans[gap - 1][1] < blank * box.height for gap in gaps):
        return []
    edges = [0, *sorted(gaps), len(spans)]
    parts = [(spans[start][0], spans[end - 1][1]) for start, end in pairwise(edges)]
    return [Box(left, box.y, right - left, box.height) for left, right in parts]


def _find_ink_spans(pixels: Pixels, box: Box) -> list[tuple[int, int]]:
    """Return where there is ink in a line, from left to right."""
    part = crop_pixels(pixels, box)
    if not part.size:
        return []
    inked = np.flatnonzero(
        (measure_distances(part, find_common_colour(part.reshape(-1, 3))) > INK_CONTRAST).any(axis=0)
    )
    groups = np.split(inked, np.flatnonzero(np.diff(inked) > 1) + 1) if len(inked) else []
    return [(box.x + int(group[0]), box.x + int(group[-1]) + 1) for group in groups]
