"""Measure how a line differs from those of its siblings that are alike: what is selected is alone among others.

The siblings of a line in its column or its row (item_siblings.py) fall into sets that look the same in everything at
once. The largest set is what is usual there; a heading, a badge or another thing that is selected doesn't change it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sightline.reader.control_features import Floats, Mask, PageLines, differ, gather
from sightline.reader.item_siblings import Siblings
from sightline.reader.reading import Pixels

OUTSIDE = 0.68  # letter sizes from the middle of a text, above and below its letters and mostly still in its item
BEFORE, AFTER = 14.0, 26.0  # letter sizes before and after the start of a text that are compared in a column
THIN, WIDE = 100, 40  # places there: so near to each other that a bar is found, and where only a background is
STEP, WIDTH = 2.5, 8.0  # letter sizes from one item of a column, or of a row, to the next
SLOPE = 0.012  # how much of a background may change from one item to the next
PLAIN = 0.04  # difference of two colours that are the same
SLICE = 2000  # pairs that are compared at once, which bounds the memory
BESIDE = 1.4  # letter sizes below and above a text where items of a row are compared
ALIKE = np.array([0.035, 0.15, 0.05, 0.06, 0.06, 0.2, 0.05, 0.12, 0.3], np.float32)  # least difference that counts


@dataclass(frozen=True, slots=True)
class ItemLooks:
    """What is compared between lines."""

    below: Floats  # colours below each line, outwards: line, step, channel
    above: Floats
    before: Floats  # line, step, place, channel
    rules: Floats  # how strong a line across all of the text is at each step: line, below or above, step
    strokes: Floats
    held: Floats


@dataclass(frozen=True, slots=True)
class ItemPairs:
    """How the siblings of each line differ from it and from each other."""

    looks: Floats  # line, place, place, look; the line itself is at the first place
    known: Mask  # line, place


def measure_groups(pixels: Pixels, page: PageLines, looks: ItemLooks, mates: Siblings, *, down: bool) -> Floats:
    """Return a row for each line: how it differs from the largest set of alike siblings in one direction."""
    profiles = _take_profiles(pixels, page) if down else np.zeros((0, 0, 3, 3), np.float32)
    pairs = _compare_pairs(page, looks, profiles, mates, down=down)
    off = (pairs.looks / ALIKE).max(axis=3)
    known = pairs.known.copy()
    known[:, 0] = False
    same = (off <= 1) & known[:, None] & known[:, :, None]
    level = known & (pairs.looks[:, 0, :, 0] <= ALIKE[0])
    sets = [_measure_set(pixels, page, looks, mates, pairs, off, same, some, down=down) for some in (known, level)]
    return np.concatenate(sets, axis=1)


def _measure_set(
    pixels: Pixels, page: PageLines, looks: ItemLooks, mates: Siblings, pairs: ItemPairs, off: Floats, same: Mask,
    known: Mask, *, down: bool,
) -> Floats:  # fmt: skip
    """Return how each line differs from the largest set of alike ones among some of its siblings."""
    own = off[:, 0]
    same = same & known[:, None] & known[:, :, None]
    mode = same.sum(axis=2).argmax(axis=1)
    who = np.arange(len(mode))
    usual = same[who, mode]
    count, many = np.maximum(1, known.sum(axis=1)), np.maximum(1, usual.sum(axis=1))
    twins = known & (own <= 1)
    other = known & ~usual & ~twins
    apart = pairs.looks[:, 0]
    to_mode = pairs.looks[who, mode]
    near = off[who, mode]
    distances = [
        (apart * usual[..., None]).sum(axis=1) / many[:, None],
        np.where(usual[..., None], apart, 9).min(axis=1),
        np.where(usual[..., None], to_mode, 0).max(axis=1),
        np.where(other[..., None], to_mode, 0).max(axis=1),
    ]
    kinds = np.stack([
        known.sum(axis=1), usual.sum(axis=1), usual.sum(axis=1) / count, twins.sum(axis=1), other.sum(axis=1),
        (own * usual).sum(axis=1) / many, np.where(usual, own, 99).min(axis=1),
        np.where(other, near, 0).max(axis=1), np.where(known, own, 99).min(axis=1),
        (apart[who, mode] / ALIKE > 1).sum(axis=1),
    ], axis=1)  # fmt: skip
    return np.concatenate(
        [
            kinds, *distances, _compare_values(pixels, page, looks, mates, usual[:, 1:], many),
            _measure_steps(page, mates, usual[:, 1:], down=down),
        ], axis=1
    ).astype(np.float32)  # fmt: skip


def _compare_values(
    pixels: Pixels, page: PageLines, looks: ItemLooks, mates: Siblings, usual: Mask, many: NDArray[np.int64]
) -> Floats:
    """Return what a line is or has more of than the usual ones of its siblings, and where it is."""
    grounds, inks, boxes = page.grounds / 255, page.inks / 255, page.boxes
    middle = (boxes[:, 1] + boxes[:, 3]) / 2
    values = np.stack([
        looks.strokes, page.contrasts, page.tints, grounds.max(axis=1) - grounds.min(axis=1), grounds.mean(axis=1),
        inks.mean(axis=1), np.log(page.sizes), np.minimum(page.lengths, 60), page.capitals, page.digits, page.letters,
        page.words, looks.rules[:, 0].max(axis=1), looks.rules[:, 1].max(axis=1),
    ], axis=1)  # fmt: skip
    usually = (values[mates.at] * usual[..., None]).sum(axis=1) / many[:, None]
    some: Mask = np.asarray(usual.any(axis=1))
    before = (usual & (middle[mates.at] < middle[:, None])).sum(axis=1) / many
    left = (usual & (boxes[mates.at, 0] < boxes[:, :1])).sum(axis=1) / many
    indent = ((boxes[mates.at, 0] - boxes[:, :1]) * usual).sum(axis=1) / many / page.sizes
    high, wide = pixels.shape[:2]
    places = np.stack(
        [before, left, np.clip(indent, -9, 9), boxes[:, 0] / wide, boxes[:, 2] / wide, middle / high], axis=1
    )
    found: Floats = np.concatenate(
        [np.where(some[:, None], values - usually, 0), np.where(some[:, None], usually, 0), places], axis=1
    )
    return found


def _take_profiles(pixels: Pixels, page: PageLines) -> Floats:
    """Return colours in three rows above, at and below the middle of each line: line, place, row, channel."""
    left, unit = page.boxes[:, 0, None, None].astype(np.float64), page.sizes[:, None, None].astype(np.float64)
    middle = (page.boxes[:, 1] + page.boxes[:, 3])[:, None, None] / 2
    along = np.concatenate([np.linspace(-BEFORE, -0.2, THIN), np.linspace(0, AFTER, WIDE)])[None, :, None]
    y = middle + unit * np.array([-OUTSIDE, 0, OUTSIDE])[None, None]
    x = left + unit * along
    outside = (x < 0) | (x > pixels.shape[1] - 1)
    found = gather(pixels, x + 0 * y, y + 0 * x)
    found[np.broadcast_to(outside, found.shape[:3])] = -1
    return found


def _find_even(profiles: Floats) -> Mask:
    """Return the places where the colour is the same above and below, and before the text beside it too."""
    even: Mask = differ(profiles[:, :, 0], profiles[:, :, 2]) < PLAIN
    even[:, :THIN] &= differ(profiles[:, :THIN, 0], profiles[:, :THIN, 1]) < PLAIN
    even &= profiles[:, :, 0, 0] >= 0
    return even


def _measure_steps(page: PageLines, mates: Siblings, usual: Mask, *, down: bool) -> Floats:
    """Return how far the nearest of the usual siblings are before and after each line, and how evenly they follow."""
    first, last = (1, 3) if down else (0, 2)
    unit = page.sizes[:, None]
    start, end = page.boxes[:, first].astype(np.float32), page.boxes[:, last].astype(np.float32)
    if down:
        start = end = ((start + end) / 2).astype(np.float32)
    ahead = np.where(usual, start[mates.at] - end[:, None], np.nan) / unit
    behind = np.where(usual, start[:, None] - end[mates.at], np.nan) / unit
    after = np.nanmin(np.where(ahead > 0, ahead, 60), axis=1, initial=60)
    before = np.nanmin(np.where(behind > 0, behind, 60), axis=1, initial=60)
    edge = np.full((len(unit), 2), np.inf)  # so that there is a step, though it is not known
    starts = np.sort(np.concatenate([np.where(usual, start[mates.at], np.inf), edge], axis=1), axis=1)
    ends = np.sort(np.concatenate([np.where(usual, end[mates.at], np.inf), edge], axis=1), axis=1)
    with np.errstate(invalid="ignore"):
        gaps = (starts[:, 1:] - ends[:, :-1]) / unit
    gaps = np.where(np.isfinite(gaps), gaps, np.nan)
    some = np.isfinite(gaps).any(axis=1)
    gaps[~some] = 0
    least, most, middle = np.nanmin(gaps, axis=1), np.nanmax(gaps, axis=1), np.nanmedian(gaps, axis=1)
    near, far = np.minimum(before, after), np.maximum(before, after)
    usually = np.maximum(0.1, least)
    found: Floats = np.stack([
        before, after, near, far, least, most, middle, near / usually, np.abs(near - least),
        (most - least) / usually, np.abs(before - after), np.abs(before + after - least), some,
    ], axis=1).astype(np.float32)  # fmt: skip
    return np.clip(found, -60, 60)


def _compare_pairs(page: PageLines, looks: ItemLooks, profiles: Floats, mates: Siblings, *, down: bool) -> ItemPairs:
    count = len(page.boxes)
    members = np.concatenate([np.arange(count)[:, None], mates.at], axis=1)
    known = np.concatenate([np.ones((count, 1), dtype=bool), mates.known], axis=1)
    first, second = np.minimum(members[:, :, None], members[:, None]), np.maximum(members[:, :, None], members[:, None])
    keys = np.where(known[:, :, None] & known[:, None], first * count + second, 0)
    pairs, place = np.unique(keys, return_inverse=True)
    parts = [pairs[at : at + SLICE] for at in range(0, len(pairs), SLICE)]
    found = np.concatenate(
        [_measure_pairs(page, looks, profiles, part // count, part % count, down=down) for part in parts]
    )
    return ItemPairs(found[place.reshape(keys.shape)], known)


def _measure_pairs(
    page: PageLines, looks: ItemLooks, profiles: Floats, one: NDArray[np.int64], other: NDArray[np.int64], *, down: bool
) -> Floats:
    """Return how two lines of each pair differ in each look, apart from a background that changes slowly."""
    way = 1 if down else 0
    centres = (page.boxes[:, way] + page.boxes[:, way + 2]) / 2
    unit = np.maximum(page.sizes[one], page.sizes[other])
    slope = (SLOPE * np.abs(centres[one] - centres[other]) / unit / (STEP if down else WIDTH)).astype(np.float32)
    slope = np.minimum(slope, 0.1)
    steps = round(looks.below.shape[1] * (0.4 if down else BESIDE) / 2.2)
    below = differ(looks.below[one, :steps], looks.below[other, :steps])
    above = differ(looks.above[one, :steps], looks.above[other, :steps])
    found = [
        np.maximum(0, differ(page.grounds[one], page.grounds[other]) - slope), differ(page.inks[one], page.inks[other]),
        np.abs(looks.strokes[one] - looks.strokes[other]),
        np.maximum(0, below.max(axis=1) - slope), np.maximum(0, above.max(axis=1) - slope),
    ]  # fmt: skip
    if down:
        off = differ(profiles[one][:, :, [0, 2]], profiles[other][:, :, [0, 2]]).min(axis=2) - slope[:, None]
        even = _find_even(profiles)
        off = np.where(even[one] & even[other], off, 0)
        found += [
            (off[:, THIN:] > PLAIN).mean(axis=1),
            (off[:, :THIN] > PLAIN).mean(axis=1),
            np.maximum(0, off[:, :THIN].max(axis=1)),
        ]
    else:
        found += [np.zeros(len(one), np.float32)] * 3
    found.append(np.abs(np.log(page.sizes[one] / page.sizes[other])))
    return np.stack(found, axis=1).astype(np.float32)
