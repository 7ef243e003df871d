"""Where an image holds nothing: its blank borders and bands, and the image without them."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from math import ceil, isqrt, sqrt
from operator import add
from typing import TYPE_CHECKING

from sightline.model.geometry import Box, Map, Size
from sightline.pixels.bitmap import pillowed

if TYPE_CHECKING:
    from PIL.Image import Image as Pillow
    from pyvips import Image as Bitmap

BAND = 24  # pixels of a blank band that stay: enough to see that two things stand apart
MARGIN = 8  # pixels of a blank border that stay
LONG = 2.0  # a page is long when its sides differ by this factor
_FINE = 900_000  # pixels that are enough to see where something stands …
_MUCH = 20_000_000  # … and as many as are looked at, since each of them takes memory
_STRIP = 2_000_000  # pixels that are compared at once
_STEP = 8  # what two neighbouring pixels may differ by and still be one colour: JPEG leaves such traces

_MOST = 0.8  # of a line that is called blank although bars cross it

Span = tuple[int, int]
"""From one row or column up to, not including, another."""


@dataclass(frozen=True, slots=True)
class Ink:
    """How many pixels of each row and column differ from their neighbours; 0 where it is blank."""

    rows: Sequence[int]
    columns: Sequence[int]
    inner: tuple[Span, Span]  # the rows and columns between the blank borders
    ground: bytes | None = None  # the colour on which everything stands, where there is one


def ink(bitmap: Bitmap) -> Ink:
    opaque = bitmap.flatten(background=255) if bitmap.hasalpha() else bitmap
    size = Size(bitmap.width, bitmap.height)
    by = _coarseness(size)
    page = (opaque if by == 1 else opaque.reduce(by, by, kernel="linear")).copy_memory()
    changes = _changes(page, _STEP // by)
    width, height = page.width, page.height
    left, right = _line(page, 0, 0, 1, height), _line(page, width - 1, 0, 1, height)
    top, bottom = _line(page, 0, 0, width, 1), _line(page, 0, height - 1, width, 1)
    ground = _ground(left + right + top + bottom)
    inner_rows = _between(changes.down_rows, top, bottom, ground)
    found = Ink(
        _counted(changes.rows, left, ground),
        _counted(changes.columns, top, ground),
        (inner_rows, _between(changes.across_columns, left, right, ground)),
        ground,
    )
    return found if by == 1 else _spread(found, by, size)


def _coarseness(size: Size) -> int:
    """How many pixels, each way, are looked at as one; hardly any where a page is to be cut between its lines."""
    if size.edge >= LONG * min(size.width, size.height):
        return ceil(sqrt(size.pixels / _MUCH))
    return min(_STEP, max(1, isqrt(size.pixels // _FINE)))


@dataclass(frozen=True, slots=True)
class _Changes:
    """Where the pixels of a page differ from their neighbours to the left and above."""

    rows: array[int]  # how many there are in each row …
    columns: array[int]  # … and in each column
    down_rows: list[int]  # 1 for each row in which one differs from that above
    across_columns: list[int]  # 1 for each column in which one differs from that to the left


def _changes(page: Bitmap, step: int) -> _Changes:
    """Look at the page in strips of rows: Pillow takes many times the memory of what it compares."""
    rows, columns = array("I"), array("I", bytes(4 * page.width))
    down_rows: list[int] = []
    across_columns = [0] * page.width
    height = max(1, _STRIP // page.width)
    for start in range(0, page.height, height):
        above = min(start, 1)  # one row of the strip before, to compare the first with
        strip = pillowed(page.crop(0, start - above, page.width, min(height, page.height - start) + above))
        across, down = (_changed(strip, *way, step) for way in ((1, 0), (0, 1)))
        if above:
            across, down = (each.crop((0, 1, *each.size)) for each in (across, down))
        in_columns, in_rows = _totals(across, down)
        rows.extend(in_rows)
        columns = array("I", map(add, columns, in_columns))
        down_rows += down.getprojection()[1]
        across_columns = list(map(max, across_columns, across.getprojection()[0]))
    return _Changes(rows, columns, down_rows, across_columns)


def _changed(page: Pillow, dx: int, dy: int, step: int) -> Pillow:
    """One where a pixel differs from its neighbour to the left or above, else nothing."""
    from PIL import Image, ImageChops

    width, height = page.size
    changed = Image.new("L", page.size)
    if width > dx and height > dy:
        here, there = page.crop((dx, dy, width, height)), page.crop((0, 0, width - dx, height - dy))
        apart = reduce(ImageChops.lighter, ImageChops.difference(here, there).split())
        changed.paste(apart.point([0] * (step + 1) + [1] * (255 - step)), (dx, dy))
    return changed


def _totals(across: Pillow, down: Pillow) -> tuple[array[int], array[int]]:
    """How many changes there are in each column and in each row."""
    import pyvips
    from PIL import ImageChops

    both = ImageChops.add(across, down)
    sums = pyvips.Image.new_from_memory(both.tobytes(), *both.size, 1, "uchar").project()
    columns, rows = (array("I", bytes(totals.write_to_memory())) for totals in sums)
    return columns, rows


def _line(page: Bitmap, *box: int) -> list[bytes]:
    """The colours of a row or a column."""
    pixels, bands = bytes(page.crop(*box).write_to_memory()), page.bands
    return [pixels[at : at + bands] for at in range(0, len(pixels), bands)]


def _ground(border: list[bytes]) -> bytes | None:
    [(colour, count)] = Counter(border).most_common(1)
    return colour if 2 * count > len(border) else None


def _like(line: list[bytes], ground: bytes | None) -> list[bool]:
    """Which colours are the ground's."""
    if ground is None:
        return [False] * len(line)
    alike = {colour: all(abs(a - b) <= _STEP for a, b in zip(colour, ground, strict=True)) for colour in set(line)}
    return [alike[colour] for colour in line]


