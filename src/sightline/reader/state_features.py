"""Measure how lines differ from their siblings, and controls from others of their kind: what is selected or disabled.

Every measure is relative to siblings or to the page. What the numbers mean together is learnt from pages, by
bench/train_controls.py; a change here needs a new training.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sightline.reader.control_features import Floats, Ints, Mask, PageLines, compare_all, differ, gather, list_boxes
from sightline.reader.reading import TOGGLES, InterfacePart, PartKind, Pixels

NEAR, FAR = 9.0, 30.0  # letter sizes: between items of a row or column, and across a whole one
ONE_SIZE = 1.35  # ratio of the letter sizes of siblings
MOST_MATES = 8
SAME = 0.05  # difference of two colours that are the same, 0 to 1
STEPS = 24  # places below or beside a text where a line is looked for
STATEFUL: tuple[PartKind, ...] = ("button", "field", *TOGGLES)


def measure_items(pixels: Pixels, page: PageLines, holders: Ints, parts: Sequence[InterfacePart]) -> Floats:
    """Return a row for each line: how it differs from the lines in its column and in its row."""
    looks = _measure_looks(pixels, page)
    held = _measure_holders(page, holders)
    column, row = find_siblings(page)
    size = page.usual_size
    height, width = pixels.shape[:2]
    pressed = list_boxes([part.box for part in parts if part.kind == "button"])
    inside = compare_all(page.boxes, pressed, slack=2)[0].any(axis=1) if len(pressed) else np.zeros(len(page.boxes))
    middle = (page.boxes[:, :2] + page.boxes[:, 2:]) / 2
    own = np.stack([
        page.sizes / size, np.minimum(page.lengths, 40), page.contrasts,
        page.contrasts / max(0.05, page.usual_contrast), page.tints, page.letters,
        inside, middle[:, 0] / width, middle[:, 1] / height,
    ], axis=1)  # fmt: skip
    traits = np.concatenate([looks, held, own[:, 2:3], own[:, 6:7]], axis=1)
    compared = [_compare_siblings(page, mates, traits) for mates in (column, row)]
    return np.concatenate([own, looks, held, *compared], axis=1).astype(np.float32)


def _measure_looks(pixels: Pixels, page: PageLines) -> Floats:
    """Measure how bold each line is, and whether a line is drawn below, above or before it."""
    left, top, right, bottom = (page.boxes[:, at, None, None].astype(np.float64) for at in range(4))
    x = left + (right - 1 - left) * np.linspace(0, 1, 40)[None, None]
    y = top + (bottom - 1 - top) * np.linspace(0, 1, 9)[None, :, None]
    off = differ(gather(pixels, x + 0 * y, y + 0 * x), page.grounds[:, None, None])
    weight = off.mean(axis=(1, 2)) / np.maximum(0.05, page.contrasts)
    unit = page.sizes[:, None, None].astype(np.float64)
    away = np.linspace(0.15, 2.0, STEPS)[None, :, None]
    places = np.linspace(0.1, 0.9, 5)[None, None]
    below = gather(pixels, left + (right - left) * places + 0 * away, bottom + unit * away + 0 * places)
    above = gather(pixels, left + (right - left) * places + 0 * away, top - unit * away + 0 * places)
    before = gather(pixels, left - 1.6 * unit * away + 0 * places, top + (bottom - top) * places + 0 * away)
    lines = [_measure_rule(strip, page.grounds) for strip in (below, above, before)]
    return np.concatenate([weight[:, None], *lines], axis=1)


def _measure_rule(strip: Floats, grounds: Floats) -> Floats:
    """Measure the strongest place of a strip where all of it differs from the background, and how much is like that."""
    off = differ(strip, grounds[:, None, None]).min(axis=2)
    first = np.where((off > 0.08).any(axis=1), (off > 0.08).argmax(axis=1), STEPS) / STEPS
    return np.stack([off.max(axis=1), first, (off > 0.08).mean(axis=1)], axis=1)


def _measure_holders(page: PageLines, holders: Ints) -> Floats:
    """Measure the smallest region around each line: its height and width in letter sizes, and its margins."""
    if not len(holders):
        return np.full((len(page.boxes), 4), 20, np.float32)
    inside = compare_all(page.boxes, holders, slack=1)[0]
    wide, high = holders[:, 2] - holders[:, 0], holders[:, 3] - holders[:, 1]
    area = np.where(inside, (wide * high)[None], 10**9)
    best = area.argmin(axis=1)
    some: Mask = inside.max(axis=1)
    margin = page.boxes[:, 0] - holders[best, 0]
    values = np.stack([high[best], wide[best], margin], axis=1) / page.sizes[:, None]
    count = compare_all(holders, page.boxes, slack=1)[1].sum(axis=1)[best]
    found = np.concatenate([np.clip(values, -1, 40), np.minimum(count, 12)[:, None]], axis=1)
    return np.where(some[:, None], found, 40).astype(np.float32)


def find_siblings(page: PageLines) -> tuple[Mask, Mask]:
    """Return which lines are below each other and begin alike, and which are beside each other."""
    boxes, unit = page.boxes.astype(np.float64), page.sizes.astype(np.float64)
    ratio = unit[:, None] / unit[None]
    alike = (ratio < ONE_SIZE) & (ratio > 1 / ONE_SIZE) & ~np.eye(len(boxes), dtype=bool)
    middle = (boxes[:, 1] + boxes[:, 3]) / 2
    step = np.maximum(unit[:, None], unit[None])
    down = np.abs(middle[:, None] - middle[None])
    left = np.abs(boxes[:, None, 0] - boxes[None, :, 0])
    column = alike & (left <= 0.3 * step + 2) & (down > 0.9 * step) & (down <= FAR * step)
    gap = np.maximum(boxes[:, None, 0] - boxes[None, :, 2], boxes[None, :, 0] - boxes[:, None, 2])
    row = alike & (down <= 0.35 * step) & (gap > 0.3 * step) & (gap <= FAR * step)
    return _keep_near(column, down / step), _keep_near(row, gap / step)


def _keep_near(mates: Mask, away: NDArray[np.float64]) -> Mask:
    """Keep the nearest siblings of each line, if one of them is near."""
    distance = np.where(mates, away, np.inf)
    order = np.sort(distance, axis=1)[:, : MOST_MATES + 1]
    limit = order[:, min(MOST_MATES, order.shape[1]) - 1][:, None]
    near = order[:, :1] <= NEAR
    return mates & (distance <= limit) & near


def _compare_siblings(page: PageLines, mates: Mask, looks: Floats) -> Floats:
    """Measure how each line differs from its siblings, and how alike those are."""
    count = mates.sum(axis=1)
    shares = mates / np.maximum(1, count)[:, None]
    ground, ink = differ(page.grounds[:, None], page.grounds[None]), differ(page.inks[:, None], page.inks[None])
    pieces = [np.minimum(count, MOST_MATES)]
    for distance in (ground, ink):
        chosen = np.where(mates, distance, np.nan)
        pieces += [_reduce(np.nanmin, chosen), _reduce(np.nanmedian, chosen), (mates & (distance <= SAME)).sum(axis=1)]
        pieces.append(((shares @ distance) * shares).sum(axis=1))
    return np.concatenate([np.stack(pieces, axis=1), looks - _find_medians(mates, looks)], axis=1).astype(np.float32)


def _find_medians(mates: Mask, looks: Floats) -> Floats:
    """Return the middle of each measure among the siblings of each line; its own where it has none."""
    order = np.argsort(~mates, axis=1, kind="stable")[:, : MOST_MATES + 1]
    known = np.take_along_axis(mates, order, axis=1)
    known[:, 0] |= ~known.any(axis=1)
    order[:, 0] = np.where(mates.any(axis=1), order[:, 0], np.arange(len(mates)))
    medians: Floats = np.nanmedian(np.where(known[:, :, None], looks[order], np.nan), axis=1)
    return medians


def _reduce(function: object, chosen: NDArray[np.float64]) -> NDArray[np.float64]:
    empty: Mask = np.isnan(chosen).min(axis=1)
    safe = np.where(empty[:, None], 0, chosen)
    result: NDArray[np.float64] = function(safe, axis=1)  # type: ignore[operator]
    return np.where(empty, -1, result)


def measure_paleness(pixels: Pixels, parts: Sequence[InterfacePart], page: PageLines) -> Floats:
    """Return a row for each control: how clearly it and its text are drawn, compared with others of its kind."""
    boxes = list_boxes([part.box for part in parts])
    inner = _sample_part(pixels, boxes, 0.0)
    around = _sample_ground(pixels, boxes)
    off = differ(inner, around[:, None, None]).reshape(len(parts), -1)
    fill = np.median(inner.reshape(len(parts), -1, 3), axis=1)
    from_fill = differ(inner, fill[:, None, None]).reshape(len(parts), -1)
    label = np.array([max((page.contrasts[at] for at in part.lines), default=-1.0) for part in parts])
    tint = np.array([max((page.tints[at] for at in part.lines), default=-1.0) for part in parts])
    kinds = np.array([STATEFUL.index(part.kind) for part in parts])
    states = np.array([-1 if part.checked is None else int(part.checked) for part in parts])
    measures = np.stack([
        np.percentile(off, 95, axis=1), np.percentile(from_fill, 95, axis=1), label, differ(fill, around), tint,
        (inner.max(axis=-1) - inner.min(axis=-1)).reshape(len(parts), -1).max(axis=1) / 255,
    ], axis=1)  # fmt: skip
    same = kinds[:, None] == kinds[None]
    state = same & (states[:, None] == states[None])
    toggles = kinds >= 2
    every = toggles[:, None] == toggles[None]
    compared = [_compare_strongest(measures, group) for group in (same, state, every)]
    usual = max(0.05, page.usual_contrast)
    rows = [
        np.stack([
            kinds, states, same.sum(axis=1), state.sum(axis=1), around.mean(axis=1) / 255, fill.mean(axis=1) / 255,
            label / usual, measures[:, 0] / usual, measures[:, 1] / usual,
        ], axis=1),
        measures, *compared,
    ]  # fmt: skip
    return np.concatenate(rows, axis=1).astype(np.float32)


def _compare_strongest(measures: Floats, group: Mask) -> Floats:
    """Return each measure as a share of the strongest and of the middle one in its group."""
    shares = []
    for value in measures.T:
        chosen = np.where(group & (value >= 0)[None], value[None], np.nan)
        most, usual = _reduce(np.nanmax, chosen), _reduce(np.nanmedian, chosen)
        shares += [value / np.maximum(0.02, most), value / np.maximum(0.02, usual)]
    return np.stack(shares, axis=1).astype(np.float32)


def _sample_part(pixels: Pixels, boxes: Ints, edge: float) -> Floats:
    left, top, right, bottom = (boxes[:, at, None, None].astype(np.float64) for at in range(4))
    x = left + (right - 1 - left) * np.linspace(edge, 1 - edge, 48)[None, None]
    y = top + (bottom - 1 - top) * np.linspace(edge, 1 - edge, 16)[None, :, None]
    return gather(pixels, x + 0 * y, y + 0 * x)


def _sample_ground(pixels: Pixels, boxes: Ints) -> Floats:
    """Return the colour around each box."""
    left, top, right, bottom = (boxes[:, at, None].astype(np.float64) for at in range(4))
    along = np.linspace(0.1, 0.9, 9)[None]
    across, down = left + (right - left) * along, top + (bottom - top) * along
    x = np.concatenate([across, across, left - 4 + 0 * along, right + 3 + 0 * along], axis=1)
    y = np.concatenate([top - 4 + 0 * along, bottom + 3 + 0 * along, down, down], axis=1)
    colours: Floats = np.median(gather(pixels, x, y), axis=1).astype(np.float32)
    return colours
