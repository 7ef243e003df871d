"""The eye of the scripted models: what a picture shows, read from its pixels alone.

Three things can be read. Four plain quadrants, whose colours are named out of a palette that nobody guesses (24
names, 331,776 pictures), and a code in the middle of them, in the font of Sightline's own cards (85 million codes);
both survive resizing and JPEG. And lines of text in Pillow's built-in bitmap font, drawn at a whole scale and
compared with the font cell by cell; they survive no resizing.
"""

import io
import math
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import groupby, product

from PIL import Image, ImageChops, ImageDraw, ImageFont, ImageStat

from sightline.pixels.trial_card import ADVANCE, CODE_AT, CODE_LENGTH, COLUMNS, GLYPHS, ROWS

RGB = tuple[int, int, int]
Four = tuple[str, str, str, str]

_LEVELS = (20, 128, 236)
_NAMES = (
    "ultramarine cobalt fern teal azure malachite spearmint turquoise "
    "oxblood aubergine violet olive periwinkle chartreuse celadon glacier "
    "vermilion cerise fuchsia tangerine coral orchid saffron custard"
).split()
# Every colour of the three levels but the greys, in the order of the names; any two are 108 steps apart.
PALETTE: dict[str, RGB] = dict(
    zip(_NAMES, (c for c in product(_LEVELS, _LEVELS, _LEVELS) if len(set(c)) > 1), strict=True)
)
# The same eye's everyday words, for a question that asks for them.
PLAIN: dict[str, RGB] = {
    "red": (220, 20, 30),
    "green": (0, 135, 60),
    "blue": (20, 60, 220),
    "yellow": (250, 225, 10),
    "orange": (255, 130, 0),
    "purple": (120, 30, 150),
    "pink": (255, 155, 190),
    "brown": (110, 60, 20),
    "gray": (128, 128, 128),
    "black": (0, 0, 0),
}
CORNERS = ("top-left", "top-right", "bottom-left", "bottom-right")

_NEAR = 40.0  # farther from every name than this: no name
_UNIFORM = 14.0  # a quadrant whose channels deviate more than this is not one colour
_READABLE_AREA = 1_000_000  # larger pictures, at the scale of their font, are not searched for text
_MOST_COLOURS = 24

_GRAIN = 4  # samples along the side of one square of a card
_PAPER, _INK = 165, 90  # of 255: lighter than the one, darker than the other

CELL = (7, 11)
_RUN = re.compile(r"[^ \0](?: {0,3}[^ \0])+")  # words of one line; a wider gap begins another
_GLYPHS = string.ascii_letters + string.digits + string.punctuation


@dataclass(frozen=True, slots=True)
class Seen:
    """What one picture shows."""

    width: int
    height: int
    format: str
    quadrants: Four | None
    lines: tuple[str, ...]
    code: str | None = None
    plain: Four | None = None  # the quadrants in everyday words

    def words(self) -> str:
        """The picture in the words of a scripted model."""
        said = []
        if self.quadrants:
            said.append(describe_quadrants(self.quadrants))
        if self.code:
            said.append(f"code: {self.code}")
        if self.lines:
            said.append("text:\n" + "\n".join(self.lines))
        return "\n".join(said) or f"a picture of {self.width}x{self.height} pixels that I cannot name"


def describe_quadrants(colours: Sequence[str]) -> str:
    """The sentence that a seeing model says about four quadrants; tests look for it in answers."""
    return "quadrants: " + ", ".join(f"{at} {name}" for at, name in zip(CORNERS, colours, strict=True))


@lru_cache(256)  # a conversation shows the same images in each request
def look(data: bytes) -> Seen | None:
    """What these image bytes show, or None when they do not decode to the last pixel."""
    try:
        with Image.open(io.BytesIO(data)) as image:
            image.load()
            picture, kind = image.convert("RGB"), (image.format or "").lower()
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        return None
    named = (_quadrants(picture, PALETTE), read_lines(picture), read_code(picture), _quadrants(picture, PLAIN))
    return Seen(picture.width, picture.height, kind, *named)


def _quadrants(picture: Image.Image, palette: Mapping[str, RGB]) -> Four | None:
    names = [_colour(picture, corner, palette) for corner in range(4)]
    first, second, third, fourth = names
    return (first, second, third, fourth) if first and second and third and fourth else None


