"""Fold a long page: cut it at blank places, and lay the pieces side by side, or send them as tiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from sightline.model.geometry import Box, MapPiece, PixelMap, Rect, Size
from sightline.model.image import LEGIBLE_SCALE, LONG_RATIO, ImageTarget
from sightline.model.value import value_class
from sightline.pixels.bitmaps import InkProfile, resize_bitmap
from sightline.pixels.encode import SHARP_PIXELS

if TYPE_CHECKING:
    from PIL.Image import Image as Pillow
    from pyvips import Image as Bitmap

OVERLAP = 40  # source pixels that two tiles share, so that a line cut by one is complete in the other
_POOR_SCALE = 0.5  # below it any image is cut into tiles, if several images are accepted
_FOLD_GAIN = 1.2  # how much larger a folded image must be: a fold makes it harder to read
_MAX_COLUMNS = 8
_GAP = 12  # result pixels between columns, with a line in the middle
_LABEL_HEIGHT = 20  # result pixels above a piece, for its label
_DOT_SIZE = 3  # result pixels for each dot of a digit
DARK_GAMMA = 2.6  # that of a screen is 2.2; text gets more legible with more
# Light by shade and back. Light starts at 1, because the filter undershoots beside a stroke.
_LIGHT = [1 + round(254 * math.pow(shade / 255, DARK_GAMMA)) for shade in range(256)]
_SHADE = [round(255 * math.pow(max(0, light - 1) / 254, 1 / DARK_GAMMA)) for light in range(256)]
_NEAR, _WIDE = 3, 10  # rows on each side of a cut that should be blank
# Digits of three by five dots, three bits a row. With a font, results would depend on the machine.
_DOTS = {"0": 0o75557, "1": 0o26227, "2": 0o71747, "3": 0o71717, "4": 0o55711, "5": 0o74717, "6": 0o74757,
         "7": 0o71122, "8": 0o75757, "9": 0o75717, "/": 0o11244}  # fmt: skip


@value_class
class Sheet:
    """One resulting image: pieces of a tall bitmap side by side, or of a wide one below each other."""

    pieces: tuple[Box, ...]
    tall: bool = True
    first: int = 1  # the number of its first piece
    total: int = 1  # pieces on all sheets
    background: bytes | None = None  # the colour between the pieces

    @staticmethod
    def from_size(size: Size) -> Sheet:
        return Sheet((Box(0, 0, size.width, size.height),))

    def size_at(self, scale: float) -> Size:
        sizes = [piece.size.scale(scale) for piece in self.pieces]
        if len(sizes) == 1:
            return sizes[0]
        widths, heights = [size.width for size in sizes], [size.height for size in sizes]
        if self.tall:
            return Size(sum(widths) + _GAP * (len(sizes) - 1), max(heights) + _LABEL_HEIGHT)
        return Size(max(widths), sum(heights) + _LABEL_HEIGHT * len(sizes))

    @property
    def edge(self) -> int:
        return max(piece.size.edge for piece in self.pieces)

    def find_scale(self, target: ImageTarget, max_scale: float = 1.0) -> float:
        """Return the largest scale, up to `max_scale`, at which the target accepts the sheet."""
        low, high = 1, max(1, int(self.edge * max_scale)) + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if target.accepts_size(self.size_at(middle / self.edge)) else (low, middle)
        return low / self.edge

    def place_pieces(self, scale: float) -> list[Box]:
        """Return the box of each piece in the result."""
        if len(self.pieces) == 1:
            size = self.size_at(scale)
            return [Box(0, 0, size.width, size.height)]
        places, x, y = [], 0, _LABEL_HEIGHT
        for piece in self.pieces:
            size = piece.size.scale(scale)
            places.append(Box(x, y, size.width, size.height))
            x, y = (x + size.width + _GAP, y) if self.tall else (x, y + size.height + _LABEL_HEIGHT)
        return places

    def build_map(self, source: Size, scale: float) -> PixelMap:
        moves = zip(self.pieces, self.place_pieces(scale), strict=True)
        return PixelMap(
            source,
            self.size_at(scale),
            tuple(MapPiece(Rect.from_box(start), Rect.from_box(end)) for start, end in moves),
        )

    def draw(self, bitmap: Bitmap, scale: float, *, dark: bool = False) -> Bitmap:
        places, resize = self.place_pieces(scale), _resize_dark if dark else resize_bitmap
        pieces = [resize(_crop(bitmap, box), place.size) for box, place in zip(self.pieces, places, strict=True)]
        if len(pieces) == 1:
            return pieces[0]
        size = self.size_at(scale)
        page_colour, pen = _choose_colours(bitmap, self.background)
        sheet = _fill(size, page_colour, bitmap)
        for number, (piece, place) in enumerate(zip(pieces, places, strict=True), self.first):
            sheet = sheet.insert(piece, place.x, place.y)
            sheet = sheet.insert(
                _draw_label(f"{number}/{self.total}", page_colour, pen, bitmap),
                place.x + 2,
                place.y - _LABEL_HEIGHT + 3,
            )
            if self.tall and place.x:
                line = _fill(Size(2, size.height), pen, bitmap)
                sheet = sheet.insert(line, place.x - _GAP // 2 - 1, 0)
            elif not self.tall and place.y > _LABEL_HEIGHT:
                sheet = sheet.insert(_fill(Size(size.width, 2), pen, bitmap), 0, place.y - _LABEL_HEIGHT)
        return sheet.crop(0, 0, size.width, size.height)

    def describe(self) -> str:
        if len(self.pieces) == 1:
            return ""
        shape, order = ("columns", "left to right") if self.tall else ("rows", "top to bottom")
        return f"folded into {len(self.pieces)} {shape}, to be read from {order}"


def lay_out_sheets(size: Size, ink: InkProfile, target: ImageTarget, *, drawing: bool) -> list[Sheet]:
    """Choose the layout that shows a bitmap largest: whole, folded, or in tiles."""
    unfolded = [Sheet.from_size(size)]
    tall = size.height >= size.width
    length, counts = (size.height, ink.rows) if tall else (size.width, ink.columns)
    scale = unfolded[0].find_scale(target)
    long = size.edge >= LONG_RATIO * min(size.width, size.height)
    if scale >= (LEGIBLE_SCALE if long else _POOR_SCALE) or (target.images < 2 and not long):
        return unfolded
    best_sheets, best_scale = unfolded, scale * _FOLD_GAIN
    for images in range(1, target.images + 1):
        share = target.split_between(images)
        for folds in range(1, (_MAX_COLUMNS if long else 1) + 1):
            if images * folds == 1 or length // (images * folds) < 2 * OVERLAP:
                continue
            cuts = _find_cuts(counts, images * folds)
            if folds > 1 and not (all(cut.clean for cut in cuts) or (drawing and tall)):
                continue
            sheets = _build_sheets(size, cuts, images, ink.background, tall=tall)
            scale = min(sheet.find_scale(share) for sheet in sheets)
            if scale > best_scale * 1.02:
                best_sheets, best_scale = sheets, scale
        if best_scale >= LEGIBLE_SCALE:
            break
    return best_sheets


@value_class
class FoldCut:
    at: int
    clean: bool  # cuts through nothing


def _find_cuts(counts: Sequence[int], pieces: int) -> list[FoldCut]:
    """Return where to cut into pieces of about the same length: with the least ink at the cut and near it."""
    sums = [0, *accumulate(counts)]

    def count_ink(place: int, reach: int) -> int:
        return sums[min(len(counts), place + reach)] - sums[max(0, place - reach)]

    length = len(counts) / pieces
    slack = max(1, min(round(length / 3), max(OVERLAP, round(length * 0.06))))
    cuts = []
    for number in range(1, pieces):
        middle = round(number * length)
        places = range(middle - slack, middle + slack + 1)
        at = min(places, key=lambda at: (8 * count_ink(at, _NEAR) + count_ink(at, _WIDE), abs(at - middle), at))
        cuts.append(FoldCut(at, count_ink(at, _NEAR) <= 2 * _NEAR * _BORDER_EDGES))
    return cuts


_BORDER_EDGES = 8  # a row with no more edges than these cuts borders of panels and columns, not text


def _build_sheets(size: Size, cuts: list[FoldCut], images: int, background: bytes | None, *, tall: bool) -> list[Sheet]:
    length = size.height if tall else size.width
    pieces = len(cuts) + 1
    pieces_per_sheet = pieces // images
    boxes = []
    for number, (start, end) in enumerate(pairwise((0, *(cut.at for cut in cuts), length))):
        starts_sheet = number % pieces_per_sheet == 0
        if number and (starts_sheet or not cuts[number - 1].clean):
            start -= OVERLAP
        boxes.append(Box(0, start, size.width, end - start) if tall else Box(start, 0, end - start, size.height))
    return [
        Sheet(tuple(boxes[first : first + pieces_per_sheet]), tall, first + 1, pieces, background)
        for first in range(0, pieces, pieces_per_sheet)
    ]


def _resize_dark(bitmap: Bitmap, size: Size) -> Bitmap:
    """Resize a dark page in linear light, or thin light strokes would get too dark.

    Eight bits of linear light are fast, but cannot tell dark shades apart. So a pixel keeps the shade of the nearest
    pixel of the page where its light is the same: even areas keep their colour.
    """
    import pyvips
    from PIL import ImageChops

    if size.pixels > SHARP_PIXELS or (bitmap.width, bitmap.height) == (size.width, size.height) or bitmap.hasalpha():
        return resize_bitmap(bitmap, size)
    to_light = pyvips.Image.new_from_memory(bytes(_LIGHT), 256, 1, 1, "uchar")
    light = _flatten_bands(resize_bitmap(bitmap.maplut(to_light).linecache(tile_height=32), size))
    result = _flatten_bands(
        bitmap.resize(size.width / bitmap.width, vscale=size.height / bitmap.height, kernel="nearest")
    )
    changed = ImageChops.difference(result.point(_LIGHT), light).point([0] + [255] * 255)
    result.paste(light.point(_SHADE), (0, 0), changed)
    resized = pyvips.Image.new_from_memory(result.tobytes(), size.width, size.height, bitmap.bands, "uchar")
    return resized.copy(interpretation=bitmap.interpretation)


def _flatten_bands(bitmap: Bitmap) -> Pillow:
    """Return the values of all bands, one after another, as greys."""
    from PIL import Image

    size = bitmap.width * bitmap.bands, bitmap.height
    return Image.frombuffer("L", size, bitmap.write_to_memory(), "raw", "L", 0, 1)


def _crop(bitmap: Bitmap, box: Box) -> Bitmap:
    if (box.width, box.height) == (bitmap.width, bitmap.height):
        return bitmap
    return bitmap.crop(box.x, box.y, box.width, box.height)


def _choose_colours(bitmap: Bitmap, background: bytes | None) -> tuple[list[float], list[float]]:
    """Return the colour of the page, and one that contrasts with it."""
    colours = bitmap.bands - bitmap.hasalpha()
    page_colour = list(map(float, background)) if background is not None else bitmap.getpoint(0, 0)[:colours]
    light = sum(page_colour) / colours > 127
    opaque = [255.0] * bitmap.hasalpha()
    return page_colour + opaque, [64.0 if light else 192.0] * colours + opaque


def _fill(size: Size, colour: list[float], like: Bitmap) -> Bitmap:
    import pyvips

    blank = pyvips.Image.black(size.width, size.height, bands=like.bands)
    return (blank + colour).cast("uchar").copy(interpretation=like.interpretation)


def _draw_label(text: str, page_colour: list[float], pen: list[float], like: Bitmap) -> Bitmap:
    """Draw small digits, dot by dot."""
    import pyvips

    rows = ["".join(f"{_DOTS[character] >> 3 * (4 - row) & 7:03b}0" for character in text) for row in range(5)]
    dots = bytes(255 * int(dot) for row in rows for dot in row)
    mask = pyvips.Image.new_from_memory(dots, 4 * len(text), 5, 1, "uchar").zoom(_DOT_SIZE, _DOT_SIZE)
    label = mask.ifthenelse(pen, page_colour).cast("uchar")
    return label.copy(interpretation=like.interpretation)
