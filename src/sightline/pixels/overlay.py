"""Draw boxes and their labels on an image, so that a person sees what an answer refers to.

A label is placed next to its box, where it covers neither another box nor another label. If a single label has no room
there, every box gets a number instead, which is small enough to stay close to it, and a legend below the image says
what it means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from sightline.model.fence import to_one_line
from sightline.model.image import MAX_BITMAP_BYTES
from sightline.model.refusal import Refusal
from sightline.pixels.decode import choose_whole, decode_part
from sightline.pixels.probe import probe_within_limits

if TYPE_CHECKING:
    from pyvips import Image as Bitmap

RGB = tuple[int, int, int]
COLOURS: tuple[RGB, ...] = (
    (214, 24, 31), (24, 61, 212), (0, 140, 58), (214, 110, 0), (118, 32, 150), (0, 128, 140), (190, 20, 120),
)  # fmt: skip
_BANDS = 3
_MAX_LETTERS = 60
_LEGEND_HEIGHT = 2000  # pixels, or the height of the image
_MAX_BYTES = MAX_BITMAP_BYTES // 2  # of the canvas, which is held twice, as is its file
Corners = tuple[int, int, int, int]  # left, top, right, bottom; the last two are outside
Extent = tuple[int, int]  # width and height

_CELL = 64  # pixels of a cell of the index
_RINGS = 16  # around a box, in which a free place for its number is searched for


class Canvas:
    """An RGB image that is drawn on in place; libvips would copy all of it for every stroke."""

    def __init__(self, image: Bitmap, size: Extent) -> None:
        """Put an image into the upper left corner of a white canvas."""
        flat = image.flatten(background=[255] * (image.bands - 1)) if image.hasalpha() else image
        self.width, self.height = size
        colours = flat.colourspace("srgb").cast("uchar")
        self._bytes = bytearray(colours.embed(0, 0, *size, extend="white").write_to_memory())

    def fill(self, x: int, y: int, width: int, height: int, ink: bytes) -> None:
        """Fill a rectangle, as far as it is on the canvas."""
        left, right = max(0, x), min(self.width, x + width)
        for row in range(max(0, y), min(self.height, y + height)):
            self._write_row(left, row, ink * (right - left))

    def paste(self, picture: Bitmap, x: int, y: int, limits: Corners | None = None) -> None:
        """Draw an RGB image whose upper left corner is on the canvas, as far as it is within the limits."""
        right, bottom = limits[2:] if limits else (self.width, self.height)
        pixels, visible = picture.write_to_memory(), min(picture.width, right - x)
        for row in range(min(picture.height, bottom - y)):
            start = row * picture.width * _BANDS
            self._write_row(x, y + row, pixels[start : start + visible * _BANDS])

    def _write_row(self, x: int, y: int, pixels: bytes) -> None:
        start = (y * self.width + x) * _BANDS
        self._bytes[start : start + len(pixels)] = pixels

    def encode(self, mime: str) -> bytes:
        import pyvips

        image = pyvips.Image.new_from_memory(self._bytes, self.width, self.height, _BANDS, "uchar")
        return _WRITERS[mime](image.copy(interpretation="srgb"))


_WRITERS: Mapping[str, Callable[[Bitmap], bytes]] = {
    "image/png": lambda image: image.pngsave_buffer(compression=6, keep="none"),
    "image/jpeg": lambda image: image.jpegsave_buffer(Q=90, subsample_mode="off", keep="none"),
    "image/webp": lambda image: image.webpsave_buffer(lossless=True, effort=2, keep="none"),
}


def overlay_task(data: bytes, arguments: dict[str, Any]) -> tuple[dict[str, Any], bytes] | Refusal:
    """Draw `boxes` (x1, y1, x2, y2 and a label each) on an image, and return it as a file of type `mime`, or as a PNG.

    A point is drawn as a small box. An image that is too large to draw on is shrunk, and its boxes with it. If there is
    no room for a label, boxes get the numbers of their order, and a legend is added below the image: `numbered`.
    Without a font nothing is written: `has_font`.
    """
    info = probe_within_limits(data)
    decoded = info if isinstance(info, Refusal) else decode_part(data, info, choose_whole, max_bytes=_MAX_BYTES)
    if isinstance(decoded, Refusal):
        return decoded
    bitmap = decoded.bitmap
    across, down = bitmap.width / decoded.full_size.width, bitmap.height / decoded.full_size.height
    thick = max(2, round(max(bitmap.width, bitmap.height) / 500))
    frames = [
        _build_frame((round(x1 * across), round(y1 * down), round(x2 * across), round(y2 * down)), bitmap, thick)
        for x1, y1, x2, y2, _ in arguments["boxes"]
    ]
    writer = LabelWriter(thick)
    has_font = writer.has_font()
    plan = _plan(frames, [_clean(box[4]) if has_font else "" for box in arguments["boxes"]], bitmap, writer)
    canvas = Canvas(bitmap, plan.canvas)
    for number, frame in enumerate(frames):
        _draw_frame(canvas, frame, thick, choose_colour(number))
    _draw_labels(canvas, plan, frames, thick)
    facts = {"width": canvas.width, "height": canvas.height, "numbered": bool(plan.legend), "has_font": has_font}
    return facts, canvas.encode(arguments.get("mime", "image/png"))


class _Plan(NamedTuple):
    labels: Sequence[Bitmap | None]
    places: Sequence[Corners | None]
    legend: Sequence[tuple[Bitmap, Extent]]  # each entry and its corner
    canvas: Extent


def _plan(frames: Sequence[Corners], names: Sequence[str], bitmap: Bitmap, writer: LabelWriter) -> _Plan:
    """Choose between labels beside the boxes, and numbers with a legend."""
    image: Extent = (bitmap.width, bitmap.height)
    labels = [writer.write(name, choose_colour(index)) if name else None for index, name in enumerate(names)]
    places = place_labels(frames, [_measure(each) for each in labels], image)
    if places is not None:
        return _Plan(labels, places, (), image)
    numbers = [writer.write(str(index + 1), choose_colour(index)) if name else None for index, name in enumerate(names)]
    entries = [writer.write(f"{index + 1} {name}", choose_colour(index)) for index, name in enumerate(names) if name]
    corners, (width, height) = flow(
        [(each.width, each.height) for each in entries], image[0], 2 * writer.thick, max(image[1], _LEGEND_HEIGHT)
    )
    legend = [(entry, (x, image[1] + y)) for entry, (x, y) in zip(entries, corners, strict=False)]
    places = place_numbers(frames, [_measure(each) for each in numbers], image)
    return _Plan(numbers, places, legend, (width, image[1] + height))


def _measure(label: Bitmap | None) -> Extent | None:
    return None if label is None else (label.width, label.height)


def _draw_labels(canvas: Canvas, plan: _Plan, frames: Sequence[Corners], thick: int) -> None:
    """Draw the labels and the legend, and a line to each label that is not beside its frame."""
    drawn = [
        (number, label, place, frame)
        for number, (label, place, frame) in enumerate(zip(plan.labels, plan.places, frames, strict=True))
        if label is not None and place is not None
    ]
    for number, _, place, frame in drawn:
        _draw_line(canvas, place, frame, max(1, thick // 2), choose_colour(number))
    for _, label, place, frame in drawn:
        is_inside = place[:2] == frame[:2]  # it must not cover the neighbours of a frame that is smaller
        canvas.paste(label, *place[:2], limits=frame if is_inside else None)
    for entry, corner in plan.legend:
        canvas.paste(entry, *corner)


def _draw_line(canvas: Canvas, place: Corners, frame: Corners, thick: int, colour: RGB) -> None:
    """Draw a line between a label and its frame, unless they touch."""
    (x1, x2), (y1, y2) = (_find_gap(place[at], place[at + 2], frame[at], frame[at + 2]) for at in (0, 1))
    steps = max(abs(x2 - x1), abs(y2 - y1))
    for step in range(steps + 1 if steps > 1 else 0):
        x, y = x1 + (x2 - x1) * step // steps, y1 + (y2 - y1) * step // steps
        canvas.fill(x, y, thick, thick, bytes(colour))


def _find_gap(low: int, high: int, other_low: int, other_high: int) -> tuple[int, int]:
    """Return where two ranges are nearest to each other: the middle of what they share, or the ends of the gap."""
    if high < other_low:
        return high, other_low
    if other_high < low:
        return low, other_high
    middle = (max(low, other_low) + min(high, other_high)) // 2
    return middle, middle


def choose_colour(number: int) -> RGB:
    return COLOURS[number % len(COLOURS)]


def _build_frame(box: Sequence[int], image: Bitmap, thick: int) -> Corners:
    """Return the frame around a box, a pixel away from it. The frame of a point is large enough to be seen."""
    x1, y1, x2, y2 = box
    (x1, x2), (y1, y2) = (
        (low, high) if high - low >= 2 * thick else ((low + high) // 2 - thick, (low + high) // 2 + thick)
        for low, high in ((x1, x2), (y1, y2))
    )
    away = thick + 1
    return max(0, x1 - away), max(0, y1 - away), min(image.width, x2 + away), min(image.height, y2 + away)


def _draw_frame(canvas: Canvas, box: Corners, thick: int, colour: RGB) -> None:
    left, top, right, bottom = box
    for x, y, width, height in (
        (left, top, right - left, thick),
        (left, bottom - thick, right - left, thick),
        (left, top, thick, bottom - top),
        (right - thick, top, thick, bottom - top),
    ):
        canvas.fill(x, y, max(1, width), max(1, height), bytes(colour))


class LabelWriter:
    """Renders labels in white on the colour of their box, in a size that suits the lines of the boxes."""

    def __init__(self, thick: int) -> None:
        self.thick = thick

    def has_font(self) -> bool:
        """Return whether there is a font: without one, all characters look the same."""
        one, two = (self._render(digit).write_to_memory() for digit in "12")
        return bool(one != two)

    def write(self, label: str, colour: RGB) -> Bitmap:
        mask = self._render(label if len(label) <= _MAX_LETTERS else label[: _MAX_LETTERS - 1] + "…")
        pad = self.thick
        framed = mask.embed(pad, pad, mask.width + 2 * pad, mask.height + 2 * pad)
        return framed.linear([(255 - each) / 255 for each in colour], list(colour), uchar=True)  # the mask is white

    def _render(self, text: str) -> Bitmap:
        import pyvips

        return pyvips.Image.text(escape(text), font="sans bold", dpi=36 + 18 * self.thick)


def _clean(label: str) -> str:
    """Return a label on one line, or nothing if no character of it can be seen."""
    line = to_one_line(label)
    return line if any(each.isprintable() and not each.isspace() for each in line) else ""


class OccupiedPlaces:
    """The rectangles that are taken, indexed by cells, so that hundreds of boxes don't take seconds."""

    def __init__(self, places: Sequence[Corners], size: Extent) -> None:
        self._size = size
        self._cells: dict[Extent, list[Corners]] = {}
        for place in places:
            self.add(place)

    def add(self, place: Corners) -> None:
        for cell in _iter_cells(place):
            self._cells.setdefault(cell, []).append(place)

    def is_free(self, place: Corners, around: Corners | None = None) -> bool:
        """Return whether a place is on the image and free. Boxes that contain `around` don't count."""
        if min(place) < 0 or place[2] > self._size[0] or place[3] > self._size[1]:
            return False
        taken = (each for cell in _iter_cells(place) for each in self._cells.get(cell, ()) if _overlap(place, each))
        return all(around is not None and _contains(each, around) for each in taken)


