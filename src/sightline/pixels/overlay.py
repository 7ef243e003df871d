"""Draw boxes and their labels on an image, so that a person sees what an answer refers to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from sightline.model.image import MAX_BITMAP_BYTES
from sightline.model.refusal import Refusal
from sightline.pixels.decode import choose_whole, decode_part
from sightline.pixels.probe import probe_within_limits

if TYPE_CHECKING:
    from pyvips import Image as Bitmap

RGB = tuple[int, int, int]
Corners = tuple[int, int, int, int]
COLOURS: tuple[RGB, ...] = (
    (214, 24, 31), (24, 61, 212), (0, 140, 58), (214, 110, 0), (118, 32, 150), (0, 128, 140), (190, 20, 120),
)  # fmt: skip
_BANDS = 3
_MAX_LETTERS = 60
_MAX_BYTES = MAX_BITMAP_BYTES // 2  # of the canvas, which is held twice, as is its file


class Canvas:
    """An RGB image that is drawn on in place; libvips would copy all of it for every stroke."""

    def __init__(self, image: Bitmap) -> None:
        flat = image.flatten(background=[255] * (image.bands - 1)) if image.hasalpha() else image
        self.width, self.height = image.width, image.height
        self._bytes = bytearray(flat.colourspace("srgb").cast("uchar").write_to_memory())

    def fill(self, x: int, y: int, width: int, height: int, ink: bytes) -> None:
        """Fill a rectangle, as far as it is on the canvas."""
        left, right = max(0, x), min(self.width, x + width)
        for row in range(max(0, y), min(self.height, y + height)):
            self._write_row(left, row, ink * (right - left))

    def paste(self, picture: Bitmap, x: int, y: int) -> None:
        """Draw an RGB image whose upper left corner is on the canvas."""
        pixels, visible = picture.write_to_memory(), min(picture.width, self.width - x)
        for row in range(min(picture.height, self.height - y)):
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

    A point is drawn as a small box. An image that is too large to draw on is shrunk, and its boxes with it.
    """
    info = probe_within_limits(data)
    decoded = info if isinstance(info, Refusal) else decode_part(data, info, choose_whole, max_bytes=_MAX_BYTES)
    if isinstance(decoded, Refusal):
        return decoded
    canvas = Canvas(decoded.bitmap)
    thick = max(2, round(max(canvas.width, canvas.height) / 500))
    across, down = canvas.width / decoded.full_size.width, canvas.height / decoded.full_size.height
    boxes = [
        (round(x1 * across), round(y1 * down), round(x2 * across), round(y2 * down), label)
        for x1, y1, x2, y2, label in arguments["boxes"]
    ]
    frames = [_build_frame(box, canvas, thick) for *box, _ in boxes]
    occupied = list(frames)
    for number, frame in enumerate(frames):
        _draw_frame(canvas, frame, thick, COLOURS[number % len(COLOURS)])
    for number, (frame, (*_, label)) in enumerate(zip(frames, boxes, strict=True)):
        if label_image := _render_label(label, thick, COLOURS[number % len(COLOURS)]):
            occupied.append(_place_label(label_image, frame, occupied, canvas))
            canvas.paste(label_image, *occupied[-1][:2])
    return {"width": canvas.width, "height": canvas.height}, canvas.encode(arguments.get("mime", "image/png"))


def _build_frame(box: Sequence[int], canvas: Canvas, thick: int) -> Corners:
    """Return the frame around a box, a pixel away from it. The frame of a point is large enough to be seen."""
    x1, y1, x2, y2 = box
    (x1, x2), (y1, y2) = (
        (low, high) if high - low >= 2 * thick else ((low + high) // 2 - thick, (low + high) // 2 + thick)
        for low, high in ((x1, x2), (y1, y2))
    )
    away = thick + 1
    return max(0, x1 - away), max(0, y1 - away), min(canvas.width, x2 + away), min(canvas.height, y2 + away)


def _draw_frame(canvas: Canvas, box: Corners, thick: int, colour: RGB) -> None:
    left, top, right, bottom = box
    for x, y, width, height in (
        (left, top, right - left, thick),
        (left, bottom - thick, right - left, thick),
        (left, top, thick, bottom - top),
        (right - thick, top, thick, bottom - top),
    ):
        canvas.fill(x, y, max(1, width), max(1, height), bytes(colour))


def _render_label(label: str, thick: int, colour: RGB) -> Bitmap | None:
    """Return a label in white on its colour; None if it is empty, or no font is installed."""
    import pyvips

    words = label if len(label) <= _MAX_LETTERS else label[: _MAX_LETTERS - 1] + "…"
    if not words.strip():
        return None
    try:
        mask = pyvips.Image.text(escape(words), font="sans bold", dpi=36 + 18 * thick)
    except pyvips.Error:  # there is no font
        return None
    pad = 2 * thick
    label_image = mask.embed(pad, pad, mask.width + 2 * pad, mask.height + 2 * pad)
    return label_image.linear(
        [(255 - each) / 255 for each in colour], list(colour), uchar=True
    )  # white where the mask is


def _place_label(label_image: Bitmap, frame: Corners, occupied: Sequence[Corners], canvas: Canvas) -> Corners:
    """Return a free place for a label: above, below, right or left of its frame; else the first of these."""
    left, top, right, bottom = frame
    x = max(0, min(left, canvas.width - label_image.width))
    corners = ((x, top - label_image.height), (x, bottom), (right, top), (left - label_image.width, top))
    places = [(x, y, x + label_image.width, y + label_image.height) for x, y in corners]
    inside = [place for place in places if min(place) >= 0 and place[2] <= canvas.width and place[3] <= canvas.height]
    free = (place for place in inside if not any(_overlap(place, other) for other in occupied))
    y = max(0, min(bottom, canvas.height - label_image.height))
    return next(free, None) or (inside[0] if inside else (x, y, x + label_image.width, y + label_image.height))


def _overlap(one: Corners, other: Corners) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
