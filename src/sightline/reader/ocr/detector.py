"""Find lines of text: a network gives each pixel its probability, the rest is arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sightline.reader.ocr.line_image import TextArea
from sightline.reader.ocr.weights import OnnxSession
from sightline.reader.reading import Pixels

Floats = NDArray[np.float32]
Ints = NDArray[np.intp]
Numbers = NDArray[np.float64]

TILE, TILE_HEIGHT = 1280, 800  # pixels that the network gets at once; they determine its memory
MIN_SCALE = 2 / 3  # a 1080p screen fits one tile at this scale; below it, small print is lost
MAX_PIXELS = 16_000_000  # pixels that are searched in all, whatever the size of the image
_STEP = 32  # the network halves its input five times
_OVERLAP = 32  # pixels around a tile that the network sees in addition
_FLAT = 8  # shades: a tile with less contrast is empty
_MEAN, _SPREAD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

_CHANCE, _SURE = 0.2, 0.5  # probability of text: of a pixel, and on average over a line
_GROWTH = 1.4  # the network marks the core of a line, which grows by this times area / perimeter
_MIN_SIDE = 2.5  # pixels of the map: the smallest side of a line
_LONG = 6.0  # a part must be this many times as long as high to have a direction of its own
_DRIFT = 0.6  # heights: a direction that moves the ends by less is ignored
_LEVEL = math.radians(0.25)  # a page tilted by less is level
_VOTES, _AGREED = 4, 0.8  # long parts, and share of them, that must agree on the tilt of a page
_VOTER = 12.0  # how many times as long as high such a part is: a comma at its end tilts a shorter one


def find_text_areas(
    pixels: Pixels, network: OnnxSession, has_time: Callable[[], bool] = lambda: True
) -> tuple[list[TextArea], bool]:
    """Return the lines of an image from top to bottom, and whether there was time to search all of it."""
    scale = choose_scale(pixels.shape[1], pixels.shape[0])
    chance, searched = compute_text_probabilities(pixels, network, scale, has_time)
    return sorted(_separate_neighbours(_measure_areas(chance, scale)), key=lambda spot: spot.y), searched


def choose_scale(width: int, height: int) -> float:
    fits = TILE / max(width, height)
    affordable = math.sqrt(MAX_PIXELS / (width * height))
    return min(1.0, max(fits, min(MIN_SCALE, affordable)))


def compute_text_probabilities(
    pixels: Pixels, network: OnnxSession, scale: float, has_time: Callable[[], bool]
) -> tuple[Floats, bool]:
    """Return the probability of text for each pixel of the scaled image, tile by tile while there is time."""
    height, width = (max(1, round(side * scale)) for side in pixels.shape[:2])
    found = np.zeros((height, width), np.float32)
    for top, bottom in _split_evenly(height, TILE_HEIGHT):
        for left, right in _split_evenly(width, TILE):
            if not has_time():
                return found, False
            x, y = max(0, left - _OVERLAP), max(0, top - _OVERLAP)
            part = (x, y, min(width, right + _OVERLAP), min(height, bottom + _OVERLAP))
            tile = _scale_part(pixels, part, (width, height))
            if np.ptp(tile) >= _FLAT:
                seen = _run_tile(tile, network)
                found[top:bottom, left:right] = seen[top - y : bottom - y, left - x : right - x]
    return found, True


def _split_evenly(length: int, max_length: int) -> list[tuple[int, int]]:
    """Return as few equal pieces as the tile size allows."""
    count = math.ceil(length / max_length)
    ends = [round(length * place / count) for place in range(count + 1)]
    return list(pairwise(ends))


def _scale_part(pixels: Pixels, part: tuple[int, int, int, int], size: tuple[int, int]) -> Pixels:
    """Return a part of the image scaled as if the whole had `size`; only that part is copied."""
    height, width = pixels.shape[:2]
    if size == (width, height):
        return pixels[part[1] : part[3], part[0] : part[2]]
    across, down = width / size[0], height / size[1]
    box = (part[0] * across, part[1] * down, part[2] * across, part[3] * down)
    x, y = math.floor(box[0]), math.floor(box[1])
    near = Image.fromarray(pixels[y : math.ceil(box[3]), x : math.ceil(box[2])])
    inner = (box[0] - x, box[1] - y, min(near.width, box[2] - x), min(near.height, box[3] - y))
    return np.asarray(near.resize((part[2] - part[0], part[3] - part[1]), Image.Resampling.BILINEAR, inner))


def _run_tile(tile: Pixels, network: OnnxSession) -> Floats:
    height, width = tile.shape[:2]
    padded = np.pad(tile, ((0, -height % _STEP), (0, -width % _STEP), (0, 0)), mode="edge")
    # The network expects blue first, but the means of red first.
    batch = np.empty((1, 3, *padded.shape[:2]), np.float32)
    for place, (mean, spread) in enumerate(zip(_MEAN, _SPREAD, strict=True)):
        np.multiply(padded[:, :, 2 - place], np.float32(1 / 255 / spread), out=batch[0, place])
        batch[0, place] -= np.float32(mean / spread)
    return network.run(batch)[0, 0, :height, :width]


def _measure_areas(chance: Floats, scale: float) -> list[TextArea]:
    mask = chance > _CHANCE
    runs = _Runs.from_mask(mask)
    if not len(runs.row):
        return []
    part, count = runs.group()
    mean = runs.compute_means(chance[mask], part, count)
    tilt = runs.compute_tilts(part, count)
    left, right, top, bottom = runs.compute_extents(part, count, tilt)
    width, height = right - left, bottom - top
    keep = (mean > _SURE) & (np.minimum(width, height) >= _MIN_SIDE)
    growth = _GROWTH * width * height / (2 * (width + height))
    cos, sin = np.cos(tilt), np.sin(tilt)
    along, across = (left + right) / 2, (top + bottom) / 2
    x, y = along * cos - across * sin, along * sin + across * cos
    table = np.stack([x, y, width + 2 * growth, height + 2 * growth, growth], 1) / scale
    return [
        TextArea(*(float(each) for each in (*table[place, :4], tilt[place], table[place, 4], mean[place])))
        for place in np.flatnonzero(keep)
    ]


def _separate_neighbours(spots: list[TextArea]) -> list[TextArea]:
    """Shrink neighbours in a row that overlap, so that no letter is read twice."""
    level = sorted((spot for spot in spots if not spot.tilt), key=lambda spot: spot.x - spot.width / 2)
    for place in range(len(level)):
        for other in range(place + 1, len(level)):
            one, two = level[place], level[other]
            start, end = two.x - two.width / 2, one.x + one.width / 2
            if start >= end:
                break
            if abs(one.y - two.y) < min(one.height, two.height) / 3 and end < two.x + two.width / 2:
                middle = (start + end) / 2
                level[place] = _set_sides(one, one.x - one.width / 2, middle)
                level[other] = _set_sides(two, middle, two.x + two.width / 2)
    return level + [spot for spot in spots if spot.tilt]


def _set_sides(spot: TextArea, left: float, right: float) -> TextArea:
    return replace(spot, x=(left + right) / 2, width=right - left)


@dataclass(frozen=True, slots=True)
class _Runs:
    """The set pixels of a mask as runs: a row, where it starts and where it has ended."""

    row: Ints
    start: Ints
    end: Ints
    width: int

    @classmethod
    def from_mask(cls, mask: NDArray[np.bool_]) -> _Runs:
        edges = np.diff(mask.astype(np.int8), axis=1, prepend=0, append=0)
        row, start = np.nonzero(edges == 1)
        return cls(row, start, np.nonzero(edges == -1)[1], mask.shape[1])

    def group(self) -> tuple[Ints, int]:
        """Return the number of each run's connected part (corners connect), and the number of parts."""
        stride = self.width + 2
        below = (self.row + 1) * stride
        first = np.searchsorted(self.row * stride + self.end, below + self.start, "left")
        after = np.searchsorted(self.row * stride + self.start, below + self.end, "right")
        counts = np.maximum(after - first, 0)
        one = np.repeat(np.arange(len(self.row)), counts)
        other = np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(len(one))
        root = np.arange(len(self.row))
        while True:  # every part is named by its lowest run; each round at least halves what is left
            low = np.minimum(root[one], root[other])
            lower = root.copy()
            np.minimum.at(lower, root[one], low)
            np.minimum.at(lower, root[other], low)
            lower = lower[lower]
            if np.array_equal(lower, root):
                break
            root = lower
        names, part = np.unique(root, return_inverse=True)
        return part, len(names)

    def compute_means(self, values: Floats, part: Ints, count: int) -> Numbers:
        """Return the mean of the values under each part; `values` are those of the set pixels, in order."""
        size = self.end - self.start
        under = np.add.reduceat(values, np.cumsum(size) - size, dtype=np.float64)
        return np.bincount(part, under, count) / np.bincount(part, size, count)

    def compute_tilts(self, part: Ints, count: int) -> Numbers:
        """Return the direction of each part by its moments, between -45 and 45 degrees."""
        size = (self.end - self.start).astype(np.float64)
        at = (self.start + self.end) / 2
        area = np.bincount(part, size, count)
        x = np.bincount(part, size * at, count) / area
        y = np.bincount(part, size * (self.row + 0.5), count) / area
        dx, dy = at - x[part], self.row + 0.5 - y[part]
        xx = np.bincount(part, size * (dx**2 + (size**2 - 1) / 12), count) / area
        yy = np.bincount(part, size * dy**2, count) / area
        xy = np.bincount(part, size * dx * dy, count) / area
        tilt = 0.5 * np.arctan2(2 * xy, xx - yy)
        tilt -= np.round(tilt / (np.pi / 2)) * (np.pi / 2)
        middle, apart = (xx + yy) / 2, np.hypot((xx - yy) / 2, xy)
        return _choose_tilts(tilt, np.sqrt(middle + apart), np.sqrt(np.maximum(middle - apart, 0)))

    def compute_extents(self, part: Ints, count: int, tilt: Numbers) -> tuple[Numbers, Numbers, Numbers, Numbers]:
        """Return how far each part extends along its own direction and across it."""
        cos, sin = np.cos(tilt)[part], np.sin(tilt)[part]
        corners = [(x, y) for x in (self.start, self.end) for y in (self.row, self.row + 1)]
        along = np.stack([x * cos + y * sin for x, y in corners])
        across = np.stack([y * cos - x * sin for x, y in corners])
        order = np.argsort(part, kind="stable")
        begin = np.searchsorted(part[order], np.arange(count))
        find_minimum, find_maximum = np.minimum.reduceat, np.maximum.reduceat
        return (
            find_minimum(along.min(0)[order], begin),
            find_maximum(along.max(0)[order], begin),
            find_minimum(across.min(0)[order], begin),
            find_maximum(across.max(0)[order], begin),
        )


def _choose_tilts(tilt: Numbers, long: Numbers, short: Numbers) -> Numbers:
    """Return the tilt of each part; short parts and barely tilted ones take the page's."""
    clear = long > _LONG * short
    voting = long > _VOTER * short
    page = _find_page_tilt(tilt[voting], long[voting])
    own = clear & (np.abs(tilt - page) * long > _DRIFT * short)
    return np.where(own, tilt, page)


def _find_page_tilt(tilt: Numbers, long: Numbers) -> float:
    if len(tilt) < _VOTES:
        return 0.0
    page = _compute_weighted_median(tilt, long)
    agreed = float(np.mean(tilt * np.sign(page) > _LEVEL / 2))
    return page if abs(page) >= _LEVEL and agreed >= _AGREED else 0.0


def _compute_weighted_median(values: Numbers, weights: Numbers) -> float:
    order = np.argsort(values)
    upto = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(upto, upto[-1] / 2)])
