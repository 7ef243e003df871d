"""Cut out and measure places that may be check boxes, radio buttons or switches.

Each place is given as two small pictures, of itself and of its surroundings, and as a row of numbers. The pictures say
how far a pixel is from the background and from the middle of the place, and how colourful it is: they are the same on a
light and on a dark page. What they mean is learnt, by bench/train_controls.py; a change here needs a new training.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sightline.model.geometry import Box
from sightline.reader.control_features import (
    FAR,
    Floats,
    Ints,
    Mask,
    PageLines,
    compare_all,
    differ,
    gather,
    list_boxes,
    measure_labels,
    sample_sides,
)
from sightline.reader.reading import Pixels
from sightline.reader.rectangles import enclose_boxes
from sightline.reader.regions import ColourRegion, Segments

PATCH = 20  # pixels: the side of the small pictures
AROUND = 1.0  # heights of a place: how far its surroundings reach on each side
SIDES = (9, 96)  # pixels: the height of a toggle, on ordinary and on dense screens
SHAPE = (0.72, 3.2)  # ratio of its width to its height
KNOB = (0.8, 1.25, 0.6)  # ratio of the width of a knob to its height, and the least share of its box that it fills
TRACK = (0.25, 1.15, 0.35)  # heights of a knob: how high its track may be, and how far it goes on beside it, at least
MOST_TRACKS, MOST_SMALL = 3, 4000  # beside one knob; small regions of an image
SQUARE = (0.77, 1.3, 11)  # of a toggle in a line: the ratio of its width to its height, from and to; the least height
IN_LINE = 0.7  # the same: the least share of the height of the line
MOVED, EDGE = 2, 3  # pixels of a small picture: how far it is moved to compare it with itself, and what isn't compared
BORDER = 4  # pixels of a small picture: how wide the border of a toggle may be
LETTERS = 1.2  # heights of a line: how near to its ends a toggle may be that was read with it
WEAK = 0.04  # the least strength by which differences are divided


@dataclass(frozen=True, slots=True)
class ToggleMeasures:
    """Small pictures of places and of their surroundings (place, row, column, channel), and rows of numbers."""

    own: Floats
    around: Floats
    numbers: Floats


def propose_toggles(segments: Segments) -> Ints:
    """Return the boxes that may be check boxes, radio buttons or switches."""
    drawn = (*segments.shapes, *(region.box for region in segments.regions), *_join_knobs(segments.regions))
    boxes = {
        box for box in drawn
        if SIDES[0] <= box.height <= SIDES[1] and SHAPE[0] * box.height <= box.width <= SHAPE[1] * box.height + 2
    }  # fmt: skip
    return list_boxes(sorted(boxes, key=lambda box: (box.y, box.x, box.width)))


def _join_knobs(regions: Sequence[ColourRegion]) -> Iterator[Box]:
    """Yield the boxes around a knob and the track beside it, which a shadow or a text may join to what is near."""
    small = [each for each in regions if 4 <= each.box.height <= SIDES[1] and each.box.width <= SHAPE[1] * SIDES[1]]
    if not 0 < len(small) <= MOST_SMALL:
        return
    edges = list_boxes(sorted((each.box for each in small), key=lambda box: box.y))
    middle, high = edges[:, 1] + edges[:, 3], edges[:, 3] - edges[:, 1]
    for knob in small:
        box = knob.box
        if not (
            SIDES[0] <= box.height and KNOB[0] * box.height <= box.width <= KNOB[1] * box.height
            and knob.fill_share >= KNOB[2]
        ):  # fmt: skip
            continue
        near = slice(*np.searchsorted(edges[:, 1], (box.y - 2, box.bottom)))
        left, _, right, _ = edges[near].T
        track = (
            (np.abs(middle[near] - 2 * box.y - box.height) <= 2 + box.height // 5)
            & (high[near] >= TRACK[0] * box.height) & (high[near] <= TRACK[1] * box.height)
            & (np.maximum(left - box.right, box.x - right) <= 3)
            & (np.maximum(right - box.right, box.x - left) >= TRACK[2] * box.height)
            & (np.maximum(right, box.right) - np.minimum(left, box.x) <= SHAPE[1] * box.height)
        )  # fmt: skip
        yield from (enclose_boxes([box, each]) for each in _list_places(edges[near][track][:MOST_TRACKS]))


def _list_places(edges: Ints) -> list[Box]:
    return [Box(left, top, right - left, bottom - top) for left, top, right, bottom in edges.tolist()]


def find_letters(boxes: Ints, page: PageLines) -> tuple[Mask, Mask]:
    """Return which boxes are in a line, neither at its beginning nor at its end, and which of these are letters.

    A toggle between two texts that were read as one line is nearly square and nearly as high as the line.
    """
    if not len(page.boxes):
        return np.zeros(len(boxes), bool), np.zeros(len(boxes), bool)
    a, b = boxes[:, None], page.boxes[None]
    wide, high, line = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1], b[..., 3] - b[..., 1]
    held = (a[..., 1] >= b[..., 1] - 1) & (a[..., 3] <= b[..., 3] + 1)
    held &= (a[..., 0] > b[..., 0] + LETTERS * line) & (a[..., 2] < b[..., 2] - LETTERS * line)
    in_text: Mask = held.max(axis=1)
    square = (wide >= SQUARE[0] * high) & (wide <= SQUARE[1] * high) & (high >= SQUARE[2])
    tall = (held & (high[:, None] >= IN_LINE * line)).max(axis=1)
    letters: Mask = in_text & ~(square & tall)
    return in_text, letters


def measure_asymmetry(own: Floats) -> tuple[Floats, Floats]:
    """Return how much small pictures of places differ from themselves with rows as columns, and upside down.

    Each is compared with itself moved by up to `MOVED` pixels, and the least difference counts.
    """
    shape, inner = own[..., 0], _mask_square(EDGE)
    across, down = shape.transpose(0, 2, 1), shape[:, ::-1]
    return _compare_moved(shape, across, inner, MOVED), _compare_moved(shape, down, inner, MOVED)


def measure_crookedness(own: Floats) -> Floats:
    """Return how much the borders in small pictures of places differ from themselves turned by half a turn."""
    shape = own[..., 0]
    return _compare_moved(shape, shape[:, ::-1, ::-1], _mask_square(1) & ~_mask_square(1 + BORDER), 1)


def _mask_square(edge: int) -> Mask:
    """Return which pixels of a small picture are not so near to its edge."""
    mask = np.zeros((PATCH, PATCH), dtype=bool)
    mask[edge : PATCH - edge, edge : PATCH - edge] = True
    return mask


def _compare_moved(some: Floats, others: Floats, where: Mask, reach: int) -> Floats:
    steps = range(-reach, reach + 1)
    moved = [np.roll(others, (down, right), axis=(1, 2)) for down in steps for right in steps]
    least: Floats = np.min([np.abs(some - each)[:, where].mean(axis=1) for each in moved], axis=0)
    return least


def measure_toggles(pixels: Pixels, boxes: Ints, page: PageLines, mates: Floats) -> ToggleMeasures:
    """Return the small pictures and the measures of boxes that may be toggles; `mates` says how many are like each."""
    count = len(boxes)
    wide, high = (boxes[:, 2] - boxes[:, 0]).astype(np.float32), (boxes[:, 3] - boxes[:, 1]).astype(np.float32)
    rim = sample_sides(pixels, boxes)[:, :, -4:-1]
    ground = np.median(rim.reshape(count, -1, 3), axis=1)
    uneven = np.abs(rim - ground[:, None, None, None]).max(axis=-1).reshape(count, -1) / 255
    patch = _cut_patches(pixels, boxes, np.ones(count, np.float32))
    off = differ(patch, ground[:, None, None])
    strength = np.percentile(off.reshape(count, -1), 97, axis=1).astype(np.float32)
    inner = slice(2 * PATCH // 5, PATCH - 2 * PATCH // 5)
    middle = np.median(patch[:, inner, inner].reshape(count, -1, 3), axis=1)
    reach = np.maximum(WEAK, strength)[:, None, None]
    tint = (patch.max(axis=-1) - patch.min(axis=-1)) / 255
    own = np.stack([off / reach, differ(patch, middle[:, None, None]) / reach, tint], axis=-1)
    wider = _cut_patches(pixels, boxes, AROUND * high)
    far = np.stack(
        [differ(wider, ground[:, None, None]) / reach, (wider.max(axis=-1) - wider.min(axis=-1)) / 255], axis=-1
    )
    labels = measure_labels(boxes, page, np.full(count, page.usual_size, np.float32))
    numbers = np.stack([
        high / page.usual_size, high / _measure_row_size(boxes, page), wide / high, np.minimum(high, 40) / 20, strength,
        tint.reshape(count, -1).max(axis=1), uneven.mean(axis=1), (uneven > 0.08).mean(axis=1),
        *_measure_crossing(boxes, page), np.abs(ground - middle).max(axis=1) / 255, ground.mean(axis=1) / 255,
        *labels[:, :4].T, *mates.T,
    ], axis=1)  # fmt: skip
    return ToggleMeasures(
        np.minimum(own, 1.5).astype(np.float32), np.minimum(far, 1.5).astype(np.float32), numbers.astype(np.float32)
    )


def _cut_patches(pixels: Pixels, boxes: Ints, margin: Floats) -> Floats:
    """Return each box with a margin as a small picture; a pixel of it is the mean of four samples."""
    left, top, right, bottom = (boxes[:, at, None, None].astype(np.float64) for at in range(4))
    edge = margin.astype(np.float64)[:, None, None]
    fine = 2 * PATCH
    place = (np.arange(fine) + 0.5) / fine
    x = left - edge + (right - left + 2 * edge) * place[None, None, :] - 0.5
    y = top - edge + (bottom - top + 2 * edge) * place[None, :, None] - 0.5
    dense = gather(pixels, x + 0 * y, y + 0 * x)
    small: Floats = dense.reshape(len(boxes), PATCH, 2, PATCH, 2, 3).mean(axis=(2, 4))
    return small


def _measure_crossing(boxes: Ints, page: PageLines) -> tuple[Floats, Floats, Floats, Floats]:
    """Measure whether a line lies across a box, whether the box is inside it, where in it, and how long the line is."""
    if not len(page.boxes):
        zero = np.zeros(len(boxes), np.float32)
        return zero, zero, zero, zero
    a, b = boxes[:, None], page.boxes[None]
    across = np.clip(np.minimum(a[..., 2], b[..., 2]) - np.maximum(a[..., 0], b[..., 0]), 0, None)
    down = np.clip(np.minimum(a[..., 3], b[..., 3]) - np.maximum(a[..., 1], b[..., 1]), 0, None)
    area = ((boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1]))[:, None]
    share = across * down / area
    best = share.argmax(axis=1)
    covered = share.max(axis=1)
    line = page.boxes[best]
    hit = covered > 0.1
    inside = hit & (boxes[:, 1] >= line[:, 1] - 1) & (boxes[:, 3] <= line[:, 3] + 1)
    start = np.where(hit, (boxes[:, 0] - line[:, 0]) / np.maximum(1, line[:, 3] - line[:, 1]), -3)
    return (
        covered.astype(np.float32), inside.astype(np.float32), np.clip(start, -3, 6).astype(np.float32),
        np.where(hit, np.minimum(page.lengths[best], 20) / 20, 0).astype(np.float32),
    )  # fmt: skip


def _measure_row_size(boxes: Ints, page: PageLines) -> Floats:
    """Return the size of the letters of the nearest line in each box's row, or that of the page."""
    if not len(page.boxes):
        return np.full(len(boxes), page.usual_size, np.float32)
    a, b = boxes[:, None], page.boxes[None]
    middle = (a[..., 1] + a[..., 3]) / 2
    level = (b[..., 1] - 3 <= middle) & (middle <= b[..., 3] + 3) & (page.lengths > 2)[None]
    away = np.maximum(b[..., 0] - a[..., 2], a[..., 0] - b[..., 2])
    away = np.where(level & (away < FAR * page.usual_size), np.maximum(away, 0), 10**6)
    nearest = away.argmin(axis=1)
    return np.where(away.min(axis=1) < 10**6, page.sizes[nearest], page.usual_size).astype(np.float32)


def measure_mates(boxes: Ints) -> Floats:
    """Count the boxes of the same size in the same column, in the same row, and anywhere."""
    apart = ~np.eye(len(boxes), dtype=bool)
    a, b = boxes[:, None], boxes[None]
    like = (np.abs((a[..., 2] - a[..., 0]) - (b[..., 2] - b[..., 0])) <= 1) & (
        np.abs((a[..., 3] - a[..., 1]) - (b[..., 3] - b[..., 1])) <= 1
    )
    like &= apart
    column, row = np.abs(a[..., 0] - b[..., 0]) <= 1, np.abs(a[..., 1] - b[..., 1]) <= 1
    counts = [(like & column).sum(axis=1), (like & row).sum(axis=1), like.sum(axis=1)]
    within, around = compare_all(boxes, boxes, slack=0)
    counts += [(within & apart).sum(axis=1), (around & apart).sum(axis=1)]
    return np.stack([np.log1p(np.minimum(each, 12)) for each in counts], axis=1).astype(np.float32)