def _counted(changes: Sequence[int], first: list[bytes], ground: bytes | None) -> list[int]:
    """What stands in each line. One of another colour than the ground is not blank: a bar or a panel is not nothing."""
    return [count or int(not alike) for count, alike in zip(changes, _like(first, ground), strict=True)]


def _spread(found: Ink, by: int, size: Size) -> Ink:
    """What was found in a page made smaller, on the page itself. Fewer pixels than a margin are lost at its end."""

    def longer(counts: Sequence[int], length: int) -> list[int]:
        return [counts[min(place // by, len(counts) - 1)] for place in range(length)]

    (top, bottom), (left, right) = found.inner
    inner = (by * top, by * bottom), (by * left, by * right)
    return Ink(longer(found.rows, size.height), longer(found.columns, size.width), inner, found.ground)


def _between(changes: Sequence[int], first: list[bytes], last: list[bytes], ground: bytes | None) -> Span:
    """What is left without the borders that repeat one line, where that is ground but for the bars that cross it."""
    changed = [place for place, count in enumerate(changes) if count]
    if not changed:
        return 0, len(changes)
    start = changed[0] if _mostly(first, ground) else 0
    return start, changed[-1] if _mostly(last, ground) else len(changes)


def _mostly(line: list[bytes], ground: bytes | None) -> bool:
    return sum(_like(line, ground)) >= _MOST * len(line)


@dataclass(frozen=True, slots=True)
class Kept:
    """The rows and columns of an image that stay."""

    source: Size
    rows: tuple[Span, ...]
    columns: tuple[Span, ...]

    @staticmethod
    def whole(size: Size) -> Kept:
        return Kept(size, ((0, size.height),), ((0, size.width),))

    @property
    def size(self) -> Size:
        return Size(_length(self.columns), _length(self.rows))

    @property
    def map(self) -> Map:
        moves = []
        for top, bottom, y in _placed(self.rows):
            for left, right, x in _placed(self.columns):
                width, height = right - left, bottom - top
                moves.append((Box(left, top, width, height), Box(x, y, width, height)))
        return Map.placed(self.source, self.size, moves)

    def of(self, found: Ink) -> Ink:
        rows, columns = _chosen(found.rows, self.rows), _chosen(found.columns, self.columns)
        return Ink(rows, columns, ((0, len(rows)), (0, len(columns))), found.ground)

    def applied(self, bitmap: Bitmap) -> Bitmap:
        if self == Kept.whole(self.source):
            return bitmap
        rows = [bitmap.crop(0, top, bitmap.width, bottom - top) for top, bottom in self.rows]
        stacked = reduce(lambda one, other: one.join(other, "vertical"), rows)
        columns = [stacked.crop(left, 0, right - left, stacked.height) for left, right in self.columns]
        kept = reduce(lambda one, other: one.join(other, "horizontal"), columns)
        return kept if len(self.rows) == len(self.columns) == 1 else kept.copy_memory()

    def words(self) -> str:
        if self == Kept.whole(self.source):
            return ""
        narrowed = len(self.rows) > 1 or len(self.columns) > 1
        return "blank margins cut off" + (" and blank bands narrowed" if narrowed else "")


def borders(found: Ink) -> Kept:
    """What is left of an image without its blank borders."""
    return _kept(found, inner=False)


def bands(found: Ink) -> Kept:
    """All but the blank borders and most of each wide blank band."""
    return _kept(found, inner=True)


def _kept(found: Ink, *, inner: bool) -> Kept:
    rows, columns = found.inner
    size = Size(len(found.columns), len(found.rows))
    return Kept(size, _spans(found.rows, rows, inner=inner), _spans(found.columns, columns, inner=inner))


def _spans(counts: Sequence[int], between: Span, *, inner: bool) -> tuple[Span, ...]:
    start, end = max(0, between[0] - MARGIN), min(len(counts), between[1] + MARGIN)
    inked = [place for place in range(start, end) if counts[place]] if inner else []
    spans: list[Span] = []
    for before, after in pairwise(inked):
        if after - before - 1 > BAND:
            spans.append((start, before + 1 + BAND // 2))
            start = after - BAND // 2
    return (*spans, (start, end))


def _length(spans: tuple[Span, ...]) -> int:
    return sum(end - start for start, end in spans)


def _placed(spans: tuple[Span, ...]) -> Iterator[tuple[int, int, int]]:
    """Each span with the place where it stands once the others are gone."""
    place = 0
    for start, end in spans:
        yield start, end, place
        place += end - start


def _chosen(counts: Sequence[int], spans: tuple[Span, ...]) -> list[int]:
    return [count for start, end in spans for count in counts[start:end]]
