"""Bitmaps of libvips: their size, orientation, colours and alpha channel, Pillow's form of them, and trimming.

libvips computes pixels when they are needed, and reads the rows of a file once: what needs them twice opens it again.
To trim a bitmap, its blank borders and bands are found and cut off.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import pairwise
from math import ceil, isqrt, sqrt
from operator import add
from typing import TYPE_CHECKING

from sightline.model.geometry import Box, PixelMap, Size
from sightline.model.image import LONG_RATIO
from sightline.model.value import value_class

if TYPE_CHECKING:
    from PIL.Image import Image as Pillow
    from PIL.Image import Image as PillowImage
    from pyvips import Image as Bitmap

_TRANSFORMS: dict[int, Callable[[Bitmap], Bitmap]] = {
    2: lambda image: image.fliphor(),
    3: lambda image: image.rot180(),
    4: lambda image: image.flipver(),
    5: lambda image: image.rot90().fliphor(),
    6: lambda image: image.rot90(),
    7: lambda image: image.rot270().fliphor(),
    8: lambda image: image.rot270(),
}
_MIRRORED_X, _MIRRORED_Y = frozenset({2, 3, 7, 8}), frozenset({3, 4, 6, 7})  # once the sides are swapped back
_GREYS = frozenset({"b-w", "grey16"})


def resize_bitmap(image: Bitmap, size: Size) -> Bitmap:
    """Resize to exactly `size`, by the best filter."""
    if (image.width, image.height) == (size.width, size.height):
        return image
    x_scale, y_scale = size.width / image.width, size.height / image.height
    if not image.hasalpha():
        return image.resize(x_scale, vscale=y_scale, kernel="lanczos3")
    resized = image.premultiply().resize(x_scale, vscale=y_scale, kernel="lanczos3").unpremultiply()
    return resized.cast("uchar")


def to_pillow(image: Bitmap) -> PillowImage:
    """Convert to Pillow, which is much faster at comparing and counting pixels and making palettes."""
    from PIL import Image as Pillow

    mode = ("L", "LA", "RGB", "RGBA")[image.bands - 1]
    return Pillow.frombuffer(mode, (image.width, image.height), image.write_to_memory(), "raw", mode, 0, 1)


def normalize_colours(image: Bitmap, reopen: Callable[[], Bitmap]) -> Bitmap:
    """Convert to 8 bits, sRGB or grey. `reopen` opens the image again."""
    if image.interpretation in _GREYS:
        return _convert_to_8_bits(image, "b-w", reopen)
    return (_has_other_profile(image) and _apply_profile(image)) or _convert_to_8_bits(image, "srgb", reopen)


def _convert_to_8_bits(image: Bitmap, space: str, reopen: Callable[[], Bitmap]) -> Bitmap:
    """Convert to 8 bits. Wider integers and floats have no defined range, so theirs is stretched."""
    if image.format in ("uchar", "ushort"):
        return image if image.format == "uchar" and image.interpretation == space else image.colourspace(space)
    stats = reopen().stats()
    low, high = stats(0, 0)[0], stats(1, 0)[0]
    factor = 255 / (high - low) if high > low else 0.0
    return image.linear(factor, 0.5 - low * factor if factor else 0.0).cast("uchar").copy(interpretation=space)


def _has_other_profile(image: Bitmap) -> bool:
    """Return whether a colour profile says that the colours are not sRGB, going by its name."""
    if not image.get_typeof("icc-profile-data"):
        return False
    profile = bytes(image.get("icc-profile-data"))
    return b"sRGB" not in profile and "sRGB".encode("utf-16-be") not in profile


def _apply_profile(image: Bitmap) -> Bitmap | None:
    import pyvips

    try:
        return image.icc_transform("srgb", embedded=True, intent="relative")
    except (pyvips.Error, UnicodeDecodeError):  # a profile that is damaged, or for another kind of image
        clear_vips_error()
        return None


def copy_pixels(image: Bitmap) -> Bitmap:
    """Return the pixels in memory, without the file's metadata, which has been applied or doesn't matter."""
    import pyvips

    pixels = image.write_to_memory()
    copied = pyvips.Image.new_from_memory(pixels, image.width, image.height, image.bands, image.format)
    return copied.copy(interpretation=image.interpretation)


def is_opaque(image: Bitmap) -> bool:
    """Return whether the alpha channel is full everywhere."""
    return bool(image[image.bands - 1].min() >= 255)


def drop_alpha(image: Bitmap) -> Bitmap:
    return image.extract_band(0, n=image.bands - 1)


def drop_unused_alpha(image: Bitmap) -> Bitmap:
    return copy_pixels(drop_alpha(image)) if image.hasalpha() and is_opaque(image) else image


def clear_vips_error() -> None:
    """Clear the error buffer. A decoder may quote bytes there that are not UTF-8, on which pyvips would fail again."""
    from pyvips import vips_lib

    vips_lib.vips_error_clear()


def make_upright(image: Bitmap, orientation: int) -> Bitmap:
    """Return an image as it is viewed, by the EXIF orientation of its file."""
    return image if orientation == 1 else copy_pixels(_TRANSFORMS[orientation](image))


def rotate_size(size: Size, orientation: int) -> Size:
    """Return the size of the upright image for that of the rows of a file, or the other way round."""
    return Size(size.height, size.width) if orientation >= 5 else size


def find_stored_box(box: Box, upright: Size, orientation: int) -> Box:
    """Convert a box in the upright image to one in the rows of the file."""
    x, y, width, height = box.x, box.y, box.width, box.height
    stored = rotate_size(upright, orientation)
    if orientation >= 5:
        x, y, width, height = y, x, height, width
    x = stored.width - x - width if orientation in _MIRRORED_X else x
    y = stored.height - y - height if orientation in _MIRRORED_Y else y
    return Box(x, y, width, height)


# Trimming


BAND = 24  # pixels that are left of a blank band: enough to see that two things are separate
MARGIN = 8  # pixels that are left of a blank border
_ENOUGH_PIXELS = 900_000  # enough to find where something is …
_MAX_PIXELS = 20_000_000  # … and the most that are compared, since each of them takes memory
_STRIP_PIXELS = 2_000_000  # that are compared at once
_SAME_COLOUR = 8  # the difference of neighbours of one colour: JPEG leaves such traces

_MOSTLY = 0.8  # the share of background in a line that is blank although bars cross it

Span = tuple[int, int]
"""A range of rows or columns; the end is not included."""


@value_class
class InkProfile:
    """How many pixels of each row and column differ from their neighbours; 0: it is blank."""

    rows: Sequence[int]
    columns: Sequence[int]
    inner: tuple[Span, Span]  # the rows and columns between the blank borders
    background: bytes | None = None  # the colour of most of the border, if there is one


def measure_ink(bitmap: Bitmap) -> InkProfile:
    opaque = bitmap.flatten(background=255) if bitmap.hasalpha() else bitmap
    size = Size(bitmap.width, bitmap.height)
    step = _choose_step(size)
    page = (opaque if step == 1 else opaque.reduce(step, step, kernel="linear")).copy_memory()
    changes = _find_changes(page, _SAME_COLOUR // step)
    width, height = page.width, page.height
    left, right = _read_line(page, 0, 0, 1, height), _read_line(page, width - 1, 0, 1, height)
    top, bottom = _read_line(page, 0, 0, width, 1), _read_line(page, 0, height - 1, width, 1)
    background = _find_background(left + right + top + bottom)
    inner_rows = _find_inner_span(changes.down_rows, top, bottom, background)
    profile = InkProfile(
        _count_ink(changes.rows, left, background),
        _count_ink(changes.columns, top, background),
        (inner_rows, _find_inner_span(changes.across_columns, left, right, background)),
        background,
    )
    return profile if step == 1 else _expand_profile(profile, step, size)


def _choose_step(size: Size) -> int:
    """Return by how much to shrink the page first; a long page hardly, because it is to be cut between its lines."""
    if size.edge >= LONG_RATIO * min(size.width, size.height):
        return ceil(sqrt(size.pixels / _MAX_PIXELS))
    return min(_SAME_COLOUR, max(1, isqrt(size.pixels // _ENOUGH_PIXELS)))


@value_class
class _Changes:
    """Which pixels of a page differ from their neighbours to the left and above."""

    rows: array[int]  # how many in each row
    columns: array[int]  # how many in each column
    down_rows: list[int]  # 1 for each row with a pixel that differs from the one above
    across_columns: list[int]  # 1 for each column with a pixel that differs from the one to the left


def _find_changes(page: Bitmap, step: int) -> _Changes:
    """Compare neighbours in strips of rows: Pillow needs many times the memory of what it compares."""
    rows, columns = array("I"), array("I", bytes(4 * page.width))
    down_rows: list[int] = []
    across_columns = [0] * page.width
    height = max(1, _STRIP_PIXELS // page.width)
    for start in range(0, page.height, height):
        above = min(start, 1)  # a row of the strip before, to compare the first row with
        strip = to_pillow(page.crop(0, start - above, page.width, min(height, page.height - start) + above))
        across, down = (_mark_changes(strip, *way, step) for way in ((1, 0), (0, 1)))
        if above:
            across, down = (each.crop((0, 1, *each.size)) for each in (across, down))
        in_columns, in_rows = _count_changes(across, down)
        rows.extend(in_rows)
        columns = array("I", map(add, columns, in_columns))
        down_rows += down.getprojection()[1]
        across_columns = list(map(max, across_columns, across.getprojection()[0]))
    return _Changes(rows, columns, down_rows, across_columns)


def _mark_changes(page: Pillow, dx: int, dy: int, step: int) -> Pillow:
    """Return 1 for each pixel that differs from its neighbour to the left or above, else 0."""
    from PIL import Image, ImageChops

    width, height = page.size
    changed = Image.new("L", page.size)
    if width > dx and height > dy:
        here, there = page.crop((dx, dy, width, height)), page.crop((0, 0, width - dx, height - dy))
        apart = reduce(ImageChops.lighter, ImageChops.difference(here, there).split())
        changed.paste(apart.point([0] * (step + 1) + [1] * (255 - step)), (dx, dy))
    return changed


def _count_changes(across: Pillow, down: Pillow) -> tuple[array[int], array[int]]:
    """Return the number of changes in each column and in each row."""
    import pyvips
    from PIL import ImageChops

    both = ImageChops.add(across, down)
    sums = pyvips.Image.new_from_memory(both.tobytes(), *both.size, 1, "uchar").project()
    columns, rows = (array("I", bytes(totals.write_to_memory())) for totals in sums)
    return columns, rows


def _read_line(page: Bitmap, *box: int) -> list[bytes]:
    """Return the colours of a row or a column."""
    pixels, bands = bytes(page.crop(*box).write_to_memory()), page.bands
    return [pixels[at : at + bands] for at in range(0, len(pixels), bands)]


def _find_background(border: list[bytes]) -> bytes | None:
    [(colour, count)] = Counter(border).most_common(1)
    return colour if 2 * count > len(border) else None


def _match_background(line: list[bytes], background: bytes | None) -> list[bool]:
    """Return for each pixel whether it has the background's colour."""
    if background is None:
        return [False] * len(line)
    alike = {
        colour: all(abs(a - b) <= _SAME_COLOUR for a, b in zip(colour, background, strict=True)) for colour in set(line)
    }
    return [alike[colour] for colour in line]


