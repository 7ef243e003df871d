"""Pictures for tests: ones that the scripted eye can read, and ones that break sessions."""

import io
import math
import random
from collections.abc import Sequence
from itertools import product

from PIL import Image, ImageChops, ImageDraw

from sightline.pixels.trial_card import ADVANCE, CODE_AT, CODE_LENGTH, COLUMNS, GLYPHS, LETTERS, ROWS
from tests.scripted.eye import CELL, PALETTE, RGB, draw_text

EIGHT_THOUSAND_AND_ONE = 8001


def some_colours(seed: int) -> tuple[str, str, str, str]:
    """Four different colour names, the same for the same seed."""
    first, second, third, fourth = random.Random(seed).sample(sorted(PALETTE), 4)
    return first, second, third, fourth


def some_code(seed: int) -> str:
    """A code, the same for the same seed."""
    return "".join(random.Random(seed).choices(LETTERS, k=CODE_LENGTH))


def encode(image: Image.Image, kind: str = "png", **options: int | Image.Exif) -> bytes:
    """The picture as a file of this format."""
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def _quadrants(colours: Sequence[str], size: tuple[int, int]) -> Image.Image:
    width, height = size
    image = Image.new("RGB", size)
    for name, (row, column) in zip(colours, product(range(2), repeat=2), strict=True):
        corner = (column * (width // 2), row * (height // 2))
        image.paste(PALETTE[name], (*corner, width, height))
    return image


def paint_quadrants(
    colours: Sequence[str], size: tuple[int, int] = (320, 240), kind: str = "png", **options: int | Image.Exif
) -> bytes:
    """A picture whose four quadrants, from top-left to bottom-right, have these colours."""
    return encode(_quadrants(colours, size), kind, **options)


def paint_card(
    colours: Sequence[str], code: str, size: tuple[int, int] = (480, 360), kind: str = "png", grain: int = 0
) -> bytes:
    """Quadrants with a code over their middle; `grain` is the noise that makes a file heavy."""
    card = _quadrants(colours, size)
    draw = ImageDraw.Draw(card)
    across, down = size[0] / COLUMNS, size[1] / ROWS
    left, top = CODE_AT
    draw.rectangle(
        ((left - 1) * across, (top - 1) * down, (left + CODE_LENGTH * ADVANCE) * across - 1, (top + 8) * down - 1),
        fill=(255, 255, 255),
    )
    for place, (y, x) in product(range(CODE_LENGTH), product(range(7), range(5))):
        if GLYPHS[code[place]][y][x] == "#":
            at = left + place * ADVANCE + x
            box = (at * across, (top + y) * down, (at + 1) * across - 1, (top + y + 1) * down - 1)
            draw.rectangle(box, fill=(0, 0, 0))
    if grain:
        noise = random.Random(code).randbytes(size[0] * size[1] * 3)
        card = ImageChops.subtract(card, Image.frombytes("RGB", size, noise).point(lambda v: v * grain // 255))
    return encode(card, kind, **({"compress_level": 1} if grain and kind == "png" else {}))


def stamp(page: Image.Image, text: str, at: tuple[int, int], ink: RGB) -> None:
    """Draw one line on a page that is at the font's own scale."""
    page.paste(ink, at, draw_text(text))


def paint_lines(
    lines: Sequence[str],
    scale: int = 2,
    ink: RGB = (24, 24, 28),
    paper: RGB = (250, 250, 248),
    kind: str = "png",
) -> bytes:
    """A picture of these lines in the font that the eye knows."""
    page = Image.new("RGB", (CELL[0] * (max(map(len, lines)) + 4), (CELL[1] + 3) * (len(lines) + 1)), paper)
    for number, line in enumerate(lines):
        stamp(page, line, (2 * CELL[0], 7 + number * (CELL[1] + 3)), ink)
    return encode(page.resize((page.width * scale, page.height * scale), Image.Resampling.NEAREST), kind)


def too_wide(colours: Sequence[str]) -> bytes:
    """A small file of 8001 by 600 pixels."""
    return paint_quadrants(colours, (EIGHT_THOUSAND_AND_ONE, 600))


def too_heavy(colours: Sequence[str], encoded_bytes: int = 11_000_000) -> bytes:
    """A PNG of at least this many bytes: clear quadrants under noise that no PNG filter can pack."""
    grain = random.Random(0)
    side = 64 * math.ceil((encoded_bytes / 1.9) ** 0.5 / 64)
    noise = Image.frombytes("RGB", (side, side), grain.randbytes(side * side * 3)).point(lambda v: v // 16)
    plain = _quadrants(colours, (side, side)).point(lambda v: v - 8)
    return encode(ImageChops.add(plain, noise), compress_level=1)


def undecodable_png() -> bytes:
    """A PNG by its first bytes and its header, whose pixels are garbage."""
    good = paint_quadrants(some_colours(0), (64, 64))
    at = good.index(b"IDAT") + 4
    return good[:at] + bytes(reversed(good[at:-12])) + good[-12:]


def truncated_jpeg() -> bytes:
    """A JPEG whose second half is missing."""
    whole = paint_quadrants(some_colours(1), (640, 480), "jpeg")
    return whole[: len(whole) // 2]


def html_page() -> bytes:
    """What a server that wants a login sends in place of a picture; label it image/png."""
    return b"<!doctype html><html><head><title>Sign in</title></head><body>Please sign in.</body></html>\n"
