"""The upright image of one line, its ink, and the mapping back to the whole image."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import median

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sightline.model.geometry import Box
from sightline.reader.reading import Pixels

UPRIGHT, UPWARD, UPSIDE_DOWN, DOWNWARD = range(4)
"""The orientation of letters: upright, reading upwards, upside down, reading downwards."""

Mask = NDArray[np.bool_]

_FAINT = 16  # shades: a weaker contrast is never ink
_SHARE = 0.3  # share of the strongest contrast: less is unevenness of the background
_BRIDGE = 0.12  # share of the height: the gap below the dot of an i
_RULE = 0.9  # share of the width: a fuller row is a ruling line

_REACH = 4.0  # heights of the line: how much of its beginning is searched for a mark
_LEAST = 9  # pixels: the smallest side of a mark
_SQUARE = 0.15  # how much its sides may differ
_GAP = 0.2  # share of its side: the smallest blank after it


@dataclass(frozen=True, slots=True)
class TextArea:
    """A rectangle that contains a line: its centre, sides and tilt."""

    x: float
    y: float
    width: float
    height: float
    tilt: float  # radians, clockwise
    growth: float  # how far each side is outside the core
    chance: float


@dataclass(frozen=True, slots=True)
class LineImage:
    """A rectangle of the image, rotated so that its letters are upright."""

    picture: Pixels
    origin: tuple[float, float]  # its upper left corner in the image
    along: tuple[float, float]  # the direction of its upper edge
    core: tuple[int, int, int, int]  # left, top, right, bottom of what is certainly text

    def map_box(self, left: float, top: float, right: float, bottom: float) -> Box:
        """Return the whole pixels of the image around a rectangle of this line image."""
        (x, y), (across, down) = self.origin, self.along
        corners = [(x + a * across - b * down, y + a * down + b * across) for a in (left, right) for b in (top, bottom)]
        low = [math.floor(min(values) + 0.01) for values in zip(*corners, strict=True)]
        high = [math.ceil(max(values) - 0.01) for values in zip(*corners, strict=True)]
        return Box(max(0, low[0]), max(0, low[1]), high[0] - max(0, low[0]), high[1] - max(0, low[1]))


def cut_line_image(pixels: Pixels, spot: TextArea, turn: int = UPRIGHT) -> LineImage:
    """Cut a text area out of the image, rotated by `turn` quarters."""
    return _cut_level_image(pixels, spot, turn) if not spot.tilt else _cut_tilted_image(pixels, spot, turn)


def _cut_level_image(pixels: Pixels, spot: TextArea, turn: int) -> LineImage:
    height, width = pixels.shape[:2]
    left, top = max(0, math.floor(spot.x - spot.width / 2)), max(0, math.floor(spot.y - spot.height / 2))
    right = min(width, max(left + 1, math.ceil(spot.x + spot.width / 2)))
    bottom = min(height, max(top + 1, math.ceil(spot.y + spot.height / 2)))
    picture = np.rot90(pixels[top:bottom, left:right], -turn)
    origin, along = (
        ((left, top), (1, 0)),
        ((left, bottom), (0, -1)),
        ((right, bottom), (-1, 0)),
        ((right, top), (0, 1)),
    )[turn]
    return LineImage(picture, origin, along, _find_core(picture, spot.growth))


def _cut_tilted_image(pixels: Pixels, spot: TextArea, turn: int) -> LineImage:
    angle = spot.tilt - turn * math.pi / 2
    width, height = (spot.width, spot.height) if turn % 2 == 0 else (spot.height, spot.width)
    cos, sin = math.cos(angle), math.sin(angle)
    x = spot.x - (width * cos - height * sin) / 2
    y = spot.y - (width * sin + height * cos) / 2
    size = max(1, round(width)), max(1, round(height))
    # Only the square around the line is passed on.
    reach = math.hypot(width, height) / 2 + 2
    left, top = max(0, math.floor(spot.x - reach)), max(0, math.floor(spot.y - reach))
    near = Image.fromarray(pixels[top : math.ceil(spot.y + reach), left : math.ceil(spot.x + reach)])
    way = (cos, -sin, x - left, sin, cos, y - top)
    edge = tuple(int(level) for level in np.median(np.asarray(near), axis=(0, 1)))
    picture = near.transform(size, Image.Transform.AFFINE, way, Image.Resampling.BICUBIC, fillcolor=edge)
    return LineImage(np.asarray(picture), (x, y), (cos, sin), _find_core(np.asarray(picture), spot.growth))


def _find_core(picture: Pixels, growth: float) -> tuple[int, int, int, int]:
    """Return what the network itself marked: at least a pixel in the middle."""
    height, width = picture.shape[:2]
    left, top = min(int(growth), (width - 1) // 2), min(int(growth), (height - 1) // 2)
    return left, top, max(left + 1, width - left), max(top + 1, height - top)


def find_ink(picture: Pixels, share: float = _SHARE) -> Mask:
    """Return the pixels that differ from the most common colour, by a share of the strongest contrast at least."""
    contrast = measure_contrast(picture)
    counts = np.bincount(contrast.ravel(), minlength=256)[::-1].cumsum()
    strong = 255 - int(np.searchsorted(counts, max(1, contrast.size // 50)))
    mask: Mask = contrast > max(_FAINT, share * strong)
    return mask


def measure_contrast(picture: Pixels) -> NDArray[np.uint8]:
    """Return how far each pixel is from the most common colour, in the channel where it is the farthest."""
    height, width = picture.shape[:2]
    # Whole rows at once: numpy takes several times as long for the three channels of each pixel.
    flat, ground = picture.reshape(height, 3 * width), np.tile(_find_background(picture), width)
    apart = np.maximum(flat, ground) - np.minimum(flat, ground)
    contrast: NDArray[np.uint8] = np.maximum(np.maximum(apart[:, ::3], apart[:, 1::3]), apart[:, 2::3])
    return contrast


def _find_background(picture: Pixels) -> Pixels:
    red, green, blue = (np.ascontiguousarray(picture[:, :, channel]) for channel in range(3))
    key = (red & 0xF0).astype(np.uint16) << 4 | (green & 0xF0) | blue >> 4
    common = key == np.bincount(key.ravel()).argmax()
    return np.array([np.rint(channel[common].mean()) for channel in (red, green, blue)], np.uint8)


def find_ink_rows(mask: Mask, core: tuple[int, int, int, int]) -> tuple[int, int]:
    """Return the first row of the letters and one past their last; the same row twice if there are none."""
    left, top, right, bottom = core
    share = mask[:, left:right].mean(1)
    inked = (share > 0) & (share < _RULE)
    inked[top:bottom] = share[top:bottom] > 0
    inside = np.flatnonzero(inked[top:bottom])
    if not len(inside):
        return top, top
    gap = max(1, round(_BRIDGE * len(mask)))
    last = len(mask) - 1
    upward = _extend_rows(inked[::-1], last - top - int(inside[0]), gap)
    return last + 1 - upward, _extend_rows(inked, top + int(inside[-1]), gap)


def _extend_rows(inked: Mask, place: int, gap: int) -> int:
    """Return one past the last row of the run at `place`, across a small gap such as below the dot of an i."""
    end = _find_run_end(inked, place)
    beyond = next((row for row in range(end, min(len(inked), end + gap + 1)) if inked[row]), None)
    if beyond is None:
        return end
    further = _find_run_end(inked, beyond)
    return further if further < len(inked) else end  # what the edge cuts off belongs to a neighbour


def _find_run_end(inked: Mask, place: int) -> int:
    while place < len(inked) and inked[place]:
        place += 1
    return place


def find_ink_columns(mask: Mask, first: int, last: int) -> list[tuple[int, int]]:
    """Return the runs of columns with ink in those rows, as (start, end)."""
    edges = np.diff(mask[first:last].any(0).astype(np.int8), prepend=0, append=0)
    return list(zip(np.flatnonzero(edges == 1).tolist(), np.flatnonzero(edges == -1).tolist(), strict=True))


def trim_rows(mask: Mask, within: tuple[int, int], columns: tuple[int, int]) -> tuple[int, int]:
    """Return the rows with ink in those columns as (first, one past last); `within` if there are none."""
    inked = np.flatnonzero(mask[within[0] : within[1], columns[0] : columns[1]].any(1))
    return (within[0] + int(inked[0]), within[0] + int(inked[-1]) + 1) if len(inked) else within


def remove_leading_mark(frame: LineImage) -> LineImage:
    """Remove the circle or square of a toggle from the beginning of a line."""
    start = _find_text_start(find_ink(frame.picture[:, : int(_REACH * len(frame.picture))]))
    return cut_columns(frame, start, frame.picture.shape[1]) if start else frame


def cut_columns(frame: LineImage, start: int, end: int) -> LineImage:
    """Return some columns of a line image."""
    width = frame.picture.shape[1]
    start, end = max(0, start), min(width, end)
    (x, y), (across, down) = frame.origin, frame.along
    left, top, right, bottom = frame.core
    core = (min(max(0, left - start), end - start - 1), top, min(max(1, right - start), end - start), bottom)
    origin = (x + start * across, y + start * down)
    return replace(frame, picture=frame.picture[:, start:end], origin=origin, core=core)


def _find_text_start(mask: Mask) -> int:
    """Return the column where the text begins after a mark that is taller than it; 0 if there is no mark."""
    height = len(mask)
    strokes = find_ink_columns(mask, 0, height)
    if len(strokes) < 2:
        return 0
    (left, right), (after, _) = strokes[:2]
    side, blank = right - left, after - right
    top, bottom = trim_rows(mask, (0, height), (left, right))
    if side < _LEAST or abs(bottom - top - side) > max(1, _SQUARE * side) or blank < _GAP * side:
        return 0
    reaches = [trim_rows(mask, (0, height), stroke) for stroke in strokes[1:]]
    foot = median(below for _, below in reaches)
    over = top < min(above for above, _ in reaches) and bottom > foot
    return right + blank // 2 if over and _is_closed(mask[top:bottom, left:right]) else 0


def _is_closed(mark: Mask) -> bool:
    """Return whether an outline surrounds the mark: ink on all four sides."""
    down, across = len(mark) // 2, len(mark[0]) // 2
    beside = mark[1:-1, :across].any(1).all() and mark[1:-1, across:].any(1).all()
    return bool(beside and mark[:down, 1:-1].any(0).all() and mark[down:, 1:-1].any(0).all())
