"""What stands around a chart: the names of its bars and series, its title, its unit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median

import numpy as np

from sightline.model.geometry import Box
from sightline.seers.local.axes import Axis, Picture, Text
from sightline.seers.local.boxes import flipped, inside, union
from sightline.seers.local.colours import apart, commonest, distance, mixture
from sightline.seers.local.seen import Colour

SAME = 20  # shades of one series, in the channel that differs most
SEEN = 16  # what is drawn differs so much from the ground


def labels_of(picture: Picture, axis: Axis, bars: Sequence[Box], legend: Sequence[Text]) -> list[Text]:
    """The labels of the other axis: the row of texts beyond the bars that names the most of them.

    They stand below upright bars, and before those on their side, seldom behind them.
    """
    box, groups = union(bars), _groups(bars)
    taken = {*axis.labels, *legend}
    reach = 0.3 * box.width / max(1, len(groups))
    best: list[Text] = []
    for below in (False, True) if picture.turned else (True,):
        most = 0.0
        for rank, row in enumerate(label_rows(picture, box, taken, below=below)):
            named = sum(any(abs(text.middle[0] - group) <= reach for text in row) for group in groups)
            if named and named - 0.1 * rank > most:
                best, most = row, named - 0.1 * rank
        if most >= 0.5 * len(groups):
            break
    return whole_labels(picture, best, taken)


def label_rows(picture: Picture, box: Box, taken: set[Text], *, below: bool) -> list[list[Text]]:
    """Rows of texts beyond one end of the bars, the nearest first."""
    margin = 0.5 * picture.em
    texts = [
        text
        for text in picture.texts
        if text not in taken
        and box.x - 3 * picture.em <= text.middle[0] <= box.right + 3 * picture.em
        and (text.box.y >= box.bottom - margin if below else text.box.bottom <= box.y + margin)
    ]
    texts.sort(key=lambda text: text.box.y if below else -text.box.bottom)
    rows: list[list[Text]] = []
    for text in texts:
        edge = text.box.y if below else text.box.bottom
        last = rows[-1][0].box if rows else None
        if (
            last is not None
            and abs(edge - (last.y if below else last.bottom)) <= (1.3 if picture.turned else 0.7) * picture.em
        ):
            rows[-1].append(text)
        else:
            rows.append([text])
    return rows[:6]


def whole_labels(picture: Picture, row: Sequence[Text], taken: set[Text]) -> list[Text]:
    """Labels of two lines, put together."""
    whole = []
    for label in row:
        more = [
            text
            for text in picture.texts
            if text not in taken
            and text not in row
            and not picture.turned
            and 0 <= text.box.y - label.box.bottom <= 0.6 * picture.em
            and abs(text.middle[0] - label.middle[0]) <= picture.em
            and len(row) > 1
        ]
        text = " ".join([label.text, *(each.text for each in more)])
        whole.append(replace(label, text=text, box=union([label.box, *(each.box for each in more)])))
    return sorted(whole, key=lambda text: text.box.x)


def _groups(bars: Sequence[Box]) -> list[float]:
    """The middles of bars that stand close together."""
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


def category_of(bar: Box, labels: Sequence[Text], bars: Sequence[Box]) -> str:
    """The label that stands below a bar, or beside it; nothing where none is near."""
    if not labels:
        return ""
    middle = bar.x + bar.width / 2
    nearest = min(labels, key=lambda label: abs(label.middle[0] - middle))
    middles = sorted(label.middle[0] for label in labels)
    gaps = [b - a for a, b in pairwise(middles)]
    pitch = median(gaps) if gaps else union(bars).width
    return nearest.text if abs(nearest.middle[0] - middle) <= 0.55 * pitch else ""


def legend_of(
    picture: Picture, colours: Sequence[Colour], boxes: Sequence[Box], around: Box, ground: Colour | None = None
) -> tuple[list[tuple[Colour, str]], list[Text]]:
    """The name that stands beside each colour, nearest to the chart; with a ground, also beside thin soft lines."""
    found: dict[Colour, tuple[float, Text]] = {}
    for text in picture.texts:
        bare = text.text.strip()
        if text.number is not None and not re.fullmatch(r"(?:19|20)\d\d", bare):
            continue
        if not re.search(r"\w", bare) or re.fullmatch("[a-z]", bare):  # a dot, or a mark of a line, read as a letter
            continue
        patch, gap = _swatch(picture, text, colours, boxes)
        if patch is None:
            patch, gap = _patch(picture, text, boxes)
        if patch is None:
            continue
        near = _meant(patch, colours, ground)
        away = gap + _between(text.box, around)
        if near is not None and (near not in found or away < found[near][0]):
            found[near] = (away, text)
    return [(colour, text.text) for colour, (_, text) in found.items()], [text for _, text in found.values()]


def _between(one: Box, other: Box) -> float:
    """How far two boxes are from each other."""
    across = max(one.x - other.right, other.x - one.right, 0)
    down = max(one.y - other.bottom, other.y - one.bottom, 0)
    return float(across + down)


def _meant(patch: Colour, colours: Sequence[Colour], ground: Colour | None) -> Colour | None:
    """The colour of which a patch is a shade."""
    near = min(colours, key=lambda colour: distance(colour, patch), default=None)
    if near is None or distance(near, patch) <= SAME or ground is None:
        return near if near is not None and distance(near, patch) <= SAME else None
    mixed = []
    for colour in colours:
        share, rest = mixture(np.array([patch], dtype=np.uint8), colour, ground)
        if 0.35 <= share[0] <= 1.1 and rest[0] <= 25:
            mixed.append((float(rest[0]), colour))
    return min(mixed)[1] if mixed else None


def _swatch(
    picture: Picture, text: Text, colours: Sequence[Colour], boxes: Sequence[Box]
) -> tuple[Colour | None, float]:
    """A small region of a series' colour right before a text."""
    box = flipped(text.box) if picture.turned else text.box
    known = set(boxes)
    best: tuple[Colour | None, float] = (None, 0.0)
    for region in picture.regions:
        here = flipped(region.box) if picture.turned else region.box
        gap = (
            max(0, box.x - here.right) if abs(here.x - box.x) <= 3 else box.x - here.right
        )  # it may be read as a letter
        level = box.y - 3 <= here.y + here.height / 2 <= box.bottom + 3
        if not (
            0 <= gap <= 2.5 * picture.em and level and here.height <= 2 * picture.em and here.width <= 6 * picture.em
        ):
            continue
        if region.box in known or not any(distance(region.colour, colour) <= SAME for colour in colours):
            continue
        if best[0] is None or gap < best[1]:
            best = (region.colour, float(gap))
    return best


