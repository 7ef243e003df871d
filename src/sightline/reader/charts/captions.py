"""What is written around a chart: the names of its bars and series, its title, its unit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median

import numpy as np

from sightline.model.geometry import Box
from sightline.reader.charts.axes import Axis, ChartImage, ChartText
from sightline.reader.colours import compare_colours, find_common_colour, measure_distances, unmix_colour
from sightline.reader.reading import Colour
from sightline.reader.rectangles import enclose_boxes, is_inside, measure_distance, transpose_box

SAME_SERIES = 20  # the largest difference in a channel between shades of one series
VISIBLE = 16  # the smallest difference between what is drawn and the background
LABEL_REACH, LEGEND_REACH = 4, 10  # heights of a line: how far from the plot its labels and its legend are, at most


def find_category_labels(
    picture: ChartImage, axis: Axis, bars: Sequence[Box], legend: Sequence[ChartText]
) -> list[ChartText]:
    """Return the labels of the category axis: the row of texts beyond the bars that names the most of them.

    They are below upright bars, and before horizontal ones, rarely after them.
    """
    box, groups = enclose_boxes(bars), find_group_centres(bars)
    taken = {*axis.labels, *legend}
    reach = 0.3 * box.width / max(1, len(groups))
    best: list[ChartText] = []
    for below in (False, True) if picture.transposed else (True,):
        best_score = 0.0
        plot = enclose_boxes([box, axis.box])
        for rank, row in enumerate(find_label_rows(picture, box, taken, below=below)):
            away = row[0].box.y - plot.bottom if below else plot.y - row[0].box.bottom
            if away > max(LABEL_REACH * picture.em, 1.5 * axis.pitch):
                break
            named = sum(any(abs(text.middle[0] - group) <= reach for text in row) for group in groups)
            if named and named - 0.1 * rank > best_score:
                best, best_score = row, named - 0.1 * rank
        if best_score >= 0.5 * len(groups):
            break
    return join_label_lines(picture, best, taken)


def find_label_rows(picture: ChartImage, box: Box, taken: set[ChartText], *, below: bool) -> list[list[ChartText]]:
    """Return rows of texts beyond one end of the bars, the nearest first."""
    margin = 0.5 * picture.em
    texts = [
        text
        for text in picture.texts
        if text not in taken
        and box.x - 3 * picture.em <= text.middle[0] <= box.right + 3 * picture.em
        and (text.box.y >= box.bottom - margin if below else text.box.bottom <= box.y + margin)
    ]
    texts.sort(key=lambda text: text.box.y if below else -text.box.bottom)
    rows: list[list[ChartText]] = []
    for text in texts:
        edge = text.box.y if below else text.box.bottom
        last = rows[-1][0].box if rows else None
        if (
            last is not None
            and abs(edge - (last.y if below else last.bottom)) <= (1.3 if picture.transposed else 0.7) * picture.em
        ):
            rows[-1].append(text)
        else:
            rows.append([text])
    return rows[:6]


def join_label_lines(picture: ChartImage, row: Sequence[ChartText], taken: set[ChartText]) -> list[ChartText]:
    """Join labels of two lines."""
    whole = []
    for label in row:
        more = [
            text
            for text in picture.texts
            if 0 <= text.box.y - label.box.bottom <= 0.6 * picture.em
            and abs(text.middle[0] - label.middle[0]) <= picture.em
            and text not in taken
            and text not in row
            and not picture.transposed
            and len(row) > 1
        ]
        text = " ".join([label.text, *(each.text for each in more)])
        whole.append(replace(label, text=text, box=enclose_boxes([label.box, *(each.box for each in more)])))
    return sorted(whole, key=lambda text: text.box.x)


def find_group_centres(bars: Sequence[Box]) -> list[float]:
    """Return the centres of bars that are close together."""
    boxes = sorted({(bar.x, bar.right) for bar in bars})
    width = median(right - left for left, right in boxes)
    groups: list[list[tuple[int, int]]] = []
    gaps = [b[0] - a[1] for a, b in pairwise(boxes)]
    wide = (min(gaps) + max(gaps)) / 2 if gaps and max(gaps) > max(2 * max(0, min(gaps)), 0.3 * width) else -1
    for box in boxes:
        if groups and box[0] - groups[-1][-1][1] <= wide:
            groups[-1].append(box)
        else:
            groups.append([box])
    return [(group[0][0] + group[-1][1]) / 2 for group in groups]


def find_category(bar: Box, labels: Sequence[ChartText], bars: Sequence[Box]) -> str:
    """Return the label below or beside a bar, or "" if none is near."""
    if not labels:
        return ""
    middle = bar.x + bar.width / 2
    nearest = min(labels, key=lambda label: abs(label.middle[0] - middle))
    middles = sorted(label.middle[0] for label in labels)
    gaps = [b - a for a, b in pairwise(middles)]
    pitch = median(gaps) if gaps else enclose_boxes(bars).width
    return nearest.text if abs(nearest.middle[0] - middle) <= 0.55 * pitch else ""


def find_legend(
    picture: ChartImage, colours: Sequence[Colour], boxes: Sequence[Box], around: Box, ground: Colour | None = None
) -> tuple[list[tuple[Colour, str]], list[ChartText]]:
    """Return the name beside each colour, the nearest to the chart; with `ground`, also beside thin soft lines."""
    found: dict[Colour, tuple[float, ChartText]] = {}
    for text in picture.texts:
        bare = text.text.strip()
        if text.number is not None and not re.fullmatch(r"(?:19|20)\d\d", bare):
            continue
        if not re.search(r"\w", bare) or re.fullmatch("[a-z]", bare):  # a dot, or a mark of a line, read as a letter
            continue
        patch, gap = _find_swatch(picture, text, colours, boxes)
        if patch is None:
            patch, gap = _find_patch(picture, text, boxes)
        if patch is None:
            continue
        near = _match_colour(patch, colours, ground)
        away = gap + measure_distance(text.box, around)
        close = away <= LEGEND_REACH * picture.em
        if near is not None and close and (near not in found or away < found[near][0]):
            found[near] = (away, text)
    return [(colour, text.text) for colour, (_, text) in found.items()], [text for _, text in found.values()]


def _match_colour(patch: Colour, colours: Sequence[Colour], ground: Colour | None) -> Colour | None:
    """Return the series colour of which a patch is a shade."""
    near = min(colours, key=lambda colour: compare_colours(colour, patch), default=None)
    if near is None or compare_colours(near, patch) <= SAME_SERIES or ground is None:
        return near if near is not None and compare_colours(near, patch) <= SAME_SERIES else None
    mixed = []
    for colour in colours:
        share, rest = unmix_colour(np.array([patch], dtype=np.uint8), colour, ground)
        if 0.35 <= share[0] <= 1.1 and rest[0] <= 25:
            mixed.append((float(rest[0]), colour))
    return min(mixed)[1] if mixed else None


def _find_swatch(
    picture: ChartImage, text: ChartText, colours: Sequence[Colour], boxes: Sequence[Box]
) -> tuple[Colour | None, float]:
    """Return a small region of a series' colour directly before a text, and its distance."""
    box = transpose_box(text.box) if picture.transposed else text.box
    known = set(boxes)
    best: tuple[Colour | None, float] = (None, 0.0)
    for region in picture.regions:
        here = transpose_box(region.box) if picture.transposed else region.box
        gap = (
            max(0, box.x - here.right) if abs(here.x - box.x) <= 3 else box.x - here.right
        )  # it may be read as a letter
        level = box.y - 3 <= here.y + here.height / 2 <= box.bottom + 3
        if not (
            0 <= gap <= 2.5 * picture.em and level and here.height <= 2 * picture.em and here.width <= 6 * picture.em
        ):
            continue
        if region.box in known or not any(compare_colours(region.colour, colour) <= SAME_SERIES for colour in colours):
            continue
        if best[0] is None or gap < best[1]:
            best = (region.colour, float(gap))
    return best