def place_labels(
    frames: Sequence[Corners], sizes: Sequence[Extent | None], image: Extent
) -> list[Corners | None] | None:
    """Return a free place for each label next to its frame; None if one has none. A label without a size is empty."""
    occupied = OccupiedPlaces(frames, image)
    places: list[Corners | None] = []
    for frame, size in zip(frames, sizes, strict=True):
        place = _find_beside(frame, size, occupied) if size else None
        if size and not place:
            return None
        if place:
            occupied.add(place)
        places.append(place)
    return places


def place_numbers(frames: Sequence[Corners], sizes: Sequence[Extent | None], image: Extent) -> list[Corners | None]:
    """Return a place for each number: beside its frame, inside it, or as near as there is room.

    If there is no room at all, the place is in a corner of the frame, and may be larger than the frame.
    """
    occupied = OccupiedPlaces(frames, image)
    places: list[Corners | None] = []
    for frame, size in zip(frames, sizes, strict=True):
        place = _find_for_number(frame, size, occupied) if size else None
        if place:
            occupied.add(place)
        places.append(place)
    return places


def _find_for_number(frame: Corners, size: Extent, occupied: OccupiedPlaces) -> Corners:
    inside = (each for each in _iter_inside(frame, size) if occupied.is_free(each, around=frame))
    place = _find_beside(frame, size, occupied) or next(inside, None)
    place = place or next(filter(occupied.is_free, _iter_rings(frame, size)), None)
    return place or (frame[0], frame[1], frame[0] + size[0], frame[1] + size[1])