def _count_ink(changes: Sequence[int], first: list[bytes], background: bytes | None) -> list[int]:
    """Return the ink of each line. An even line in another colour than the background counts: it may be a panel."""
    return [count or int(not alike) for count, alike in zip(changes, _match_background(first, background), strict=True)]


def _expand_profile(profile: InkProfile, step: int, size: Size) -> InkProfile:
    """Return the profile of the page itself from that of a shrunk page; the last few pixels are lost."""

    def longer(counts: Sequence[int], length: int) -> list[int]:
        return [counts[min(place // step, len(counts) - 1)] for place in range(length)]

    (top, bottom), (left, right) = profile.inner
    inner = (step * top, step * bottom), (step * left, step * right)
    return InkProfile(longer(profile.rows, size.height), longer(profile.columns, size.width), inner, profile.background)


def _find_inner_span(changes: Sequence[int], first: list[bytes], last: list[bytes], background: bytes | None) -> Span:
    """Return the span between the borders: lines like the first or last one, if that is background except for bars."""
    changed = [place for place, count in enumerate(changes) if count]
    if not changed:
        return 0, len(changes)
    start = changed[0] if _is_mostly_background(first, background) else 0
    return start, changed[-1] if _is_mostly_background(last, background) else len(changes)


def _is_mostly_background(line: list[bytes], background: bytes | None) -> bool:
    return sum(_match_background(line, background)) >= _MOSTLY * len(line)


@value_class
class TrimmedArea:
    """The rows and columns of an image that are kept."""

    source: Size
    rows: tuple[Span, ...]
    columns: tuple[Span, ...]

    @staticmethod
    def from_size(size: Size) -> TrimmedArea:
        return TrimmedArea(size, ((0, size.height),), ((0, size.width),))

    @property
    def size(self) -> Size:
        return Size(_sum_lengths(self.columns), _sum_lengths(self.rows))

    @property
    def map(self) -> PixelMap:
        moves = []
        for top, bottom, y in _place_spans(self.rows):
            for left, right, x in _place_spans(self.columns):
                width, height = right - left, bottom - top
                moves.append((Box(left, top, width, height), Box(x, y, width, height)))
        return PixelMap.from_moves(self.source, self.size, moves)

    def select_ink(self, profile: InkProfile) -> InkProfile:
        rows, columns = _select_counts(profile.rows, self.rows), _select_counts(profile.columns, self.columns)
        return InkProfile(rows, columns, ((0, len(rows)), (0, len(columns))), profile.background)

    def apply(self, bitmap: Bitmap) -> Bitmap:
        if self == TrimmedArea.from_size(self.source):
            return bitmap
        rows = [bitmap.crop(0, top, bitmap.width, bottom - top) for top, bottom in self.rows]
        stacked = reduce(lambda one, other: one.join(other, "vertical"), rows)
        columns = [stacked.crop(left, 0, right - left, stacked.height) for left, right in self.columns]
        kept = reduce(lambda one, other: one.join(other, "horizontal"), columns)
        return kept if len(self.rows) == len(self.columns) == 1 else kept.copy_memory()

    def describe(self) -> str:
        if self == TrimmedArea.from_size(self.source):
            return ""
        narrowed = len(self.rows) > 1 or len(self.columns) > 1
        return "blank margins cut off" + (" and blank bands narrowed" if narrowed else "")


def trim_borders(profile: InkProfile) -> TrimmedArea:
    """Return the area without blank borders."""
    return _trim(profile, inner=False)


def trim_bands(profile: InkProfile) -> TrimmedArea:
    """Return the area without blank borders and without most of each wide blank band."""
    return _trim(profile, inner=True)


def _trim(profile: InkProfile, *, inner: bool) -> TrimmedArea:
    rows, columns = profile.inner
    size = Size(len(profile.columns), len(profile.rows))
    return TrimmedArea(
        size, _choose_spans(profile.rows, rows, inner=inner), _choose_spans(profile.columns, columns, inner=inner)
    )


def _choose_spans(counts: Sequence[int], between: Span, *, inner: bool) -> tuple[Span, ...]:
    start, end = max(0, between[0] - MARGIN), min(len(counts), between[1] + MARGIN)
    inked = [place for place in range(start, end) if counts[place]] if inner else []
    spans: list[Span] = []
    for before, after in pairwise(inked):
        if after - before - 1 > BAND:
            spans.append((start, before + 1 + BAND // 2))
            start = after - BAND // 2
    return (*spans, (start, end))


def _sum_lengths(spans: tuple[Span, ...]) -> int:
    return sum(end - start for start, end in spans)


def _place_spans(spans: tuple[Span, ...]) -> Iterator[tuple[int, int, int]]:
    """Yield each span with its new place after the others are cut off."""
    place = 0
    for start, end in spans:
        yield start, end, place
        place += end - start


def _select_counts(counts: Sequence[int], spans: tuple[Span, ...]) -> list[int]:
    return [count for start, end in spans for count in counts[start:end]]
