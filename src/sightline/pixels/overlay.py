"""Draw boxes and their labels on an image, so that a person sees what an answer refers to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from sightline.model.fence import to_one_line
from sightline.model.image import MAX_BITMAP_BYTES
from sightline.model.refusal import Refusal
from sightline.pixels.decode import choose_whole, decode_part
from sightline.pixels.label_layout import Corners, Extent, flow, place_labels, place_numbers
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