def _find_beside(frame: Corners, size: Extent, occupied: OccupiedPlaces) -> Corners | None:
    """Return a free place next to a frame; one inside a box around the frame only if there is no other."""
    places = list(_iter_beside(frame, size))
    free = next(filter(occupied.is_free, places), None)
    return free or next((each for each in places if occupied.is_free(each, around=frame)), None)


def _iter_beside(frame: Corners, size: Extent) -> Iterator[Corners]:
    """Yield the places above, below, right and left of a frame."""
    (left, top, right, bottom), (width, height) = frame, size
    for x, y in (
        (left, top - height), (right - width, top - height), (left, bottom), (right - width, bottom),
        (right, top), (right, bottom - height), (left - width, top), (left - width, bottom - height),
    ):  # fmt: skip
        yield x, y, x + width, y + height


def _iter_inside(frame: Corners, size: Extent) -> Iterator[Corners]:
    """Yield places inside a frame, along its top and bottom, if most of it stays visible."""
    (left, top, right, bottom), (width, height) = frame, size
    if right - left < 3 * width or bottom - top < 2 * height:
        return
    for y in (top, bottom - height):
        for x in range(left, right - width + 1, width):
            yield x, y, x + width, y + height


def _iter_rings(frame: Corners, size: Extent) -> Iterator[Corners]:
    """Yield places around a frame, the nearest first."""
    width, height = size
    for ring in range(1, _RINGS + 1):
        away = ring * height // 2
        left, top = frame[0] - away - width, frame[1] - away - height
        right, bottom = frame[2] + away, frame[3] + away
        across, down = range(left, right + 1, max(1, width // 2)), range(top, bottom + 1, max(1, height // 2))
        for x, y in (*((x, y) for x in across for y in (top, bottom)), *((x, y) for y in down for x in (right, left))):
            yield x, y, x + width, y + height


def flow(sizes: Sequence[Extent], width: int, gap: int, max_height: int) -> tuple[list[Extent], Extent]:
    """Arrange entries in rows of at most `width`, or of the widest entry; return their corners and the size of all.

    Entries that would end below `max_height` are left out.
    """
    width = max([width, *(entry[0] + 2 * gap for entry in sizes)])
    corners: list[Extent] = []
    x, y, row = gap, gap, 0
    for entry in sizes:
        if x > gap and x + entry[0] + gap > width:
            x, y, row = gap, y + row + gap, 0
        if corners and y + entry[1] + gap > max_height:
            break
        corners.append((x, y))
        x, row = x + entry[0] + gap, max(row, entry[1])
    return corners, (width, y + row + gap)


def _iter_cells(place: Corners) -> Iterator[Extent]:
    left, top, right, bottom = place
    for column in range(left // _CELL, right // _CELL + 1):
        for line in range(top // _CELL, bottom // _CELL + 1):
            yield column, line


def _overlap(one: Corners, other: Corners) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _contains(outer: Corners, inner: Corners) -> bool:
    return outer[0] <= inner[0] and outer[1] <= inner[1] and outer[2] >= inner[2] and outer[3] >= inner[3]