def _patch(picture: Picture, text: Text, boxes: Sequence[Box]) -> tuple[Colour | None, float]:
    """The colour of what is drawn right before a text, and how far before it."""
    pixels = picture.pixels.transpose(1, 0, 2) if picture.turned else picture.pixels
    box = flipped(text.box) if picture.turned else text.box
    reach = max(12, round(4.5 * picture.em))
    window = Box(box.x - reach, box.y, reach - 1, box.height)
    strip = pixels[max(0, window.y) : window.bottom, max(0, window.x) : max(0, window.right)]
    if strip.shape[0] < 3 or strip.shape[1] < 6:
        return None, 0.0
    ground = commonest(
        np.concatenate([strip[:, -3:].reshape(-1, 3), pixels[box.y : box.bottom, box.x : box.right].reshape(-1, 3)])
    )
    inked = apart(strip, ground) > SEEN
    columns = np.flatnonzero(inked.any(axis=0))
    if not len(columns):
        return None, 0.0
    last = int(columns[-1])
    breaks = np.flatnonzero(np.diff(columns) > 3)
    first = int(columns[breaks[-1] + 1]) if len(breaks) else int(columns[0])
    if last - first < 3 or first == 0:
        return None, 0.0
    middle = Box(max(0, window.x) + (first + last) // 2, box.y + box.height // 2, 1, 1)
    known = [flipped(each) if picture.turned else each for each in boxes]
    if any(inside(middle, each, slack=1) for each in known):
        return None, 0.0
    drawn = strip[:, first : last + 1][inked[:, first : last + 1]]
    return commonest(drawn), float(strip.shape[1] - last)


def titled(picture: Picture, ink: Box, axis: Axis, used: Sequence[Text]) -> tuple[str, Box]:
    """The largest text right above the chart; and the chart's box with that and the titles of its axes."""
    taken = {text.place for text in [*used, *axis.labels]}
    box = flipped(ink) if picture.turned else ink
    texts = [(text, flipped(text.box) if picture.turned else text.box) for text in picture.texts]
    free = [(text, here) for text, here in texts if text.place not in taken and text.number is None]
    above = [
        (worth, text, here) for text, here in free if (worth := _worth(here, box, picture.em)) and len(text.text) > 2
    ]
    _, title, place = max(above, key=lambda each: each[0], default=(0, None, box))
    more = [here for _, here in free if _names_axis(here, box, picture.em)]
    whole = union([box, place, *more, *(here for text, here in texts if text.place in taken)])
    return "" if title is None else title.text, flipped(whole) if picture.turned else whole


def _worth(here: Box, box: Box, em: float) -> float:
    """How much a text is a title: large, wide, and right above the chart."""
    above, middle = box.y - here.bottom, here.x + here.width / 2
    near = -2 * em <= above <= max(6 * em, 0.35 * box.height)
    if not near or not box.x - 2 * em <= middle <= box.right or here.height > 2.5 * em:
        return 0.0
    return here.height / em - 0.04 * max(0, above) / em + min(1.0, here.width / box.width)


def _names_axis(here: Box, box: Box, em: float) -> bool:
    """A text in the middle right below the chart, or one that stands upright at its left."""
    below = (
        0 <= here.y - box.bottom <= 2.5 * em and abs(here.x + here.width / 2 - box.x - box.width / 2) <= 0.2 * box.width
    )
    left = (
        -2 <= box.x - here.right <= 3 * em
        and here.height > 2 * here.width
        and box.y <= here.y + here.height / 2 <= box.bottom
    )
    return below or left


def unit_of(picture: Picture, axis: Axis, ink: Box) -> str:
    """The unit in brackets of the axis's own title, which stands beyond its labels."""
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
        if bracketed and level and (beside or (beyond and picture.turned)):
            return bracketed[1]
    return ""