def _find_patch(picture: ChartImage, text: ChartText, boxes: Sequence[Box]) -> tuple[Colour | None, float]:
    """Return the colour of what is drawn directly before a text, and its distance."""
    pixels = picture.pixels.transpose(1, 0, 2) if picture.transposed else picture.pixels
    box = transpose_box(text.box) if picture.transposed else text.box
    reach = max(12, round(4.5 * picture.em))
    window = Box(box.x - reach, box.y, reach - 1, box.height)
    strip = pixels[max(0, window.y) : window.bottom, max(0, window.x) : max(0, window.right)]
    if strip.shape[0] < 3 or strip.shape[1] < 6:
        return None, 0.0
    ground = find_common_colour(
        np.concatenate([strip[:, -3:].reshape(-1, 3), pixels[box.y : box.bottom, box.x : box.right].reshape(-1, 3)])
    )
    inked = measure_distances(strip, ground) > VISIBLE
    columns = np.flatnonzero(inked.any(axis=0))
    if not len(columns):
        return None, 0.0
    last = int(columns[-1])
    breaks = np.flatnonzero(np.diff(columns) > 3)
    first = int(columns[breaks[-1] + 1]) if len(breaks) else int(columns[0])
    if last - first < 3 or first == 0:
        return None, 0.0
    middle = Box(max(0, window.x) + (first + last) // 2, box.y + box.height // 2, 1, 1)
    known = [transpose_box(each) if picture.transposed else each for each in boxes]
    if any(is_inside(middle, each, slack=1) for each in known):
        return None, 0.0
    drawn = strip[:, first : last + 1][inked[:, first : last + 1]]
    return find_common_colour(drawn), float(strip.shape[1] - last)


def find_title(picture: ChartImage, ink: Box, axis: Axis, used: Sequence[ChartText]) -> tuple[str, Box]:
    """Return the largest text directly above the chart, and the chart's box including it and the axis titles."""
    taken = {text.place for text in [*used, *axis.labels]}
    box = transpose_box(ink) if picture.transposed else ink
    texts = [(text, transpose_box(text.box) if picture.transposed else text.box) for text in picture.texts]
    free = [(text, here) for text, here in texts if text.place not in taken and text.number is None]
    above = [
        (worth, text, here)
        for text, here in free
        if (worth := _score_title(here, box, picture.em)) and len(text.text) > 2
    ]
    _, title, place = max(above, key=lambda each: each[0], default=(0, None, box))
    more = [here for _, here in free if _is_axis_title(here, box, picture.em)]
    whole = enclose_boxes([box, place, *more, *(here for text, here in texts if text.place in taken)])
    return "" if title is None else title.text, transpose_box(whole) if picture.transposed else whole


def _score_title(here: Box, box: Box, em: float) -> float:
    """Score a text as a title: large, wide, and directly above the chart."""
    above, middle = box.y - here.bottom, here.x + here.width / 2
    near = -2 * em <= above <= max(6 * em, 0.35 * box.height)
    if not near or not box.x - 2 * em <= middle <= box.right or here.height > 2.5 * em:
        return 0.0
    return here.height / em - 0.04 * max(0, above) / em + min(1.0, here.width / box.width)


def _is_axis_title(here: Box, box: Box, em: float) -> bool:
    """Return whether a text is centred below the chart, or upright at its left."""
    below = (
        0 <= here.y - box.bottom <= 2.5 * em and abs(here.x + here.width / 2 - box.x - box.width / 2) <= 0.2 * box.width
    )
    left = (
        -2 <= box.x - here.right <= 3 * em
        and here.height > 2 * here.width
        and box.y <= here.y + here.height / 2 <= box.bottom
    )
    return below or left


def find_unit(picture: ChartImage, axis: Axis, ink: Box) -> str:
    """Return the unit in brackets at the end of the axis's own title."""
    labels = axis.box
    for text in picture.texts:
        bracketed = re.search(r"[(\[]([^()\[\]]{1,24})[)\]]\s*$", text.text)
        beside = text.box.right <= labels.x + 2 and text.box.x >= labels.x - 6 * picture.em
        beyond = (
            text.box.x >= labels.right - 2
            and text.box.right <= labels.right + 6 * picture.em
            and labels.x >= ink.right - 2
        )
        level = labels.y - 3 * picture.em <= text.middle[1] <= labels.bottom + 3 * picture.em
        if bracketed and level and (beside or (beyond and picture.transposed)):
            return bracketed[1]
    return ""