def _colour(picture: Image.Image, corner: int, palette: Mapping[str, RGB]) -> str | None:
    """The name of one quadrant, sampled in the middle of it."""
    half_w, half_h = picture.width / 2, picture.height / 2
    left, top = (corner % 2) * half_w, (corner // 2) * half_h
    right, bottom = left + half_w * 0.75, top + half_h * 0.75
    stat = ImageStat.Stat(picture.crop((left + half_w * 0.25, top + half_h * 0.25, right, bottom)))
    if not stat.count[0] or max(stat.stddev) > _UNIFORM:
        return None
    distances = {name: _distance(stat.mean, colour) for name, colour in palette.items()}
    nearest = min(distances, key=distances.__getitem__)
    return nearest if distances[nearest] < _NEAR else None


def _distance(mean: Sequence[float], colour: RGB) -> float:
    return math.dist(mean, colour)


def read_code(picture: Image.Image) -> str | None:
    """The code on the strip of paper in the middle, or None where there is no such strip or no letter of the font."""
    grid = picture.convert("L").resize((COLUMNS * _GRAIN, ROWS * _GRAIN), Image.Resampling.BOX)
    left, top = CODE_AT
    edges = [(x, y) for y in (top - 1, top + 7) for x in range(left - 1, left + CODE_LENGTH * ADVANCE)]
    if not all(_shade(grid, x, y) > _PAPER for x, y in edges):
        return None
    letters = [_letter(grid, left + place * ADVANCE, top) for place in range(CODE_LENGTH)]
    return "".join(letter for letter in letters if letter) if all(letters) else None


def _letter(grid: Image.Image, left: int, top: int) -> str | None:
    shades = [[_shade(grid, left + x, top + y) for x in range(5)] for y in range(7)]
    if any(_INK <= shade <= _PAPER for row in shades for shade in row):
        return None
    drawn = tuple("".join("#" if shade < _INK else "." for shade in row) for row in shades)
    return next((letter for letter, rows in GLYPHS.items() if rows == drawn), None)


def _shade(grid: Image.Image, x: int, y: int) -> float:
    """How light one square of a card is in its middle, where no neighbour bleeds into it."""
    box = (x * _GRAIN + 1, y * _GRAIN + 1, (x + 1) * _GRAIN - 1, (y + 1) * _GRAIN - 1)
    return ImageStat.Stat(grid.crop(box)).mean[0]


def read_lines(picture: Image.Image) -> tuple[str, ...]:
    """The text lines of a picture drawn in the known font, from top to bottom."""
    page = _at_font_scale(picture)
    colours = page.getcolors(_MOST_COLOURS) if page.width * page.height <= _READABLE_AREA else None
    found = [
        run
        for count, ink in colours or ()
        if isinstance(ink, tuple) and count * 6 < page.width * page.height
        for run in _read_ink(_mask(page, ink))
    ]
    rows = groupby(sorted(found, key=lambda run: (run.y, run.x)), key=lambda run: run.y)
    return tuple(" ".join(run.text for run in row) for _, row in rows)


def _at_font_scale(picture: Image.Image) -> Image.Image:
    """The picture at its font's own scale: shrunk by the largest whole number that loses nothing."""
    for scale in (4, 3, 2):
        if picture.width % scale or picture.height % scale:
            continue
        small = picture.resize((picture.width // scale, picture.height // scale), Image.Resampling.NEAREST)
        again = small.resize(picture.size, Image.Resampling.NEAREST)
        if ImageChops.difference(picture, again).getbbox() is None:
            return small
    return picture


@dataclass(frozen=True, slots=True)
class _Run:
    ink: int
    y: int
    x: int
    text: str

    def overlaps(self, other: "_Run") -> bool:
        ahead, below = other.x - self.x, other.y - self.y
        return -len(other.text) * CELL[0] < ahead < len(self.text) * CELL[0] and abs(below) < CELL[1]


def _mask(page: Image.Image, ink: tuple[int, ...]) -> list[str]:
    """The page as rows of 0 and 1, where 1 is this very colour."""
    plain = page.tobytes()
    wanted = bytes(ink)
    width = page.width * 3
    return [
        "".join("1" if plain[at : at + 3] == wanted else "0" for at in range(row, row + width, 3))
        for row in range(0, len(plain), width)
    ]


def _read_ink(rows: list[str]) -> list[_Run]:
    """The runs that explain most of the ink: of two that overlap, the one with less ink is an accident."""
    kept: list[_Run] = []
    for run in sorted(_runs(rows), key=lambda run: (-run.ink, run.y, run.x)):
        if not any(run.overlaps(other) for other in kept):
            kept.append(run)
    return kept


def _runs(rows: list[str]) -> Iterator[_Run]:
    """Every run of two or more glyphs that stand cell beside cell, at any place of the page."""
    glyphs, (width, height) = _glyphs(), CELL
    for y in range(len(rows) - height + 1):
        band = rows[y : y + height]
        if not any("1" in row for row in band):
            continue
        for phase in range(width):
            cells = ["".join(row[x : x + width] for row in band) for x in range(phase, len(band[0]), width)]
            line = "".join(glyphs.get(cell, "\0") for cell in cells)
            for match in _RUN.finditer(line):
                ink = sum(cell.count("1") for cell in cells[match.start() : match.end()])
                yield _Run(ink, y, phase + match.start() * width, match[0])


@cache
def _glyphs() -> dict[str, str]:
    """Each cell of the font, as rows of 0 and 1, with the letter that it draws."""
    width, height = CELL
    drawn = {glyph: _cell(glyph) for glyph in _GLYPHS}
    table = {
        "".join("1" if cell.getpixel((x, y)) else "0" for y in range(height) for x in range(width)): glyph
        for glyph, cell in drawn.items()
    }
    assert len(table) == len(_GLYPHS), "two letters of the font look alike"
    return {**table, "0" * (width * height): " "}


@cache
def _cell(glyph: str) -> Image.Image:
    """One letter in its cell; the space before it because letters reach one pixel to their left."""
    image = Image.new("1", (CELL[0] + 5, CELL[1]))
    ImageDraw.Draw(image).text((0, 0), " " + glyph, fill=1, font=ImageFont.load_default_imagefont())
    return image.crop((5, 0, *image.size))


def draw_text(text: str) -> Image.Image:
    """One line of the font at its own size, as a mask; each letter has a cell to itself."""
    image = Image.new("1", (CELL[0] * len(text), CELL[1]))
    for place, glyph in enumerate(text):
        image.paste(_cell(glyph), (place * CELL[0], 0))
    return image
