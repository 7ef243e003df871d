"""Where an image holds nothing: its blank borders and bands, and the image without them."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING

from sightline.model.geometry import Box, Map, Size

if TYPE_CHECKING:
    from pyvips import Image as Bitmap

BAND = 24  # pixels of a blank band that stay: enough to see that two things stand apart
MARGIN = 8  # pixels of a blank border that stay
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
    width, height = opaque.width, opaque.height
    across_columns, across_rows = _changes(opaque, 1, 0)
    down_columns, down_rows = _changes(opaque, 0, 1)
    left, right = _line(opaque, 0, 0, 1, height), _line(opaque, width - 1, 0, 1, height)
    top, bottom = _line(opaque, 0, 0, width, 1), _line(opaque, 0, height - 1, width, 1)
    ground = _ground(left + right + top + bottom)
    return Ink(
        _counted(across_rows, down_rows, left, ground),
        _counted(across_columns, down_columns, top, ground),
        (_between(down_rows, top, bottom, ground), _between(across_columns, left, right, ground)),
        ground,
    )


def _changes(bitmap: Bitmap, dx: int, dy: int) -> tuple[list[int], list[int]]:
    """How many pixels of each column, and of each row, differ from the neighbour to the left or above."""
    width, height = bitmap.width - dx, bitmap.height - dy
    if not width or not height:
        return [0] * bitmap.width, [0] * bitmap.height
    differs = ((bitmap.crop(dx, dy, width, height) - bitmap.crop(0, 0, width, height)).abs() > _STEP).bandor()
    columns, rows = (
        bytes(sums.write_to_memory()) for sums in differs.embed(dx, dy, bitmap.width, bitmap.height).project()
    )
    return [total // 255 for total in array("I", columns)], [total // 255 for total in array("I", rows)]


def _line(bitmap: Bitmap, x: int, y: int, width: int, height: int) -> list[bytes]:
    """The colours of a row or a column."""
    pixels = bytes(bitmap.crop(x, y, width, height).write_to_memory())
    return [pixels[at : at + bitmap.bands] for at in range(0, len(pixels), bitmap.bands)]


def _ground(border: list[bytes]) -> bytes | None:
    [(colour, count)] = Counter(border).most_common(1)
    return colour if 2 * count > len(border) else None


def _like(colour: bytes, ground: bytes | None) -> bool:
    return ground is not None and all(abs(a - b) <= _STEP for a, b in zip(colour, ground, strict=True))


def _counted(across: list[int], down: list[int], first: list[bytes], ground: bytes | None) -> list[int]:
    """What stands in each line. One of another colour than the ground is not blank: a bar or a panel is not nothing."""
    return [a + b or int(not _like(colour, ground)) for a, b, colour in zip(across, down, first, strict=True)]


def _between(changes: list[int], first: list[bytes], last: list[bytes], ground: bytes | None) -> Span:
    """What is left without the borders that repeat one line, where that is ground but for the bars that cross it."""
    changed = [place for place, count in enumerate(changes) if count]
    if not changed:
        return 0, len(changes)
    start = changed[0] if _mostly(first, ground) else 0
    return start, changed[-1] if _mostly(last, ground) else len(changes)


def _mostly(line: list[bytes], ground: bytes | None) -> bool:
    return sum(_like(colour, ground) for colour in line) >= _MOST * len(line)


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
        return reduce(lambda one, other: one.join(other, "horizontal"), columns).copy_memory()

    def words(self) -> str:
        if self == Kept.whole(self.source):
            return ""
        narrowed = len(self.rows) > 1 or len(self.columns) > 1
        return "blank margins cut off" + (" and blank bands narrowed" if narrowed else "")


def borders(found: Ink) -> Kept:
    """All but the blank borders."""
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
