"""Boxes and their names drawn on an image, so that a person sees what an answer points at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from sightline.model.refusal import Refusal
from sightline.pixels.bitmap import decode, within_bounds

if TYPE_CHECKING:
    from pyvips import Image as Bitmap

RGB = tuple[int, int, int]
COLOURS: tuple[RGB, ...] = (
    (214, 24, 31), (24, 61, 212), (0, 140, 58), (214, 110, 0), (118, 32, 150), (0, 128, 140), (190, 20, 120),
)  # fmt: skip
_BANDS = 3
_MOST_LETTERS = 60


class Paper:
    """Three bands in memory of our own, drawn on in place: the library would copy the whole for every stroke."""

    def __init__(self, image: Bitmap) -> None:
        flat = image.flatten(background=[255] * (image.bands - 1)) if image.hasalpha() else image
        self.width, self.height = image.width, image.height
        self._bytes = bytearray(flat.colourspace("srgb").cast("uchar").write_to_memory())

    def fill(self, x: int, y: int, width: int, height: int, ink: bytes) -> None:
        """A rectangle of one colour; what is off the paper is left out."""
        left, right = max(0, x), min(self.width, x + width)
        for row in range(max(0, y), min(self.height, y + height)):
            self._put(left, row, ink * (right - left))

    def paste(self, picture: Bitmap, x: int, y: int) -> None:
        """Three bands as well, with its upper left corner on the paper."""
        pixels, seen = picture.write_to_memory(), min(picture.width, self.width - x)
        for row in range(min(picture.height, self.height - y)):
            start = row * picture.width * _BANDS
            self._put(x, y + row, pixels[start : start + seen * _BANDS])

    def _put(self, x: int, y: int, pixels: bytes) -> None:
        start = (y * self.width + x) * _BANDS
        self._bytes[start : start + len(pixels)] = pixels

    def file(self, mime: str) -> bytes:
        import pyvips

        made = pyvips.Image.new_from_memory(self._bytes, self.width, self.height, _BANDS, "uchar")
        return _WRITERS[mime](made.copy(interpretation="srgb"))


_WRITERS: Mapping[str, Callable[[Bitmap], bytes]] = {
    "image/png": lambda image: image.pngsave_buffer(compression=6, keep="none"),
    "image/jpeg": lambda image: image.jpegsave_buffer(Q=90, subsample_mode="off", keep="none"),
    "image/webp": lambda image: image.webpsave_buffer(lossless=True, effort=2, keep="none"),
}


def overlay_task(data: bytes, arguments: dict[str, Any]) -> tuple[dict[str, Any], bytes] | Refusal:
    """The image as a file of type `mime`, else a PNG, with every box of `boxes` on it: x1, y1, x2, y2 and a label.

    A point is a small box.
    """
    picture = within_bounds(data)
    image = picture if isinstance(picture, Refusal) else decode(data, picture)
    if isinstance(image, Refusal):
        return image
    paper = Paper(image)
    thick = max(2, round(max(paper.width, paper.height) / 500))
    for number, (*box, label) in enumerate(arguments["boxes"]):
        colour = COLOURS[number % len(COLOURS)]
        left, top, right, bottom = _within(box, paper, thick)
        _frame(paper, (left, top, right, bottom), thick, colour)
        _name(paper, label, (left, top, bottom), thick, colour)
    return {"width": paper.width, "height": paper.height}, paper.file(arguments.get("mime", "image/png"))


def _within(box: Sequence[int], paper: Paper, thick: int) -> tuple[int, int, int, int]:
    """The box on the paper, large enough to be seen."""
    x1, y1, x2, y2 = box
    if x2 - x1 < 4 * thick:
        middle = (x1 + x2) // 2
        x1, x2 = middle - 2 * thick, middle + 2 * thick
    if y2 - y1 < 4 * thick:
        middle = (y1 + y2) // 2
        y1, y2 = middle - 2 * thick, middle + 2 * thick
    return max(0, x1), max(0, y1), min(paper.width, x2), min(paper.height, y2)


def _frame(paper: Paper, box: tuple[int, int, int, int], thick: int, colour: RGB) -> None:
    left, top, right, bottom = box
    for x, y, width, height in (
        (left, top, right - left, thick),
        (left, bottom - thick, right - left, thick),
        (left, top, thick, bottom - top),
        (right - thick, top, thick, bottom - top),
    ):
        paper.fill(x, y, max(1, width), max(1, height), bytes(colour))


def _name(paper: Paper, label: str, place: tuple[int, int, int], thick: int, colour: RGB) -> None:
    """The label on a strip of the box's colour: above the box, or below it where there is no room above."""
    import pyvips

    words = label if len(label) <= _MOST_LETTERS else label[: _MOST_LETTERS - 1] + "…"
    if not words.strip():
        return
    try:
        mask = pyvips.Image.text(escape(words), font="sans bold", dpi=36 + 18 * thick)
    except pyvips.Error:  # without a font, the box alone has to do
        return
    pad = 2 * thick
    strip = mask.embed(pad, pad, mask.width + 2 * pad, mask.height + 2 * pad)
    left, top, bottom = place
    y = top - strip.height if top >= strip.height else min(bottom, paper.height - strip.height)
    x = min(left, max(0, paper.width - strip.width))
    drawn = strip.linear([(255 - each) / 255 for each in colour], list(colour), uchar=True)  # white where the mask is
    paper.paste(drawn, max(0, x), max(0, y))
