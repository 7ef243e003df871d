"""Boxes and their names drawn on an image, so that a person sees what an answer points at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from sightline.model.image import HELD_BYTES
from sightline.model.refusal import Refusal
from sightline.pixels.bitmap import all_of, decode_part
from sightline.pixels.decode_limits import within_bounds

if TYPE_CHECKING:
    from pyvips import Image as Bitmap

RGB = tuple[int, int, int]
Corners = tuple[int, int, int, int]
COLOURS: tuple[RGB, ...] = (
    (214, 24, 31), (24, 61, 212), (0, 140, 58), (214, 110, 0), (118, 32, 150), (0, 128, 140), (190, 20, 120),
)  # fmt: skip
_BANDS = 3
_MOST_LETTERS = 60
_HELD = HELD_BYTES // 2  # bytes of what is drawn on: it is held twice, and so is its file


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

    A point is a small box. An image that is too large to draw on is made smaller, and its boxes with it.
    """
    picture = within_bounds(data)
    found = picture if isinstance(picture, Refusal) else decode_part(data, picture, all_of, most=_HELD)
    if isinstance(found, Refusal):
        return found
    paper = Paper(found.bitmap)
    thick = max(2, round(max(paper.width, paper.height) / 500))
    across, down = paper.width / found.whole.width, paper.height / found.whole.height
    boxes = [
        (round(x1 * across), round(y1 * down), round(x2 * across), round(y2 * down), label)
        for x1, y1, x2, y2, label in arguments["boxes"]
    ]
    frames = [_around(box, paper, thick) for *box, _ in boxes]
    taken = list(frames)
    for number, frame in enumerate(frames):
        _frame(paper, frame, thick, COLOURS[number % len(COLOURS)])
    for number, (frame, (*_, label)) in enumerate(zip(frames, boxes, strict=True)):
        if strip := _strip(label, thick, COLOURS[number % len(COLOURS)]):
            taken.append(_room(strip, frame, taken, paper))
            paper.paste(strip, *taken[-1][:2])
    return {"width": paper.width, "height": paper.height}, paper.file(arguments.get("mime", "image/png"))


def _around(box: Sequence[int], paper: Paper, thick: int) -> Corners:
    """The frame around a box, a pixel away: what it points at is not touched. A point has one large enough to see."""
    x1, y1, x2, y2 = box
    (x1, x2), (y1, y2) = (
        (low, high) if high - low >= 2 * thick else ((low + high) // 2 - thick, (low + high) // 2 + thick)
        for low, high in ((x1, x2), (y1, y2))
    )
    away = thick + 1
    return max(0, x1 - away), max(0, y1 - away), min(paper.width, x2 + away), min(paper.height, y2 + away)


def _frame(paper: Paper, box: Corners, thick: int, colour: RGB) -> None:
    left, top, right, bottom = box
    for x, y, width, height in (
        (left, top, right - left, thick),
        (left, bottom - thick, right - left, thick),
        (left, top, thick, bottom - top),
        (right - thick, top, thick, bottom - top),
    ):
        paper.fill(x, y, max(1, width), max(1, height), bytes(colour))


def _strip(label: str, thick: int, colour: RGB) -> Bitmap | None:
    """A label in white on its colour; None where there is none to write, or no font."""
    import pyvips

    words = label if len(label) <= _MOST_LETTERS else label[: _MOST_LETTERS - 1] + "…"
    if not words.strip():
        return None
    try:
        mask = pyvips.Image.text(escape(words), font="sans bold", dpi=36 + 18 * thick)
    except pyvips.Error:  # without a font, the box alone has to do
        return None
    pad = 2 * thick
    strip = mask.embed(pad, pad, mask.width + 2 * pad, mask.height + 2 * pad)
    return strip.linear([(255 - each) / 255 for each in colour], list(colour), uchar=True)  # white where the mask is


def _room(strip: Bitmap, frame: Corners, taken: Sequence[Corners], paper: Paper) -> Corners:
    """Where a strip hides nothing that is pointed at: above its frame, below, behind or before it; else the first."""
    left, top, right, bottom = frame
    x = max(0, min(left, paper.width - strip.width))
    ways = ((x, top - strip.height), (x, bottom), (right, top), (left - strip.width, top))
    rooms = [(x, y, x + strip.width, y + strip.height) for x, y in ways]
    on_paper = [room for room in rooms if min(room) >= 0 and room[2] <= paper.width and room[3] <= paper.height]
    free = (room for room in on_paper if not any(_meet(room, other) for other in taken))
    y = max(0, min(bottom, paper.height - strip.height))
    return next(free, None) or (on_paper[0] if on_paper else (x, y, x + strip.width, y + strip.height))


def _meet(one: Corners, other: Corners) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
