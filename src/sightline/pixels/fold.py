"""A page that is too long for one look: cut where nothing stands, its pieces laid side by side or sent one by one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from sightline.model.geometry import Box, Map, Piece, Rect, Size
from sightline.model.image import Target
from sightline.pixels.bitmap import scaled
from sightline.pixels.encode import SHARP_PIXELS
from sightline.pixels.trim import LONG, Ink

if TYPE_CHECKING:
    from PIL.Image import Image as Pillow
    from pyvips import Image as Bitmap

OVERLAP = 40  # source pixels that two tiles share, so that a line cut in one is whole in the other
LEGIBLE = 0.7  # the scale below which small words begin to be lost
_HARDLY = 0.5  # below it any picture is cut into tiles, where several images are taken
_GAIN = 1.2  # what a fold has to bring: it costs the eye something
_COLUMNS = 8
_GAP = 12  # result pixels between columns, a line in their middle
_STRIP = 20  # result pixels above a piece, for its label
_GLYPH = 3  # result pixels for each dot of a digit
GLOW = 2.6  # how much faster light grows than the number that stands for it; a screen's is 2.2, words gain from more
# Light by shade, from 1 up: beside a stroke the filter finds less than none, and that is the darkest. And back.
_LIGHT = [1 + round(254 * math.pow(shade / 255, GLOW)) for shade in range(256)]
_SHADE = [round(255 * math.pow(max(0, light - 1) / 254, 1 / GLOW)) for light in range(256)]
_NEAR, _WIDE = 3, 10  # rows on each side of a cut that should be blank
# Digits of three by five dots, a row for each three bits: no font of the machine changes the result.
_DOTS = {"0": 0o75557, "1": 0o26227, "2": 0o71747, "3": 0o71717, "4": 0o55711, "5": 0o74717, "6": 0o74757,
         "7": 0o71122, "8": 0o75757, "9": 0o75717, "/": 0o11244}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sheet:
    """One image to be made: pieces of a bitmap, side by side where it is tall, else one below the other."""

    pieces: tuple[Box, ...]
    tall: bool = True
    first: int = 1  # the number of its first piece …
    of: int = 1  # … among those of all sheets
    paper: bytes | None = None  # the colour between the pieces

    @staticmethod
    def whole(size: Size) -> Sheet:
        return Sheet((Box(0, 0, size.width, size.height),))

    def size(self, scale: float) -> Size:
        sizes = [piece.size.scaled(scale) for piece in self.pieces]
        if len(sizes) == 1:
            return sizes[0]
        widths, heights = [one.width for one in sizes], [one.height for one in sizes]
        if self.tall:
            return Size(sum(widths) + _GAP * (len(sizes) - 1), max(heights) + _STRIP)
        return Size(max(widths), sum(heights) + _STRIP * len(sizes))

    @property
    def edge(self) -> int:
        return max(piece.size.edge for piece in self.pieces)

    def scale(self, target: Target, most: float = 1.0) -> float:
        """The largest scale, up to `most`, at which the target takes it."""
        low, high = 1, max(1, int(self.edge * most)) + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if target.takes(self.size(middle / self.edge)) else (low, middle)
        return low / self.edge

    def places(self, scale: float) -> list[Box]:
        """Where each piece stands in the result."""
        if len(self.pieces) == 1:
            size = self.size(scale)
            return [Box(0, 0, size.width, size.height)]
        places, x, y = [], 0, _STRIP
        for piece in self.pieces:
            size = piece.size.scaled(scale)
            places.append(Box(x, y, size.width, size.height))
            x, y = (x + size.width + _GAP, y) if self.tall else (x, y + size.height + _STRIP)
        return places

    def map(self, source: Size, scale: float) -> Map:
        moves = zip(self.pieces, self.places(scale), strict=True)
        return Map(source, self.size(scale), tuple(Piece(Rect.of(start), Rect.of(end)) for start, end in moves))

    def drawn(self, bitmap: Bitmap, scale: float, *, dark: bool = False) -> Bitmap:
        places, step = self.places(scale), _glowing if dark else scaled
        pieces = [step(_cropped(bitmap, box), place.size) for box, place in zip(self.pieces, places, strict=True)]
        if len(pieces) == 1:
            return pieces[0]
        size = self.size(scale)
        paper, pen = _colours(bitmap, self.paper)
        sheet = _filled(size, paper, bitmap)
        for number, (piece, place) in enumerate(zip(pieces, places, strict=True), self.first):
            sheet = sheet.insert(piece, place.x, place.y)
            sheet = sheet.insert(_label(f"{number}/{self.of}", paper, pen, bitmap), place.x + 2, place.y - _STRIP + 3)
            if self.tall and place.x:
                line = _filled(Size(2, size.height), pen, bitmap)
                sheet = sheet.insert(line, place.x - _GAP // 2 - 1, 0)
            elif not self.tall and place.y > _STRIP:
                sheet = sheet.insert(_filled(Size(size.width, 2), pen, bitmap), 0, place.y - _STRIP)
        return sheet.crop(0, 0, size.width, size.height)

    def words(self) -> str:
        if len(self.pieces) == 1:
            return ""
        shape, order = ("columns", "left to right") if self.tall else ("rows", "top to bottom")
        return f"folded into {len(self.pieces)} {shape}, to be read from {order}"


def sheets(size: Size, found: Ink, target: Target, *, written: bool) -> list[Sheet]:
    """How a bitmap is best laid out: whole, folded, or in tiles; `written` when it is no photograph."""
    whole = [Sheet.whole(size)]
    tall = size.height >= size.width
    length, counts = (size.height, found.rows) if tall else (size.width, found.columns)
    scale = whole[0].scale(target)
    long = size.edge >= LONG * min(size.width, size.height)
    if scale >= (LEGIBLE if long else _HARDLY) or (target.images < 2 and not long):
        return whole
    best, reached = whole, scale * _GAIN
    for images in range(1, target.images + 1):
        each = target.shared(images)
        for folds in range(1, (_COLUMNS if long else 1) + 1):
            if images * folds == 1 or length // (images * folds) < 2 * OVERLAP:
                continue
            cuts = _cuts(counts, images * folds)
            if folds > 1 and not (all(cut.clean for cut in cuts) or (written and tall)):
                continue
            made = _laid(size, cuts, images, found.ground, tall=tall)
            scale = min(sheet.scale(each) for sheet in made)
            if scale > reached * 1.02:
                best, reached = made, scale
        if reached >= LEGIBLE:
            break
    return best


@dataclass(frozen=True, slots=True)
class Cut:
    at: int
    clean: bool  # nothing is cut through


def _cuts(counts: Sequence[int], pieces: int) -> list[Cut]:
    """Where to cut into pieces of about one length: there stands least, and most air is around it."""
    sums = [0, *accumulate(counts)]

    def around(place: int, reach: int) -> int:
        return sums[min(len(counts), place + reach)] - sums[max(0, place - reach)]

    length = len(counts) / pieces
    slack = max(1, min(round(length / 3), max(OVERLAP, round(length * 0.06))))
    cuts = []
    for number in range(1, pieces):
        middle = round(number * length)
        places = range(middle - slack, middle + slack + 1)
        at = min(places, key=lambda at: (8 * around(at, _NEAR) + around(at, _WIDE), abs(at - middle), at))
        cuts.append(Cut(at, around(at, _NEAR) <= 2 * _NEAR * _BORDERS))
    return cuts


_BORDERS = 8  # edges in a row that are the borders of panels and columns, not words


def _laid(size: Size, cuts: list[Cut], images: int, ground: bytes | None, *, tall: bool) -> list[Sheet]:
    length = size.height if tall else size.width
    pieces = len(cuts) + 1
    each = pieces // images
    boxes = []
    for number, (start, end) in enumerate(pairwise((0, *(cut.at for cut in cuts), length))):
        tile = number % each == 0
        if number and (tile or not cuts[number - 1].clean):
            start -= OVERLAP
        boxes.append(Box(0, start, size.width, end - start) if tall else Box(start, 0, end - start, size.height))
    return [
        Sheet(tuple(boxes[first : first + each]), tall, first + 1, pieces, ground) for first in range(0, pieces, each)
    ]


def _glowing(bitmap: Bitmap, size: Size) -> Bitmap:
    """`scaled`, for light words on a dark page: by the light itself, or thin strokes would sink into the dark.

    Eight bits of light, which are fast, do not tell dark shades apart. So where the light is still that of the nearest
    pixel of the page, its shade stays: what is of one colour keeps it.
    """
    import pyvips
    from PIL import ImageChops

    if size.pixels > SHARP_PIXELS or (bitmap.width, bitmap.height) == (size.width, size.height) or bitmap.hasalpha():
        return scaled(bitmap, size)
    lit = pyvips.Image.new_from_memory(bytes(_LIGHT), 256, 1, 1, "uchar")
    light = _flat(scaled(bitmap.maplut(lit).linecache(tile_height=32), size))
    result = _flat(bitmap.resize(size.width / bitmap.width, vscale=size.height / bitmap.height, kernel="nearest"))
    other = ImageChops.difference(result.point(_LIGHT), light).point([0] + [255] * 255)
    result.paste(light.point(_SHADE), (0, 0), other)
    made = pyvips.Image.new_from_memory(result.tobytes(), size.width, size.height, bitmap.bands, "uchar")
    return made.copy(interpretation=bitmap.interpretation)


def _flat(bitmap: Bitmap) -> Pillow:
    """The values of all bands, one after the other, as if they were greys."""
    from PIL import Image

    size = bitmap.width * bitmap.bands, bitmap.height
    return Image.frombuffer("L", size, bitmap.write_to_memory(), "raw", "L", 0, 1)


def _cropped(bitmap: Bitmap, box: Box) -> Bitmap:
    if (box.width, box.height) == (bitmap.width, bitmap.height):
        return bitmap
    return bitmap.crop(box.x, box.y, box.width, box.height)


def _colours(bitmap: Bitmap, ground: bytes | None) -> tuple[list[float], list[float]]:
    """The colour of the page, and one that stands out from it."""
    colours = bitmap.bands - bitmap.hasalpha()
    paper = list(map(float, ground)) if ground is not None else bitmap.getpoint(0, 0)[:colours]
    light = sum(paper) / colours > 127
    opaque = [255.0] * bitmap.hasalpha()
    return paper + opaque, [64.0 if light else 192.0] * colours + opaque


def _filled(size: Size, colour: list[float], like: Bitmap) -> Bitmap:
    import pyvips

    blank = pyvips.Image.black(size.width, size.height, bands=like.bands)
    return (blank + colour).cast("uchar").copy(interpretation=like.interpretation)


def _label(text: str, paper: list[float], pen: list[float], like: Bitmap) -> Bitmap:
    """Small digits, dot by dot."""
    import pyvips

    rows = ["".join(f"{_DOTS[sign] >> 3 * (4 - row) & 7:03b}0" for sign in text) for row in range(5)]
    dots = bytes(255 * int(dot) for row in rows for dot in row)
    mask = pyvips.Image.new_from_memory(dots, 4 * len(text), 5, 1, "uchar").zoom(_GLYPH, _GLYPH)
    label = mask.ifthenelse(pen, paper).cast("uchar")
    return label.copy(interpretation=like.interpretation)
