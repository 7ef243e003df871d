"""Measure how the lines of a page differ from their siblings: the items of a menu, the tabs, the rows of a table.

Siblings are the nearest lines in the same column or row of a panel with letters of the same size (item_siblings.py).
Each look of a line (background, ink, thickness of strokes, what is drawn below, above and before it) is compared with
that of each sibling, and so are the siblings with theirs: what is selected differs from the others, which are alike.
All looks at once are compared with those of the largest set of siblings that are alike (item_groups.py). What the
numbers mean together is learnt from pages, by bench/train_controls.py; a change here or there needs a new training.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sightline.reader.control_features import Floats, Ints, Mask, PageLines, compare_all, differ, gather, list_boxes
from sightline.reader.item_groups import ItemLooks, measure_groups
from sightline.reader.item_siblings import Siblings, find_siblings
from sightline.reader.reading import InterfacePart, Pixels

SAME = 0.05  # difference of two colours that are the same, 0 to 1
STEPS = 32  # places below, above or before a text where something is looked for
REACH = 2.2  # letter sizes below and above a text
PLACES = 19  # along a text, all of which a line across it differs at; letters below it do so only at some
CLOSE = 18  # of these places, where colours are compared; other texts may be farther away
PRESSED = 1  # the measure: whether a line and a sibling are in buttons, of which one may be the main one
HELD, COMPARED = 3, 16  # the first measures of what is around a line, and of its differences from its siblings
SHAPE = 54  # of these differences, that of the size of what is around it
CROSSED = np.array([0, 6, 12, 18])  # measures of the other direction: of background, ink, strokes and what is below
BEFORE = 5.0  # letter sizes before it
ROWS, COLUMNS = 7, 160  # of a text, where its strokes are measured


def measure_items(
    pixels: Pixels, page: PageLines, holders: Ints, parts: Sequence[InterfacePart], places: Sequence[int]
) -> tuple[Floats, tuple[Siblings, Siblings]]:
    """Return two rows for each line, as an item of its column and of its row, and the siblings in each.

    The lines may be pieces of longer ones: `places` says of which. The rows are in the order: direction, line, measure.
    """
    looks = _measure_looks(pixels, page, holders)
    own = _measure_own(page)
    own = np.concatenate([own, looks.strokes[:, None], looks.held, _measure_rules(looks, page.grounds)], axis=1)
    traits = np.concatenate(
        [looks.strokes[:, None], page.contrasts[:, None], page.tints[:, None], page.sizes[:, None], looks.held[:, :3]],
        axis=1,
    )
    siblings, inside, whole = (
        find_siblings(pixels, page, holders),
        _find_pressed(page, parts),
        _measure_whole(page, places),
    )
    compared = [_compare_siblings(page, looks, mates) for mates in siblings]
    rows = []
    for way, mates in enumerate(siblings):
        other = np.concatenate([compared[1 - way][:, CROSSED], siblings[1 - way].count[:, None]], axis=1)
        group = _measure_group(page, mates, down=way == 0)
        direction = np.full((len(own), 1), way)
        own[:, PRESSED] = inside & (inside[mates.at] & mates.known).any(axis=1)
        rows.append(
            np.concatenate([
                own, compared[way], _compare_traits(traits, mates), group, other, direction, whole,
                measure_groups(pixels, page, looks, mates, down=way == 0),
            ], axis=1)
        )  # fmt: skip
    return np.stack(rows).astype(np.float32), siblings


def _measure_looks(pixels: Pixels, page: PageLines, holders: Ints) -> ItemLooks:
    left, top, right, bottom = (page.boxes[:, at, None, None].astype(np.float64) for at in range(4))
    unit = page.sizes[:, None, None].astype(np.float64)
    away = np.linspace(0.1, REACH, STEPS)[None, :, None]
    across = left + (right - 1 - left) * np.linspace(0.03, 0.97, PLACES)[None, None] + 0 * away
    strips = [
        gather(pixels, across, bottom - 1 + unit * away + 0 * across),
        gather(pixels, across, top - unit * away + 0 * across),
    ]
    back = np.linspace(0.3, BEFORE, STEPS)[None, :, None]
    down = (top + bottom) / 2 + unit * np.array([-0.9, 0.0, 0.9])[None, None] + 0 * back
    rules = [differ(strip, page.grounds[:, None, None]).min(axis=2) for strip in strips]
    return ItemLooks(
        np.median(strips[0][:, :CLOSE], axis=2), np.median(strips[1][:, :CLOSE], axis=2),
        gather(pixels, left - unit * back + 0 * down, down), np.stack(rules, axis=1), measure_strokes(pixels, page),
        _measure_holders(page, holders),
    )  # fmt: skip


def find_badges(rows: Floats, mates: Siblings) -> Mask:
    """Return which lines of a column are in small boxes as large as those of their siblings, but of another colour."""
    high, wide = rows[:, HELD], rows[:, HELD + 1]
    ground, shape = rows[:, COMPARED], rows[:, COMPARED + SHAPE]
    badges: Mask = (mates.count > 0) & (high <= 3.2) & (wide <= 9) & (shape <= 0.02) & (ground > SAME)
    return badges


def _find_pressed(page: PageLines, parts: Sequence[InterfacePart]) -> Mask:
    """Return which lines are in a button."""
    pressed = list_boxes([part.box for part in parts if part.kind == "button"])
    inside: Mask = compare_all(page.boxes, pressed, slack=2)[0].max(axis=1, initial=False)
    return inside


def _measure_own(page: PageLines) -> Floats:
    """Measure little of a line itself: what its colours and letters are says more of a style than of a state."""
    empty = np.zeros(len(page.boxes))  # for what is compared with siblings, at `PRESSED`
    return np.stack([np.minimum(page.lengths, 40), empty], axis=1).astype(np.float32)


def measure_strokes(pixels: Pixels, page: PageLines) -> Floats:
    """Return how thick the strokes of each line are, in sizes of its letters."""
    left, top, right, bottom = (page.boxes[:, at, None, None].astype(np.float64) for at in range(4))
    x = left + np.arange(COLUMNS)[None, None]
    y = top + (bottom - 1 - top) * np.linspace(0.3, 0.75, ROWS)[None, :, None]
    off = differ(gather(pixels, x + 0 * y, y + 0 * x), page.grounds[:, None, None])
    ink = np.clip(off / np.maximum(0.05, page.contrasts)[:, None, None], 0, 1) * (x < right)
    crossed = np.abs(np.diff(ink, axis=2)).sum(axis=(1, 2))
    thick: Floats = (2 * ink.sum(axis=(1, 2)) / np.maximum(1, crossed) / page.sizes).astype(np.float32)
    return np.minimum(thick, 1)


def _measure_rules(looks: ItemLooks, grounds: Floats) -> Floats:
    """Measure the strongest place below, above and before each text, where it is, and how much there is like that."""
    strips = [looks.rules[:, 0], looks.rules[:, 1], differ(looks.before, grounds[:, None, None]).min(axis=2)]
    found = [np.stack([off.max(axis=1), _find_first(off), (off > 0.08).mean(axis=1)], axis=1) for off in strips]
    return np.concatenate(found, axis=1)


def _find_first(off: Floats) -> Floats:
    first: Floats = (np.where((off > 0.08).any(axis=1), (off > 0.08).argmax(axis=1), STEPS) / STEPS).astype(np.float32)
    return first


def _measure_whole(page: PageLines, places: Sequence[int]) -> Floats:
    """Measure the line that each piece is of: in how many pieces it is, and how long it is."""
    at = np.asarray(places, dtype=np.int64)
    count, length = np.bincount(at), np.bincount(at, weights=page.lengths)
    return np.stack([np.minimum(count[at], 12), np.minimum(length[at], 80)], axis=1).astype(np.float32)


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


def _compare_siblings(page: PageLines, looks: ItemLooks, mates: Siblings) -> Floats:
    """Measure how each line differs from its siblings in each look, and how these differ from theirs."""
    at = mates.at
    distances = [
        differ(page.grounds[:, None], page.grounds[at]),
        differ(page.inks[:, None], page.inks[at]),
        np.abs(looks.strokes[:, None] - looks.strokes[at]),
        differ(looks.below[:, None], looks.below[at]).max(axis=2),
        differ(looks.above[:, None], looks.above[at]).max(axis=2),
        differ(looks.before[:, None], looks.before[at]).min(axis=3).max(axis=2),
        np.abs(looks.rules[:, None, 0] - looks.rules[at, 0]).max(axis=2),
        np.abs(looks.rules[:, None, 1] - looks.rules[at, 1]).max(axis=2),
        np.abs(page.contrasts[:, None] - page.contrasts[at]),
        np.abs(looks.held[:, None, :2] - looks.held[at][..., :2]).max(axis=2) / 40,
    ]
    pieces = []
    for distance in distances:
        ordered = np.sort(np.where(mates.known, distance, np.inf), axis=1)
        middle = _pick(ordered, (mates.count - 1) // 2, mates)
        least = _pick(ordered, np.zeros_like(mates.count), mates)
        others = np.sort(np.where(mates.known, middle[at], np.inf), axis=1)
        most = _pick(others, mates.count - 1, mates)
        usual = _pick(others, (mates.count - 1) // 2, mates)
        same = ((distance <= SAME) & mates.known).sum(axis=1) / np.maximum(1, mates.count)
        pieces += [middle, least, most, usual, same, middle / (usual + 0.02)]
    return np.stack(pieces, axis=1).astype(np.float32)


def _pick(ordered: Floats, place: NDArray[np.int64], mates: Siblings) -> Floats:
    chosen = np.take_along_axis(ordered, np.maximum(0, place)[:, None], axis=1)[:, 0]
    found: Floats = np.where(mates.count > 0, chosen, 0)
    return found


def _compare_traits(traits: Floats, mates: Siblings) -> Floats:
    """Return how much more of each trait a line has than the middle one of its siblings."""
    values = np.where(mates.known[..., None], traits[mates.at], np.nan)
    values[mates.count == 0] = traits[mates.count == 0][:, None]
    found: Floats = traits - np.nanmedian(values, axis=1)
    return found


def _measure_group(page: PageLines, mates: Siblings, *, down: bool) -> Floats:
    """Measure the group of a line: how many and how far, how even, how long their texts are, and its place there."""
    first, last = (1, 3) if down else (0, 2)
    start, end = page.boxes[:, first].astype(np.float32), page.boxes[:, last].astype(np.float32)
    gap = np.maximum(start[:, None] - end[mates.at], start[mates.at] - end[:, None]) / page.sizes[:, None]
    gap = np.where(mates.known, gap, np.nan)
    gap[mates.count == 0] = 0
    before = (mates.known & (start[mates.at] < start[:, None])).sum(axis=1)
    some = mates.known & (mates.count[:, None] > 0)
    lengths = (page.lengths[mates.at] * some).sum(axis=1) / np.maximum(1, mates.count)
    letters = (page.letters[mates.at] * some).sum(axis=1) / np.maximum(1, mates.count)
    sizes = np.abs(page.sizes[mates.at] / page.sizes[:, None] - 1) * some
    near = np.nanmin(gap, axis=1)
    begin = np.abs(page.boxes[mates.at, 0] - page.boxes[:, :1]) <= 0.3 * page.sizes[:, None] + 2
    steps = _measure_evenness(page, mates, first)
    return np.stack([
        mates.count, before, mates.count - before, near, np.nanmax(gap, axis=1), np.minimum(lengths, 60), letters,
        sizes.max(axis=1), steps, (begin & some).sum(axis=1) / np.maximum(1, mates.count),
    ], axis=1).astype(np.float32)  # fmt: skip


def _measure_evenness(page: PageLines, mates: Siblings, first: int) -> Floats:
    """Return by how much the smallest step between siblings differs from the middle one."""
    places = np.where(mates.known, page.boxes[mates.at, first], page.boxes[:, None, first]).astype(np.float32)
    every = np.sort(np.concatenate([places, page.boxes[:, None, first].astype(np.float32)], axis=1), axis=1)
    steps = np.diff(every, axis=1)
    steps = np.where(steps > 0, steps, np.nan)
    empty = np.isnan(steps).all(axis=1)
    steps[empty] = 1
    usual = np.nanmedian(steps, axis=1)
    found: Floats = (np.nanmean(np.abs(steps - usual[:, None]), axis=1) / np.maximum(1, usual)).astype(np.float32)
    return np.where(empty, -1, np.minimum(found, 5))
