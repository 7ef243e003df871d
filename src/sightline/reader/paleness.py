"""Measure how clearly controls are drawn, compared with others of their kind: what is disabled.

A disabled control is paler than others: its text, its frame or its fill is nearer to the background, often as if the
background showed through. What the numbers mean together is learnt from pages, by bench/train_controls.py; a change
here needs a new training.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sightline.reader.control_features import Floats, Ints, PageLines, differ, gather, list_boxes
from sightline.reader.reading import TOGGLES, InterfacePart, PartKind, Pixels

STATEFUL: tuple[PartKind, ...] = ("button", "field", *TOGGLES)
MOST_COMPARED = 256  # controls that each one is compared with
SAME_LOOK = 0.04  # difference of two looks that are the same, 0 to 1
SAME_HUE = 0.985  # cosine of two colours, counted from their backgrounds, of which one may be a paler other
CLEAR = 0.08  # least difference from the background of a colour that has a hue
ACROSS, DOWN = 48, 16  # places inside a control


def measure_paleness(pixels: Pixels, parts: Sequence[InterfacePart], page: PageLines) -> Floats:
    """Return a row for each control: how clearly it and its text are drawn, compared with others of its kind."""
    boxes = list_boxes([part.box for part in parts])
    inner = _sample_part(pixels, boxes)
    around = _sample_ground(pixels, boxes)
    flat = inner.reshape(len(parts), -1, 3)
    off = differ(flat, around[:, None])
    fill = np.median(flat, axis=1)
    from_fill = differ(flat, fill[:, None])
    peak = np.take_along_axis(flat, off.argmax(axis=1)[:, None, None], axis=1)[:, 0]
    rim = np.concatenate([inner[:, 0], inner[:, -1], inner[:, :, 0], inner[:, :, -1]], axis=1)
    texts = _measure_texts(parts, page)
    hues = (flat.max(axis=2) - flat.min(axis=2)).max(axis=1) / 255
    measures = np.stack([
        np.percentile(off, 95, axis=1), np.percentile(from_fill, 95, axis=1), texts[:, 0], differ(fill, around),
        texts[:, 1], hues, np.median(differ(rim, around[:, None]), axis=1), off.mean(axis=1),
    ], axis=1)  # fmt: skip
    kinds = np.array([STATEFUL.index(part.kind) for part in parts])
    states = np.array([-1 if part.checked is None else int(part.checked) for part in parts])
    groups = [kinds, kinds * 4 + states, np.minimum(kinds, 2)]
    usual = max(0.05, page.usual_contrast)
    own = np.stack([
        kinds, states, around.mean(axis=1) / 255, fill.mean(axis=1) / 255, (fill.max(axis=1) - fill.min(axis=1)) / 255,
        texts[:, 0] / usual, measures[:, 0] / usual, measures[:, 1] / usual, texts[:, 2],
    ], axis=1)  # fmt: skip
    looks = np.concatenate([fill / 255, around / 255, texts[:, :1], measures[:, :2]], axis=1)
    compared = [_compare_strongest(measures, group) for group in groups]
    compared += [_count_alike(looks, group) for group in groups[:2]]
    clear = [_find_paler(fill - around, groups[0]), _find_paler(peak - around, groups[1])]
    clear += [_find_paler(texts[:, 3:6], groups[2]), _find_paler(peak - around, groups[2])]
    return np.concatenate([own, measures, *compared, np.stack(clear, axis=1)], axis=1).astype(np.float32)


def _measure_texts(parts: Sequence[InterfacePart], page: PageLines) -> Floats:
    """Return contrast, tint and length of the clearest text of each control, and its ink as seen from its ground."""
    rows = np.full((len(parts), 6), -1, np.float32)
    rows[:, 3:] = 0
    for place, part in enumerate(parts):
        if part.lines:
            at = max(part.lines, key=lambda at: page.contrasts[at])
            rows[place, :3] = (
                page.contrasts[at],
                max(page.tints[each] for each in part.lines),
                min(page.lengths[at], 30),
            )
            rows[place, 3:] = page.inks[at] - page.grounds[at]
    return rows


def _compare_strongest(measures: Floats, group: NDArray[np.int64]) -> Floats:
    """Return each measure as a share of the strongest and of the middle one in its group, and the group's size."""
    shares = np.zeros((len(measures), 2 * measures.shape[1] + 1), np.float32)
    for key in np.unique(group):
        own = group == key
        values = np.where(measures[own] >= 0, measures[own], np.nan)
        values[:, np.isnan(values).all(axis=0)] = -1
        most, usual = (np.maximum(0.02, find(values, axis=0)) for find in (np.nanmax, np.nanmedian))
        shares[own] = np.concatenate(
            [measures[own] / most, measures[own] / usual, np.full((own.sum(), 1), min(30, own.sum()))], axis=1
        )
    return shares


def _choose_some(own: NDArray[np.int64]) -> NDArray[np.int64]:
    return own[np.linspace(0, len(own) - 1, min(len(own), MOST_COMPARED)).astype(np.int64)]


def _count_alike(looks: Floats, group: NDArray[np.int64]) -> Floats:
    """Return the share of the controls in each one's group that look like it, and the share that is alike at most."""
    shares = np.ones((len(looks), 2), np.float32)
    for key in np.unique(group):
        own = np.flatnonzero(group == key)
        some = _choose_some(own)
        alike = (np.abs(looks[own][:, None] - looks[some][None]).max(axis=2) <= SAME_LOOK).mean(axis=1)
        shares[own] = np.stack([alike, np.full(len(own), alike.max())], axis=1)
    return shares


def _find_paler(colours: Floats, group: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return how strong each colour is, compared with the strongest of its hue in its group, 0 to 1.

    Colours are counted from their backgrounds: one that is seen through has the same hue and is weaker.
    """
    strength = np.sqrt((colours.astype(np.float64) ** 2).sum(axis=1))
    unit = colours / np.maximum(1, strength)[:, None]
    shares = np.ones(len(colours))
    for key in np.unique(group):
        own = np.flatnonzero((group == key) & (strength > 255 * CLEAR))
        if len(own):
            some = _choose_some(own)
            same = unit[own] @ unit[some].T >= SAME_HUE
            shares[own] = strength[own] / np.maximum(strength[own], np.where(same, strength[some][None], 0).max(axis=1))
    return shares


def _sample_part(pixels: Pixels, boxes: Ints) -> Floats:
    left, top, right, bottom = (boxes[:, at, None, None].astype(np.float64) for at in range(4))
    x = left + (right - 1 - left) * np.linspace(0, 1, ACROSS)[None, None]
    y = top + (bottom - 1 - top) * np.linspace(0, 1, DOWN)[None, :, None]
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
