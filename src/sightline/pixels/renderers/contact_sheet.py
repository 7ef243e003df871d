"""Several pages or stills as one picture, each with a label below it."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from math import ceil, sqrt
from typing import TYPE_CHECKING

from sightline.pixels.renderers.bundled_fonts import FONT_FOLDER
from sightline.pixels.renderers.renderer import RenderedPage, encode_page

if TYPE_CHECKING:
    from PIL.Image import Image as Pillow

SHEET_PAGES = 12
_CELL_EDGE = 480  # pixels of the longer side of a page
_GAP = 12
_LABEL_HEIGHT = 30
_FONT_SIZE = 20
_GROUND, _FRAME, _INK = "#e8e8e8", "#a0a0a0", "#000000"


def build_contact_sheet(pages: Sequence[RenderedPage]) -> bytes:
    """Return one picture of all pages, in rows, in the same order."""
    from PIL import Image, ImageDraw, ImageFont

    pictures = [_shrink(page.data) for page in pages]
    cell_width = max(each.width for each in pictures) + _GAP
    cell_height = max(each.height for each in pictures) + _GAP + _LABEL_HEIGHT
    columns = _choose_columns(len(pages), cell_width, cell_height)
    rows = ceil(len(pages) / columns)
    sheet = Image.new("RGB", (columns * cell_width + _GAP, rows * cell_height + _GAP), _GROUND)
    draw = ImageDraw.Draw(sheet)
    font = ImageFont.truetype(FONT_FOLDER / "DejaVuSans.ttf", _FONT_SIZE)
    for index, (page, picture) in enumerate(zip(pages, pictures, strict=True)):
        row, column = divmod(index, columns)
        left, top = _GAP + column * cell_width, _GAP + row * cell_height
        sheet.paste(picture, (left, top))
        draw.rectangle((left - 1, top - 1, left + picture.width, top + picture.height), outline=_FRAME)
        draw.text((left, top + picture.height + 4), page.label or str(page.number), fill=_INK, font=font)
    return encode_page(sheet)


def _choose_columns(count: int, width: int, height: int) -> int:
    """Return how many columns make the sheet about square."""
    return max(1, min(count, round(sqrt(count * height / width))))


def _shrink(data: bytes) -> Pillow:
    from PIL import Image

    picture = Image.open(BytesIO(data)).convert("RGB")
    picture.thumbnail((_CELL_EDGE, _CELL_EDGE), Image.Resampling.LANCZOS)
    return picture
